//! Text typed into a shell is checked as the text that the shell receives, and shown to the
//! approver.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tool_sdk::process::{BackgroundCommand, BackgroundProcess, BackgroundProcesses};
use tool_sdk::{Action, ApprovalResponse, Approver, Mode, ScriptedApprover, ToolError};

use crate::support::{Host, check, session_of};

// SB2, SH9: into which session it goes, and how far that is confined.
#[tokio::test]
async fn an_ask_about_typing_shows_the_session() {
    let host = Host::new(Mode::Auto, &["allow exec_command(cat)"]);
    let asked = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Reject));
    let approver: Arc<dyn Approver> = Arc::<ScriptedApprover>::clone(&asked);
    let host = Host { session: host.session.clone().with_shared_approver(approver), ..host };
    let cmd = json!({ "cmd": "cat", "tty": true, "yield_time_ms": 250 });
    let session = session_of(&host.call("exec_command", cmd).await);
    host.error("write_stdin", json!({ "session_id": session, "chars": "x\n" })).await;
    let preview = asked.requests()[0].preview.clone();
    let sandbox = "off: nothing confines the files that the command opens to the workspace";
    assert_eq!(preview, Some(json!({ "session": "cat", "sandbox": sandbox })));
}

// SH9: the approver reads that no shell receives the text.
#[tokio::test]
async fn preview_says_that_no_shell_reads_the_text() {
    let host = Host::new(Mode::Auto, &[]);
    for (program, expected) in [
        ("cat", "`cat` reads it, which is no shell, so what it does is unknown"),
        ("dash", "a shell other than bash reads it"),
    ] {
        if program == "dash" && !Path::new("/bin/dash").exists() {
            eprintln!("not tried with dash: this system has none");
            continue;
        }
        let process =
            BackgroundCommand::new(program, [""; 0]).terminal(true).current_dir(host.folder.path());
        let process = host.session.extension::<BackgroundProcesses>().spawn(&process).unwrap();
        let typed = json!({ "session_id": process.id(), "chars": "x\n" });
        let mut reason = String::new();
        for _ in 0..1200 {
            reason = check(&host, "write_stdin", &typed).await.decision.reason.into_owned();
            if reason.contains(expected) {
                break;
            }
            // It may not be that program yet.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(reason.contains(expected), "{program}: {reason}");
    }
}

/// A bash session of a host whose approver accepts everything, and where only `touch` is denied.
struct Typist {
    host: Host,
    bash: Arc<BackgroundProcess>,
}

impl Typist {
    /// Starts the shell, and waits until it is at its prompt: where the shell is, is a part of what a text
    /// is asked about, and a shell that is not there yet is ended by Ctrl-C.
    async fn start(mode: Mode, rules: &[&str]) -> Self {
        let host = Host::new(mode, rules);
        let yes: Arc<dyn Approver> =
            Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once));
        let host = Host { session: host.session.clone().with_shared_approver(yes), ..host };
        let words = ["--default-signal=INT", "bash", "--noprofile", "--norc", "-i"];
        let bash =
            BackgroundCommand::new("env", words).terminal(true).current_dir(host.folder.path());
        let bash = host.session.extension::<BackgroundProcesses>().spawn(&bash).unwrap();
        let typist = Self { host, bash };
        #[cfg(target_os = "linux")]
        typist.waits().await;
        typist
    }

    /// Types behind everybody's back, and waits until that was read.
    async fn prepare(&self, line: &str) {
        self.bash.type_text(&format!("{line}; echo rea''dy\n")).await.unwrap();
        let mut heard = String::new();
        for _ in 0..600 {
            heard +=
                &self.bash.read_output(Duration::from_millis(50), |_| {}).await.output.to_text();
            if heard.contains("ready\r") {
                return;
            }
        }
        panic!("it never answered: {heard}");
    }

    /// Waits until the shell is at its prompt.
    async fn waits(&self) {
        for _ in 0..600 {
            if self.bash.is_noncanonical() {
                return;
            }
            self.bash.read_output(Duration::from_millis(50), |_| {}).await;
        }
        panic!("it never waits");
    }

    async fn types(&self, chars: &str) -> Result<(), ToolError> {
        let typed = json!({ "session_id": self.bash.id(), "chars": chars });
        self.host.outcome("write_stdin", &typed).await.result.map(drop)
    }

    /// What becomes of a text, which is not typed.
    async fn becomes(&self, chars: &str) -> Action {
        let typed = json!({ "session_id": self.bash.id(), "chars": chars });
        check(&self.host, "write_stdin", &typed).await.decision.action
    }

    /// Types texts, of which only the last is refused.
    async fn is_refused(&self, texts: &[&str], expected: &str) {
        let (last, before) = texts.split_last().unwrap();
        for text in before {
            self.types(text).await.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
        let Err(error) = self.types(last).await else { panic!("{texts:?} were typed") };
        assert!(error.message().contains(expected), "{texts:?}: {error}");
        assert!(!self.host.folder.path().join("victim").exists(), "{texts:?}");
    }
}

