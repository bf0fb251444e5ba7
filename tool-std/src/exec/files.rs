//! What the redirections of a command line read and write, as rules and people see it.
//!
//! A file is judged where it lies, under `edit` or `read` and, as for every other tool, under
//! `external_directory` and `protected_path` where these are meant.
//!
//! **Invariant:** where nobody knows which file is meant, somebody is asked, and where the
//! writable folders are limited it is none of them.

use std::path::{Path, PathBuf};

use tool_sdk::{Context, RiskClass, Subject, WorkspacePath};

use crate::shell::Understood;

/// The permissions of those who read and write files.
const READ: &str = "read";
const WRITE: &str = "edit";

/// The permission for what is, or may be, outside of the workspace.
const OUTSIDE: &str = "external_directory";

/// Where relative paths start, when that is known.
pub(super) struct Base<'a> {
    cx: &'a Context,
    folder: Option<PathBuf>,
}

impl<'a> Base<'a> {
    pub(super) fn new(cx: &'a Context, folder: Option<PathBuf>) -> Self {
        Self { cx, folder }
    }

    /// A subject for each file and permission.
    pub(super) fn subjects(&self, of: &Understood) -> Vec<Subject> {
        let is_certain = |path: &str| {
            !of.is_unsettled() && (of.opaque.is_none() || Path::new(path).is_absolute())
        };
        let about = |path: &String, is_written| self.about(path, is_certain(path), is_written);
        let writes = of.writes.iter().flat_map(|path| about(path, true));
        let reads = of.reads.iter().flat_map(|path| about(path, false));
        writes.chain(reads).collect()
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
        Some(WorkspacePath::from(path.to_str()?))
    }
}
