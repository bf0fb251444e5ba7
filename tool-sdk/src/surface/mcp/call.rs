//! One call by a peer: started, watched, asked about, and told.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitResult, ErrorData, InputRequest,
    InputRequests, InputRequiredResult, InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize as _;
use tokio_util::sync::CancellationToken;

use super::ask;
use super::connection::{Connection, begun, principal, written};
use super::direct::Begun;
use super::input::{Abilities, Desk, Inbox, Wanted, desk, lacks};
use super::listing::Era;
use super::parked::{Request, Waiting};
use super::relay::{Audience, Relay, severity};
use super::result::{Blocks, result};
use crate::call::{Call, CallId, Outcome};
use crate::context::Session;
use crate::event::Events;
use crate::permission::{AskChannel, AskInbox, PendingAsk, ask_channel};
use crate::toolset::View;

/// The name under which the question of an approval goes.
const APPROVAL: &str = "approval";

/// Calls a tool, or goes on with a call that waited for an answer.
pub(super) async fn call(
    connection: &Connection,
    mut params: CallToolRequestParams,
    cx: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let request = Request::of(&params, principal(&cx).as_deref());
    let era = Era::of(cx.protocol_version().as_ref());
    let talk = Talk { connection, request, era, cx };
    if let Some((begun, events)) = begun(&talk.cx) {
        return talk.go_on(begun, events).await;
    }
    let given = params.input_responses.take().unwrap_or_default();
    let Some(handle) = params.request_state.take() else {
        return talk.begin(given).await;
    };
    let Waiting { running, wants } = connection.server.parked.take(&handle, &talk.request)?;
    talk.resume(running, wants, &given).await
}

