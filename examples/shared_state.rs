//! Services of the host: a parameter of type `State<T>` is not in the schema.
//!
//! The host puts a value into the session, and tools get it by its type. Two sessions share only
//! the values that the host puts into both. `&Context` is the call: its caller, its progress, and
//! whether it was cancelled.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tool_sdk::{Call, Context, Pipeline, Registry, Session, State, ToolError, tool};

/// Notes by their title.
#[derive(Default)]
struct Notes(Mutex<BTreeMap<String, String>>);

impl Notes {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Write a note.
#[tool(write, idempotent, display(primary = title, summary = "Noting {title}"))]
async fn write_note(
    /// The note's title.
    #[arg(length = 1..=80)]
    title: String,
    /// What it says.
    text: String,
    notes: State<Notes>,
    cx: &Context,
) -> String {
    let author = cx.session().user().unwrap_or("somebody");
    cx.progress(1, Some(1), "writing");
    notes.with(|notes| notes.insert(title, format!("{text} ({author})")));
    "written".to_owned()
}

/// Read a note.
#[tool(read)]
async fn read_note(
    /// The note's title.
    title: &str,
    notes: State<Notes>,
) -> Result<String, ToolError> {
    let titles = || notes.with(|notes| notes.keys().cloned().collect::<Vec<_>>().join(", "));
    notes.with(|notes| notes.get(title).cloned()).ok_or_else(|| {
        ToolError::not_found(format_args!("there is no note `{title}`"))
            .hint(format_args!("the notes are: {}", titles()))
    })
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A tool that writes asks, unless a rule allows it.
    let pipeline = Pipeline::new(Registry::linked()?).rules(["allow write_note".parse()?]);
    let session = Session::new("example").with_user("ada").with_service(Notes::default());
    for (name, arguments) in [
        ("write_note", r#"{"title": "milk", "text": "is out"}"#),
        ("read_note", r#"{"title": "milk"}"#),
        ("read_note", r#"{"title": "bread"}"#),
    ] {
        println!("{}", pipeline.call(&session, Call::new(name, arguments)).await.text());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_sdk::testing::Harness;
    use tool_sdk::{ErrorKind, tools};

    use super::*;

    #[tokio::test]
    async fn what_is_written_can_be_read() {
        let harness = Harness::new(tools![write_note, read_note]).lend(Notes::default());
        harness.ok("write_note", json!({"title": "milk", "text": "is out"})).await;
        let note = harness.ok("read_note", json!({"title": "milk"})).await;
        assert_eq!(note.as_text(), "is out (somebody)");
    }

    #[tokio::test]
    async fn nothing_lent_is_a_fault_of_the_host() {
        let harness = Harness::new(tools![read_note]);
        let error = harness.error("read_note", json!({"title": "milk"})).await;
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}
