//! Variable assignments before a command that change how its output looks, and nothing else.
//!
//! `NO_COLOR=1 cargo test` is then judged as `cargo test`. Every other assignment needs approval,
//! because a variable may name a program to run or a file to load.

use crate::word::{ShellWord, is_assignment, list_contains};

/// Variables about colours, languages, sizes, the amount of logs, and whether a person is there.
const HARMLESS_VARIABLES: &str = "\
    CARGO_INCREMENTAL CARGO_TERM_COLOR CARGO_TERM_PROGRESS_WHEN CI CLICOLOR CLICOLOR_FORCE COLUMNS \
    DEBIAN_FRONTEND DO_NOT_TRACK FORCE_COLOR GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT \
    HOMEBREW_NO_AUTO_UPDATE LANG LANGUAGE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES \
    LC_NUMERIC LC_TIME LINES NODE_ENV NO_COLOR NPM_CONFIG_COLOR PIP_NO_COLOR PY_COLORS \
    PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED RUST_BACKTRACE RUST_LIB_BACKTRACE RUST_LOG \
    RUST_TEST_THREADS TERM TZ";

/// Variables that name a program, and the only value that is taken.
const PAGERS: &str = "GH_PAGER GIT_PAGER MANPAGER PAGER";
const NO_PAGER: &str = "cat";

/// Whether all words are assignments that change nothing but how the output looks.
pub(crate) fn are_harmless_assignments(words: &[ShellWord]) -> bool {
    words.iter().all(is_harmless_assignment)
}

fn is_harmless_assignment(word: &ShellWord) -> bool {
    let Some((name, value)) = word.value.split_once('=') else { return false };
    // A slash could name a file, as for `LANG` and `TZ`.
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.,:+=@".contains(c);
    let is_plain = value.chars().all(is_part) && !value.starts_with(':');
    let is_known = list_contains(HARMLESS_VARIABLES, name) && is_plain
        || list_contains(PAGERS, name) && value == NO_PAGER
        || name == "TZ" && is_time_zone(value);
    word.is_literal() && is_assignment(&word.value) && is_known
}

/// Whether a value is the name of a time zone, such as `Europe/Berlin`.
fn is_time_zone(value: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_uppercase())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c))
    };
    value.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_that_change_the_output_are_harmless() {
        for (word, expected) in [
            ("NO_COLOR=1", true),
            ("NO_COLOR=", true),
            ("RUST_LOG=debug,hyper=info", true),
            ("LC_ALL=C.UTF-8", true),
            ("TZ=Europe/Berlin", true),
            ("TZ=UTC", true),
            ("GIT_PAGER=cat", true),
            ("PAGER=cat", true),
            ("PAGER=less", false),
            ("GIT_PAGER=", false),
            ("TZ=:/etc/shadow", false),
            ("TZ=../../x", false),
            ("LANG=/tmp/x", false),
            ("LD_PRELOAD=x", false),
            ("PATH=x", false),
            ("RUSTFLAGS=x", false),
            ("GIT_SSH_COMMAND=x", false),
            ("NO_COLOR+=1", false),
            ("NO_COLOR[0]=1", false),
            ("NO_COLOR", false),
            ("no_color=1", false),
            ("RUST_LOG=$(x)", false),
        ] {
            let words = [ShellWord::from_literal(word)];
            assert_eq!(are_harmless_assignments(&words), expected, "{word}");
        }
    }
}
