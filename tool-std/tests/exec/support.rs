//! A pipeline over the tools, in a folder of its own.

use serde_json::{Value, json};
use tool_sdk::{
    Action, Call, CheckOutcome, Mode, Outcome, Pipeline, Registry, Rule, Session, ToolError,
    ToolSettings, Workspace, tools,
};
use tool_std::exec::{
    exec_command, kill_session, list_sessions, shell, shell_command, write_stdin,
};

pub(crate) struct Host {
    pub(crate) pipeline: Pipeline,
    pub(crate) session: Session,
    pub(crate) folder: tempfile::TempDir,
}

impl Host {
    pub(crate) fn new(mode: Mode, rules: &[&str]) -> Self {
        let tools =
            tools![exec_command, kill_session, list_sessions, shell, shell_command, write_stdin];
        let registry = Registry::builder().add(tools).build().unwrap();
        let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open([folder.path()]).unwrap();
        Self {
            pipeline: Pipeline::new(registry).mode(mode).rules(rules),
            session: Session::new("test").with_service(workspace),
            folder,
        }
    }

    /// One that runs everything.
    pub(crate) fn open() -> Self {
        Self::new(Mode::Bypass, &[])
    }

    pub(crate) fn distrusting(mut self) -> Self {
        let mut settings = ToolSettings::default();
        settings.safe_commands = false;
        self.session = self.session.with_service(settings);
        self
    }

    pub(crate) async fn outcome(&self, tool: &'static str, arguments: &Value) -> Outcome {
        self.pipeline.call(&self.session, Call::new(tool, arguments.to_string())).await
    }

    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> String {
        let outcome = self.outcome(tool, &arguments).await;
        assert!(outcome.result.is_ok(), "{tool} {arguments}: {}", outcome.text());
        outcome.text().into_owned()
    }

    pub(crate) async fn error(&self, tool: &'static str, arguments: Value) -> ToolError {
        let outcome = self.outcome(tool, &arguments).await;
        outcome.result.expect_err("it must fail")
    }
}

/// What becomes of a call, without running it.
pub(crate) async fn check(host: &Host, tool: &'static str, arguments: &Value) -> CheckOutcome {
    let call = Call::new(tool, arguments.to_string());
    let checked: Result<CheckOutcome, ToolError> = host.pipeline.check(&host.session, call).await;
    checked.unwrap()
}

/// What becomes of a command line; the other families judge alike.
pub(crate) async fn decide(mode: Mode, rules: &[&str], cmd: &str) -> Action {
    let host = Host::new(mode, rules);
    let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
    let line = check(&host, "shell_command", &json!({ "command": cmd })).await;
    assert_eq!(checked.decision.action, line.decision.action, "{cmd}");
    checked.decision.action
}

/// What stands behind `label` in a report.
pub(crate) fn field<'a>(report: &'a str, label: &str) -> &'a str {
    let line = report.lines().find_map(|line| line.strip_prefix(label));
    line.unwrap_or_else(|| panic!("no `{label}` in {report}")).trim()
}

pub(crate) fn session_of(report: &str) -> u32 {
    field(report, "Process running with session ID ").parse().unwrap()
}

/// The output in a report.
pub(crate) fn output(report: &str) -> &str {
    report.split_once("Output:\n").unwrap().1
}
