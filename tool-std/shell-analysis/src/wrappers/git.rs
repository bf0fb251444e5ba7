//! Finds git commands nested in git commands: `git for-each-repo push`, and `git-push`, which is
//! `git push`.
//!
//! **Invariant:** every range of words that may be a nested command is returned.

use crate::aliases;
use crate::word::{ShellWord, bare_name};

/// The maximum number of guessed starts of a nested command.
const MAX_STARTS: usize = 8;

/// The git commands nested in a git command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NestedGitCommands {
    /// The words of each possible nested command.
    pub(super) commands: Vec<Vec<ShellWord>>,
    /// Whether it is the same command under another name.
    pub(super) is_same_command: bool,
    /// Whether the nested command is missing.
    pub(super) lacks_command: bool,
}

/// Finds the nested git commands of a command.
pub(super) fn nested_git_commands(words: &[ShellWord]) -> NestedGitCommands {
    let Some((head, rest)) = words.split_first() else { return NestedGitCommands::default() };
    let name = bare_name(&head.value);
    // `subtree` is an optional subcommand.
    let is_known = |command: &&str| aliases::is_git_builtin(command) || *command == "subtree";
    if let Some(command) = name.strip_prefix("git-").filter(is_known) {
        return NestedGitCommands {
            commands: vec![git_command(&[command], rest)],
            is_same_command: true,
            lacks_command: false,
        };
    }
    if name != "git" {
        return NestedGitCommands::default();
    }
    let behind = |command: &str| {
        let at = rest.iter().position(|word| word.value == command)?;
        Some(&rest[at + 1..])
    };
    if let Some(words) = behind("for-each-repo") {
        let commands: Vec<_> =
            operand_starts(words).map(|at| git_command(&[], &words[at..])).collect();
        return NestedGitCommands {
            lacks_command: commands.is_empty(),
            commands,
            is_same_command: false,
        };
    }
    let pushes = |words: &&[ShellWord]| words.iter().any(|word| word.value == "push");
    if let Some(words) = behind("subtree").filter(pushes) {
        let words: Vec<ShellWord> =
            words.iter().filter(|word| word.value != "push").cloned().collect();
        let parts = operand_starts(&words).filter(|at| *at > 0);
        let parts = [0].into_iter().chain(parts).map(|at| git_command(&["push"], &words[at..]));
        let commands = parts.collect();
        return NestedGitCommands { commands, ..NestedGitCommands::default() };
    }
    NestedGitCommands::default()
}

/// Builds a git command from these words.
fn git_command(first: &[&str], rest: &[ShellWord]) -> Vec<ShellWord> {
    let first = ["git"].iter().chain(first).map(|word| ShellWord::from_literal(word));
    first.chain(rest.iter().cloned()).collect()
}

/// Returns the indices where the first operand may be.
fn operand_starts(words: &[ShellWord]) -> impl Iterator<Item = usize> {
    let is_option = |at: usize| words[at].value.starts_with('-');
    let is_value =
        move |at: usize| at > 0 && is_option(at - 1) && !words[at - 1].value.contains('=');
    let first = (0..words.len()).find(|&at| !is_option(at) && !is_value(at));
    let end = first.map_or(words.len(), |at| at + 1);
    (0..end).filter(move |&at| !is_option(at)).take(MAX_STARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    // SH10
    #[test]
    fn a_command_of_git_in_another_one_is_found() {
        for (text, expected) in [
            ("git-push a b", &["git push a b"][..]),
            ("/usr/lib/git-core/git-push", &["git push"]),
            ("git-lfs push", &[]),
            ("git-subtree push a", &["git subtree push a"]),
            ("git push a", &[]),
            ("git for-each-repo --config=a push b", &["git push b"]),
            ("git for-each-repo --config a push b", &["git a push b", "git push b"]),
            ("git -C x for-each-repo --config=a --keep-going -- push", &["git push"]),
            ("git subtree push -P a b c", &["git push -P a b c", "git push a b c", "git push b c"]),
            ("git subtree --prefix=a push b c", &["git push --prefix=a b c", "git push b c"]),
            ("git subtree pull -P a b c", &[]),
        ] {
            let words: Vec<_> = text.split(' ').map(ShellWord::from_literal).collect();
            let found: Vec<String> = nested_git_commands(&words)
                .commands
                .iter()
                .map(|words| crate::wrappers::join_values(words))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
        let words: Vec<_> =
            "git for-each-repo --config=a".split(' ').map(ShellWord::from_literal).collect();
        assert!(nested_git_commands(&words).lacks_command);
    }
}
