//! The files that a command line reads and writes, as resources: those of its redirections, and
//! the operands of its read-only commands.
//!
//! Files are checked where they are, under `edit` or `read`, and, as for every other tool, under
//! `external_directory` and `protected_path` where these apply.
//!
//! **Invariant:** an unknown file needs approval, and a policy that limits writable directories
//! does not allow it.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use tool_sdk::process::ChildEnv;
use tool_sdk::{Context, Resource, RiskClass, ToolError, Workspace, WorkspacePath};

use super::read_only_files::{self, ReadOnlyFiles};
use super::{
    git_remotes, home_paths, possible_reads, possible_writes, program_lookup, push_targets,
};
use crate::shell::ScriptAnalysis;

/// The permissions for reading and writing files.
pub(crate) const READ: &str = "read";
pub(crate) const WRITE: &str = "edit";

/// The permission for files that are, or may be, outside of the workspace.
const OUTSIDE: &str = "external_directory";

/// The permission for files that programs run or obey later.
const PROTECTED: &str = "protected_path";

/// How many redirected files and how many read operands of a line are checked. The rest needs
/// approval as one unknown file.
const MAX_REDIRECTED: usize = 128;
const MAX_READ_OPERANDS: usize = 160;

/// How a file is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    Read,
    Write,
    Remove,
}

impl FileAccess {
    /// Returns the permission and the risk class.
    fn permission_and_class(self) -> (&'static str, RiskClass) {
        match self {
            Self::Read => (READ, RiskClass::Read),
            Self::Write | Self::Remove => (WRITE, RiskClass::Write),
        }
    }
}

/// The base directory of a command line, if it is known, with cached lookups.
pub(crate) struct BaseFolder<'a> {
    cx: &'a Context,
    pub(crate) folder: Option<PathBuf>,
    /// The current directory of the shell that reads the text; it may change before the shell
    /// reads it.
    shell_folder: Option<PathBuf>,
    /// Why nothing can be run there.
    refusal: Option<Resource>,
    /// The directories to which the sandbox limits writes, if it does.
    writable_roots: Option<Vec<PathBuf>>,
    /// Whether the base is the first workspace root, where commands run by default.
    is_workspace_root: OnceCell<bool>,
    /// Cache of programs and whether they are in the workspace.
    workspace_programs: RefCell<HashMap<String, bool>>,
}

impl<'a> BaseFolder<'a> {
    pub(crate) fn new(cx: &'a Context, folder: Option<PathBuf>) -> Self {
        let (is_workspace_root, workspace_programs) = (OnceCell::new(), RefCell::default());
        Self {
            cx,
            folder,
            shell_folder: None,
            refusal: None,
            writable_roots: None,
            is_workspace_root,
            workspace_programs,
        }
    }

    /// Creates the base for text that a running shell reads.
    pub(crate) fn for_shell(cx: &'a Context, shell_folder: Option<PathBuf>) -> Self {
        Self { shell_folder, ..Self::new(cx, None) }
    }

    /// Sets the directories to which the sandbox limits writes.
    pub(crate) fn with_writable_roots(self, writable_roots: Option<Vec<PathBuf>>) -> Self {
        Self { writable_roots, ..self }
    }

    /// Restricts the resource of a command to this base directory.
    pub(crate) fn restrict_command(&self, subject: Resource) -> Resource {
        let subject = if self.is_workspace_root() { subject } else { subject.context_dependent() };
        match &self.writable_roots {
            Some(folders) => subject.with_writable_folders(folders),
            None => subject,
        }
    }

    /// Whether a rule with exactly the words of a command applies in this directory.
    fn is_workspace_root(&self) -> bool {
        *self.is_workspace_root.get_or_init(|| {
            let folder = self.known_folder().and_then(|it| it.canonicalize().ok());
            let workspace = self.cx.state::<Workspace>().ok();
            folder.is_some()
                && folder.as_deref() == workspace.as_deref().and_then(|it| it.roots().next())
        })
    }

    /// Whether it runs, or may run, in a repository inside the workspace that is not a workspace
    /// root.
    pub(crate) fn is_in_nested_repository(&self) -> bool {
        let Ok(workspace) = self.cx.state::<Workspace>() else { return false };
        let Some(folder) = self.known_folder() else { return true };
        let roots: Vec<&Path> = workspace.roots().collect();
        git_remotes::work_tree_top(folder).is_some_and(|top| {
            let top = top.canonicalize().unwrap_or(top);
            program_lookup::is_folder_in(&top, &roots) && !roots.contains(&&*top)
        })
    }

    fn known_folder(&self) -> Option<&Path> {
        self.folder.as_deref().or(self.shell_folder.as_deref())
    }

    /// Creates the base for a directory in which nothing can be run.
    pub(crate) fn new_refused(cx: &'a Context, folder: &str, error: &ToolError) -> Self {
        Self { refusal: Some(Resource::new(folder).with_refusal(error)), ..Self::new(cx, None) }
    }

