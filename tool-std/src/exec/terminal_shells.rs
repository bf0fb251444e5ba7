//! Detects shells that read the input of a terminal.

use std::ffi::OsString;
use std::path::Path;

use tool_sdk::process::{AttachedProgram, BackgroundProcess};

/// Programs that read lines which the user can edit.
const SHELLS: &[&str] = &[
    "ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "loksh", "mksh", "nu",
    "oksh", "posh", "pwsh", "rbash", "sh", "tcsh", "xonsh", "yash", "zsh",
];

/// Paths of the bash whose scripts are analysed.
const BASH_PATHS: &[&str] =
    &["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"];

/// Options that take the next word.
const VALUED_OPTIONS: &[&str] = &["--init-file", "--rcfile"];

/// Whether a shell reads the typed text, now or after the foreground programs exit, or the reader
/// is unknown.
pub(super) fn may_read_input(process: &BackgroundProcess) -> bool {
    let attached = process.attached_programs().unwrap_or_default();
    // A shell that runs given commands also reads lines once it is alone in the foreground.
    attached.is_empty()
        || attached.iter().any(reads_terminal)
        || process.foreground_file().is_some_and(|it| is_shell(&it))
}

/// Interpreters of languages and queries, by the beginnings of their names. Programs that may be
/// connected to a shell, such as `ssh`, `sudo` and `tmux`, are none.
const INTERPRETERS: &[&str] = &[
    "bc", "bun", "dc", "deno", "erl", "gdb", "ghc", "guile", "iex", "ipython", "irb", "julia",
    "lldb", "lua", "mysql", "node", "ocaml", "octave", "php", "psql", "pypy", "python", "R",
    "ruby", "sbcl", "scala", "sqlite3",
];

/// Whether a single program that is not a shell has the terminal.
pub(super) fn is_other_program(process: &BackgroundProcess) -> bool {
    other_program(process).is_some()
}

/// Returns the name of the single program that has the terminal, if it is not a shell.
pub(super) fn other_program(process: &BackgroundProcess) -> Option<String> {
    let attached = process.attached_programs().unwrap_or_default();
    let [AttachedProgram { program: Some(program), .. }] = attached.as_slice() else { return None };
    let name = program.file_name()?.to_str()?;
    (!is_shell(program)).then(|| name.to_owned())
}

/// Whether a program with this name is an interpreter, which runs what it reads itself.
pub(super) fn is_interpreter(name: &str) -> bool {
    let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&name.trim_end_matches(is_version))
}

/// Options of bash that do not change how it parses input.
const PLAIN_OPTIONS: &[&str] =
    &["--login", "--norc", "--noprofile", "-i", "-il", "-l", "-li", "-s"];

/// Whether the foreground program is a bash that waits at its prompt.
///
/// This is unknown while it runs builtins, without line editing, and while it has not read the
/// last line, which may start a program.
pub(super) fn is_bash_at_prompt(process: &BackgroundProcess) -> bool {
    process.is_noncanonical() && is_bash(process) && !process.has_unread_input()
}

/// Whether the reader is a system bash without options that change parsing.
pub(super) fn is_bash(process: &BackgroundProcess) -> bool {
    let Some(AttachedProgram { program: Some(program), argv: words, .. }) =
        process.foreground_program()
    else {
        return false;
    };
    is_system_bash(&program) && has_plain_options(&words)
}

/// Whether the reader is a shell other than the system bash.
pub(super) fn is_foreign_shell(process: &BackgroundProcess) -> bool {
    let program = process.foreground_program().and_then(|reading| reading.program);
    program.is_some_and(|program| is_shell(&program) && !is_system_bash(&program))
}

fn has_plain_options(words: &[OsString]) -> bool {
    let is_plain =
        |word: &OsString| word.to_str().is_some_and(|word| PLAIN_OPTIONS.contains(&word));
    words.iter().skip(1).all(is_plain)
}

/// Whether a system bash is attached to the terminal, in the foreground or not.
pub(super) fn has_bash(process: &BackgroundProcess) -> bool {
    let is_one = |it: AttachedProgram| it.program.is_none_or(|program| is_system_bash(&program));
    process.attached_programs().is_none_or(|attached| attached.into_iter().any(is_one))
}

fn is_system_bash(program: &Path) -> bool {
    BASH_PATHS.iter().any(|bash| program == Path::new(bash))
}

fn is_shell(program: &Path) -> bool {
    let Some(name) = program.file_name().and_then(|name| name.to_str()) else { return true };
    // The kernel marks a replaced file.
    let name = name.trim_end_matches(" (deleted)");
    let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    SHELLS.contains(&name.trim_end_matches("-static").trim_end_matches(is_version))
}

/// Whether a program is a shell that reads commands from the terminal.
fn reads_terminal(attached: &AttachedProgram) -> bool {
    let AttachedProgram { program: Some(program), argv: words, .. } = attached else { return true };
    is_shell(program) && (is_multicall(program) || !has_own_commands(words))
}

/// Whether the first argument may select the program, as with busybox.
fn is_multicall(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == "busybox")
}

/// Whether its arguments name a script or a command.
fn has_own_commands(words: &[OsString]) -> bool {
    let mut words = words.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        let is_long = word.starts_with("--") && word.len() > 2;
        if is_long {
            if VALUED_OPTIONS.contains(&&*word) {
                words.next();
            }
            continue;
        }
        let Some(letters) = word.strip_prefix(['-', '+']) else {
            // A script file, unless it is a terminal device.
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

    // SH9: what changes the language of the shell is not understood.
    #[test]
    fn accepts_bash_options_that_do_not_change_parsing() {
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
            assert_eq!(has_plain_options(&words), expected, "{words:?}");
        }
    }

    #[test]
    fn interpreters_are_known_by_their_names() {
        for (name, expected) in [
            ("python3.12", true),
            ("node", true),
            ("sqlite3", true),
            ("cat", false),
            ("ssh", false),
            ("sudo", false),
            ("bash", false),
            ("nodejs-helper", false),
        ] {
            assert_eq!(is_interpreter(name), expected, "{name}");
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
