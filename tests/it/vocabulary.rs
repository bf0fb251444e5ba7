//! Holds the rules of the vocabulary (CONTRIBUTING, "Names") that a program can check.
//!
//! `docs/GLOSSARY.md` has the words themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{published_sources, root};

/// Words that stand where a comment should name its actor.
const BANNED: [&str; 7] =
    ["whoever", "whomever", "nobody", "somebody", "anybody", "whatever", "wherever"];

/// Names that each module may have for its own central type.
const COMMON_TYPES: [&str; 6] = ["Error", "Result", "Builder", "Config", "State", "Inner"];

/// Types that exist twice because each platform or feature has its own.
const PLATFORM_TYPES: [&str; 6] =
    ["FolderHandle", "HeldFd", "ParentFolder", "PlaceholderDir", "ProcessGroup", "CallRequest"];

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            files.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The comment of a line, if it has one that starts a line or follows a blank.
fn comment(line: &str) -> &str {
    let start = line.find("//").filter(|&at| line[..at].chars().all(char::is_whitespace));
    start.or_else(|| line.find(" // ")).map_or("", |at| &line[at..])
}

/// The name of the visible type that a line declares.
fn visible_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let rest = ["struct ", "enum ", "trait ", "type "]
        .iter()
        .find_map(|kind| rest.trim_start().strip_prefix(*kind))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end])
}

#[test]
fn finds_comments_and_visible_types() {
    assert_eq!(comment("    // a"), "// a");
    assert_eq!(comment("let a = 1; // why"), " // why");
    assert_eq!(comment(r#"let url = "http://host";"#), "");
    assert_eq!(visible_type("pub(crate) struct Invocation<'a> {"), Some("Invocation"));
    assert_eq!(visible_type("    pub enum Mode {"), Some("Mode"));
    assert_eq!(visible_type("struct Private;"), None);
    assert_eq!(visible_type("pub fn typed() {}"), None);
}

#[test]
fn comments_and_documents_name_their_actors() {
    let has_banned_word = |text: &str| {
        let lower = text.to_lowercase();
        let mut words = lower.split(|c: char| !c.is_alphanumeric());
        words.any(|word| BANNED.contains(&word))
    };
    let mut found = Vec::new();
    let mut check = |path: &Path, number: usize, text: &str| {
        if has_banned_word(text) {
            found.push(format!("{}:{}: {}", path.display(), number + 1, text.trim()));
        }
    };
    for folder in published_sources() {
        let sources = files_below(&root().join(folder), "rs");
        for path in sources.iter().filter(|path| !is_test(path)) {
            for (number, line) in read(path).lines().enumerate() {
                check(path, number, comment(line));
            }
        }
    }
    for folder in ["docs", "tool-sdk/guide"] {
        for path in files_below(&root().join(folder), "md") {
            // The reference is generated from the tools' own texts.
            if path.components().any(|part| part.as_os_str() == "reference") {
                continue;
            }
            for (number, line) in read(&path).lines().enumerate() {
                check(&path, number, line);
            }
        }
    }
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_two_visible_types_of_a_crate_share_a_name() {
    for folder in published_sources() {
        let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        let sources = files_below(&root().join(&folder), "rs");
        for path in sources.iter().filter(|path| !is_test(path) && !is_stub(path)) {
            for name in read(path).lines().filter_map(visible_type) {
                places.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
        let is_allowed =
            |name: &str| COMMON_TYPES.contains(&name) || PLATFORM_TYPES.contains(&name);
        places.retain(|name, places| places.len() > 1 && !is_allowed(name));
        assert!(places.is_empty(), "{folder}: {places:#?}");
    }
}

/// Whether the file stands in for a module whose feature or platform is absent.
fn is_stub(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.ends_with("_disabled") || name.ends_with("_unsupported")
}

fn is_test(path: &Path) -> bool {
    let is_tests = |part: std::path::Component<'_>| part.as_os_str() == "tests";
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.ends_with("tests") || path.components().any(is_tests)
}

#[test]
fn paths_and_visibility_are_plain() {
    for folder in published_sources() {
        for path in files_below(&root().join(&folder), "rs") {
            let text = read(&path);
            for banned in ["pub(in ", "super::super::", "#[inline(always)]"] {
                assert!(!text.contains(banned), "{} has `{banned}`", path.display());
            }
        }
    }
}
