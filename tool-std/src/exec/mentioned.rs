//! Which files the text of a command line mentions, whatever it does with them.
//!
//! Which word a program runs as a script is known of few programs, and some words only bash
//! knows: patterns, lists of loops, values of variables. So every name in the text is held
//! against the names that there are in the folders where it may run, and in those that it
//! mentions: a program may be told to enter them.
//!
//! **Invariant:** each folder is listed once, and no file is read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// How many files are found at most.
const MOST: usize = 8192;

/// How many names of a folder are looked at. In a larger one, each name of the text is looked
/// for by itself.
const MOST_NAMES: usize = 65_536;

/// How many names are looked for by themselves, how many folders of patterns are listed, in how
/// many each name is looked for, and from how many all files are taken.
const MOST_LOOKED_FOR: usize = 4096;
const MOST_LISTED: usize = 512;
const MOST_ENTERED: usize = 512;
const MOST_WALKED: usize = 512;

/// How many parts of a path may stand behind what is only known when it runs.
const MOST_PARTS: usize = 32;

/// Endings that interpreters put behind a name themselves.
const ENDINGS: &[&str] = &["cjs", "js", "lua", "mjs", "php", "pl", "pm", "py", "rb", "sh", "ts"];

/// What interpreters run of a folder.
const OF_FOLDER: &[&str] = &["__init__.py", "__main__.py", "index.js", "package.json"];

/// Of what a pattern is known, and what may put anything before a name.
const WILD: [char; 3] = ['*', '?', '['];
const EXPANDS: [char; 4] = ['$', '`', '{', '~'];

/// Files that grow or change by themselves while somebody is asked.
const DATA: &[&str] = &["db", "lock", "log", "pid", "sqlite", "sqlite3"];

/// How many names are looked for by themselves rather than in a list.
const FEW: usize = 24;

/// A text that mentions files.
pub(super) struct Text<'t> {
    pub(super) text: &'t str,
    /// What it becomes, where that has characters that no name without quotes has.
    pub(super) words: Vec<&'t str>,
    /// The folders where it may run.
    pub(super) folders: &'t [PathBuf],
    /// Whether a program may put an ending behind a name.
    pub(super) completes: bool,
    /// Whether one may run files that others find.
    pub(super) finds: bool,
    /// Whether what lies in a folder counts.
    pub(super) counts: &'t dyn Fn(&Path) -> bool,
}

/// The files that a text mentions.
pub(super) struct Mentioned {
    pub(super) files: BTreeSet<PathBuf>,
    /// Whether it may mention more.
    pub(super) is_cut: bool,
}

impl<'t> Text<'t> {
    /// The files that it mentions.
    pub(super) fn files(&self) -> Mentioned {
        let names = self.names();
        let lists = self.completes || self.text.contains(WILD) || names.len() > FEW;
        let folders = self.folders.iter().map(|folder| Listed::of(folder, lists)).collect();
        let mut search = Search {
            folders,
            found: BTreeSet::new(),
            left: MOST_LOOKED_FOR,
            lists: MOST_LISTED,
            completes: self.completes,
            is_cut: false,
        };
        let mut at = 0;
        while at < search.folders.len() {
            let entered = names.iter().flat_map(|name| search.name(at, name)).collect();
            search.enter(entered, self.counts);
            at += 1;
        }
        if self.finds {
            search.all(self.counts);
        }
        Mentioned { files: search.found, is_cut: search.is_cut }
    }

    /// Everything in it that may be a name, once.
    fn names(&self) -> Vec<&'t str> {
        let plain = self.text.split(|c: char| !is_of_name(c));
        // The others are among these.
        let words = self.words.iter().filter(|word| !word.chars().all(is_of_name));
        let expands = self.text.contains(EXPANDS);
        let written = plain.chain(words.copied());
        let (mut names, mut seen) = (Vec::new(), HashSet::from([""]));
        for name in written.flat_map(|name| in_name(name, expands)) {
            if seen.insert(name) {
                names.push(name);
            }
        }
        names
    }
}

/// A name, and what may be one in it.
fn in_name(name: &str, expands: bool) -> impl Iterator<Item = &str> {
    // What stands behind an option of one letter.
    let value = name.strip_prefix('-').and_then(|rest| rest.get(1..));
    // `$PWD/x` is `x`, and `$(pwd)/x` too.
    let parts = if expands { MOST_PARTS } else { 0 };
    let ends = name.rmatch_indices('/').take(parts).map(|(at, _)| &name[at + 1..]);
    [name].into_iter().chain(value).chain(ends)
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
    completes: bool,
    is_cut: bool,
}

