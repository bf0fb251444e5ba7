//! Which words of a command may name a script that it runs.
//!
//! **Invariant:** nothing here looks at a file.

use crate::shell::{Simple, Understood, bare_name};

/// Programs that run what a file says that they are given.
const READERS: &[&str] = &[
    ".", "ash", "bash", "bun", "csh", "dash", "deno", "fish", "ksh", "lua", "node", "perl", "php",
    "pwsh", "python", "ruby", "sh", "source", "tclsh", "tcsh", "zsh",
];

/// How many commands are looked at.
const MOST_COMMANDS: usize = 32;

/// How many words of them may name a script: each is looked for.
const MOST_WORDS: usize = 1024;

/// The commands whose scripts are looked at.
pub(super) fn commands(of: &Understood) -> impl Iterator<Item = &Simple> {
    of.commands.iter().filter(|command| !command.hidden).take(MOST_COMMANDS)
}

/// The words of a command that may name a script.
pub(super) fn named(argv: &[String]) -> impl Iterator<Item = &str> {
    let (head, operands) = argv.split_at(argv.len().min(1));
    let own = head.iter().filter(|head| head.contains('/'));
    let reads = head.iter().any(|head| reads_scripts(head));
    let read = operands.iter().filter(move |word| reads && !word.starts_with('-'));
    own.chain(read).map(String::as_str)
}

/// Whether there are too many to look for each.
pub(super) fn are_too_many(of: &Understood) -> bool {
    commands(of).flat_map(|command| named(&command.argv)).nth(MOST_WORDS).is_some()
}

fn reads_scripts(program: &str) -> bool {
    let name = bare_name(program);
    let is_version = |c: char| c.is_ascii_digit() || c == '.';
    READERS.contains(&&*name) || READERS.contains(&name.trim_end_matches(is_version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::understand;

    #[test]
    fn every_word_that_may_name_a_script_is_looked_for() {
        for (script, expected) in [
            ("./a b", &["./a"][..]),
            ("python3.12 -W a b c", &["a", "b", "c"]),
            ("/bin/sh a", &["/bin/sh", "a"]),
            ("cat a", &[]),
        ] {
            let understood = understand(script);
            assert_eq!(named(&understood.commands[0].argv).collect::<Vec<_>>(), expected);
        }
        let with = |count: usize| understand(&format!("perl -e x{}", " a".repeat(count)));
        assert!(!are_too_many(&with(MOST_WORDS - 1)));
        assert!(are_too_many(&with(MOST_WORDS)));
        assert!(!are_too_many(&understand(&format!("cat{}", " a".repeat(MOST_WORDS + 1)))));
    }
}
