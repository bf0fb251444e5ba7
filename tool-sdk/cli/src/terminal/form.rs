//! Elicitation forms at the terminal, filled in field by field.
//!
//! **Invariant:** each value was typed by the user, or is the default that was shown in brackets.
//! The end of the input cancels the form.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{
    Inquiry, InquiryFuture, InquiryHandler, InquiryKind, ToolError,
    internal::{frame_text, wrap_rows},
};

use super::{Console, TerminalLock};

/// The help at a form.
const FORM_HELP: &str = "\
y  type a value for each field; an empty line takes the value in brackets, or leaves an optional
   field out; the end of the input cancels the form
n  answer nothing; every other answer means this, too
";
/// How many invalid answers a field may get.
const MAX_TRIES: usize = 3;

/// Shows forms at a terminal.
pub(crate) struct TerminalForms {
    console: Arc<dyn Console>,
    lock: TerminalLock,
}

impl TerminalForms {
    pub(crate) fn new(console: Arc<dyn Console>, lock: TerminalLock) -> Self {
        Self { console, lock }
    }

    async fn fill_form(&self, inquiry: Inquiry) -> Value {
        let (console, lock) = (Arc::clone(&self.console), self.lock.acquire().await);
        // Cancelled when this future is dropped.
        let settled = CancellationToken::new();
        let _asking = settled.clone().drop_guard();
        let answer = tokio::task::spawn_blocking(move || {
            let _lock = lock;
            let wanted = || !settled.is_cancelled();
            FormDialog { console: &*console, is_wanted: &wanted, form: inquiry.params() }
                .run_dialog()
        });
        answer.await.unwrap_or_else(|_| json!({ "action": "cancel" }))
    }
}

impl InquiryHandler for TerminalForms {
    fn supports(&self, kind: InquiryKind) -> bool {
        kind == InquiryKind::Form
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        let inquiring = async move {
            let mut answers = Vec::with_capacity(inquiries.len());
            for (_, inquiry) in inquiries {
                if inquiry.kind() != InquiryKind::Form {
                    return Err(ToolError::unavailable("the terminal only supports forms"));
                }
                answers.push(self.fill_form(inquiry).await);
            }
            Ok(answers)
        };
        Box::pin(inquiring) as Pin<Box<_>>
    }
}

/// The dialog for one form.
struct FormDialog<'a> {
    console: &'a dyn Console,
    is_wanted: &'a dyn Fn() -> bool,
    form: &'a Value,
}

impl FormDialog<'_> {
    fn run_dialog(&self) -> Value {
        let message = self.form["message"].as_str().unwrap_or_default();
        let message = wrap_rows(&frame_text(message), self.console.columns());
        let offered = "[y] fill it in  [n] no  [?] help";
        let mut answer = self.read_line(&format!("a form\n{message}{offered}\n> "));
        while answer.as_deref() == Some("?") {
            answer = self.read_line(&format!("{FORM_HELP}{offered}\n> "));
        }
        match answer.as_deref() {
            Some("y" | "yes") => match self.read_fields() {
                Some(content) => json!({ "action": "accept", "content": content }),
                None => json!({ "action": "cancel" }),
            },
            Some(_) => json!({ "action": "decline" }),
            None => json!({ "action": "cancel" }),
        }
    }

    /// Reads all fields; `None` when the user gave up.
    fn read_fields(&self) -> Option<Map<String, Value>> {
        let schema = &self.form["requestedSchema"];
        let mut content = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let required =
                schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
            if let Some(value) = self.read_field(name, field, required)? {
                content.insert(name.clone(), value);
            }
        }
        Some(content)
    }

    /// Reads the optional value of a field; `None` when the user gave up.
    fn read_field(&self, name: &str, field: &Value, required: bool) -> Option<Option<Value>> {
        let described = describe_field(name, field, required);
        let mut words = wrap_rows(&frame_text(&described), self.console.columns());
        for _ in 0..MAX_TRIES {
            let line = self.read_line(&format!("{words}> "))?;
            match (line.is_empty(), field.get("default")) {
                (true, Some(default)) => return Some(Some(default.clone())),
                (true, None) if !required => return Some(None),
                _ => {}
            }
            match parse_value(&line, field) {
                Some(value) => return Some(Some(value)),
                None => "invalid value; try again\n".clone_into(&mut words),
            }
        }
        None
    }

    fn read_line(&self, text: &str) -> Option<String> {
        let line = self.console.prompt(text, self.is_wanted).ok()??;
        Some(line.trim().to_owned())
    }
}