const DENIED: &[&str] = &["deny exec_command(touch *)"];

// SH9, SH10: what stands open of what was typed before says what a text is.
#[tokio::test]
async fn pending_input_is_checked_with_new_text() {
    for texts in [
        ["echo '\n", "echo '; touch victim #'\n"],
        ["echo \"\n", "echo \"; touch victim #\"\n"],
        ["cat <<'X'\n", "echo '\nX\ntouch victim #'\n"],
        ["x=(a '\n", "echo '); touch victim #'\n"],
        ["echo ) '\n", "touch victim #'\n"],
        // What `read` reads opens no quote.
        ["read x\n'\n", "touch victim #'\n"],
        ["tou", "ch victim\n"],
        // A terminal takes both ends of a line for one.
        ["tou\\\r", "ch victim\r"],
        ["tou\\\n", "ch victim\n"],
    ] {
        let typist = Typist::start(Mode::Bypass, DENIED).await;
        typist.is_refused(&texts, "touch").await;
    }
    // Ctrl-D hands on a part of a line, or does nothing.
    let texts = ["tou", "\u{4}", "ch victim\n"];
    Typist::start(Mode::Bypass, DENIED).await.is_refused(&texts, "touch").await;
    // Ctrl-C drops it.
    let typist = Typist::start(Mode::Bypass, DENIED).await;
    for text in ["echo '\n", "\u{3}", "echo '; touch victim #'\n"] {
        typist.types(text).await.unwrap();
    }
}

// SH9, SH10: if another program may read a part, the text that the shell receives is unknown.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn mixed_input_needs_approval() {
    for texts in [
        &["head -c 1\n\"echo '\"\n"][..],
        &["head -c 1\n\"echo '\"\n", "'; touch victim #'\n"],
        &["head -c 1\n", "\"echo '\"\n", "'; touch victim #'\n"],
        &["head -n 1\n", "echo 'a\nb'\n", "'; touch victim #'\n"],
        &["head -c 2\nxxtouch victim\n"],
        &["read -n1 x\n", "\"echo '\"\n", "'; touch victim #'\n"],
        // It may change the keys of the terminal.
        &["python3 -c 'x'\nqxtouch victim\n"],
    ] {
        let typist = Typist::start(Mode::Bypass, DENIED).await;
        typist.prepare("true").await;
        typist.waits().await;
        let (last, before) = texts.split_last().unwrap();
        for text in before {
            typist.types(text).await.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
        typist.waits().await;
        assert_ne!(typist.becomes(last).await, Action::Allow, "{texts:?}");
        // Ctrl-C throws away what is left of it.
        typist.types("\u{3}").await.unwrap();
        typist.waits().await;
        assert_eq!(typist.becomes("echo 'a b'\n").await, Action::Allow, "{texts:?}");
    }
    // What can leave nothing open needs none.
    let typist = Typist::start(Mode::Bypass, DENIED).await;
    typist.prepare("true").await;
    typist.waits().await;
    for text in ["head -n 1\n", "y\n", "cd .\nmkdir a b\necho 'a b'\n"] {
        typist.types(text).await.unwrap();
    }
    typist.waits().await;
    assert_eq!(typist.becomes("echo 'a b'\n").await, Action::Allow);
}

