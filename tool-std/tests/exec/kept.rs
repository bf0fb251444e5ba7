//! Scripts over a kept shell: the same as without one, only sooner.

use std::fs;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::json;
use tool_sdk::Settings;
use tool_sdk::process::Processes;
use tool_std::shell::understand;

use crate::support::{Host, field, output};

impl Host {
    /// Keeps a shell for scripts.
    fn keeping(mut self) -> Self {
        let mut settings = Settings::default();
        settings.kept_shell = true;
        self.session = self.session.lend(settings);
        self
    }

    /// The exit code of a script and what it wrote.
    async fn end_of(&self, script: &str) -> (String, String) {
        let report = self.call("shell_command", json!({ "command": script })).await;
        let folder = self.folder.path().canonicalize().unwrap();
        let said = output(&report).replace(folder.to_str().unwrap(), "FOLDER");
        (field(&report, "Exit code: ").to_owned(), said)
    }

    /// The number of the shell that runs a script.
    async fn shell(&self) -> String {
        self.end_of("true; sh -c 'echo $PPID'; true").await.1
    }
}

/// Two hosts with the same files, of which the first keeps a shell.
fn hosts() -> [Host; 2] {
    let hosts = [Host::open().keeping(), Host::open()];
    for host in &hosts {
        fs::write(host.folder.path().join("a b.txt"), "one\ntwo\n").unwrap();
        fs::create_dir(host.folder.path().join("ü")).unwrap();
    }
    hosts
}

// S9: the mode changes nothing that a script says.
#[tokio::test]
async fn scripts_end_and_write_as_without_it() {
    let [kept, plain] = hosts();
    let shell = kept.shell().await;
    for script in [
        "true; true",
        "echo a; false",
        "false || echo x",
        "true && false && echo never",
        "false | true",
        "true | false",
        "echo one two | tr a-z A-Z | cat",
        "cat 'a b.txt' | wc -l; ls *.txt",
        "ls *.none || echo none",
        "nothing-of-this-name; echo after",
        "echo before; nothing-of-this-name",
        "echo a\nnothing-of-this-name\n\n./nothing-either",
        "cat | wc -c",
        "sh -c 'exit 77'; sh -c 'exit 78'",
        "[ -f 'a b.txt' ] && test -d ü && echo both",
        "[ a -eq b ]; echo after",
        "echo grün 日本 '$HOME' \"a  b\"; ls",
        "sh -c 'echo out; echo err >&2'; echo last",
        "seq 1 200000 | tail -n 1; seq 1 300000",
        "sh -c 'kill -PIPE $$'; echo after",
        "echo \"it's\" 'a\nb'; pwd -P | grep -c /",
        "env -i /usr/bin/env; true; env | grep -c PWD; true",
        "ls /proc/self/fd | wc -l; echo end",
        "true; sh -c 'ulimit -n; umask; trap'; true",
        "sh -c 'kill -TERM $PPID; sleep 60'; echo never",
    ] {
        let got = kept.end_of(script).await;
        assert_eq!(got, plain.end_of(script).await, "{script}");
    }
    // The last one ended it.
    assert_ne!(kept.shell().await, shell);
    assert_eq!(kept.shell().await, kept.shell().await);
    assert_ne!(plain.shell().await, plain.shell().await);
    assert!(Processes::of(&kept.session).list().is_empty());
}

// A script ends with its last program, which a bash of its own becomes and a kept one waits for.
#[tokio::test]
async fn an_end_by_a_signal_has_the_same_code() {
    for host in hosts() {
        let report = host.call("shell_command", json!({ "command": "true; sh -c 'kill -9 $$'" }));
        assert!(field(&report.await, "Exit code: ").starts_with("137"));
    }
}

