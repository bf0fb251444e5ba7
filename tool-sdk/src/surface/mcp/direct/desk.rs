//! Where the lines of a peer are answered, or made ready for rmcp.
//!
//! **Invariant:** what is not known to the last key goes on to rmcp, and no two requests that
//! are open have one id.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions as _, GetMeta as _,
    JsonRpcMessage,
};
use tokio::task::JoinSet;

use super::super::listing::Listing;
use super::super::message::{self, Fault, Kind};
use super::super::page::Shows;
use super::super::result::Blocks;
use super::answer;
use super::envelope::{Simple, ToolCall};
use super::open::{Open, Request, written};
use super::order::Order;
use super::out::Out;
use super::together::{Together, say};
use super::{Opened, Talk};
use crate::call::{Cancel, Outcome};
use crate::toolset::View;

/// Where lines are answered.
pub(super) struct Desk {
    pub(super) listing: Arc<Listing>,
    pub(super) opened: Arc<Opened>,
    pub(super) out: Arc<Out>,
    /// Calls that had to wait. They end with the connection.
    pub(super) running: JoinSet<()>,
    pub(super) open: Arc<Open>,
    /// What the last call was made of, when it has ended.
    pub(super) order: Option<Order>,
    /// The peer has sent what a connection begins with.
    pub(super) has_begun: bool,
    /// Everything runs on one thread, so that a task of its own frees nobody.
    pub(super) is_alone: bool,
}

impl Talk {
    fn view(&self) -> Arc<View> {
        self.pipeline.toolset().view_for(&self.session)
    }
}

impl Desk {
    /// Forgets the calls that have ended.
    pub(super) fn clear(&mut self, cx: &mut Context<'_>) {
        while !self.running.is_empty()
            && let Poll::Ready(Some(_)) = self.running.poll_join_next(cx)
        {}
    }

    /// Answers a line, or gives what rmcp has to answer. The answer to one of a `batch` goes
    /// there.
    pub(super) fn take(
        &mut self,
        line: &[u8],
        batch: Option<&Arc<Together>>,
    ) -> Result<Option<ClientJsonRpcMessage>, Fault> {
        if line.is_empty() || self.answer(line, batch) {
            return Ok(None);
        }
        pass(line).and_then(|message| self.note(message, batch))
    }

    /// Whether the line is answered, or will be.
    fn answer(&mut self, line: &[u8], batch: Option<&Arc<Together>>) -> bool {
        let Some(talk) = self.opened.talk.get().cloned() else { return false };
        let (simple, among) = (Simple::read(line), batch.map(|batch| &**batch));
        if let Some(id) = simple.as_ref().and_then(Simple::request).filter(|id| self.open.has(id)) {
            let fault = Fault::taken(serde_json::from_str(id).ok());
            say(&self.out, among, |queue| answer::message(queue, &fault.answer()));
            return true;
        }
        match simple {
            Some(Simple::Ping { id }) => {
                say(&self.out, among, |queue| answer::whole(queue, id, "{}"));
            }
            Some(Simple::List { id, cursor }) => {
                let list = self.listing.text(&talk.view(), talk.shows, cursor.as_deref());
                let Some(list) = list else { return false };
                say(&self.out, among, |queue| answer::whole(queue, id, &list));
            }
            Some(Simple::Call { id, call }) => {
                let view = talk.view();
                let Some(tool) = view.find(&call.name) else { return false };
                let asked =
                    Asked { batch: batch.cloned(), view, tool, told: (talk.shows, talk.blocks) };
                self.call(talk, id, asked, &call);
            }
            Some(Simple::Cancelled { id }) => return self.open.cancel(id),
            None => return false,
        }
        true
    }

