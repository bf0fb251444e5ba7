//! The resources of files that read-only commands read.
//!
//! Read-only commands need no rule of their own, so each file is checked. Other commands are
//! approved as a whole.
//!
//! **Invariant:** an unknown file needs approval.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tool_sdk::Resource;

use super::base_folder::{BaseFolder, FileAccess, leaves_folder, unknown_file};
use super::read_operands::{self, ReadOperand};
use super::{home_paths, possible_reads};
use crate::shell::{SimpleCommand, bare_name};

/// Shell settings that change what a glob matches.
const GLOB_SETTINGS: &[&str] =
    &["BASHOPTS", "GLOBIGNORE", "dotglob", "extglob", "globstar", "nocaseglob"];

/// The context in which a read-only command reads files.
pub(super) struct ReadOnlyFiles<'a> {
    pub(super) base: &'a BaseFolder<'a>,
    /// How many files may still be checked.
    pub(super) budget: &'a Cell<usize>,
    /// The directories in which it may run; empty if they are unknown.
    pub(super) folders: &'a [PathBuf],
    /// Whether the current files are certainly those that it reads.
    pub(super) is_certain: bool,
    /// Whether other commands may create files or links before it runs.
    pub(super) files_may_appear: bool,
    /// Whether globs have their default meaning.
    pub(super) has_default_globbing: bool,
}