impl Search {
    /// Looks for a name in a folder, and gives back the folders that it is the name of.
    fn name(&mut self, at: usize, name: &str) -> Vec<PathBuf> {
        if self.found.len() >= MOST {
            self.is_cut = true;
            return Vec::new();
        }
        let name = name.trim_start_matches("./");
        if name.contains(WILD) {
            return self.pattern(at, name);
        }
        let folder = &self.folders[at];
        let (first, is_path) = match name.split_once('/') {
            Some((first, _)) => (first, true),
            None => (name, false),
        };
        if !folder.may_have(first) {
            return Vec::new();
        }
        if !is_path {
            let with_ending = folder.stems.get(name).into_iter().flatten();
            self.found.extend(with_ending.map(|name| folder.path.join(name)));
        }
        let is_there = match &folder.names {
            Some(names) if !matches!(first, "" | "." | "..") => names.contains(first),
            _ => {
                self.is_cut |= self.left == 0;
                self.left > 0
            }
        };
        if is_there { self.file(at, name, is_path) } else { self.module(at, name) }
    }

    /// Looks for the file of a name of which the first part is there.
    fn file(&mut self, at: usize, name: &str, is_path: bool) -> Vec<PathBuf> {
        let folder = &self.folders[at];
        let file = folder.path.join(name);
        if is_path || folder.names.is_none() {
            self.left = self.left.saturating_sub(1);
            if file.symlink_metadata().is_err() {
                let may_end = is_path || self.completes;
                let endings = ENDINGS.iter().filter(|_| may_end);
                let files = endings.map(|ending| folder.path.join(format!("{name}.{ending}")));
                self.found.extend(files.filter(|file| file.symlink_metadata().is_ok()));
                return self.module(at, name);
            }
        }
        self.take(file)
    }

    /// Looks for what an interpreter that is told to import `a.b` reads.
    fn module(&mut self, at: usize, name: &str) -> Vec<PathBuf> {
        if !self.completes || name.contains('/') || !name.contains('.') {
            return Vec::new();
        }
        let path = name.trim_matches('.').replace('.', "/");
        if path.contains('/') { self.name(at, &path) } else { Vec::new() }
    }

    /// Takes a file that is there, and gives back the folders.
    fn take(&mut self, file: PathBuf) -> Vec<PathBuf> {
        if file.is_dir() {
            self.found.extend(OF_FOLDER.iter().map(|it| file.join(it)).filter(|it| it.exists()));
            return vec![file];
        }
        self.found.extend((!is_data(&file)).then_some(file));
        Vec::new()
    }

    /// What may be meant by a pattern, of which each part may be one.
    fn pattern(&mut self, at: usize, name: &str) -> Vec<PathBuf> {
        let start = if name.starts_with('/') { Path::new("/") } else { &self.folders[at].path };
        let mut places = vec![start.to_owned()];
        for part in name.split('/') {
            if !part.contains(WILD) {
                places = places.into_iter().map(|place| place.join(part)).collect();
                continue;
            }
            let mut meant = Vec::new();
            for place in places {
                meant.extend(self.meant(at, &place, part));
            }
            places = meant;
        }
        places.retain(|place| place.symlink_metadata().is_ok());
        places.into_iter().flat_map(|place| self.take(place)).collect()
    }

    /// What a pattern for names means in a place.
    fn meant(&mut self, at: usize, place: &Path, pattern: &str) -> Vec<PathBuf> {
        let folder = &self.folders[at];
        let other = if place == folder.path {
            None
        } else if self.lists > 0 {
            self.lists -= 1;
            names(place)
        } else {
            None
        };
        let all = if place == folder.path { &folder.names } else { &other };
        self.is_cut |= all.is_none();
        let start = pattern.split(WILD).next().unwrap_or_default();
        let end = pattern.rsplit([']', '*', '?']).next().unwrap_or_default();
        let is_meant = |it: &&String| {
            it.len() >= start.len() + end.len() && it.starts_with(start) && it.ends_with(end)
        };
        let mut meant: Vec<&String> = all.iter().flatten().filter(is_meant).collect();
        meant.sort_unstable();
        meant.into_iter().map(|it| place.join(it)).take(MOST).collect()
    }

    /// Names are looked for in these folders too.
    fn enter(&mut self, folders: Vec<PathBuf>, counts: &dyn Fn(&Path) -> bool) {
        for folder in folders.into_iter().filter_map(|folder| folder.canonicalize().ok()) {
            let is_known = self.folders.iter().any(|known| known.path == folder);
            if is_known || !counts(&folder) {
                continue;
            }
            if self.folders.len() == MOST_ENTERED {
                self.is_cut = true;
                return;
            }
            self.folders.push(Listed::of(&folder, true));
        }
    }

