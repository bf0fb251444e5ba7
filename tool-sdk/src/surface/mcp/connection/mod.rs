//! One peer: who it is, what it can do, and what it hears of changes.

// Log messages are on their way out of the protocol; peers of today still read them.
#![expect(deprecated, reason = "the older half of the peers knows no other way")]

mod handler;
mod signed;

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rmcp::model::{
    ClientCapabilities, ErrorData, Extensions, InitializeRequestParams, JsonObject,
    PromptsCapability, ResourceUpdatedNotificationParam, ResourcesCapability, ServerCapabilities,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::direct::{Begun, Handed, Level, Opened, Single};
use super::http::{Lasting, Owner, Sessions};
use super::input::Abilities;
use super::library::Watched;
use super::listing::Era;
use super::message::Written;
use super::page::Shows;
use super::result::Blocks;
use super::user::{Cause, User};
use super::{Principal, Server};
use crate::context::{Client, Session};
use crate::event::Events;
use crate::permission::Extent;
use crate::toolset::View;

type Result<T> = std::result::Result<T, ErrorData>;

/// One peer and its session.
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    session: Session,
    /// Who opened the connection, and that one's session.
    owner: OnceLock<(Owner, Session)>,
    /// The sessions of those whose every request is a connection.
    lasting: Option<Arc<Lasting>>,
    /// The sessions over HTTP, this one among them.
    sessions: Option<Arc<Sessions>>,
    /// The least important log message that a legacy peer wants.
    level: Arc<Level>,
    /// Whether a legacy peer hears of changes already.
    listening: AtomicBool,
    /// The resources that a legacy peer wants to hear of.
    watched: Arc<Watched>,
    /// What answers calls before they come here, where there is such a thing.
    opened: Option<Arc<Opened>>,
    /// Triggered when the peer says nothing any more.
    hung_up: CancellationToken,
    /// Triggered when calls have had their time after that.
    pub(super) over: CancellationToken,
    /// Triggered when the peer is gone.
    gone: CancellationToken,
    _guard: DropGuard,
}

impl Connection {
    pub(super) fn new(server: Arc<Server>) -> io::Result<Self> {
        let mut bits = [0; 8];
        getrandom::fill(&mut bits)?;
        let id = format!("mcp-{:016x}", u64::from_be_bytes(bits));
        let gone = CancellationToken::new();
        Ok(Self {
            session: server.session(id),
            owner: OnceLock::new(),
            lasting: None,
            sessions: None,
            server,
            level: Arc::default(),
            opened: None,
            hung_up: CancellationToken::new(),
            over: CancellationToken::new(),
            listening: AtomicBool::new(false),
            watched: Arc::default(),
            _guard: gone.clone().drop_guard(),
            gone,
        })
    }

    /// Lets calls be answered elsewhere, once the session is open.
    pub(super) fn opening(mut self, opened: &Arc<Opened>) -> Self {
        self.opened = self.server.answers_directly.then(|| Arc::clone(opened));
        (self.level, self.hung_up, self.over) = opened.shared();
        self
    }

    fn user(&self, peer: &Peer<RoleServer>, can: Abilities) -> User {
        User::of(peer.clone(), can, self.can_ask(can), self.hung_up.clone())
    }

    /// Lets requests that stand for themselves share the session of their owner, and those of
    /// a session be answered before they come here.
    pub(super) fn over_http(mut self, lasting: Arc<Lasting>, sessions: Arc<Sessions>) -> Self {
        self.lasting = Some(lasting);
        // What ends with a session over HTTP is its own, and nobody else's.
        let own = self.session.cancel_token().child_token();
        self.session = self.session.with_cancel(own);
        self.sessions = self.server.answers_directly.then_some(sessions);
        self
    }

    /// The session of one request: a modern peer says with each who it is.
    pub(super) fn session_for(&self, cx: &RequestContext<RoleServer>) -> Result<Session> {
        let name = cx.client_info().map(|info| info.name).unwrap_or_default();
        Ok(named(self.owned(cx)?, &name))
    }

