//! Finds the files that the text of a command line mentions, regardless of how it uses them.
//!
//! Script operands are known for few programs, and some words are only known to bash: globs, loop
//! lists, variable values. So every name in the text is compared with the names in the
//! directories where the command may run, and in the directories that the text mentions.
//!
//! **Invariant:** each directory is listed once, each file is looked at once, and no file is
//! read.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// The maximum number of files.
const MAX_FILES: usize = 512;

/// The maximum number of names in a listed directory. In a larger directory each name of the text
/// is looked up by itself.
const MAX_FOLDER_NAMES: usize = 4096;

/// The work limit, about two milliseconds. A name in a listed directory costs one unit; the other
/// costs are: looking at a file, opening a directory, and the number of name comparisons per
/// unit.
const MAX_WORK: usize = 8192;
const STAT_COST: usize = 4;
const LIST_COST: usize = 40;
const NAMES_PER_COST: usize = 8;

/// The maximum number of directories in which names are looked up, or from which all files are
/// taken.
const MAX_FOLDERS: usize = 512;

/// The maximum number of path components after an expansion.
const MAX_PATH_PARTS: usize = 32;

/// File extensions that interpreters add to a name.
const EXTENSIONS: &[&str] = &["cjs", "js", "lua", "mjs", "php", "pl", "pm", "py", "rb", "sh", "ts"];

/// Files that interpreters run for a directory.
const FOLDER_ENTRY_POINTS: &[&str] = &["__init__.py", "__main__.py", "index.js", "package.json"];

/// Characters of a glob, and characters of expansions that may precede a name.
const WILDCARDS: [char; 3] = ['*', '?', '['];
const EXPANDS: [char; 4] = ['$', '`', '{', '~'];

/// Extensions of files that change on their own while an approval is pending.
const DATA_EXTENSIONS: &[&str] = &["db", "lock", "log", "pid", "sqlite", "sqlite3"];

/// Up to this number of names, each is looked up by itself instead of in a listing.
const FEW_NAMES: usize = 24;

/// A command line text and where to search for the files that it mentions.
pub(crate) struct MentionQuery<'t> {
    pub(crate) text: &'t str,
    /// The words after quote removal.
    pub(crate) words: Vec<&'t str>,
    /// The directories where it may run.
    pub(crate) folders: &'t [PathBuf],
    /// Whether a program may add a file extension to a name.
    pub(crate) adds_extensions: bool,
    /// Whether a program may run files that another one finds.
    pub(crate) runs_found_files: bool,
    /// Whether the files of a directory are relevant.
    pub(crate) is_relevant: &'t dyn Fn(&Path) -> bool,
}

/// Existing files with their metadata; links are not followed.
pub(crate) type FileMap = BTreeMap<PathBuf, Metadata>;

/// The files that a text mentions.
pub(crate) struct MentionedFiles {
    pub(crate) files: FileMap,
    /// Whether the text may mention more files.
    pub(crate) is_incomplete: bool,
}

impl<'t> MentionQuery<'t> {
    /// Finds the files that the text mentions.
    pub(crate) fn find_mentions(&self) -> MentionedFiles {
        let names = self.candidate_names();
        let lists =
            self.adds_extensions || self.text.contains(WILDCARDS) || names.len() > FEW_NAMES;
        let mut search = MentionSearch {
            folders: Vec::new(),
            files: FileMap::new(),
            budget: MAX_WORK,
            adds_extensions: self.adds_extensions,
            is_incomplete: false,
        };
        for folder in self.folders {
            let names = if lists { search.list_all(folder) } else { None };
            search.folders.push(ListedFolder::from_names(folder, names));
        }
        let mut at = 0;
        while at < search.folders.len() && !search.is_incomplete {
            search.spend_budget(names.len() / NAMES_PER_COST);
            let entered = names.iter().flat_map(|name| search.search_name(at, name)).collect();
            search.add_folders(entered, self.is_relevant);
            at += 1;
        }
        if self.runs_found_files {
            search.record_all_files(self.is_relevant);
        }
        // An incomplete search invalidates approvals anyway, so the files do not matter.
        let files = if search.is_incomplete { FileMap::new() } else { search.files };
        MentionedFiles { files, is_incomplete: search.is_incomplete }
    }

