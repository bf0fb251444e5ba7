//! Patches that are sent as commands, as another system has them.

use serde_json::{Value, json};

use crate::support::Host;

/// The commands of models that apply patches. No such program is installed, and the tool applies
/// patches here.
const SENT_ON: &[&str] = &["with_arg", "cd_two_args", "trailing_command"];

// F140: what they take for a patch, or tell how to send as one, is none to run here either.
#[tokio::test]
async fn codex_patch_commands_are_rejected() {
    let text = include_str!("../fixtures/codex-apply-patch-invocation/cases.json");
    let fixture: Value = serde_json::from_str(text).unwrap();
    let host = Host::open();
    for case in fixture["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let words: Vec<&str> =
            case["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let script = match words[0] {
            "apply_patch" | "applypatch" => words.join(" "),
            _ => words.last().unwrap().to_string(),
        };
        let is_patch = case["result"] != "not_patch" || SENT_ON.contains(&name);
        for (tool, arguments) in [
            ("exec_command", json!({ "cmd": script })),
            ("shell_command", json!({ "command": script })),
        ] {
            let outcome = host.outcome(tool, &arguments).await;
            let is_refused = match &outcome.result {
                Err(error) => error.suggestion().is_some_and(|it| it.contains("`apply_patch`")),
                Ok(_) => false,
            };
            assert_eq!(is_refused, is_patch, "{name}: {}", outcome.text());
        }
        // Words are told by the shell that gets them; others have no such program to run.
        if matches!(words[0], "bash" | "apply_patch" | "applypatch") {
            let outcome = host.outcome("shell", &json!({ "command": words })).await;
            let is_refused = outcome.text().contains("a patch is not a command");
            assert_eq!(is_refused, is_patch, "{name}: {}", outcome.text());
        }
    }
    assert_eq!(host.folder.path().read_dir().unwrap().count(), 0, "nothing was changed");
}
