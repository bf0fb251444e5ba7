//! One table of calls and what becomes of them, on every surface: what is true of a call is
//! true however it came.

mod cli;
mod http;
mod mcp;
mod remote;

use std::time::Duration;

use serde_json::{Value, json};
use tool_sdk::{
    Action, ApprovalResponse, Attachment, Budget, Call, Context, Definition, DynamicTool,
    EventKind, Output, Pipeline, Registry, Risk, RiskClass, Rule, Schema, ScriptedApprover,
    Session, ToolError, ToolName,
};

/// A call, and what becomes of it.
struct Scenario {
    tool: &'static str,
    arguments: &'static str,
    /// Whether the tool gives a result.
    goes_well: bool,
    /// A part of what the model reads.
    says: &'static str,
    structured: Option<Value>,
    /// How many attachments the result has.
    attachments: usize,
    /// The parts that the tool tells while it runs.
    parts: &'static [&'static str],
    /// Whether a person approves calls.
    is_approved: bool,
}

fn well(tool: &'static str, arguments: &'static str, says: &'static str) -> Scenario {
    Scenario {
        tool,
        arguments,
        goes_well: true,
        says,
        structured: None,
        attachments: 0,
        parts: &[],
        is_approved: false,
    }
}

fn fails(tool: &'static str, arguments: &'static str, says: &'static str) -> Scenario {
    Scenario { goes_well: false, ..well(tool, arguments, says) }
}

