//! Requests that come one by one, over HTTP, answered without rmcp where nothing has to be
//! waited for.
//!
//! A call is polled once where it stands. When it has ended by then, and has said nothing
//! meanwhile, this is its answer. Otherwise rmcp's handler goes on with the very same call, so
//! that questions, messages and cancellation are what they always are.
//!
//! **Invariant:** a call begins once, whoever ends it.

use std::future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::super::listing::Listing;
use super::super::page::Shows;
use super::answer;
use super::envelope::{Simple, ToolCall};
use super::heard::{Level, message};
use crate::call::{CallId, Outcome};
use crate::context::{Context, Listener, Session, Signal};
use crate::pipeline::Pipeline;
use crate::toolset::View;

/// What answers requests of one legacy session.
pub(in super::super) struct Single {
    pub(in super::super) pipeline: Pipeline,
    pub(in super::super) listing: Arc<Listing>,
    pub(in super::super) session: Session,
    pub(in super::super) shows: Shows,
    pub(in super::super) level: Arc<Level>,
}

/// What became of a request.
pub(in super::super) enum Told {
    /// It has its answer.
    Whole(Vec<u8>),
    /// It is a call with which rmcp's handler has to go on.
    Begun(Handed),
    /// Nothing; it is for rmcp.
    Nothing,
}

impl Single {
    pub(in super::super) async fn answer(&self, body: &[u8]) -> Told {
        let mut out = Vec::new();
        match Simple::read(body) {
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
        let said = Arc::new(Said::new(&self.level));
        let session = self.session.clone().with_listener(Arc::clone(&said) as _);
        let cancel = CancellationToken::new();
        let mut call = call.call(&cancel);
        let call_id = CallId::next();
        call.id = Some(call_id.clone());
        let pipeline = self.pipeline.clone();
        let mut running: Running = Box::pin(async move { pipeline.call(&session, call).await });
        match future::poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await {
            Poll::Ready(outcome) if said.is_empty() => {
                let mut out = Vec::new();
                answer::outcome(&mut out, id, outcome, definition, self.shows);
                return Told::Whole(out);
            }
            Poll::Ready(outcome) => running = Box::pin(future::ready(outcome)),
            Poll::Pending => {}
        }
        let begun = Begun { id: call_id, view, running, cancel, said: said.take() };
        Told::Begun(Handed(Arc::new(Mutex::new(Some(begun)))))
    }
}

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A call that has begun.
pub(in super::super) struct Begun {
    pub(in super::super) id: CallId,
    /// The tools as they were when the call came.
    pub(in super::super) view: Arc<View>,
    pub(in super::super) running: Running,
    pub(in super::super) cancel: CancellationToken,
    /// The log messages that nobody was told of yet.
    pub(in super::super) said: Vec<Value>,
}

/// A call on its way to rmcp's handler, beside the request that it is of.
#[derive(Clone)]
pub(in super::super) struct Handed(Arc<Mutex<Option<Begun>>>);

impl Handed {
    /// The call, for whoever comes first.
    pub(in super::super) fn take(&self) -> Option<Begun> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Keeps the log messages of a call until somebody can tell them.
struct Said {
    level: Arc<Level>,
    /// Nothing when somebody else listens to the call.
    kept: Mutex<Option<Vec<Value>>>,
}

impl Said {
    fn new(level: &Arc<Level>) -> Self {
        Self { level: Arc::clone(level), kept: Mutex::new(Some(Vec::new())) }
    }

    fn is_empty(&self) -> bool {
        self.kept().as_ref().is_none_or(Vec::is_empty)
    }

    /// What was said; nothing more is kept.
    fn take(&self) -> Vec<Value> {
        self.kept().take().unwrap_or_default()
    }

    fn kept(&self) -> MutexGuard<'_, Option<Vec<Value>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Said {
    fn hear(&self, cx: &Context, signal: &Signal) {
        if let Some(message) = message(self.level.get(), cx, signal)
            && let Some(kept) = &mut *self.kept()
        {
            kept.push(message);
        }
    }
}
