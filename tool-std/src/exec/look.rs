//! Where the files lie that a command looks at which needs no rule, because it only looks.
//!
//! Another command is asked about as a whole.
//!
//! **Invariant:** where nobody knows which file is meant, somebody is asked.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tool_sdk::Subject;

use super::files::{Access, Base, leads_out, unknown};
use super::looked::{self, Given};
use super::{home, reading};
use crate::shell::{Simple, bare_name};

/// What other names a pattern fits goes by these.
const PATTERN_SETTINGS: &[&str] =
    &["BASHOPTS", "GLOBIGNORE", "dotglob", "extglob", "globstar", "nocaseglob"];

/// From where a command looks.
pub(super) struct Look<'a> {
    pub(super) base: &'a Base<'a>,
    /// How many files may still be looked for.
    pub(super) left: &'a Cell<usize>,
    /// It runs in one of these; there are none when nobody knows where.
    pub(super) folders: &'a [PathBuf],
    /// Whether the files are those that lie there now.
    pub(super) is_certain: bool,
    /// Whether others may come before the command looks, and be links.
    pub(super) may_come: bool,
    /// Whether patterns mean what they do when a shell starts.
    pub(super) are_usual: bool,
}

impl Look<'_> {
    pub(super) fn subjects(&self, command: &Simple) -> Vec<Subject> {
        let is_move = command.argv.first().is_some_and(|program| program == "cd");
        let given = looked::given(command);
        if !self.has_left(given.len()) {
            return unknown(&command.text, Access::Read);
        }
        given
            .into_iter()
            .flat_map(|given| if is_move { self.entered(given) } else { self.seen(given) })
            .collect()
    }

    /// Whether so many more files may be looked for, which then are.
    fn has_left(&self, files: usize) -> bool {
        let left = self.left.get().checked_sub(files);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }

    fn seen(&self, given: Given<'_>) -> Vec<Subject> {
        match given {
            Given::Path(path) => self.path(path),
            Given::Value(path) if self.is_there(path) => self.path(path),
            Given::Value(_) => Vec::new(),
            Given::Tracked(path) => self.tracked(path),
            Given::Entries(path) if self.is_folder(path) => unknown(path, Access::Read),
            Given::Entries(_) => Vec::new(),
            Given::Below(path) if self.is_folder(path) => vec![reading::unnamed(path)],
            Given::Below(_) => Vec::new(),
            Given::Shown(words) => vec![reading::unnamed(words)],
            Given::Pattern(pattern) => self.matching(pattern),
            Given::Unknown(words) => unknown(words, Access::Read),
            Given::Here if self.folders.is_empty() => unknown(".", Access::Read),
            Given::Here => self.own_folders(),
        }
    }

    /// What a command enters. Where nobody knows what that is, whatever looks there is asked
    /// about.
    fn entered(&self, given: Given<'_>) -> Vec<Subject> {
        match given {
            Given::Path(path) if self.folders.is_empty() && !leads_out(path) => Vec::new(),
            Given::Path(path) if self.folders.is_empty() => {
                self.base.about(path, false, Access::Read)
            }
            Given::Path(_) => self.own_folders(),
            other => self.seen(other),
        }
    }

    /// The folders, but for the one that was asked for.
    fn own_folders(&self) -> Vec<Subject> {
        let asked = self.base.folder.as_ref();
        let entered = self.folders.iter().filter(|folder| Some(*folder) != asked);
        entered.flat_map(|folder| self.file(folder)).collect()
    }

    fn path(&self, path: &str) -> Vec<Subject> {
        if path.starts_with(['/', '~']) {
            return self.base.about(path, self.is_certain, Access::Read);
        }
        if self.folders.is_empty() || home::may_stand_in(path) {
            return unknown(path, Access::Read);
        }
        // What is not there is not looked at, unless it may come before.
        let is_there = |file: &PathBuf| file.symlink_metadata().is_ok();
        let is_meant = |file: &PathBuf| self.may_come || leads_out(path) || is_there(file);
        let own = self.base.folder.as_ref().map(|folder| folder.join(path));
        let files = self.folders.iter().map(|folder| folder.join(path)).filter(is_meant);
        let about = |file: PathBuf| match own.as_ref() == Some(&file) {
            true => self.base.about(path, self.is_certain, Access::Read),
            false => self.file(&file),
        };
        files.flat_map(about).collect()
    }

    fn file(&self, file: &Path) -> Vec<Subject> {
        match file.to_str() {
            Some(path) => self.base.about(path, self.is_certain, Access::Read),
            None => unknown(&file.to_string_lossy(), Access::Read),
        }
    }

    /// A path that begins at the top of a repository, or in the folder itself. Whether it is
    /// there now does not matter: it may have been.
    fn tracked(&self, path: &str) -> Vec<Subject> {
        let is_top = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        let tops = self.folders.iter().filter_map(|folder| folder.ancestors().find(is_top));
        let own = self.folders.iter().map(PathBuf::as_path);
        let files: BTreeSet<PathBuf> = tops.chain(own).map(|folder| folder.join(path)).collect();
        files.iter().flat_map(|file| self.file(file)).collect()
    }

    fn is_there(&self, path: &str) -> bool {
        self.places(path).any(|file| file.symlink_metadata().is_ok())
    }

    /// Whether a path is a folder, or nobody knows what it is.
    fn is_folder(&self, path: &str) -> bool {
        let is_own = !path.starts_with(['/', '~']);
        path.starts_with('~')
            || is_own && self.folders.is_empty()
            || self.places(path).any(|file| file.is_dir())
    }

    /// Where a path may lie.
    fn places(&self, path: &str) -> impl Iterator<Item = PathBuf> {
        let is_absolute = Path::new(path).is_absolute();
        let from = if is_absolute { &[PathBuf::new()][..] } else { self.folders };
        from.iter().map(|folder| folder.join(path)).collect::<Vec<_>>().into_iter()
    }

    /// What a pattern may stand for: all that begins and ends like it.
    fn matching(&self, pattern: &str) -> Vec<Subject> {
        if pattern.starts_with('~') {
            return self.matching_at_home(pattern);
        }
        if !self.are_usual || home::may_stand_in(pattern) {
            return unknown(pattern, Access::Read);
        }
        let matches = self.folders.iter().map(|folder| matches(folder, pattern));
        let Some(names) = matches.collect::<Option<Vec<_>>>().map(|names| names.concat()) else {
            return unknown(pattern, Access::Read);
        };
        if self.folders.is_empty() || !self.has_left(names.len()) {
            return unknown(pattern, Access::Read);
        }
        let about = |name: &String| match name.starts_with('-') {
            // It is an option then.
            true => unknown(name, Access::Read),
            false => self.path(name),
        };
        // What fits nothing stands for itself.
        let named = names.iter().flat_map(about).chain(self.seen(Given::Value(pattern)));
        // And what may come may fit.
        let more = self.may_come.then(|| unknown(pattern, Access::Read));
        named.chain(more.into_iter().flatten()).collect()
    }

    /// What fits a pattern that begins at home, for rules that forbid. Whether that is the folder
    /// which is meant is only known when it runs.
    fn matching_at_home(&self, pattern: &str) -> Vec<Subject> {
        let fitting = home::place("~").zip(home::below(pattern)).and_then(|(folder, below)| {
            let names = matches(&folder, below)?;
            self.has_left(names.len()).then(|| names.iter().map(|name| folder.join(name)).collect())
        });
        let files: Vec<PathBuf> = fitting.unwrap_or_default();
        let named = files.iter().flat_map(|file| self.file(file));
        named.chain(unknown(pattern, Access::Read)).collect()
    }
}

