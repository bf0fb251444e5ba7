//! Questions of running tools, which a person answers in the console.
//!
//! A session of the API that has no other channel asks here while a page of the console is open. A
//! question is open until it is answered, or its call ends.
//!
//! **Invariant:** an answer counts once, and is data for the tool, not an approval.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::{oneshot, watch};
use tool_sdk_core::{Inquiry, InquiryFuture, InquiryHandler, InquiryKind, Session, ToolError};

use super::caller::AdministrationCaller;
use super::problem::ProblemDetails;
use super::random_id::random_id;
use super::request::JsonBody;
use super::service::RestService;
use crate::ConsoleAccess;

/// The open questions of all sessions.
#[derive(Debug)]
pub(super) struct QuestionTable {
    open: Mutex<Vec<OpenQuestion>>,
    /// Changes with every question that is asked or ends.
    changes: watch::Sender<()>,
}

#[derive(Debug)]
struct OpenQuestion {
    body: QuestionBody,
    answer: oneshot::Sender<Value>,
}

/// A question, as the API shows it.
#[derive(Clone, Debug, Serialize)]
struct QuestionBody {
    id: String,
    session: String,
    /// `form` or `url`.
    mode: &'static str,
    message: String,
    /// The fields of a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
    /// The address to open.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl Default for QuestionTable {
    fn default() -> Self {
        Self { open: Mutex::default(), changes: watch::Sender::new(()) }
    }
}

impl QuestionTable {
    /// A poisoned lock still guards whole entries: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, Vec<OpenQuestion>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what changes with every question that is asked or ends.
    pub(super) fn subscribe_changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn ask(&self, session: &str, inquiry: &Inquiry) -> Result<AskedQuestion<'_>, ToolError> {
        let unavailable = |_| ToolError::unavailable("the system has no random numbers");
        let id = random_id("question").map_err(unavailable)?;
        let (answer, answered) = oneshot::channel();
        let text = |key: &str| inquiry.params()[key].as_str().map(str::to_owned);
        let body = QuestionBody {
            id: id.clone(),
            session: session.to_owned(),
            mode: if inquiry.kind() == InquiryKind::Url { "url" } else { "form" },
            message: text("message").unwrap_or_default(),
            schema: inquiry.params().get("requestedSchema").cloned(),
            url: text("url"),
        };
        self.lock().push(OpenQuestion { body, answer });
        self.changes.send_replace(());
        Ok(AskedQuestion { table: self, id, answered })
    }

    /// Ends a question; the caller answers it.
    fn take(&self, id: &str) -> Option<OpenQuestion> {
        let mut open = self.lock();
        let at = open.iter().position(|it| it.body.id == id)?;
        let question = open.remove(at);
        drop(open);
        self.changes.send_replace(());
        Some(question)
    }
}

/// A question that a tool waits for. Dropping it ends the question.
struct AskedQuestion<'t> {
    table: &'t QuestionTable,
    id: String,
    answered: oneshot::Receiver<Value>,
}

impl AskedQuestion<'_> {
    async fn wait(mut self) -> Value {
        let answered = (&mut self.answered).await;
        answered.unwrap_or_else(|_| json!({ "action": "cancel" }))
    }
}

impl Drop for AskedQuestion<'_> {
    fn drop(&mut self) {
        self.table.take(&self.id);
    }
}

/// Asks the questions of one session.
struct ConsoleQuestions {
    table: Arc<QuestionTable>,
    console: ConsoleAccess,
    session: String,
}

impl InquiryHandler for ConsoleQuestions {
    fn supports(&self, kind: InquiryKind) -> bool {
        matches!(kind, InquiryKind::Form | InquiryKind::Url) && self.console.has_open_page()
    }

    fn supports_secrets(&self) -> bool {
        true
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        Box::pin(async move {
            if !inquiries.iter().all(|(_, inquiry)| self.supports(inquiry.kind())) {
                return Err(ToolError::unavailable("no user is at the console to answer")
                    .hint("go on without the answer, and say what you assumed"));
            }
            let ask = |(_, inquiry): &(String, Inquiry)| self.table.ask(&self.session, inquiry);
            let asked: Vec<_> = inquiries.iter().map(ask).collect::<Result<_, _>>()?;
            let mut answers = Vec::new();
            for question in asked {
                answers.push(question.wait().await);
            }
            Ok(answers)
        })
    }
}

impl RestService {
    /// Lets the tools of a session ask at the console, if the session has no other channel.
    pub(super) fn with_questions(&self, session: Session) -> Session {
        match &self.options.console {
            Some(console) if session.inquiry_handler().is_none() => {
                let handler = ConsoleQuestions {
                    table: Arc::clone(&self.questions),
                    console: console.clone(),
                    session: session.id().to_owned(),
                };
                session.with_inquiry_handler(Arc::new(handler))
            }
            _ => session,
        }
    }
}

/// The body of `GET /v1/questions`.
#[derive(Debug, Serialize)]
pub(super) struct QuestionList {
    /// The oldest question first.
    questions: Vec<QuestionBody>,
}

/// `GET /v1/questions`
pub(super) async fn list_questions(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
) -> Json<QuestionList> {
    let questions = service.questions.lock().iter().map(|it| it.body.clone()).collect();
    Json(QuestionList { questions })
}

/// The body of `POST /v1/questions/{id}`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuestionAnswer {
    action: AnswerAction,
    /// The fields of the form, for `accept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum AnswerAction {
    Accept,
    Decline,
    Cancel,
}

/// `POST /v1/questions/{id}`
pub(super) async fn answer_question(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
    Path(id): Path<String>,
    JsonBody(answer): JsonBody<QuestionAnswer>,
) -> Result<StatusCode, ProblemDetails> {
    if answer.content.is_some() && answer.action != AnswerAction::Accept {
        return Err(ProblemDetails::bad_request("`content` belongs to `accept`"));
    }
    let gone = || ProblemDetails::not_found("the question was answered, or its call has ended");
    let question = service.questions.take(&id).ok_or_else(gone)?;
    let answer = serde_json::to_value(&answer).unwrap_or_default();
    question.answer.send(answer).map(|()| StatusCode::NO_CONTENT).map_err(|_| gone())
}
