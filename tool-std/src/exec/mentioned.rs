//! Which files the text of a command line mentions, whatever it does with them.
//!
//! Which word a program runs as a script is known of few programs, and some words only bash
//! knows: patterns, lists of loops, values of variables. So every name in the text is held
//! against the names that there are in the folders where it may run, and in those that it
//! mentions: a program may be told to enter them.
//!
//! **Invariant:** each folder is listed once, each file is looked at once, and no file is read.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// How many files are found at most.
const MOST: usize = 512;

/// How many names of a folder are looked at. In a larger one, each name of the text is looked
/// for by itself.
const MOST_NAMES: usize = 4096;

/// How much work the search is at most, so that it takes two milliseconds, where a name in a
/// folder that is listed counts as one: how much it is to look at a file and to open a folder,
/// and how many names are compared with what is listed for one.
const MOST_WORK: usize = 8192;
const LOOK: usize = 4;
const LIST: usize = 40;
const COMPARED: usize = 8;

/// In how many folders each name is looked for, and from how many all files are taken.
const MOST_FOLDERS: usize = 512;

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

/// Files that are there, each with what it is itself, should it be a link.
pub(super) type Files = BTreeMap<PathBuf, Metadata>;

/// The files that a text mentions.
pub(super) struct Mentioned {
    pub(super) files: Files,
    /// Whether it may mention more.
    pub(super) is_cut: bool,
}

