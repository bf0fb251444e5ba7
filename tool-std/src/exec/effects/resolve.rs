//! The resources of what the operands of commands name.
//!
//! Each file of a read-only command is checked, because it needs no rule of its own. Writing
//! inside the workspace needs no approval besides that of the command. But an `edit` rule that
//! denies files is matched against each name, and files outside the workspace and protected files
//! need approval as for every tool. A program without a row in the table may write as well;
//! approving it accepts that.
//!
//! **Invariant:** an unknown file needs approval, or may be one that a rule denies.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tool_sdk::Resource;
use tool_shell_analysis::SimpleCommand;

use super::AnalyzedLine;
use super::base_folder::{FileAccess, WRITE, denied_unknown_files, unknown_file};
use super::git::work_tree_top;
use super::operands::{self, Operand, OperandKind as Kind};
use super::paths::{PatternMatches, home_path, leaves_folder, match_files, may_contain_home};

/// Returns the resources of what a read-only command reads.
pub(super) fn read_resources(line: &AnalyzedLine<'_>, command: &SimpleCommand) -> Vec<Resource> {
    let resolver = OperandResolver::new(line, command, FileAccess::Read);
    resolver.resources(operands::read_operands(command), &line.read_budget, command)
}

/// Returns the resources of what an approved command writes.
pub(super) fn write_resources(line: &AnalyzedLine<'_>, command: &SimpleCommand) -> Vec<Resource> {
    let resolver = OperandResolver::new(line, command, FileAccess::Write);
    resolver.resources(operands::write_operands(command), &line.write_budget, command)
}

/// Resolves the operands of a command.
struct OperandResolver<'a> {
    line: &'a AnalyzedLine<'a>,
    /// The directories in which it may run; empty if they are unknown.
    folders: &'a [PathBuf],
    access: FileAccess,
}

/// The files that an operand stands for.
#[derive(Default)]
struct LocatedFiles {
    files: Vec<PathBuf>,
    /// Whether it may stand for further files.
    has_more: bool,
}

impl<'a> OperandResolver<'a> {
    fn new(line: &'a AnalyzedLine<'a>, command: &SimpleCommand, access: FileAccess) -> Self {
        Self { line, folders: line.folders_of(command), access }
    }

    /// Returns the resources of the operands, as far as the budget of files suffices.
    fn resources(
        &self,
        operands: Vec<Operand<'_>>,
        budget: &Cell<usize>,
        command: &SimpleCommand,
    ) -> Vec<Resource> {
        let mut resources = Vec::new();
        for operand in operands {
            let located = self.locate(operand);
            let matches = if operand.kind == Kind::Pattern { located.files.len() } else { 0 };
            let remaining = budget.get().checked_sub(1 + matches);
            budget.set(remaining.unwrap_or_default());
            if remaining.is_none() {
                resources.extend(self.unknown(Kind::Unknown.of(&command.text)));
                break;
            }
            for file in &located.files {
                resources.extend(self.file_resources(operand, file));
            }
            if located.has_more {
                resources.extend(self.unknown(operand));
            }
        }
        resources
    }

    fn file_resources(&self, operand: Operand<'_>, file: &Path) -> Vec<Resource> {
        let base = self.line.base;
        if self.access == FileAccess::Read {
            return base.place_resources(file, self.line.are_reads_certain(), self.access);
        }
        let is_removed = operand.kind == Kind::Removed;
        let access = if is_removed { FileAccess::Remove } else { FileAccess::Write };
        // A copy to `.` is spelled without it.
        let file: PathBuf = file.components().collect();
        let resources = base.place_resources(&file, true, access).into_iter();
        let is_certain = self.line.are_writes_certain;
        let other = (!is_certain).then(|| denied_unknown_files(operand.text, access));
        resources.map(limit_to_deny_rules).chain(other).collect()
    }

    /// Returns the resources of unknown files of an operand. Those of a read-only command need
    /// approval, unless they are below the searched directories.
    fn unknown(&self, operand: Operand<'_>) -> Vec<Resource> {
        let is_searched = matches!(operand.kind, Kind::Subtree | Kind::UnnamedContent);
        match self.access {
            FileAccess::Read if !is_searched => unknown_file(operand.text, self.access),
            access => vec![denied_unknown_files(operand.text, access)],
        }
    }

    fn locate(&self, Operand { kind, text }: Operand<'_>) -> LocatedFiles {
        match kind {
            Kind::Path => self.locate_path(text),
            Kind::HomePath => self.locate_home_path(text),
            Kind::MaybePath if self.exists(text) => self.locate_path(text),
            Kind::MaybePath => LocatedFiles::default(),
            Kind::Tracked => self.locate_tracked(text),
            Kind::Entries | Kind::Subtree => {
                LocatedFiles { files: Vec::new(), has_more: self.may_be_folder(text) }
            }
            Kind::Unknown | Kind::UnnamedContent => {
                LocatedFiles { files: Vec::new(), has_more: true }
            }
            Kind::Pattern => self.locate_matches(text),
            Kind::CurrentFolder => self.locate_current_folder(),
            Kind::Entered if self.folders.is_empty() && leaves_folder(text) => {
                LocatedFiles { files: vec![PathBuf::from(text)], has_more: true }
            }
            // If it is unknown, the commands that read there need approval.
            Kind::Entered => LocatedFiles { has_more: false, ..self.locate_current_folder() },
            // A rule may deny files below a directory.
            Kind::Removed | Kind::Tree => with_trees(self.locate_path(text)),
            Kind::CopyOf(source) => self.locate_copy(source, text),
        }
    }

