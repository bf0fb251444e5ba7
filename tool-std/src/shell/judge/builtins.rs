//! What bash does itself, as data.

use crate::shell::word::{Word, is_listed};

/// Builtins that no program stands for.
const BUILTINS: &str = "\
    . : alias bg bind break builtin caller cd command compgen complete compopt continue declare \
    dirs disown enable eval exec exit export fc fg getopts hash help history jobs kill let local \
    logout mapfile popd pushd read readarray readonly return set shift shopt source suspend times \
    trap type typeset ulimit umask unalias unset wait";

/// Builtins for which a program stands that knows other options, and those of these words that
/// both read alike.
const ALIKE: &[(&str, &[&str])] = &[
    ("[", TESTS),
    ("echo", &["-E", "-e", "-n", "-ne", "-en"]),
    ("false", &[]),
    ("printf", &[]),
    ("pwd", &["-P"]),
    ("test", TESTS),
    ("true", &[]),
];
const TESTS: &[&str] = &[
    "-a", "-b", "-c", "-d", "-e", "-ef", "-eq", "-f", "-g", "-ge", "-gt", "-h", "-L", "-le", "-lt",
    "-n", "-ne", "-nt", "-ot", "-p", "-r", "-S", "-s", "-t", "-w", "-x", "-z",
];

/// Whether bash does something else with a command than a program of its name.
pub(super) fn does_itself(words: &[Word]) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    let is_alike =
        |word: &Word, alike: &[&str]| !word.value.starts_with('-') || alike.contains(&&*word.value);
    let is_format = |word: &Word| head.value == "printf" && word.value.contains(['q', '(']);
    let own = ALIKE.iter().find(|(name, _)| *name == head.value);
    is_listed(BUILTINS, &head.value)
        || own.is_some_and(|(_, alike)| {
            rest.iter().any(|word| !is_alike(word, alike) || is_format(word))
        })
}