/// Describes a field: title, description, type or choices, default.
fn describe_field(name: &str, field: &Value, required: bool) -> String {
    let text = |key: &str| field[key].as_str().map(|text| format!("{text}\n")).unwrap_or_default();
    let kind = field["type"].as_str().unwrap_or("string");
    let choices = field_choices(field);
    let kind = if choices.is_empty() { kind.to_owned() } else { choices.join(" | ") };
    let need = if required { ", required" } else { "" };
    let default = field.get("default").map(|value| format!(" [{value}]")).unwrap_or_default();
    format!("{}{}{name} ({kind}{need}){default}", text("title"), text("description"))
}

/// Returns the values to choose from; empty for free input.
fn field_choices(field: &Value) -> Vec<String> {
    let of = |field: &Value| -> Vec<String> {
        let named = |key: &str| field[key].as_array().into_iter().flatten();
        let options = named("oneOf").chain(named("anyOf")).map(|option| &option["const"]);
        named("enum").chain(options).filter_map(Value::as_str).map(str::to_owned).collect()
    };
    match field["type"].as_str() {
        Some("array") => of(&field["items"]),
        _ => of(field),
    }
}

/// Parses the line as a value of the field; `None` if it is invalid.
fn parse_value(line: &str, field: &Value) -> Option<Value> {
    let choices = field_choices(field);
    let chosen = |word: &str| {
        let word = word.trim();
        (choices.is_empty() || choices.iter().any(|choice| choice == word)).then(|| json!(word))
    };
    match field["type"].as_str().unwrap_or("string") {
        "integer" => line.parse::<i64>().ok().map(Value::from),
        "number" => line.parse::<f64>().ok().map(Value::from),
        "boolean" => match line {
            "y" | "yes" | "true" => Some(true.into()),
            "n" | "no" | "false" => Some(false.into()),
            _ => None,
        },
        "array" => line.split(',').map(chosen).collect::<Option<Vec<_>>>().map(Value::from),
        _ => chosen(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ScriptedConsole;

    fn filled(lines: &[&str]) -> (Value, String) {
        let person = ScriptedConsole::with_lines(lines);
        let form = json!({
            "message": "Who\u{202e}?",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "Yours." },
                    "age": { "type": "integer" },
                    "shelf": { "type": "string", "enum": ["A", "B"], "default": "B" },
                    "tags": { "type": "array", "items": { "enum": ["x", "y"] } },
                    "sure": { "type": "boolean" },
                },
                "required": ["name"],
            },
        });
        let answer =
            FormDialog { console: &*person, is_wanted: &|| true, form: &form }.run_dialog();
        (answer, person.shown())
    }

    // MC7
    #[test]
    fn typed_values_become_the_answer() {
        let (answer, shown) = filled(&["y", "ada", "thirty", "30", "", "x, y", "no"]);
        let expected = json!({
            "name": "ada", "age": 30, "shelf": "B", "tags": ["x", "y"], "sure": false,
        });
        assert_eq!(answer, json!({ "action": "accept", "content": expected }));
        assert!(shown.contains("  | Who\\u{202e}?"), "{shown}");
        assert!(shown.contains("  | shelf (A | B) [\"B\"]"), "{shown}");
    }

    #[test]
    fn a_form_can_be_declined_and_cancelled() {
        let action = |lines: &[&str]| filled(lines).0["action"].clone();
        assert_eq!(action(&["n"]), "decline");
        assert_eq!(action(&["?", "n"]), "decline");
        assert_eq!(action(&["?"]), "cancel");
        assert!(filled(&["?", "n"]).1.contains("y  type a value for each field"));
        assert_eq!(action(&[""]), "decline");
        assert_eq!(action(&[]), "cancel");
        assert_eq!(action(&["y", "ada"]), "cancel", "the input ended");
        assert_eq!(action(&["y", "", "", ""]), "cancel", "the name is required");
        let few = filled(&["y", "ada", "", "A", "", ""]).0;
        assert_eq!(few["content"], json!({ "name": "ada", "shelf": "A" }));
    }
}
