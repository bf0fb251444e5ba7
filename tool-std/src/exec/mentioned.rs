//! Which files the text of a command line mentions, whatever it does with them.
//!
//! Which word a program runs as a script is known of few programs, and some words only bash
//! knows: patterns, lists of loops, values of variables. So every name in the text is held
//! against the names that there are in the folders where it may run.
//!
//! **Invariant:** each folder is listed once, and no file is read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// How many files are found at most.
const MOST: usize = 256;

/// How many names of a folder are looked at. In a larger one, each name of the text is looked
/// for by itself.
const MOST_NAMES: usize = 4096;

/// How many names are looked for by themselves, and how many folders of patterns are listed.
const MOST_LOOKED_FOR: usize = 512;
const MOST_LISTED: usize = 16;

/// Endings that interpreters put behind a name themselves.
const ENDINGS: &[&str] = &["cjs", "js", "lua", "mjs", "php", "pl", "pm", "py", "rb", "sh", "ts"];

/// What interpreters run of a folder.
const OF_FOLDER: &[&str] = &["__init__.py", "__main__.py", "index.js", "package.json"];

/// Of what a pattern is known.
const WILD: [char; 3] = ['*', '?', '['];

/// Files that grow or change by themselves while somebody is asked.
const DATA: &[&str] = &["db", "lock", "log", "pid", "sqlite", "sqlite3"];

/// How many names are looked for by themselves rather than in a list.
const FEW: usize = 24;

/// The files of `folders` that are mentioned in a text, or by one of these words as a whole.
/// `completes` says whether a program may put an ending behind a name.
pub(super) fn files<'t>(
    text: &'t str,
    words: impl Iterator<Item = &'t str>,
    folders: &[PathBuf],
    completes: bool,
) -> BTreeSet<PathBuf> {
    let names = || text.split(|c: char| !is_of_name(c)).filter(|name| !name.is_empty());
    let lists = completes || text.contains(WILD) || names().nth(FEW).is_some();
    let mut search = Search {
        folders: folders.iter().map(|folder| Listed::of(folder, lists)).collect(),
        found: BTreeSet::new(),
        left: MOST_LOOKED_FOR,
        lists: MOST_LISTED,
    };
    // The others are among these.
    let words = words.filter(|word| !word.chars().all(is_of_name));
    for name in names().chain(words) {
        if search.found.len() >= MOST {
            break;
        }
        search.name(name);
        // What stands behind an option of one letter.
        let value = name.strip_prefix('-').and_then(|rest| rest.get(1..));
        value.filter(|it| !it.is_empty()).into_iter().for_each(|it| search.name(it));
    }
    search.found
}

/// Whether it may stand in a name that is written without quotes, or in a pattern.
fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || !c.is_ascii()
        || matches!(c, '_' | '.' | '/' | '-' | '+' | '@' | '%' | '~' | '*' | '?' | '[' | ']')
}

/// A folder with its names, where it has few.
struct Listed {
    path: PathBuf,
    names: Option<HashSet<String>>,
    /// The names of programs, by what stands before their endings.
    stems: HashMap<String, Vec<String>>,
    /// With which bytes the names begin.
    starts: [bool; 256],
}

impl Listed {
    /// `lists` says whether it is worth the while to list it.
    fn of(path: &Path, lists: bool) -> Self {
        let mut stems: HashMap<String, Vec<String>> = HashMap::new();
        let names = if lists { names(path) } else { None };
        let mut starts = [names.is_none(); 256];
        for name in names.iter().flatten() {
            starts[usize::from(name.as_bytes()[0])] = true;
            if let Some((stem, ending)) = name.rsplit_once('.')
                && ENDINGS.contains(&ending)
            {
                stems.entry(stem.to_owned()).or_default().push(name.clone());
            }
        }
        Self { path: path.to_owned(), names, stems, starts }
    }

    /// Whether a name may lead to something in it.
    fn may_have(&self, name: &str) -> bool {
        name.bytes().next().is_none_or(|byte| self.starts[usize::from(byte)] || byte == b'.')
    }
}

/// The names in a folder; nothing where there are too many.
fn names(folder: &Path) -> Option<HashSet<String>> {
    let Ok(entries) = folder.read_dir() else { return Some(HashSet::new()) };
    let names: HashSet<String> = entries
        .take(MOST_NAMES + 1)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    (names.len() <= MOST_NAMES).then_some(names)
}