    /// The session of whoever opened the connection; nobody else may use it.
    fn owned(&self, cx: &RequestContext<RoleServer>) -> Result<Session> {
        let who = principal(cx);
        let (owner, session) = self.owner.get_or_init(|| {
            let begin = || {
                let session = self.session.clone();
                who.as_ref().map_or(session.clone(), |who| who.own(session))
            };
            let stands_alone = Era::of(cx.protocol_version().as_ref()) == Era::Modern;
            let session = match self.lasting.as_ref().filter(|_| stands_alone) {
                Some(lasting) => lasting.session(&who, Instant::now(), begin),
                None => begin(),
            };
            (who.clone(), session)
        });
        match *owner == who {
            true => Ok(session.clone()),
            false => Err(ErrorData::invalid_request("this session belongs to somebody else", None)),
        }
    }

    /// Whether the peer's user is the one to ask: the host named nobody, and the peer says
    /// that it can show a form.
    pub(super) fn can_ask(&self, can: Abilities) -> bool {
        let named = self.server.pipeline.has_approver() || self.session.approver().is_some();
        !named && self.server.asks_peers && can.form
    }

    /// What the peer says that it can answer.
    pub(super) fn abilities(&self, cx: &RequestContext<RoleServer>) -> Abilities {
        Abilities::of(cx.client_capabilities())
    }

    /// What the peer shows beside text, by what it says of itself.
    pub(super) fn shows(&self, cx: &RequestContext<RoleServer>) -> Shows {
        let name = cx.client_info().map(|info| info.name).unwrap_or_default();
        shows(&name, cx.client_capabilities().as_ref(), &cx.extensions)
    }

    /// The session of a legacy peer, which is asked while its calls run.
    pub(super) fn legacy_session(&self, cx: &RequestContext<RoleServer>) -> Result<Session> {
        let cause = Cause { request: cx.id.clone(), known: None };
        let user = self.user(&cx.peer, self.abilities(cx)).because_of(cause);
        Ok(user.join(self.session_for(cx)?))
    }

    /// How far an approval may reach: who sends modern requests over HTTP is only known by the
    /// token, which several may have unless it is the one of somebody with a name.
    pub(super) fn reach(&self, cx: &RequestContext<RoleServer>) -> Extent {
        let is_modern = Era::of(cx.protocol_version().as_ref()) == Era::Modern;
        let is_http = cx.extensions.get::<hyper::http::request::Parts>().is_some();
        match is_http && is_modern && principal(cx).is_none() {
            true => Extent::Call,
            false => Extent::Session,
        }
    }

    /// The least important log message that a legacy peer wants.
    pub(super) fn level(&self) -> u8 {
        self.level.get()
    }

    fn view(&self, cx: &RequestContext<RoleServer>) -> Result<Arc<View>> {
        Ok(self.server.pipeline.toolset().view_for(&self.owned(cx)?))
    }

    /// Lets calls of a legacy peer be answered without rmcp from now on. Over HTTP its session
    /// has no name yet.
    fn open(
        &self,
        info: &InitializeRequestParams,
        blocks: Blocks,
        cx: &RequestContext<RoleServer>,
    ) {
        let Some(opened) = &self.opened else { return };
        let (user, session, shows) = self.greeted(info, &cx.peer, &cx.extensions);
        opened.open(user.join(session), shows, blocks);
    }

    /// The same over HTTP, where the session has its name by now.
    fn open_door(&self, cx: &NotificationContext<RoleServer>) {
        let (Some(sessions), Some(head)) = (&self.sessions, cx.extensions.get()) else { return };
        let Some(info) = cx.peer.peer_info() else { return };
        let (user, session, shows) = self.greeted(&info, &cx.peer, &cx.extensions);
        let session = user.clone().join(session);
        let (pipeline, listing) = (self.server.pipeline.clone(), self.server.listing.clone());
        let (level, user) = (Arc::clone(&self.level), Some(user).filter(User::answers));
        let blocks = Blocks::of(Some(&info.protocol_version));
        sessions.answer(head, |open| Single {
            pipeline,
            listing,
            session,
            user,
            shows,
            blocks,
            level,
            open,
        });
    }