    /// Takes all files in the folders, those that lie deep last, as far as there are not too many:
    /// nobody who lets a program look for files has seen which they are.
    fn all(&mut self, counts: &dyn Fn(&Path) -> bool) {
        let mut folders: Vec<PathBuf> = self.folders.iter().map(|it| it.path.clone()).collect();
        let mut at = 0;
        while at < folders.len() && self.found.len() < MOST {
            let mut names: Vec<String> = names(&folders[at]).into_iter().flatten().collect();
            // What is hidden is meant last.
            names.sort_unstable_by_key(|name| (name.starts_with('.'), name.clone()));
            for name in names {
                let file = folders[at].join(name);
                if self.found.len() >= MOST {
                    break;
                }
                if !file.is_dir() {
                    self.found.insert(file);
                } else if folders.len() < MOST_WALKED && !folders.contains(&file) && counts(&file) {
                    folders.push(file);
                }
            }
            at += 1;
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

    fn text<'t>(text: &'t str, words: &[&'t str], folders: &'t [PathBuf]) -> Text<'t> {
        let words = words.to_vec();
        Text { text, words, folders, completes: true, finds: false, counts: &|_| true }
    }

    // CVE-2026-32978: whatever reads it, it is bound.
    #[test]
    fn every_name_in_a_text_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let folders = [root.clone()];
        fs::create_dir(root.join("sub")).unwrap();
        for name in ["s.sh", "n.js", "my x", "sub/t.py", "sub/__main__.py", "a.log", "other"] {
            fs::write(root.join(name), "").unwrap();
        }
        let told = |found: BTreeSet<PathBuf>| {
            let name = |file: &PathBuf| file.strip_prefix(&root).unwrap().display().to_string();
            let names: Vec<String> = found.iter().filter(|file| file.is_file()).map(name).collect();
            names.join(" ")
        };
        let found = |script: &str, words: &[&str]| {
            let mentioned = text(script, words, &folders).files();
            assert!(!mentioned.is_cut);
            told(mentioned.files)
        };
        for (script, expected) in [
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
            ("x s*/t.py", "sub/t.py"),
            ("x sub", "sub/__main__.py"),
            ("for f in s.sh; do x $f; done", "s.sh"),
            ("x nope a.log", ""),
            // What stands before a name may be known to bash only.
            ("x $PWD/s.sh", "s.sh"),
            ("x \"$(pwd)/sub/t.py\"", "sub/t.py"),
            ("x ~+/s.sh", "s.sh"),
            ("x {.,y}/s.sh", "s.sh"),
            ("x $PWD/s*.sh", "s.sh"),
            ("x /nope/s.sh", ""),
            // A program may enter a folder.
            ("y -C sub x t.py", "sub/__main__.py sub/t.py"),
            ("a=sub; x $a/t.py", "sub/__main__.py sub/t.py"),
            ("x 'import sub.t'", "sub/t.py"),
        ] {
            assert_eq!(found(script, &[]), expected, "{script}");
        }
        let names: String = (0..100).map(|name| format!("a{name} ")).collect();
        for script in [format!("x {names} s.sh"), "x s.sh".to_owned()] {
            let plain = Text { completes: false, ..text(&script, &[], &folders) };
            assert_eq!(told(plain.files().files), "s.sh", "{script}");
        }
        assert_eq!(found("x 'my x'", &["x", "my x"]), "my x");
        let all = Text { finds: true, ..text("y", &[], &folders) };
        let expected = "a.log my x n.js other s.sh sub/__main__.py sub/t.py";
        assert_eq!(told(all.files().files), expected);
        let none = Text { counts: &|_| false, ..text("y -C sub x t.py", &[], &folders) };
        assert_eq!(told(none.files().files), "sub/__main__.py");
    }

    // What is left out is not taken for nothing.
    #[test]
    fn too_much_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().canonicalize().unwrap()];
        let files: Vec<String> = (0..300).map(|number| format!("f{number}")).collect();
        for file in &files {
            fs::write(folders[0].join(file), "").unwrap();
        }
        let script = format!("true {}; x f1*", files.join(" "));
        let mentioned = text(&script, &[], &folders).files();
        assert_eq!((mentioned.files.len(), mentioned.is_cut), (300, false));
        let many: String = (0..=MOST_LISTED).map(|number| format!("a{number}/* ")).collect();
        assert!(text(&many, &[], &folders).files().is_cut);
    }
}
