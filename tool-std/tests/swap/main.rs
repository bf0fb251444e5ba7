//! Race tests: a folder is replaced by a symbolic link to the outside again and again, while the
//! tools work in it. Nothing outside is ever shown or changed (PA1, PA8).
//!
//! Every operation is tried with `openat2` and without it. A long run:
//!
//! ```text
//! TOOL_STD_TEST_ROUNDS=20000 cargo test -p tool-std --test swap
//! ```

#![cfg(all(target_os = "linux", feature = "fs", feature = "search"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with};
use rustix::io::Errno;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use serde_json::{Value, json};
use tempfile::TempDir;
use tool_sdk::{Call, Pipeline, Registry, Rule, Session, Workspace, tools};
use tool_std::fs::{apply_patch, edit_file, list_dir, read_file, write_file};
use tool_std::search::{glob_files, grep_files};

/// The number of calls of each operation, unless [`ROUNDS`] is set.
const FEW: usize = 1_000;

/// Returns the number of calls of each operation.
const ROUNDS: &str = "TOOL_STD_TEST_ROUNDS";

/// Set when the process runs without `openat2`.
const WITHOUT: &str = "TOOL_STD_TEST_WITHOUT_OPENAT2";

/// The content of the folder, and of the link target.
const OURS: &str = "ours\n";
const SECRET: (&str, &str) = ("hidden", "secret\n");

/// A temporary folder in memory, where there is one.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory).unwrap() } else { TempDir::new().unwrap() }
}

/// Calls `tool` while `dir` and a link to a folder outside are exchanged; `args` returns the
/// arguments of a round.
fn race(tool: &str, args: impl Fn(usize) -> Value) {
    if std::env::var_os(WITHOUT).is_some() {
        forbid_openat2();
    }
    let (inside, outside) = (folder(), folder());
    for name in ["file", SECRET.0] {
        fs::write(outside.path().join(name), SECRET.1).unwrap();
    }
    fs::create_dir(inside.path().join("dir")).unwrap();
    fs::write(inside.path().join("dir/file"), OURS).unwrap();
    symlink(outside.path(), inside.path().join("trap")).unwrap();
    let before = tree(outside.path());

    let done = AtomicBool::new(false);
    let fine = std::thread::scope(|scope| {
        scope.spawn(|| swap(inside.path(), &done));
        let fine = call(inside.path(), tool, args);
        done.store(true, Ordering::Relaxed);
        fine
    });
    assert!(fine > 0, "{tool} never did anything");
    assert_eq!(tree(outside.path()), before, "{tool} changed what is outside");
}

/// Makes the calls, and counts the successful ones.
fn call(inside: &Path, tool: &str, args: impl Fn(usize) -> Value) -> usize {
    let tools =
        tools![read_file, list_dir, write_file, edit_file, apply_patch, glob_files, grep_files];
    let pipeline = Pipeline::new(Registry::builder().add(tools).build().unwrap())
        .rules(["allow edit".parse::<Rule>().unwrap()]);
    let session = Session::new("swap").with_service(Workspace::open([inside]).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let rounds = std::env::var(ROUNDS).map_or(FEW, |rounds| rounds.parse().unwrap());
    let mut fine = 0;
    for round in 0..rounds {
        let call = Call::new(tool, args(round).to_string());
        let outcome = runtime.block_on(pipeline.call(&session, call));
        let text = outcome.text();
        for leak in [SECRET.0, SECRET.1.trim()] {
            assert!(!text.contains(leak), "{tool} shows what is outside: {text}");
        }
        fine += usize::from(outcome.result.is_ok());
    }
    fine
}

fn swap(inside: &Path, done: &AtomicBool) {
    let folder = File::open(inside).unwrap();
    while !done.load(Ordering::Relaxed) {
        renameat_with(&folder, "dir", &folder, "trap", RenameFlags::EXCHANGE).unwrap();
    }
}

fn tree(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    entries.map(|it| (it.file_name().into_string().unwrap(), text(&it.path()))).collect()
}

/// Makes `openat2` fail as unknown in this thread and its children.
fn forbid_openat2() {
    // The number of the system call is the same on all architectures.
    const OPENAT2: i64 = 437;
    let filter = SeccompFilter::new(
        [(OPENAT2, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(Errno::NOSYS.raw_os_error().unsigned_abs()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    apply_filter(&BpfProgram::try_from(filter.unwrap()).unwrap()).unwrap();
    let opened = openat2(CWD, ".", OFlags::PATH, Mode::empty(), ResolveFlags::BENEATH);
    assert_eq!(opened.unwrap_err(), Errno::NOSYS);
}

/// Starts a walk above the folder and in it, alternately.
fn start(round: usize) -> &'static str {
    if round.is_multiple_of(2) { "." } else { "dir" }
}

/// A change and its reversal, alternately.
fn change(round: usize) -> [&'static str; 2] {
    if round.is_multiple_of(2) { ["ours", "more"] } else { ["more", "ours"] }
}

#[test]
fn read() {
    race("read_file", |_| json!({ "path": "dir/file" }));
}

#[test]
fn list() {
    race("list_dir", |round| json!({ "path": start(round), "depth": 3 }));
}

#[test]
fn glob() {
    race("glob_files", |round| json!({ "path": start(round), "pattern": "*" }));
}

#[test]
fn grep() {
    race("grep_files", |round| json!({ "path": start(round), "pattern": "ecre|our" }));
}

#[test]
fn write() {
    race("write_file", |round| {
        let path = ["dir/file", "dir/new", "dir/deep/new"][round % 3];
        json!({ "path": path, "content": format!("{round}\n") })
    });
}

#[test]
fn edit() {
    race("edit_file", |round| {
        let [old, new] = change(round);
        json!({ "path": "dir/file", "old_string": old, "new_string": new })
    });
}

#[test]
fn patch() {
    race("apply_patch", |round| {
        let [old, new] = change(round);
        let input = format!(
            "*** Begin Patch\n*** Update File: dir/file\n@@\n-{old}\n+{new}\n\
             *** Add File: dir/new\n+{new}\n*** End Patch"
        );
        json!({ "input": input })
    });
}

/// Builds a patch of one section.
fn section(section: &str) -> Value {
    json!({ "input": format!("*** Begin Patch\n{section}\n*** End Patch") })
}

#[test]
fn delete() {
    race("apply_patch", |round| match round % 2 {
        0 => section("*** Delete File: dir/file"),
        _ => section("*** Add File: dir/file\n+ours"),
    });
}

#[test]
fn rename() {
    race("apply_patch", |round| {
        let (from, to) = [("file", "moved"), ("moved", "file")][round % 2];
        section(&format!("*** Update File: dir/{from}\n*** Move to: dir/{to}\n@@\n ours"))
    });
}

/// The path walk for systems without `openat2` (fault 16).
#[test]
fn all_without_openat2() {
    if std::env::var_os(WITHOUT).is_some() {
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap()).env(WITHOUT, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("10 passed"), "{said}");
}
