//! The registry of open HTTP sessions and their principals.
//!
//! rmcp stores the sessions; this registry decides who may use one, for how long, and how many
//! there are. A session with a request in flight is in use and is not evicted.
//!
//! **Invariant:** for every other principal a session does not exist.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::http::request::Parts;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use super::{Principal, session_id};
use crate::fast_path::{InFlightRequests, SessionResponder};

/// How many sessions one principal may have. The one that was not used for longest gives way.
const MAX_PER_PRINCIPAL: usize = 256;
/// How long an unused session is kept.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// How long a session with a request in flight is kept, in case the client is gone.
const MAX_BUSY: Duration = Duration::from_secs(24 * 60 * 60);

/// `None` is the anonymous principal, shared by everyone who uses the default token.
pub(crate) type PrincipalKey = Option<Arc<Principal>>;

/// The sessions of a server.
pub(crate) struct HttpSessions {
    manager: Arc<LocalSessionManager>,
    /// The one that was used last stands last.
    sessions: Mutex<Vec<HttpSession>>,
}

/// There is no room for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManySessions;

struct HttpSession {
    id: Arc<str>,
    principal: PrincipalKey,
    last_used: Instant,
    /// Its requests that have no answer yet.
    in_flight: Arc<InFlightRequests>,
    /// What answers its requests.
    responder: Option<Arc<SessionResponder>>,
    /// Whether its messages may come together.
    allows_batches: bool,
}

impl HttpSession {
    /// Returns true if the session was unused for too long.
    fn is_expired(&self, now: Instant) -> bool {
        let since = |used| now.saturating_duration_since(used);
        if self.is_in_use() {
            return since(self.last_used) > MAX_BUSY;
        }
        since(self.last_used) > IDLE_TIMEOUT
            && self.in_flight.last_ended().is_none_or(|ended| since(ended) > IDLE_TIMEOUT)
    }

