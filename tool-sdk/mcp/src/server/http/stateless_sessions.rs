//! Connections of clients that send stateless requests.
//!
//! A modern request over HTTP names no session, but a later request may depend on an earlier one,
//! such as one that started a command. So each principal has one connection.
//!
//! **Invariant:** a principal has at most one such connection, and no other principal gets it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::sessions::{IDLE_TIMEOUT, PrincipalKey};
use crate::server::connection::Connection;

/// The connections of principals that were used lately.
#[derive(Default)]
pub(super) struct StatelessSessions(Mutex<Vec<StatelessSession>>);

struct StatelessSession {
    connection: Arc<Connection>,
    last_used: Instant,
}

impl StatelessSessions {
    /// Returns the connection of a principal, which uses it now; a new one if there is none.
    pub(super) fn get_or_create(
        &self,
        principal: &PrincipalKey,
        now: Instant,
        create: impl FnOnce() -> io::Result<Connection>,
    ) -> io::Result<Arc<Connection>> {
        self.remove_idle(now);
        let mut all = self.lock_sessions();
        if let Some(known) = all.iter_mut().find(|known| known.connection.principal == *principal) {
            known.last_used = now;
            return Ok(Arc::clone(&known.connection));
        }
        let connection = Arc::new(create()?);
        all.push(StatelessSession { connection: Arc::clone(&connection), last_used: now });
        Ok(connection)
    }

    /// Removes idle connections.
    pub(super) fn remove_idle(&self, now: Instant) {
        let is_idle =
            |it: &mut StatelessSession| now.saturating_duration_since(it.last_used) > IDLE_TIMEOUT;
        let idle: Vec<_> = self.lock_sessions().extract_if(.., is_idle).collect();
        // Drop without the lock: ending a session may take a while.
        drop(idle);
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Vec<StatelessSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tool_sdk_core::{Pipeline, Principal, Registry, Session};

    use super::*;
    use crate::server::Server;
    use crate::server::connection::ClientTransport;
    use crate::server::http::event_stream::{EventNames, EventStream};
    use crate::server::message_sink::MessageSink;

    #[test]
    fn keeps_one_connection_for_each_principal_until_it_is_idle() {
        let server = Server::new(Pipeline::new(Registry::default()), Session::default());
        let (server, sessions) = (Arc::new(server), StatelessSessions::default());
        let ada: PrincipalKey = Some(Arc::new(Principal::new("ada")));
        let connect = |principal: &PrincipalKey, now| {
            let create = || {
                let sink = MessageSink::Events(EventStream::new(EventNames::None));
                let transport = ClientTransport::Stateless;
                Connection::new(Arc::clone(&server), principal.clone(), transport, sink)
            };
            sessions.get_or_create(principal, now, create).unwrap()
        };
        let now = Instant::now();
        let first = connect(&ada, now);
        assert!(Arc::ptr_eq(&connect(&ada, now + IDLE_TIMEOUT), &first));
        assert!(!Arc::ptr_eq(&connect(&None, now), &first));
        let later = now + IDLE_TIMEOUT + IDLE_TIMEOUT;
        assert!(Arc::ptr_eq(&connect(&ada, later), &first), "it was used meanwhile");
        let late = later + IDLE_TIMEOUT + Duration::from_secs(1);
        assert!(!Arc::ptr_eq(&connect(&ada, late), &first));
    }
}
