//! The sessions that are open, and whose they are.
//!
//! rmcp keeps sessions; who may use one, for how long and how many there are is decided here.
//!
//! **Invariant:** for anybody but its owner, a session does not exist.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::http::request::Parts;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use super::super::direct::{Open as Requests, Single};
use super::{Principal, session};

/// How many sessions one principal may have. The one that was not used for longest gives way.
const ROOM: usize = 256;
/// How long a session lives that nobody uses.
pub(super) const IDLE: Duration = Duration::from_secs(30 * 60);
/// How much of that may pass before a request goes to rmcp, which hears nothing of the others.
const UNHEARD: Duration = Duration::from_secs(15 * 60);
/// After how long rmcp may end a session of which it hears nothing: not before nobody uses it.
pub(super) const KEPT: Duration = IDLE.saturating_add(UNHEARD);

/// Nobody in particular is somebody too: whoever has the token that all share.
pub(in super::super) type Owner = Option<Arc<Principal>>;

/// The sessions of a server.
pub(in super::super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    /// The one that was used last stands last.
    open: Mutex<Vec<Open>>,
}

struct Open {
    id: Arc<str>,
    owner: Owner,
    used: Instant,
    /// When rmcp heard of it for the last time.
    heard: Instant,
    /// Its requests that have no answer yet.
    asked: Arc<Requests>,
    /// What answers its requests.
    single: Option<Arc<Single>>,
    /// Whether its messages may come together.
    takes_batches: bool,
}

impl Open {
    /// Whether nobody has used it for too long.
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.used) > IDLE
    }

    /// Ends its calls: rmcp waits for them for a while, and nobody else does.
    fn end_calls(&self) {
        if let Some(single) = &self.single {
            single.session.cancel_token().cancel();
        }
    }
}

