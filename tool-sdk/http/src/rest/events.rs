//! `GET /v1/events`: follows a session, or with the right scope all sessions of a user.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use axum::response::sse::Event;
use futures_util::stream;
use tokio::sync::watch;

use super::call_stream::{sse_event, sse_response};
use super::caller::{ApprovalCaller, ToolCaller};
use super::event_log::{EventLog, LogEntry};
use super::problem::ProblemDetails;
use super::request::{LAST_EVENT_ID, SESSION_ID, header_text};
use super::service::RestService;
use crate::console::BrowserStreamGuard;
use crate::scopes::TokenScope;

/// The log that a request may read, and where it starts.
pub(super) struct EventSource {
    log: Arc<EventLog>,
    after: u64,
    /// Whether the id of the last event is of an earlier run of the server.
    is_restarted: bool,
    /// Changes with the open questions, for clients that may answer them.
    questions: Option<watch::Receiver<()>>,
    /// Counts the stream of a page of the console.
    console_stream: Option<BrowserStreamGuard>,
}

impl FromRequestParts<Arc<RestService>> for EventSource {
    type Rejection = ProblemDetails;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<RestService>,
    ) -> Result<Self, ProblemDetails> {
        let (mut questions, mut console_stream) = (None, None);
        let log = match header_text(&parts.headers, &SESSION_ID)? {
            Some(id) => {
                let ToolCaller(caller) = ToolCaller::from_request_parts(parts, service).await?;
                service.find_session(&id, &caller)?;
                service.events.session_log(&id)
            }
            None => {
                let caller = ApprovalCaller::from_request_parts(parts, service).await;
                let ApprovalCaller(caller) = caller.map_err(|problem| {
                    problem.suggest("send the `Session-Id` of a session to read its events")
                })?;
                let console = service.options.console.as_ref().filter(|_| caller.console.is_some());
                console_stream = console.and_then(|it| it.count_stream(&parts.headers));
                Some(match caller.scopes.contains(TokenScope::Administration) {
                    true => {
                        questions = Some(service.questions.subscribe_changes());
                        Arc::clone(service.events.full_log())
                    }
                    false => service.events.user_log(caller.user()),
                })
            }
        };
        let log = log.ok_or_else(|| ProblemDetails::not_found("the session has ended"))?;
        let last = header_text(&parts.headers, &LAST_EVENT_ID)?;
        let parsed = last.as_deref().map(|id| service.events.parse_event_id(id));
        let (after, is_restarted) = match parsed {
            // Without an id the stream starts now.
            None => (log.last_seq(), false),
            Some(Some(seq)) => (seq, false),
            Some(None) => (0, true),
        };
        Ok(Self { log, after, is_restarted, questions, console_stream })
    }
}

/// `GET /v1/events`
pub(super) async fn stream_events(
    State(service): State<Arc<RestService>>,
    source: EventSource,
) -> Response {
    let subscriber = service.metrics.count_subscriber();
    let shutdown = service.options.http.shutdown.clone();
    let hub = Arc::clone(&service.events);
    let reader = source.log.read_after(source.after);
    let first = source.is_restarted.then(|| state_event("gap"));
    let state = (reader, source.questions, (subscriber, source.console_stream));
    let rest = stream::unfold(state, move |(mut reader, mut questions, guards)| {
        let (hub, shutdown) = (Arc::clone(&hub), shutdown.clone());
        async move {
            let event = tokio::select! {
                entry = reader.next() => match entry? {
                    LogEntry::Event(event) => sse_event(event.json(), event.seq(), &hub),
                    LogEntry::Gap => state_event("gap"),
                },
                () = wait_for_change(&mut questions) => state_event("questions_changed"),
                () = shutdown.cancelled() => return None,
            };
            Some((event, (reader, questions, guards)))
        }
    });
    use futures_util::StreamExt as _;
    sse_response(stream::iter(first).chain(rest), "")
}

/// Tells the client to read a state again: after `gap` all of it, because events are missing.
fn state_event(name: &str) -> Event {
    Event::default().event(name).data(format!(r#"{{"type":"{name}"}}"#))
}

/// Waits until the open questions change; for ever where they are not followed.
async fn wait_for_change(questions: &mut Option<watch::Receiver<()>>) {
    let changed = match questions {
        Some(questions) => questions.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}
