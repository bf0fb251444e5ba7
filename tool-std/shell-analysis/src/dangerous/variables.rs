//! Builtins of bash that evaluate the variable named by an argument, and so run commands in its
//! subscript.
//!
//! A program of the same name, started by `xargs`, does not evaluate variables, so words that are
//! appended at run time do not matter here.

use crate::word::ShellWord;

/// Whether one of the arguments may name a variable.
type VariableCheck = fn(&[ShellWord]) -> bool;

/// Returns the check for a builtin.
pub(super) fn find_variable_check(program: &str) -> Option<VariableCheck> {
    match program {
        "[" => Some(bracket_names_variable),
        "printf" => Some(printf_names_variable),
        "test" => Some(test_names_variable),
        "wait" => Some(wait_names_variable),
        _ => None,
    }
}

#[cfg(test)]
pub(super) const NAMES: &[&str] = &["[", "printf", "test", "wait"];

fn bracket_names_variable(words: &[ShellWord]) -> bool {
    match words.split_last() {
        // Bash parses `]` as a glob, but it ends the test.
        Some((end, words)) if end.value == "]" => test_names_variable(words),
        _ => test_names_variable(words),
    }
}

fn test_names_variable(words: &[ShellWord]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        // The operand after an operator, or after an unknown word in its place.
        let is_subscript = |next: &ShellWord| !next.is_literal() || next.value.contains('[');
        let is_several = word.may_split || word.is_glob && word.may_become_option;
        names_variable(word)
            || is_several
            || word.may_be_option() && words.get(at + 1).is_some_and(is_subscript)
    })
}

fn wait_names_variable(words: &[ShellWord]) -> bool {
    words.iter().any(|word| word.may_be_option() || word.value.starts_with('-'))
}

/// `printf -v` sets a variable, and `%n` stores the number of written bytes in the variable of
/// the argument, such as `PATH`.
fn printf_names_variable(words: &[ShellWord]) -> bool {
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
        || format.may_split
        || format.is_glob && format.may_become_option
        || !values.is_empty() && counts()
}

fn names_variable(word: &ShellWord) -> bool {
    word.value.starts_with("-v") || word.value.starts_with("-R")
}
