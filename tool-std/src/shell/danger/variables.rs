//! Builtins of bash that look at or set the variable that an argument names, and run what
//! stands in its subscript.
//!
//! A program of the same name, as `xargs` starts it, knows no variables: what may come at the
//! end does not matter.

use crate::shell::word::Word;

/// Says of the arguments whether a variable is one.
type NamesOne = fn(&[Word]) -> bool;

/// What tells that one of them is given a variable.
pub(super) fn of(program: &str) -> Option<NamesOne> {
    match program {
        "[" => Some(bracket),
        "printf" => Some(printf),
        "test" => Some(test),
        "wait" => Some(wait),
        _ => None,
    }
}

#[cfg(test)]
pub(super) const NAMES: &[&str] = &["[", "printf", "test", "wait"];

fn bracket(words: &[Word]) -> bool {
    match words.split_last() {
        // It is a pattern to bash, but ends the test.
        Some((end, words)) if end.value == "]" => test(words),
        _ => test(words),
    }
}

fn test(words: &[Word]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        // What comes behind an operator, and behind a text in the place of one.
        let is_subscript = |next: &Word| !next.is_literal() || next.value.contains('[');
        let is_several = word.splits || word.glob && word.leads;
        names_variable(word)
            || is_several
            || word.may_be_option() && words.get(at + 1).is_some_and(is_subscript)
    })
}

fn wait(words: &[Word]) -> bool {
    words.iter().any(|word| word.may_be_option() || word.value.starts_with('-'))
}

/// It also stores how much it has written, such as in `PATH`, where the format has `%n`.
fn printf(words: &[Word]) -> bool {
    let arguments = match words {
        [end, rest @ ..] if end.value == "--" => rest,
        all => all,
    };
    let Some((format, values)) = arguments.split_first() else { return false };
    let is_between = |c: char| c.is_ascii_digit() || "#'+- .*hjlLtz".contains(c);
    let format_of = |rest: &str| rest.trim_start_matches(is_between).starts_with('n');
    let counts =
        || !format.is_literal() || format.value.replace("%%", "").split('%').skip(1).any(format_of);
    words.iter().any(names_variable)
        || format.splits
        || format.glob && format.leads
        || !values.is_empty() && counts()
}

fn names_variable(word: &Word) -> bool {
    word.value.starts_with("-v") || word.value.starts_with("-R")
}