/// What a call waits for.
pub(super) enum Wants {
    /// Whether it may run.
    Approval(PendingAsk),
    /// What its tool asks.
    Input(Wanted),
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
        Relay::start(&self.connection.server.pipeline, call, self.audience())
    }

    fn audience(&self) -> Audience {
        let level = match self.era {
            Era::Legacy => Some(self.connection.level()),
            Era::Modern => self.cx.meta.log_level().map(severity),
        };
        let token = self.cx.meta.get_progress_token();
        Audience { peer: self.cx.peer.clone(), token, level }
    }

    async fn begin(self, given: InputResponses) -> Result<CallToolResponse, ErrorData> {
        let id = CallId::next();
        let relay = self.relay(&id);
        let (approver, asks) = ask_channel();
        let (desk, inbox) = desk(self.connection.abilities(&self.cx), given);
        let session = self.session(approver, desk)?;
        let running = self.start(id, session, asks, inbox);
        self.hold(running, relay).await
    }

    /// Goes on with a call that has begun before it came here, and of which nothing was told.
    async fn go_on(self, begun: Begun, events: Events) -> Result<CallToolResponse, ErrorData> {
        let relay = Relay::of(events, self.audience());
        // A legacy peer is asked directly, so that nothing comes here.
        let (_, asks) = ask_channel();
        let (_, inbox) = desk(Abilities::default(), InputResponses::default());
        self.hold(Running { begun, asks, inbox }, Some(relay)).await
    }

    /// A legacy peer is asked directly, a modern one by way of its requests.
    fn session(&self, approver: AskChannel, desk: Desk) -> Result<Session, ErrorData> {
        match self.era {
            Era::Legacy => self.connection.legacy_session(&self.cx),
            Era::Modern => {
                let session = self.connection.session_for(&self.cx)?.with_inquiries(Arc::new(desk));
                match self.connection.can_ask(self.connection.abilities(&self.cx)) {
                    true => Ok(session.with_approver(approver)),
                    false => Ok(session),
                }
            }
        }
    }

    fn start(&self, id: CallId, session: Session, asks: AskInbox, inbox: Inbox) -> Running {
        let pipeline = self.connection.server.pipeline.clone();
        let cancel = CancellationToken::new();
        let Request { name, arguments, .. } = self.request.clone();
        // What the tool's reader judges is what the peer wrote, not what was made of it.
        let arguments = written(&self.cx).map_or(arguments, str::to_owned);
        let mut call = Call::new(name, arguments).cancelled_by(cancel.clone());
        call.id = Some(id.clone());
        let view = pipeline.toolset().view_for(&session);
        let running = Box::pin(async move { pipeline.call(&session, call).await });
        Running { begun: Begun::start(id, view, running, cancel), asks, inbox }
    }

    /// Goes on with a call that waited, where the peer has answered.
    async fn resume(
        self,
        running: Running,
        wants: Wants,
        given: &InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let relay = self.relay(&running.begun.id);
        match wants {
            Wants::Approval(pending) => {
                let Some(answer) = approval(given) else {
                    return self.park(running, Wants::Approval(pending));
                };
                let reach = self.connection.reach(&self.cx);
                let reply = ask::reply(pending.ask(), reach, &answer);
                pending.reply(reply);
            }
            Wants::Input(wanted) => {
                if let Err(wanted) = wanted.answer(given) {
                    return self.park(running, Wants::Input(wanted));
                }
            }
        }
        self.hold(running, relay).await
    }

    /// Waits for the call, and tells what became of it or what it waits for.
    async fn hold(
        self,
        mut running: Running,
        relay: Option<Relay>,
    ) -> Result<CallToolResponse, ErrorData> {
        let outcome = match running.next(&self.cx.ct, &self.connection.over).await? {
            Step::Wants(wants) => return self.park(running, wants),
            Step::Ended(outcome) => outcome,
        };
        if let Some(relay) = relay {
            relay.finish().await;
        }
        if let Err(failed) = &outcome.result
            && let Some(kind) = running.inbox.lacking(failed)
        {
            return Err(lacks(kind));
        }
        self.response(outcome, &running.begun.view)
    }

    /// Tells a modern peer what the call waits for.
    fn park(self, running: Running, wants: Wants) -> Result<CallToolResponse, ErrorData> {
        let questions = match &wants {
            Wants::Approval(pending) => self.question(pending)?,
            Wants::Input(wanted) => wanted.requests()?,
        };
        let waiting = Waiting { running, wants };
        let handle = self.connection.server.parked.keep(self.request, waiting)?;
        Ok(InputRequiredResult::new(Some(questions), Some(handle)).into())
    }

    fn question(&self, pending: &PendingAsk) -> Result<InputRequests, ErrorData> {
        let question = ask::question(pending.ask(), self.connection.reach(&self.cx))?;
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        Ok([(APPROVAL.to_owned(), question)].into())
    }

    /// A tool that there is not is a wrong request, and no failure of a tool.
    fn response(&self, outcome: Outcome, view: &View) -> Result<CallToolResponse, ErrorData> {
        match view.definition(&self.request.name) {
            Some(definition) => {
                let shows = self.connection.shows(&self.cx);
                let blocks = Blocks::of(self.cx.protocol_version().as_ref());
                Ok(result(outcome, definition, (self.era, blocks), shows).into())
            }
            None => Err(ErrorData::invalid_params(outcome.text().into_owned(), None)),
        }
    }
}

/// The peer's answer to our question; nothing when it did not come.
fn approval(given: &InputResponses) -> Option<ElicitResult> {
    ElicitResult::deserialize(given.get(APPROVAL)?).ok()
}

/// A call, for as many requests as it takes.
pub(super) struct Running {
    begun: Begun,
    asks: AskInbox,
    inbox: Inbox,
}

/// What a call does next.
enum Step {
    Wants(Wants),
    Ended(Outcome),
}

impl Running {
    async fn next(
        &mut self,
        stop: &CancellationToken,
        over: &CancellationToken,
    ) -> Result<Step, ErrorData> {
        tokio::select! {
            biased;
            Some(pending) = self.asks.recv() => Ok(Step::Wants(Wants::Approval(pending))),
            Some(wanted) = self.inbox.recv() => Ok(Step::Wants(Wants::Input(wanted))),
            outcome = ended(&mut self.begun, stop, over) => outcome.map(Step::Ended),
        }
    }
}

/// Waits for the end of a call, and cancels it when one of the others says so.
async fn ended(
    call: &mut Begun,
    stop: &CancellationToken,
    over: &CancellationToken,
) -> Result<Outcome, ErrorData> {
    let outcome = tokio::select! {
        biased;
        outcome = &mut call.outcome => Some(outcome),
        () = stop.cancelled() => None,
        () = over.cancelled() => None,
    };
    let outcome = match outcome {
        Some(outcome) => outcome,
        None => {
            call.cancel.cancel();
            (&mut call.outcome).await
        }
    };
    outcome.map_err(|_| ErrorData::internal_error("the call came to no end", None))
}
