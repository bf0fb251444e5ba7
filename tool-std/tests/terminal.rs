//! The program at a terminal: what it says, asks and shows there.

#![cfg(all(feature = "application", target_os = "linux"))]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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
