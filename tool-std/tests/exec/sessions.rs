//! Commands that run on between calls.

use std::time::Duration;

use serde_json::json;
use tool_sdk::process::{BackgroundCommand, BackgroundProcesses, MAX_ATTENDED};
use tool_sdk::{LoopGuard, Mode, Session, Workspace};

use crate::support::{Host, field, output, session_of};

// F137: the report of a command that ends at once.
#[tokio::test]
async fn a_short_command_reports_its_end() {
    let host = Host::open();
    let report = host.call("exec_command", json!({ "cmd": "echo hello; exit 2" })).await;
    assert_eq!(field(&report, "Chunk ID: ").len(), 6);
    assert!(field(&report, "Wall time: ").ends_with(" seconds"));
    assert_eq!(field(&report, "Process exited with code "), "2");
    assert_eq!(field(&report, "Original token count: "), "2");
    assert_eq!(output(&report), "hello\n");
    let list = host.call("list_sessions", json!({})).await;
    assert_eq!(list, "no sessions");
}

// CH9: a command waits for one of the others to end, and says how many run if none does in time.
#[tokio::test]
async fn command_waits_for_a_slot() {
    let host = Host::open();
    let processes = host.session.extension::<BackgroundProcesses>();
    let mut slots = Vec::new();
    for _ in 0..MAX_ATTENDED {
        slots.push(processes.acquire_attended_slot().await);
    }
    let error =
        host.error("exec_command", json!({ "cmd": "echo early", "yield_time_ms": 250 })).await;
    assert!(error.to_string().contains("64 commands already run"), "{error}");
    assert!(error.to_string().contains("yield_time_ms"), "{error}");
    let late = host.call("exec_command", json!({ "cmd": "echo late", "yield_time_ms": 30_000 }));
    let (report, ()) = tokio::join!(late, async { slots.truncate(MAX_ATTENDED - 1) });
    assert_eq!(output(&report), "late\n");
}