    /// Returns a resource for each file and permission.
    pub(crate) fn file_resources(&self, analysis: &ScriptAnalysis) -> Vec<Resource> {
        let is_certain = |path: &str| {
            !analysis.has_unstable_paths()
                && (analysis.opaque.is_none() || Path::new(path).is_absolute())
        };
        let folders = self.run_folders(analysis, self.known_folder()).unwrap_or_default();
        let about = |path: &String, access| match self.resolve_redirect(path, analysis, &folders) {
            Some(path) => self.path_resources(&path, is_certain(&path), access),
            None => unknown_file(path, access),
        };
        let redirected = |paths: &[String], access| {
            let (some, rest) = paths.split_at(paths.len().min(MAX_REDIRECTED));
            let rest = (!rest.is_empty()).then(|| unknown_file(&rest.join(" "), access));
            let some = some.iter().flat_map(|path| about(path, access));
            some.chain(rest.into_iter().flatten()).collect::<Vec<_>>()
        };
        let writes = redirected(&analysis.writes, FileAccess::Write).into_iter();
        let reads = redirected(&analysis.reads, FileAccess::Read);
        let budget = Cell::new(MAX_READ_OPERANDS);
        let is_settled = !analysis.has_unstable_paths() && !analysis.may_rename_files;
        let is_certain = analysis.opaque.is_none() && is_settled;
        // An opaque script is allowed only by a rule for everything.
        let is_named = !analysis.commands.iter().any(|command| command.hides_commands);
        let files_may_appear = analysis.opaque.is_none() && is_named && !is_settled;
        // Equal commands have equal resources.
        let mut seen = HashSet::new();
        let safe = analysis.commands.iter().filter(|command| command.is_read_only);
        let commands =
            safe.filter(|command| seen.insert((&command.text, command.may_run_elsewhere)));
        let has_default_globbing = !analysis.commands.iter().any(read_only_files::changes_globbing);
        let looked_at = commands.flat_map(|command| {
            let folders = if command.may_run_elsewhere { &[][..] } else { &folders };
            let from = ReadOnlyFiles {
                base: self,
                folders,
                is_certain,
                files_may_appear,
                has_default_globbing,
                budget: &budget,
            };
            from.read_resources(command)
        });
        let pushed =
            self.push_resources(analysis).into_iter().map(|subject| self.restrict_command(subject));
        let workspace = self.cx.state::<Workspace>().ok();
        let roots: Vec<&Path> = workspace.iter().flat_map(|it| it.roots()).collect();
        let read = possible_reads::read_resources(analysis, &folders, &roots);
        let written = possible_writes::write_resources(self, analysis, &folders);
        let all = writes.chain(reads).chain(looked_at).chain(written).chain(pushed).chain(read);
        all.chain(self.refusal.clone()).collect()
    }

    /// Returns resources for the commands that push into a local repository.
    fn push_resources(&self, analysis: &ScriptAnalysis) -> Vec<Resource> {
        if !analysis.commands.iter().any(push_targets::is_push) {
            return Vec::new();
        }
        let Ok(workspace) = self.cx.state::<Workspace>() else { return Vec::new() };
        let folders = self.run_folders(analysis, self.known_folder()).unwrap_or_default();
        push_targets::push_resources(analysis, &folders, &workspace)
    }

    /// Whether a bare program name resolves to a file in the workspace, where anything that can
    /// write files could have put it.
    pub(crate) fn is_workspace_program(&self, program: &str) -> bool {
        if let Some(is_own) = self.workspace_programs.borrow().get(program) {
            return *is_own;
        }
        let Ok(workspace) = self.cx.state::<Workspace>() else { return false };
        let roots: Vec<&Path> = workspace.roots().collect();
        let is_own = program_lookup::is_program_below(program, &ChildEnv::path_only(), &roots);
        self.workspace_programs.borrow_mut().insert(program.to_owned(), is_own);
        is_own
    }

