//! The program at a terminal: what it says, asks and shows there.

#![cfg(all(feature = "application", target_os = "linux"))]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A program whose standard streams are a terminal of this many columns.
struct TerminalProgram {
    screen: File,
    shown: String,
    child: Child,
}

impl TerminalProgram {
    fn start(folder: &Path, columns: u16, env: &[(&str, &str)], args: &[&str]) -> Self {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there is one");
        grantpt(&user).expect("it is ours");
        unlockpt(&user).expect("it is ours");
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&user, size).expect("it is ours");
        let name = ptsname(&user, Vec::new()).expect("it has a name");
        let path = Path::new(name.to_str().expect("ASCII"));
        let open = || File::options().read(true).write(true).open(path).expect("it opens");
        let child = Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .args(args)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("PATH", "/usr/bin:/bin")
            .env("TOOL_SDK_ROOT", folder)
            .envs(env.iter().copied())
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()))
            .spawn()
            .expect("the program runs");
        Self { screen: user.into(), shown: String::new(), child }
    }

    /// Reads until the screen shows the text.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let mut part = [0; 4096];
        while !self.shown.contains(text) {
            match self.screen.read(&mut part) {
                Ok(read) if read > 0 => self.shown += &String::from_utf8_lossy(&part[..read]),
                _ => panic!("the program ended before it showed {text:?}: {}", self.shown),
            }
        }
    }

    /// Types the text, and again while nothing is shown: a prompt discards what is typed before it.
    #[track_caller]
    fn answer(&mut self, text: &str, expected: &str) {
        const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        self.shown.clear();
        // The terminal shows what is typed, also when the prompt discards it.
        while self.shown.lines().all(|line| line.trim_end() == text.trim_end()) {
            self.type_text(text);
            let mut ready = [PollFd::new(&self.screen, PollFlags::IN)];
            while poll(&mut ready, Some(&PATIENCE)).expect("it is a terminal") > 0 {
                let mut part = [0; 4096];
                match self.screen.read(&mut part) {
                    Ok(read) if read > 0 => self.shown += &String::from_utf8_lossy(&part[..read]),
                    _ => break,
                }
                if self.shown.contains(expected) {
                    return;
                }
                ready = [PollFd::new(&self.screen, PollFlags::IN)];
            }
        }
        self.wait_for(expected);
    }

    fn type_text(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).expect("it reads");
    }

    /// Reads until the program ends; returns its exit code and everything that it showed.
    fn finish(mut self) -> (Option<i32>, String) {
        let mut part = [0; 4096];
        // The end of the terminal is an error on Linux.
        while let Ok(read @ 1..) = self.screen.read(&mut part) {
            self.shown += &String::from_utf8_lossy(&part[..read]);
        }
        let status = self.child.wait().expect("it ends");
        (status.code(), self.shown)
    }
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room")
}

#[test]
fn a_server_says_that_it_waits_for_a_client() {
    let home = home();
    let mut server = TerminalProgram::start(home.path(), 80, &[], &["serve", "mcp"]);
    server.wait_for("waiting for an MCP client");
    server.wait_for("setup claude-code --write");
    // The end of the input.
    server.type_text("\x04");
    assert_eq!(server.finish().0, Some(0));
}

