//! Lists the suffixes of the commands of a text, for deny rules, when a shell may receive only
//! the end of the text.
//!
//! **Invariant:** nothing here allows anything; the caller always requires approval in this case.

use std::collections::BTreeSet;

use tool_shell_analysis::analyze_script;

/// The maximum number of suffixes.
const MAX_SUFFIXES: usize = 1024;

/// Returns the suffixes of each command: from each word on, and from each character of the first
/// word.
pub(super) fn command_suffixes(text: &str) -> BTreeSet<String> {
    // Quotes are uncertain, so an unclosed bracket forces the fallback scan.
    let commands = analyze_script(&format!("{text}\n(")).commands;
    let ends = commands.iter().flat_map(|command| {
        let text = command.argv.join(" ");
        let first = text.find(' ').unwrap_or(text.len());
        let starts = text.char_indices().map(|(at, _)| at);
        let is_start = |at: &usize| *at < first || text[..*at].ends_with(' ');
        starts.filter(is_start).map(|at| text[at..].to_owned()).collect::<Vec<_>>()
    });
    ends.take(MAX_SUFFIXES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // SH10
    #[test]
    fn each_end_of_a_command_is_seen() {
        for (text, expected) in [
            ("xrm victim\n", "rm victim"),
            ("echo rm victim\n", "rm victim"),
            ("'; rm -f x #'\n", "rm -f x #"),
            ("echo 'a\nrm x\n'\n", "rm x"),
        ] {
            assert!(
                command_suffixes(text).contains(expected),
                "{text:?}: {:?}",
                command_suffixes(text)
            );
        }
        assert!(!command_suffixes("git commit -m 'confirm x'\n").contains("rm x"));
        assert!(command_suffixes(&"a b c ".repeat(5_000)).len() <= MAX_SUFFIXES);
    }
}
