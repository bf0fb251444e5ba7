//! Sessions for stateless requests.
//!
//! A modern request over HTTP names no session, but a later request may depend on an earlier one,
//! such as one that started a command. So each principal has one session.
//!
//! **Invariant:** a principal has at most one such session, and no other principal gets it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tool_sdk_core::Session;

use super::sessions::{IDLE_TIMEOUT, PrincipalKey};

/// One session for each owner who came lately.
#[derive(Default)]
pub(crate) struct StatelessSessions(Mutex<Vec<StatelessSession>>);

struct StatelessSession {
    owner: PrincipalKey,
    session: Session,
    used: Instant,
}

impl StatelessSessions {
    /// The session of `owner`, who uses it; a new one where there is none.
    pub(crate) fn get_or_create(
        &self,
        owner: &PrincipalKey,
        now: Instant,
        begin: impl FnOnce() -> Session,
    ) -> Session {
        self.remove_idle(now);
        let mut all = self.lock_sessions();
        if let Some(known) = all.iter_mut().find(|known| known.owner == *owner) {
            known.used = now;
            return known.session.clone();
        }
        let session = begin();
        all.push(StatelessSession { owner: owner.clone(), session: session.clone(), used: now });
        session
    }

    /// Removes idle sessions.
    pub(super) fn remove_idle(&self, now: Instant) {
        let is_old =
            |it: &mut StatelessSession| now.saturating_duration_since(it.used) > IDLE_TIMEOUT;
        let ended: Vec<_> = self.lock_sessions().extract_if(.., is_old).collect();
        // Drop without the lock: ending calls may take a while.
        drop(ended);
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Vec<StatelessSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tool_sdk_core::Principal;

    use super::*;

    #[test]
    fn an_owner_has_one_session_until_nobody_hears_of_it() {
        let (lasting, now) = (StatelessSessions::default(), Instant::now());
        let ada: PrincipalKey = Some(Arc::new(Principal::new("ada")));
        let of =
            |owner: &PrincipalKey, now| lasting.get_or_create(owner, now, || Session::new("new"));
        let first = of(&ada, now);
        assert!(of(&ada, now + IDLE_TIMEOUT).is_same_session(&first));
        assert!(!of(&None, now).is_same_session(&first));
        lasting.remove_idle(now + IDLE_TIMEOUT + IDLE_TIMEOUT);
        assert!(
            of(&ada, now + IDLE_TIMEOUT + IDLE_TIMEOUT).is_same_session(&first),
            "it was used meanwhile"
        );
        let later = now + IDLE_TIMEOUT + IDLE_TIMEOUT + IDLE_TIMEOUT + Duration::from_secs(1);
        assert!(!of(&ada, later).is_same_session(&first));
    }
}