    /// Returns every possible name in the text, without duplicates.
    fn candidate_names(&self) -> Vec<&'t str> {
        let plain = self.text.split(|c: char| !is_of_name(c));
        // Other words are already among the plain names.
        let words = self.words.iter().filter(|word| !word.chars().all(is_of_name));
        let expands = self.text.contains(EXPANDS);
        let written = plain.chain(words.copied());
        let (mut names, mut seen) = (Vec::new(), HashSet::from([""]));
        for name in written.flat_map(|name| name_parts(name, expands)) {
            if seen.insert(name) {
                names.push(name);
            }
        }
        names
    }
}

/// Returns a name and the possible names inside it.
fn name_parts(name: &str, expands: bool) -> impl Iterator<Item = &str> {
    // The value of a short option.
    let value = name.strip_prefix('-').and_then(|rest| rest.get(1..));
    // `$PWD/x` is `x`, and `$(pwd)/x` too.
    let parts = if expands { MAX_PATH_PARTS } else { 0 };
    let ends = name.rmatch_indices('/').take(parts).map(|(at, _)| &name[at + 1..]);
    [name].into_iter().chain(value).chain(ends)
}

/// Whether a character may be in an unquoted name or a glob.
fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || !c.is_ascii()
        || matches!(c, '_' | '.' | '/' | '-' | '+' | '@' | '%' | '~' | '*' | '?' | '[' | ']')
}

/// A directory with its names, if they are few.
struct ListedFolder {
    path: PathBuf,
    names: Option<HashSet<String>>,
    /// Script names by their stem.
    stems: HashMap<String, Vec<String>>,
}

impl ListedFolder {
    fn from_names(path: &Path, names: Option<Vec<String>>) -> Self {
        let mut stems: HashMap<String, Vec<String>> = HashMap::new();
        for name in names.iter().flatten() {
            if let Some((stem, extension)) = name.rsplit_once('.')
                && EXTENSIONS.contains(&extension)
            {
                stems.entry(stem.to_owned()).or_default().push(name.clone());
            }
        }
        let names = names.map(|names| names.into_iter().collect());
        Self { path: path.to_owned(), names, stems }
    }
}

struct MentionSearch {
    folders: Vec<ListedFolder>,
    files: FileMap,
    /// The remaining work.
    budget: usize,
    adds_extensions: bool,
    is_incomplete: bool,
}

impl MentionSearch {
    /// Spends `work` from the budget. Returns whether it was sufficient.
    fn spend_budget(&mut self, work: usize) -> bool {
        let remaining = self.budget.checked_sub(work);
        self.budget = remaining.unwrap_or(0);
        self.is_incomplete |= remaining.is_none();
        remaining.is_some()
    }

    /// Lists all names of a directory, if they are not too many.
    fn list_all(&mut self, folder: &Path) -> Option<Vec<String>> {
        let names = self.list_folder(folder, MAX_FOLDER_NAMES + 1);
        names.filter(|names| names.len() <= MAX_FOLDER_NAMES)
    }

    /// Lists at most `most` names of a directory; `None` if the budget is exhausted.
    fn list_folder(&mut self, folder: &Path, most: usize) -> Option<Vec<String>> {
        if !self.spend_budget(LIST_COST) {
            return None;
        }
        let Ok(entries) = folder.read_dir() else { return Some(Vec::new()) };
        let most = most.min(self.budget);
        let mut names = Vec::new();
        for entry in entries.take(most) {
            match entry {
                Ok(entry) => names.push(entry.file_name().to_string_lossy().into_owned()),
                Err(_) => self.is_incomplete = true,
            }
        }
        // With an exhausted budget the listing may be incomplete.
        self.spend_budget(names.len());
        self.is_incomplete |= most <= MAX_FOLDER_NAMES && names.len() == most;
        Some(names)
    }

