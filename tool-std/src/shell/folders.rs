//! In which folder the commands of a script run, as far as its text tells.
//!
//! **Invariant:** nothing here looks at a folder; whether it is there, others find out.

use super::lex;
use super::word::Word;

/// How many commands at the start of a script do nothing but change the folder, so that what
/// comes after them runs there, if they succeed.
pub(super) fn leading(script: &str) -> usize {
    let mut rest = script;
    let mut count = 0;
    while let Some((first, after)) = first(rest) {
        let commands = lex::lex(first).unwrap_or_default();
        let [words] = commands.as_slice() else { break };
        if target(words).is_none() {
            break;
        }
        count += 1;
        rest = after;
    }
    count
}

/// What stands before the first operator, and what stands after it, when that only says that
/// one comes after the other.
fn first(script: &str) -> Option<(&str, &str)> {
    let at = script.find(['&', ';', '\n', '|'])?;
    let (first, rest) = script.split_at(at);
    let length = if rest.starts_with("&&") { 2 } else { 1 };
    (length == 2 || rest.starts_with([';', '\n'])).then(|| (first, &rest[length..]))
}

/// Where a command leads that changes the folder.
pub(super) fn target(words: &[Word]) -> Option<String> {
    let [cd, folder] = words else { return None };
    let value = folder.value.as_str();
    let is_known = cd.value == "cd"
        && folder.is_literal()
        && !value.is_empty()
        && !value.starts_with(['-', '~']);
    is_known.then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_folder_first_is_counted() {
        for (script, count) in [
            ("cd a && ls", 1),
            ("cd a; cd 'b c' && cd /d\nls", 3),
            ("cd a; ls; cd b", 1),
            ("cd a", 0),
            ("cd a || ls", 0),
            ("cd a | ls", 0),
            ("cd a & ls", 0),
            ("(cd a; ls)", 0),
            ("cd; ls", 0),
            ("cd - && ls", 0),
            ("cd ~ && ls", 0),
            ("cd .. && ls", 1),
            ("cd a* && ls", 0),
            ("cd $X && ls", 0),
            ("cd 'a;b' && ls", 0),
            ("pushd a && ls", 0),
            ("ls && cd a", 0),
            ("", 0),
        ] {
            assert_eq!(leading(script), count, "{script}");
        }
    }
}
