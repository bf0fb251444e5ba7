//! How often and after which delay a failed request is sent again.

use std::time::Duration;

use super::ModelError;

/// When a request to a model is sent again: after failures that may pass, with exponential backoff
/// and jitter, or when the provider says (`Retry-After`).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tool_sdk::agent::RetryPolicy;
///
/// let patient = RetryPolicy { max_retries: 8, ..RetryPolicy::default() };
/// assert_eq!(patient.first_delay, Duration::from_millis(500));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "hosts construct policies")]
pub struct RetryPolicy {
    /// How often a request is sent again. Default: 4.
    pub max_retries: u32,
    /// The delay before the first repetition, doubled for each further one. Default: 0.5 s.
    pub first_delay: Duration,
    /// The longest delay, also of those that the provider asks for: one that asks for more is not
    /// waited for. Default: 60 s.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 4,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Returns the delay before the repetition number `attempt`, counting from 0; `None` when the
    /// request is not sent again.
    pub(crate) fn next_delay(&self, attempt: u32, error: &ModelError) -> Option<Duration> {
        if !error.kind.is_transient() || attempt >= self.max_retries {
            return None;
        }
        if let Some(asked) = error.retry_after {
            return (asked <= self.max_delay).then_some(asked);
        }
        let factor = 2_u32.checked_pow(attempt).unwrap_or(u32::MAX);
        let delay = self.first_delay.saturating_mul(factor).min(self.max_delay);
        Some(with_jitter(delay))
    }
}

/// Shortens a delay by up to a half, so that clients that failed together do not return together.
fn with_jitter(delay: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    delay.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelErrorKind;

    #[test]
    fn delays_double_and_stay_below_their_limit() {
        let policy = RetryPolicy { max_retries: 20, ..RetryPolicy::default() };
        let error = ModelError::new(ModelErrorKind::Unavailable, "busy");
        for attempt in 0..20 {
            let longest = Duration::from_millis(500 << attempt.min(10)).min(policy.max_delay);
            let delay = policy.next_delay(attempt, &error).unwrap();
            assert!(delay <= longest && delay * 2 >= longest, "{attempt}: {delay:?}");
        }
        assert_eq!(policy.next_delay(20, &error), None);
    }

    #[test]
    fn the_provider_says_how_long() {
        let policy = RetryPolicy::default();
        let mut error = ModelError::new(ModelErrorKind::RateLimited, "slow down");
        error.retry_after = Some(Duration::from_secs(7));
        assert_eq!(policy.next_delay(0, &error), error.retry_after);
        error.retry_after = Some(Duration::from_secs(600));
        assert_eq!(policy.next_delay(0, &error), None);
        let refused = ModelError::new(ModelErrorKind::InvalidRequest, "no");
        assert_eq!(policy.next_delay(0, &refused), None);
    }
}
