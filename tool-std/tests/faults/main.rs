//! Disks and folders that reject writes: the old file is kept, no temporary files stay behind, and
//! the error says what happened (fault 3).
//!
//! The disk is a small file system in memory, which is mounted in a namespace of the test. The test
//! passes on systems without that permission, unless `TOOL_STD_TEST_DISK` is `required`.

#![cfg(all(target_os = "linux", feature = "fs", feature = "search"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_sdk::{Call, ErrorKind, Pipeline, Registry, Rule, Session, ToolError, Workspace, tools};
use tool_std::fs::{apply_patch, edit_file, list_dir, write_file};
use tool_std::search::{glob_files, grep_files};

/// Makes the disk tests fail where no disk can be mounted.
const DISK: &str = "TOOL_STD_TEST_DISK";

/// Names the folder for a test that runs on the disk.
const PLACE: &str = "TOOL_STD_TEST_PLACE";

/// Mounts the disk at `$1`, breaks it with `$2`, and runs the rest there. With two disks, the
/// second is mounted beside the first one, and nothing is broken.
const SCRIPT: &str = r#"
    disk=$1; spoil=$2; shift 2
    if [ "$spoil" = beside ]; then
        mkdir "$disk/work" "$disk/work/far" && mount -t tmpfs -o size=1m none "$disk/work/far" &&
        printf 'far\n' > "$disk/work/far/f" && printf 'near\n' > "$disk/work/f" && exec "$@"
    fi
    mount -t tmpfs -o size=1m none "$disk" && mkdir "$disk/work" "$disk/work/sub" &&
    printf 'old\n' | tee "$disk/work/f" > "$disk/work/sub/g" &&
    case $spoil in
        full)
            cat /dev/zero > "$disk/filler" 2> /dev/null
            exec "$@" ;;
        read-only)
            mount -o remount,bind,ro "$disk" && exec "$@" ;;
        denied)
            chmod 555 "$disk/work" "$disk/work/sub" &&
            exec setpriv --bounding-set=-all --inh-caps=-all "$@" ;;
        limited)
            ulimit -f 100 && exec "$@" ;;
    esac
"#;

