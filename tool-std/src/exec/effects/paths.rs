//! Paths as a shell spells them: the home directory, globs and `..`.
//!
//! **Invariant:** a path below home is certain only if the analysis says that bash expands it and no
//! command may change the home directory.

use std::path::{Component, Path, PathBuf};

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

/// Whether the path of the home directory stays one word without quotes.
pub(super) fn is_home_one_word() -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/_.-+@,".contains(c);
    home_path("~").is_some_and(|home| home.to_str().is_some_and(|home| home.chars().all(is_plain)))
}

/// Whether a tilde in the middle of a word may be expanded, as in an assignment.
pub(super) fn may_contain_home(word: &str) -> bool {
    word.contains("=~") || word.contains(":~")
}

/// Whether a path may leave its starting directory.
pub(super) fn leaves_folder(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..")
}

/// Removes `.` and `a/..` from a path without following links.
pub(super) fn normalize_path(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// The files that match a glob.
#[derive(Default)]
pub(super) struct PatternMatches {
    pub(super) files: Vec<PathBuf>,
    /// Whether these are all.
    pub(super) is_complete: bool,
}

/// Returns the files that match a glob in any of these directories.
pub(super) fn match_files(pattern: &str, folders: &[PathBuf]) -> PatternMatches {
    let home = home_path("~").zip(strip_home(pattern));
    let places = folders.iter().map(|folder| (folder.clone(), pattern)).chain(home);
    let matches = places.map(|(folder, pattern)| match_pattern(&folder, pattern));
    let Some(files) = matches.collect::<Option<Vec<_>>>() else { return PatternMatches::default() };
    let is_complete = !folders.is_empty() && !pattern.starts_with('~');
    PatternMatches { files: files.concat(), is_complete }
}

/// Returns the files in a directory that may match a glob; `None` if that is unknown.
fn match_pattern(folder: &Path, pattern: &str) -> Option<Vec<PathBuf>> {
    let (fixed, open) = pattern.split_at(pattern.find(['*', '?', '['])?);
    // Only the last component may be a glob.
    if open.contains('/') {
        return None;
    }
    let (below, start) = fixed.split_at(fixed.rfind('/').map_or(0, |at| at + 1));
    let folder = folder.join(below);
    let end = open.rsplit(['*', '?', ']']).next().filter(|_| !open.starts_with('['));
    let end = end.unwrap_or_default();
    let mut found = Vec::new();
    for entry in folder.read_dir().into_iter().flatten() {
        let name = entry.ok()?.file_name();
        let name = name.to_str()?;
        // Hidden names need an explicit dot.
        let is_shown = start.starts_with('.') || !name.starts_with('.');
        if is_shown && name.starts_with(start) && name.ends_with(end) {
            found.push(folder.join(name));
        }
    }
    // Before bash 5.2, `.*` also matches `.` and `..`.
    let is_dotted =
        start.starts_with('.') && !["[!.]", "[^.]"].iter().any(|it| open.starts_with(it));
    let dots = [".", ".."].into_iter().filter(|_| is_dotted);
    let fitting = dots.filter(|name| name.starts_with(start) && name.ends_with(end));
    found.extend(fitting.map(|name| folder.join(name)));
    Some(found)
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

    #[test]
    fn glob_matches_a_superset_of_bash() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".env", "a.rs", "b.rs", "c.md"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        for (pattern, expected) in [
            ("*", Some(&["a.rs", "b.rs", "c.md"][..])),
            (".e*", Some(&[".env"])),
            (".*", Some(&[".", "..", ".env"])),
            ("./.?*", Some(&["./.", "./..", "./.env"])),
            (".[!.]*", Some(&[".env"])),
            ("*.rs", Some(&["a.rs", "b.rs"])),
            ("[ab].rs", Some(&["a.rs", "b.rs", "c.md"])),
            ("./?.md", Some(&["./c.md"])),
            ("x*", Some(&[])),
            ("*/a", None),
        ] {
            let found = match_pattern(folder.path(), pattern).map(|mut files| {
                files.sort();
                files
            });
            let expected =
                expected.map(|names| names.iter().map(|name| folder.path().join(name)).collect());
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
