//! Parses tool calls that a model writes into its text, for providers without tool calls.
//!
//! Three XML-like syntaxes are common:
//!
//! ```text
//! <tool_call>{"name": "say", "arguments": {"text": "hi"}}</tool_call>
//! <invoke name="say"><parameter name="text">hi</parameter></invoke>
//! <function=say><parameter=text>hi</parameter></function>
//! ```
//!
//! **Invariant:** an incomplete call is ignored, and nothing is repaired here. Invalid arguments
//! are reported when the call is decoded.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::{Call, Leniency, RawArgs};
use crate::schema::Schema;
use crate::toolset::ToolsetView;

/// Returns the tool calls in `text`, in their order, as if the provider had sent them.
///
/// Values between tags are strings. If the tool's schema in `view` expects another type, they are
/// parsed as JSON. Nothing is unescaped, because models do not escape.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Registry, Toolset, provider};
///
/// let view = Toolset::new(Registry::builder().build()?).view();
/// let calls = provider::parse_text_calls(
///     r#"Let me see. <tool_call>{"name": "look", "arguments": {"at": "sky"}}</tool_call>"#,
///     &view,
/// );
/// assert_eq!((&*calls[0].name, calls[0].arguments.text()), ("look", r#"{"at": "sky"}"#));
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[must_use]
pub fn parse_text_calls(text: &str, view: &ToolsetView) -> Vec<Call<'static>> {
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some((form, inside)) = find_next_call(rest) {
        let Some((body, after)) = inside.split_once(form.end_tag()) else { break };
        calls.extend(form.parse_call(body, view));
        rest = after;
    }
    calls
}

/// The syntax of a call.
#[derive(Clone, Copy)]
enum CallSyntax {
    Json,
    Invoke,
    Function,
}

/// Finds the first call in `text`, and returns the text after its start tag.
fn find_next_call(text: &str) -> Option<(CallSyntax, &str)> {
    let begins = |at: usize| {
        let forms = [CallSyntax::Json, CallSyntax::Invoke, CallSyntax::Function];
        forms.into_iter().find_map(|form| Some((form, text[at..].strip_prefix(form.start_tag())?)))
    };
    // Some models nest a call in another syntax inside `<tool_call>`.
    let is_call = |&(form, inside): &(CallSyntax, &str)| match form {
        CallSyntax::Json => inside.trim_start().starts_with('{'),
        CallSyntax::Invoke | CallSyntax::Function => true,
    };
    text.match_indices('<').filter_map(|(at, _)| begins(at)).find(is_call)
}

impl CallSyntax {
    const fn start_tag(self) -> &'static str {
        match self {
            Self::Json => "<tool_call>",
            Self::Invoke => "<invoke name=\"",
            Self::Function => "<function=",
        }
    }

    const fn end_tag(self) -> &'static str {
        match self {
            Self::Json => "</tool_call>",
            Self::Invoke => "</invoke>",
            Self::Function => "</function>",
        }
    }

    /// Returns the text before and after the name of a parameter.
    const fn parameter_tags(self) -> (&'static str, &'static str) {
        match self {
            Self::Json | Self::Function => ("<parameter=", ">"),
            Self::Invoke => ("<parameter name=\"", "\">"),
        }
    }

    /// Parses the call between start tag and end tag.
    fn parse_call(self, body: &str, view: &ToolsetView) -> Option<Call<'static>> {
        if let Self::Json = self {
            let written: JsonCall<'_> = serde_json::from_str(body).ok()?;
            let arguments = written.arguments.map_or("{}", RawValue::get).to_owned();
            return Some(Call::new(written.name, arguments));
        }
        let (begin, end) = self.parameter_tags();
        let (name, mut rest) = body.split_once(end)?;
        let schema = view.get(name).map(|tool| &tool.definition().parameters);
        let mut arguments = Vec::new();
        while let Some((_, parameter)) = rest.split_once(begin) {
            let (key, value) = parameter.split_once(end)?;
            let (value, after) = value.split_once("</parameter>")?;
            let value = parse_value(value, key, schema);
            arguments.push(format!("{}:{value}", Value::from(key)));
            rest = after;
        }
        // As text, so that decoding detects duplicate parameters.
        let arguments = RawArgs::from(format!("{{{}}}", arguments.join(",")));
        let lenient = Leniency::default().stringified();
        Some(Call::new(name.to_owned(), arguments.lenient(lenient)))
    }
}

