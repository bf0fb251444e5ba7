//! What "always allow" may stand for, from the exact command to all like it.
//!
//! Offered only when one command of a plain script has no rule yet. At most two words of a
//! prefix name the action, so that people read what they grant; where it takes more, only the
//! exact command is offered. Programs that run whatever they are given are never offered.
//!
//! **Invariant:** what is offered begins with the program as it is written; what that may stand
//! for is asked of its name.

mod table;

use self::table::{ARITIES, BANNED, FLAGS, RUNS_CODE, WITH_COMMANDS};
use super::program::known_name;
use super::word::{bare_name, is_plain};
use super::{Simple, Understood, Why, hidden, unwrap};

/// The most words of a prefix.
const MAX_WORDS: usize = 2;

/// Patterns for rules that would allow the script, from specific to general.
///
/// `is_allowed` says whether a rule covers the text of a command already.
///
/// # Examples
///
/// ```
/// use tool_std::shell::{suggestions, understand};
///
/// let script = understand("git push origin main");
/// assert_eq!(suggestions(&script, &|_| false), ["git push origin main", "git push *"]);
/// assert!(suggestions(&understand("rm -rf x"), &|_| false).is_empty());
/// ```
#[must_use]
pub fn suggestions(script: &Understood, is_allowed: &dyn Fn(&str) -> bool) -> Vec<String> {
    if !may_be_granted(script) {
        return Vec::new();
    }
    let mut open: Vec<&Simple> =
        script.commands.iter().filter(|simple| !simple.safe && !is_allowed(&simple.text)).collect();
    open.dedup_by(|one, other| one.text == other.text);
    match open.as_slice() {
        [simple] => patterns(simple),
        _ => Vec::new(),
    }
}

/// Whether "always" may be offered for a command of it.
pub(crate) fn may_be_granted(script: &Understood) -> bool {
    let asks = |simple: &Simple| simple.asks.is_some_and(|why| why != Why::ProgramPath);
    let is_clear = |simple: &Simple| !simple.hidden && !asks(simple);
    script.opaque.is_none()
        && script.plain
        && !script.is_dangerous()
        && script.commands.iter().all(is_clear)
}

/// Patterns for rules that would allow one command, from specific to general.
pub(crate) fn patterns(simple: &Simple) -> Vec<String> {
    let argv: Vec<&str> = simple.argv.iter().map(String::as_str).collect();
    let Some((&program, rest)) = argv.split_first() else { return Vec::new() };
    let (name, known) = (bare_name(program), known_name(program));
    let is_whole_program = is_banned(&[&*name]) || is_banned(&[&*known]);
    if is_whole_program && !WITH_COMMANDS.contains(&&*name) {
        return Vec::new();
    }
    let flags = leading_flags(&known, rest);
    // `/usr/bin/git` is `git`, and without its flags it does the same.
    let readings = [&*name, &*known].map(|name| [&[name], &rest[flags..]].concat());
    let mut patterns = Vec::new();
    if is_exact(&simple.text) && !is_banned(&argv) && !readings.iter().any(|it| is_banned(it)) {
        patterns.push(simple.text.clone());
    }
    let arity = readings.iter().map(|it| arity(it)).max().unwrap_or(1);
    // `cargo +nightly` chooses a toolchain, and no command.
    let is_written_plainly =
        |word: &&str| word.chars().all(is_plain) && !word.starts_with(['-', '+']);
    let is_code =
        |prefix: &[&str]| is_in(RUNS_CODE, prefix[0]) || is_in(RUNS_CODE, &prefix.join(" "));
    let names_one = |prefix: &[&str]| !is_banned(prefix) && !is_code(prefix);
    let names_command = arity <= MAX_WORDS
        // An alias may become another one.
        && !simple.may_be_alias
        // A program that waits for the name of an action would be given any.
        && readings[0].len() >= arity
        && is_written_plainly(&program)
        && readings[0][1..arity].iter().all(is_written_plainly)
        && readings.iter().all(|words| names_one(&words[..arity]))
        && !unwrap::runs_others(&known)
        && !hidden::runs_texts(&known, readings[0][..arity].get(1));
    if names_command {
        patterns.push(format!("{} *", argv[..flags + arity].join(" ")));
    }
    patterns
}

/// How many words before the name of the action are options that take no value, by which the
/// program does nothing else.
fn leading_flags(program: &str, words: &[&str]) -> usize {
    let own = FLAGS.iter().find(|(name, _)| *name == program).map_or(&[][..], |(_, flags)| flags);
    words.iter().take_while(|word| own.contains(word)).count()
}

/// Whether the text, as a pattern, matches itself only.
fn is_exact(text: &str) -> bool {
    !text.contains(['*', '?', '\\']) && !text.starts_with(['~', '$'])
}

fn is_banned(argv: &[&str]) -> bool {
    BANNED.binary_search(&argv).is_ok()
}

/// Whether a table, which is in alphabetical order, has `entry`.
fn is_in(table: &[&str], entry: &str) -> bool {
    table.binary_search(&entry).is_ok()
}

/// How many words at the start of a command name what it does: the longest entry of the table
/// decides.
pub(super) fn arity(argv: &[&str]) -> usize {
    (1..=2.min(argv.len()))
        .rev()
        .find_map(|length| {
            let key = argv[..length].join(" ");
            ARITIES.iter().find(|(_, entries)| is_in(entries, &key)).map(|(arity, _)| *arity)
        })
        .unwrap_or(1)
}

#[cfg(test)]
mod tests;
