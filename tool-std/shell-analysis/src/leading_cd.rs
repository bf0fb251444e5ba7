//! Finds `cd` commands at the start of a script.
//!
//! **Invariant:** nothing here checks whether a directory exists; the exec tools do.

use super::lexer;
use super::word::ShellWord;

/// Counts the `cd` commands at the start of a script. The rest of the script runs in their
/// target, provided that they succeed.
pub(super) fn count_leading_cd(script: &str) -> usize {
    let mut rest = script;
    let mut count = 0;
    while let Some((first, after)) = split_first_command(rest) {
        let commands = lexer::tokenize(first).unwrap_or_default();
        let [words] = commands.as_slice() else { break };
        if cd_target(words).is_none() {
            break;
        }
        count += 1;
        rest = after;
    }
    count
}

/// Splits a script at its first operator, if that is `&&`, `;` or a line end.
fn split_first_command(script: &str) -> Option<(&str, &str)> {
    let at = script.find(['&', ';', '\n', '|'])?;
    let (first, rest) = script.split_at(at);
    let length = if rest.starts_with("&&") { 2 } else { 1 };
    (length == 2 || rest.starts_with([';', '\n'])).then(|| (first, &rest[length..]))
}

/// Returns the target of a `cd` command, if it is known.
pub(super) fn cd_target(words: &[ShellWord]) -> Option<String> {
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
    fn counts_leading_cd_commands() {
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
            assert_eq!(count_leading_cd(script), count, "{script}");
        }
    }
}