// SH10: a denied command stays denied if the shell may receive only a part of the text.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_part_that_a_shell_may_get_is_forbidden() {
    for texts in [
        &["head -c 2\nxxtouch victim\n"][..],
        &["head -c 8\necho 'a\ntouch victim\n'\n"],
        &["python3 -c 'x'\nqxtouch victim\n"],
        &["head -c 1\n\"echo '\"\n", "'; touch victim #'\n"],
        &["head -n 1\n", "echo 'a\nb'\n", "'; touch victim #'\n"],
    ] {
        let typist = Typist::start(Mode::Bypass, DENIED).await;
        typist.prepare("true").await;
        typist.waits().await;
        let (last, before) = texts.split_last().unwrap();
        for text in before {
            typist.types(text).await.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
        typist.waits().await;
        assert_eq!(typist.becomes(last).await, Action::Deny, "{texts:?}");
    }
}

// SH9: who reads what is typed is not known before the line was read that starts it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn unread_input_means_not_at_prompt() {
    let typist = Typist::start(Mode::Auto, &["allow exec_command(echo *)"]).await;
    typist.prepare("true").await;
    typist.waits().await;
    assert_eq!(typist.becomes("echo a\n").await, Action::Allow);
    // It reads nothing while it stands still.
    typist.bash.type_text("stty raw; echo rea''dy; kill -STOP $$\n").await.unwrap();
    let mut heard = String::new();
    for _ in 0..600 {
        heard += &typist.bash.read_output(Duration::from_millis(50), |_| {}).await.output.to_text();
        if heard.contains("ready") {
            break;
        }
    }
    assert!(heard.contains("ready") && typist.bash.is_noncanonical(), "{heard}");
    typist.bash.type_text("head -c 5\n").await.unwrap();
    // The system takes a moment to hand it on.
    for _ in 0..600 {
        if typist.bash.has_unread_input() {
            break;
        }
        typist.bash.read_output(Duration::from_millis(50), |_| {}).await;
    }
    assert!(typist.bash.has_unread_input() && typist.bash.is_noncanonical());
    assert_eq!(typist.becomes("echo a\n").await, Action::Ask);
}

// SH9: an option may change what a text means.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_bash_with_other_options_is_another_shell() {
    let host = Host::new(Mode::Bypass, DENIED);
    let words = ["--noprofile", "--norc", "+O", "interactive_comments", "-i"];
    let bash = BackgroundCommand::new("bash", words).terminal(true).current_dir(host.folder.path());
    let bash = host.session.extension::<BackgroundProcesses>().spawn(&bash).unwrap();
    let typist = Typist { host, bash };
    typist.waits().await;
    assert_eq!(typist.becomes("# it's\n").await, Action::Ask);
}

// SH9: a narrow rule covers a text only with what it goes on with.
#[tokio::test]
async fn a_rule_covers_no_text_that_goes_on() {
    let host = Host::new(Mode::Auto, &["allow exec_command(echo *)"]);
    let words = ["--noprofile", "--norc", "-i"];
    let bash = BackgroundCommand::new("bash", words).terminal(true).current_dir(host.folder.path());
    let bash = host.session.extension::<BackgroundProcesses>().spawn(&bash).unwrap();
    let typist = Typist { host, bash };
    typist.waits().await;
    typist.types("echo a\n").await.unwrap();
    let open = |typed: &str| typed.find('\'').map_or(typed.len(), |at| at.saturating_sub(5));
    typist.bash.type_checked("echo '\n", None, open).await.unwrap();
    typist.is_refused(&["echo '; touch victim #'\n"], "touch").await;
}

// SH9: the terminal, and a shell that asks it, take other keys for those that edit.
#[tokio::test]
async fn keys_that_the_terminal_was_told_to_take_do_not_reach_a_shell() {
    for (line, text) in [
        ("stty erase x", "qxtouch victim\n"),
        ("stty kill x", "echo hixtouch victim\n"),
        ("stty werase x", "echo xtouch victim\n"),
        ("stty intr x", "echo 'xtouch victim\n"),
        ("stty iuclc", "echo A\n"),
        ("stty igncr", "t\rouch victim\n"),
    ] {
        let typist = Typist::start(Mode::Bypass, DENIED).await;
        typist.prepare(line).await;
        typist.is_refused(&[text], "keys that edit").await;
        typist.types("\u{3}").await.unwrap();
    }
    // Who types ahead does so before the terminal was told.
    let typist = Typist::start(Mode::Bypass, &[]).await;
    // Until it is bash that reads.
    typist.prepare("true").await;
    typist.is_refused(&["true; stty erase x\n"], "keys that edit").await;
    // Others are none of its concern.
    let typist = Typist::start(Mode::Bypass, DENIED).await;
    typist.prepare("stty erase ^H kill ^X").await;
    typist.types("echo x X\n").await.unwrap();
}