    /// Resolves the path of a redirection after the leading directory changes. `None` if their
    /// target is unknown.
    fn resolve_redirect<'p>(
        &self,
        path: &'p str,
        analysis: &ScriptAnalysis,
        folders: &[PathBuf],
    ) -> Option<Cow<'p, str>> {
        if !analysis.redirects_follow_changes
            || analysis.opaque.is_some()
            || path.starts_with(['/', '~'])
        {
            return Some(Cow::Borrowed(path));
        }
        let [folder] = folders else { return None };
        folder.join(path).into_os_string().into_string().ok().map(Cow::Owned)
    }

    /// Returns the directories in which the commands may run, starting at `start`, if they are
    /// known.
    fn run_folders(&self, analysis: &ScriptAnalysis, start: Option<&Path>) -> Option<Vec<PathBuf>> {
        let enter = |at: EnteredFolder, to: &Option<String>| at.enter_folder(to.as_deref()?);
        let (first, later) = analysis.folder_changes.split_at_checked(analysis.leading_changes)?;
        let start = EnteredFolder { folder: start?.to_owned(), is_physical: true };
        let start_folder = first.iter().try_fold(start, enter)?;
        let folder = start_folder.folder.clone();
        match later {
            [] => Some(vec![folder]),
            // Each command may run before or after the change.
            [to] => Some(vec![folder, enter(start_folder, to)?.folder]),
            _ => None,
        }
    }

    /// Returns the resources for a path relative to the base.
    pub(crate) fn path_resources(
        &self,
        path: &str,
        is_certain: bool,
        access: FileAccess,
    ) -> Vec<Resource> {
        let (permission, class) = access.permission_and_class();
        let named = |subject: Resource| match subject.permission() {
            None => subject.with_permission(permission).with_class(class),
            Some(_) => subject,
        };
        let mut subjects: Vec<Resource> = match (self.resolve_place(path), access) {
            (None, _) => Vec::new(),
            (Some(place), FileAccess::Read) => place.read_resources(self.cx),
            (Some(place), FileAccess::Write) => place.write_resources(self.cx),
            (Some(place), FileAccess::Remove) => place.remove_resources(self.cx),
        };
        // A path that cannot be resolved now may exist when it is opened.
        subjects.retain(|subject| subject.absolute().is_some());
        // A command may have changed the home directory.
        let is_known = !subjects.is_empty() && is_certain && home_paths::strip_home(path).is_none();
        let mut subjects: Vec<Resource> = subjects.into_iter().map(named).collect();
        if !is_known {
            // Deny rules may name the file by its absolute path.
            let place = self.folder.as_ref().filter(|_| !path.starts_with(['~', '$']));
            let place = place.map_or_else(|| path.into(), |folder| folder.join(path));
            let place = place.components().collect::<PathBuf>().to_string_lossy().into_owned();
            let unknown = unknown_file(path, access).into_iter();
            subjects.extend(unknown.map(|it| it.with_forbidden_spelling(place.clone())));
        }
        subjects
    }

    fn resolve_place(&self, path: &str) -> Option<WorkspacePath> {
        let path = match (home_paths::strip_home(path), &self.folder) {
            (Some(_), _) => home_paths::home_path(path)?,
            // The home directory of another user, or a name that begins with a tilde.
            (None, _) if path.starts_with('~') => return None,
            (None, Some(folder)) => folder.join(path),
            (None, None) if Path::new(path).is_absolute() => PathBuf::from(path),
            (None, None) => return None,
        };
        // These depend on the process that opens them, and a write through a dangling link
        // creates its target.
        let is_own = ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
        let is_open = path.is_symlink() && !path.exists();
        if is_open || is_own.iter().any(|own| path.starts_with(own)) {
            return None;
        }
        Some(WorkspacePath::from(path.to_str()?))
    }
}

/// A directory that `cd` entered.
struct EnteredFolder {
    folder: PathBuf,
    /// Whether the logical path that bash keeps has no links.
    is_physical: bool,
}

impl EnteredFolder {
    /// Returns the directory that `cd` enters from here, if it is known.
    fn enter_folder(self, to: &str) -> Option<Self> {
        let place = self.folder.join(to);
        let folder = place.canonicalize().ok()?;
        let is_straight = self.is_physical && normalize_dots(&place) == folder;
        let goes_up = Path::new(to).components().any(|part| part == Component::ParentDir);
        // Bash resolves `link/..` logically, the kernel physically.
        let is_known = (is_straight || !goes_up)
            // `cd` fails without search permission.
            && folder.join(".").is_dir();
        is_known.then_some(Self { folder, is_physical: is_straight })
    }
}

/// Resolves `..` logically, as bash does: `a/..` is removed.
fn normalize_dots(path: &Path) -> PathBuf {
    let mut read = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(read.pop()),
            part => read.push(part),
        }
    }
    read
}

/// Returns the resources for an unknown file.
pub(crate) fn unknown_file(path: &str, access: FileAccess) -> Vec<Resource> {
    let (permission, class) = access.permission_and_class();
    // A relative path is inside no directory.
    let unknown = Resource::path(path, path.trim_start_matches('/'))
        .with_reason("the file is only known at run time")
        .with_unknown_effect()
        .with_class(class);
    let mut subjects =
        vec![unknown.clone().with_permission(OUTSIDE), unknown.clone().with_permission(permission)];
    // PA7: it may be a protected file.
    subjects.extend((access != FileAccess::Read).then(|| unknown.with_permission(PROTECTED)));
    subjects
}

/// Whether a path may leave its starting directory.
pub(crate) fn leaves_folder(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..")
}
