//! Commands that end with the call.

use std::fs;
use std::time::Duration;

use serde_json::json;
use tool_sdk::process::BackgroundProcesses;
use tool_sdk::{Call, ErrorKind, Mode, Truncation};

use crate::support::{Host, field, output};

// F139
#[tokio::test]
async fn both_forms_run_to_the_end() {
    let host = Host::open();
    for (tool, arguments) in [
        ("shell", json!({ "command": ["bash", "-c", "echo out; echo err >&2; exit 3"] })),
        ("shell_command", json!({ "command": "echo out; echo err >&2; exit 3" })),
    ] {
        let report = host.call(tool, arguments).await;
        assert_eq!(field(&report, "Exit code: "), "3");
        assert!(field(&report, "Wall time: ").ends_with(" seconds"));
        assert_eq!(output(&report), "out\nerr\n");
    }
    let silent = host.call("shell", json!({ "command": ["true"] })).await;
    assert_eq!(output(&silent), "(no output)");
    // No shell reads the arguments.
    let literal = host.call("shell", json!({ "command": ["echo", "$HOME", "a b", ">x"] })).await;
    assert_eq!(output(&literal), "$HOME a b >x\n");
}

// F140: a patch is not a command, and needs no approval.
#[tokio::test]
async fn patch_commands_are_rejected() {
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch";
    let document = format!("apply_patch <<'EOF'\n{patch}\nEOF\n");
    for (tool, arguments) in [
        ("exec_command", json!({ "cmd": document })),
        ("exec_command", json!({ "cmd": patch })),
        ("shell_command", json!({ "command": format!("cd . && {document}") })),
        ("shell", json!({ "command": ["apply_patch", patch] })),
        ("shell", json!({ "command": ["bash", "-lc", document] })),
    ] {
        let host = Host::new(Mode::Auto, &[]);
        let call = Call::new(tool, arguments.to_string());
        let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed, "{tool}: {error}");
        assert!(error.suggestion().unwrap().contains("`apply_patch`"), "{error}");
    }
}

// F139, F59: the time limit ends everything.
#[tokio::test]
async fn the_time_limit_ends_the_command() {
    let host = Host::open();
    let command = "echo begun; sleep 300 & sleep 300";
    let mut limit = 1000;
    loop {
        let arguments = json!({ "command": command, "timeout_ms": limit });
        let report = host.call("shell_command", arguments).await;
        let head = format!("command timed out after {limit} milliseconds\nExit code: 124\n");
        assert!(report.starts_with(&head), "{report}");
        assert!(host.session.extension::<BackgroundProcesses>().list().is_empty());
        if output(&report) == "begun\n" {
            break;
        }
        // The shell had not come so far when its time was up.
        limit *= 2;
        assert!(limit < 60_000, "{report}");
    }
}

