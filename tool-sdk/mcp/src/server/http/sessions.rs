//! The sessions of clients over HTTP.
//!
//! **Invariant:** only the principal that opened a session uses it, and the number of sessions of
//! one principal is bounded.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tool_sdk_core::Principal;

use super::event_stream::{EventNames, EventStream};
use crate::server::Server;
use crate::server::connection::{ClientTransport, Connection};
use crate::server::message_sink::MessageSink;

/// The maximum number of sessions of one principal. Beyond it, the one that was not used for
/// longest is closed.
const MAX_PER_PRINCIPAL: usize = 256;
/// How long an unused session is kept.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// How long a session with a request in flight is kept, in case the client is gone.
const MAX_BUSY: Duration = Duration::from_secs(24 * 60 * 60);

/// `None` is the anonymous principal, shared by everyone who uses the default token.
pub(crate) type PrincipalKey = Option<Arc<Principal>>;

/// A session, which is closed when it is dropped.
pub(super) struct HttpSession {
    pub(super) id: Arc<str>,
    pub(super) connection: Arc<Connection>,
    /// The stream of messages that belong to no request.
    pub(super) events: Arc<EventStream>,
    requests: AtomicU64,
}

impl HttpSession {
    pub(super) fn new(server: Arc<Server>, principal: PrincipalKey) -> io::Result<Self> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits)?;
        let events = EventStream::new(EventNames::OfSession);
        let sink = MessageSink::Events(Arc::clone(&events));
        let transport = ClientTransport::HttpSession;
        Ok(Self {
            id: format!("{:032x}", u128::from_be_bytes(bits)).into(),
            connection: Arc::new(Connection::new(server, principal, transport, sink)?),
            events,
            requests: AtomicU64::new(0),
        })
    }

    /// Returns the number of the next request.
    pub(super) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }
}

impl HttpSession {
    /// Cancels the requests of the session and ends its stream.
    pub(super) fn close(&self) {
        self.connection.close();
        self.events.close();
    }
}

impl Drop for HttpSession {
    fn drop(&mut self) {
        self.close();
    }
}

/// The sessions of a server, the one that was used last at the end.
#[derive(Default)]
pub(super) struct HttpSessions(Mutex<Vec<OpenSession>>);

struct OpenSession {
    session: Arc<HttpSession>,
    last_used: Instant,
}

impl OpenSession {
    fn is_of(&self, principal: &PrincipalKey) -> bool {
        self.session.connection.principal == *principal
    }

    /// Returns true if the session was unused for too long.
    fn is_expired(&self, now: Instant) -> bool {
        let since = |used| now.saturating_duration_since(used);
        if self.is_in_use() {
            return since(self.last_used) > MAX_BUSY;
        }
        let last_ended = self.session.connection.in_flight.last_ended();
        since(self.last_used) > IDLE_TIMEOUT
            && last_ended.is_none_or(|ended| since(ended) > IDLE_TIMEOUT)
    }

    fn is_in_use(&self) -> bool {
        !self.session.connection.in_flight.is_empty()
    }
}

/// All sessions of a principal have requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManySessions;

impl HttpSessions {
    /// Returns the session of a principal, which uses it now.
    pub(super) fn find(
        &self,
        id: &str,
        principal: &PrincipalKey,
        now: Instant,
    ) -> Option<Arc<HttpSession>> {
        let mut open = self.lock_sessions();
        let at = open.iter().position(|it| *it.session.id == *id && it.is_of(principal))?;
        if open[at].is_expired(now) {
            return None;
        }
        open[at].last_used = now;
        let session = Arc::clone(&open[at].session);
        open[at..].rotate_left(1);
        Some(session)
    }

    /// Adds a session. Returns the one that must make room for it.
    pub(super) fn insert(
        &self,
        session: Arc<HttpSession>,
        now: Instant,
    ) -> Result<Option<Arc<HttpSession>>, TooManySessions> {
        let mut open = self.lock_sessions();
        let principal = &session.connection.principal;
        let mut removed = None;
        if open.iter().filter(|it| it.is_of(principal)).count() >= MAX_PER_PRINCIPAL {
            let is_idle = |it: &OpenSession| it.is_of(principal) && !it.is_in_use();
            let at = open.iter().position(is_idle).ok_or(TooManySessions)?;
            removed = Some(open.remove(at).session);
        }
        open.push(OpenSession { session, last_used: now });
        Ok(removed)
    }

    /// Removes the sessions that were unused for too long.
    pub(super) fn remove_expired(&self, now: Instant) -> Vec<Arc<HttpSession>> {
        let expired = self.lock_sessions().extract_if(.., |it| it.is_expired(now)).collect();
        into_sessions(expired)
    }

