//! The commands of a text of which a shell may get only an end, as rules that forbid see them.
//!
//! **Invariant:** nothing here allows anything; where one end is left out, somebody is asked.

use std::collections::BTreeSet;

use crate::shell::understand;

/// How many of them are held against the rules.
const MOST: usize = 1024;

/// Each command from each of its words on, and from within its first one.
pub(super) fn of(text: &str) -> BTreeSet<String> {
    // No quote is known to be one, so the text must not be understood.
    let commands = understand(&format!("{text}\n(")).commands;
    let ends = commands.iter().flat_map(|command| {
        let text = command.argv.join(" ");
        let first = text.find(' ').unwrap_or(text.len());
        let starts = text.char_indices().map(|(at, _)| at);
        let is_start = |at: &usize| *at < first || text[..*at].ends_with(' ');
        starts.filter(is_start).map(|at| text[at..].to_owned()).collect::<Vec<_>>()
    });
    ends.take(MOST).collect()
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
            assert!(of(text).contains(expected), "{text:?}: {:?}", of(text));
        }
        assert!(!of("git commit -m 'confirm x'\n").contains("rm x"));
        assert!(of(&"a b c ".repeat(5_000)).len() <= MOST);
    }
}