impl ReadOnlyFiles<'_> {
    pub(super) fn read_resources(&self, command: &SimpleCommand) -> Vec<Resource> {
        let is_move = command.argv.first().is_some_and(|program| program == "cd");
        let given = read_operands::read_operands(command);
        if !self.take_budget(given.len()) {
            return unknown_file(&command.text, FileAccess::Read);
        }
        given
            .into_iter()
            .flat_map(|given| {
                if is_move { self.cd_resources(given) } else { self.operand_resources(given) }
            })
            .collect()
    }

    /// Takes `files` from the budget. Returns whether it was sufficient.
    fn take_budget(&self, files: usize) -> bool {
        let remaining = self.budget.get().checked_sub(files);
        self.budget.set(remaining.unwrap_or_default());
        remaining.is_some()
    }

    fn operand_resources(&self, given: ReadOperand<'_>) -> Vec<Resource> {
        match given {
            ReadOperand::Path(path) => self.path_resources(path),
            ReadOperand::MaybePath(path) if self.path_exists(path) => self.path_resources(path),
            ReadOperand::MaybePath(_) => Vec::new(),
            ReadOperand::Tracked(path) => self.tracked_resources(path),
            ReadOperand::Entries(path) if self.is_folder(path) => {
                unknown_file(path, FileAccess::Read)
            }
            ReadOperand::Entries(_) => Vec::new(),
            ReadOperand::Subtree(path) if self.is_folder(path) => {
                vec![possible_reads::unnamed_read(path)]
            }
            ReadOperand::Subtree(_) => Vec::new(),
            ReadOperand::UnnamedContent(words) => vec![possible_reads::unnamed_read(words)],
            ReadOperand::Pattern(pattern) => self.pattern_resources(pattern),
            ReadOperand::Unknown(words) => unknown_file(words, FileAccess::Read),
            ReadOperand::CurrentFolder if self.folders.is_empty() => {
                unknown_file(".", FileAccess::Read)
            }
            ReadOperand::CurrentFolder => self.entered_folders(),
        }
    }

    /// Returns the resources of the directory that `cd` enters. If it is unknown, the commands
    /// that read there need approval instead.
    fn cd_resources(&self, given: ReadOperand<'_>) -> Vec<Resource> {
        match given {
            ReadOperand::Path(path) if self.folders.is_empty() && !leaves_folder(path) => {
                Vec::new()
            }
            ReadOperand::Path(path) if self.folders.is_empty() => {
                self.base.path_resources(path, false, FileAccess::Read)
            }
            ReadOperand::Path(_) => self.entered_folders(),
            other => self.operand_resources(other),
        }
    }

    /// Returns the resources of the entered directories, without the base directory.
    fn entered_folders(&self) -> Vec<Resource> {
        let base_folder = self.base.folder.as_ref();
        let entered = self.folders.iter().filter(|folder| Some(*folder) != base_folder);
        entered.flat_map(|folder| self.file_resources(folder)).collect()
    }

    fn path_resources(&self, path: &str) -> Vec<Resource> {
        if path.starts_with(['/', '~']) {
            return self.base.path_resources(path, self.is_certain, FileAccess::Read);
        }
        if self.folders.is_empty() || home_paths::may_contain_home(path) {
            return unknown_file(path, FileAccess::Read);
        }
        // A missing file is not read, unless it may be created before.
        let is_there = |file: &PathBuf| file.symlink_metadata().is_ok();
        let is_meant =
            |file: &PathBuf| self.files_may_appear || leaves_folder(path) || is_there(file);
        let base_path = self.base.folder.as_ref().map(|folder| folder.join(path));
        let files = self.folders.iter().map(|folder| folder.join(path)).filter(is_meant);
        let about = |file: PathBuf| match base_path.as_ref() == Some(&file) {
            true => self.base.path_resources(path, self.is_certain, FileAccess::Read),
            false => self.file_resources(&file),
        };
        files.flat_map(about).collect()
    }

    fn file_resources(&self, file: &Path) -> Vec<Resource> {
        match file.to_str() {
            Some(path) => self.base.path_resources(path, self.is_certain, FileAccess::Read),
            None => unknown_file(&file.to_string_lossy(), FileAccess::Read),
        }
    }

    /// Returns the resources of a path relative to a repository root or to the directory. It need
    /// not exist now, because git reads earlier revisions.
    fn tracked_resources(&self, path: &str) -> Vec<Resource> {
        let is_top = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        let tops = self.folders.iter().filter_map(|folder| folder.ancestors().find(is_top));
        let base_path = self.folders.iter().map(PathBuf::as_path);
        let files: BTreeSet<PathBuf> =
            tops.chain(base_path).map(|folder| folder.join(path)).collect();
        files.iter().flat_map(|file| self.file_resources(file)).collect()
    }

    fn path_exists(&self, path: &str) -> bool {
        self.candidate_paths(path).any(|file| file.symlink_metadata().is_ok())
    }

    /// Whether a path is a directory or unknown.
    fn is_folder(&self, path: &str) -> bool {
        let is_own = !path.starts_with(['/', '~']);
        path.starts_with('~')
            || is_own && self.folders.is_empty()
            || self.candidate_paths(path).any(|file| file.is_dir())
    }

    /// Returns the candidates for a path.
    fn candidate_paths(&self, path: &str) -> impl Iterator<Item = PathBuf> {
        let is_absolute = Path::new(path).is_absolute();
        let from = if is_absolute { &[PathBuf::new()][..] } else { self.folders };
        from.iter().map(|folder| folder.join(path)).collect::<Vec<_>>().into_iter()
    }

    /// Returns the resources of a glob: all names with its literal start and end.
    fn pattern_resources(&self, pattern: &str) -> Vec<Resource> {
        if pattern.starts_with('~') {
            return self.home_pattern_resources(pattern);
        }
        if !self.has_default_globbing || home_paths::may_contain_home(pattern) {
            return unknown_file(pattern, FileAccess::Read);
        }
        let matches = self.folders.iter().map(|folder| match_pattern(folder, pattern));
        let Some(names) = matches.collect::<Option<Vec<_>>>().map(|names| names.concat()) else {
            return unknown_file(pattern, FileAccess::Read);
        };
        if self.folders.is_empty() || !self.take_budget(names.len()) {
            return unknown_file(pattern, FileAccess::Read);
        }
        let about = |name: &String| match name.starts_with('-') {
            // A name with a dash becomes an option.
            true => unknown_file(name, FileAccess::Read),
            false => self.path_resources(name),
        };
        // A glob without matches stands for itself.
        let named = names
            .iter()
            .flat_map(about)
            .chain(self.operand_resources(ReadOperand::MaybePath(pattern)));
        // Files that are created before may match.
        let more = self.files_may_appear.then(|| unknown_file(pattern, FileAccess::Read));
        named.chain(more.into_iter().flatten()).collect()
    }

    /// Returns the resources of a glob in the home directory, for deny rules. The home directory
    /// is only certain at run time.
    fn home_pattern_resources(&self, pattern: &str) -> Vec<Resource> {
        let fitting = home_paths::home_path("~").zip(home_paths::strip_home(pattern)).and_then(
            |(folder, below)| {
                let names = match_pattern(&folder, below)?;
                self.take_budget(names.len())
                    .then(|| names.iter().map(|name| folder.join(name)).collect())
            },
        );
        let files: Vec<PathBuf> = fitting.unwrap_or_default();
        let named = files.iter().flat_map(|file| self.file_resources(file));
        named.chain(unknown_file(pattern, FileAccess::Read)).collect()
    }
}

/// Whether a command changes what globs match.
pub(super) fn changes_globbing(command: &SimpleCommand) -> bool {
    let is_setting = |word: &String| GLOB_SETTINGS.iter().any(|it| word.contains(it));
    command.argv.first().is_some_and(|program| bare_name(program) == "shopt")
        || command.argv.iter().any(is_setting)
}

/// Returns the names in a directory that may match a glob; `None` if that is unknown.
pub(super) fn match_pattern(folder: &Path, pattern: &str) -> Option<Vec<String>> {
    let (fixed, open) = pattern.split_at(pattern.find(['*', '?', '['])?);
    // Only the last component may be a glob.
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
        // Hidden names need an explicit dot.
        let is_shown = start.starts_with('.') || !name.starts_with('.');
        if is_shown && name.starts_with(start) && name.ends_with(end) {
            found.push(format!("{below}{name}"));
        }
    }
    // Before bash 5.2, `.*` also matches `.` and `..`.
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
            let found = match_pattern(folder.path(), pattern).map(|mut names| {
                names.sort();
                names
            });
            let expected = expected.map(|names| names.iter().map(|it| (*it).to_owned()).collect());
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