    /// Removes a session that its client has ended.
    pub(super) fn remove(&self, id: &str) -> Vec<Arc<HttpSession>> {
        let ended = self.lock_sessions().extract_if(.., |it| *it.session.id == *id).collect();
        into_sessions(ended)
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Vec<OpenSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn into_sessions(open: Vec<OpenSession>) -> Vec<Arc<HttpSession>> {
    open.into_iter().map(|it| it.session).collect()
}

#[cfg(test)]
mod tests {
    use rmcp::model::RequestId;
    use tool_sdk_core::{Pipeline, Registry, Session};

    use super::*;
    use crate::server::in_flight::InFlightGuard;

    fn principal(name: &str) -> PrincipalKey {
        Some(Arc::new(Principal::new(name)))
    }

    fn session(principal: PrincipalKey) -> Arc<HttpSession> {
        let server = Server::new(Pipeline::new(Registry::default()), Session::default());
        Arc::new(HttpSession::new(Arc::new(server), principal).unwrap())
    }

    /// Adds a session and returns its id.
    fn insert(sessions: &HttpSessions, principal: PrincipalKey, now: Instant) -> Arc<str> {
        let session = session(principal);
        let id = Arc::clone(&session.id);
        assert!(sessions.insert(session, now).unwrap().is_none());
        id
    }

    /// Adds a session and returns the id of the one that makes room.
    fn insert_beyond(sessions: &HttpSessions, now: Instant) -> Result<Arc<str>, TooManySessions> {
        sessions.insert(session(None), now).map(|removed| Arc::clone(&removed.unwrap().id))
    }

    /// Begins a request.
    fn begin(sessions: &HttpSessions, id: &str, now: Instant) -> InFlightGuard {
        let session = sessions.find(id, &None, now).unwrap();
        session.connection.in_flight.insert(&RequestId::Number(1), Default::default()).unwrap()
    }

    fn ids(removed: &[Arc<HttpSession>]) -> Vec<&str> {
        removed.iter().map(|session| &*session.id).collect()
    }

    // MS3
    #[test]
    fn finds_a_session_only_for_its_principal() {
        let (sessions, now) = (HttpSessions::default(), Instant::now());
        let ada = insert(&sessions, principal("ada"), now);
        let shared = insert(&sessions, None, now);
        let finds =
            |id: &str, principal: &PrincipalKey| sessions.find(id, principal, now).is_some();
        assert!(finds(&ada, &principal("ada")) && finds(&shared, &None));
        assert!(!finds(&ada, &principal("bob")) && !finds(&ada, &None));
        assert!(!finds(&shared, &principal("ada")) && !finds("b", &principal("ada")));
        assert_eq!(ids(&sessions.remove(&ada)), [&*ada]);
        assert!(!finds(&ada, &principal("ada")));
    }

    #[test]
    fn removes_the_least_recently_used_idle_session_of_the_same_principal() {
        let (sessions, now) = (HttpSessions::default(), Instant::now());
        let bob = insert(&sessions, principal("bob"), now);
        let all: Vec<_> = (0..MAX_PER_PRINCIPAL).map(|_| insert(&sessions, None, now)).collect();
        assert!(sessions.find(&all[0], &None, now).is_some());
        assert_eq!(insert_beyond(&sessions, now), Ok(Arc::clone(&all[1])));
        assert!(sessions.find(&all[0], &None, now).is_some());
        let mut in_use: Vec<_> = all[2..].iter().map(|id| begin(&sessions, id, now)).collect();
        let last = begin(&sessions, &all[0], now);
        let removed = insert_beyond(&sessions, now).unwrap();
        assert!(!all.contains(&removed), "the only idle one was added last");
        in_use.extend(sessions.lock_sessions().iter().filter(|it| !it.is_in_use()).filter_map(
            |it| {
                let id = RequestId::Number(1);
                it.session.connection.in_flight.insert(&id, Default::default()).ok()
            },
        ));
        assert_eq!(insert_beyond(&sessions, now), Err(TooManySessions));
        assert!(sessions.find(&bob, &principal("bob"), now).is_some());
        drop(last);
        assert_eq!(insert_beyond(&sessions, now), Ok(Arc::clone(&all[0])));
    }

    #[test]
    fn removes_sessions_that_were_unused_for_too_long() {
        let (sessions, now) = (HttpSessions::default(), Instant::now());
        let (old, used) = (insert(&sessions, None, now), insert(&sessions, None, now));
        assert!(sessions.find(&used, &None, now + IDLE_TIMEOUT).is_some());
        let later = now + IDLE_TIMEOUT + Duration::from_secs(1);
        assert!(sessions.find(&old, &None, later).is_none());
        assert_eq!(ids(&sessions.remove_expired(later)), [&*old]);
    }

    #[test]
    fn keeps_sessions_in_use_and_half_an_hour_after_that() {
        let (sessions, now) = (HttpSessions::default(), Instant::now());
        let second = Duration::from_secs(1);
        let id = insert(&sessions, None, now);
        let request = begin(&sessions, &id, now);
        assert!(sessions.remove_expired(now + MAX_BUSY).is_empty());
        drop(request);
        let ended = Instant::now();
        assert!(sessions.remove_expired(now + IDLE_TIMEOUT).is_empty());
        assert_eq!(ids(&sessions.remove_expired(ended + IDLE_TIMEOUT + second)), [&*id]);

        let id = insert(&sessions, None, now);
        let _endless = begin(&sessions, &id, now);
        assert_eq!(ids(&sessions.remove_expired(now + MAX_BUSY + second)), [&*id]);
    }
}
