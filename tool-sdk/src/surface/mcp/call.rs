//! One call by a peer: started, watched, asked about, and told.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitResult, ErrorData, InputRequest,
    InputRequiredResult, InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ask;
use super::connection::Connection;
use super::listing::Era;
use super::parked::{Request, Waiting};
use super::relay::{Audience, Relay};
use super::result::result;
use crate::call::{Call, CallId, Outcome};
use crate::permission::{AskInbox, PendingAsk, Reply, ask_channel};
use crate::toolset::View;

/// The name under which the one question of a round trip goes.
const APPROVAL: &str = "approval";

/// Calls a tool, or goes on with a call that waited for an answer.
pub(super) async fn call(
    connection: &Connection,
    mut params: CallToolRequestParams,
    cx: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let request = Request::of(&params);
    let era = Era::of(cx.protocol_version().as_ref());
    let talk = Talk { connection, request, era, cx };
    let Some(handle) = params.request_state.take() else {
        let id = CallId::next();
        let relay = talk.relay(&id);
        let running = talk.start(id);
        return talk.hold(running, relay).await;
    };
    let Waiting { running, pending, .. } = connection.server.parked.take(&handle, &talk.request)?;
    let Some(answer) = answer(params.input_responses.take()) else {
        return talk.park(running, pending);
    };
    let relay = talk.relay(&running.id);
    let reply = ask::reply(pending.ask(), connection.reach(&talk.cx), &answer);
    pending.reply(reply);
    talk.hold(running, relay).await
}

/// The peer's answer to our question; nothing when it did not come.
fn answer(responses: Option<InputResponses>) -> Option<ElicitResult> {
    let answer = responses?.remove(APPROVAL)?;
    serde_json::from_value(answer).ok()
}

/// One request of a peer, while its call runs.
struct Talk<'a> {
    connection: &'a Connection,
    request: Request,
    era: Era,
    cx: RequestContext<RoleServer>,
}

impl Talk<'_> {
    fn relay(&self, call: &CallId) -> Option<Relay> {
        let level = match self.era {
            Era::Legacy => Some(self.connection.level()),
            Era::Modern => self.cx.meta.log_level(),
        };
        let audience = Audience {
            peer: self.cx.peer.clone(),
            token: self.cx.meta.get_progress_token(),
            level,
        };
        Relay::start(&self.connection.server.pipeline, call, audience)
    }

    fn start(&self, id: CallId) -> Running {
        let pipeline = self.connection.server.pipeline.clone();
        let (approver, asks) = ask_channel();
        let mut session = self.connection.session_for(&self.cx);
        if self.connection.can_ask(&self.cx) {
            session = session.with_approver(approver);
        }
        let cancel = CancellationToken::new();
        let Request { name, arguments } = self.request.clone();
        let mut call = Call::new(name, arguments).cancelled_by(cancel.clone());
        call.id = Some(id.clone());
        let view = pipeline.toolset().view();
        let outcome = tokio::spawn(async move { pipeline.call(&session, call).await });
        Running { id, view, outcome, asks, _guard: cancel.clone().drop_guard(), cancel }
    }

    /// Waits for the call, asks what it asks, and tells what became of it.
    async fn hold(
        self,
        mut running: Running,
        relay: Option<Relay>,
    ) -> Result<CallToolResponse, ErrorData> {
        let outcome = loop {
            let pending = match running.next(&self.cx.ct).await? {
                Step::Ended(outcome) => break outcome,
                Step::Asks(pending) => pending,
            };
            if self.era == Era::Modern {
                return self.park(running, pending);
            }
            let reply = tokio::select! {
                biased;
                outcome = running.ended(&self.cx.ct) => break outcome?,
                reply = self.ask(&pending) => reply,
            };
            pending.reply(reply);
        };
        if let Some(relay) = relay {
            relay.finish().await;
        }
        self.response(outcome, &running.view)
    }

    /// Asks the user of a legacy peer. A peer that cannot answer has said no.
    async fn ask(&self, pending: &PendingAsk) -> Reply {
        let (ask, reach) = (pending.ask(), self.connection.reach(&self.cx));
        let Ok(question) = ask::question(ask, reach) else { return Reply::Reject };
        let asked = self.cx.peer.create_elicitation_with_timeout(question, Some(ask.expires_in));
        match asked.await {
            Ok(answer) => ask::reply(ask, reach, &answer),
            Err(_) => Reply::Reject,
        }
    }

    /// Tells a modern peer what the call waits for.
    fn park(self, running: Running, pending: PendingAsk) -> Result<CallToolResponse, ErrorData> {
        let question = ask::question(pending.ask(), self.connection.reach(&self.cx))?;
        let waiting = Waiting { running, pending, request: self.request };
        let handle = self.connection.server.parked.keep(waiting)?;
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        let questions = [(APPROVAL.to_owned(), question)].into();
        Ok(InputRequiredResult::new(Some(questions), Some(handle)).into())
    }

    /// A tool that there is not is a wrong request, and no failure of a tool.
    fn response(&self, outcome: Outcome, view: &View) -> Result<CallToolResponse, ErrorData> {
        match view.definition(&self.request.name) {
            Some(definition) => Ok(result(outcome, definition, self.era).into()),
            None => Err(ErrorData::invalid_params(outcome.text().into_owned(), None)),
        }
    }
}

/// A call, for as many requests as it takes.
pub(super) struct Running {
    id: CallId,
    /// The tools as they were when the call came.
    view: Arc<View>,
    outcome: JoinHandle<Outcome>,
    asks: AskInbox,
    cancel: CancellationToken,
    /// Cancels a call that nobody waits for any more.
    _guard: DropGuard,
}

/// What a call does next.
enum Step {
    Asks(PendingAsk),
    Ended(Outcome),
}

impl Running {
    async fn next(&mut self, stop: &CancellationToken) -> Result<Step, ErrorData> {
        tokio::select! {
            biased;
            Some(pending) = self.asks.recv() => Ok(Step::Asks(pending)),
            outcome = ended(&mut self.outcome, &self.cancel, stop) => outcome.map(Step::Ended),
        }
    }

    async fn ended(&mut self, stop: &CancellationToken) -> Result<Outcome, ErrorData> {
        ended(&mut self.outcome, &self.cancel, stop).await
    }
}

/// Waits for the end of a call, and cancels it when `stop` says so.
async fn ended(
    outcome: &mut JoinHandle<Outcome>,
    cancel: &CancellationToken,
    stop: &CancellationToken,
) -> Result<Outcome, ErrorData> {
    let outcome = tokio::select! {
        biased;
        outcome = &mut *outcome => outcome,
        () = stop.cancelled() => {
            cancel.cancel();
            outcome.await
        }
    };
    outcome.map_err(|_| ErrorData::internal_error("the call came to no end", None))
}
