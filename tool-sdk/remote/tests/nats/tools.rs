//! The tools of the workers.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tool_sdk_core::{Call, Context, ElicitationOutcome, Resource, Tool, ToolError, tool, tools};

use crate::fixtures::runs_in;

pub(crate) fn worker_tools() -> Vec<Arc<dyn Tool>> {
    tools![
        add,
        append,
        count_slowly,
        delegate,
        fail,
        greet,
        look,
        open_page,
        reach,
        repeat,
        shout,
        wait
    ]
}

/// Add two numbers.
#[tool(read)]
fn add(
    /// The first.
    a: i64,
    /// The second.
    b: i64,
) -> String {
    (a + b).to_string()
}

fn file_of(args: &AppendArgs, _: &Context) -> Vec<Resource> {
    vec![Resource::new(args.path.clone())]
}

/// Append a line to a file, after a while.
#[tool(write, approval(resources = file_of))]
async fn append(
    /// The file.
    path: String,
    /// How long it takes, in milliseconds.
    #[arg(default = 0)]
    ms: u64,
    cx: &Context,
) -> Result<String, ToolError> {
    write_line(&path)?;
    cx.progress(1, Some(2), format!("written by {}", std::process::id()));
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok("appended".to_owned())
}

fn write_line(path: &str) -> Result<(), ToolError> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(b"line\n")).map_err(ToolError::failed)
}

/// Count to a number, and report each step.
#[tool(read)]
async fn count_slowly(
    /// How far.
    to: u64,
    /// How long each step takes, in milliseconds.
    #[arg(default = 5)]
    ms: u64,
    cx: &Context,
) -> String {
    for step in 1..=to {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        cx.progress(step, Some(to), format!("step {step}"));
        cx.emit_output(format!("{step}\n"));
    }
    format!("counted to {to}")
}

/// Append a line to a file by another tool.
#[tool(read)]
async fn delegate(
    /// The file.
    path: String,
    cx: &Context,
) -> Result<String, ToolError> {
    let call = Call::new("append", serde_json::json!({ "path": path }));
    Ok(cx.call(call).await.result?.as_text().to_owned())
}

/// Fail with a message.
#[tool(read)]
fn fail(
    /// The message.
    message: String,
) -> Result<(), ToolError> {
    Err(ToolError::not_found(message).hint("look elsewhere"))
}

/// Greet the user by the name that the user gives.
#[tool(read)]
async fn greet(
    /// How often the user is asked.
    #[arg(default = 1)]
    times: u64,
    cx: &Context,
) -> Result<String, ToolError> {
    let schema = serde_json::json!({
        "type": "object", "properties": { "name": { "type": "string" } },
    });
    let mut name = "stranger".to_owned();
    for time in 1..=times {
        let answer = cx.elicit("What is your name?", schema.clone()).await?;
        cx.progress(time, Some(times), "asked");
        if let ElicitationOutcome::Accepted(content) = answer {
            name = content["name"].as_str().unwrap_or_default().to_owned();
        }
    }
    Ok(format!("hello {name}"))
}

/// Append a line to a file, but call it reading.
#[tool(read)]
async fn look(
    /// The file.
    path: String,
    /// How long the first call takes, in milliseconds.
    #[arg(default = 0)]
    ms: u64,
    cx: &Context,
) -> Result<String, ToolError> {
    write_line(&path)?;
    cx.progress(1, Some(2), format!("written by {}", std::process::id()));
    if runs_in(Path::new(&path)) == 1 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    Ok("looked".to_owned())
}

/// Let the user open a page.
#[tool(read)]
async fn open_page(cx: &Context) -> Result<(), ToolError> {
    cx.elicit_url("Log in.", "https://login.example/").await.map(drop)
}

/// Reach an address, if that is permitted.
#[tool(read)]
async fn reach(
    /// The address.
    url: String,
    cx: &Context,
) -> &'static str {
    match cx.request_permission("network", url).await {
        true => "reached",
        false => "refused",
    }
}

/// Repeat a text.
#[tool(read, max_output = "64 MiB")]
fn repeat(
    /// The text.
    text: String,
    /// How often.
    times: usize,
) -> String {
    text.repeat(times)
}

/// Report as much as is asked for, all at once.
#[tool(read)]
fn shout(
    /// How often.
    times: u64,
    cx: &Context,
) -> &'static str {
    (1..=times).for_each(|time| cx.progress(time, Some(times), "aaah"));
    "hoarse"
}

/// Wait, and say so.
#[tool(read)]
async fn wait(
    /// How long, in milliseconds.
    ms: u64,
) -> String {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    format!("waited {ms} ms")
}