fn scenarios() -> Vec<Scenario> {
    vec![
        well("say", r#"{"text": "hi"}"#, "hi"),
        well("speak", r#"{"text": "by its alias"}"#, "by its alias"),
        Scenario { structured: Some(json!({ "n": 1 })), ..well("count", "{}", r#"{"n":1}"#) },
        well("long", "{}", "bytes left out]"),
        fails("say", "{}", "`text` is required"),
        fails("say", r#"{"text": 5}"#, "must be a string"),
        fails("say", r#"{"text": "a", "text": "b"}"#, "twice"),
        fails("say", r#"{"text": "a", "txet": "b"}"#, "did you mean `text`?"),
        fails("fail", "{}", "it changed\nhint: look again"),
        Scenario { structured: Some(json!({ "tried": 3 })), ..fails("give_up", "{}", "no luck") },
        fails("panic", "{}", "a defect of its own"),
        fails("sleep", "{}", "was stopped after"),
        fails("forbidden", "{}", "the rule `deny forbidden`"),
        fails("write", "{}", "no rule matches it"),
        Scenario { is_approved: true, ..well("write", "{}", "written") },
        fails("abort", "{}", "it was called off"),
        fails("sya", r#"{"text": "hi"}"#, "`sya`"),
        Scenario { parts: &["one", "two"], ..well("parts", "{}", "all of it") },
        Scenario { attachments: 1, ..well("draw", "{}", "a dot") },
    ]
}

/// What became of a call, as a surface tells it.
struct Told {
    goes_well: bool,
    text: String,
    structured: Option<Value>,
    /// The attachments, by MIME type.
    attachments: Vec<String>,
    /// The parts, where the surface shows them one by one.
    parts: Option<Vec<String>>,
}

impl Told {
    fn new(goes_well: bool, text: impl Into<String>, structured: Option<Value>) -> Self {
        Self { goes_well, text: text.into(), structured, attachments: Vec::new(), parts: None }
    }
}

#[track_caller]
fn check(surface: &str, scenario: &Scenario, told: &Told) {
    let Scenario { tool, arguments, .. } = scenario;
    let begins: String = told.text.chars().take(500).collect();
    let what = format!("{surface}: {tool} {arguments}: {begins}");
    assert_eq!(told.goes_well, scenario.goes_well, "{what}");
    assert!(told.text.contains(scenario.says), "{what}");
    assert!(!told.text.contains("a secret"), "{what}");
    assert_eq!(told.structured, scenario.structured, "{what}");
    assert_eq!(told.attachments, vec!["image/png"; scenario.attachments], "{what}");
    if let Some(parts) = &told.parts {
        assert_eq!(parts, scenario.parts, "{what}");
    }
}

fn definition(name: &'static str, class: RiskClass, properties: Value) -> Definition {
    let required: Vec<&String> =
        properties.as_object().into_iter().flat_map(|it| it.keys()).collect();
    let schema = json!({
        "type": "object", "required": required, "properties": properties,
        "additionalProperties": false,
    });
    let schema = Schema::from_value(schema).expect("a schema");
    Definition::new(ToolName::from_static(name), "Does it.", schema).risk(Risk::new(class))
}

fn plain(name: &'static str) -> Definition {
    definition(name, RiskClass::Read, json!({}))
}

/// A tool for every way in which a call can go.
fn registry() -> Registry {
    let mut say = definition("say", RiskClass::Read, json!({ "text": { "type": "string" } }));
    say.aliases = vec![ToolName::from_static("speak")];
    Registry::builder()
        .add(DynamicTool::new(say, |args: Value, _: Context| async move {
            args["text"].as_str().unwrap_or_default().to_owned()
        }))
        .add(DynamicTool::new(plain("count"), |_: Value, _: Context| async {
            Output::json(&json!({ "n": 1 })).map_err(ToolError::internal)
        }))
        .add(DynamicTool::new(plain("long"), |_: Value, _: Context| async {
            "a line\n".repeat(3000)
        }))
        .add(DynamicTool::new(plain("fail"), |_: Value, _: Context| async {
            Err::<Output, _>(ToolError::conflict("it changed").hint("look again"))
        }))
        .add(DynamicTool::new(plain("give_up"), |_: Value, _: Context| async {
            let given = Output::default().structured(json!({ "tried": 3 }));
            Err::<Output, _>(ToolError::failed("no luck").with_output(given))
        }))
        .add(DynamicTool::new(plain("panic"), |_: Value, _: Context| async {
            if true {
                panic!("a secret");
            }
            "never"
        }))
        .add(DynamicTool::new(
            plain("sleep").timeout(Duration::from_millis(20)),
            |_: Value, _: Context| async {
                std::future::pending::<()>().await;
                "never"
            },
        ))
        .add(DynamicTool::new(plain("forbidden"), |_: Value, _: Context| async { "never" }))
        .add(DynamicTool::new(
            definition("write", RiskClass::Write, json!({})),
            |_: Value, _: Context| async { "written" },
        ))
        .add(DynamicTool::new(plain("abort"), |_: Value, _: Context| async {
            Err::<Output, _>(ToolError::aborted("it was called off"))
        }))
        .add(DynamicTool::new(plain("parts"), |_: Value, cx: Context| async move {
            cx.emit_output("one");
            tokio::task::yield_now().await;
            cx.emit_output("two");
            "all of it"
        }))
        .add(DynamicTool::new(plain("draw"), |_: Value, _: Context| async {
            Output::text("a dot").attach(Attachment::bytes("image/png", vec![1, 2, 3]))
        }))
        .build()
        .expect("a registry")
}

fn pipeline(is_approved: bool) -> Pipeline {
    let rule = Rule::parse(Action::Deny, "forbidden").expect("a rule");
    let pipeline = Pipeline::new(registry()).rules([rule]).budget(Budget::default());
    match is_approved {
        true => pipeline.approver(ScriptedApprover::always_respond(ApprovalResponse::Once)),
        false => pipeline,
    }
}

#[tokio::test]
async fn through_the_pipeline() {
    for scenario in scenarios() {
        let pipeline = pipeline(scenario.is_approved);
        let mut events = pipeline.subscribe();
        let call = Call::new(scenario.tool, scenario.arguments);
        let outcome = pipeline.call(&Session::default(), call).await;
        let output = outcome.result.as_ref().map_or_else(ToolError::output, Some);
        let goes_well = outcome.result.is_ok();
        let mut told = Told::new(goes_well, outcome.text(), output.and_then(Output::to_structured));
        let attachments = output.map(Output::attachments).unwrap_or_default();
        told.attachments = attachments.iter().map(|it| it.mime.clone()).collect();
        let mut parts = Vec::new();
        while let Some(event) = events.try_recv() {
            if let EventKind::Output { text } = event.kind {
                parts.push(text);
            }
        }
        told.parts = Some(parts);
        check("pipeline", &scenario, &told);
    }
}