// fault 15: its session was not reported, so no call could end it.
#[tokio::test]
async fn a_cancelled_call_leaves_no_command() {
    let host = Host::open();
    let cmd = json!({ "cmd": "echo $$ > number; exec sleep 300", "yield_time_ms": 30_000 });
    let number = host.folder.path().join("number");
    let begun = async {
        while !std::fs::read_to_string(&number).is_ok_and(|text| text.ends_with('\n')) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        report = host.call("exec_command", cmd) => panic!("{report}"),
        () = begun => {}
    }
    assert_eq!(host.call("list_sessions", json!({})).await, "no sessions");
    let number = std::fs::read_to_string(&number).unwrap();
    let place = std::path::PathBuf::from("/proc").join(number.trim());
    let gone = async {
        while std::fs::read(place.join("cmdline")).is_ok_and(|line| !line.is_empty()) {
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(60);
    tokio::time::timeout(patience, gone).await.expect("the command is ended");
}

#[tokio::test]
async fn it_runs_where_it_is_told() {
    let host = Host::open();
    std::fs::create_dir(host.folder.path().join("sub")).unwrap();
    let report = host.call("exec_command", json!({ "cmd": "pwd", "workdir": "sub" })).await;
    assert!(output(&report).ends_with("/sub\n"), "{report}");
    let env = json!({ "cmd": "echo $COLOUR $PAGER", "env": ["COLOUR=red"] });
    assert_eq!(output(&host.call("exec_command", env).await), "red cat\n");
    host.error("exec_command", json!({ "cmd": "ls", "env": ["LD_PRELOAD=x"] })).await;
}

// F137, F138: it goes on after the call, and its last output comes once.
#[tokio::test]
async fn a_long_command_goes_on() {
    let host = Host::open();
    let cmd = "echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 5";
    let cmd = json!({ "cmd": cmd, "yield_time_ms": 30_000, "wait_for": "one\n" });
    let report = host.call("exec_command", cmd).await;
    assert_eq!(output(&report), "one\n");
    let session = session_of(&report);
    assert!((1_000..100_000).contains(&session));
    let list = host.call("list_sessions", json!({})).await;
    assert!(list.contains(&session.to_string()) && list.contains("running"), "{list}");

    // A poll returns with the end.
    std::fs::write(host.folder.path().join("go"), "").unwrap();
    let poll = json!({ "session_id": session, "yield_time_ms": 30_000 });
    let rest = host.call("write_stdin", poll).await;
    assert_eq!((field(&rest, "Process exited with code "), output(&rest)), ("5", "two\n"));
    let gone = host.error("write_stdin", json!({ "session_id": session })).await;
    assert_eq!(gone.message(), format!("Unknown process id {session}"));
}

// F138: typing after the exit still returns the last output.
#[tokio::test]
async fn typing_after_the_end_gives_the_rest() {
    let host = Host::open();
    let cmd = "until [ -e go ]; do sleep 0.05; done; echo last";
    let cmd = json!({ "cmd": cmd, "tty": true, "yield_time_ms": 250 });
    let session = session_of(&host.call("exec_command", cmd).await);
    std::fs::write(host.folder.path().join("go"), "").unwrap();
    let process = host.session.extension::<BackgroundProcesses>().get(session).unwrap();
    tokio::time::timeout(Duration::from_secs(60), process.wait_for_exit(|_| {})).await.unwrap();
    let rest = host.call("write_stdin", json!({ "session_id": session, "chars": "\u{3}" })).await;
    assert_eq!((field(&rest, "Process exited with code "), output(&rest)), ("0", "last\n"));
    host.error("write_stdin", json!({ "session_id": session })).await;
}

// F138
#[tokio::test]
async fn a_terminal_answers() {
    let host = Host::open();
    let cmd = "echo ready; exec env --default-signal=INT cat";
    let cmd = json!({ "cmd": cmd, "tty": true, "yield_time_ms": 30_000, "wait_for": "ready" });
    let session = session_of(&host.call("exec_command", cmd).await);
    let typed = json!({
        "session_id": session, "chars": "hello\n",
        "yield_time_ms": 30_000, "wait_for": "hello\nhello\n",
    });
    let report = host.call("write_stdin", typed).await;
    assert_eq!((session_of(&report), output(&report)), (session, "hello\nhello\n"));
    let interrupted = json!({ "session_id": session, "chars": "\u{3}", "yield_time_ms": 10_000 });
    let report = host.call("write_stdin", interrupted).await;
    assert!(field(&report, "Process exited with code ").starts_with("130"), "{report}");
}

// SH9: what a shell gets in the end is what was judged.
#[tokio::test]
async fn keys_that_edit_a_line_do_not_reach_a_shell() {
    let host = Host::open();
    let cmd = "PS1='done> ' exec bash --norc --noprofile -i";
    let cmd = json!({ "cmd": cmd, "tty": true, "yield_time_ms": 30_000, "wait_for": "done> " });
    let session = session_of(&host.call("exec_command", cmd).await);
    for chars in ["rx\u{7f}m -f victim\n", "m -f victim\u{1}r\n", "rm\u{4}", "\u{15}ls\n"] {
        let typed = json!({ "session_id": session, "chars": chars });
        let refused = host.error("write_stdin", typed).await;
        assert!(refused.message().contains("keys that edit"), "{chars:?}: {refused}");
    }
    // A redirection typed in two parts is a file name that was never checked.
    let typed = json!({ "session_id": session, "chars": "echo x > .env" });
    host.call("write_stdin", typed).await;
    let refused =
        host.error("write_stdin", json!({ "session_id": session, "chars": "rc\n" })).await;
    assert!(refused.message().contains("in parts"), "{refused}");
    assert!(!host.folder.path().join(".envrc").exists());
    host.call("kill_session", json!({ "session_id": session })).await;
}

// SH9, SH10: Ctrl-C does not end a line with text after it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_line_that_outlives_an_interrupt_is_judged_as_one() {
    for (start, is_kept) in [(":", false), ("trap '' INT", true), ("stty intr ^X", true)] {
        let host = Host::new(Mode::Bypass, &["deny exec_command(touch *)"]);
        let words = ["--default-signal=INT", "bash", "--noprofile", "--norc", "-i"];
        let bash =
            BackgroundCommand::new("env", words).terminal(true).current_dir(host.folder.path());
        let bash = host.session.extension::<BackgroundProcesses>().spawn(&bash).unwrap();
        // The echo of what is typed is not an answer; that of a part says that bash has read it.
        for (chars, answer) in
            [(format!("{start}; echo rea''dy\n"), "ready"), ("tou".into(), "tou")]
        {
            bash.type_text(&chars).await.unwrap();
            let mut heard = String::new();
            for _ in 0..600 {
                heard +=
                    &bash.read_output(Duration::from_millis(50), |_| {}).await.output.to_text();
                if heard.contains(answer) {
                    break;
                }
            }
        }
        bash.type_text("\u{3}").await.unwrap();
        let typed = |chars: &str| json!({ "session_id": bash.id(), "chars": chars });
        let outcome = host.outcome("write_stdin", &typed("ch victim\n")).await;
        assert_eq!(outcome.result.is_err(), is_kept, "{start}: {}", outcome.text());
        assert!(!host.folder.path().join("victim").exists(), "{start}");
    }
}

#[tokio::test]
async fn without_a_terminal_only_an_interrupt_gets_through() {
    let host = Host::open();
    let cmd = "env --default-signal=INT sleep 300";
    let cmd = json!({ "cmd": cmd, "yield_time_ms": 250 });
    let session = session_of(&host.call("exec_command", cmd).await);
    let refused = host.error("write_stdin", json!({ "session_id": session, "chars": "x" })).await;
    assert_eq!(
        refused.message(),
        "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open"
    );
    let interrupt = json!({ "session_id": session, "chars": "\u{3}", "yield_time_ms": 10_000 });
    let report = host.call("write_stdin", interrupt).await;
    assert!(field(&report, "Process exited with code ").starts_with("130"), "{report}");
}

#[tokio::test]
async fn a_session_can_be_ended() {
    let host = Host::open();
    let cmd = json!({ "cmd": "echo begun; exec sleep 300", "yield_time_ms": 250 });
    let session = session_of(&host.call("exec_command", cmd).await);
    let report = host.call("kill_session", json!({ "session_id": session })).await;
    let exit = field(&report, "Process exited with code ");
    assert_eq!(exit, "143 (ended by signal 15)");
    host.error("kill_session", json!({ "session_id": session })).await;
}

// SH9: a session of another conversation is unknown.
#[tokio::test]
async fn sessions_belong_to_their_conversation() {
    let mut host = Host::open();
    let cmd = json!({ "cmd": "sleep 300", "yield_time_ms": 250 });
    let session = session_of(&host.call("exec_command", cmd).await);
    let workspace = Workspace::open([host.folder.path()]).unwrap();
    let first = std::mem::replace(&mut host.session, Session::new("other").with_service(workspace));
    for tool in ["write_stdin", "kill_session"] {
        host.error(tool, json!({ "session_id": session })).await;
    }
    host.session = first;
    host.call("kill_session", json!({ "session_id": session })).await;
}

/// Starts a command that holds a pipe open as long as any part of it runs.
async fn held(host: &Host) -> std::fs::File {
    let pipe = host.folder.path().join("pipe");
    if !pipe.exists() {
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    }
    let cmd = "exec 3> pipe; trap '' TERM; setsid sleep 300 & env -i setsid -f sleep 300; \
               sleep 300";
    let call = host.call("exec_command", json!({ "cmd": cmd, "yield_time_ms": 250 }));
    let opened = tokio::task::spawn_blocking(|| std::fs::File::open(pipe));
    let (report, opened) = tokio::join!(call, opened);
    session_of(&report);
    opened.unwrap().unwrap()
}

async fn let_go(mut held: std::fs::File) {
    use std::io::Read as _;

    let ended = tokio::task::spawn_blocking(move || held.read_to_end(&mut Vec::new()));
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    ended.expect("nobody holds the pipe").unwrap().unwrap();
}

// fault 15: what runs on ends when the host closes its tools, and when it drops the session.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_the_pipeline_or_the_session() {
    let host = Host::open();
    let pipe = held(&host).await;
    host.pipeline.close().await;
    let_go(pipe).await;

    let host = Host::open();
    let pipe = held(&host).await;
    drop(host);
    let_go(pipe).await;
}