/// Whether patterns may fit other names after a command, or in it.
pub(super) fn changes_patterns(command: &Simple) -> bool {
    let is_setting = |word: &String| PATTERN_SETTINGS.iter().any(|it| word.contains(it));
    command.argv.first().is_some_and(|program| bare_name(program) == "shopt")
        || command.argv.iter().any(is_setting)
}

/// What may fit a pattern in a folder; nothing when that is not known.
pub(super) fn matches(folder: &Path, pattern: &str) -> Option<Vec<String>> {
    let (fixed, open) = pattern.split_at(pattern.find(['*', '?', '['])?);
    // Only the last part of a path may be open.
    if open.contains('/') {
        return None;
    }
    let (below, start) = fixed.split_at(fixed.rfind('/').map_or(0, |at| at + 1));
    let end = open.rsplit(['*', '?', ']']).next().filter(|_| !open.starts_with('['));
    let end = end.unwrap_or_default();
    let mut found = Vec::new();
    for entry in folder.join(below).read_dir().into_iter().flatten() {
        let name = entry.ok()?.file_name();
        let name = name.to_str()?;
        // A dot at the start has to be written.
        let is_shown = start.starts_with('.') || !name.starts_with('.');
        if is_shown && name.starts_with(start) && name.ends_with(end) {
            found.push(format!("{below}{name}"));
        }
    }
    // Before bash 5.2, `.*` stands for these too.
    let is_dotted =
        start.starts_with('.') && !["[!.]", "[^.]"].iter().any(|it| open.starts_with(it));
    let dots = [".", ".."].into_iter().filter(|_| is_dotted);
    let fitting = dots.filter(|name| name.starts_with(start) && name.ends_with(end));
    found.extend(fitting.map(|name| format!("{below}{name}")));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stands_for_no_less_than_it_may() {
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
            let found = matches(folder.path(), pattern).map(|mut names| {
                names.sort();
                names
            });
            let expected = expected.map(|names| names.iter().map(|it| (*it).to_owned()).collect());
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
