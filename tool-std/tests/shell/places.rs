//! Compares redirections with a real bash: a path that the analysis places in a directory is
//! written there.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use tool_std::shell::analyze_script;

/// How many scripts bash is asked about.
const CASES: usize = 150;

/// The most scripts that are tried for that.
const TRIES: usize = 20_000;

/// Commands that change folders and names, and others that write by a redirection.
fn command() -> impl Strategy<Value = String> {
    let change = prop::sample::select(vec![
        "ln -sfn ../out l",
        "ln -sf ../out/secret f",
        "ln -sfn .. d",
        "mv l m",
        "mv f g",
        "cp -P l n",
        "cp -r l n",
        "cp f g",
        "mkdir -p d/e",
        "touch g",
        "rm -f f",
        "cd d",
        "cd ..",
        "cd l",
        "pushd ..",
        "true",
        "sleep 0",
    ]);
    let target = prop::sample::select(vec![
        "f", "g", "l/x", "m/x", "n/x", "d/f", "d/e/f", "l", "@/f", "@/l/x",
    ]);
    let write = target.prop_map(|target| format!("echo hi > {target}"));
    prop_oneof![2 => change.prop_map(str::to_owned), 2 => write]
}

fn script() -> impl Strategy<Value = String> {
    let joint = prop::sample::select(vec!["; ", " && ", " || ", " | ", "\n"]);
    let form = prop::sample::select(vec![
        "{}",
        "{}",
        "{}",
        "({})",
        "bash -c '{}'",
        "timeout 5 bash -c '{}'",
        "echo $({})",
        "eval '{}'",
        "env bash -c '{}'",
        "find . -maxdepth 0 -execdir bash -c '{}' ';'",
    ]);
    let part = (command(), form).prop_map(|(command, form)| form.replace("{}", &command));
    let list = prop::collection::vec((part, joint), 1..5);
    let whole = prop::sample::select(vec!["{}", "{}", "({})", "bash -c \"{}\""]);
    (list, whole).prop_map(|(list, whole)| {
        let mut script = String::new();
        for (part, joint) in list {
            if !script.is_empty() {
                script += joint;
            }
            script += &part;
        }
        whole.replace("{}", &script)
    })
}

/// All names and texts below a folder, but for what is in `except`.
fn seen(folder: &Path, except: &Path) -> Vec<(String, Option<String>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path == except {
            continue;
        }
        if path.is_dir() {
            all.extend(seen(&path, except));
        }
        all.push((path.display().to_string(), fs::read_to_string(&path).ok()));
    }
    all.sort();
    all
}

// F79
#[test]
fn paths_known_inside_are_inside() {
    let mut runner = TestRunner::deterministic();
    let strategy = script();
    let mut asked = 0;
    for _ in 0..TRIES {
        if asked == CASES {
            break;
        }
        let root = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (root.path().join("in"), root.path().join("out"));
        let script = strategy.new_tree(&mut runner).expect("a script").current();
        let script = script.replace('@', &inside.display().to_string());
        let analysis = analyze_script(&script);
        let is_known = analysis.opaque.is_none() && !analysis.has_unstable_paths();
        if !is_known || analysis.writes.is_empty() || analysis.commands.len() < 2 {
            continue;
        }
        fs::create_dir(&inside).expect("a folder");
        fs::create_dir(&outside).expect("a folder");
        fs::write(outside.join("secret"), "secret").expect("a file");
        let before = seen(root.path(), &inside);
        let done = Command::new("bash")
            .args(["--noprofile", "--norc", "-c", &script])
            .current_dir(&inside)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if done.is_err() {
            eprintln!("there is no bash here: skipped");
            return;
        }
        asked += 1;
        // Only redirections write outside here, and none of the commands does by itself.
        let moved_out = script.contains("cd ..") || script.contains("pushd");
        if !moved_out {
            assert_eq!(seen(root.path(), &inside), before, "{script}");
        }
        assert_eq!(
            fs::read_to_string(outside.join("secret")).expect("a file"),
            "secret",
            "{script}"
        );
    }
    eprintln!("bash wrote where {asked} scripts were known to write");
    assert_eq!(asked, CASES, "too few scripts are known");
}
