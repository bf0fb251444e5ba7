//! The sessions that are open, and whose they are.
//!
//! rmcp keeps sessions; who may use one, for how long and how many there are is decided here.
//! One with a request that has no answer yet is in use, and makes room for nobody.
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
/// How long one lives with a request that is never answered: whoever sent it may be gone.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Nobody in particular is somebody too: whoever has the token that all share.
pub(in super::super) type Owner = Option<Arc<Principal>>;

/// The sessions of a server.
pub(in super::super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    /// The one that was used last stands last.
    open: Mutex<Vec<Open>>,
}

/// There is no room for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crowded;

struct Open {
    id: Arc<str>,
    owner: Owner,
    used: Instant,
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
        let since = |used| now.saturating_duration_since(used);
        if self.is_in_use() {
            return since(self.used) > LONGEST;
        }
        since(self.used) > IDLE && self.asked.ended().is_none_or(|ended| since(ended) > IDLE)
    }

    fn is_in_use(&self) -> bool {
        !self.asked.is_empty()
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

    /// Writes down a new session, and ends the one that gives way to it. Where all others are in
    /// use it ends itself, and this says so.
    pub(super) async fn opened(&self, id: &str, owner: Owner, now: Instant) -> Result<(), Crowded> {
        self.forget(now).await;
        match self.note(id, owner, now) {
            Ok(None) => Ok(()),
            Ok(Some(other)) => {
                self.end(&other).await;
                Ok(())
            }
            Err(crowded) => {
                self.end(&id.into()).await;
                Err(crowded)
            }
        }
    }

    /// Gives the session that has to end.
    fn note(&self, id: &str, owner: Owner, now: Instant) -> Result<Option<Arc<str>>, Crowded> {
        let mut open = self.open();
        let mut gone = None;
        if open.iter().filter(|session| session.owner == owner).count() >= ROOM {
            let is_idle = |session: &Open| session.owner == owner && !session.is_in_use();
            let at = open.iter().position(is_idle).ok_or(Crowded)?;
            gone = Some(open.remove(at));
        }
        open.push(Open {
            id: id.into(),
            owner,
            used: now,
            asked: Arc::default(),
            single: None,
            takes_batches: false,
        });
        drop(open);
        Ok(gone.map(|session| {
            session.end_calls();
            session.id
        }))
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

    /// What answers requests of a session.
    pub(super) fn single(&self, id: &str) -> Option<Arc<Single>> {
        self.open().iter().rfind(|session| *session.id == *id)?.single.clone()
    }

    /// Ends the sessions that nobody uses any more.
    pub(super) async fn forget(&self, now: Instant) {
        for id in self.over(now) {
            self.end(&id).await;
        }
    }

    fn over(&self, now: Instant) -> Vec<Arc<str>> {
        let ended: Vec<_> = self.open().extract_if(.., |session| session.is_over(now)).collect();
        ended.iter().for_each(Open::end_calls);
        // What ends with a session may take its time, and nobody waits for it here.
        ended.into_iter().map(|session| session.id).collect()
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
    use crate::surface::mcp::result::Blocks;

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
        sessions.note("a", owner("ada"), now).unwrap();
        sessions.note("n", None, now).unwrap();
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
        sessions.note("bob", owner("bob"), now).unwrap();
        for n in 0..ROOM {
            assert_eq!(sessions.note(&format!("a{n}"), owner("ada"), now), Ok(None));
        }
        assert!(sessions.enter("a0", &owner("ada"), now));
        assert_eq!(sessions.note("more", owner("ada"), now), Ok(Some("a1".into())));
        assert!(sessions.enter("a0", &owner("ada"), now));
        assert!(sessions.enter("bob", &owner("bob"), now));
    }

    #[test]
    fn a_session_of_which_nobody_hears_ends() {
        let (sessions, now) = (sessions(), Instant::now());
        sessions.note("old", None, now).unwrap();
        sessions.note("used", None, now).unwrap();
        assert!(sessions.enter("used", &None, now + IDLE));
        let later = now + IDLE + Duration::from_secs(1);
        assert!(!sessions.enter("old", &None, later));
        assert_eq!(sessions.over(later), ["old".into()]);
    }

    #[test]
    fn a_session_in_use_gives_way_to_nobody() {
        let (sessions, now) = (sessions(), Instant::now());
        for n in 0..ROOM {
            sessions.note(&format!("a{n}"), None, now).unwrap();
        }
        let ask = |n: usize| sessions.asked(&format!("a{n}")).unwrap().ticket("1").unwrap();
        let first = ask(0);
        assert_eq!(sessions.note("more", None, now), Ok(Some("a1".into())));
        let _all: Vec<_> = (2..ROOM).map(ask).collect();
        let last = sessions.asked("more").unwrap().ticket("1").unwrap();
        assert_eq!(sessions.note("none", None, now), Err(Crowded));
        assert!(!sessions.enter("none", &None, now));
        assert_eq!(sessions.note("bob", owner("bob"), now), Ok(None), "they have their own room");
        drop((first, last));
        assert_eq!(sessions.note("one", None, now), Ok(Some("a0".into())));
    }

    #[test]
    fn a_session_in_use_lives_on_and_half_an_hour_after_that() {
        let (sessions, now) = (sessions(), Instant::now());
        sessions.note("a", None, now).unwrap();
        let second = Duration::from_secs(1);
        let request = sessions.asked("a").unwrap().ticket("1");
        assert!(sessions.over(now + LONGEST).is_empty());
        drop(request);
        let ended = Instant::now();
        assert!(sessions.over(now + IDLE).is_empty());
        assert_eq!(sessions.over(ended + IDLE + second), ["a".into()]);

        sessions.note("b", None, now).unwrap();
        let _never = sessions.asked("b").unwrap().ticket("1");
        assert_eq!(sessions.over(now + LONGEST + second), ["b".into()], "nobody waits so long");
    }

    #[test]
    fn an_open_session_is_answered_until_it_ends() {
        let (sessions, now) = (sessions(), Instant::now());
        let single = |open| Single {
            pipeline: Pipeline::new(Registry::builder().build().unwrap()),
            listing: Arc::default(),
            session: Session::default(),
            user: None,
            shows: Shows::Text,
            blocks: Blocks::All,
            level: Arc::default(),
            open,
        };
        let head = hyper::Request::builder().header("mcp-session-id", "a").body(()).unwrap();
        let (head, ()) = head.into_parts();
        sessions.note("a", None, now).unwrap();
        assert!(sessions.single("a").is_none(), "it is not open yet");
        sessions.answer(&head, single);
        assert!(sessions.single("a").is_some() && sessions.single("b").is_none());
        sessions.over(now + IDLE + Duration::from_secs(1));
        assert!(sessions.single("a").is_none(), "nobody has used it");
    }
}