// fault 15: typing and looking at what has ended is an error that says so.
#[tokio::test]
async fn ended_session_is_unknown() {
    let host = Host::open();
    for (tool, arguments) in [
        ("write_stdin", json!({ "session_id": 5, "chars": "x" })),
        ("write_stdin", json!({ "session_id": 5 })),
        ("kill_session", json!({ "session_id": 5 })),
    ] {
        let error = host.error(tool, arguments).await;
        assert_eq!(error.message(), "Unknown process id 5");
    }
}

// fault 7, CH8: what was lost is said exactly, and controls are taken out.
#[tokio::test]
async fn long_output_loses_its_middle_and_says_how_much() {
    let host = Host::open();
    let flood = json!({ "cmd": "yes | head -c 4000000", "max_output_tokens": 20 });
    let report = host.call("exec_command", flood).await;
    assert_eq!(field(&report, "Original token count: "), "1000000");
    let lost = 4_000_000 - (1 << 20);
    assert!(report.contains(&format!("{lost} bytes were never captured")), "{report}");
    // What marks the cut is none of it.
    assert!(report.contains(" of 2000000 lines and ") && report.contains(" of 4000000 bytes left"));
    assert!(report.len() < 2000, "{report}");

    // F95, F99: one cut, whose counts are those of the command.
    let numbers = json!({ "cmd": "seq 1 9000", "max_output_tokens": 50 });
    let report = host.call("exec_command", numbers).await;
    let notice = "[8952 of 9000 lines and 43694 of 43893 bytes left out]";
    assert!(report.contains(notice), "{report}");

    let colours = json!({ "cmd": r"printf '\033[31mred\033[0m\0\r\n\377'" });
    assert_eq!(output(&host.call("exec_command", colours).await), "red\n\u{fffd}");
}

