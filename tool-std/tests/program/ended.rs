//! What a process that changes many files leaves when it is ended.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::*;

const FILES: usize = 2_000;

/// A folder of files, and a patch that changes each of them.
fn many() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut patch = "*** Begin Patch\n".to_owned();
    for at in 0..FILES {
        fs::write(folder.path().join(format!("f{at}")), "old\n").expect("a file");
        patch += &format!("*** Update File: f{at}\n@@\n-old\n+new\n");
    }
    (folder, patch + "*** End Patch\n")
}

fn start(root: &Path, args: &[&str], input: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .arg("--root")
        .arg(root)
        .args(["--state-dir", env!("CARGO_TARGET_TMPDIR"), "--yes"])
        .args(["--mode", "bypass"])
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let stdin = child.stdin.as_mut().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("the program reads");
    child
}

/// Returns the number of changed files, and of files that should not exist.
fn count(root: &Path) -> (usize, usize) {
    let (mut new, mut other) = (0, 0);
    for entry in fs::read_dir(root).expect("the folder").flatten() {
        match fs::read_to_string(entry.path()).as_deref() {
            _ if !entry.file_name().to_string_lossy().starts_with('f') => other += 1,
            Ok("new\n") => new += 1,
            _ => {}
        }
    }
    (new, other)
}

fn has_begun(root: &Path) -> bool {
    fs::read_dir(root).expect("the folder").count() > FILES
}

// F140: a program that is terminated applies all of a patch or none of it.
#[test]
fn a_patch_is_made_or_not() {
    for round in 0..6 {
        let (folder, patch) = many();
        let params = json!({ "name": "apply_patch", "arguments": { "input": patch } });
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let lines = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }),
        ];
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let arguments = json!({ "input": patch }).to_string();
        let mut child = match round % 2 {
            0 => start(folder.path(), &["serve", "mcp"], &lines),
            _ => start(folder.path(), &["call", "apply_patch", "-"], &arguments),
        };
        if round % 2 == 1 {
            drop(child.stdin.take());
        }
        let patience = Instant::now() + Duration::from_secs(60);
        while !has_begun(folder.path()) && Instant::now() < patience {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(40 * (round / 2)));
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        let status = child.wait().expect("the program ends");
        let (new, other) = count(folder.path());
        assert_eq!(other, 0, "round {round}: {new} files are new");
        assert!(new == 0 || new == FILES, "round {round}: {new} files are new");
        assert!(status.code().is_some(), "{status}");
    }
}