    fn is_in_use(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Cancels its calls, because rmcp would wait for them for a while.
    fn cancel_calls(&self) {
        if let Some(single) = &self.responder {
            single.session.cancel_token().cancel();
        }
    }
}

impl HttpSessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>) -> Self {
        Self { manager, sessions: Mutex::default() }
    }

    /// Whether the session is there for `owner`, who uses it.
    pub(super) fn touch(&self, id: &str, owner: &PrincipalKey, now: Instant) -> bool {
        let mut open = self.lock_sessions();
        let found =
            open.iter().position(|session| *session.id == *id && session.principal == *owner);
        let Some(at) = found.filter(|at| !open[*at].is_expired(now)) else { return false };
        open[at].last_used = now;
        open[at..].rotate_left(1);
        true
    }

    /// Writes down a new session, and ends the one that gives way to it. Where all others are in
    /// use it ends itself, and this says so.
    pub(super) async fn register(
        &self,
        id: &str,
        owner: PrincipalKey,
        now: Instant,
    ) -> Result<(), TooManySessions> {
        self.close_expired(now).await;
        match self.insert(id, owner, now) {
            Ok(None) => Ok(()),
            Ok(Some(other)) => {
                self.close_session(&other).await;
                Ok(())
            }
            Err(crowded) => {
                self.close_session(&id.into()).await;
                Err(crowded)
            }
        }
    }

    /// Gives the session that has to end.
    fn insert(
        &self,
        id: &str,
        owner: PrincipalKey,
        now: Instant,
    ) -> Result<Option<Arc<str>>, TooManySessions> {
        let mut open = self.lock_sessions();
        let mut gone = None;
        if open.iter().filter(|session| session.principal == owner).count() >= MAX_PER_PRINCIPAL {
            let is_idle =
                |session: &HttpSession| session.principal == owner && !session.is_in_use();
            let at = open.iter().position(is_idle).ok_or(TooManySessions)?;
            gone = Some(open.remove(at));
        }
        open.push(HttpSession {
            id: id.into(),
            principal: owner,
            last_used: now,
            in_flight: Arc::default(),
            responder: None,
            allows_batches: false,
        });
        drop(open);
        Ok(gone.map(|session| {
            session.cancel_calls();
            session.id
        }))
    }

    /// Lets requests of the session that is named be answered without rmcp.
    pub(crate) fn set_responder(
        &self,
        head: &Parts,
        single: impl FnOnce(Arc<InFlightRequests>) -> SessionResponder,
    ) {
        let Some(id) = session_id(&head.headers) else { return };
        if let Some(open) = self.lock_sessions().iter_mut().find(|open| *open.id == *id) {
            open.responder = Some(Arc::new(single(Arc::clone(&open.in_flight))));
        }
    }

    /// Lets messages of a session come together.
    pub(super) fn allow_batches(&self, id: &str) {
        if let Some(session) = self.lock_sessions().iter_mut().rfind(|session| *session.id == *id) {
            session.allows_batches = true;
        }
    }

    /// Whether messages of a session may come together.
    pub(super) fn allows_batches(&self, id: &str) -> bool {
        self.lock_sessions()
            .iter()
            .rfind(|session| *session.id == *id)
            .is_some_and(|it| it.allows_batches)
    }

    /// The requests of a session that have no answer yet.
    pub(super) fn in_flight(&self, id: &str) -> Option<Arc<InFlightRequests>> {
        let open = self.lock_sessions();
        Some(Arc::clone(&open.iter().rfind(|session| *session.id == *id)?.in_flight))
    }

    /// What answers requests of a session.
    pub(super) fn responder(&self, id: &str) -> Option<Arc<SessionResponder>> {
        self.lock_sessions().iter().rfind(|session| *session.id == *id)?.responder.clone()
    }

    /// Closes expired sessions.
    pub(super) async fn close_expired(&self, now: Instant) {
        for id in self.take_expired(now) {
            self.close_session(&id).await;
        }
    }

    fn take_expired(&self, now: Instant) -> Vec<Arc<str>> {
        let ended: Vec<_> =
            self.lock_sessions().extract_if(.., |session| session.is_expired(now)).collect();
        ended.iter().for_each(HttpSession::cancel_calls);
        // Drop without the lock: ending calls may take a while.
        ended.into_iter().map(|session| session.id).collect()
    }

    /// Forgets a session that its owner has ended.
    pub(super) fn remove(&self, id: &str) {
        let ended: Vec<_> =
            self.lock_sessions().extract_if(.., |session| *session.id == *id).collect();
        ended.iter().for_each(HttpSession::cancel_calls);
        // What ends with it may take its time, and the others do not wait for it.
        drop(ended);
    }

    /// What fails here has ended already.
    async fn close_session(&self, id: &Arc<str>) {
        let _ = self.manager.close_session(id).await;
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Vec<HttpSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tool_sdk_core::{Pipeline, Registry, Session};

    use super::*;
    use crate::result::ContentSupport;
    use crate::ui::UiSupport;

    fn sessions() -> HttpSessions {
        HttpSessions::new(Arc::default())
    }

    fn owner(name: &str) -> PrincipalKey {
        Some(Arc::new(Principal::new(name)))
    }

    // MS3
    #[test]
    fn a_session_is_there_for_its_owner_alone() {
        let (sessions, now) = (sessions(), Instant::now());
        sessions.insert("a", owner("ada"), now).unwrap();
        sessions.insert("n", None, now).unwrap();
        assert!(sessions.touch("a", &owner("ada"), now));
        assert!(sessions.touch("n", &None, now));
        assert!(!sessions.touch("a", &owner("bob"), now));
        assert!(!sessions.touch("a", &None, now));
        assert!(!sessions.touch("n", &owner("ada"), now));
        assert!(!sessions.touch("b", &owner("ada"), now));
        sessions.remove("a");
        assert!(!sessions.touch("a", &owner("ada"), now));
    }

    #[test]
    fn the_least_recently_used_session_of_the_same_owner_gives_way() {
        let (sessions, now) = (sessions(), Instant::now());
        sessions.insert("bob", owner("bob"), now).unwrap();
        for n in 0..MAX_PER_PRINCIPAL {
            assert_eq!(sessions.insert(&format!("a{n}"), owner("ada"), now), Ok(None));
        }
        assert!(sessions.touch("a0", &owner("ada"), now));
        assert_eq!(sessions.insert("more", owner("ada"), now), Ok(Some("a1".into())));
        assert!(sessions.touch("a0", &owner("ada"), now));
        assert!(sessions.touch("bob", &owner("bob"), now));
    }

    #[test]
    fn a_session_of_which_nobody_hears_ends() {
        let (sessions, now) = (sessions(), Instant::now());
        sessions.insert("old", None, now).unwrap();
        sessions.insert("used", None, now).unwrap();
        assert!(sessions.touch("used", &None, now + IDLE_TIMEOUT));
        let later = now + IDLE_TIMEOUT + Duration::from_secs(1);
        assert!(!sessions.touch("old", &None, later));
        assert_eq!(sessions.take_expired(later), ["old".into()]);
    }

    #[test]
    fn a_session_in_use_gives_way_to_nobody() {
        let (sessions, now) = (sessions(), Instant::now());
        for n in 0..MAX_PER_PRINCIPAL {
            sessions.insert(&format!("a{n}"), None, now).unwrap();
        }
        let ask =
            |n: usize| sessions.in_flight(&format!("a{n}")).unwrap().insert_guarded("1").unwrap();
        let first = ask(0);
        assert_eq!(sessions.insert("more", None, now), Ok(Some("a1".into())));
        let _all: Vec<_> = (2..MAX_PER_PRINCIPAL).map(ask).collect();
        let last = sessions.in_flight("more").unwrap().insert_guarded("1").unwrap();
        assert_eq!(sessions.insert("none", None, now), Err(TooManySessions));
        assert!(!sessions.touch("none", &None, now));
        assert_eq!(sessions.insert("bob", owner("bob"), now), Ok(None), "they have their own room");
        drop((first, last));
        assert_eq!(sessions.insert("one", None, now), Ok(Some("a0".into())));
    }

    #[test]
    fn a_session_in_use_lives_on_and_half_an_hour_after_that() {
        let (sessions, now) = (sessions(), Instant::now());
        sessions.insert("a", None, now).unwrap();
        let second = Duration::from_secs(1);
        let request = sessions.in_flight("a").unwrap().insert_guarded("1");
        assert!(sessions.take_expired(now + MAX_BUSY).is_empty());
        drop(request);
        let ended = Instant::now();
        assert!(sessions.take_expired(now + IDLE_TIMEOUT).is_empty());
        assert_eq!(sessions.take_expired(ended + IDLE_TIMEOUT + second), ["a".into()]);

        sessions.insert("b", None, now).unwrap();
        let _never = sessions.in_flight("b").unwrap().insert_guarded("1");
        assert_eq!(
            sessions.take_expired(now + MAX_BUSY + second),
            ["b".into()],
            "nobody waits so long"
        );
    }

    #[test]
    fn an_open_session_is_answered_until_it_ends() {
        let (sessions, now) = (sessions(), Instant::now());
        let single = |open| SessionResponder {
            pipeline: Pipeline::new(Registry::builder().build().unwrap()),
            listing: Arc::default(),
            session: Session::default(),
            client: None,
            ui: UiSupport::TextOnly,
            content: ContentSupport::All,
            log_threshold: Arc::default(),
            in_flight: open,
        };
        let head = hyper::Request::builder().header("mcp-session-id", "a").body(()).unwrap();
        let (head, ()) = head.into_parts();
        sessions.insert("a", None, now).unwrap();
        assert!(sessions.responder("a").is_none(), "it is not open yet");
        sessions.set_responder(&head, single);
        assert!(sessions.responder("a").is_some() && sessions.responder("b").is_none());
        sessions.take_expired(now + IDLE_TIMEOUT + Duration::from_secs(1));
        assert!(sessions.responder("a").is_none(), "nobody has used it");
    }
}