// F34: neither the number of a part nor the time that it took makes another result of it.
#[tokio::test]
async fn the_same_command_again_and_again_is_a_loop() {
    let mut host = Host::open();
    host.pipeline = host.pipeline.loop_guard(LoopGuard::default());
    for _ in 0..2 {
        host.call("exec_command", json!({ "cmd": "cat missing; exit 3" })).await;
    }
    let looped = host.error("exec_command", json!({ "cmd": "cat missing; exit 3" })).await;
    assert!(looped.message().contains("3 times"), "{looped}");

    // How it ended is a part of the result, also where it wrote nothing.
    let count = json!({ "cmd": "echo >> count; exit $(wc -l < count)" });
    for _ in 0..4 {
        host.call("exec_command", count.clone()).await;
    }
}

// F138: what comes in two parts is one, and nothing of it is lost.
#[tokio::test]
async fn joins_input_split_between_calls() {
    for (first, second, expected) in [
        (r"a\303", r"\244b", ["a", "äb"]),
        (r"a\033[3", r"1mred\033[0m", ["a", "red"]),
        (r"a\033]0;ti", r"tle\033\\b", ["a", "b"]),
        (r"a\r", r"\nb", ["a", "\nb"]),
        // A cut is not all that counts: what has ended is not waited for.
        (r"a\033[3", "", ["a", ""]),
        (r"a\303", "", ["a", "\u{fffd}"]),
    ] {
        let host = Host::open();
        let cmd = "printf 'FIRST'; until [ -e go ]; do sleep 0.05; done; printf 'SECOND'";
        let cmd = cmd.replace("FIRST", first).replace("SECOND", second);
        let cmd = json!({ "cmd": cmd, "yield_time_ms": 30_000, "wait_for": "a" });
        let report = host.call("exec_command", cmd).await;
        std::fs::write(host.folder.path().join("go"), "").unwrap();
        let rest = json!({ "session_id": session_of(&report), "yield_time_ms": 30_000 });
        let rest = host.call("write_stdin", rest).await;
        assert_eq!([output(&report), output(&rest)], expected, "{first} {second}");
    }
}

