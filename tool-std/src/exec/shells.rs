//! Which programs of a terminal are shells that read what is typed.

use std::ffi::OsString;
use std::path::Path;

use tool_sdk::process::{Attached, Process};

/// Programs that read lines, which the terminal or they themselves let people edit.
const SHELLS: &[&str] = &[
    "ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "loksh", "mksh", "nu",
    "oksh", "posh", "pwsh", "rbash", "sh", "tcsh", "xonsh", "yash", "zsh",
];

/// Where the shell lies whose scripts are understood.
const BASH: &[&str] =
    &["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"];

/// Options that take a word of their own.
const WITH_WORD: &[&str] = &["--init-file", "--rcfile"];

/// Whether a shell reads what is typed, now or when those in front of it have ended; or nobody
/// knows what does.
pub(super) fn may_read(process: &Process) -> bool {
    let attached = process.attached().unwrap_or_default();
    // Also a shell that was given its commands reads lines, once it is alone in front.
    attached.is_empty()
        || attached.iter().any(reads)
        || process.reader().is_some_and(|it| is_shell(&it))
}

/// Whether one program has the terminal for itself, and that is no shell.
pub(super) fn is_none(process: &Process) -> bool {
    let attached = process.attached().unwrap_or_default();
    let is_other = |it: &Attached| it.program.as_deref().is_some_and(|it| !is_shell(it));
    matches!(attached.as_slice(), [one] if is_other(one))
}

/// Options of bash that change nothing about how it reads its language.
const PLAIN: &[&str] = &["--login", "--norc", "--noprofile", "-i", "-il", "-l", "-li", "-s"];

/// Whether the one program that has the terminal in front is a bash that waits at its prompt.
///
/// While it runs builtins, and where it reads lines without editing them, that is not known; nor
/// is it while it has not read the end of the last line, with which it may start a program.
pub(super) fn is_bash_at_prompt(process: &Process) -> bool {
    process.hands_on_keys() && is_bash(process) && !process.has_unread()
}

/// Whether it is a bash that was told nothing about how to read.
pub(super) fn is_bash(process: &Process) -> bool {
    let Some(Attached { program: Some(program), words, .. }) = process.reading() else {
        return false;
    };
    is_of_system(&program) && are_plain(&words)
}

/// Whether it is a shell that is no bash of the system.
pub(super) fn is_other(process: &Process) -> bool {
    let program = process.reading().and_then(|reading| reading.program);
    program.is_some_and(|program| is_shell(&program) && !is_of_system(&program))
}

fn are_plain(words: &[OsString]) -> bool {
    let is_plain = |word: &OsString| word.to_str().is_some_and(|word| PLAIN.contains(&word));
    words.iter().skip(1).all(is_plain)
}

/// Whether a bash of the system has the terminal, in front or not.
pub(super) fn has_bash(process: &Process) -> bool {
    let is_one = |it: Attached| it.program.is_none_or(|program| is_of_system(&program));
    process.attached().is_none_or(|attached| attached.into_iter().any(is_one))
}

fn is_of_system(program: &Path) -> bool {
    BASH.iter().any(|bash| program == Path::new(bash))
}

fn is_shell(program: &Path) -> bool {
    let Some(name) = program.file_name().and_then(|name| name.to_str()) else { return true };
    // Its file may have been replaced.
    let name = name.trim_end_matches(" (deleted)");
    let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    SHELLS.contains(&name.trim_end_matches("-static").trim_end_matches(is_version))
}

/// Whether it is a shell that takes its commands from the terminal.
fn reads(attached: &Attached) -> bool {
    let Attached { program: Some(program), words, .. } = attached else { return true };
    is_shell(program) && (is_all_in_one(program) || !has_own_commands(words))
}

/// Whether its first word may be which of its programs it is.
fn is_all_in_one(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == "busybox")
}

/// Whether its words say what it runs.
fn has_own_commands(words: &[OsString]) -> bool {
    let mut words = words.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        let is_long = word.starts_with("--") && word.len() > 2;
        if is_long {
            if WITH_WORD.contains(&&*word) {
                words.next();
            }
            continue;
        }
        let Some(letters) = word.strip_prefix(['-', '+']) else {
            // A script, unless that is the terminal.
            return !word.starts_with("/dev/") && !word.starts_with("/proc/");
        };
        if letters.contains('s') {
            return false;
        }
        if word.starts_with('-') && letters.contains('c') {
            return true;
        }
        for _ in letters.matches(['o', 'O']) {
            words.next();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    // SH9: a shell that was given its commands reads none.
    #[test]
    fn shells_without_commands_read_the_terminal() {
        for (words, expected) in [
            ("bash", false),
            ("-bash", false),
            ("bash --noprofile --norc -i", false),
            ("bash --rcfile x", false),
            ("bash -O extglob -o vi", false),
            ("bash -s x", false),
            ("bash /dev/stdin", false),
            ("bash --noprofile --norc -c ls", true),
            ("sh -ec ls", true),
            ("bash -x ./run a", true),
            ("bash --rcfile x run", true),
        ] {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            assert_eq!(has_own_commands(&words), expected, "{words:?}");
        }
    }

    // SH9: what changes the language is no bash that is understood.
    #[test]
    fn options_of_bash_are_known_to_change_nothing() {
        for (words, expected) in [
            ("bash", true),
            ("-bash", true),
            ("bash --norc --noprofile -i", true),
            ("bash --norc +O interactive_comments -i", false),
            ("bash -O extglob", false),
            ("bash --posix", false),
            ("bash --rcfile x", false),
            ("bash ./x", false),
        ] {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            assert_eq!(are_plain(&words), expected, "{words:?}");
        }
    }

    #[test]
    fn shells_are_known_by_their_files() {
        for name in ["/bin/bash", "/bin/bash (deleted)", "/x/zsh-5.9", "/x/ksh93", "/x/bash-static"]
        {
            assert!(is_shell(Path::new(name)), "{name}");
        }
        for name in ["/bin/cat", "/usr/bin/python3.12", "/x/vim"] {
            assert!(!is_shell(Path::new(name)), "{name}");
        }
    }
}