    /// Writes down what rmcp is given.
    fn note(
        &mut self,
        message: Option<ClientJsonRpcMessage>,
        batch: Option<&Arc<Together>>,
    ) -> Result<Option<ClientJsonRpcMessage>, Fault> {
        self.has_begun |= message.as_ref().is_some_and(begins);
        if let Some(JsonRpcMessage::Request(request)) = &message
            && !self.open.begin(Request::of(written(&request.id)).among(batch.cloned()))
        {
            return Err(Fault::taken(Some(request.id.clone())));
        }
        if let Some(JsonRpcMessage::Notification(it)) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &it.notification
            && let Some(id) = cancelled.params.request_id.as_ref().map(written)
        {
            // The id may be spelt in another way than it was.
            if self.open.cancel(&id) {
                return Ok(None);
            }
            // rmcp does not answer what was taken back.
            self.open.end(&id);
        }
        // It would give up a peer that says anything before it begins, such as that it takes back
        // what it tried.
        if !self.has_begun && matches!(message, Some(JsonRpcMessage::Notification(_))) {
            return Ok(None);
        }
        Ok(message)
    }

    fn call(&mut self, talk: Arc<Talk>, id: &str, asked: Asked, call: &ToolCall<'_>) {
        let order = match self.order.take() {
            Some(order) => order.again(call),
            None => Order::of(call),
        };
        let cancel = order.cancel.clone();
        // Written where it stays: moved there, all of its room would be copied.
        let mut running = Box::into_pin(Box::write(Box::new_uninit(), async move {
            let outcome = talk.pipeline.call(&talk.session, order.call()).await;
            (outcome, order)
        }));
        if !self.is_alone {
            return self.wait(running, cancel, id, asked);
        }
        // Whoever is to be woken is not known before the call has a task.
        let mut cx = Context::from_waker(Waker::noop());
        match running.as_mut().poll(&mut cx) {
            Poll::Ready((outcome, order)) => {
                asked.tell(&self.out, id, outcome);
                self.order = Some(order);
            }
            Poll::Pending => self.wait(running, cancel, id, asked),
        }
    }

    /// Goes on with a call on a task of its own.
    fn wait(
        &mut self,
        running: Pin<Box<dyn Future<Output = (Outcome, Order)> + Send>>,
        cancel: Cancel,
        id: &str,
        asked: Asked,
    ) {
        let id = Arc::<str>::from(id);
        self.open.begin(Request::of(Arc::clone(&id)).cancelled_by(cancel.clone()));
        let (out, open) = (Arc::clone(&self.out), Arc::clone(&self.open));
        self.running.spawn(async move {
            // A call that goes with its connection is given up by everybody.
            let given_up = cancel.token().clone().drop_guard();
            let (outcome, _) = running.await;
            given_up.disarm();
            // Nobody waits for the answer to a request that was taken back.
            if !cancel.is_cancelled() {
                asked.tell(&out, &id, outcome);
            }
            open.end(&id);
            // The last one of a batch lets all of it leave.
            drop(asked);
            // A peer that is gone need not be told.
            let _ = std::future::poll_fn(|cx| out.poll_flush(cx)).await;
        });
    }
}

/// What a call that wants an answer is of.
struct Asked {
    batch: Option<Arc<Together>>,
    /// The tools as they were when the call came.
    view: Arc<View>,
    /// The place of the tool among them.
    tool: usize,
    /// What the peer shows, and the blocks that it knows.
    told: (Shows, Blocks),
}

impl Asked {
    fn tell(&self, out: &Out, id: &str, outcome: Outcome) {
        if let Some(definition) = self.view.told(self.tool) {
            let answer = |queue: &mut Vec<u8>| {
                answer::outcome(queue, id, outcome, definition, self.told);
            };
            say(out, self.batch.as_deref(), answer);
        }
    }
}

/// Whether a connection begins with this message: with a handshake, or with a request that
/// stands for itself. Before that, peers may only try whether anybody is there.
fn begins(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(message) = message else { return false };
    match &message.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => request.get_meta().protocol_version().is_some(),
    }
}

/// A line as rmcp's message; nothing where no answer is wanted to what is wrong with it.
fn pass(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Fault> {
    let kind = message::judge(line)?;
    let line = message::readable(line, &kind);
    let Some(mut message) = message::read(&line) else {
        return message::unread(&line).map_or(Ok(None), Err);
    };
    message::known(&message)?;
    if let (ClientJsonRpcMessage::Request(call), Kind::Call(written)) = (&mut message, kind) {
        call.request.extensions_mut().insert(written);
    }
    Ok(Some(message))
}
