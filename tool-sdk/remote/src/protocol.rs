//! The messages between host and worker, and their subjects.
//!
//! ```text
//! $SRV.INFO|STATS.tools-NS             discovery and statistics, by the services API
//! tools.NS.v1.tool.TOOL.HASH           prepare, by any worker with this definition
//! tools.NS.v1.worker.ID.prepare        prepare, by this worker
//! tools.NS.v1.worker.ID.run            run, by the worker that prepared
//! tools.NS.v1.worker.ID.cancel.NONCE   cancels the call of the permit with this nonce
//! tools.NS.v1.worker.ID.answer.ID      answers the question with this id
//! tools.NS.v1.worker.ID.drain          ends the worker after its running calls
//! tools.NS.v1.changed                  a worker came or has other tools; its id, when it goes
//! ```
//!
//! **Invariant:** a subject names the definition that a call is for, so no worker with another one
//! receives the call.

use async_nats::header::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tool_sdk_core::internal::sha256_hex;
use tool_sdk_core::{
    CallFacts, Context, FailureRecord, Leniency, Output, RequestedAccess, Resource, Session,
    Signal, ToolError,
};

use crate::namespace::Namespace;

/// The endpoint and metadata names that host and worker share.
pub(crate) const RUN: &str = "run";
pub(crate) const PREPARE: &str = "prepare";
pub(crate) const DRAIN: &str = "drain";
pub(crate) const CANCEL: &str = "cancel";
pub(crate) const ANSWER: &str = "answer";
/// The metadata of an endpoint: the definition of its tool, as JSON.
pub(crate) const DEFINITION: &str = "definition";
/// The metadata of a service: the id of the worker, and the program.
pub(crate) const WORKER: &str = "worker";
pub(crate) const PROGRAM: &str = "program";
/// The metadata of a service: how many tools it has. One with fewer endpoints is still starting.
pub(crate) const TOOL_COUNT: &str = "tools";

/// The metadata of sessions, and the header, that carries the trace of a call.
const TRACE: &str = "traceparent";

/// How much of a definition's hash is in a subject.
const SUBJECT_DIGITS: usize = 16;

/// Returns the name of the service.
pub(crate) fn service_name(namespace: &Namespace) -> String {
    format!("tools-{namespace}")
}

/// Returns the part of a definition's hash that is in subjects.
pub(crate) fn short_hash(hash: &str) -> &str {
    hash.get(..SUBJECT_DIGITS).unwrap_or(hash)
}

/// Returns the subject of a tool with this definition.
pub(crate) fn tool_subject(namespace: &Namespace, tool: &str, hash: &str) -> String {
    format!("tools.{namespace}.v1.tool.{tool}.{}", short_hash(hash))
}

/// Returns a subject of one worker.
pub(crate) fn worker_subject(namespace: &Namespace, worker: &str, verb: &str) -> String {
    format!("tools.{namespace}.v1.worker.{worker}.{verb}")
}

/// Returns the subject on which workers announce changes.
pub(crate) fn changed_subject(namespace: &Namespace) -> String {
    format!("tools.{namespace}.v1.changed")
}

/// Returns the digest to which a permit to prepare is bound.
pub(crate) fn arguments_digest(arguments: &str) -> String {
    sha256_hex(arguments)
}

/// Returns the digest to which the permit of an answer is bound.
pub(crate) fn answer_digest(question: &str, answer: &[u8]) -> String {
    sha256_hex([question.as_bytes(), b"\0", answer].concat())
}

/// Returns the headers of a call of this context.
fn trace_headers(cx: &Context) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(trace) = cx.session().metadata().get(TRACE).and_then(|it| it.as_str())
        && !trace.contains(['\r', '\n'])
    {
        headers.insert(TRACE, trace);
    }
    headers
}

/// Adds the trace of a request to the session of its call.
pub(crate) fn with_trace(session: Session, headers: Option<&HeaderMap>) -> Session {
    match headers.and_then(|it| it.get(TRACE)) {
        Some(trace) => session.with_metadata(TRACE, trace.as_str()),
        None => session,
    }
}

/// The header with the signed permit, which the worker checks before it reads the message.
const PERMIT: &str = "Tool-Permit";

/// Returns the headers of a request or an answer: its permit, and the trace of its call.
pub(crate) fn request_headers(permit: &str, cx: &Context) -> HeaderMap {
    let mut headers = trace_headers(cx);
    headers.insert(PERMIT, permit);
    headers
}

/// Returns the permit of a request.
pub(crate) fn permit_header(headers: Option<&HeaderMap>) -> Option<&str> {
    Some(headers?.get(PERMIT)?.as_str())
}

