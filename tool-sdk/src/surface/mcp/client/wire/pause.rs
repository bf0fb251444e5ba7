//! How long is waited before something that ended is begun again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The wait after what lasted.
pub(super) const SHORTEST: Duration = Duration::from_secs(1);

/// The longest wait, after what ends again and again.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// Waits that grow for as long as what is begun after them is over sooner than they were.
#[derive(Debug)]
pub(super) struct Pause {
    waited: Duration,
    /// Since when there is something that may end.
    since: Instant,
}

impl Pause {
    pub(super) fn new() -> Self {
        Self { waited: Duration::ZERO, since: Instant::now() }
    }

    /// Waits after the end of what began at the end of the last wait.
    pub(super) async fn wait(&mut self) {
        self.waited = match self.since.elapsed() >= self.waited {
            true => SHORTEST,
            false => (self.waited * 2).min(LONGEST),
        };
        sleep(self.waited).await;
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_grows_until_something_lasts() {
        let mut pause = Pause::new();
        let mut waited = Vec::new();
        for lasts in [0, 0, 0, 3, 8, 0, 0] {
            sleep(Duration::from_secs(lasts)).await;
            let begun = Instant::now();
            pause.wait().await;
            waited.push(begun.elapsed().as_secs());
        }
        assert_eq!(waited, [1, 2, 4, 8, 1, 2, 4]);
        for _ in 0..10 {
            pause.wait().await;
        }
        assert_eq!(pause.waited, LONGEST);
    }
}
