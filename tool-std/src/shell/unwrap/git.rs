//! Commands of git that run another one with some of their words: `git for-each-repo push`, and
//! `git-push`, which is `git push`.
//!
//! **Invariant:** whatever may be the words of the other one is given.

use super::super::alias;
use super::super::word::{Word, bare_name};

/// Of how many words the first one of the other command may be one.
const MOST: usize = 8;

/// What of a command of git is another one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Inside {
    /// Its words, as often as they may be different ones.
    pub(super) commands: Vec<Vec<Word>>,
    /// Whether it is the same command under another name.
    pub(super) is_same: bool,
    /// Whether it waits for words that are not there.
    pub(super) is_bare: bool,
}

/// Looks for a command of git in the words of one.
pub(super) fn inside(words: &[Word]) -> Inside {
    let Some((head, rest)) = words.split_first() else { return Inside::default() };
    let name = bare_name(&head.value);
    // A command that may be installed beside those that every git has.
    let is_known = |command: &&str| alias::is_of_git(command) || *command == "subtree";
    if let Some(command) = name.strip_prefix("git-").filter(is_known) {
        return Inside { commands: vec![git(&[command], rest)], is_same: true, is_bare: false };
    }
    if name != "git" {
        return Inside::default();
    }
    let behind = |command: &str| {
        let at = rest.iter().position(|word| word.value == command)?;
        Some(&rest[at + 1..])
    };
    if let Some(words) = behind("for-each-repo") {
        let commands: Vec<_> = operands(words).map(|at| git(&[], &words[at..])).collect();
        return Inside { is_bare: commands.is_empty(), commands, is_same: false };
    }
    let pushes = |words: &&[Word]| words.iter().any(|word| word.value == "push");
    if let Some(words) = behind("subtree").filter(pushes) {
        let words: Vec<Word> = words.iter().filter(|word| word.value != "push").cloned().collect();
        let parts = operands(&words).filter(|at| *at > 0);
        let parts = [0].into_iter().chain(parts).map(|at| git(&["push"], &words[at..]));
        let commands = parts.collect();
        return Inside { commands, ..Inside::default() };
    }
    Inside::default()
}

/// A command of git with these words.
fn git(first: &[&str], rest: &[Word]) -> Vec<Word> {
    let first = ["git"].iter().chain(first).map(|word| Word::literal(word));
    first.chain(rest.iter().cloned()).collect()
}

/// Where the first word may be that is no option and no value of one.
fn operands(words: &[Word]) -> impl Iterator<Item = usize> {
    let is_option = |at: usize| words[at].value.starts_with('-');
    let is_value =
        move |at: usize| at > 0 && is_option(at - 1) && !words[at - 1].value.contains('=');
    let first = (0..words.len()).find(|&at| !is_option(at) && !is_value(at));
    let end = first.map_or(words.len(), |at| at + 1);
    (0..end).filter(move |&at| !is_option(at)).take(MOST)
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
            let words: Vec<_> = text.split(' ').map(Word::literal).collect();
            let found: Vec<String> =
                inside(&words).commands.iter().map(|words| super::super::joined(words)).collect();
            assert_eq!(found, expected, "{text}");
        }
        let words: Vec<_> = "git for-each-repo --config=a".split(' ').map(Word::literal).collect();
        assert!(inside(&words).is_bare);
    }
}
