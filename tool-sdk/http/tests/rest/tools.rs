//! A tool for every way in which a call can go.

use std::sync::Arc;

use tokio::sync::Notify;
use tool_sdk::{
    Attachment, Context, ElicitationOutcome, ErrorKind, Json, Output, Registry, State, ToolError,
    tool, tools,
};

/// What tools tell their tests, and what tests tell tools.
#[derive(Clone, Default)]
pub(crate) struct ToolSignals {
    pub(crate) started: Arc<Notify>,
    pub(crate) ended: Arc<Notify>,
    /// Lets `stream_parts` go on.
    pub(crate) proceed: Arc<Notify>,
    pub(crate) runs: Arc<std::sync::atomic::AtomicUsize>,
}

/// Tells of the end however it comes: a call that is cancelled is dropped.
struct EndSignal(Arc<Notify>);

impl Drop for EndSignal {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Add two numbers.
#[tool(read, example = r#"{"a": 1, "b": 2}"#, category = "math")]
fn add(
    /// The first.
    a: i64,
    /// The second.
    #[arg(default = 1, range = 0..=100)]
    b: i64,
) -> Json<std::collections::BTreeMap<&'static str, i64>> {
    Json([("sum", a + b)].into())
}

/// Ask the user for a name.
#[tool(read)]
async fn ask_name(cx: &Context) -> Result<String, ToolError> {
    let form = serde_json::json!({
        "type": "object",
        "properties": { "name": { "type": "string" } },
        "required": ["name"],
    });
    match cx.elicit("Who?", form).await? {
        ElicitationOutcome::Accepted(fields) => {
            Ok(format!("hello {}", fields["name"].as_str().unwrap_or_default()))
        }
        _ => Err(ToolError::failed("the user does not say")),
    }
}

/// Join words.
#[tool(read)]
fn join_words(
    /// The words.
    words: Vec<String>,
    /// In capitals?
    #[arg(default = false)]
    loud: bool,
) -> String {
    let text = words.join(" ");
    if loud { text.to_uppercase() } else { text }
}

/// Draw a dot.
#[tool(read)]
fn draw_dot() -> Output {
    Output::text("a dot").attach(Attachment::bytes("image/png", vec![1, 2, 3]).with_name("dot"))
}

/// Fail in a way of choice.
#[tool(read)]
fn fail_as(
    /// The kind of the error.
    kind: String,
) -> Result<Output, ToolError> {
    let kind = ErrorKind::ALL.into_iter().find(|it| it.as_str() == kind);
    let kind = kind.ok_or_else(|| ToolError::invalid("kind", "there is no such kind"))?;
    Err(ToolError::new(kind, "it went wrong").hint("try again"))
}

/// Panic.
#[tool(read)]
fn panic_now() -> String {
    if std::hint::black_box(true) {
        panic!("a secret");
    }
    String::new()
}

/// Talk too much.
#[tool(read, max_output = "1 KiB")]
fn talk() -> String {
    "a long line of words\n".repeat(1000)
}

/// Take longer than allowed.
#[tool(read, timeout = "20ms")]
async fn take_too_long() -> String {
    std::future::pending().await
}

/// Wait until cancelled.
#[tool(read)]
async fn wait_forever(State(signals): State<ToolSignals>) -> String {
    signals.started.notify_one();
    let _end = EndSignal(Arc::clone(&signals.ended));
    std::future::pending().await
}

/// Write down a word.
#[tool(write)]
fn write_word(
    /// The word.
    word: String,
    State(signals): State<ToolSignals>,
    cx: &Context,
) -> String {
    let runs = signals.runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
    let session = cx.session();
    let request = session.request().unwrap_or_default();
    let project = session.project().unwrap_or_default();
    format!("{word} #{runs} by {} in {request} of {project}", session.client())
}

/// Tell parts one by one.
#[tool(read)]
async fn stream_parts(State(signals): State<ToolSignals>, cx: &Context) -> String {
    for part in ["one", "two", "three"] {
        cx.emit_output(part);
        cx.progress(1, Some(3), part);
        signals.proceed.notified().await;
    }
    "done".to_owned()
}

pub(crate) fn registry() -> Registry {
    Registry::builder()
        .add(tools![
            add,
            ask_name,
            draw_dot,
            fail_as,
            join_words,
            panic_now,
            stream_parts,
            take_too_long,
            talk,
            wait_forever,
            write_word
        ])
        .build()
        .unwrap()
}
