//! Resolves shell words that begin with the home directory.
//!
//! **Invariant:** no result is certain: an earlier command may change the home directory, and
//! quotes may prevent the expansion.

use std::path::PathBuf;

use tool_sdk::process::ChildEnv;

/// The spellings of the home directory.
const HOME_PREFIXES: &[&str] = &["~", "$HOME", "${HOME}"];

/// Returns the rest of a word that begins with the home directory.
pub(super) fn strip_home(word: &str) -> Option<&str> {
    let mut behind = HOME_PREFIXES.iter().filter_map(|mark| word.strip_prefix(mark));
    let rest = behind.find(|rest| rest.is_empty() || rest.starts_with('/'))?;
    Some(rest.trim_start_matches('/'))
}

/// Returns the path of such a word in the home directory of commands.
pub(super) fn home_path(word: &str) -> Option<PathBuf> {
    let rest = strip_home(word)?;
    let env = ChildEnv::from_host();
    let home = env.home_dir().filter(|home| home.is_absolute())?;
    Some(home.join(rest))
}

/// Whether a tilde in the middle of a word may be expanded, as in an assignment.
pub(super) fn may_contain_home(word: &str) -> bool {
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
            assert_eq!(strip_home(word), expected, "{word}");
        }
    }
}
