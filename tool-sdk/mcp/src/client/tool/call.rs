//! Runs one call of a foreign tool, and turns its result or its failure into what the model reads.
//!
//! **Invariant:** a call is sent once. A lost connection is reopened only to ask for the result of a
//! task that the server runs already.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{Context, Output, ToolError};

use super::{ForeignTool, Inner, pin_write_error};
use crate::client::connection::ServerConnection;
use crate::client::output_validator::TOO_LATE;
use crate::client::remote::{ErrorClass, RemoteCall, RemoteConnection, RemoteError, RemoteResult};
use crate::client::server_requests::ServerRequestHandler;
use crate::client::{result, time_limit};

/// How long validating a result may take.
const VALIDATION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a lost task waits before each attempt to connect again.
const RESUME_DELAYS: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(8),
    Duration::from_secs(30),
];

/// The type of an error that the server reports in its own words.
const UNKNOWN_ERROR: &str = "unknown";

/// The hint for a tool that certainly did not run.
const NOT_RUN_HINT: &str = "it did not run; go on without it, or try again later";

/// Runs one call of `tool`; `was_read` if a person approved it and read the definition.
pub(super) async fn run_call(
    tool: ForeignTool,
    arguments: Map<String, Value>,
    was_read: bool,
    cx: Context,
) -> Result<Output, ToolError> {
    let server = &tool.0.server;
    let remote = server
        .connect()
        .await
        .map_err(|error| call_failure(&tool, error, &cx).hint(NOT_RUN_HINT))?;
    record_run(&tool, was_read, &cx)?;
    let mut result = match send_call(&tool, &*remote, &arguments, &cx).await {
        Ok(result) => result,
        Err(error) => {
            let error = server.record_failure(error);
            return Err(call_failure(&tool, error, &cx));
        }
    };
    let failed = result.is_error;
    if failed {
        server.secrets().redact_result(&mut result);
    }
    let violation = find_output_violation(&tool, result.structured_content.as_ref()).await;
    if failed || violation.is_some() {
        let structured = result.structured_content.clone();
        structured.into_iter().for_each(|value| cx.set_metadata("structured", value));
    }
    if violation.is_some()
        && let Some(value) = result.structured_content.take()
        && result.content.is_empty()
    {
        // A failed call need not match the schema; but consumers of the schema would misread the value,
        // so it is passed on as text only.
        result.content.push(json!({ "type": "text", "text": value.to_string() }));
    }
    let has_schema = tool.0.schemas.output_validator().is_some();
    let output = result::convert_result(result, has_schema);
    match violation {
        _ if failed => Err(reported_failure(with_origin(&tool, output))),
        Some(violation) => Err(violation_failure(&tool, violation, output, &cx)),
        None => Ok(with_origin(&tool, output)),
    }
}

/// Records that the tool runs in its current definition; fails if the server changed the definition.
fn record_run(tool: &ForeignTool, was_read: bool, cx: &Context) -> Result<(), ToolError> {
    let Inner { server, remote_name, .. } = &*tool.0;
    if !server.offers_tool(tool) {
        return Err(ToolError::conflict(format_args!(
            "the server `{}` changed the definition of `{remote_name}`, so it was not called",
            server.name()
        ))
        .hint("read the new definition of the tool, then call it again"));
    }
    // A user who approved the call has seen the definition; a rule, a mode or `--yes` has not.
    let user = was_read.then(|| cx.session().user_key());
    server
        .pins()
        .record_run(user, (server.name(), remote_name), &tool.0.snapshot)
        .map_err(pin_write_error)?;
    if !tool.is_current() {
        server.refresh_revision(tool);
    }
    Ok(())
}

/// Sends the call and waits for its result, at most as long as the server's configuration allows.
async fn send_call(
    tool: &ForeignTool,
    remote: &dyn RemoteConnection,
    arguments: &Map<String, Value>,
    cx: &Context,
) -> Result<RemoteResult, RemoteError> {
    let Inner { server, remote_name, .. } = &*tool.0;
    let cancel = CancellationToken::new();
    let _abandoned = cancel.clone().drop_guard();
    let report = |done, total, message: String| {
        cx.progress(done, total, server.secrets().clean_text(&message));
    };
    let request_handler = ServerRequestHandler::new(
        server.name(),
        remote_name,
        server.client_features().clone(),
        cx.clone(),
    );
    let to_call = || RemoteCall {
        server: server.name(),
        tool: remote_name,
        arguments,
        timeout: server.call_timeout(),
        on_progress: &report,
        request_handler: &request_handler,
        cancel: cancel.clone(),
        task_support: tool.0.task_support,
    };
    let longest = server.max_call_duration();
    let timed_out = |_| {
        let why =
            format_args!("it was not finished after {longest:?}, although it reported progress");
        Err(RemoteError::timeout(why))
    };
    let called = call_remote(server, remote, &to_call);
    timeout(longest, called).await.unwrap_or_else(timed_out)
}

