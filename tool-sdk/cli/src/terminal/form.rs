//! Elicitation forms at the terminal, filled in field by field, and addresses for the user to open.
//!
//! **Invariant:** each value was typed by the user, or is the default that was shown in brackets. An
//! address is shown in full, and never opened. The end of the input cancels the form.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{
    Inquiry, InquiryFuture, InquiryHandler, InquiryKind, ToolError,
    internal::{frame_text, wrap_rows},
};

use super::{Console, TerminalLock};
use crate::style::escape_text;

/// The help at a form.
const FORM_HELP: &str = "\
y  type a value for each field; an empty line takes the value in brackets, or leaves an optional
   field out; the end of the input cancels the form
n  answer nothing
A form with one field for text takes any other line as its value.
";
/// The help at an address.
const URL_HELP: &str = "\
y  you open the address yourself, in a browser; the tool goes on
n  you do not open it
";
/// How many invalid answers a form, and each field of it, may get.
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
        matches!(kind, InquiryKind::Form | InquiryKind::Url)
    }

    fn supports_secrets(&self) -> bool {
        self.console.can_hide_input()
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        let inquiring = async move {
            let mut answers = Vec::with_capacity(inquiries.len());
            for (_, inquiry) in inquiries {
                if !self.supports(inquiry.kind()) {
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
        match self.form["url"].as_str() {
            Some(url) => {
                let text = format!("an address to open\n{message}{}\n", escape_text(url));
                self.confirm(
                    &text,
                    "[y] I open it  [n] no  [?] help",
                    URL_HELP,
                    || json!({ "action": "accept" }),
                    |_| None,
                )
            }
            None => {
                let text = format!("a form\n{message}");
                let field = self.only_text_field();
                let offered = match field {
                    Some(_) => "type the answer, or: [y] fill it in  [n] no  [?] help",
                    None => "[y] fill it in  [n] no  [?] help",
                };
                let fill_in = || match self.read_fields() {
                    Some(content) => json!({ "action": "accept", "content": content }),
                    None => json!({ "action": "cancel" }),
                };
                self.confirm(&text, offered, FORM_HELP, fill_in, |line| {
                    let content = Map::from_iter([(field?.clone(), line.into())]);
                    Some(json!({ "action": "accept", "content": content }))
                })
            }
        }
    }

    /// Shows a text and what the user may answer. Returns `accepted` after a yes, and what `typed`
    /// makes of another line; asks again when it makes nothing of it.
    fn confirm(
        &self,
        text: &str,
        offered: &str,
        help: &str,
        accepted: impl FnOnce() -> Value,
        typed: impl Fn(&str) -> Option<Value>,
    ) -> Value {
        let mut tries = 0;
        let mut shown = format!("{text}{offered}\n> ");
        while tries < MAX_TRIES {
            let Some(line) = self.read_line(&shown) else { break };
            match line.as_str() {
                "y" | "yes" => return accepted(),
                "n" | "no" => return json!({ "action": "decline" }),
                "?" => shown = format!("{help}{offered}\n> "),
                line => match typed(line).filter(|_| !line.is_empty()) {
                    Some(answer) => return answer,
                    None => {
                        tries += 1;
                        shown = format!("please answer with y or n\n{offered}\n> ");
                    }
                },
            }
        }
        json!({ "action": "cancel" })
    }

    /// Returns the name of the field if the form has one only, for text that may be shown.
    fn only_text_field(&self) -> Option<&String> {
        let fields = self.form["requestedSchema"]["properties"].as_object()?;
        let (name, field) = fields.iter().next().filter(|_| fields.len() == 1)?;
        let is_text = field["type"].as_str().is_none_or(|kind| kind == "string");
        (is_text && field["format"] != "password" && field_choices(field).is_empty())
            .then_some(name)
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
            let line = match field["format"] == "password" {
                true => self.read_hidden(&format!("{words}(not shown) > "))?,
                false => self.read_line(&format!("{words}> "))?,
            };
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

    /// Reads a secret, blanks included.
    fn read_hidden(&self, text: &str) -> Option<String> {
        let line = self.console.prompt_hidden(text, self.is_wanted).ok()??;
        Some(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    fn read_line(&self, text: &str) -> Option<String> {
        let line = self.console.prompt(text, self.is_wanted).ok()??;
        Some(line.trim().to_owned())
    }
}

/// Describes a field: title, description, numbered choices, type, default.
fn describe_field(name: &str, field: &Value, required: bool) -> String {
    let text = |key: &str| field[key].as_str().map(|text| format!("{text}\n")).unwrap_or_default();
    let kind = field["type"].as_str().unwrap_or("string");
    let choices = field_choices(field);
    let numbered = choices.iter().enumerate().fold(String::new(), |mut rows, (at, choice)| {
        let _ = writeln!(rows, "{}. {}", at + 1, choice.describe());
        rows
    });
    let kind = match (choices.is_empty(), kind) {
        (true, kind) => kind.to_owned(),
        (false, "array") => "numbers or names, with commas between them".to_owned(),
        (false, _) => "number or name".to_owned(),
    };
    let need = if required { ", required" } else { "" };
    let default = field.get("default").map(|value| format!(" [{value}]")).unwrap_or_default();
    format!("{}{}{numbered}{name} ({kind}{need}){default}", text("title"), text("description"))
}

/// A value to choose from.
struct FormChoice {
    value: String,
    /// The value's name for people.
    title: Option<String>,
}

impl FormChoice {
    fn describe(&self) -> String {
        match &self.title {
            Some(title) if *title != self.value => format!("{} = {title}", self.value),
            _ => self.value.clone(),
        }
    }
}

/// Returns the values to choose from; empty for free input.
fn field_choices(field: &Value) -> Vec<FormChoice> {
    let field = match field["type"].as_str() {
        Some("array") => &field["items"],
        _ => field,
    };
    let items = |key: &str| field[key].as_array().into_iter().flatten();
    let title_of = |title: &Value| title.as_str().map(str::to_owned);
    let titled = items("oneOf").chain(items("anyOf")).filter_map(|option| {
        let value = option["const"].as_str()?.to_owned();
        Some(FormChoice { value, title: title_of(&option["title"]) })
    });
    // The form of older versions has the titles in a list of their own.
    let named = items("enum").enumerate().filter_map(|(at, value)| {
        let value = value.as_str()?.to_owned();
        Some(FormChoice { value, title: title_of(&field["enumNames"][at]) })
    });
    named.chain(titled).collect()
}

/// Returns the value that a word means: the value itself, the title of exactly one value, or the
/// number of a value, counting from 1.
fn chosen_value(choices: &[FormChoice], word: &str) -> Option<Value> {
    if choices.is_empty() || choices.iter().any(|choice| choice.value == word) {
        return Some(json!(word));
    }
    let mut meant = choices.iter().filter(|choice| choice.title.as_deref() == Some(word));
    match (meant.next(), meant.next()) {
        (Some(choice), None) => Some(json!(choice.value)),
        (None, _) => {
            let at = word.parse::<usize>().ok()?.checked_sub(1)?;
            choices.get(at).map(|choice| json!(choice.value))
        }
        _ => None,
    }
}

/// Parses the line as a value of the field; `None` if it is invalid.
fn parse_value(line: &str, field: &Value) -> Option<Value> {
    let choices = field_choices(field);
    let chosen = |word: &str| chosen_value(&choices, word.trim());
    match field["type"].as_str().unwrap_or("string") {
        "integer" => line.parse::<i64>().ok().map(Value::from),
        "number" => line.parse::<f64>().ok().map(Value::from),
        "boolean" => match line {
            "y" | "yes" | "true" => Some(true.into()),
            "n" | "no" | "false" => Some(false.into()),
            _ => None,
        },
        "array" => {
            let items = line.split(',').map(chosen).collect::<Option<Vec<_>>>()?;
            let count = u64::try_from(items.len()).ok()?;
            let is_over = field["maxItems"].as_u64().is_some_and(|most| count > most);
            let is_under = field["minItems"].as_u64().is_some_and(|fewest| count < fewest);
            (!is_over && !is_under).then(|| Value::from(items))
        }
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
        let shelf = "  | 1. A\n  | 2. B\n  | shelf (number or name) [\"B\"]";
        assert!(shown.contains(shelf), "{shown}");
    }

    #[test]
    fn choices_have_numbers() {
        let field = json!({ "type": "string", "enum": ["A", "1", "B"] });
        // A choice that is a number itself is meant before a position.
        for (line, expected) in [("3", Some("B")), ("1", Some("1")), ("0", None), ("4", None)] {
            assert_eq!(parse_value(line, &field), expected.map(Value::from), "{line}");
        }
        let field = json!({
            "type": "array", "items": { "enum": ["A", "B", "C"] }, "minItems": 1, "maxItems": 2,
        });
        assert_eq!(parse_value("3, A", &field), Some(json!(["C", "A"])));
        assert_eq!(parse_value("1,2,3", &field), None, "at most two");
    }

    #[test]
    fn a_form_can_be_declined_and_cancelled() {
        let action = |lines: &[&str]| filled(lines).0["action"].clone();
        assert_eq!(action(&["n"]), "decline");
        assert_eq!(action(&["?", "n"]), "decline");
        assert_eq!(action(&["?"]), "cancel");
        assert!(filled(&["?", "n"]).1.contains("y  type a value for each field"));
        assert_eq!(action(&["blue", "", "n"]), "decline", "it asks again");
        assert_eq!(action(&["blue", "red", "green", "y"]), "cancel", "it asks at most three times");
        assert_eq!(action(&[]), "cancel");
        assert_eq!(action(&["y", "ada"]), "cancel", "the input ended");
        assert_eq!(action(&["y", "", "", ""]), "cancel", "the name is required");
        let few = filled(&["y", "ada", "", "A", "", ""]).0;
        assert_eq!(few["content"], json!({ "name": "ada", "shelf": "A" }));
    }

    // A line that is typed in answer to the only question is not lost.
    #[test]
    fn the_only_field_for_text_takes_the_typed_line() {
        let form = |field: Value| json!({ "requestedSchema": { "properties": { "a": field } } });
        let text = form(json!({ "type": "string" }));
        let (answer, shown) = asked(&["", "light blue"], &text);
        assert_eq!(answer, json!({ "action": "accept", "content": { "a": "light blue" } }));
        assert!(shown.contains("type the answer, or: [y] fill it in"), "{shown}");
        assert_eq!(asked(&["y", "no"], &text).0["content"]["a"], "no");
        assert_eq!(asked(&["no"], &text).0["action"], "decline");
        for other in [
            json!({ "type": "integer" }),
            json!({ "type": "boolean" }),
            json!({ "type": "string", "format": "password" }),
            json!({ "type": "string", "enum": ["blue", "red"] }),
        ] {
            let (answer, shown) = asked(&["blue", "n"], &form(other));
            assert_eq!(answer["action"], "decline");
            assert!(shown.contains("please answer with y or n"), "{shown}");
        }
    }

    fn asked(lines: &[&str], params: &Value) -> (Value, String) {
        let person = ScriptedConsole::with_lines(lines);
        let answer =
            FormDialog { console: &*person, is_wanted: &|| true, form: params }.run_dialog();
        (answer, person.shown())
    }

    // MC7
    #[test]
    fn an_address_is_shown_in_full_and_the_user_decides() {
        let url = format!("https://example.com/{}\u{202e}", "a".repeat(300));
        let params = json!({ "mode": "url", "message": "Log in.", "url": url });
        let (answer, shown) = asked(&["?", "y"], &params);
        assert_eq!(answer, json!({ "action": "accept" }));
        let escaped = url.replace('\u{202e}', "\\u{202e}");
        assert!(shown.contains(&format!("\n{escaped}\n")), "{shown}");
        assert!(shown.contains("you open the address yourself"), "{shown}");
        assert_eq!(asked(&["n"], &params).0["action"], "decline");
        assert_eq!(asked(&[], &params).0["action"], "cancel");
    }

    #[test]
    fn choices_have_titles_in_every_form_of_the_protocol() {
        let titled =
            json!([{ "const": "s", "title": "Small" }, { "const": "l", "title": "Large" }]);
        for field in [
            json!({ "type": "string", "oneOf": titled }),
            json!({ "type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"] }),
            json!({ "type": "array", "items": { "anyOf": titled } }),
        ] {
            let form = json!({ "requestedSchema": { "properties": { "size": field } } });
            let is_list = field["type"] == "array";
            for typed in ["l", "Large"] {
                let (answer, shown) = asked(&["y", typed], &form);
                assert!(
                    shown.contains("1. s = Small") && shown.contains("2. l = Large"),
                    "{shown}"
                );
                let expected = if is_list { json!(["l"]) } else { json!("l") };
                assert_eq!(answer["content"]["size"], expected, "{typed}");
            }
            assert_eq!(asked(&["y", "x", "x", "x"], &form).0["action"], "cancel");
        }
        // A title that two values have chooses neither.
        let same = json!({ "type": "string", "oneOf": [
            { "const": "a", "title": "One" }, { "const": "b", "title": "One" },
        ] });
        assert_eq!(parse_value("One", &same), None);
    }
}