/// A call in JSON. The arguments stay unparsed.
#[derive(Deserialize)]
struct JsonCall<'a> {
    name: String,
    #[serde(borrow, alias = "parameters")]
    arguments: Option<&'a RawValue>,
}

/// Returns a string, or a parsed value if the schema expects another type.
fn parse_value(written: &str, key: &str, schema: Option<&Schema>) -> Value {
    let text = written.strip_prefix('\n').unwrap_or(written);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let takes_text = match schema.and_then(|schema| schema.property(key)?.get("type")) {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => true,
    };
    let read = if takes_text { None } else { serde_json::from_str(text).ok() };
    read.unwrap_or_else(|| Value::from(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::context::Context;
    use crate::name::ToolName;
    use crate::registry::Registry;
    use crate::tool::{Definition, DynamicTool};
    use crate::toolset::Toolset;

    fn toolset() -> Toolset {
        let schema = Schema::from_value(json!({
            "type": "object",
            "properties": {
                "text": { "type": "string" },
                "times": { "type": ["integer", "null"] },
                "tags": { "type": "array", "items": { "type": "string" } },
            },
        }));
        let say = Definition::new(ToolName::from_static("say"), "Says it.", schema.unwrap());
        let say = DynamicTool::new(say, |_: Value, _: Context| async { "said" });
        Toolset::new(Registry::builder().add(say).build().unwrap())
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, Value)]) {
        let calls: Vec<_> = parse_text_calls(text, &toolset().view())
            .into_iter()
            .map(|call| {
                let arguments = serde_json::from_str(call.arguments.text()).unwrap_or_default();
                (call.name.into_owned(), arguments)
            })
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        assert_eq!(calls, expected, "{text}");
    }

    // F50: every syntax gives the call that a provider would have sent.
    #[test]
    fn every_way_of_writing_is_the_same_call() {
        let expected = [("say", json!({ "text": "1 < 2", "times": 3, "tags": ["a"] }))];
        for text in [
            r#"<tool_call>
            {"name": "say", "arguments": {"text": "1 < 2", "times": 3, "tags": ["a"]}}
            </tool_call>"#,
            r#"<tool_call>{"name":"say","parameters":{"text":"1 < 2","times":3,"tags":["a"]}}</tool_call>"#,
            "<function_calls><invoke name=\"say\">\n<parameter name=\"text\">1 < 2</parameter>\n\
             <parameter name=\"times\">3</parameter><parameter name=\"tags\">[\"a\"]</parameter>\n\
             </invoke></function_calls>",
            "<tool_call>\n<function=say>\n<parameter=text>\n1 < 2\n</parameter>\n\
             <parameter=times>\n3\n</parameter><parameter=tags>[\"a\"]</parameter>\n\
             </function>\n</tool_call>",
        ] {
            check(text, &expected);
        }
    }

    #[test]
    fn a_text_may_hold_any_number_of_calls() {
        check("no call", &[]);
        check("<tool_call>{\"name\": \"say\"}</tool_call>", &[("say", json!({}))]);
        check(
            "First <invoke name=\"say\"></invoke> then <function=other>\
             <parameter=n>1</parameter></function> and <tool_call>{\"name\":\"say\"}</tool_call>.",
            &[("say", json!({})), ("other", json!({ "n": "1" })), ("say", json!({}))],
        );
    }

    #[test]
    fn what_is_not_whole_is_no_call() {
        for text in [
            "<tool_call>{\"name\": \"say\"",
            "<tool_call>{\"name\": \"say\"}",
            "<tool_call>say</tool_call>",
            "<tool_call>{\"arguments\": {}}</tool_call>",
            "<tool_call>{\"name\": \"say\", \"arguments\": {</tool_call>",
            "<invoke name=\"say\"><parameter name=\"text\">rm -r",
            "<invoke name=\"say\"><parameter name=\"text\">rm -r</invoke>",
            "<invoke name=\"say</invoke>",
            "<function=say><parameter=text>",
        ] {
            check(text, &[]);
        }
    }

    // Duplicate parameters are ambiguous, so they are passed on.
    #[test]
    fn a_parameter_that_was_written_twice_stays_twice() {
        let twice = "<function=say><parameter=text>a</parameter><parameter=text>b</parameter>\
                     </function>";
        let calls = parse_text_calls(twice, &toolset().view());
        assert_eq!(calls[0].arguments.text(), r#"{"text":"a","text":"b"}"#);
    }
}
