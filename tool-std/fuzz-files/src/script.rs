//! Command lines: their static analysis, and the decisions of rules about them.

use std::sync::LazyLock;

use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tool_sdk::{Action, Call, Pipeline, Registry, Rule, Session, Workspace, tools};
use tool_std::exec::exec_command;
use tool_std::shell::{analyze_argv, analyze_script};

use crate::SEAM;

/// A conversation in an empty folder; nothing is run in it.
static PLACE: LazyLock<(Registry, Session, Runtime, tempfile::TempDir)> = LazyLock::new(|| {
    let registry = Registry::builder().add(tools![exec_command]).build().expect("one tool");
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = Workspace::open([folder.path()]).expect("a workspace");
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    (registry, Session::new("fuzz").with_service(workspace), runtime, folder)
});

/// Any text is analysed or opaque; a plain script means exactly its words, and an
/// opaque script is never run without a shell.
pub fn a_script_is_understood(text: &str) {
    let analysis = analyze_script(text);
    assert!(analysis.opaque.is_some() || !analysis.commands.is_empty(), "{text:?}");
    if analysis.opaque.is_some() {
        assert!(!analysis.is_safe() && analysis.direct_argv().is_none(), "{text:?}");
    }
    if !analysis.is_plain {
        return;
    }
    for command in analysis.commands.iter().filter(|command| !command.is_nested) {
        assert!(!command.argv.is_empty(), "{text:?}");
        // What rules match says the same once more.
        let again = analyze_script(&command.text);
        assert_eq!(again.commands[0].argv, command.argv, "{text:?}");
    }
    if let Some(argv) = analysis.direct_argv() {
        let again = &analyze_argv(argv).commands[0].argv;
        // As words, `-lc` is started as `-c`.
        let is_login = argv.get(1).is_some_and(|option| option == "-lc") && again[1] == "-c";
        let skipped = if is_login { 2 } else { 0 };
        assert_eq!(again[skipped..], argv[skipped..], "{text:?}");
    }
}

/// One more rule that forbids never permits more, and one that allows never less.
pub fn a_denial_only_tightens(text: &str) {
    let mut parts = text.split(SEAM);
    let script = parts.next().unwrap_or_default();
    let (Some(allow), Some(deny)) = (parts.next(), parts.next()) else { return };
    if script.is_empty() {
        return;
    }
    let rule = |action, text: &str| Rule::new(action, "exec_command", text);
    let (allow, deny) = (rule(Action::Allow, allow), rule(Action::Deny, deny));
    let verdict = |rules: &[&Rule]| {
        let (registry, session, runtime, _) = &*PLACE;
        let pipeline = Pipeline::new(registry.clone()).rules(rules.iter().copied().cloned());
        let call = Call::new("exec_command", json!({ "cmd": script }).to_string());
        let checked = runtime.block_on(pipeline.check(session, call));
        checked.expect("it is a call").decision.action
    };
    assert!(verdict(&[&allow]) <= verdict(&[]), "{text:?}");
    assert!(verdict(&[&allow, &deny]) >= verdict(&[&allow]), "{text:?}");
    assert!(verdict(&[&deny]) >= verdict(&[]), "{text:?}");
}