/// A request to prepare or to run a call. Its permit, which names the call, is in a header.
#[derive(Serialize, Deserialize)]
pub(crate) struct CallRequest {
    /// The arguments as JSON.
    pub(crate) arguments: String,
    pub(crate) lenient: Leniency,
    /// Whether the user of the host can fill in forms.
    #[serde(default)]
    pub(crate) has_forms: bool,
}

/// Why a worker did not do what it was asked; the tool did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerRefusal {
    /// It runs as many calls as it may.
    Busy,
    /// It has no tool with this definition.
    Definition,
    /// The permit is not signed by the host, is for something else, or is no permit.
    Permit,
    /// The permit has expired.
    Expired,
    /// The permit was used before.
    Replayed,
    /// The message cannot be read.
    Message,
}

impl WorkerRefusal {
    /// Returns why, as the end of a sentence about the worker.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Busy => "is busy",
            Self::Definition => "has no tool with this definition any more",
            Self::Permit => "does not accept the permit: the permit keys of host and worker differ",
            Self::Expired => "received the permit after its deadline",
            Self::Replayed => "has seen the permit before",
            Self::Message => "cannot read the message",
        }
    }
}

/// The answer to a request to prepare a call.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PrepareAnswer {
    /// What the call would do, in this worker.
    Prepared {
        worker: String,
        facts: Box<CallFacts>,
    },
    /// The call cannot run.
    Failed(FailureRecord),
    Refused(WorkerRefusal),
}

/// A message about a running call. The numbers of a call's messages are consecutive.
#[derive(Serialize, Deserialize)]
pub(crate) struct RunMessage {
    pub(crate) seq: u64,
    pub(crate) body: RunBody,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunBody {
    /// The call begins, or still runs.
    Alive,
    /// The running tool reports something.
    Signal(Signal),
    /// The worker warns its caller.
    Warned(String),
    /// The running tool asks something, and waits for the answer.
    Asked {
        id: String,
        question: ToolQuestion,
    },
    /// The call has ended.
    Finished(Box<RunResult>),
    Refused(WorkerRefusal),
}

/// How many questions a call may ask.
pub(crate) const MAX_QUESTIONS: usize = 16;

/// What a running tool asks.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolQuestion {
    /// The parameters of a form for the user, as the Model Context Protocol defines them.
    Form(Value),
    /// Whether the call may do something beyond its arguments.
    Permission(RequestedPermission),
}

/// A permission that a running tool requests. A worker that lies about it gains nothing: the host
/// decides by what it says, under a permission of the namespace.
#[derive(Serialize, Deserialize)]
pub(crate) struct RequestedPermission {
    pub(crate) permission: String,
    text: String,
    names: Vec<String>,
    is_read_only: bool,
}

impl RequestedPermission {
    /// Describes what the approval request of a running tool is about.
    pub(crate) fn from_resource(resource: &Resource) -> Self {
        Self {
            permission: resource.permission().unwrap_or_default().to_owned(),
            text: resource.text().to_owned(),
            names: resource.suggestions().to_vec(),
            is_read_only: resource.is_asked_by_default(),
        }
    }

    /// Returns what is requested.
    pub(crate) fn access(&self) -> RequestedAccess {
        let what = RequestedAccess::new(&self.text);
        let what = self.names.iter().fold(what, RequestedAccess::with_name);
        match self.is_read_only {
            true => what.read_only(),
            false => what,
        }
    }
}

/// What the host answers to a question of a running tool.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HostAnswer {
    /// The answer of the user to a form, as the Model Context Protocol defines it.
    Form(Value),
    /// Whether the call may do what it requested.
    Permission(bool),
    /// The question was not answered.
    Failed(FailureRecord),
}

/// How a call ended.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunResult {
    Done(Output),
    Failed { error: FailureRecord, output: Option<Output> },
}

impl From<Result<Output, ToolError>> for RunResult {
    fn from(result: Result<Output, ToolError>) -> Self {
        match result {
            Ok(output) => Self::Done(output),
            Err(error) => {
                Self::Failed { error: FailureRecord::from(&error), output: error.output().cloned() }
            }
        }
    }
}

impl From<RunResult> for Result<Output, ToolError> {
    fn from(result: RunResult) -> Self {
        match result {
            RunResult::Done(output) => Ok(output),
            RunResult::Failed { error, output } => {
                let error = ToolError::from(error);
                Err(match output {
                    Some(output) => error.with_output(output),
                    None => error,
                })
            }
        }
    }
}
