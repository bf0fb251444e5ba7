//! The builtins of bash, as data.

use crate::word::{ShellWord, list_contains};

/// Builtins without an equivalent program.
const BUILTINS: &str = "\
    . : alias bg bind break builtin caller cd command compgen complete compopt continue declare \
    dirs disown enable eval exec exit export fc fg getopts hash help history jobs kill let local \
    logout mapfile popd pushd read readarray readonly return set shift shopt source suspend times \
    trap type typeset ulimit umask unalias unset wait";

/// Builtins that also exist as programs with other options, and the words that both read alike.
const SHARED_WITH_PROGRAMS: &[(&str, &[&str])] = &[
    ("[", TEST_OPERATORS),
    ("echo", &["-E", "-e", "-n", "-ne", "-en"]),
    ("false", &[]),
    ("printf", &[]),
    ("pwd", &["-P"]),
    ("test", TEST_OPERATORS),
    ("true", &[]),
];
const TEST_OPERATORS: &[&str] = &[
    "-a", "-b", "-c", "-d", "-e", "-ef", "-eq", "-f", "-g", "-ge", "-gt", "-h", "-L", "-le", "-lt",
    "-n", "-ne", "-nt", "-ot", "-p", "-r", "-S", "-s", "-t", "-w", "-x", "-z",
];

/// Whether bash runs the command as a builtin that differs from the program of its name.
pub(super) fn is_bash_specific(words: &[ShellWord]) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    let is_alike = |word: &ShellWord, alike: &[&str]| {
        !word.value.starts_with('-') || alike.contains(&&*word.value)
    };
    let is_format = |word: &ShellWord| head.value == "printf" && word.value.contains(['q', '(']);
    let own = SHARED_WITH_PROGRAMS.iter().find(|(name, _)| *name == head.value);
    list_contains(BUILTINS, &head.value)
        || own.is_some_and(|(_, alike)| {
            rest.iter().any(|word| !is_alike(word, alike) || is_format(word))
        })
}
