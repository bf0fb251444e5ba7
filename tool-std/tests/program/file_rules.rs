//! Rules that deny a file, as commands and hints about rules meet them.

use super::*;

fn folder_with_secret() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(".env"), "KEY=s3cr3t\n").expect("a file in it");
    std::fs::write(folder.path().join("a.txt"), "plain\n").expect("a file in it");
    folder
}

fn run_command(folder: &Path, rules: &[&str], command: &str) -> Output {
    let call = ["--no-input", "call", "exec_command", "--cmd", command];
    run_in(folder, &[rules, &call].concat())
}

// A file that is denied to the tool that reads files is denied to commands.
#[test]
fn a_rule_about_one_file_tool_holds_for_commands() {
    let folder = folder_with_secret();
    for (rules, command, code) in [
        (&["--deny", "read_file(.env)"][..], "cat .env", 3),
        (&["--deny", "read_file(path: .env)"], "cat ./.env", 3),
        (&["--deny", "read_file(.env)", "--allow", "exec_command"], "X=.env; cat $X", 3),
        (&["--deny", "read_file(.env)", "--allow", "exec_command"], "cp .env b", 3),
        (&["--ask", "read_file(.env)"], "cat .env", 3),
        (&["--deny", "read_file(.env)"], "cat a.txt", 0),
        // The last rule decides.
        (&["--deny", "read_file(.env)", "--allow", "read(.env)"], "cat .env", 0),
        // Such a rule takes the tool away and says nothing of files.
        (&["--deny", "read_file"], "cat .env", 0),
    ] {
        let ran = run_command(folder.path(), rules, command);
        assert_eq!(ran.status.code(), Some(code), "{rules:?} {command}: {}", err(&ran));
        assert_eq!(
            out(&ran).contains("s3cr3t"),
            code == 0 && command.contains(".env"),
            "{command}"
        );
    }
}

// P4: with the rules that a hint names, the call runs; no rule is named that lifts a denial.
#[test]
fn a_hint_names_only_rules_that_let_the_command_run() {
    let folder = folder_with_secret();
    for (rules, command, hint) in [
        (&["--deny", "read(.env)"][..], "X=.env; cat $X", "no rule lifts this; try another way"),
        (&["--deny", "read(.env)"], "cat $(echo .env)", "no rule lifts this; try another way"),
        (&["--deny", "exec_command(rm *)"], "eval \"$(cat a.txt)\"", "no rule lifts this"),
        (&[], "find . -name x -delete", "the rule `allow exec_command(find . -name x -delete)`"),
        (&[], "touch b", "the rule"),
    ] {
        let denied = run_command(folder.path(), rules, command);
        let told = err(&denied);
        assert_eq!(denied.status.code(), Some(3), "{command}: {told}");
        assert!(told.contains(hint), "{command}: {told}");
        let named: Vec<&str> = told
            .lines()
            .filter(|line| line.starts_with("hint: "))
            .flat_map(|line| line.split('`').filter_map(|part| part.strip_prefix("allow ")))
            .flat_map(|rule| ["--allow", rule])
            .collect();
        if !named.is_empty() {
            let ran = run_command(folder.path(), &[rules, &named].concat(), command);
            assert_eq!(ran.status.code(), Some(0), "{command} with {named:?}: {}", err(&ran));
        }
    }
}
