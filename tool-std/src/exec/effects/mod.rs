//! Which files a command line reads and writes, as resources for rules and approvers.
//!
//! [`file_resources`] walks over the analysis once. Redirections and the operands of read-only
//! commands need approval like those of any tool. Other commands are approved as a whole, so
//! the files that they may read and write are matched against deny rules only.
//!
//! - [`programs`] is the table of what each program does with its words.
//! - [`operands`] and [`git`] turn the words of a command into operands by that table.
//! - [`resolve`] turns operands into resources, [`names`] the names in words that may be any file,
//!   and [`git_push`] the repositories that a push may go to.
//! - [`base_folder`] and [`paths`] say where a path leads.
//! - [`scripts`] and [`mentioned_files`] find the files that an approval is bound to.
//!
//! **Invariant:** a file that is not certain counts as unknown, and needs approval.

pub(super) mod base_folder;
pub(super) mod git;
mod git_push;
pub(super) mod mentioned_files;
mod names;
mod operands;
mod paths;
mod programs;
mod resolve;
pub(super) mod scripts;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tool_sdk::{Resource, Workspace};
use tool_shell_analysis::{ScriptAnalysis, SimpleCommand, internal::bare_name};

use self::base_folder::{BaseFolder, FileAccess, unknown_file};
use self::names::ReadNames;

/// The maximum number of files of one redirection kind, read operands and written files that are
/// checked. The rest counts as one unknown file.
const MAX_REDIRECTED: usize = 128;
const MAX_READ_OPERANDS: usize = 160;
const MAX_WRITTEN: usize = 128;

/// Shell settings that change what a glob matches.
const GLOB_SETTINGS: &[&str] =
    &["BASHOPTS", "GLOBIGNORE", "dotglob", "extglob", "globstar", "nocaseglob"];

/// Returns a resource for each file and permission of a command line that is run in `base`.
pub(super) fn file_resources(base: &BaseFolder<'_>, analysis: &ScriptAnalysis) -> Vec<Resource> {
    let mut walk = EffectWalk::new(base, analysis);
    walk.visit_redirections(&analysis.writes, FileAccess::Write);
    walk.visit_redirections(&analysis.reads, FileAccess::Read);
    for command in &analysis.commands {
        walk.visit_command(command);
    }
    walk.finish()
}

/// A command line and the directories in which its commands run.
struct AnalyzedLine<'a> {
    base: &'a BaseFolder<'a>,
    analysis: &'a ScriptAnalysis,
    workspace: Option<Arc<Workspace>>,
    /// The directories in which a command may run; empty if they are unknown.
    folders: Vec<PathBuf>,
    /// Whether other commands may create files or links before a read-only command runs.
    files_may_appear: bool,
    /// Whether globs have their default meaning.
    has_default_globbing: bool,
    /// Whether no command changes the home directory, and its path is one word.
    is_home_certain: bool,
    /// Whether the current files are certainly those that are written.
    are_writes_certain: bool,
    /// How many operands and files may still be checked.
    read_budget: Cell<usize>,
    write_budget: Cell<usize>,
}

impl<'a> AnalyzedLine<'a> {
    fn new(base: &'a BaseFolder<'a>, analysis: &'a ScriptAnalysis) -> Self {
        let commands = || analysis.commands.iter();
        let is_opaque = analysis.opaque.is_some();
        // An opaque script, and one with hidden commands, is allowed only by a rule for everything.
        let is_named = !is_opaque && !commands().any(|command| command.hides_commands);
        let mut writers = commands().filter(|it| !it.is_safe && !it.is_embedded);
        Self {
            base,
            analysis,
            workspace: base.workspace(),
            folders: base.run_folders(analysis),
            files_may_appear: is_named && !has_settled_files(analysis),
            has_default_globbing: !commands().any(changes_globbing),
            is_home_certain: is_named && paths::is_home_one_word() && !commands().any(changes_home),
            // A single command that moves files resolves its own paths before.
            are_writes_certain: !is_opaque
                && (!analysis.may_rename_files || writers.nth(1).is_none()),
            read_budget: Cell::new(MAX_READ_OPERANDS),
            write_budget: Cell::new(MAX_WRITTEN),
        }
    }

    /// Returns the directories in which a command may run.
    fn folders_of(&self, command: &SimpleCommand) -> &[PathBuf] {
        if command.may_run_elsewhere { &[] } else { &self.folders }
    }

    fn roots(&self) -> Vec<&Path> {
        self.workspace.iter().flat_map(|workspace| workspace.roots()).collect()
    }

    fn is_opaque(&self) -> bool {
        self.analysis.opaque.is_some()
    }

    /// Whether the current files are certainly those that are read.
    fn are_reads_certain(&self) -> bool {
        !self.is_opaque() && has_settled_files(self.analysis)
    }

