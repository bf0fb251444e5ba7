//! The completions and the manual pages that the program writes.

use super::*;

/// Returns what bash completes at the end of the line `tool-std TYPED`.
fn complete_in_bash(script: &Path, typed: &str) -> Vec<String> {
    let lines = r#"
        source "$1"
        [[ "$(complete -p tool-std)" =~ -F\ ([^ ]+) ]]
        read -ra COMP_WORDS <<< "tool-std $2"
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        "${BASH_REMATCH[1]}" tool-std "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let completed =
        Command::new("bash").args(["-c", lines, "bash"]).arg(script).arg(typed).output();
    let completed = completed.expect("bash runs");
    assert_eq!(err(&completed), "");
    out(&completed).lines().map(str::to_owned).collect()
}

// The completions know the tools, and each command has a manual page.
#[test]
fn completions_and_manual_pages_are_generated() {
    let completions = run(&["completions", "bash"]);
    assert_eq!(completions.status.code(), Some(0), "{}", err(&completions));
    let script = out(&completions);
    assert!(script.contains("read_file") && script.contains("--max-output"), "{script:.300}");
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("completions.bash");
    std::fs::write(&file, &script).expect("there is room");
    for (typed, expected) in [
        ("wor", "workers"),
        ("call read_f", "read_file"),
        ("call read_file --off", "--offset"),
        ("schema --format openai-s", "openai-strict"),
        ("mcp in", "inspect"),
    ] {
        let completed = complete_in_bash(&file, typed);
        assert!(completed.contains(&expected.to_owned()), "{typed}: {completed:?}");
    }
    let pages = run(&["man", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(pages.status.code(), Some(0), "{}", err(&pages));
    let page = std::fs::read_to_string(folder.path().join("tool-std-serve-mcp.1"));
    assert!(page.expect("it is there").contains("\\-\\-http"));
}