impl Sessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>) -> Self {
        Self { manager, open: Mutex::default() }
    }

    /// Whether the session is there for `owner`, who uses it.
    pub(super) fn enter(&self, id: &str, owner: &Owner, now: Instant) -> bool {
        let mut open = self.open();
        let found = open.iter().position(|session| *session.id == *id && session.owner == *owner);
        let Some(at) = found.filter(|at| !open[*at].is_over(now)) else { return false };
        open[at].used = now;
        open[at..].rotate_left(1);
        true
    }

    /// Writes down a new session; ends those that give way to it.
    pub(super) async fn opened(&self, id: &str, owner: Owner, now: Instant) {
        for id in self.note(id, owner, now) {
            self.end(&id).await;
        }
    }

    /// Gives the sessions that have to end.
    fn note(&self, id: &str, owner: Owner, now: Instant) -> Vec<Arc<str>> {
        let mut open = self.open();
        let mut own = open.iter().filter(|session| session.owner == owner).count();
        let ended = open.extract_if(.., |session| {
            let crowded = session.owner == owner && own >= ROOM;
            own -= usize::from(crowded);
            crowded || session.is_over(now)
        });
        let ended: Vec<_> = ended.collect();
        open.push(Open {
            id: id.into(),
            owner,
            used: now,
            heard: now,
            asked: Arc::default(),
            single: None,
            takes_batches: false,
        });
        drop(open);
        ended.iter().for_each(Open::end_calls);
        ended.into_iter().map(|session| session.id).collect()
    }

    /// Lets requests of the session that is named be answered without rmcp.
    pub(in super::super) fn answer(
        &self,
        head: &Parts,
        single: impl FnOnce(Arc<Requests>) -> Single,
    ) {
        let Some(id) = session(&head.headers) else { return };
        if let Some(open) = self.open().iter_mut().find(|open| *open.id == *id) {
            open.single = Some(Arc::new(single(Arc::clone(&open.asked))));
        }
    }

    /// Lets messages of a session come together.
    pub(super) fn take_batches(&self, id: &str) {
        if let Some(session) = self.open().iter_mut().rfind(|session| *session.id == *id) {
            session.takes_batches = true;
        }
    }

    /// Whether messages of a session may come together.
    pub(super) fn takes_batches(&self, id: &str) -> bool {
        self.open().iter().rfind(|session| *session.id == *id).is_some_and(|it| it.takes_batches)
    }

    /// The requests of a session that have no answer yet.
    pub(super) fn asked(&self, id: &str) -> Option<Arc<Requests>> {
        let open = self.open();
        Some(Arc::clone(&open.iter().rfind(|session| *session.id == *id)?.asked))
    }

    /// What answers requests of a session. Now and then rmcp has to hear of it as well, which
    /// ends those of which it hears nothing.
    pub(super) fn single(&self, id: &str, now: Instant) -> Option<Arc<Single>> {
        let open = self.open();
        let session = open.iter().rfind(|session| *session.id == *id)?;
        let is_heard = now.saturating_duration_since(session.heard) <= UNHEARD;
        session.single.clone().filter(|_| is_heard)
    }

    /// Writes down that rmcp has heard of a session.
    pub(super) fn heard(&self, id: &str, now: Instant) {
        if let Some(session) = self.open().iter_mut().rfind(|session| *session.id == *id) {
            session.heard = now;
        }
    }

    /// Lets go of what answered requests of sessions of which nobody hears.
    pub(super) fn forget(&self, now: Instant) {
        let mut open = self.open();
        let old = open.iter_mut().filter(|session| session.is_over(now));
        let ended: Vec<_> = old.filter_map(|session| session.single.take()).collect();
        drop(open);
        // What ends with a session may take its time, and nobody waits for it here.
        drop(ended);
    }

    /// Forgets a session that its owner has ended.
    pub(super) fn closed(&self, id: &str) {
        let ended: Vec<_> = self.open().extract_if(.., |session| *session.id == *id).collect();
        ended.iter().for_each(Open::end_calls);
        // What ends with it may take its time, and the others do not wait for it.
        drop(ended);
    }

    /// What fails here has ended already.
    async fn end(&self, id: &Arc<str>) {
        let _ = self.manager.close_session(id).await;
    }

    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Session;
    use crate::pipeline::Pipeline;
    use crate::registry::Registry;
    use crate::surface::mcp::page::Shows;

    fn sessions() -> Sessions {
        Sessions::new(Arc::default())
    }

    fn owner(name: &str) -> Owner {
        Some(Arc::new(Principal::new(name)))
    }

    // MS3
    #[test]
    fn a_session_is_there_for_its_owner_alone() {
        let (sessions, now) = (sessions(), Instant::now());
        sessions.note("a", owner("ada"), now);
        sessions.note("n", None, now);
        assert!(sessions.enter("a", &owner("ada"), now));
        assert!(sessions.enter("n", &None, now));
        assert!(!sessions.enter("a", &owner("bob"), now));
        assert!(!sessions.enter("a", &None, now));
        assert!(!sessions.enter("n", &owner("ada"), now));
        assert!(!sessions.enter("b", &owner("ada"), now));
        sessions.closed("a");
        assert!(!sessions.enter("a", &owner("ada"), now));
    }

    #[test]
    fn the_least_recently_used_session_of_the_same_owner_gives_way() {
        let (sessions, now) = (sessions(), Instant::now());
        sessions.note("bob", owner("bob"), now);
        for n in 0..ROOM {
            assert!(sessions.note(&format!("a{n}"), owner("ada"), now).is_empty());
        }
        assert!(sessions.enter("a0", &owner("ada"), now));
        assert_eq!(sessions.note("more", owner("ada"), now), ["a1".into()]);
        assert!(sessions.enter("a0", &owner("ada"), now));
        assert!(sessions.enter("bob", &owner("bob"), now));
    }

    #[test]
    fn a_session_of_which_nobody_hears_ends() {
        let (sessions, now) = (sessions(), Instant::now());
        sessions.note("old", None, now);
        sessions.note("used", None, now);
        assert!(sessions.enter("used", &None, now + IDLE));
        let later = now + IDLE + Duration::from_secs(1);
        assert!(!sessions.enter("old", &None, later));
        assert_eq!(sessions.note("new", owner("ada"), later), ["old".into()]);
    }

    // rmcp ends sessions of which it hears nothing.
    #[test]
    fn now_and_then_a_request_goes_to_rmcp() {
        let (sessions, now) = (sessions(), Instant::now());
        let single = |open| Single {
            pipeline: Pipeline::new(Registry::builder().build().unwrap()),
            listing: Arc::default(),
            session: Session::default(),
            user: None,
            shows: Shows::Text,
            level: Arc::default(),
            open,
        };
        let head = hyper::Request::builder().header("mcp-session-id", "a").body(()).unwrap();
        let (head, ()) = head.into_parts();
        sessions.note("a", None, now);
        assert!(sessions.single("a", now).is_none(), "it is not open yet");
        sessions.answer(&head, single);
        assert!(sessions.single("b", now).is_none());
        let late = now + UNHEARD + Duration::from_secs(1);
        let direct = |at| sessions.single("a", at).is_some();
        assert_eq!([now, now + UNHEARD, late, late].map(direct), [true, true, false, false]);
        sessions.heard("a", late);
        assert!(direct(late));
        assert!(sessions.enter("a", &None, late));
        sessions.forget(late + IDLE);
        assert!(direct(late));
        sessions.forget(late + IDLE + Duration::from_secs(1));
        assert!(!direct(late), "nobody has heard of it");
    }
}