// What other tools and arguments mean is as without it, too.
#[tokio::test]
async fn sessions_and_time_limits_are_the_same() {
    for host in hosts() {
        let running = json!({ "cmd": "echo begun; sleep 1; echo done", "yield_time_ms": 250 });
        let report = host.call("exec_command", running).await;
        assert_eq!(output(&report), "begun\n");
        let session = crate::support::session_of(&report);
        let waiting = json!({ "session_id": session, "yield_time_ms": 30_000 });
        let report = host.call("write_stdin", waiting).await;
        assert_eq!(field(&report, "Process exited with code "), "0");
        assert_eq!(output(&report), "done\n");

        let endless = json!({ "command": "echo begun; sleep 300; true", "timeout_ms": 400 });
        let report = host.call("shell_command", endless).await;
        assert!(report.starts_with("command timed out after 400 milliseconds\nExit code: 124\n"));
        assert_eq!(output(&report), "begun\n");

        let endless = json!({ "cmd": "sleep 300; true", "yield_time_ms": 250 });
        let session = crate::support::session_of(&host.call("exec_command", endless).await);
        let interrupt = json!({ "session_id": session, "chars": "\u{3}", "yield_time_ms": 9_000 });
        let report = host.call("write_stdin", interrupt).await;
        assert!(field(&report, "Process exited with code ").starts_with("130"), "{report}");

        let gone = host.folder.path().join("gone");
        fs::create_dir(&gone).unwrap();
        let there = json!({ "command": "echo a; ls", "workdir": "gone" });
        assert_eq!(output(&host.call("shell_command", there.clone()).await), "a\n");
        fs::remove_dir(&gone).unwrap();
        assert!(host.error("shell_command", there).await.to_string().contains("gone"));
    }
}

// SH8: what may change a shell has one of its own, and changes nothing for those that come after.
#[tokio::test]
async fn nothing_passes_from_one_script_to_the_next() {
    let host = Host::open().keeping();
    let shell = host.shell().await;
    for script in [
        "cd /; ls",
        "export X=1",
        "X=1",
        "PATH=/nowhere",
        "ls() { echo mine; }",
        "alias ls='echo mine'; shopt -s expand_aliases",
        "set -e; false",
        "umask 777; ulimit -n 5",
        "trap 'echo trapped' EXIT DEBUG",
        "exec 1>/dev/null",
        "eval 'cd /'; . /dev/null; source /dev/null",
        "exit 3",
        "hash -p /bin/false ls",
        "printf -v PATH x; printf '%n' PATH",
        "enable -n echo; unset PATH; readonly HOME; declare PWD=x",
        "read x; mapfile y; getopts a b",
        "sleep 0 & wait; jobs; disown",
        "builtin cd /; command cd /; pushd /",
        "test -v 'x[0]'",
        "logout; return; break; suspend",
    ] {
        let report = host.call("shell_command", json!({ "command": script, "timeout_ms": 1500 }));
        report.await;
        assert_eq!(host.shell().await, shell, "{script}");
        let (code, said) = host.end_of("ls; echo after; sh -c 'umask; ulimit -n; echo [$X]'").await;
        assert_eq!((code.as_str(), &said[..6]), ("0", "after\n"), "{script}");
        assert!(!said.contains("mine") && said.ends_with("[]\n"), "{script}: {said}");
    }
    // So do variables, other shells and terminals.
    for arguments in [
        json!({ "cmd": "true; sh -c 'echo $PPID'; true", "env": ["TZ=UTC"] }),
        json!({ "cmd": "true; sh -c 'echo $PPID'; true", "shell": "sh" }),
        json!({ "cmd": "true; sh -c 'echo $PPID'; true", "login": true }),
        json!({ "cmd": "true; sh -c 'echo $PPID'; true", "tty": true }),
    ] {
        let report = host.call("exec_command", arguments.clone()).await;
        assert_ne!(output(&report).trim(), shell.trim(), "{arguments}");
    }
    assert_eq!(host.shell().await, shell);
}

