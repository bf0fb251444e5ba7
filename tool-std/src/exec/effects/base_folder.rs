//! The directory in which a command line runs, and the resources of paths from there.
//!
//! Files are checked where they are, under `edit` or `read`, and, as for every other tool, under
//! `external_directory` and `protected_path` where these apply.
//!
//! **Invariant:** an unknown file needs approval, and a policy that limits writable directories
//! does not allow it.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tool_sdk::process::ChildEnv;
use tool_sdk::{Context, Resource, RiskClass, ToolError, Workspace, WorkspacePath};
use tool_shell_analysis::ScriptAnalysis;

use super::git::work_tree_top;
use super::paths::{home_path, normalize_path, strip_home};

/// The permissions for reading and writing files.
const READ: &str = "read";
pub(super) const WRITE: &str = "edit";

/// The permission for files that are, or may be, outside of the workspace.
const OUTSIDE: &str = "external_directory";

/// The permission for files that programs run or obey later.
const PROTECTED: &str = "protected_path";

/// How a file is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
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

    /// Limits the resource of a file to deny rules.
    pub(super) fn deny_only(self, file: Resource) -> Resource {
        let (permission, class) = self.permission_and_class();
        file.with_permission(permission).with_class(class).deny_rules_only()
    }

    /// Returns the resource for a file that is only known at run time.
    fn unknown_resource(self, text: &str, why: &'static str) -> Resource {
        let (permission, class) = self.permission_and_class();
        // A relative path is inside no directory.
        let unknown = Resource::path(text, text.trim_start_matches('/'));
        unknown.with_reason(why).with_unknown_effect().with_permission(permission).with_class(class)
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
    /// Whether the sandbox confines commands so that they need no approval.
    is_confined: bool,
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
            is_confined: false,
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

    /// Sets whether the sandbox confines commands so that they need no approval.
    pub(crate) fn with_confinement(self, is_confined: bool) -> Self {
        Self { is_confined, ..self }
    }

    /// Restricts the resource of a command to this base directory.
    pub(crate) fn restrict_command(&self, subject: Resource) -> Resource {
        let subject = if self.is_workspace_root() { subject } else { subject.context_dependent() };
        let subject = match &self.writable_roots {
            Some(folders) => subject.with_writable_folders(folders),
            None => subject,
        };
        if self.is_confined { subject.confined_by_sandbox() } else { subject }
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
        work_tree_top(folder).is_some_and(|top| {
            let top = top.canonicalize().unwrap_or(top);
            is_folder_in(&top, &roots) && !roots.contains(&&*top)
        })
    }

    pub(super) fn workspace(&self) -> Option<Arc<Workspace>> {
        self.cx.state::<Workspace>().ok().map(|workspace| workspace.0)
    }

    /// Returns the resource that says why nothing can be run here.
    pub(super) fn refusal(&self) -> Option<Resource> {
        self.refusal.clone()
    }

    fn known_folder(&self) -> Option<&Path> {
        self.folder.as_deref().or(self.shell_folder.as_deref())
    }

    /// Creates the base for a directory in which nothing can be run.
    pub(crate) fn new_refused(cx: &'a Context, folder: &str, error: &ToolError) -> Self {
        Self { refusal: Some(Resource::new(folder).with_refusal(error)), ..Self::new(cx, None) }
    }

    /// Whether a bare program name resolves to a file in the workspace, where anything that can
    /// write files could have put it.
    pub(crate) fn is_workspace_program(&self, program: &str) -> bool {
        if let Some(is_own) = self.workspace_programs.borrow().get(program) {
            return *is_own;
        }
        let Ok(workspace) = self.cx.state::<Workspace>() else { return false };
        let roots: Vec<&Path> = workspace.roots().collect();
        let is_own = is_program_below(program, &ChildEnv::path_only(), &roots);
        self.workspace_programs.borrow_mut().insert(program.to_owned(), is_own);
        is_own
    }

    /// Returns the directories in which the commands may run; none if they are unknown.
    pub(super) fn run_folders(&self, analysis: &ScriptAnalysis) -> Vec<PathBuf> {
        self.known_run_folders(analysis).unwrap_or_default()
    }

    fn known_run_folders(&self, analysis: &ScriptAnalysis) -> Option<Vec<PathBuf>> {
        let enter = |at: EnteredFolder, to: &Option<String>| at.enter_folder(to.as_deref()?);
        let (first, later) = analysis.folder_changes.split_at_checked(analysis.leading_changes)?;
        let start = EnteredFolder { folder: self.known_folder()?.to_owned(), is_physical: true };
        let start_folder = first.iter().try_fold(start, enter)?;
        let folder = start_folder.folder.clone();
        match later {
            [] => Some(vec![folder]),
            // Each command may run before or after the change.
            [to] => Some(vec![folder, enter(start_folder, to)?.folder]),
            _ => None,
        }
    }

    /// Returns the resources for a place, spelled relative to the base if it is below.
    pub(super) fn place_resources(
        &self,
        place: &Path,
        is_certain: bool,
        access: FileAccess,
    ) -> Vec<Resource> {
        let Some(path) = place.to_str() else {
            return unknown_file(&place.to_string_lossy(), access);
        };
        let folder = self.folder.as_ref().and_then(|folder| folder.to_str());
        let below = folder.and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/'));
        self.path_resources(below.unwrap_or(path), is_certain, access)
    }

    /// Returns the resources for a path as the shell spells it, relative to the base.
    pub(super) fn path_resources(
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
        let is_known = !subjects.is_empty() && is_certain && strip_home(path).is_none();
        // What lies outside or is protected needs approval under a permission of its own.
        let is_free = |it: &Resource| self.is_confined && it.permission() == Some(WRITE);
        let confined = |it: Resource| if is_free(&it) { it.confined_by_sandbox() } else { it };
        let mut subjects: Vec<Resource> =
            subjects.into_iter().map(|it| confined(named(it))).collect();
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
        let path = match (strip_home(path), &self.folder) {
            (Some(_), _) => home_path(path)?,
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
        let is_straight = self.is_physical && normalize_path(&place) == folder;
        let goes_up = Path::new(to).components().any(|part| part == Component::ParentDir);
        // Bash resolves `link/..` logically, the kernel physically.
        let is_known = (is_straight || !goes_up)
            // `cd` fails without search permission.
            && folder.join(".").is_dir();
        is_known.then_some(Self { folder, is_physical: is_straight })
    }
}

/// Returns the resources for an unknown file.
pub(super) fn unknown_file(text: &str, access: FileAccess) -> Vec<Resource> {
    let unknown = access.unknown_resource(text, "the file is only known at run time");
    // PA7: it may be a protected file.
    let protected =
        (access != FileAccess::Read).then(|| unknown.clone().with_permission(PROTECTED));
    let outside = unknown.clone().with_permission(OUTSIDE);
    [outside, unknown].into_iter().chain(protected).collect()
}

/// Returns the resource for unknown files of an approved command, for deny rules.
pub(super) fn denied_unknown_files(text: &str, access: FileAccess) -> Resource {
    let why = match access {
        FileAccess::Read => "the files that it reads are only known at run time",
        FileAccess::Write | FileAccess::Remove => {
            "the files that it writes are only known at run time"
        }
    };
    access.unknown_resource(text, why).deny_rules_only()
}

/// Whether `program` resolves to a file below one of `roots` in this environment.
fn is_program_below(program: &str, env: &ChildEnv, roots: &[&Path]) -> bool {
    // A path is checked as a path.
    let file = if program.contains('/') { None } else { env.find_program(program) };
    file.as_deref().and_then(Path::parent).is_some_and(|folder| is_folder_in(folder, roots))
}

/// Whether a directory is below one of `roots`, also if it does not exist yet.
pub(super) fn is_folder_in(folder: &Path, roots: &[&Path]) -> bool {
    let there = folder.ancestors().find_map(|there| there.canonicalize().ok());
    let place = there.as_deref().unwrap_or(folder);
    roots.iter().any(|root| place.starts_with(root) || folder.starts_with(root))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    // SH4: a folder of the workspace on the path may hold any program.
    #[test]
    fn workspace_program_is_not_trusted_by_name() {
        let (system, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bin = own.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for folder in [system.path(), &bin] {
            fs::write(folder.join("cat"), "").unwrap();
            fs::set_permissions(folder.join("cat"), Permissions::from_mode(0o755)).unwrap();
        }
        let (own, system) = (own.path(), system.path());
        let later = system.join("later");
        std::os::unix::fs::symlink(&bin, &later).unwrap();
        for (program, folders, expected) in [
            ("cat", [bin.as_path(), system], true),
            ("cat", [system, &bin], false),
            ("rg", [&bin, system], false),
            ("/bin/cat", [&bin, system], false),
            ("cat", [&later, system], true),
            ("cat", [system, system], false),
        ] {
            let path = format!("{}:{}", folders[0].display(), folders[1].display());
            let env = ChildEnv::from_parent([("PATH", path)]);
            assert_eq!(is_program_below(program, &env, &[own]), expected, "{program} {folders:?}");
        }
    }
}