    fn locate_path(&self, path: &str) -> LocatedFiles {
        let mut files = self.candidate_paths(path);
        let is_relative = !path.starts_with(['/', '~']);
        let mut has_more = is_relative && self.folders.is_empty();
        if self.access == FileAccess::Read && is_relative {
            has_more |= may_contain_home(path);
            // A missing file is not read, unless it may be created before.
            if !self.line.files_may_appear && !leaves_folder(path) {
                files.retain(|file| file.symlink_metadata().is_ok());
            }
        }
        LocatedFiles { files, has_more }
    }

    /// Locates a path below the home directory of the command.
    fn locate_home_path(&self, path: &str) -> LocatedFiles {
        match home_path(path).filter(|_| self.line.is_home_certain) {
            Some(file) => LocatedFiles { files: vec![file], has_more: false },
            None => self.locate_path(path),
        }
    }

    /// Locates a path relative to a repository root or to the directory. It need not exist now,
    /// because git reads earlier revisions.
    fn locate_tracked(&self, path: &str) -> LocatedFiles {
        let folders = self.folders;
        let tops = folders.iter().filter_map(|folder| work_tree_top(folder));
        let folders = tops.chain(folders.iter().cloned());
        let files: BTreeSet<PathBuf> = folders.map(|folder| folder.join(path)).collect();
        LocatedFiles { files: files.into_iter().collect(), has_more: false }
    }

    /// Locates the entered directories, without the base directory.
    fn locate_current_folder(&self) -> LocatedFiles {
        let base_folder = self.line.base.folder.as_ref();
        let folders = self.folders.iter();
        let entered = folders.filter(|folder| Some(*folder) != base_folder);
        LocatedFiles { files: entered.cloned().collect(), has_more: self.folders.is_empty() }
    }

    /// Locates all files with the literal start and end of a glob.
    fn locate_matches(&self, pattern: &str) -> LocatedFiles {
        let PatternMatches { mut files, is_complete } = match_files(pattern, self.folders);
        let mut has_more = !is_complete;
        let is_read = self.access == FileAccess::Read;
        if is_read {
            // A match with a dash becomes an option.
            has_more |= files.iter().any(|file| is_option(pattern, file))
                || self.line.files_may_appear
                || !self.line.has_default_globbing
                || may_contain_home(pattern);
        }
        // A glob without matches stands for itself.
        if !is_read || self.exists(pattern) {
            files.extend(self.candidate_paths(pattern));
        }
        let located = LocatedFiles { files, has_more };
        if is_read { located } else { with_trees(located) }
    }

    fn locate_copy(&self, from: &str, to: &str) -> LocatedFiles {
        let name = Path::new(from).file_name();
        let mut target = self.locate_path(to);
        for place in target.files.iter_mut().filter(|place| is_folder(place)) {
            place.extend(name);
        }
        target.has_more |=
            name.is_none() || self.candidate_paths(from).iter().any(|it| is_folder(it));
        target
    }

    /// Returns where a path may lead; below home it stays as spelled.
    fn candidate_paths(&self, path: &str) -> Vec<PathBuf> {
        match path.starts_with(['/', '~']) {
            true => vec![PathBuf::from(path)],
            false => self.folders.iter().map(|folder| folder.join(path)).collect(),
        }
    }

    fn exists(&self, path: &str) -> bool {
        let is_there = |file: &PathBuf| file.symlink_metadata().is_ok();
        !path.starts_with('~') && self.candidate_paths(path).iter().any(is_there)
    }

    /// Whether a path is a directory or unknown.
    fn may_be_folder(&self, path: &str) -> bool {
        let is_unknown = path.starts_with('~') || !path.starts_with('/') && self.folders.is_empty();
        is_unknown || self.candidate_paths(path).iter().any(|file| file.is_dir())
    }
}

/// Adds the files below located directories.
fn with_trees(located: LocatedFiles) -> LocatedFiles {
    let has_folder = located.files.iter().any(|place| is_folder(place));
    LocatedFiles { has_more: located.has_more || has_folder, ..located }
}

/// Whether a match of a glob begins with a dash.
fn is_option(pattern: &str, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    pattern.starts_with('-') || !pattern.contains('/') && name.as_encoded_bytes().starts_with(b"-")
}

/// Whether it is a directory, also below home.
fn is_folder(place: &Path) -> bool {
    let at_home = place.to_str().and_then(home_path);
    at_home.as_deref().unwrap_or(place).is_dir()
}

/// Limits the resource of an edited file to deny rules; external and protected files still need
/// approval.
fn limit_to_deny_rules(resource: Resource) -> Resource {
    let is_plain = !resource.has_unknown_effect() && !resource.text().contains(['.', '/']);
    match (resource.permission(), resource.absolute()) {
        // Command rules could take a plain file name for a program.
        (Some(WRITE), Some(place)) if is_plain => {
            FileAccess::Write.deny_only(Resource::path(format!("./{}", resource.text()), place))
        }
        (Some(WRITE), _) => resource.deny_rules_only(),
        _ => resource,
    }
}