struct Search {
    folders: Vec<Listed>,
    found: BTreeSet<PathBuf>,
    left: usize,
    lists: usize,
}

impl Search {
    fn name(&mut self, name: &str) {
        let name = name.trim_start_matches("./");
        if name.contains(WILD) {
            return self.pattern(name);
        }
        let first = name.split('/').next().unwrap_or_default();
        for folder in self.folders.iter().filter(|folder| folder.may_have(first)) {
            let is_there = match &folder.names {
                Some(names) if !matches!(first, "" | "." | "..") => names.contains(first),
                _ => self.left > 0,
            };
            let with_ending = folder.stems.get(name).into_iter().flatten();
            self.found.extend(with_ending.map(|name| folder.path.join(name)));
            if !is_there {
                continue;
            }
            let file = folder.path.join(name);
            let is_listed = folder.names.is_some() && first == name;
            if !is_listed {
                self.left = self.left.saturating_sub(1);
                if file.symlink_metadata().is_err() {
                    let endings = ENDINGS.iter().filter(|_| name.contains('/'));
                    let files = endings.map(|ending| folder.path.join(format!("{name}.{ending}")));
                    self.found.extend(files.filter(|file| file.symlink_metadata().is_ok()));
                    continue;
                }
            }
            self.found.extend(OF_FOLDER.iter().map(|it| file.join(it)).filter(|it| it.exists()));
            self.found.extend((!is_data(&file)).then_some(file));
        }
    }

    /// What may be meant by a pattern in the last part of a path.
    fn pattern(&mut self, name: &str) {
        let (folder, name) = name.rsplit_once('/').unwrap_or(("", name));
        let start = name.split(WILD).next().unwrap_or_default();
        let end = name.rsplit([']', '*', '?']).next().unwrap_or_default();
        for listed in &self.folders {
            let other = if folder.is_empty() {
                None
            } else if self.lists > 0 {
                self.lists -= 1;
                names(&listed.path.join(folder))
            } else {
                continue;
            };
            let all = if folder.is_empty() { &listed.names } else { &other };
            let are_meant = |it: &&String| {
                it.len() >= start.len() + end.len() && it.starts_with(start) && it.ends_with(end)
            };
            let files = all.iter().flatten().filter(are_meant);
            let files = files.map(|it| listed.path.join(folder).join(it));
            self.found.extend(files.filter(|file| !is_data(file)).take(MOST));
        }
    }
}

fn is_data(file: &Path) -> bool {
    file.extension().and_then(OsStr::to_str).is_some_and(|ending| DATA.contains(&ending))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // CVE-2026-32978: whatever reads it, it is bound.
    #[test]
    fn every_name_in_a_text_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("sub")).unwrap();
        for name in ["s.sh", "n.js", "my x", "sub/t.py", "sub/__main__.py", "a.log", "other"] {
            fs::write(root.join(name), "").unwrap();
        }
        let found = |text: &str, words: &[&str]| {
            let found = files(text, words.iter().copied(), &[root.to_owned()], true);
            let names: Vec<String> = found
                .iter()
                .filter(|file| file.is_file())
                .map(|file| file.strip_prefix(root).unwrap().display().to_string())
                .collect();
            names.join(" ")
        };
        for (text, expected) in [
            ("x s.sh", "s.sh"),
            ("x --y=s.sh", "s.sh"),
            ("x -ns.sh", "s.sh"),
            ("x '.read s.sh'", "s.sh"),
            ("x s*.sh", "s.sh"),
            ("x ./s.s?", "s.sh"),
            ("x ./s.s[h]", "s.sh"),
            ("x n", "n.js"),
            ("x sub/t", "sub/t.py"),
            ("x sub/*.py", "sub/__main__.py sub/t.py"),
            ("x sub", "sub/__main__.py"),
            ("for f in s.sh; do x $f; done", "s.sh"),
            ("x nope a.log", ""),
        ] {
            assert_eq!(found(text, &[]), expected, "{text}");
        }
        let names: String = (0..100).map(|name| format!("a{name} ")).collect();
        for text in [format!("x {names} s.sh"), "x s.sh".to_owned()] {
            assert_eq!(files(&text, [].into_iter(), &[root.to_owned()], false).len(), 1, "{text}");
        }
        assert_eq!(found("x 'my x'", &["x", "my x"]), "my x");
    }
}