// F173: what runs is seen while it runs, and once.
#[test]
fn output_of_a_command_is_shown_while_it_runs() {
    let home = home();
    let gate = home.path().join("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RWXU).expect("there is room");
    let command = "echo begun; cat gate; echo 'x\\033[2Jy'";
    let mut call = TerminalProgram::start(
        home.path(),
        80,
        &[("NO_COLOR", "1")],
        &["--yes", "call", "exec_command", "--cmd", command],
    );
    call.wait_for("  | begun");
    // The command waits until its output was seen.
    std::fs::write(&gate, "opened\n").expect("the command reads");
    let (code, shown) = call.finish();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(shown.matches("| opened").count(), 1, "{shown}");
    assert!(!shown.contains("\nopened"), "the result does not repeat it: {shown}");
    assert!(shown.contains("Process exited with code 0"), "{shown}");
    assert!(!shown.contains("x\x1b[2Jy"), "{shown}");
}

#[test]
fn a_question_has_help_and_colours() {
    let home = home();
    std::fs::write(home.path().join("a.txt"), "one\ntwo\n").expect("there is room");
    let edit = ["call", "edit_file", "--path", "a.txt", "--old-string", "two", "--new-string", "2"];
    for (env, options, is_coloured) in [
        (&[][..], &[][..], true),
        (&[("NO_COLOR", "1")], &[], false),
        (&[("NO_COLOR", "1")], &["--color", "always"], true),
        (&[], &["--color=never"], false),
    ] {
        let mut call = TerminalProgram::start(home.path(), 80, env, &[options, &edit].concat());
        call.wait_for("[?] help");
        call.wait_for("> ");
        assert_eq!(call.shown.contains("\x1b[31m-two\x1b[0m"), is_coloured, "{}", call.shown);
        call.answer("?\n", "y  run this call, once");
        call.answer("n\n", "the user rejected it");
        let (code, shown) = call.finish();
        assert_eq!(code, Some(3), "{shown}");
        assert_eq!(shown.contains("\x1b[1;31merror:\x1b[0m"), is_coloured, "{shown}");
    }
    // A change that was approved is shown as a diff.
    let approved = [&["--yes", "--color", "always"], &edit[..]].concat();
    let (code, shown) = TerminalProgram::start(home.path(), 80, &[], &approved).finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("\x1b[32m+2\x1b[0m"), "{shown}");
}

// F153: a question is a form at the terminal.
#[test]
fn a_decision_is_made_at_the_terminal() {
    let home = home();
    let arguments = r#"{"question": "Which shelf?", "options": [{"label": "upper"}, {"label": "lower"}, {"label": "none"}], "selection_mode": "multiple", "max_selections": 2, "allow_other": false}"#;
    let call = ["call", "request_decision", arguments];
    let mut asked = TerminalProgram::start(home.path(), 80, &[("NO_COLOR", "1")], &call);
    asked.wait_for("[?] help");
    asked.wait_for("> ");
    assert!(asked.shown.contains("| Which shelf?"), "{}", asked.shown);
    asked.answer("y\n", "commas between them, required)");
    // Three are too many.
    asked.answer("1,2,3\n", "invalid value");
    asked.answer("2, upper\n", "The user chose");
    let (code, shown) = asked.finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("The user chose: \"lower\", \"upper\""), "{shown}");

    let mut asked = TerminalProgram::start(home.path(), 80, &[("NO_COLOR", "1")], &call);
    asked.wait_for("> ");
    asked.answer("n\n", "does not want to answer");
    assert_eq!(asked.finish().0, Some(0));
}

// F154: a secret is typed without being shown, kept in the file of the project, and never printed.
#[test]
fn a_secret_is_typed_unseen() {
    let home = home();
    let state = home.path().join("state");
    let work = home.path().join("work");
    std::fs::create_dir(&work).expect("there is room");
    let env = [
        ("NO_COLOR", "1"),
        ("TOOL_SDK_ROOT", work.to_str().expect("UTF-8")),
        ("TOOL_SDK_STATE_DIR", state.to_str().expect("UTF-8")),
    ];
    let request = r#"{"fields": [{"variable_name": "TYPED_KEY"}], "save_to_project": true}"#;
    let call = ["call", "request_env_var", request];
    let mut asked = TerminalProgram::start(home.path(), 80, &env, &call);
    asked.wait_for("[?] help");
    asked.wait_for("> ");
    asked.answer("y\n", "(not shown) > ");
    asked.type_text("correct horse battery\n");
    asked.wait_for("set for this project: TYPED_KEY");
    let (code, shown) = asked.finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("horse"), "{shown}");

    let get = ["call", "get_env_var", "--variable-name", "TYPED_KEY"];
    let (code, shown) = TerminalProgram::start(home.path(), 80, &env, &get).finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("set (21 characters, secret, ****tery)"), "{shown}");
    assert!(!shown.contains("horse"), "{shown}");
}
