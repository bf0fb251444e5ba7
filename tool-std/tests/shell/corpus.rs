//! Evasions that must not pass, and daily work that should.

use tool_std::shell::{SimpleCommand, analyze_script};

use crate::fixture;
use crate::support::{Rules, Verdict, texts};

/// Everything that a careless person may have allowed, but nothing that removes.
const CARELESS: &[&str] = &[
    "awk *",
    "bash *",
    "cargo *",
    "cat *",
    "cd *",
    "cp *",
    "curl *",
    "diff *",
    "echo *",
    "env *",
    "exec *",
    "fd *",
    "find *",
    "git *",
    "go *",
    "ls *",
    "make *",
    "nice *",
    "printf *",
    "npm *",
    "python *",
    "rg *",
    "rsync *",
    "sed *",
    "sh *",
    "sort *",
    "ssh *",
    "tar *",
    "test *",
    "time *",
    "timeout *",
    "true *",
    "wget *",
    "xargs *",
];

fn is_hidden(command: &SimpleCommand, hidden: &str) -> bool {
    // What is put in by `find` or `xargs` comes after it.
    let begins = |text: &str| text == hidden || text.starts_with(&format!("{hidden} "));
    begins(&command.text) || command.bare_text().is_some_and(|bare| begins(&bare))
}

fn check(script: &str, hidden: &str) -> Result<(), String> {
    let analysis = analyze_script(script);
    if Rules::new(CARELESS, &[]).script(script) == Verdict::Allow {
        return Err(format!("{script:?} passes: {:?}", texts(&analysis)));
    }
    if analysis.is_safe() || analysis.opaque.is_none() && analysis.commands.is_empty() {
        return Err(format!("{script:?} counts as safe"));
    }
    if hidden.is_empty() || analysis.commands.iter().any(|command| is_hidden(command, hidden)) {
        return Ok(());
    }
    Err(format!("{script:?} hides {hidden:?}: {:?}", texts(&analysis)))
}

// SH1 to SH6, SH10
#[test]
fn no_evasion_passes_and_its_command_is_found() {
    let cases: Vec<(String, String)> = fixture!("shell-corpus/bypasses.json");
    assert!(cases.len() >= 150);
    let failed: Vec<String> =
        cases.iter().filter_map(|(script, hidden)| check(script, hidden).err()).collect();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

#[test]
fn no_length_and_no_depth_hides_a_command() {
    let hidden = "rm -rf x";
    for script in [
        format!("{}{hidden}", "ls;".repeat(300)),
        format!("echo {};{hidden}", "a ".repeat(5000)),
        format!("echo {};{hidden}", "a".repeat(70_000)),
        format!("echo {}{hidden}{}", "$(".repeat(40), ")".repeat(40)),
        format!("{}{hidden}", "sudo ".repeat(40)),
        format!("{}{hidden}", "env ".repeat(9)),
        format!("{}bash -c '{hidden}'", "timeout 1 ".repeat(12)),
    ] {
        assert_eq!(check(&script, hidden), Ok(()));
    }
}

#[test]
fn daily_work_is_understood() {
    let scripts: Vec<String> = fixture!("shell-corpus/legitimate.json");
    assert!(scripts.len() >= 150);
    let opaque: Vec<_> = scripts
        .iter()
        .filter_map(|script| Some((script, analyze_script(script).opaque?)))
        .collect();
    println!("{} of {} scripts are opaque: {opaque:#?}", opaque.len(), scripts.len());
    assert!(opaque.len() * 50 <= scripts.len(), "more than 2 % are opaque");
}

#[test]
fn read_only_commands_need_no_approval() {
    for script in [
        "ls -la && pwd",
        "git status --short | head -5",
        "rg -n TODO src 2>/dev/null | wc -l",
        "cat $(make names)",
        "timeout 5 git log --oneline -3",
        "bash -c 'ls && cat x'",
        "cut -d / -f 2 x%y",
        "find . -name '*.rs' -type f",
    ] {
        let expected = !script.contains("make");
        assert_eq!(analyze_script(script).is_safe(), expected, "{script}");
    }
}