    /// Returns the resources of a redirected file.
    fn redirection_resources(&self, path: &str, access: FileAccess) -> Vec<Resource> {
        let Some(path) = self.redirected_path(path) else { return unknown_file(path, access) };
        let is_certain = !self.analysis.has_unstable_paths()
            && (self.analysis.opaque.is_none() || Path::new(&*path).is_absolute());
        self.base.path_resources(&path, is_certain, access)
    }

    /// Resolves the path of a redirection after the leading directory changes; `None` if their
    /// target is unknown.
    fn redirected_path<'p>(&self, path: &'p str) -> Option<Cow<'p, str>> {
        let follows_changes =
            self.analysis.redirects_follow_changes && self.analysis.opaque.is_none();
        if !follows_changes || path.starts_with(['/', '~']) {
            return Some(Cow::Borrowed(path));
        }
        let [folder] = &*self.folders else { return None };
        folder.join(path).into_os_string().into_string().ok().map(Cow::Owned)
    }
}

/// Whether no command may link, move or mount files.
fn has_settled_files(analysis: &ScriptAnalysis) -> bool {
    !analysis.has_unstable_paths() && !analysis.may_rename_files
}

/// Whether a command changes what globs match.
fn changes_globbing(command: &SimpleCommand) -> bool {
    let is_setting = |word: &String| GLOB_SETTINGS.iter().any(|it| word.contains(it));
    command.argv.first().is_some_and(|program| bare_name(program) == "shopt")
        || command.argv.iter().any(is_setting)
}

/// Whether a command may set the variable `HOME`, by its name or as one of many.
fn changes_home(command: &SimpleCommand) -> bool {
    let names_home = |word: &String| word.contains("HOME") && paths::strip_home(word).is_none();
    let has_unknown = !command.is_safe && !command.is_fully_known();
    command.argv.iter().any(names_home) || has_unknown
}

/// The state of the walk over the commands.
struct EffectWalk<'a> {
    line: AnalyzedLine<'a>,
    /// The read-only commands so far. Equal ones have equal resources.
    seen: HashSet<(&'a str, bool)>,
    /// What the commands may read in the directories of the line.
    names: ReadNames<'a>,
    /// The directories below home that `cd` enters, and what the commands may read there.
    home_folders: Vec<PathBuf>,
    home_names: ReadNames<'a>,
    pushes: Vec<&'a SimpleCommand>,
    remotes: Vec<&'a SimpleCommand>,
    resources: Vec<Resource>,
}

impl<'a> EffectWalk<'a> {
    fn new(base: &'a BaseFolder<'a>, analysis: &'a ScriptAnalysis) -> Self {
        Self {
            line: AnalyzedLine::new(base, analysis),
            seen: HashSet::new(),
            names: ReadNames::of_input(analysis),
            home_folders: names::home_folders_entered(analysis),
            home_names: ReadNames::of_redirections(analysis),
            pushes: Vec::new(),
            remotes: Vec::new(),
            resources: Vec::new(),
        }
    }

    fn visit_redirections(&mut self, paths: &[String], access: FileAccess) {
        let (checked, rest) = paths.split_at(paths.len().min(MAX_REDIRECTED));
        for path in checked {
            self.resources.extend(self.line.redirection_resources(path, access));
        }
        if !rest.is_empty() {
            self.resources.extend(unknown_file(&rest.join(" "), access));
        }
    }

    fn visit_command(&mut self, command: &'a SimpleCommand) {
        let line = &self.line;
        let key = (&*command.text, command.may_run_elsewhere);
        if command.is_read_only && self.seen.insert(key) {
            self.resources.extend(resolve::read_resources(line, command));
        }
        if command.is_embedded {
            return;
        }
        if command.is_safe {
            self.names.add_safe_command(command, line.is_opaque());
        } else {
            self.resources.extend(resolve::write_resources(line, command));
            let names = ReadNames::of_command(command, line.is_opaque());
            match names::other_folders(command, &line.folders) {
                Some(folders) => names.add_resources(&folders, &line.roots(), &mut self.resources),
                None => self.names.merge(names),
            }
        }
        if !self.home_folders.is_empty() {
            self.home_names.merge(ReadNames::of_command(command, line.is_opaque()));
        }
        self.pushes.extend(git_push::is_push(command).then_some(command));
        self.remotes.extend(git_push::may_set_remote(command).then_some(command));
    }

    fn finish(mut self) -> Vec<Resource> {
        let line = &self.line;
        if let Some(workspace) = &line.workspace {
            let pushes =
                git_push::push_resources(&self.pushes, &self.remotes, &line.folders, workspace);
            self.resources.extend(pushes.into_iter().map(|it| line.base.restrict_command(it)));
        }
        self.names.add_resources(&line.folders, &line.roots(), &mut self.resources);
        if !self.home_folders.is_empty() {
            // What is unknown was added before.
            let names = self.home_names.without_unknown();
            names.add_resources(&self.home_folders, &line.roots(), &mut self.resources);
        }
        self.resources.extend(line.base.refusal());
        self.resources
    }
}