/// Whether what was waited for came, as the report says.
fn came(report: &str) -> bool {
    field(report, "Awaited text ") == "has been found"
}

// F138: who waits for a text gets on as soon as it is there.
#[tokio::test]
async fn a_text_ends_the_wait() {
    let host = Host::open();
    let cmd = json!({ "cmd": "echo ready; exec sleep 300", "yield_time_ms": 30_000, "wait_for": "ready" });
    let report = host.call("exec_command", cmd).await;
    assert!(came(&report) && session_of(&report) > 0, "{report}");
    assert_eq!(output(&report), "ready\n");
    let wall: f64 = field(&report, "Wall time: ").trim_end_matches(" seconds").parse().unwrap();
    assert!(wall < 30.0, "it waited to the end: {report}");
    // What was given back does not come again.
    let again = json!({ "cmd": "echo a; exec sleep 300", "yield_time_ms": 250, "wait_for": "b" });
    let report = host.call("exec_command", again).await;
    assert!(!came(&report) && session_of(&report) > 0, "{report}");
    let ended = json!({ "cmd": "echo b", "wait_for": "b" });
    assert!(came(&host.call("exec_command", ended).await));
    let ended = json!({ "cmd": "exit 7", "wait_for": "b" });
    let report = host.call("exec_command", ended).await;
    assert!(!came(&report), "{report}");
    assert_eq!(field(&report, "Process exited with code "), "7");
    host.error("exec_command", json!({ "cmd": "ls", "wait_for": "" })).await;
}

// F138: also what came between two calls is waited for, and watchers see it.
#[tokio::test]
async fn buffered_text_ends_the_wait_at_once() {
    let host = Host::open();
    let cmd =
        "echo a; while [ ! -e go ]; do sleep 0.05; done; echo ready; touch gone; exec sleep 300";
    let cmd = json!({ "cmd": cmd, "yield_time_ms": 30_000, "wait_for": "a\n" });
    let report = host.call("exec_command", cmd).await;
    assert_eq!(output(&report), "a\n");
    let session = session_of(&report);
    std::fs::write(host.folder.path().join("go"), "").unwrap();
    while !host.folder.path().join("gone").exists() {
        tokio::task::yield_now().await;
    }
    let wait = json!({ "session_id": session, "yield_time_ms": 300_000, "wait_for": "ready" });
    let report = host.call("write_stdin", wait).await;
    assert!(came(&report), "{report}");
    assert_eq!(output(&report), "ready\n");
}

// F138: a shell that is kept, and a prompt that says that it is done.
#[tokio::test]
async fn a_prompt_ends_the_wait() {
    let host = Host::open();
    let cmd = "PS1='done> ' exec bash --noprofile --norc";
    let shell = json!({ "cmd": cmd, "tty": true, "yield_time_ms": 30_000, "wait_for": "done> " });
    let report = host.call("exec_command", shell).await;
    assert!(came(&report), "{report}");
    let session = session_of(&report);
    for number in 1..=3 {
        let typed = json!({
            "session_id": session, "chars": format!("n=$((n + {number})); echo $n\n"),
            "yield_time_ms": 30_000, "wait_for": "done> ",
        });
        let report = host.call("write_stdin", typed).await;
        assert!(came(&report), "{report}");
        let sum = number * (number + 1) / 2;
        assert!(output(&report).contains(&format!("\n{sum}\n")), "{report}");
    }
    host.call("kill_session", json!({ "session_id": session })).await;
}
