//! The tool `reaction_list`: the rules that react to events, and what they did.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tool_sdk::{Context, Output, ToolError, tool};

use super::counters::ReactionCounters;
use super::discovery::ReactionRules;
use super::rule::EventRule;

/// List the rules that react to events: what each waits for, and what it did in this session.
///
/// Rules are in `reactions.toml` of the user's configuration folder, and in `.agents/reactions.toml` of
/// projects whose folder the user trusts.
#[tool(
    read,
    hidden,
    category = "reactions",
    display(name = "Reactions", summary = "Listing the reactions"),
    example = "{}"
)]
pub async fn reaction_list(cx: &Context) -> Result<Output, ToolError> {
    let session = cx.session().clone();
    let found = cx.run_blocking(move |_| Ok(ReactionRules::find(&session))).await?;
    let counters = cx.session().extension::<ReactionCounters>();
    let mut text = String::new();
    for rule in &*found.rules {
        describe_rule(&mut text, rule, &counters);
    }
    if found.is_empty() {
        text.push_str("(There are no reactions.)\n");
    }
    for warning in found.warnings() {
        let _ = writeln!(text, "({warning})");
    }
    let entries: Vec<Value> = found.rules.iter().map(|rule| rule_json(rule, &counters)).collect();
    Ok(Output::text(text.trim_end()).metadata("reactions", found.len()).display(json!({
        "reactions": entries,
        "problems": found.problems,
        "untrusted": found.untrusted,
    })))
}

fn describe_rule(text: &mut String, rule: &EventRule, counters: &ReactionCounters) {
    let entry = rule.describe();
    let join = |key: &str| {
        let items = entry[key].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
    };
    let (on, actions) = (join("on"), join("actions"));
    let place = &rule.place;
    let file = place.file.display();
    let _ = writeln!(text, "{} ({file}:{}): on {on}: {actions}", rule.name, place.line);
    if let Some(when) = &rule.condition {
        let _ = writeln!(text, "   when {}", when.source());
    }
    let done = counters.of_rule(&rule.name);
    if done.events > 0 {
        let _ = writeln!(
            text,
            "   {} events, {} matches, {} actions, {} failed, {} suppressed",
            done.events, done.matches, done.actions, done.failed_actions, done.suppressed
        );
    }
}

fn rule_json(rule: &EventRule, counters: &ReactionCounters) -> Value {
    let mut entry = rule.describe();
    let done = serde_json::to_value(counters.of_rule(&rule.name)).unwrap_or_default();
    entry.insert("counters".to_owned(), done);
    entry.into()
}
