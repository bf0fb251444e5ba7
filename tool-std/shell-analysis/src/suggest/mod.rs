//! Suggests the rule patterns for "always allow", from the exact command to a prefix.
//!
//! Patterns are offered only if a single command of a plain script has no rule yet. A prefix has
//! at most two words, so that users can read what they grant; if the action needs more words,
//! only the exact command is offered. Programs that run arbitrary commands are never offered.
//!
//! **Invariant:** an offered pattern begins with the program as spelled in the command; the
//! decision what to offer uses its canonical name.

mod table;

use self::table::{ARITIES, BANNED, FLAGS, RUNS_CODE, WITH_COMMANDS};
use super::program_names::canonical_name;
use super::word::{bare_name, is_plain_char};
use super::{OpaqueReason, ScriptAnalysis, SimpleCommand, embedded_commands, wrappers};

/// The maximum number of words in a prefix.
const MAX_WORDS: usize = 2;

/// Returns the patterns of rules that would allow the script, from specific to general.
///
/// `is_allowed` tells whether a rule already allows the text of a command.
///
/// # Examples
///
/// ```
/// use tool_std::shell::{analyze_script, suggest_patterns};
///
/// let script = analyze_script("git push origin main");
/// assert_eq!(suggest_patterns(&script, &|_| false), ["git push origin main", "git push *"]);
/// assert!(suggest_patterns(&analyze_script("rm -rf x"), &|_| false).is_empty());
/// ```
#[must_use]
pub fn suggest_patterns(script: &ScriptAnalysis, is_allowed: &dyn Fn(&str) -> bool) -> Vec<String> {
    if !can_offer_grant(script) {
        return Vec::new();
    }
    let mut open: Vec<&SimpleCommand> = script
        .commands
        .iter()
        .filter(|command| !command.is_safe && !is_allowed(&command.text))
        .collect();
    open.dedup_by(|one, other| one.text == other.text);
    match open.as_slice() {
        [command] => rule_patterns(command),
        _ => Vec::new(),
    }
}

/// Whether "always allow" may be offered for commands of the script.
pub fn can_offer_grant(script: &ScriptAnalysis) -> bool {
    let asks = |command: &SimpleCommand| {
        command.approval_reason.is_some_and(|why| why != OpaqueReason::ProgramPath)
    };
    let is_clear = |command: &SimpleCommand| !command.is_embedded && !asks(command);
    script.opaque.is_none()
        && script.is_plain
        && !script.is_dangerous()
        && script.commands.iter().all(is_clear)
}

/// Returns the patterns of rules that would allow one command, from specific to general.
pub fn rule_patterns(command: &SimpleCommand) -> Vec<String> {
    let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
    let Some((&program, rest)) = argv.split_first() else { return Vec::new() };
    let (name, known) = (bare_name(program), canonical_name(program));
    let is_whole_program = is_banned(&[&*name]) || is_banned(&[&*known]);
    if is_whole_program && !WITH_COMMANDS.contains(&&*name) {
        return Vec::new();
    }
    let flags = leading_flags(&known, rest);
    // `/usr/bin/git` is `git`, and leading flags do not change the action.
    let readings = [&*name, &*known].map(|name| [&[name], &rest[flags..]].concat());
    let mut patterns = Vec::new();
    if is_exact(&command.text) && !is_banned(&argv) && !readings.iter().any(|it| is_banned(it)) {
        patterns.push(command.text.clone());
    }
    let arity = readings.iter().map(|it| action_arity(it)).max().unwrap_or(1);
    // `cargo +nightly` chooses a toolchain, not a subcommand.
    let is_written_plainly =
        |word: &&str| word.chars().all(is_plain_char) && !word.starts_with(['-', '+']);
    let is_code = |prefix: &[&str]| {
        table_contains(RUNS_CODE, prefix[0]) || table_contains(RUNS_CODE, &prefix.join(" "))
    };
    let names_one = |prefix: &[&str]| !is_banned(prefix) && !is_code(prefix);
    let names_command = arity <= MAX_WORDS
        // An alias may change its meaning.
        && !command.may_be_alias
        // Without a subcommand, the pattern would allow any.
        && readings[0].len() >= arity
        && is_written_plainly(&program)
        && readings[0][1..arity].iter().all(is_written_plainly)
        && readings.iter().all(|words| names_one(&words[..arity]))
        && !wrappers::runs_any_command(&known)
        && !embedded_commands::may_run_texts(&known, readings[0][..arity].get(1));
    if names_command {
        patterns.push(format!("{} *", argv[..flags + arity].join(" ")));
    }
    patterns
}

/// Counts the leading options without value that do not change the action.
fn leading_flags(program: &str, words: &[&str]) -> usize {
    let own = FLAGS.iter().find(|(name, _)| *name == program).map_or(&[][..], |(_, flags)| flags);
    words.iter().take_while(|word| own.contains(word)).count()
}

/// Whether the text, read as a pattern, matches only itself.
fn is_exact(text: &str) -> bool {
    !text.contains(['*', '?', '\\']) && !text.starts_with(['~', '$'])
}

fn is_banned(argv: &[&str]) -> bool {
    BANNED.binary_search(&argv).is_ok()
}

/// Whether a sorted table contains `entry`.
fn table_contains(table: &[&str], entry: &str) -> bool {
    table.binary_search(&entry).is_ok()
}

/// Returns how many leading words name the action; the longest table entry applies.
pub(super) fn action_arity(argv: &[&str]) -> usize {
    (1..=2.min(argv.len()))
        .rev()
        .find_map(|length| {
            let key = argv[..length].join(" ");
            ARITIES
                .iter()
                .find(|(_, entries)| table_contains(entries, &key))
                .map(|(arity, _)| *arity)
        })
        .unwrap_or(1)
}

#[cfg(test)]
mod tests;
