//! The program as its users run it, on the sources of this package.

#![cfg(feature = "application")]

#[cfg(unix)]
mod acp;
#[cfg(unix)]
mod chat;
#[cfg(target_os = "linux")]
mod ended;
mod examples;
#[cfg(unix)]
mod file_rules;
#[cfg(unix)]
mod final_call;
mod http;
mod shell_files;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the program on this package's folder.
fn run(args: &[&str]) -> Output {
    run_in(Path::new(env!("CARGO_MANIFEST_DIR")), args)
}

fn run_in(root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .arg("--root")
        .arg(root)
        .args(["--state-dir", env!("CARGO_TARGET_TMPDIR")])
        // The settings of the user who runs the tests are ignored.
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

/// Calls a tool from a shell line that sets the permissions of the program.
#[cfg(unix)]
fn run_behind(line: &str, root: &Path, tool: &str, arguments: &str) -> Output {
    // Databases of other tests would not fit into a small limit.
    let state = tempfile::tempdir().expect("a folder");
    Command::new("sh")
        .args(["-c", &format!("{line} && exec \"$@\""), "sh", env!("CARGO_BIN_EXE_tool-std")])
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .arg("--root")
        .arg(root)
        .arg("--state-dir")
        .arg(state.path())
        .args(["--yes", "call", tool, arguments])
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON value")
}

// F143: edits of one file by several processes wait for each other.
#[test]
fn processes_that_edit_places_of_one_file_all_succeed() {
    const PROCESSES: usize = 12;
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("shared.txt");
    for tool in ["edit_file", "apply_patch"] {
        let text: String = (0..PROCESSES).map(|nth| format!("old {nth}.\n")).collect();
        std::fs::write(&file, &text).expect("there is room");
        let arguments = |nth: usize| {
            let (old, new) = (format!("old {nth}."), format!("new {nth}."));
            match tool {
                "edit_file" => serde_json::json!({
                    "path": "shared.txt", "old_string": old, "new_string": new,
                }),
                _ => serde_json::json!({ "input": format!(
                    "*** Begin Patch\n*** Update File: shared.txt\n@@\n-{old}\n+{new}\n*** End Patch"
                ) }),
            }
        };
        let outputs: Vec<Output> = std::thread::scope(|scope| {
            let root = folder.path();
            let call = |arguments: Value| {
                scope.spawn(move || run_in(root, &["--yes", "call", tool, &arguments.to_string()]))
            };
            let running: Vec<_> = (0..PROCESSES).map(arguments).map(call).collect();
            running.into_iter().map(|call| call.join().expect("no panic")).collect()
        });
        for output in &outputs {
            assert_eq!(output.status.code(), Some(0), "{tool}: {}", err(output));
        }
        let edited = std::fs::read_to_string(&file).expect("it is there");
        assert_eq!(edited, text.replace("old", "new"), "{tool}");
    }
}

// F156, F194: the tools of screens are hidden until they are enabled, and say what to install.
#[test]
fn a_screen_is_hidden_until_it_is_enabled() {
    assert!(!out(&run(&["list"])).contains("desktop"));
    let folder = tempfile::tempdir().expect("a folder");
    for (tool, program, package) in [("desktop", "Xvfb", "xvfb"), ("terminal", "tmux", "tmux")] {
        let started = Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("TOOL_SDK_EXPERIMENTAL", tool)
            .env("PATH", folder.path())
            .args(["--root".as_ref(), folder.path()])
            .args(["--yes", "call", tool, "--action", "start"])
            .stdin(Stdio::null())
            .output()
            .expect("the program runs");
        assert_eq!(started.status.code(), Some(1));
        let error = err(&started);
        assert!(error.contains(&format!("the program `{program}` is not installed")), "{error}");
        assert!(error.contains(&format!("install the package `{package}`")), "{error}");
    }
}

#[test]
fn what_is_found_can_be_read() {
    let found = run(&[
        "call",
        "grep_files",
        r#"{"pattern": "^pub async fn", "include": "*.rs"}"#,
        "--json",
    ]);
    assert_eq!(found.status.code(), Some(0), "{}", err(&found));
    let found = json(&found);
    let first = &found["display"]["matches"][0];
    let (file, line) =
        (first["file"].as_str().expect("a file"), first["line"].as_u64().expect("a line"));

    let read =
        run(&["call", "read_file", "--path", file, "--offset", &line.to_string(), "--limit", "1"]);
    assert_eq!(read.status.code(), Some(0), "{}", err(&read));
    assert!(out(&read).starts_with(&format!("{line}: pub async fn ")), "{}", out(&read));
}

#[test]
fn a_folder_is_listed() {
    let listed = run(&["call", "list_dir", r#"{"path": "src", "depth": 1}"#]);
    let text = out(&listed);
    for entry in ["fs/", "lib.rs", "main.rs", "search/"] {
        assert!(text.lines().any(|line| line.trim() == entry), "{text}");
    }
}

// F178, F192: an option beats the variable, and that beats the file.
#[test]
fn limits_come_from_options_variables_and_the_file() {
    let folder = tempfile::tempdir().expect("there is room");
    for nth in 0..9 {
        std::fs::write(folder.path().join(format!("f{nth}")), "").expect("there is room");
    }
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "output_lines = 5\n").expect("there is room");
    let lines = |variable: &str, args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .args(["--state-dir", env!("CARGO_TARGET_TMPDIR"), "--config"])
            .arg(&config)
            .arg("--root")
            .arg(folder.path())
            .args(["call", "glob_files", "--pattern", "f*", "--json"])
            .args(args)
            .env("TOOL_SDK_MAX_OUTPUT_LINES", variable)
            .output()
            .expect("the program runs");
        let text = json(&output)["output"].as_str().expect("a text").to_owned();
        text.lines().filter(|line| line.starts_with('f')).count()
    };
    assert_eq!(lines("", &[]), 5);
    assert_eq!(lines("3", &[]), 3);
    assert_eq!(lines("3", &["--output-lines", "2"]), 2);
    for (args, words) in [
        (["--output-lines", "0"], "--output-lines"),
        (["--call-timeout", "soon"], "is not a duration such as 30s"),
    ] {
        let wrong = run(&[&["list"], &args[..]].concat());
        assert_eq!(wrong.status.code(), Some(2));
        assert!(err(&wrong).contains(words), "{}", err(&wrong));
    }
    let wrong = run_configured("outputs_max_age = \"3 weeks\"\ncapture_bytes = 0\n", &["list"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        err(&wrong).contains("`outputs_max_age`: `3 weeks` is not a duration"),
        "{}",
        err(&wrong)
    );
    assert!(err(&wrong).contains("`capture_bytes`: "), "{}", err(&wrong));
}

// F101, F103: calls are made as an agent and for a model sees and may make them.
#[test]
fn calls_are_made_for_an_agent_and_a_model() {
    let config = "[agents.reader]\nonly = [\"read_*\", \"list_dir\"]\n\
                  rules = [{ permission = \"read\", pattern = \"Cargo.toml\", action = \"deny\" }]\n";
    let run = |args: &[&str]| run_configured(config, args);
    let read = ["call", "read_file", "--path", "Cargo.toml"];
    assert_eq!(run(&read).status.code(), Some(0));
    let denied = run(&[&read[..], &["--agent", "reader"]].concat());
    assert_eq!(denied.status.code(), Some(3), "{}", err(&denied));
    let hidden = run(&["call", "--agent", "reader", "glob_files", "--pattern", "*"]);
    assert_eq!(hidden.status.code(), Some(2), "{}", err(&hidden));
    let unknown = run(&["check", "list_dir", "--agent", "raeder"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(err(&unknown).contains("explore, plan, reader"), "{}", err(&unknown));
    // Models of one family get `apply_patch` in place of `edit_file`.
    let hidden = run(&[
        "call",
        "edit_file",
        r#"{"path": "a", "old_string": "x", "new_string": "y"}"#,
        "--model",
        "gpt-5",
    ]);
    assert_eq!(hidden.status.code(), Some(2));
    assert!(err(&hidden).contains("there is no tool `edit_file`"), "{}", err(&hidden));
}

// F12, F185: definitions in the older function form are written and read back.
#[test]
fn an_older_file_of_definitions_is_written_and_read() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("tools.json");
    let path = file.to_str().expect("a plain path");
    let legacy = run(&["schema", "--format", "tools-json-legacy"]);
    assert_eq!(legacy.status.code(), Some(0), "{}", err(&legacy));
    let mut document = json(&legacy);
    assert_eq!(document[0]["type"], "function");
    document[0]["agent_scope"] = serde_json::json!(["oracle"]);
    let name = document[0]["function"]["name"].as_str().expect("a text").to_owned();
    std::fs::write(&file, document.to_string()).expect("there is room");
    let again =
        run(&["schema", "--format", "tools-json-legacy", "--tools", path, "--scope", "oracle"]);
    assert_eq!(again.status.code(), Some(0), "{}", err(&again));
    assert_eq!(json(&again), document, "nothing is lost");
    let listed = out(&run(&["list", "--tools", path]));
    assert!(listed.contains("read_file") && !listed.contains(&name), "{listed}");

    document[1]["function"]["parameters"]["type"] = "integer".into();
    document[2]["agent_scope"] = 3.into();
    document[3]["colour"] = "red".into();
    std::fs::write(&file, document.to_string()).expect("there is room");
    let wrong = run(&["list", "--tools", path]);
    assert_eq!(wrong.status.code(), Some(2));
    for (nth, place) in [(1, "/function/parameters"), (2, "/agent_scope"), (3, "/colour")] {
        let tool = document[nth]["function"]["name"].as_str().expect("a text");
        let line = format!("{path}#/{nth}{place}: tool `{tool}`: ");
        assert!(err(&wrong).contains(&line), "{line} is not in {}", err(&wrong));
    }
}

// F103: a small model sees fewer parameters, and may still send the others.
#[test]
fn a_small_model_gets_simpler_schemas() {
    let schema = |args: &[&str]| json(&run(&[&["schema", "grep_files"], args].concat()));
    let names = |document: &Value| -> Vec<String> {
        let properties = &document["tools"][0]["inputSchema"]["properties"];
        properties.as_object().expect("an object").keys().cloned().collect()
    };
    assert_eq!(names(&schema(&["--model", "small"])), ["pattern", "path", "include"]);
    assert!(names(&schema(&[])).len() > 3);
    let arguments = r#"{"pattern": "^fn main", "path": "src", "limit": 1}"#;
    let called = run(&["call", "--model", "small", "grep_files", arguments]);
    assert_eq!(called.status.code(), Some(0), "{}", err(&called));
    // Every parameter that the profile names exists.
    let list = json(&run(&["schema"]));
    for (tool, parameter) in [("edit_file", "edits"), ("exec_command", "justification")] {
        let tools = list["tools"].as_array().expect("a list");
        let schema = &tools.iter().find(|it| it["name"] == tool).expect("a tool")["inputSchema"];
        assert!(schema["properties"][parameter].is_object(), "{tool} {parameter}");
    }
}

// F74
#[test]
fn rules_are_listed_by_scope() {
    let listed = run_configured(
        "deny = [\"read(*.env)\"]\n",
        &["rules", "list", "--allow", "exec_command(git *)"],
    );
    assert_eq!(listed.status.code(), Some(0), "{}", err(&listed));
    let text = out(&listed);
    let user = text.find("\n  deny read(*.env)").expect("the rule of the file");
    let session = text.find("session\n  allow exec_command(git *)  (--allow)").expect("the option");
    assert!(user < session, "{text}");
}

// F192: the loop guard is a setting, too; a batch makes its calls in one session.
#[test]
fn the_loop_guard_is_a_setting() {
    let calls = r#"{"name": "list_dir", "arguments": {"path": "src/fs"}}"#.to_owned() + "\n";
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("calls");
    std::fs::write(&file, calls.repeat(12)).expect("there is room");
    let file = file.to_str().expect("a plain path");
    let succeeded = |config: &str, args: &[&str]| {
        let ran = run_configured(config, &[args, &["--no-input", "batch", file]].concat());
        out(&ran).matches(r#""ok":true"#).count()
    };
    assert_eq!(succeeded("", &[]), 9, "the tenth identical call is refused");
    assert_eq!(succeeded("", &["--loop-guard", "off"]), 12);
    assert_eq!(succeeded("[loop_guard]\nenabled = false\n", &[]), 12);
    assert_eq!(succeeded("[loop_guard]\nhard_stop = 20\n", &[]), 12);
    assert_eq!(succeeded("[loop_guard]\nhard_stop = 20\n", &["--loop-hard-stop", "3"]), 2);
    let wrong = run_configured("[loop_guard]\nwindow = \"soon\"\ntresh = 1\n", &["list"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("loop_guard"), "{}", err(&wrong));
}

// F188
#[test]
fn outputs_older_than_the_setting_are_removed() {
    const DAY: std::time::Duration = std::time::Duration::from_hours(24);
    let folder = tempfile::tempdir().expect("there is room");
    let state = folder.path().join("state");
    let run = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .arg("--state-dir")
            .arg(&state)
            .args(["--config", "/dev/null"])
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("the program runs")
    };
    let cut = run(&["call", "grep_files", "--pattern", "fn", "--output-lines", "1"]);
    assert_eq!(cut.status.code(), Some(0), "{}", err(&cut));
    let kept = || {
        let sessions = std::fs::read_dir(state.join("outputs")).expect("it is there");
        let files = sessions.flatten().flat_map(|session| std::fs::read_dir(session.path()));
        files.flatten().flatten().map(|file| file.path()).collect::<Vec<_>>()
    };
    let [file] = &*kept() else { panic!("{:?}", kept()) };
    let written = std::time::SystemTime::now() - 4 * DAY;
    let handle = std::fs::File::options().write(true).open(file).expect("it is there");
    handle.set_modified(written).expect("it is ours");
    run(&["call", "list_dir", "--path", "src"]);
    assert_eq!(kept().len(), 1, "seven days by default");
    // A program that ends earlier leaves the rest to the next one.
    while !kept().is_empty() {
        run(&["--outputs-max-age", "3d", "call", "list_dir", "--path", "src"]);
    }
}

// F192
#[cfg(unix)]
#[test]
fn the_output_of_a_command_is_captured_up_to_the_setting() {
    let run = |bytes: &str| {
        let cmd = "seq 1 20000";
        let ran = run(&[
            "--yes",
            "--capture-bytes",
            bytes,
            "call",
            "exec_command",
            "--cmd",
            cmd,
            "--json",
        ]);
        assert_eq!(ran.status.code(), Some(0), "{}", err(&ran));
        json(&ran)["output"].as_str().expect("a text").to_owned()
    };
    let (few, many) = (run("1000"), run("1000000"));
    assert!(few.len() < 2000 && few.contains("\n20000"), "{} bytes", few.len());
    assert!(many.len() > 10_000, "{} bytes", many.len());
}

// A list is JSON, or one item for each flag; the tool gets the same.
#[test]
fn lists_are_json_or_repeated_flags() {
    let check = |args: &[&str]| {
        let start = ["--config", "/dev/null", "check", "shell"];
        Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .args(start)
            .args(args)
            .args(["--state-dir", env!("CARGO_TARGET_TMPDIR")])
            .env("TOOL_SDK_VARIANTS", "shell=shell")
            .output()
            .expect("the program runs")
    };
    let whole = check(&["--command", r#"["git","status"]"#]);
    let repeated = check(&["--command", "git", "--command", "status"]);
    assert_eq!(whole.status.code(), Some(0), "{}", err(&whole));
    assert_eq!(json(&whole)["fingerprint"], json(&repeated)["fingerprint"]);
    let wrong = check(&["--command", "git", "status"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("as in `--command status`"), "{}", err(&wrong));
}

// F8: an image reaches people, too.
#[test]
fn images_are_saved_in_a_folder() {
    let folder = tempfile::tempdir().expect("there is room");
    let image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
    std::fs::write(folder.path().join("dot.png"), image).expect("there is room");
    let out = folder.path().join("out");
    let saved = run_in(
        folder.path(),
        &["call", "read_file", "--path", "dot.png", "--save", out.to_str().expect("UTF-8")],
    );
    assert_eq!(saved.status.code(), Some(0), "{}", err(&saved));
    let path = out.join("dot.png");
    assert!(err(&saved).contains(path.to_str().expect("UTF-8")), "{}", err(&saved));
    assert_eq!(std::fs::read(path).expect("it is there"), image);
}

// F2, F38: invalid arguments are explained, with what to send instead.
#[test]
fn wrong_arguments_are_explained() {
    let wrong = run(&["call", "read_file", r#"{"limit": 9000, "pth": "x"}"#]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(out(&wrong), "");
    let message = "error: invalid arguments for `read_file`:\n\
        - `limit` is 9000, but must be between 1 and 5000\n\
        - unknown argument `pth`; did you mean `path`?\n\
        - `path` is required (string): ";
    assert!(err(&wrong).starts_with(message), "{}", err(&wrong));

    let wrong = run(&["call", "read_file", "{", "--json"]);
    assert_eq!(
        (wrong.status.code(), &json(&wrong)["error"]["kind"]),
        (Some(2), &"invalid_args".into())
    );
}

/// Runs the program on this package's folder, with this configuration file.
fn run_configured(config: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rules.toml");
    std::fs::write(&file, config).expect("a file in it");
    run(&[&["--config", file.to_str().expect("a plain path")], args].concat())
}

#[test]
fn rules_decide_whether_a_tool_runs() {
    let call = ["call", "read_file", "--path", "src/main.rs", "--limit", "1"];
    for (options, code) in [
        (&["--deny", "read_file"][..], 3),
        (&["--deny", "read_file", "--allow", "read_file"], 0),
        (&["--allow", "read_file", "--deny", "read_file"], 3),
        (&["--deny", "read_file(path: src/*)"], 3),
        (&["--deny", "read_file(path: *.toml)"], 0),
        // There is no terminal to ask for approval.
        (&["--ask", "read_file"], 3),
        (&["--mode", "strict"], 3),
        (&["--mode", "strict", "--yes"], 0),
        (&["--mode", "plan"], 0),
        (&["--config", "/nowhere/at/all"], 2),
    ] {
        let before = run(&[options, &call].concat());
        assert_eq!(before.status.code(), Some(code), "{options:?}: {}", err(&before));
        let behind = run(&[&call, options].concat());
        assert_eq!(behind.status.code(), Some(code), "{options:?}: {}", err(&behind));
    }
    let denied = run(&[&call[..], &["--deny", "read_file", "--json"]].concat());
    assert_eq!(json(&denied)["error"]["kind"], "denied");
    assert_eq!(run_configured("deny = [\"read_file\"]", &call).status.code(), Some(3));
    let broken = run_configured("mode = \"auto\"\ndenny = [\"read_file\"]", &call);
    assert_eq!(broken.status.code(), Some(2));
    assert!(err(&broken).contains("rules.toml:2: unknown key `denny`; did you mean `deny`?"));
}

// F108, F178: the configuration selects one of three families of command tools.
#[test]
fn the_family_of_the_tools_for_commands_is_chosen() {
    let families = [
        ("unified_exec", "exec_command", "shell_command"),
        ("shell", "shell", "exec_command"),
        ("shell_command", "shell_command", "exec_command"),
    ];
    for (family, there, gone) in families {
        let config = format!("[variants]\nshell = \"{family}\"\n");
        let listed = out(&run_configured(&config, &["list", "--json"]));
        let has = |name: &str| listed.contains(&format!("\"name\": \"{name}\""));
        assert!(has(there) && !has(gone), "{family}: {listed}");
    }
    let wrong = run_configured("[variants]\nshell = \"zsh\"\n", &["list"]);
    assert!(wrong.status.code() == Some(2) && err(&wrong).contains("zsh"), "{}", err(&wrong));
}

// A denial names a path in one spelling, however the call spells it.
#[test]
fn a_denial_tells_a_place_once() {
    let root = tempfile::tempdir().expect("a folder");
    let denied = run_in(root.path(), &["--no-input", "call", "read_file", "--path", "../x"]);
    let text = err(&denied);
    assert_eq!(denied.status.code(), Some(3), "{text}");
    assert_eq!(text.matches("is outside the workspace").count(), 1, "{text}");
    assert!(text.starts_with("error: `read_file` may not run: `../x`: `/"), "{text}");
}

// F92: a write outside of every writable folder is rejected, even if a rule allows it.
#[test]
fn nothing_is_written_outside_the_writable_folders() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(root.path().join("in")).expect("a folder");
    let config = root.path().join("config.toml");
    let folder = root.path().join("in");
    std::fs::write(&config, format!("writable = [{folder:?}]\n")).expect("a file");
    let config = config.to_str().expect("it is text");
    let write = |path: &str| {
        let arguments = ["--path", path, "--content", "x"];
        run_in(
            root.path(),
            &[&["--config", config, "--allow", "*", "call", "write_file"], &arguments[..]].concat(),
        )
    };
    assert_eq!(write("in/file").status.code(), Some(0), "{}", err(&write("in/other")));
    assert_eq!(write("file").status.code(), Some(3));
    assert!(!root.path().join("file").exists());
}

// F73, F24: a rule may name tool and argument in the syntax of other systems.
#[test]
fn commands_go_by_the_names_of_other_systems() {
    let rule = "bash(command: git *)";
    for (command, code) in [("git --version", 0), ("touch x", 3)] {
        let arguments = serde_json::json!({ "command": command }).to_string();
        let ran = run(&["--no-input", "--allow", rule, "call", "bash", &arguments]);
        assert_eq!(ran.status.code(), Some(code), "{command}: {}", err(&ran));
    }
}

// LG1: secrets of the environment are in no event.
#[test]
fn events_hold_no_secret_of_the_environment() {
    let secret = "k3yk3yk3yk3yk3y";
    let told = Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .args(["--root", env!("CARGO_MANIFEST_DIR"), "--state-dir", env!("CARGO_TARGET_TMPDIR")])
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("MY_API_TOKEN", secret)
        .args(["--yes", "call", "exec_command", "--events", "--cmd"])
        .arg(format!("echo {secret}"))
        .output()
        .expect("the program runs");
    assert!(out(&told).contains(secret), "{}", out(&told));
    let events = err(&told);
    assert!(events.contains("completed") && !events.contains(secret), "{events}");
}

#[test]
fn a_check_says_what_would_be_decided() {
    for (options, decision) in [
        (&[][..], "allow"),
        (&["--ask", "read_file"], "ask"),
        (&["--ask", "read_file", "--yes"], "ask"),
        (&["--deny", "read_*"], "deny"),
    ] {
        let checked =
            run(&[&["check", "read_file", "{\"path\": \"x\"}", "--json"], options].concat());
        assert_eq!(checked.status.code(), Some(0), "{}", err(&checked));
        let checked = json(&checked);
        assert_eq!(checked["decision"], decision, "{checked}");
        for key in ["reason", "rules", "subjects", "suggestions", "fingerprint"] {
            assert!(checked.get(key).is_some(), "{key}: {checked}");
        }
    }
    assert_eq!(run(&["check", "read_file", "{}"]).status.code(), Some(2));
}

// PA7, AP1: allowing edits does not allow changes of files that the program or other programs obey;
// only the approval code writes approvals and decisions.
#[test]
fn files_that_programs_obey_need_approval_in_every_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a plain path");
    for below in [".github", ".git", "sub"] {
        std::fs::create_dir(root.join(below)).expect("a folder in it");
    }
    let config = "allow = [\"edit\"]\n[hooks]\nPreToolUse = [{ matcher = \"read_file\", \
                  hooks = [{ type = \"command\", command = \"sub/guard.sh\" }] }]";
    std::fs::write(root.join("my.toml"), config).expect("a file in it");
    let own = ["--config", "my.toml", "--state-dir", "mystate"];
    for (below, options, path, decision) in [
        ("", &own[..], "plain.txt", "allow"),
        ("", &own, "my.toml", "ask"),
        ("", &own, "sub/../my.toml", "ask"),
        ("", &own, "mystate/approvals/a.json", "deny"),
        ("", &own, "audit.jsonl", "deny"),
        ("", &own, "sub/guard.sh", "ask"),
        ("", &own, "sub/plain.sh", "allow"),
        ("", &own, "CLAUDE.local.md", "ask"),
        (".github", &["--allow", "edit"], "workflows/ci.yml", "ask"),
        (".github", &["--allow", "edit"], "readme", "allow"),
        (".git", &["--allow", "edit"], "hooks/pre-commit", "ask"),
    ] {
        let write = format!("{{\"path\": \"{path}\", \"content\": \"x\"}}");
        let checked = Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .current_dir(&root)
            .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("TOOL_SDK_AUDIT", "audit.jsonl")
            .arg("--root")
            .arg(root.join(below))
            .args(options)
            .args(["check", "write_file", &write, "--json"])
            .output()
            .expect("the program runs");
        assert_eq!(json(&checked)["decision"], decision, "{below} {path}: {}", err(&checked));
    }
}

// F48: every call has its result, in the order of the calls.
#[test]
fn a_batch_answers_in_the_order_of_its_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let calls = r#"{"id": 1, "name": "list_dir", "arguments": {"path": "src"}}
{"id": 2, "name": "read_file", "arguments": "{\"path\": \"src/main.rs\", \"limit\": 1}"}
this is no call
{"id": 4, "name": "grep_files", "arguments": {"pattern": "^fn main", "path": "src"}}
"#;
    let file = folder.path().join("calls.jsonl");
    std::fs::write(&file, calls).expect("a file in it");
    let ran = run(&["batch", file.to_str().expect("a plain path")]);
    assert_eq!(ran.status.code(), Some(2), "{}", err(&ran));
    let results: Vec<Value> =
        out(&ran).lines().map(|line| serde_json::from_str(line).expect("a result")).collect();
    let ids: Vec<&Value> = results.iter().map(|result| &result["id"]).collect();
    assert_eq!(ids, [&Value::from(1), &Value::from(2), &Value::Null, &Value::from(4)]);
    let ok: Vec<&Value> = results.iter().map(|result| &result["ok"]).collect();
    assert_eq!(ok, [true, true, false, true]);
    assert!(results[3]["output"].as_str().expect("a text").contains("main.rs"));

    let denied = run(&["batch", file.to_str().expect("a plain path"), "--deny", "grep_files"]);
    assert_eq!(denied.status.code(), Some(3), "{}", out(&denied));
}

#[test]
fn exit_codes_say_how_it_ended() {
    for (args, code) in [
        (&["list"][..], 0),
        (&["show", "read_file"], 0),
        (&["call", "read_file", r#"{"path": "nothing.here"}"#], 1),
        (&["call", "read_fil", "{}"], 2),
        (&["call", "read_file", "--offset", "zero"], 2),
        (&["nonsense"], 2),
        (&["--root", "/nowhere/at/all", "list_dir"], 2),
        (&["call", "read_file", r#"{"path": "/etc/hostname"}"#], 3),
        (&["call", "read_file", r#"{"path": "../Cargo.toml"}"#], 3),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", out(&output), err(&output));
    }
}

// F11, F18: every format is printed, and accepted by its provider.
#[test]
fn schemas_fit_every_provider() {
    for format in [
        "mcp",
        "openai",
        "openai-responses",
        "openai-strict",
        "openrouter",
        "anthropic",
        "gemini",
        "gemini-generate",
        "portable",
        "tools-json",
    ] {
        let printed = run(&["schema", "--format", format]);
        json(&printed);
        assert_eq!(out(&printed), out(&run(&["schema", "--format", format])), "byte-stable");
        let lint = run(&["schema", "--format", format, "--lint"]);
        assert_eq!(lint.status.code(), Some(0), "{format}: {}", out(&lint));
    }
}

// PA5: other users cannot write into a new file, with any umask.
#[cfg(unix)]
#[test]
fn a_new_file_belongs_to_its_writer() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    for (mask, mode) in [("0", 0o644), ("027", 0o640)] {
        let write = format!(r#"{{"path": "f{mask}", "content": "x"}}"#);
        let written = run_behind(&format!("umask {mask}"), folder.path(), "write_file", &write);
        assert!(written.status.success(), "{}", err(&written));
        let facts = std::fs::metadata(folder.path().join(format!("f{mask}"))).expect("a file");
        assert_eq!(facts.permissions().mode() & 0o777, mode, "{mask}");
    }
}

/// Returns the decision about `cmd`, with or without a `program` of the workspace first in the
/// `PATH`.
#[cfg(unix)]
fn decided_beside(program: &str, cmd: &str, is_first: bool) -> String {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).expect("it is made");
    std::fs::write(bin.join(program), "#!/bin/sh\n").expect("it is written");
    std::fs::set_permissions(bin.join(program), std::fs::Permissions::from_mode(0o755))
        .expect("it may be run");
    let path = std::env::var("PATH").expect("there is a path");
    let path = if is_first { format!("{}:{path}", bin.display()) } else { path };
    let checked = Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .arg("--root")
        .arg(folder.path())
        .args(["--state-dir", env!("CARGO_TARGET_TMPDIR")])
        .args(["--allow", "exec_command(make *)"])
        .args(["check", "exec_command", "--cmd", cmd, "--json"])
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    json(&checked)["decision"].as_str().expect("a decision").to_owned()
}

// SH4: a program in the workspace does not count as read-only.
#[cfg(unix)]
#[test]
fn a_program_of_the_workspace_is_asked_about() {
    for (is_first, expected) in [(true, "ask"), (false, "allow")] {
        assert_eq!(decided_beside("cat", "cat notes", is_first), expected);
    }
}

// SH8: bash runs the analysed command; what another program of that name does is unknown.
#[cfg(unix)]
#[test]
fn a_bash_of_the_workspace_is_asked_about() {
    for (cmd, is_first, expected) in [
        ("ls -d . ; pwd", true, "ask"),
        ("make a && make b", true, "ask"),
        ("ls -d . ; pwd", false, "allow"),
        // No shell is involved.
        ("pwd -P", true, "allow"),
        ("make a", true, "allow"),
    ] {
        assert_eq!(decided_beside("bash", cmd, is_first), expected, "{cmd}");
    }
}

// F95: the system kills a program that exceeds the file size limit without checking.
#[cfg(unix)]
#[test]
fn an_output_that_may_not_be_kept_is_given_all_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = run_behind("ulimit -f 8", folder, "exec_command", r#"{"cmd":"seq 1 60000"}"#);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("\n60000"), "{}", out(&output));
}

// F140: a patch of many folders needs a handle of each; child processes keep the old limit.
#[cfg(unix)]
#[test]
fn a_low_limit_of_open_files_is_raised_for_the_program_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let body: String = (0..200).map(|at| format!("*** Add File: d{at}/f\n")).collect();
    let input = serde_json::json!({ "input": format!("*** Begin Patch\n{body}*** End Patch") });
    let call =
        |limit, tool, args: &Value| run_behind(limit, folder.path(), tool, &args.to_string());
    // At the hard limit nothing changes, and the error says why.
    let refused = call("ulimit -n 100", "apply_patch", &input);
    assert!(err(&refused).contains("the limit of open files is reached"), "{}", err(&refused));
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
    let patched = call("ulimit -Sn 100", "apply_patch", &input);
    assert!(patched.status.success(), "{}", err(&patched));
    let started =
        call("ulimit -Sn 100", "exec_command", &serde_json::json!({ "cmd": "ulimit -Sn" }));
    assert!(out(&started).lines().any(|line| line == "100"), "{}{}", out(&started), err(&started));
}
