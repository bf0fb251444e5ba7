//! The tool `reaction_check`: whether the rules are right, and which of them fit an event.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tool_sdk::{Context, Output, ToolError, tool};

use super::discovery::ReactionRules;
use super::expression::EventScope;
use super::rule::EventRule;

/// Check the rules that react to events; with `event`, tell which of them would react.
///
/// Fails with every error of the files, one `FILE:LINE: PROBLEM` each. Nothing is called.
#[tool(
    read,
    hidden,
    category = "reactions",
    display(name = "Reactions", primary = event, summary = "Checking the reactions"),
    example = "{}",
    example = r#"{"event": {"type": "failed", "tool": "shell", "error": "timeout"}}"#
)]
pub async fn reaction_check(
    /// An event, in the form of `call --events`; `type` is its kind.
    event: Option<Map<String, Value>>,
    /// The values of `state.KEY` for the conditions.
    #[arg(default = Map::new())]
    state: Map<String, Value>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let session = cx.session().clone();
    let found = cx.run_blocking(move |_| Ok(ReactionRules::find(&session))).await?;
    if !found.problems.is_empty() {
        return Err(ToolError::failed(found.problems.join("\n"))
            .hint("no rule of a file with an error counts; correct the lines"));
    }
    let mut text = format!("rules: {}, no errors\n", found.len());
    for warning in found.warnings() {
        let _ = writeln!(text, "({warning})");
    }
    let Some(event) = event else {
        return Ok(Output::text(text.trim_end()).display(json!({ "rules": found.len() })));
    };
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let emitted = event.get("kind").and_then(Value::as_str).map(str::to_owned);
    let scope = EventScope::new(&event.into(), &state.into());
    let mut entries = Vec::new();
    for rule in found.rules.iter().filter(|rule| rule.waits_for(&kind, emitted.as_deref())) {
        let (line, entry) = check_rule(rule, &scope);
        text.push_str(&line);
        entries.push(entry);
    }
    if entries.is_empty() {
        let _ = writeln!(text, "No rule waits for events of the type `{}`.", kind.escape_debug());
    }
    let data = json!({ "rules": found.len(), "waiting": entries });
    Ok(Output::text(text.trim_end()).display(data))
}

/// Returns what the rule would do about the event, as a line and as JSON.
fn check_rule(rule: &EventRule, scope: &EventScope) -> (String, Value) {
    let name = &rule.name;
    match rule.holds(scope) {
        Ok(false) => {
            let line = format!("{name}: does not react, because its condition is false\n");
            (line, json!({ "name": name, "reacts": false }))
        }
        Err(problem) => {
            let line = format!("{name}: does not react, because of an error: {problem}\n");
            (line, json!({ "name": name, "reacts": false, "error": problem }))
        }
        Ok(true) => {
            let mut line = format!("{name}: reacts\n");
            let mut calls = Vec::new();
            for action in &rule.actions {
                match action.arguments.render(scope) {
                    Ok(arguments) => {
                        let _ = writeln!(line, "   {} {arguments}", action.tool);
                        calls.push(json!({ "tool": action.tool, "arguments": arguments }));
                    }
                    Err(problem) => {
                        let _ = writeln!(line, "   {} fails: {problem}", action.tool);
                        calls.push(json!({ "tool": action.tool, "error": problem }));
                    }
                }
            }
            (line, json!({ "name": name, "reacts": true, "actions": calls }))
        }
    }
}
