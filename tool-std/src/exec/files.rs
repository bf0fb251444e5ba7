//! What files a command line reads and writes, as rules and people see it: those of its
//! redirections, and those that a command which only looks is given.
//!
//! A file is judged where it lies, under `edit` or `read` and, as for every other tool, under
//! `external_directory` and `protected_path` where these are meant.
//!
//! **Invariant:** where nobody knows which file is meant, somebody is asked, and where the
//! writable folders are limited it is none of them.

use std::path::{Path, PathBuf};

use tool_sdk::{Context, RiskClass, Subject, ToolError, WorkspacePath};

use crate::shell::{self, Simple, Understood};

/// The permissions of those who read and write files.
const READ: &str = "read";
const WRITE: &str = "edit";

/// The permission for what is, or may be, outside of the workspace.
const OUTSIDE: &str = "external_directory";

/// Commands that only look, but at no files that they are given.
const NO_FILES: &[&str] = &[
    "echo", "expr", "false", "id", "numfmt", "pwd", "seq", "tr", "true", "uname", "which", "whoami",
];

/// Commands that look at all that is below a folder.
const SEARCHES: &[&str] = &["cd", "find", "grep", "ls", "rg", "stat"];

/// Where relative paths start, when that is known.
pub(super) struct Base<'a> {
    cx: &'a Context,
    folder: Option<PathBuf>,
    /// Why nothing is run there.
    refused: Option<Subject>,
}

impl<'a> Base<'a> {
    pub(super) fn new(cx: &'a Context, folder: Option<PathBuf>) -> Self {
        Self { cx, folder, refused: None }
    }

    /// A folder in which nothing can be run.
    pub(super) fn refused(cx: &'a Context, folder: &str, error: &ToolError) -> Self {
        Self { refused: Some(Subject::new(folder).refused(error)), ..Self::new(cx, None) }
    }

    /// A subject for each file and permission.
    pub(super) fn subjects(&self, of: &Understood) -> Vec<Subject> {
        let is_certain = |path: &str| {
            !of.is_unsettled() && (of.opaque.is_none() || Path::new(path).is_absolute())
        };
        let about = |path: &String, is_written| self.about(path, is_certain(path), is_written);
        let writes = of.writes.iter().flat_map(|path| about(path, true));
        let reads = of.reads.iter().flat_map(|path| about(path, false));
        let looked_at = of.commands.iter().filter(|command| command.safe);
        let looked_at = looked_at.flat_map(|command| self.operands(command));
        let looked_at = looked_at.flat_map(|path| self.about(path, is_certain(path), false));
        writes.chain(reads).chain(looked_at).chain(self.refused.clone()).collect()
    }

    /// The files that a command is given which needs no rule, because it only looks. Another
    /// one is asked about as a whole.
    fn operands<'s>(&self, command: &'s Simple) -> Vec<&'s str> {
        let Some((program, rest)) = command.argv.split_first() else { return Vec::new() };
        let name = shell::bare_name(program);
        if NO_FILES.contains(&&*name) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut is_pattern =
            matches!(&*name, "grep" | "rg") && !rest.iter().any(|it| gives_pattern(it));
        let is_file = |word: &str| {
            (word != "/" || SEARCHES.contains(&&*name)) && (leads_out(word) || self.is_there(word))
        };
        for word in rest {
            if word.starts_with('-') {
                // A value may stand in the same word.
                let value = word.find(['/', '~']).map(|at| &word[at..]);
                found.extend(value.filter(|value| *value != "/" && self.is_there(value)));
            } else if !std::mem::take(&mut is_pattern) && is_file(word) {
                found.push(word.as_str());
            }
        }
        found
    }

    fn is_there(&self, path: &str) -> bool {
        let path = Path::new(path);
        match &self.folder {
            Some(folder) => folder.join(path).symlink_metadata().is_ok(),
            None => path.is_absolute() && path.symlink_metadata().is_ok(),
        }
    }

    fn about(&self, path: &str, is_certain: bool, is_written: bool) -> Vec<Subject> {
        let (permission, class) =
            if is_written { (WRITE, RiskClass::Write) } else { (READ, RiskClass::Read) };
        let named = |subject: Subject| match subject.permission() {
            None => subject.under(permission).class(class),
            Some(_) => subject,
        };
        let mut subjects: Vec<Subject> = match self.place(path) {
            None => Vec::new(),
            Some(place) if is_written => place.written(self.cx),
            Some(place) => place.read(self.cx),
        };
        // What has no place here may have one when it is opened.
        subjects.retain(|subject| subject.absolute().is_some());
        let is_known = !subjects.is_empty() && is_certain;
        let mut subjects: Vec<Subject> = subjects.into_iter().map(named).collect();
        if !is_known {
            // No folder holds a path that is not absolute.
            let unknown = Subject::path(path, path.trim_start_matches('/')).opaque();
            subjects.push(unknown.clone().under(OUTSIDE).class(RiskClass::Write));
            subjects.push(named(unknown));
        }
        subjects
    }

    fn place(&self, path: &str) -> Option<WorkspacePath> {
        // The home folder of whoever runs the shell, or a name that begins so.
        if path.starts_with('~') {
            return None;
        }
        let path = Path::new(path);
        let path = match &self.folder {
            Some(folder) => folder.join(path),
            None if path.is_absolute() => path.to_owned(),
            None => return None,
        };
        // What these are depends on who opens them, and a link that leads nowhere makes the
        // file to which it leads.
        let is_own = ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
        let is_open = path.is_symlink() && !path.exists();
        if is_open || is_own.iter().any(|own| path.starts_with(own)) {
            return None;
        }
        Some(WorkspacePath::from(path.to_str()?))
    }
}

/// Whether a path may lead out of the folder that it starts in.
fn leads_out(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..")
}

/// Whether an option of a search says what to look for, so that no operand does.
fn gives_pattern(option: &str) -> bool {
    let Some(option) = option.strip_prefix('-') else { return false };
    match option.strip_prefix('-') {
        Some(long) => ["regexp", "file"].iter().any(|name| long.starts_with(name)),
        None => option.contains(['e', 'f']),
    }
}
