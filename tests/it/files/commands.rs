//! Hooks that are commands, as users of Claude Code write them, in front of the standard tools.

use tool_sdk::{ExternalHooks, HookPriority, Mode};
use tool_std::exec::exec_command;

use super::*;

/// A pipeline with one command for `matcher`; everything may run.
struct Guarded {
    folder: TempDir,
    pipeline: Pipeline,
    session: Session,
}

impl Guarded {
    fn new(matcher: &str, script: &str) -> Self {
        Self::on("PreToolUse", matcher, script)
    }

    fn on(event: &str, matcher: &str, script: &str) -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("keep"), "kept").unwrap();
        let hook = json!({ "type": "command", "args": ["python3", "-c", script] });
        let config = json!({ event: [{ "matcher": matcher, "hooks": [hook] }] });
        let (hooks, errors) = ExternalHooks::from_value(&config);
        assert_eq!(errors, []);
        let hooks = hooks.in_folder(folder.path());
        let registry =
            Registry::builder().add(tools![write_file, edit_file, exec_command]).build().unwrap();
        let pipeline = Pipeline::new(registry)
            .rules(["ask edit".parse::<Rule>().unwrap(), "ask run".parse().unwrap()])
            .hook("*", HookPriority::DEFAULT, hooks)
            .approver(Asked { yes: true, ..Asked::default() });
        let session = Session::new("s").with_service(Workspace::open([folder.path()]).unwrap());
        Self { folder, pipeline, session }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.pipeline.call(&self.session, Call::new(tool, arguments.to_string())).await
    }

    fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join(name)).ok()
    }
}

/// Denies commands that remove.
const NO_RM: &str = r#"
import json, sys
call = json.load(sys.stdin)
if call["tool_name"] == "Bash" and call["tool_input"].get("command", "").startswith("rm "):
    print("nothing is removed here", file=sys.stderr)
    sys.exit(2)
"#;

/// Denies keys, by their absolute path.
const NO_KEYS: &str = r#"
import json, os, sys
call = json.load(sys.stdin)
path = call["tool_input"].get("file_path", "")
if call["tool_name"] in ("Write", "Edit") and os.path.isabs(path) and path.endswith(".pem"):
    print(f"{os.path.basename(path)} is a key", file=sys.stderr)
    sys.exit(2)
"#;

// F67: a guard for `Bash` guards the tool that has this as another name.
#[tokio::test]
async fn a_guard_for_another_name_reads_the_names_that_it_knows() {
    for event in ["PreToolUse", "PermissionRequest"] {
        for matcher in ["Bash", "^(Bash|Agent)$"] {
            let guarded = Guarded::on(event, matcher, NO_RM);
            for name in ["cmd", "command"] {
                let outcome = guarded.call("exec_command", json!({ name: "rm keep" })).await;
                let text = outcome.text().into_owned();
                assert!(text.contains("nothing is removed here"), "{event} {matcher}: {text}");
                assert_eq!(guarded.file("keep").as_deref(), Some("kept"));
            }
        }
        for name in ["path", "file_path"] {
            let guarded = Guarded::on(event, "Write|Edit", NO_KEYS);
            let arguments = json!({ name: "a.pem", "content": "x" });
            let outcome = guarded.call("write_file", arguments).await;
            assert!(outcome.text().contains("a.pem is a key"), "{event}: {}", outcome.text());
            assert_eq!(guarded.file("a.pem"), None);
            let arguments = json!({ name: "a.txt", "content": "x" });
            guarded.call("write_file", arguments).await.result.unwrap();
        }
    }
}

// F64, F67: what a command changes under a name that it knows is changed for the tool.
#[tokio::test]
async fn changes_come_back_under_the_names_that_were_shown() {
    let echoes = r#"
import json, sys
given = json.load(sys.stdin)["tool_input"]
given["file_path"] += ".txt"
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": given}}))
"#;
    let changes = r#"
import json
given = {"file_path": "a.txt"}
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": given}}))
"#;
    for script in [echoes, changes] {
        for name in ["path", "file_path"] {
            let guarded = Guarded::new("Write", script);
            guarded.call("write_file", json!({ name: "a", "content": "a" })).await.result.unwrap();
            // The content is not a path, although it looks like the one that was sent.
            assert_eq!(guarded.file("a.txt").as_deref(), Some("a"));
            assert_eq!(guarded.file("a"), None);
        }
    }
}

// F67: the mode is the one that holds for the call.
#[tokio::test]
async fn commands_are_told_the_mode_of_the_session_and_how_deep_its_agent_is() {
    let tells = r#"
import json, sys
call = json.load(sys.stdin)
open("told", "w").write(f"{call['permission_mode']} {call.get('depth')}")
"#;
    let mut guarded = Guarded::new("*", tells);
    let told = async |guarded: &Guarded| {
        guarded.call("write_file", json!({ "path": "a", "content": "" })).await;
        guarded.file("told").unwrap()
    };
    assert_eq!(told(&guarded).await, "default None");
    guarded.session = guarded.session.with_metadata("depth", 2).with_mode(Mode::Plan);
    assert_eq!(told(&guarded).await, "plan 2");
    guarded.pipeline = guarded.pipeline.mode(Mode::Bypass);
    assert_eq!(told(&guarded).await, "plan 2");
}

// HK1: a hook that fails is nobody's no.
#[tokio::test]
async fn a_hook_in_place_of_a_person_is_never_told_as_a_person() {
    for (script, expected) in [
        ("import sys; sys.exit(1)", "the hook `python3` failed with exit code 1"),
        ("print('{')", "the hook `python3` gave an answer that cannot be read"),
        ("import os; os.kill(os.getpid(), 9)", "the hook `python3` was ended by signal 9"),
        ("import sys; print('no', file=sys.stderr); sys.exit(2)", "the hook `python3` says: no"),
        ("import sys; sys.exit(2)", "the hook `python3` denies it"),
    ] {
        let guarded = Guarded::on("PermissionRequest", "Write", script);
        let outcome = guarded.call("write_file", json!({ "path": "a", "content": "" })).await;
        let text = outcome.text();
        assert!(text.contains(expected) && !text.contains("user"), "{text}");
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
        assert_eq!(guarded.file("a"), None);
    }
}