/// Words of scripts that end soon and touch nothing, and say the same when nobody reads it.
fn words() -> impl Strategy<Value = String> {
    let argument = prop_oneof![
        "[a-zäß日]{0,6}",
        "'[ -~&&[^']]{0,8}'",
        Just("*".to_owned()),
        Just("-n".to_owned()),
        Just("a\\ b".to_owned()),
        Just("\"a b.txt\"".to_owned()),
    ];
    let program = prop::sample::select(vec![
        "echo",
        "true",
        "false",
        "pwd",
        "sh -c cat",
        "wc -c",
        "ls",
        "tr a b",
        "sh -c 'head -c 9'",
        "test -f",
        "[",
        "expr",
        ":",
        "none-of-this-name",
        "./none",
        "sh -c 'exit 3'",
        "seq 9",
    ]);
    (program, prop::collection::vec(argument, 0..3))
        .prop_map(|(program, arguments)| format!("{program} {}", arguments.join(" ")))
}

fn scripts() -> impl Strategy<Value = String> {
    let joined = prop::sample::select(vec!["; ", " && ", " || ", " | ", "\n"]);
    (words(), prop::collection::vec((joined, words()), 1..5)).prop_map(|(first, rest)| {
        rest.into_iter().fold(first, |script, (joined, words)| script + joined + &words)
    })
}

// S9: for any script that it may run, a kept shell says what a bash of its own says.
#[test]
fn any_script_ends_as_without_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let [kept, plain] = hosts();
    check(60, &scripts(), |script| {
        let ends = async { (kept.end_of(&script).await, plain.end_of(&script).await) };
        let ((got, said), (expected, meant)) = runtime.block_on(ends);
        prop_assert_eq!(got, expected);
        // The programs of a pipeline write at the same time.
        prop_assert_eq!(sorted(&said), sorted(&meant));
        Ok(())
    });
}

fn sorted(text: &str) -> Vec<char> {
    let mut letters: Vec<char> = text.chars().collect();
    letters.sort_unstable();
    letters
}

/// Pieces of scripts that would like to change the shell.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = vec![
        "cd", "export", "X=1", "set", "-e", "x", "y", "'", "\"", "\\", " ", " ", " ", ";", "&&",
        "||", "|", "&", "\n", "(", ")", "{", "}", "$X", "$(x)", "`x`", "<", ">", "f()", "alias",
        "x=y", "eval", "exec", "exit", "trap", "test", "-v", "[", "]", "printf", "%n", "PATH",
        "unset", "hash", "echo", "pwd", "-P", "true", "!", "time", "read", "[[", "]]", "#", "~",
        "=", "*", "%1", ".", "source", "shopt", "-s", "umask", "0", "if", "then", "fi", "ü", "--",
    ];
    prop::collection::vec(prop::sample::select(pieces), 1..12).prop_map(|pieces| pieces.concat())
}

/// Has a shell say all that it can of itself, run a script, and say it again.
const TWICE: &str = "state() { hash -r; declare -p; declare -f; alias; shopt; set +o; trap; umask; \
                     ulimit -a; pwd; jobs; enable -a; echo ====; }; \
                     state; eval -- \"$1\" </dev/null >/dev/null 2>&1; state";

/// What no script without variables can ask for.
fn is_about_last_command(line: &str) -> bool {
    [" _=", " PIPESTATUS="].iter().any(|name| line.contains(name))
}

// SH8: what is said to leave a shell as it was does so, whatever it looks like.
#[test]
fn what_a_kept_shell_may_run_leaves_it_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let leaves = |script: &String| understand(script).leaves_shell();
    let hostile = pieces().prop_filter("it has a shell of its own", leaves);
    check(40, &hostile, |script| {
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-c", TWICE, "bash", &script]);
        let said = bash.current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let state = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !is_about_last_command(line));
            lines.map(str::to_owned).collect()
        };
        let (before, after) = said.split_once("\n====\n").unwrap();
        prop_assert_eq!(state(before), state(after.trim_end_matches("\n====\n")));
        Ok(())
    });
}

fn check<S: Strategy>(
    cases: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases,
        max_local_rejects: 1_000_000,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config).run(strategy, test).unwrap();
}
