//! Where words of a shell lead that begin with the home folder.
//!
//! **Invariant:** none of them is taken for certain. A command may set another home folder before,
//! and quotes may keep the mark from being one.

use std::path::PathBuf;

use tool_sdk::process::ChildEnv;

/// How the home folder is written.
const MARKS: &[&str] = &["~", "$HOME", "${HOME}"];

/// What stands behind the home folder in a word that begins with it.
pub(super) fn below(word: &str) -> Option<&str> {
    let mut behind = MARKS.iter().filter_map(|mark| word.strip_prefix(mark));
    let rest = behind.find(|rest| rest.is_empty() || rest.starts_with('/'))?;
    Some(rest.trim_start_matches('/'))
}

/// Where such a word leads in the home folder that commands are given.
pub(super) fn place(word: &str) -> Option<PathBuf> {
    let rest = below(word)?;
    let env = ChildEnv::inherited();
    let home = env.home().filter(|home| home.is_absolute())?;
    Some(home.join(rest))
}

/// Whether a home folder may come in the midst of a word, as in what sets a variable.
pub(super) fn may_stand_in(word: &str) -> bool {
    word.contains("=~") || word.contains(":~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_folder_ends_where_a_name_does() {
        for (word, expected) in [
            ("~", Some("")),
            ("~/", Some("")),
            ("~//a/b", Some("a/b")),
            ("$HOME", Some("")),
            ("$HOME/a*", Some("a*")),
            ("${HOME}/a", Some("a")),
            ("~a/b", None),
            ("~+/b", None),
            ("$HOMES/a", None),
            ("${HOME}S/a", None),
            ("./~/a", None),
            ("a", None),
        ] {
            assert_eq!(below(word), expected, "{word}");
        }
    }
}