    /// Returns the metadata of a path without following links.
    fn stat_file(&mut self, file: &Path) -> Option<Metadata> {
        if self.spend_budget(STAT_COST) { file.symlink_metadata().ok() } else { None }
    }

    /// Searches a name in a directory. Returns the directories that it names.
    fn search_name(&mut self, at: usize, name: &str) -> Vec<PathBuf> {
        let name = name.trim_start_matches("./");
        if name.contains(WILDCARDS) {
            return self.search_pattern(at, name);
        }
        let folder = &self.folders[at];
        let (first, is_path) = match name.split_once('/') {
            Some((first, _)) => (first, true),
            None => (name, false),
        };
        let is_listed = folder.names.is_some() && !matches!(first, "" | "." | "..");
        let is_there =
            folder.names.as_ref().is_none_or(|names| !is_listed || names.contains(first));
        if !is_path {
            let with_ending = folder.stems.get(name).into_iter().flatten();
            let with_ending: Vec<_> = with_ending.map(|name| folder.path.join(name)).collect();
            for file in with_ending {
                self.record_path(file);
            }
        }
        if is_there {
            self.search_file(at, name, is_path || !is_listed)
        } else {
            self.search_module(at, name)
        }
    }

    /// Searches the file of a name whose first component exists or may exist. `is_unsure` means
    /// that the rest may not exist.
    fn search_file(&mut self, at: usize, name: &str, is_unsure: bool) -> Vec<PathBuf> {
        let folder = self.folders[at].path.clone();
        if let Some(folders) = self.record_path(folder.join(name)) {
            return folders;
        }
        if is_unsure && (name.contains('/') || self.adds_extensions) {
            for ending in EXTENSIONS {
                self.record_path(folder.join(format!("{name}.{ending}")));
            }
        }
        self.search_module(at, name)
    }

    /// Searches the file that an interpreter loads for the module `a.b`.
    fn search_module(&mut self, at: usize, name: &str) -> Vec<PathBuf> {
        if !self.adds_extensions || name.contains('/') || !name.contains('.') {
            return Vec::new();
        }
        let path = name.trim_matches('.').replace('.', "/");
        if path.contains('/') { self.search_name(at, &path) } else { Vec::new() }
    }

    /// Records a path. Returns the directories; `None` if nothing exists there.
    fn record_path(&mut self, file: PathBuf) -> Option<Vec<PathBuf>> {
        if self.files.contains_key(&file) {
            return Some(Vec::new());
        }
        let metadata = self.stat_file(&file)?;
        if metadata.is_dir() || metadata.is_symlink() && file.is_dir() {
            for name in FOLDER_ENTRY_POINTS {
                let file = file.join(name);
                let there = self.stat_file(&file);
                there.and_then(|metadata| self.record_file(file, metadata));
            }
            return Some(vec![file]);
        }
        if !is_data(&file) {
            self.record_file(file, metadata);
        }
        Some(Vec::new())
    }

    fn record_file(&mut self, file: PathBuf, metadata: Metadata) -> Option<()> {
        let is_full = self.files.len() >= MAX_FILES;
        match self.files.entry(file) {
            Entry::Vacant(_) if is_full => self.is_incomplete = true,
            Entry::Vacant(entry) => drop(entry.insert(metadata)),
            Entry::Occupied(_) => {}
        }
        Some(())
    }

    /// Searches the files that match a glob, in which each component may be one.
    fn search_pattern(&mut self, at: usize, name: &str) -> Vec<PathBuf> {
        let start = if name.starts_with('/') { Path::new("/") } else { &self.folders[at].path };
        let mut places = vec![start.to_owned()];
        for part in name.split('/') {
            if !part.contains(WILDCARDS) {
                places = places.into_iter().map(|place| place.join(part)).collect();
                continue;
            }
            let mut meant = Vec::new();
            for place in places {
                meant.extend(self.expand_pattern(at, &place, part));
            }
            places = meant;
        }
        // With too many matches the result is incomplete anyway.
        self.is_incomplete |= places.len() > MAX_FILES;
        if self.is_incomplete {
            return Vec::new();
        }
        places.into_iter().filter_map(|place| self.record_path(place)).flatten().collect()
    }