// SH9, SH10: what changes the meaning of later texts cannot be held against what is forbidden.
#[tokio::test]
async fn rebinding_words_or_keys_needs_approval() {
    for text in ["alias x='tou''ch'\n", "bind x:accept-line\n", "stty lnext x\n", "stty $X\n"] {
        let host = Host::new(Mode::Bypass, DENIED);
        let bash = BackgroundCommand::new("bash", ["--noprofile", "--norc", "-i"]).terminal(true);
        let bash = host.session.extension::<BackgroundProcesses>().spawn(&bash).unwrap();
        let typist = Typist { host, bash };
        typist.waits().await;
        typist.is_refused(&[text], "").await;
        typist.types("stty -echo cols 100\n").await.unwrap();
    }
}

// SH9: a shell gets what is typed ahead, too.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn keys_that_edit_are_refused_while_something_stands_before_a_shell() {
    for text in ["q\u{7f}touch victim\n", "echo hi\u{15}touch victim\n", "\u{10}\n"] {
        let typist = Typist::start(Mode::Bypass, DENIED).await;
        typist
            .bash
            .type_text("echo rea''dy; exec 3<> /dev/null; tail -f /dev/null\n")
            .await
            .unwrap();
        let mut is_in_front = false;
        for _ in 0..600 {
            typist.bash.read_output(Duration::from_millis(50), |_| {}).await;
            is_in_front =
                typist.bash.foreground_file().is_some_and(|reader| reader.ends_with("tail"));
            if is_in_front {
                break;
            }
        }
        assert!(is_in_front);
        typist.is_refused(&[text], "keys that edit").await;
    }
    // A shell that was told what to run reads nothing.
    let host = Host::open();
    let cmd = json!({ "cmd": "cd . && cat -; true", "tty": true, "yield_time_ms": 250 });
    let session = session_of(&host.call("exec_command", cmd).await);
    host.call("write_stdin", json!({ "session_id": session, "chars": "a\u{7f}b\n" })).await;
}

// SH9: an allowed text may be typed line by line.
#[tokio::test]
async fn lines_that_belong_together_may_be_typed_one_by_one() {
    let typist = Typist::start(Mode::Bypass, &[]).await;
    for text in [
        "for i in 1 2; do\n",
        "echo $i > out$i\n",
        "done\n",
        "cat > text <<'EOF'\n",
        "it's\n",
        "EOF\n",
        "case x in\n",
        "x) echo x;;\n",
        "esac\n",
    ] {
        typist.types(text).await.unwrap_or_else(|error| panic!("{text:?}: {error}"));
    }
    let text = typist.host.folder.path().join("text");
    for _ in 0..600 {
        if std::fs::read_to_string(&text).is_ok_and(|text| text == "it's\n") {
            return;
        }
        typist.bash.read_output(Duration::from_millis(50), |_| {}).await;
    }
    panic!("it was not written");
}

// F92, SH9: what is typed is held to the workspace and to the rules like what is run.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn typed_text_reads_the_same_files_as_a_command() {
    let rules = ["allow exec_command(cat *)", "allow exec_command(cd *)", "deny read(sub/secret)"];
    let typist = Typist::start(Mode::Auto, &rules).await;
    let root = typist.host.folder.path();
    std::fs::create_dir(root.join("sub")).unwrap();
    for file in ["a.txt", "sub/secret"] {
        std::fs::write(root.join(file), "x").unwrap();
    }
    typist.prepare("true").await;
    typist.waits().await;
    for (chars, expected) in [
        ("cat a.txt\n", Action::Allow),
        ("cat /etc/hostname\n", Action::Ask),
        ("cat ../x\n", Action::Ask),
        ("cat sub/secret\n", Action::Deny),
        ("cd sub && cat secret\n", Action::Deny),
    ] {
        assert_eq!(typist.becomes(chars).await, expected, "{chars}");
    }
    typist.prepare("cd sub").await;
    typist.waits().await;
    assert_eq!(typist.becomes("cat secret\n").await, Action::Deny);
}
