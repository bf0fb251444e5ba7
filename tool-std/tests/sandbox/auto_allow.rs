//! Commands that the sandbox confines run without an approval, and nothing else does.

use std::fs;
use std::path::Path;

use super::{Machine, json, run};

const OPTIONS: [&str; 4] = ["--sandbox", "best_effort", "--sandbox-auto-allow", "--no-input"];

fn decide(root: &Path, options: &[&str], line: &str) -> String {
    let call = ["check", "exec_command", "--json", "--cmd", line];
    json(&run(root, &[options, &call].concat()))["decision"].as_str().expect("a word").to_owned()
}

// F193, SB2
#[test]
fn confined_commands_need_no_approval() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let root = root.path();
    for (line, expected) in [
        ("make test", "allow"),
        ("python3 -c 'open(\"x\", \"w\")'", "allow"),
        ("echo x > new.txt", "allow"),
        ("case x in x) touch y;; esac", "allow"),
        ("rm -rf build", "ask"),
        ("echo x > /etc/new.txt", "ask"),
        ("cp a.txt .git/config", "ask"),
        ("cat /etc/hostname", "ask"),
        ("echo x > $(make name)", "ask"),
    ] {
        assert_eq!(decide(root, &OPTIONS, line), expected, "{line}");
        assert_ne!(decide(root, &OPTIONS[..2], line), "allow", "{line}");
    }
    for (more, expected) in [
        (&["--ask", "exec_command(make *)"][..], "ask"),
        (&["--deny", "exec_command(make *)"], "deny"),
        (&["--mode", "strict"], "ask"),
        (&["--mode", "plan"], "deny"),
        (&["--sandbox-level", "full"], "ask"),
    ] {
        assert_eq!(decide(root, &[&OPTIONS, more].concat(), "make test"), expected, "{more:?}");
    }
    // A command that reaches the network is not confined.
    let config = root.join("tools.toml");
    fs::write(&config, "sandbox_network = true\n").expect("it is written");
    let config = ["--config", config.to_str().expect("a path")];
    assert_eq!(decide(root, &[&OPTIONS[..], &config].concat(), "make test"), "ask");
}

// F193: what was allowed because it is confined runs confined.
#[test]
fn command_that_needs_no_approval_runs_confined() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let line = format!(
        "for f in kept '{0}/lost'; do python3 -c \"open('$f', 'w')\" || echo no; done",
        outside.path().display()
    );
    let call = ["call", "exec_command", "--json", "--yield-time-ms=30000", "--cmd", &line];
    let result = json(&run(root.path(), &[&OPTIONS[..], &call].concat()));
    assert_eq!(result["display"]["sandbox"]["filesystem"], "full", "{result}");
    assert!(root.path().join("kept").exists(), "{result}");
    assert!(!outside.path().join("lost").exists(), "{result}");
}

// F188: all three forms of the setting, and what `doctor` says.
#[test]
fn doctor_says_whether_confined_commands_run() {
    let words = |options: &[&str]| {
        let output = run(Path::new("."), &[options, &["doctor"]].concat());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(words(&["--sandbox-auto-allow"]).contains("the sandbox is off"));
    if Machine::new().is_whole() {
        assert!(words(&OPTIONS[..3]).contains("confined commands run without approval"));
    }
}