    /// Returns the matches of one glob component in a directory.
    fn expand_pattern(&mut self, at: usize, place: &Path, pattern: &str) -> Vec<PathBuf> {
        let names: Option<Vec<String>> = match &self.folders[at] {
            folder if folder.path == place => {
                folder.names.as_ref().map(|names| names.iter().cloned().collect())
            }
            _ => self.list_all(place),
        };
        self.is_incomplete |= names.is_none();
        let start = pattern.split(WILDCARDS).next().unwrap_or_default();
        let end = pattern.rsplit([']', '*', '?']).next().unwrap_or_default();
        let mut names = names.unwrap_or_default();
        names.retain(|it| {
            it.len() >= start.len() + end.len() && it.starts_with(start) && it.ends_with(end)
        });
        names.sort_unstable();
        names.into_iter().map(|name| place.join(name)).take(MAX_FILES + 1).collect()
    }

    /// Adds directories to the search.
    fn add_folders(&mut self, folders: Vec<PathBuf>, counts: &dyn Fn(&Path) -> bool) {
        for folder in folders {
            // Resolving it costs about as much as listing it.
            if !self.spend_budget(LIST_COST) {
                return;
            }
            let Ok(folder) = folder.canonicalize() else { continue };
            let is_known = self.folders.iter().any(|known| known.path == folder);
            if is_known || !counts(&folder) {
                continue;
            }
            if self.folders.len() == MAX_FOLDERS {
                self.is_incomplete = true;
                return;
            }
            let names = self.list_all(&folder);
            self.folders.push(ListedFolder::from_names(&folder, names));
        }
    }

    /// Records all files in the directories, breadth first, up to the limit. An approver of a
    /// program that searches files has not seen their names, so the limit does not invalidate the
    /// approval.
    fn record_all_files(&mut self, counts: &dyn Fn(&Path) -> bool) {
        let was_cut = self.is_incomplete;
        let mut folders: Vec<PathBuf> = self.folders.iter().map(|it| it.path.clone()).collect();
        let mut at = 0;
        while at < folders.len() && self.files.len() < MAX_FILES {
            // Not more than can be inspected.
            let most = self.budget.saturating_sub(LIST_COST) / (1 + STAT_COST);
            let names = self.list_folder(&folders[at], most.min(MAX_FOLDER_NAMES + 1));
            let mut names = names.unwrap_or_default();
            // Hidden files come last.
            names.sort_unstable_by(|one, other| {
                let is_hidden = |name: &String| name.starts_with('.');
                is_hidden(one).cmp(&is_hidden(other)).then_with(|| one.cmp(other))
            });
            for name in names {
                let file = folders[at].join(name);
                if self.files.len() >= MAX_FILES {
                    break;
                }
                let Some(metadata) = self.stat_file(&file) else { continue };
                if !(metadata.is_dir() || metadata.is_symlink() && file.is_dir()) {
                    self.record_file(file, metadata);
                } else if folders.len() < MAX_FOLDERS && !folders.contains(&file) && counts(&file) {
                    folders.push(file);
                }
            }
            at += 1;
        }
        self.is_incomplete = was_cut;
    }
}

