//! Judging as it is done: rules in a pipeline over the tools that run commands.

use std::sync::LazyLock;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tool_sdk::{Action, Call, Decision, Pipeline, Registry, Rule, Session, Workspace, tools};
use tool_std::exec::{exec_command, shell};
use tool_std::shell::ScriptAnalysis;

/// What becomes of a script; a stricter verdict is greater.
pub(crate) use tool_sdk::Action as Verdict;

/// A conversation in an empty folder, which everybody shares: nothing is run in it.
static PLACE: LazyLock<(Registry, Session, tempfile::TempDir)> = LazyLock::new(|| {
    let registry = Registry::builder().add(tools![exec_command, shell]).build();
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = Workspace::open([folder.path()]).expect("a workspace");
    (registry.expect("two tools"), Session::new("test").with_service(workspace), folder)
});

pub(crate) struct Rules {
    pipeline: Pipeline,
    runtime: Runtime,
}

impl Rules {
    pub(crate) fn new(allow: &[&str], deny: &[&str]) -> Self {
        let rule = |action| move |text: &&str| Rule::new(action, "exec_command", *text);
        let allow = allow.iter().map(rule(Action::Allow));
        Self::of(allow.chain(deny.iter().map(rule(Action::Deny))).collect())
    }

    pub(crate) fn of(rules: Vec<Rule>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        Self {
            pipeline: Pipeline::new(PLACE.0.clone()).rules(rules),
            runtime: runtime.expect("a runtime"),
        }
    }

    pub(crate) fn script(&self, script: &str) -> Verdict {
        self.check("exec_command", &json!({ "cmd": script }))
    }

    pub(crate) fn argv(&self, argv: &[String]) -> Verdict {
        self.decide(argv).action
    }

    /// What is decided of a program with its arguments, and why.
    pub(crate) fn decide(&self, argv: &[String]) -> Decision {
        self.decision("shell", &json!({ "command": argv }))
    }

    fn check(&self, tool: &'static str, arguments: &Value) -> Verdict {
        self.decision(tool, arguments).action
    }

    fn decision(&self, tool: &'static str, arguments: &Value) -> Decision {
        let call = Call::new(tool, arguments.to_string());
        let checked = self.runtime.block_on(self.pipeline.check(&PLACE.1, call));
        checked.expect("it is a call").decision
    }
}

/// A file of the corpus or of another project.
#[macro_export]
macro_rules! fixture {
    ($path:literal) => {
        serde_json::from_str(include_str!(concat!("../fixtures/", $path))).expect("it is JSON")
    };
}

pub(crate) fn texts(script: &ScriptAnalysis) -> Vec<&str> {
    script.commands.iter().map(|command| &*command.text).collect()
}
