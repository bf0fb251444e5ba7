//! Exponential backoff between attempts to reopen a stream or a subscription.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The first delay, and the delay after a stream that lasted.
pub(super) const INITIAL_DELAY: Duration = Duration::from_secs(1);

/// The longest delay.
pub(super) const MAX_DELAY: Duration = Duration::from_secs(60);

/// Delays that double as long as each stream ends sooner than the last delay.
#[derive(Debug)]
pub(super) struct Backoff {
    delay: Duration,
    /// When the last delay ended, and a stream could be opened.
    started: Instant,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { delay: Duration::ZERO, started: Instant::now() }
    }

    /// Waits before the next attempt.
    pub(super) async fn wait_before_retry(&mut self) {
        self.delay = match self.started.elapsed() >= self.delay {
            true => INITIAL_DELAY,
            false => (self.delay * 2).min(MAX_DELAY),
        };
        sleep(self.delay).await;
        self.started = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delay_doubles_until_a_stream_lasts() {
        let mut pause = Backoff::new();
        let mut waited = Vec::new();
        for lasts in [0, 0, 0, 3, 8, 0, 0] {
            sleep(Duration::from_secs(lasts)).await;
            let begun = Instant::now();
            pause.wait_before_retry().await;
            waited.push(begun.elapsed().as_secs());
        }
        assert_eq!(waited, [1, 2, 4, 8, 1, 2, 4]);
        for _ in 0..10 {
            pause.wait_before_retry().await;
        }
        assert_eq!(pause.delay, MAX_DELAY);
    }
}
