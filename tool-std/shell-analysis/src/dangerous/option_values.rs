//! Options whose values decide whether they are dangerous.

use std::borrow::Cow;

use crate::word::ShellWord;

/// Whether the value of an option is harmless.
type IsHarmless = fn(&str) -> bool;

/// Removes options whose value makes them harmless: data that is sent, output that is printed or
/// discarded.
pub(super) fn strip_harmless_values<'w>(
    words: &'w [ShellWord],
    program: &str,
) -> Cow<'w, [ShellWord]> {
    let values: &[(char, IsHarmless)] = match program {
        "curl" => &[
            ('d', |value| !value.starts_with('@')),
            ('o', |value| value == "/dev/null" || value == "-"),
            ('w', |value| !value.starts_with('@') && !value.contains("output")),
        ],
        "wget" => &[('O', |value| value == "/dev/null" || value == "-")],
        _ => return Cow::Borrowed(words),
    };
    // Short options without values that may come first in the cluster.
    let known = if program == "curl" { "fgiIkLNqsSv46" } else { "kLNqSv46" };
    let flags = |letters: &str| letters.chars().all(|c| known.contains(c));
    let is_pair = |option: &ShellWord, value: &ShellWord| {
        let letters = option.value.strip_prefix('-').filter(|_| option.is_literal());
        values.iter().any(|(letter, is_harmless)| {
            let before = letters.and_then(|letters| letters.strip_suffix(*letter));
            before.is_some_and(flags) && value.is_literal() && is_harmless(&value.value)
        })
    };
    // The word after another option may be its value.
    let is_option = |before: Option<&ShellWord>| {
        before.is_none_or(|it| match it.value.strip_prefix('-') {
            Some(letters) => it.is_literal() && !letters.is_empty() && flags(letters),
            None => true,
        })
    };
    let mut kept: Vec<ShellWord> = Vec::with_capacity(words.len());
    let (mut rest, mut before) = (words, None);
    while let Some((word, behind)) = rest.split_first() {
        let is_shown = program == "wget"
            && word.value.strip_prefix('-').and_then(|it| it.strip_suffix("O-")).is_some_and(flags);
        match behind {
            [value, behind @ ..] if is_option(before) && is_pair(word, value) => {
                (rest, before) = (behind, None);
            }
            _ => {
                (rest, before) = (behind, Some(word));
                kept.extend((!is_shown).then(|| word.clone()));
            }
        }
    }
    Cow::Owned(kept)
}