/// Runs the test `name` again on a broken disk, where it checks `claim`.
fn on_disk(name: &str, spoil: &str, claim: impl FnOnce(&Path)) {
    if let Some(place) = std::env::var_os(PLACE) {
        return claim(Path::new(&place));
    }
    let mut mount = Command::new("unshare");
    mount.args(["-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]);
    if !mount.output().is_ok_and(|output| output.status.success()) {
        let why = "this system lets nobody make a namespace of its own";
        assert!(std::env::var_os(DISK).is_none_or(|it| it != "required"), "{why}");
        println!("skipped: {why}");
        return;
    }
    let disk = TempDir::new().unwrap();
    let output = Command::new("unshare")
        .args(["-Urm", "sh", "-c", SCRIPT, "sh"])
        .arg(disk.path())
        .arg(spoil)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, disk.path().join("work"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{wrong}");
}

/// Makes every kind of change. Each must fail with `kind` and `why`, and change nothing.
fn nothing_changes(disk: &Path, kind: ErrorKind, why: &str) {
    let before = tree(disk);
    for (tool, args) in changes() {
        let error = call(disk, tool, &args).unwrap_err();
        assert_eq!(error.kind(), kind, "{tool}: {error}");
        assert!(error.message().contains(why), "{tool}: {error}");
        assert_eq!(tree(disk), before, "{tool}");
    }
}

fn changes() -> Vec<(&'static str, Value)> {
    // More than the free space of a full disk.
    let much = "new\n".repeat(100_000);
    let patch = |body: &str| json!({ "input": format!("*** Begin Patch\n{body}*** End Patch") });
    let added: String = much.lines().map(|line| format!("+{line}\n")).collect();
    vec![
        ("write_file", json!({ "path": "f", "content": much })),
        ("write_file", json!({ "path": "new", "content": much })),
        ("write_file", json!({ "path": "deep/down/new", "content": much })),
        ("edit_file", json!({ "path": "f", "old_string": "old", "new_string": much })),
        ("apply_patch", patch(&format!("*** Update File: sub/g\n@@\n-old\n{added}"))),
        // The first of several changes would fit on the disk.
        (
            "apply_patch",
            patch(&format!(
                "*** Delete File: f\n*** Update File: sub/g\n*** Move to: h\n@@\n-old\n{added}"
            )),
        ),
    ]
}

fn call(folder: &Path, tool: &str, args: &Value) -> Result<(), ToolError> {
    let registry = Registry::builder().add(tools![write_file, edit_file, apply_patch]);
    let pipeline =
        Pipeline::new(registry.build().unwrap()).rules(["allow edit".parse::<Rule>().unwrap()]);
    let session = Session::new("faults").with_service(Workspace::open([folder]).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let outcome = runtime.block_on(pipeline.call(&session, Call::new(tool, args.to_string())));
    outcome.result.map(drop)
}

/// Returns every file and folder below `folder`, with the text of the files.
fn tree(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        found.push((path.display().to_string(), text));
    }
    found.sort();
    found
}

// PA8: a walk stays on its device when requested.
#[test]
fn stays_on_the_first_disk() {
    on_disk("stays_on_the_first_disk", "beside", |disk| {
        let look = |one_device: bool, path: &str| {
            let session = Session::new("faults")
                .with_service(Workspace::open([disk]).unwrap().same_file_system(one_device));
            let pipeline = Pipeline::new(
                Registry::builder().add(tools![glob_files, grep_files, list_dir]).build().unwrap(),
            );
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            [
                ("glob_files", json!({ "pattern": "f", "path": path })),
                ("grep_files", json!({ "pattern": "r$", "path": path })),
                ("list_dir", json!({ "path": path })),
            ]
            .map(|(tool, args)| {
                let call = Call::new(tool, args.to_string());
                runtime.block_on(pipeline.call(&session, call)).text().into_owned()
            })
        };
        let left_out = "(1 folder on another device left out; name it as `path` to search there.)";
        let [glob, grep, list] = look(true, ".");
        assert_eq!(glob, format!("f\n{left_out}"));
        assert_eq!(grep, format!("Found 1 match in 1 file.\nf:\n  1: near\n{left_out}"));
        assert!(list.ends_with("\nf\nfar/ (on another device)"), "{list}");
        for (one_device, path) in [(false, "."), (true, "far")] {
            for text in look(one_device, path) {
                assert!(text.contains('f') && !text.contains("another device"), "{text}");
            }
        }
        let [glob, grep, list] = look(true, "far");
        assert_eq!(glob, "far/f");
        assert!(grep.contains("1: far") && list.ends_with("\nf"), "{grep} {list}");
        let [glob, grep, list] = look(false, ".");
        assert!(glob.contains("far/f") && grep.contains("1: far"), "{glob} {grep}");
        assert!(list.ends_with("\nf\nfar/\n  f"), "{list}");
    });
}

#[test]
fn changes_fail_on_a_full_disk() {
    on_disk("changes_fail_on_a_full_disk", "full", |disk| {
        nothing_changes(disk, ErrorKind::Failed, "No space left on device");
    });
}

// A write over the file size limit kills the program with a signal, unless it checks before.
#[test]
fn changes_fail_at_the_file_size_limit() {
    on_disk("changes_fail_at_the_file_size_limit", "limited", |disk| {
        nothing_changes(disk, ErrorKind::Failed, "File too large");
    });
}

#[test]
fn changes_fail_on_a_read_only_disk() {
    on_disk("changes_fail_on_a_read_only_disk", "read-only", |disk| {
        nothing_changes(disk, ErrorKind::Failed, "Read-only file system");
    });
}

#[test]
fn changes_fail_in_read_only_folders() {
    on_disk("changes_fail_in_read_only_folders", "denied", |disk| {
        nothing_changes(disk, ErrorKind::Denied, "` is closed to this user");
    });
}