/// Calls the tool. If the connection is lost while the server runs the call as a task, waits for the
/// result of the task with another connection.
async fn call_remote<'c>(
    server: &Arc<ServerConnection>,
    remote: &dyn RemoteConnection,
    to_call: &(dyn Fn() -> RemoteCall<'c> + Sync),
) -> Result<RemoteResult, RemoteError> {
    let called = remote.call_tool(to_call()).await;
    let Err(RemoteError { task: Some(task), .. }) = &called else { return called };
    for delay in RESUME_DELAYS {
        sleep(delay).await;
        let Ok(remote) = server.connect().await else { continue };
        match remote.resume_task(to_call(), task).await {
            Err(error) if error.class == ErrorClass::Connection => {}
            // The server has ended meanwhile.
            Err(error) if error.is_invalid_params() => return called,
            resumed => return resumed,
        }
    }
    called
}

/// Returns how a result violates the output schema of its tool, if it does.
async fn find_output_violation(tool: &ForeignTool, result: Option<&Value>) -> Option<String> {
    let Inner { schemas, server, .. } = &*tool.0;
    let output_validator = schemas.output_validator()?;
    if server.has_lost_validation() {
        return None;
    }
    let Some(value) = result.filter(|value| !output_validator.is_cheap(value)) else {
        return output_validator.find_violation(result);
    };
    let (schemas, value) = (Arc::clone(schemas), value.clone());
    let validate = move || schemas.output_validator()?.find_violation(Some(&value));
    time_limit::run_with_limit(VALIDATION_TIMEOUT, validate).await.unwrap_or_else(|| {
        server.lose_validation();
        Some(TOO_LATE.to_owned())
    })
}

/// Adds the title and the metadata that say where a result comes from.
fn with_origin(tool: &ForeignTool, output: Output) -> Output {
    let Inner { server, remote_name, .. } = &*tool.0;
    output
        .title(format!("{}.{remote_name}", server.name()))
        .metadata("server", server.name())
        .metadata("tool", remote_name.as_str())
}

/// Returns the error of a tool that reported a failure in its own words.
fn reported_failure(output: Output) -> ToolError {
    let words = Some(output.as_text()).filter(|text| !text.trim().is_empty());
    let failed = ToolError::failed(words.unwrap_or("the tool failed without an error message"));
    let original = failed.message().to_owned();
    let output = output
        .metadata("error_type", UNKNOWN_ERROR)
        .metadata("original_error", original)
        .metadata("is_error", true);
    failed.with_output(output)
}

/// Returns the error for a result that violates the tool's output schema, with the result as text.
fn violation_failure(
    tool: &ForeignTool,
    violation: String,
    output: Output,
    cx: &Context,
) -> ToolError {
    let error = tool.0.server.record_failure(RemoteError::protocol(violation));
    let facts = error_facts(&error);
    let mut failure = call_failure(tool, error, cx);
    if !output.as_text().is_empty() {
        failure.append(output.as_text());
    }
    let output = facts
        .into_iter()
        .fold(with_origin(tool, output), |output, (key, fact)| output.metadata(key, fact));
    failure.with_output(output)
}

/// Returns the error for the model, and reports it to programs as metadata.
fn call_failure(tool: &ForeignTool, error: RemoteError, cx: &Context) -> ToolError {
    let Inner { server, remote_name, .. } = &*tool.0;
    let class = error.class;
    let output = error_facts(&error)
        .into_iter()
        .fold(with_origin(tool, Output::default()), |output, (key, fact)| {
            output.metadata(key, fact)
        });
    let facts = output.metadata_map().cloned().unwrap_or_default();
    cx.set_metadata("mcp_error", Value::Object(facts));
    let label = class.as_str().to_ascii_uppercase();
    let message =
        format!("[{label}] server `{}`, tool `{remote_name}`: {}", server.name(), error.message);
    let failure = match class {
        ErrorClass::Connection if error.not_run => {
            ToolError::unavailable(message).hint(NOT_RUN_HINT)
        }
        ErrorClass::Connection => ToolError::unavailable(message)
            .hint("it may or may not have run; check its effect before you call it again"),
        ErrorClass::Timeout => ToolError::timeout(message).hint("request less in one call"),
        ErrorClass::Aborted => ToolError::aborted(message),
        ErrorClass::Protocol => ToolError::failed(message),
    };
    let failure = failure.with_output(output);
    match error.source {
        Some(source) => failure.source(source),
        None => failure,
    }
}

/// Returns what programs read about an error: its type, the words of the server, and that it is
/// one.
fn error_facts(error: &RemoteError) -> [(&'static str, Value); 3] {
    [
        ("error_type", error.class.error_type().into()),
        ("original_error", error.message.clone().into_owned().into()),
        ("is_error", true.into()),
    ]
}
