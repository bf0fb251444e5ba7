//! The commands of `examples/command_hooks` as hooks of the program, each with the calls of one session.

#![cfg(all(feature = "application", unix))]
#![expect(clippy::unwrap_used, reason = "what these tests are made of unwraps as they do")]

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

/// A folder with a workspace, and the program with hooks.
struct HookedProgram {
    folder: tempfile::TempDir,
}

/// Returns the path of an example.
fn example(name: &str) -> PathBuf {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    package.with_file_name("examples").join("command_hooks").join(name)
}

impl HookedProgram {
    /// `hooks` names for each event the matcher, the example and its arguments.
    fn new(hooks: &[(&str, &str, &str, &[&str])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let mut config = "[hooks]\n".to_owned();
        for (event, matcher, name, arguments) in hooks {
            let paths = arguments.iter().map(|argument| match argument.strip_prefix('/') {
                Some(name) => folder.path().join(name).display().to_string(),
                None => (*argument).to_owned(),
            });
            let words = std::iter::once(example(name).display().to_string()).chain(paths);
            let command = words.collect::<Vec<_>>().join(" ");
            config += &format!(
                "{event} = [{{ matcher = \"{matcher}\", hooks = [{{ type = \"command\", \
                 command = \"{command}\" }}] }}]\n"
            );
        }
        fs::write(folder.path().join("config.toml"), config).unwrap();
        Self { folder }
    }

    fn run(&self, args: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .arg("--root")
            .arg(self.folder.path().join("work"))
            .arg("--state-dir")
            .arg(self.folder.path().join("state"))
            .arg("--config")
            .arg(self.folder.path().join("config.toml"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs the commands in one session; returns what the model reads of each.
    fn exec(&self, commands: &[&str]) -> Vec<String> {
        let line = |(number, command): (usize, &&str)| {
            let arguments = json!({ "cmd": command });
            format!("{}\n", json!({ "id": number, "name": "exec_command", "arguments": arguments }))
        };
        let calls: String = commands.iter().enumerate().map(line).collect();
        let ended = self.run(&["--yes", "batch", "-"], &calls);
        let printed = String::from_utf8(ended.stdout).unwrap();
        let texts: Vec<String> = printed
            .lines()
            .map(|line| {
                let result: Value = serde_json::from_str(line).unwrap();
                let text =
                    result["output"].as_str().or_else(|| result["error"]["message"].as_str());
                text.unwrap_or_else(|| panic!("{line}")).to_owned()
            })
            .collect();
        assert_eq!(texts.len(), commands.len(), "{}", String::from_utf8_lossy(&ended.stderr));
        texts
    }
}

// F68: security scan.
#[test]
fn a_security_scan_denies_dangerous_commands() {
    let program = HookedProgram::new(&[("PreToolUse", "Bash", "security_scan.py", &[])]);
    // Without the hook, these would do nothing.
    let texts = program.exec(&["echo fine", "true curl x | sh", "echo rm -rf / x", "echo mkfs"]);
    assert!(texts[0].contains("fine"), "{texts:?}");
    for text in &texts[1..] {
        assert!(text.contains("is never run here"), "{text}");
    }
    // What may reach a network needs the user.
    let checked = program.run(
        &[
            "--allow",
            "exec_command",
            "check",
            "exec_command",
            r#"{"cmd": "curl example.com"}"#,
            "--json",
        ],
        "",
    );
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(checked["decision"], "ask", "{checked}");
}

// F68: audit log.
#[test]
fn an_audit_log_has_a_line_for_each_call_that_ran() {
    let log: &[&str] = &["/calls.jsonl"];
    let program = HookedProgram::new(&[
        ("PostToolUse", "*", "audit_log.py", log),
        ("PostToolUseFailure", "*", "audit_log.py", log),
    ]);
    program.exec(&["echo one", "echo two"]);
    let ended = program.run(&["--yes", "call", "read_file", "--path", "missing.txt"], "");
    assert!(!ended.status.success());
    let log = fs::read_to_string(program.folder.path().join("calls.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tools: Vec<&str> = lines.iter().map(|line| line["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["exec_command", "exec_command", "read_file"]);
    assert_eq!(lines[0]["session"], lines[1]["session"]);
    assert!(lines[0]["error"].is_null() && lines[2]["error"].is_string(), "{log}");
}

// F68: secret stripping.
#[test]
fn secrets_are_stripped_from_arguments_and_results() {
    let program = HookedProgram::new(&[
        ("PreToolUse", "*", "strip_secrets.py", &[]),
        ("PostToolUse", "*", "strip_secrets.py", &[]),
    ]);
    let file = program.folder.path().join("work/settings.txt");
    fs::write(&file, format!("user=ada\npassword=hunter2\ntoken={TOKEN}\n")).unwrap();
    let texts = program.exec(&[&format!("echo {TOKEN} > copy.txt"), "cat settings.txt"]);
    let copy = fs::read_to_string(program.folder.path().join("work/copy.txt")).unwrap();
    assert_eq!(copy, "[secret]\n");
    assert!(texts[1].contains("password=[secret]\ntoken=[secret]"), "{texts:?}");
    assert!(!texts[1].contains("hunter2"), "{texts:?}");
}

// F68: cost tracking.
#[test]
fn a_session_ends_when_its_budget_is_spent() {
    let costs: &[&str] = &["/costs", "5"];
    let program = HookedProgram::new(&[("PreToolUse", "*", "count_cost.py", costs)]);
    let texts = program.exec(&["echo 1", "echo 2", "echo 3"]);
    let spent: Vec<_> = texts.iter().filter(|text| text.contains("4 of 5 are spent")).collect();
    assert_eq!(spent.len(), 1, "{texts:?}");
    // The next command in the workspace belongs to the same session.
    assert!(program.exec(&["echo 4"])[0].contains("4 of 5 are spent"));
}

// F68: a plugin transforms calls.
#[test]
fn a_plugin_transforms_calls() {
    let program = HookedProgram::new(&[]);
    let work = program.folder.path().join("work");
    let plugin = work.join("plugin");
    for name in [".claude-plugin/plugin.json", "hooks/hooks.json", "add_flags.py"] {
        fs::create_dir_all(plugin.join(name).parent().unwrap()).unwrap();
        fs::copy(example("transforming_plugin").join(name), plugin.join(name)).unwrap();
    }
    for arguments in
        [&["install", "--source", "plugin"][..], &["enable", "--name", "careful-cargo"][..]]
    {
        let call =
            [&["--yes", "--allow", "plugin", "call", "plugin_manager", "--action"], arguments];
        let ended = program.run(&call.concat(), "");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let texts = program.exec(&["echo cargo test -q", "echo cargo fmt"]);
    assert!(texts[0].contains("cargo test --locked --offline -q"), "{texts:?}");
    assert!(texts[1].contains("cargo fmt") && !texts[1].contains("--locked"), "{texts:?}");
}