fn is_data(file: &Path) -> bool {
    file.extension().and_then(OsStr::to_str).is_some_and(|ending| DATA_EXTENSIONS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn text<'t>(text: &'t str, words: &[&'t str], folders: &'t [PathBuf]) -> MentionQuery<'t> {
        let words = words.to_vec();
        MentionQuery {
            text,
            words,
            folders,
            adds_extensions: true,
            runs_found_files: false,
            is_relevant: &|_| true,
        }
    }

    // CVE-2026-32978: a mentioned file is bound to the approval, whichever program reads it.
    #[test]
    fn every_name_in_a_text_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let folders = [root.clone()];
        fs::create_dir(root.join("sub")).unwrap();
        for name in ["s.sh", "n.js", "my x", "sub/t.py", "sub/__main__.py", "a.log", "other"] {
            fs::write(root.join(name), "").unwrap();
        }
        let names_of = |found: FileMap| {
            let name = |file: &PathBuf| file.strip_prefix(&root).unwrap().display().to_string();
            let names: Vec<String> = found.keys().filter(|file| file.is_file()).map(name).collect();
            names.join(" ")
        };
        let found = |script: &str, words: &[&str]| {
            let mentioned = text(script, words, &folders).find_mentions();
            assert!(!mentioned.is_incomplete);
            names_of(mentioned.files)
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
            let plain = MentionQuery { adds_extensions: false, ..text(&script, &[], &folders) };
            assert_eq!(names_of(plain.find_mentions().files), "s.sh", "{script}");
        }
        assert_eq!(found("x 'my x'", &["x", "my x"]), "my x");
        let all = MentionQuery { runs_found_files: true, ..text("y", &[], &folders) };
        let expected = "a.log my x n.js other s.sh sub/__main__.py sub/t.py";
        assert_eq!(names_of(all.find_mentions().files), expected);
        let none =
            MentionQuery { is_relevant: &|_| false, ..text("y -C sub x t.py", &[], &folders) };
        assert_eq!(names_of(none.find_mentions().files), "sub/__main__.py");
    }

    // What is left out is not taken for nothing.
    #[test]
    fn marks_truncated_analysis() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().canonicalize().unwrap()];
        let files: Vec<String> = (0..300).map(|number| format!("f{number}")).collect();
        for file in &files {
            fs::write(folders[0].join(file), "").unwrap();
        }
        let script = format!("true {}; x f1*", files.join(" "));
        let mentioned = text(&script, &[], &folders).find_mentions();
        assert_eq!((mentioned.files.len(), mentioned.is_incomplete), (300, false));
        let many: String = (0..=MAX_FOLDERS).map(|number| format!("a{number}/* ")).collect();
        assert!(text(&many, &[], &folders).find_mentions().is_incomplete);
    }

    // The search for mentioned files is bounded.
    #[test]
    fn the_search_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().canonicalize().unwrap()];
        let write =
            |number: usize| fs::write(folders[0].join(format!("f{number}.txt")), "").unwrap();
        (0..MAX_FILES + 1).for_each(write);
        let of = |script: &str| text(script, &[], &folders).find_mentions();
        // Of as many as are found, each is one.
        let some = of("perl f1*.txt");
        assert_eq!((some.files.len(), some.is_incomplete), (111, false));
        // Of too many none is looked at: no yes holds anyway.
        let many = of("perl f*.txt");
        assert_eq!((many.files.len(), many.is_incomplete), (0, true));
        let named: String = (0..=MAX_FILES).map(|number| format!(" f{number}.txt")).collect();
        assert!(of(&format!("perl{named}")).is_incomplete);
        // In a folder of more names than are listed, each name is looked for by itself.
        (MAX_FILES + 1..MAX_FOLDER_NAMES + 100).for_each(write);
        let one = of("perl f7.txt nope f8");
        assert_eq!((one.files.len(), one.is_incomplete), (1, false));
        assert!(of("perl f7*").is_incomplete);
        let named: String = (0..4000).map(|number| format!(" y{number}/z")).collect();
        assert!(of(&format!("perl{named}")).is_incomplete);
        // All that is found counts as far as it is not too much.
        let all =
            MentionQuery { runs_found_files: true, ..text("y", &[], &folders) }.find_mentions();
        assert_eq!((all.files.len(), all.is_incomplete), (MAX_FILES, false));
    }
}
