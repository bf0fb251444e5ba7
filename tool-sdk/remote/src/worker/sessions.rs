//! The sessions of a worker: one for each user, agent and session of a host.
//!
//! **Invariant:** a session is that of the permit; a request cannot name another one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tool_sdk_core::Session;

use crate::permit::Permit;

/// How many sessions are kept, and how long one is kept that is not used.
const MAX_SESSIONS: usize = 1024;
const MAX_IDLE: Duration = Duration::from_hours(1);

/// The user, agent and session of a permit.
type SessionKey = (Option<String>, Option<String>, String);

/// The sessions of a worker.
pub(super) struct WorkerSessions {
    base: Session,
    sessions: Mutex<HashMap<SessionKey, (Session, Instant)>>,
}

impl fmt::Debug for WorkerSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkerSessions").field(&self.base).finish()
    }
}

impl WorkerSessions {
    pub(super) fn new(base: Session) -> Self {
        Self { base: base.with_shared_server(), sessions: Mutex::default() }
    }

    /// Returns the session of a permit.
    pub(super) fn session_for(&self, permit: &Permit) -> Session {
        let now = Instant::now();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.retain(|_, (_, used)| now.duration_since(*used) < MAX_IDLE);
        }
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = sessions.iter().min_by_key(|(_, (_, used))| *used)
        {
            let oldest = oldest.0.clone();
            sessions.remove(&oldest);
        }
        let key = (permit.user.clone(), permit.agent.clone(), permit.session.clone());
        let (session, used) =
            sessions.entry(key).or_insert_with(|| (self.make_session(permit), now));
        *used = now;
        session.clone()
    }

    fn make_session(&self, permit: &Permit) -> Session {
        let session = self.base.clone().with_id(format!("remote:{}", permit.session));
        let session = permit.user.iter().fold(session, |it, user| it.with_user(user));
        permit.agent.iter().fold(session, |it, agent| it.with_agent(agent))
    }
}
