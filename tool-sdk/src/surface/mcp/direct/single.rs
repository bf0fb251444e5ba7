//! Requests that come one by one, over HTTP, answered without rmcp where nothing has to be
//! waited for.
//!
//! A call is polled once where it stands. When it has ended by then, and nothing happened that
//! the peer is told of, this is its answer. Otherwise it runs on in a task of its own, and
//! rmcp's handler waits for it with all that was heard since it began, so that questions,
//! messages and cancellation are what they always are.
//!
//! **Invariant:** a call begins once, and never stands still for want of somebody who waits.

use std::future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::listing::Listing;
use super::super::page::Shows;
use super::super::relay::is_logged;
use super::super::result::Blocks;
use super::super::user::{Cause, User};
use super::answer;
use super::envelope::{Simple, ToolCall};
use super::heard::Level;
use super::open::{Open, Ticket};
use super::order::Order;
use crate::call::{CallId, Outcome};
use crate::context::Session;
use crate::event::Events;
use crate::pipeline::Pipeline;
use crate::toolset::View;

/// How many bytes an answer has that says little.
const USUAL: usize = 256;

/// What answers requests of one legacy session.
pub(in super::super) struct Single {
    pub(in super::super) pipeline: Pipeline,
    pub(in super::super) listing: Arc<Listing>,
    pub(in super::super) session: Session,
    /// Who is asked, where anybody is.
    pub(in super::super) user: Option<User>,
    pub(in super::super) shows: Shows,
    pub(in super::super) blocks: Blocks,
    pub(in super::super) level: Arc<Level>,
    /// The requests of the session that have no answer yet.
    pub(in super::super) open: Arc<Open>,
}

/// What became of a request.
pub(in super::super) enum Told {
    /// It has its answer.
    Whole(Vec<u8>),
    /// It is a call with which rmcp's handler has to go on. Its id is taken until then.
    Begun(Handed, Ticket),
    /// Nothing; it is for rmcp.
    Nothing,
}

impl Single {
    pub(in super::super) async fn answer(&self, body: &[u8]) -> Told {
        let mut out = Vec::with_capacity(USUAL);
        let simple = Simple::read(body);
        if simple.as_ref().and_then(Simple::request).is_some_and(|id| self.open.has(id)) {
            return Told::Nothing;
        }
        match simple {
            Some(Simple::Ping { id }) => answer::whole(&mut out, id, "{}"),
            Some(Simple::List { id, cursor }) => {
                let view = self.pipeline.toolset().view_for(&self.session);
                let list = self.listing.text(&view, self.shows, cursor.as_deref());
                let Some(list) = list else { return Told::Nothing };
                answer::whole(&mut out, id, &list);
            }
            Some(Simple::Call { id, call }) => return self.call(id, &call).await,
            Some(Simple::Cancelled { .. }) | None => return Told::Nothing,
        }
        Told::Whole(out)
    }

    async fn call(&self, id: &str, call: &ToolCall<'_>) -> Told {
        let view = self.pipeline.toolset().view_for(&self.session);
        let Some(definition) = view.definition(&call.name) else { return Told::Nothing };
        let Some(ticket) = self.open.ticket(id) else { return Told::Nothing };
        let order = Order::of(call);
        let (call_id, cancel) = (CallId::next(), order.cancel.clone());
        let events = self.pipeline.subscribe_to(&call_id);
        let (session, taken) = self.asking(id);
        let pipeline = self.pipeline.clone();
        let known_as = call_id.clone();
        let mut running: Running = Box::pin(async move {
            let mut call = order.call();
            call.id = Some(known_as);
            pipeline.call(&session, call).await
        });
        match future::poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await {
            Poll::Ready(outcome) if !events.contains(|kind| is_logged(kind, self.level.get())) => {
                let mut out = Vec::with_capacity(USUAL);
                answer::outcome(&mut out, id, outcome, definition, (self.shows, self.blocks));
                return Told::Whole(out);
            }
            Poll::Ready(outcome) => running = Box::pin(future::ready(outcome)),
            Poll::Pending => {}
        }
        let begun = Begun::start(call_id, view, running, cancel.token().clone());
        Told::Begun(Handed { call: Arc::new(Mutex::new(Some((begun, events)))), taken }, ticket)
    }

    /// The session in which questions go to the stream of this request, and what they wait for.
    fn asking(&self, id: &str) -> (Session, Option<CancellationToken>) {
        let session = self.session.clone();
        let Some(user) = &self.user else { return (session, None) };
        let Ok(request) = serde_json::from_str(id) else { return (session, None) };
        let taken = CancellationToken::new();
        let cause = Cause { request, known: Some(taken.clone()) };
        (user.because_of(cause).join(session), Some(taken))
    }
}

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A call that runs.
pub(in super::super) struct Begun {
    pub(in super::super) id: CallId,
    /// The tools as they were when the call came.
    pub(in super::super) view: Arc<View>,
    pub(in super::super) outcome: JoinHandle<Outcome>,
    pub(in super::super) cancel: CancellationToken,
    /// Cancels a call that nobody waits for any more.
    _guard: DropGuard,
}

impl Begun {
    pub(in super::super) fn start(
        id: CallId,
        view: Arc<View>,
        running: Running,
        cancel: CancellationToken,
    ) -> Self {
        let outcome = tokio::spawn(running);
        Self { id, view, outcome, _guard: cancel.clone().drop_guard(), cancel }
    }
}

/// A call on its way to rmcp's handler, beside the request that it is of, with what is to be
/// told of it.
#[derive(Clone)]
pub(in super::super) struct Handed {
    call: Arc<Mutex<Option<(Begun, Events)>>>,
    /// Triggered when somebody has come for it, where anybody waits for that.
    taken: Option<CancellationToken>,
}

impl Handed {
    /// The call, for whoever comes first.
    pub(in super::super) fn take(&self) -> Option<(Begun, Events)> {
        if let Some(taken) = &self.taken {
            taken.cancel();
        }
        self.call.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