impl<'t> Text<'t> {
    /// The files that it mentions.
    pub(super) fn files(&self) -> Mentioned {
        let names = self.names();
        let lists = self.completes || self.text.contains(WILD) || names.len() > FEW;
        let mut search = Search {
            folders: Vec::new(),
            found: Files::new(),
            left: MOST_WORK,
            completes: self.completes,
            is_cut: false,
        };
        for folder in self.folders {
            let names = if lists {
                search.list(folder, MOST_NAMES + 1).filter(Names::are_all)
            } else {
                None
            };
            search.folders.push(Listed::of(folder, names));
        }
        let mut at = 0;
        while at < search.folders.len() && !search.is_cut {
            search.spend(names.len() / COMPARED);
            let entered = names.iter().flat_map(|name| search.name(at, name)).collect();
            search.enter(entered, self.counts);
            at += 1;
        }
        if self.finds {
            search.all(self.counts);
        }
        // Where it is cut no yes holds, whatever was found.
        let files = if search.is_cut { Files::new() } else { search.found };
        Mentioned { files, is_cut: search.is_cut }
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
    fn of(path: &Path, names: Option<Names>) -> Self {
        let mut stems: HashMap<String, Vec<String>> = HashMap::new();
        let names = names.map(|names| names.names);
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

/// Names in a folder: all of them, or one more than are looked at.
struct Names {
    names: HashSet<String>,
    /// How many there are at least; some may be no text.
    count: usize,
}

impl Names {
    fn are_all(&self) -> bool {
        self.count <= MOST_NAMES
    }
}

struct Search {
    folders: Vec<Listed>,
    found: Files,
    /// How much work may still be done.
    left: usize,
    completes: bool,
    is_cut: bool,
}

impl Search {
    /// Whether there is so much work left; it is done then.
    fn spend(&mut self, work: usize) -> bool {
        let left = self.left.checked_sub(work);
        self.left = left.unwrap_or(0);
        self.is_cut |= left.is_none();
        left.is_some()
    }

    /// The names in a folder, at most `most`; nothing where too much was done before.
    fn list(&mut self, folder: &Path, most: usize) -> Option<Names> {
        if !self.spend(LIST) {
            return None;
        }
        let Ok(entries) = folder.read_dir() else {
            return Some(Names { names: HashSet::new(), count: 0 });
        };
        let (most, mut count) = (most.min(self.left), 0);
        let name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let names: HashSet<String> =
            entries.take(most).inspect(|_| count += 1).filter_map(name).collect();
        // Where no more may be done, nobody knows whether these are all.
        self.spend(count);
        self.is_cut |= most <= MOST_NAMES && count == most;
        Some(Names { names, count })
    }

    /// What lies somewhere itself, should it be a link.
    fn look(&mut self, file: &Path) -> Option<Metadata> {
        if self.spend(LOOK) { file.symlink_metadata().ok() } else { None }
    }

    /// Looks for a name in a folder, and gives back the folders that it is the name of.
    fn name(&mut self, at: usize, name: &str) -> Vec<PathBuf> {
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
        let is_listed = folder.names.is_some() && !matches!(first, "" | "." | "..");
        let is_there =
            folder.names.as_ref().is_none_or(|names| !is_listed || names.contains(first));
        if !is_path {
            let with_ending = folder.stems.get(name).into_iter().flatten();
            let with_ending: Vec<_> = with_ending.map(|name| folder.path.join(name)).collect();
            for file in with_ending {
                self.take(file);
            }
        }
        if is_there { self.file(at, name, is_path || !is_listed) } else { self.module(at, name) }
    }

    /// Looks for the file of a name of which the first part is there, or may be; `is_unsure`
    /// says that the whole may not be there.
    fn file(&mut self, at: usize, name: &str, is_unsure: bool) -> Vec<PathBuf> {
        let folder = self.folders[at].path.clone();
        if let Some(folders) = self.take(folder.join(name)) {
            return folders;
        }
        if is_unsure && (name.contains('/') || self.completes) {
            for ending in ENDINGS {
                self.take(folder.join(format!("{name}.{ending}")));
            }
        }
        self.module(at, name)
    }

    /// Looks for what an interpreter that is told to import `a.b` reads.
    fn module(&mut self, at: usize, name: &str) -> Vec<PathBuf> {
        if !self.completes || name.contains('/') || !name.contains('.') {
            return Vec::new();
        }
        let path = name.trim_matches('.').replace('.', "/");
        if path.contains('/') { self.name(at, &path) } else { Vec::new() }
    }

    /// Takes a file, and gives back the folders; nothing where nothing is there.
    fn take(&mut self, file: PathBuf) -> Option<Vec<PathBuf>> {
        if self.found.contains_key(&file) {
            return Some(Vec::new());
        }
        let metadata = self.look(&file)?;
        if metadata.is_dir() || metadata.is_symlink() && file.is_dir() {
            for name in OF_FOLDER {
                let file = file.join(name);
                let there = self.look(&file);
                there.and_then(|metadata| self.found(file, metadata));
            }
            return Some(vec![file]);
        }
        if !is_data(&file) {
            self.found(file, metadata);
        }
        Some(Vec::new())
    }

    fn found(&mut self, file: PathBuf, metadata: Metadata) -> Option<()> {
        let is_full = self.found.len() >= MOST;
        match self.found.entry(file) {
            Entry::Vacant(_) if is_full => self.is_cut = true,
            Entry::Vacant(entry) => drop(entry.insert(metadata)),
            Entry::Occupied(_) => {}
        }
        Some(())
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
        // Where these are too many, none of them needs to be looked at.
        self.is_cut |= places.len() > MOST;
        if self.is_cut {
            return Vec::new();
        }
        places.into_iter().filter_map(|place| self.take(place)).flatten().collect()
    }

    /// What a pattern for names means in a place.
    fn meant(&mut self, at: usize, place: &Path, pattern: &str) -> Vec<PathBuf> {
        let other = match place == self.folders[at].path {
            true => None,
            false => self.list(place, MOST_NAMES + 1).filter(Names::are_all),
        };
        let all = match &other {
            Some(names) => Some(&names.names),
            None if place == self.folders[at].path => self.folders[at].names.as_ref(),
            None => None,
        };
        self.is_cut |= all.is_none();
        let start = pattern.split(WILD).next().unwrap_or_default();
        let end = pattern.rsplit([']', '*', '?']).next().unwrap_or_default();
        let is_meant = |it: &&String| {
            it.len() >= start.len() + end.len() && it.starts_with(start) && it.ends_with(end)
        };
        let mut meant: Vec<&String> = all.into_iter().flatten().filter(is_meant).collect();
        meant.sort_unstable();
        meant.into_iter().map(|it| place.join(it)).take(MOST + 1).collect()
    }

    /// Names are looked for in these folders too.
    fn enter(&mut self, folders: Vec<PathBuf>, counts: &dyn Fn(&Path) -> bool) {
        for folder in folders {
            // To find where it leads takes about as long as to list it.
            if !self.spend(LIST) {
                return;
            }
            let Ok(folder) = folder.canonicalize() else { continue };
            let is_known = self.folders.iter().any(|known| known.path == folder);
            if is_known || !counts(&folder) {
                continue;
            }
            if self.folders.len() == MOST_FOLDERS {
                self.is_cut = true;
                return;
            }
            let names = self.list(&folder, MOST_NAMES + 1).filter(Names::are_all);
            self.folders.push(Listed::of(&folder, names));
        }
    }

    /// Takes all files in the folders, those that lie deep last, as far as there are not too many:
    /// nobody who lets a program look for files has seen which they are.
    fn all(&mut self, counts: &dyn Fn(&Path) -> bool) {
        let was_cut = self.is_cut;
        let mut folders: Vec<PathBuf> = self.folders.iter().map(|it| it.path.clone()).collect();
        let mut at = 0;
        while at < folders.len() && self.found.len() < MOST {
            // No more than can be looked at.
            let most = self.left.saturating_sub(LIST) / (1 + LOOK);
            let names = self.list(&folders[at], most.min(MOST_NAMES + 1));
            let mut names: Vec<String> = names.into_iter().flat_map(|it| it.names).collect();
            // What is hidden is meant last.
            names.sort_unstable_by(|one, other| {
                let is_hidden = |name: &String| name.starts_with('.');
                is_hidden(one).cmp(&is_hidden(other)).then_with(|| one.cmp(other))
            });
            for name in names {
                let file = folders[at].join(name);
                if self.found.len() >= MOST {
                    break;
                }
                let Some(metadata) = self.look(&file) else { continue };
                if !(metadata.is_dir() || metadata.is_symlink() && file.is_dir()) {
                    self.found(file, metadata);
                } else if folders.len() < MOST_FOLDERS && !folders.contains(&file) && counts(&file)
                {
                    folders.push(file);
                }
            }
            at += 1;
        }
        self.is_cut = was_cut;
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
        let told = |found: Files| {
            let name = |file: &PathBuf| file.strip_prefix(&root).unwrap().display().to_string();
            let names: Vec<String> = found.keys().filter(|file| file.is_file()).map(name).collect();
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
        let many: String = (0..=MOST_FOLDERS).map(|number| format!("a{number}/* ")).collect();
        assert!(text(&many, &[], &folders).files().is_cut);
    }

    // Whatever a command mentions, to look for it is bounded.
    #[test]
    fn the_search_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().canonicalize().unwrap()];
        let write =
            |number: usize| fs::write(folders[0].join(format!("f{number}.txt")), "").unwrap();
        (0..MOST + 1).for_each(write);
        let of = |script: &str| text(script, &[], &folders).files();
        // Of as many as are found, each is one.
        let some = of("perl f1*.txt");
        assert_eq!((some.files.len(), some.is_cut), (111, false));
        // Of too many none is looked at: no yes holds anyway.
        let many = of("perl f*.txt");
        assert_eq!((many.files.len(), many.is_cut), (0, true));
        let named: String = (0..=MOST).map(|number| format!(" f{number}.txt")).collect();
        assert!(of(&format!("perl{named}")).is_cut);
        // In a folder of more names than are listed, each name is looked for by itself.
        (MOST + 1..MOST_NAMES + 100).for_each(write);
        let one = of("perl f7.txt nope f8");
        assert_eq!((one.files.len(), one.is_cut), (1, false));
        assert!(of("perl f7*").is_cut);
        let named: String = (0..4000).map(|number| format!(" y{number}/z")).collect();
        assert!(of(&format!("perl{named}")).is_cut);
        // All that is found counts as far as it is not too much.
        let all = Text { finds: true, ..text("y", &[], &folders) }.files();
        assert_eq!((all.files.len(), all.is_cut), (MOST, false));
    }
}
