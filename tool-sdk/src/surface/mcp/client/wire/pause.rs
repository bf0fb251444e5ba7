//! Exponential backoff between attempts to reopen a stream or a subscription.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The first delay, and the delay after a stream that lasted.
pub(super) const SHORTEST: Duration = Duration::from_secs(1);

/// The longest delay.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// Delays that double as long as each stream ends sooner than the last delay.
#[derive(Debug)]
pub(super) struct Pause {
    waited: Duration,
    /// When the last delay ended, and a stream could be opened.
    since: Instant,
}

impl Pause {
    pub(super) fn new() -> Self {
        Self { waited: Duration::ZERO, since: Instant::now() }
    }

    /// Waits before the next attempt.
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
    async fn delay_doubles_until_a_stream_lasts() {
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