// fault 5: a call that is dropped leaves nothing in the list.
#[tokio::test]
async fn a_dropped_call_ends_its_command() {
    let host = Host::open();
    let call = Call::new("shell", r#"{"command": ["sleep", "300"]}"#);
    let running = host.pipeline.call(&host.session, call);
    assert!(tokio::time::timeout(Duration::from_millis(300), running).await.is_err());
    for _ in 0..1200 {
        if host.session.extension::<BackgroundProcesses>().list().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it is still there");
}

// fault 8: many calls at once take turns, and each gets what its own command wrote.
#[tokio::test(flavor = "multi_thread")]
async fn many_calls_at_once_take_turns() {
    let host = Host::open();
    let calls = (0..200).map(|number| {
        let command = format!("echo {number}; sleep 0.01; echo {number}");
        let call = host.call("shell_command", json!({ "command": command }));
        async move { (number, call.await) }
    });
    for (number, report) in futures_util::future::join_all(calls).await {
        assert_eq!(output(&report), format!("{number}\n{number}\n"));
    }
    assert!(host.session.extension::<BackgroundProcesses>().list().is_empty());
}

// SH8: what changes the meaning of a script from outside is not there.
#[tokio::test]
async fn nothing_from_outside_changes_a_script() {
    let host = Host::open();
    let home =
        json!({ "command": "set -o | grep -c posix; echo \"[$BASH_ENV$ENV$CDPATH]\"; declare -F" });
    assert_eq!(output(&host.call("shell_command", home).await), "1\n[]\n");
}

// SH8: a shell that was asked for as one reads no start-up files.
#[tokio::test]
async fn no_list_of_arguments_starts_a_login_shell() {
    let host = Host::open();
    let command = json!({ "command": ["bash", "-lc", "shopt login_shell | cut -f 2"] });
    assert_eq!(output(&host.call("shell", command).await), "off\n");
}

// CH7: a call does not wait for what a command leaves running, and says that there is some.
#[tokio::test]
async fn reports_process_that_holds_output() {
    let host = Host::open();
    for (tool, name) in [("shell_command", "command"), ("exec_command", "cmd")] {
        for (command, is_told) in [
            ("sleep 300 & echo started", true),
            ("sleep 300 >/dev/null 2>&1 & echo started", false),
        ] {
            let report = host.call(tool, json!({ name: command })).await;
            let (started, rest) = output(&report).split_once('\n').unwrap();
            assert_eq!(started, "started", "{report}");
            assert_eq!(rest.contains("still runs and holds its output"), is_told, "{report}");
        }
    }
}

// F139: how many lines there were is told when the model does not get all of them.
#[tokio::test]
async fn lines_are_counted_where_some_are_missing() {
    let host = Host::open();
    for (count, is_told) in [(1000, false), (100_000, true), (1_000_000, true)] {
        let report = host.call("shell_command", json!({ "command": format!("seq {count}") })).await;
        let told = report.lines().find_map(|line| line.strip_prefix("Total output lines: "));
        assert_eq!(told, is_told.then(|| count.to_string()).as_deref(), "{count}");
    }
}

// Semantics (e): the justification is shown only to the approver.
#[tokio::test]
async fn a_justification_decides_nothing() {
    let host = Host::open();
    for (tool, mut arguments) in [
        ("exec_command", json!({ "cmd": "echo a" })),
        ("shell_command", json!({ "command": "echo a" })),
        ("shell", json!({ "command": ["echo", "a"] })),
    ] {
        arguments["justification"] = "rm -rf / is what nobody wants".into();
        let denying = Host::new(Mode::Auto, &["deny exec_command(rm *)"]);
        assert_eq!(output(&denying.call(tool, arguments.clone()).await), "a\n");
        for refused in ["sandbox_permissions", "prefix_rule"] {
            let mut arguments = arguments.clone();
            arguments[refused] = json!("require_escalated");
            assert_eq!(host.error(tool, arguments).await.kind(), ErrorKind::InvalidArgs);
        }
    }
}

// CH8: what was written, never captured, not text, or shown: each byte counts once.
#[tokio::test]
async fn counts_are_those_of_what_was_written() {
    const WRITTEN: usize = 3_000_000;
    const KEPT: usize = 1 << 20;
    let host = Host::open();
    let flood = |text: &str| format!("yes \"$(printf '{text}x')\" | tr -d x | head -c {WRITTEN}");
    let zeros = format!("head -c {WRITTEN} /dev/zero");
    for (what, command, lines, kept_text) in [
        ("NUL", zeros.clone(), 0, 0),
        ("no UTF-8", format!(r"{zeros} | tr '\0' '\377'"), 1, 0),
        ("no UTF-8 in lines", flood(r"\377"), WRITTEN / 2, KEPT / 2),
        // Six bytes, of which the line end is text.
        ("escapes", flood(r"\033]0;a"), WRITTEN / 6, KEPT / 6 + 1),
        ("colours", flood(r"\033[1ma"), WRITTEN / 6, KEPT / 6 * 2 + 2),
        ("text", flood("line"), WRITTEN / 5, KEPT),
        ("a line", format!(r"{zeros} | tr '\0' a"), 1, KEPT),
    ] {
        let outcome = host.outcome("shell_command", &json!({ "command": command })).await;
        let truncated = outcome.truncation().expect("it is too long").clone();
        assert_eq!(truncated.original_bytes, WRITTEN, "{what}: {truncated:?}");
        assert_eq!(truncated.original_lines, lines, "{what}: {truncated:?}");
        assert_eq!(truncated.dropped_bytes, WRITTEN - KEPT, "{what}: {truncated:?}");
        assert!(
            truncated.unprintable_bytes.abs_diff(KEPT - kept_text) < 6,
            "{what}: {truncated:?}"
        );
        let text = outcome.text().into_owned();
        // Everything that is said of the output stands outside of it.
        let (notice, shown) = output(&text)
            .lines()
            .partition::<Vec<&str>, _>(|line| line.starts_with('[') && line.ends_with(']'));
        assert_eq!(notice.len(), 1, "{what}: {notice:?}");
        let is_text = |line: &&str| line.replace('\u{fffd}', "").len();
        let ends = match lines {
            0 | 1 => 0,
            _ => shown.len(),
        };
        let shown: usize = shown.iter().map(is_text).sum::<usize>() + ends;
        assert_eq!(truncated.omitted_bytes, WRITTEN - shown, "{what}: {truncated:?}");
        let Truncation { omitted_bytes, dropped_bytes, .. } = truncated;
        let said = format!("{omitted_bytes} of {WRITTEN} bytes left out, of which ");
        assert!(notice[0].contains(&said), "{what}: {notice:?}");
        let said = format!("{dropped_bytes} bytes were never captured");
        assert!(notice[0].contains(&said), "{what}: {notice:?}");
        if truncated.unprintable_bytes > 0 {
            let said = format!(" and {} bytes are not text", truncated.unprintable_bytes);
            assert!(notice[0].contains(&said), "{what}: {notice:?}");
        }
    }
}

#[tokio::test]
async fn faults_say_what_is_wrong() {
    let host = Host::open();
    fs::write(host.folder.path().join("file"), "x").unwrap();
    let missing = host.error("shell", json!({ "command": ["no-such-program-anywhere"] })).await;
    assert_eq!(missing.kind(), ErrorKind::Failed);
    assert!(missing.message().contains("no-such-program-anywhere"));
    for workdir in ["missing", "file", "../"] {
        let arguments = json!({ "command": "true", "workdir": workdir });
        host.error("shell_command", arguments).await;
    }
    host.error("shell", json!({ "command": [] })).await;
}

// CH1: what the host's environment holds beyond the list does not reach a command.
#[tokio::test]
async fn host_environment_is_not_inherited() {
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO_")));
    let host = Host::open();
    let report = host.call("shell", json!({ "command": ["env"] })).await;
    let mut names: Vec<&str> =
        output(&report).lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let known = [
        "COLORTERM",
        "GH_PAGER",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_KEY_0",
        "GIT_CONFIG_VALUE_0",
        "GIT_OPTIONAL_LOCKS",
        "GIT_PAGER",
        "HOME",
        "LANG",
        "LOGNAME",
        "NO_COLOR",
        "PAGER",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TOOL_SDK_PROCESS",
        "TZ",
        "USER",
    ];
    names.retain(|name| !known.contains(name) && !name.starts_with("LC_"));
    assert!(names.is_empty(), "{names:?}");
}

// CH2, SH4: what may be written as files is not a repository with programs in its settings.
#[tokio::test]
async fn no_folder_becomes_a_repository_by_what_lies_in_it() {
    let host = Host::new(Mode::Plan, &[]);
    let folder = host.folder.path().join("planted");
    for inner in ["objects", "refs"] {
        fs::create_dir_all(folder.join(inner)).unwrap();
    }
    let owned = host.folder.path().join("owned");
    let config = format!(
        "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\n\
         fsmonitor = \"touch {};:\"\n",
        owned.display()
    );
    fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(folder.join("config"), config).unwrap();
    for (tool, arguments) in [
        ("exec_command", json!({ "cmd": "git status", "workdir": "planted" })),
        ("shell_command", json!({ "command": "git status; true", "workdir": "planted" })),
        ("shell", json!({ "command": ["git", "status"], "workdir": "planted" })),
    ] {
        let report = host.call(tool, arguments).await;
        assert!(report.contains("safe.bareRepository"), "{report}");
        assert!(!owned.exists());
    }
}

// F168: a screen draws a command from its display data alone.
#[tokio::test]
async fn the_display_of_a_command_has_what_it_wrote() {
    let host = Host::open();
    let arguments = json!({ "command": "echo out; echo err >&2; exit 3" });
    let outcome = host.outcome("shell_command", &arguments).await;
    let output = outcome.result.unwrap();
    let display = output.display_data().unwrap();
    assert_eq!(display["type"], "shell");
    assert_eq!(display["command"], arguments["command"]);
    assert_eq!((&display["exit_code"], &display["stdout"]), (&json!(3), &json!("out\nerr\n")));
    assert_eq!((&display["stderr"], &display["is_background"]), (&json!(""), &json!(false)));
    let long = host.outcome("shell_command", &json!({ "command": "seq 100000" })).await;
    let output = long.result.unwrap();
    let shown = output.display_data().unwrap()["stdout"].as_str().unwrap();
    assert!(shown.len() < 20_000 && shown.starts_with("1\n") && shown.ends_with("100000\n"));
}