    /// What a legacy peer has said of itself when it began.
    fn greeted(
        &self,
        info: &InitializeRequestParams,
        peer: &Peer<RoleServer>,
        extensions: &Extensions,
    ) -> (User, Session, Shows) {
        let can = Abilities::of(Some(info.capabilities.clone()));
        let shows = shows(&info.client_info.name, Some(&info.capabilities), extensions);
        let own = self.owner.get().map_or(&self.session, |(_, session)| session);
        (self.user(peer, can), named(own.clone(), &info.client_info.name), shows)
    }

    /// Whether anybody is told of resources that change.
    fn tells_of_updates(&self) -> bool {
        self.server.resources.as_ref().is_some_and(|resources| resources.updates().is_some())
    }

    /// Tells a legacy peer of the resources that it watches.
    fn tell_of_updates(&self, cx: &NotificationContext<RoleServer>) {
        let updates = self.server.resources.as_ref().and_then(|resources| resources.updates());
        let Some(mut updates) = updates else { return };
        let (watched, peer) = (Arc::clone(&self.watched), cx.peer.clone());
        tokio::spawn(self.gone.clone().run_until_cancelled_owned(async move {
            while let Some(uri) = next(&mut updates).await {
                let update = ResourceUpdatedNotificationParam::new(uri.clone());
                if watched.has(&uri) && peer.notify_resource_updated(update).await.is_err() {
                    return;
                }
            }
        }));
    }

    /// What is announced: nothing that is not there.
    fn capabilities(&self, shows: Shows) -> ServerCapabilities {
        let can = ServerCapabilities::builder().enable_logging().enable_tools();
        let mut can = can.enable_tool_list_changed().build();
        let (resources, prompts) = (&self.server.resources, &self.server.prompts);
        if !self.server.pages.is_empty() && shows != Shows::Text {
            can.resources = Some(ResourcesCapability::default());
            can.extensions = shows.extension();
        }
        if let Some(resources) = resources {
            let mut how = ResourcesCapability::default();
            how.subscribe = resources.updates().map(|_| true);
            can.resources = Some(how);
        }
        if prompts.is_some() {
            can.prompts = Some(PromptsCapability::default());
        }
        if resources.is_some() || prompts.is_some() {
            can.completions = Some(JsonObject::default());
        }
        can
    }
}

/// The next resource that has changed. Who is behind is told of those that are left.
async fn next(updates: &mut Receiver<String>) -> Option<String> {
    loop {
        match updates.recv().await {
            Ok(uri) => return Some(uri),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Who sent the request, where tokens say that.
pub(super) fn principal(cx: &RequestContext<RoleServer>) -> Option<Arc<Principal>> {
    cx.extensions.get::<hyper::http::request::Parts>()?.extensions.get().cloned()
}

/// The arguments as the peer wrote them.
pub(super) fn written(cx: &RequestContext<RoleServer>) -> Option<&str> {
    let over_http = || cx.extensions.get::<hyper::http::request::Parts>()?.extensions.get();
    let written: Option<&Written> = cx.extensions.get().or_else(over_http);
    written.map(|written| &*written.0)
}

/// The call, where it has begun before its request came here.
pub(super) fn begun(cx: &RequestContext<RoleServer>) -> Option<(Begun, Events)> {
    cx.extensions.get::<hyper::http::request::Parts>()?.extensions.get::<Handed>()?.take()
}

/// What a client shows: it is known by its name, or by what the head of its request says.
fn shows(name: &str, can: Option<&ClientCapabilities>, extensions: &Extensions) -> Shows {
    let head = extensions.get::<hyper::http::request::Parts>();
    let agent = head.and_then(|head| head.headers.get(hyper::header::USER_AGENT)?.to_str().ok());
    match Shows::of(name, can) {
        Shows::ChatGpt => Shows::ChatGpt,
        Shows::Text | Shows::Apps => Shows::of(agent.unwrap_or_default(), can),
    }
}

/// The session as that of a client of this name.
fn named(session: Session, client: &str) -> Session {
    const LONGEST: usize = 80;
    let name = client.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    session.with_client(Client::Mcp(name))
}
