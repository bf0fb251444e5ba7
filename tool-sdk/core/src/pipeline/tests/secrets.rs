//! No part of a secret is published, even when the text about a call is cut or escaped.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::audit::AuditLog;
use crate::call::RawArgs;
use crate::error::ToolError;
use crate::hook::{Hook, HookContext, HookDecision, HookPriority};
use crate::redact::Redactor;
use crate::tool::{ExecutionPermit, InvalidArgs, OutputFuture, PreparedCall, Resource};

/// A tool that touches each part of its text, like a shell.
struct Shell(Definition);

struct Line(String);

impl Tool for Shell {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        let args: Value = serde_json::from_str(args.text()).unwrap();
        Ok(Box::new(Line(args["text"].as_str().unwrap().to_owned())))
    }
}

/// Returns a text as in a title: on one line, and truncated.
fn title(text: &str) -> String {
    let start: String = text.chars().take(60).collect();
    format!("{}…", start.escape_debug())
}

impl PreparedCall for Line {
    fn run(self: Box<Self>, approved: ExecutionPermit) -> OutputFuture {
        approved.context().progress(1, None, title(&self.0));
        Box::pin(async move { Err(ToolError::failed(format!("cannot run {}", title(&self.0)))) })
    }

    fn summary(&self) -> Option<String> {
        Some(title(&self.0))
    }

    fn resources(&self, _: &Context) -> Option<Vec<Resource>> {
        let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts = self.0.split("&&").flat_map(|part| [words(part), part.trim().to_owned()]);
        Some(parts.map(Resource::from).collect())
    }
}

/// Describes a call in its own words.
struct Chatty;

impl Hook for Chatty {
    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        let text = call.arguments_value()["text"].as_str().unwrap_or_default().to_owned();
        Ok(HookDecision::ask(format!("look at {}", title(&text))))
    }
}

/// Collects every string in `value`.
fn texts_of(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, texts)),
        Value::Object(members) => members.values().for_each(|value| texts_of(value, texts)),
        _ => {}
    }
}

/// Returns all texts that are published or recorded about a call that is denied, and about one that
/// runs.
fn published_texts(redactor: &Redactor, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut texts = Vec::new();
    for policy in ["ask t", "allow t"] {
        let shell = Shell(definition("t").risk(Risk::new(RiskClass::Execute)));
        let pipeline = Pipeline::new(Registry::builder().add(shell).build().unwrap())
            .rules([policy.parse().unwrap()])
            .redact_events(redactor.clone())
            .audit(AuditLog::open(&path, redactor.clone()).unwrap());
        let pipeline = match policy {
            "ask t" => pipeline.hook("*", HookPriority::DEFAULT, Chatty),
            _ => pipeline,
        };
        let mut events = pipeline.subscribe();
        let arguments = json!({ "text": text }).to_string();
        let outcome = runtime.block_on(call(&pipeline, Call::new("t", &*arguments)));
        let expected = if policy == "ask t" { ErrorKind::Denied } else { ErrorKind::Failed };
        assert_eq!(outcome.result.unwrap_err().kind(), expected);
        for event in drain(&mut events) {
            texts_of(&serde_json::to_value(&event).unwrap(), &mut texts);
        }
    }
    for line in fs::read_to_string(&path).unwrap().lines() {
        texts_of(&serde_json::from_str(line).unwrap(), &mut texts);
    }
    texts
}

/// Whether enough of a secret is left to reveal something.
fn is_left(secret: &str, text: &str) -> bool {
    let chars: Vec<char> = secret.chars().collect();
    chars.windows(8).any(|piece| text.contains(&piece.iter().collect::<String>()))
}

/// 192 cases, or `PROPTEST_CASES`.
fn case_count() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok());
    ProptestConfig::with_cases(cases.unwrap_or(192))
}

proptest! {
    #![proptest_config(case_count())]

    // LG1, F91: no part of a secret is left where it was cut or escaped.
    #[test]
    fn no_piece_of_a_secret_is_told(
        secret in "([A-Za-z0-9äλ😀]|[\t\n\"'\\\\ \u{202e}]){12,40}",
        token in any::<bool>(),
        before in 0_usize..60,
    ) {
        let (redactor, secret) = match token {
            true => (Redactor::default(), format!("ghp_{}", "a1B2c3D4e5".repeat(3))),
            false => (Redactor::new([&secret]), secret.trim().to_owned()),
        };
        // Shorter strings are not secrets.
        prop_assume!(secret.chars().count() >= 12);
        let text = format!("touch {} {secret} tail && echo {secret}", "-".repeat(before));
        for told in published_texts(&redactor, &text) {
            prop_assert!(!is_left(&secret, &told), "{told:?}");
        }
    }
}

// F62: output in pieces is redacted as one text.
#[tokio::test]
async fn a_secret_is_not_told_in_two_pieces() {
    let tool = tool("t", |_, cx: Context| async move {
        for piece in ["a Zx9q8w7e6r5t4", "y3u2i1o0p b", " Zx9q"] {
            cx.emit_output(piece);
        }
        "done"
    });
    let registry = Registry::builder().add(tool).build().unwrap();
    let redactor = Redactor::new(["Zx9q8w7e6r5t4y3u2i1o0p"]);
    let pipeline = Pipeline::new(registry).redact_events(redactor);
    let mut events = pipeline.subscribe();
    call(&pipeline, Call::new("t", "{}")).await;
    let events = drain(&mut events);
    let output = |event: &ToolEvent| match &event.kind {
        EventKind::Output { text } => Some(text.clone()),
        _ => None,
    };
    let told: Vec<String> = events.iter().filter_map(output).collect();
    assert_eq!(told, ["a ", "[redacted] b", " ", "Zx9q"]);
    assert!(events.last().unwrap().kind.is_terminal());
}
