//! What files a command line reads and writes, as rules and people see it: those of its
//! redirections, and those that a command which only looks is given.
//!
//! A file is judged where it lies, under `edit` or `read` and, as for every other tool, under
//! `external_directory` and `protected_path` where these are meant.
//!
//! **Invariant:** where nobody knows which file is meant, somebody is asked, and where the
//! writable folders are limited it is none of them.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use tool_sdk::process::ChildEnv;
use tool_sdk::{Context, RiskClass, Subject, ToolError, Workspace, WorkspacePath};

use super::look::{self, Look};
use super::{found, home, pushed, reading, remotes, writing};
use crate::shell::Understood;

/// The permissions of those who read and write files.
pub(super) const READ: &str = "read";
pub(super) const WRITE: &str = "edit";

/// The permission for what is, or may be, outside of the workspace.
const OUTSIDE: &str = "external_directory";

/// The permission for what something executes or obeys later.
const PROTECTED: &str = "protected_path";

/// How many files are looked for of the redirections of a line, and how many of those that its
/// commands look at. Where there are more, somebody is asked about the rest together.
const MOST_REDIRECTED: usize = 128;
const MOST_LOOKED_AT: usize = 160;

/// What is done with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    Remove,
}

impl Access {
    /// Under what it is judged, and as what.
    fn kind(self) -> (&'static str, RiskClass) {
        match self {
            Self::Read => (READ, RiskClass::Read),
            Self::Write | Self::Remove => (WRITE, RiskClass::Write),
        }
    }
}

/// Where relative paths start, when that is known.
pub(super) struct Base<'a> {
    cx: &'a Context,
    pub(super) folder: Option<PathBuf>,
    /// Where the shell is that reads a text; by the time that it does, it may be elsewhere.
    shell_folder: Option<PathBuf>,
    /// Why nothing is run there.
    refused: Option<Subject>,
    /// The only folders that what runs there can write below, where something holds it there.
    held: Option<Vec<PathBuf>>,
    /// Whether it runs where commands do for which nothing else is said.
    is_usual: OnceCell<bool>,
    /// The programs that were looked for, and whether they lie in the workspace.
    own: RefCell<HashMap<String, bool>>,
}

impl<'a> Base<'a> {
    pub(super) fn new(cx: &'a Context, folder: Option<PathBuf>) -> Self {
        let (is_usual, own) = (OnceCell::new(), RefCell::default());
        Self { cx, folder, shell_folder: None, refused: None, held: None, is_usual, own }
    }

    /// Says where the shell is that reads a text, if that is known.
    pub(super) fn of_shell(cx: &'a Context, shell_folder: Option<PathBuf>) -> Self {
        Self { shell_folder, ..Self::new(cx, None) }
    }

    /// Says which folders are the only ones that what runs there can write below.
    pub(super) fn held(self, held: Option<Vec<PathBuf>>) -> Self {
        Self { held, ..self }
    }

    /// A command that runs there.
    pub(super) fn command(&self, subject: Subject) -> Subject {
        let subject = if self.is_usual() { subject } else { subject.means_more() };
        match &self.held {
            Some(folders) => subject.writes_only_below(folders),
            None => subject,
        }
    }

    /// Whether a rule with exactly the words of a command means it where it runs.
    fn is_usual(&self) -> bool {
        *self.is_usual.get_or_init(|| {
            let folder = self.known_folder().and_then(|it| it.canonicalize().ok());
            let workspace = self.cx.state::<Workspace>().ok();
            folder.is_some()
                && folder.as_deref() == workspace.as_deref().and_then(|it| it.roots().next())
        })
    }

    /// Whether it runs in a repository that lies in the workspace and is not one of its roots, or
    /// may do so.
    pub(super) fn is_in_other_repository(&self) -> bool {
        let Ok(workspace) = self.cx.state::<Workspace>() else { return false };
        let Some(folder) = self.known_folder() else { return true };
        let roots: Vec<&Path> = workspace.roots().collect();
        remotes::top(folder).is_some_and(|top| {
            let top = top.canonicalize().unwrap_or(top);
            found::is_in(&top, &roots) && !roots.contains(&&*top)
        })
    }

    fn known_folder(&self) -> Option<&Path> {
        self.folder.as_deref().or(self.shell_folder.as_deref())
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
        let folders = self.folders(of, self.known_folder()).unwrap_or_default();
        let about = |path: &String, access| match self.led(path, of, &folders) {
            Some(path) => self.about(&path, is_certain(&path), access),
            None => unknown(path, access),
        };
        let redirected = |paths: &[String], access| {
            let (some, rest) = paths.split_at(paths.len().min(MOST_REDIRECTED));
            let rest = (!rest.is_empty()).then(|| unknown(&rest.join(" "), access));
            let some = some.iter().flat_map(|path| about(path, access));
            some.chain(rest.into_iter().flatten()).collect::<Vec<_>>()
        };
        let writes = redirected(&of.writes, Access::Write).into_iter();
        let reads = redirected(&of.reads, Access::Read);
        let left = Cell::new(MOST_LOOKED_AT);
        let is_settled = !of.is_unsettled() && !of.renames;
        let is_certain = of.opaque.is_none() && is_settled;
        // What is not understood only a rule for everything allows.
        let is_named = !of.commands.iter().any(|command| command.is_nameless);
        let may_come = of.opaque.is_none() && is_named && !is_settled;
        // What is looked at twice is the same.
        let mut seen = HashSet::new();
        let safe = of.commands.iter().filter(|command| command.looks);
        let commands = safe.filter(|command| seen.insert((&command.text, command.elsewhere)));
        let are_usual = !of.commands.iter().any(look::changes_patterns);
        let looked_at = commands.flat_map(|command| {
            let folders = if command.elsewhere { &[][..] } else { &folders };
            let from = Look { base: self, folders, is_certain, may_come, are_usual, left: &left };
            from.subjects(command)
        });
        let pushed = self.pushed(of).into_iter().map(|subject| self.command(subject));
        let workspace = self.cx.state::<Workspace>().ok();
        let roots: Vec<&Path> = workspace.iter().flat_map(|it| it.roots()).collect();
        let read = reading::subjects(of, &folders, &roots);
        let written = writing::subjects(self, of, &folders);
        let all = writes.chain(reads).chain(looked_at).chain(written).chain(pushed).chain(read);
        all.chain(self.refused.clone()).collect()
    }

    /// The commands that push into a folder.
    fn pushed(&self, of: &Understood) -> Vec<Subject> {
        if !of.commands.iter().any(pushed::pushes) {
            return Vec::new();
        }
        let Ok(workspace) = self.cx.state::<Workspace>() else { return Vec::new() };
        let folders = self.folders(of, self.known_folder()).unwrap_or_default();
        pushed::subjects(of, &folders, &workspace)
    }

    /// Whether a program that is called by its bare name lies in the workspace, where whoever
    /// may write files could have put it.
    pub(super) fn is_own_program(&self, program: &str) -> bool {
        if let Some(is_own) = self.own.borrow().get(program) {
            return *is_own;
        }
        let Ok(workspace) = self.cx.state::<Workspace>() else { return false };
        let roots: Vec<&Path> = workspace.roots().collect();
        let is_own = found::is_below(program, &ChildEnv::path_only(), &roots);
        self.own.borrow_mut().insert(program.to_owned(), is_own);
        is_own
    }

    /// The path of a redirection from where relative ones start, once the folder was changed
    /// before everything else; nothing when nobody knows where that led.
    fn led<'p>(&self, path: &'p str, of: &Understood, folders: &[PathBuf]) -> Option<Cow<'p, str>> {
        if !of.opens_led || of.opaque.is_some() || path.starts_with(['/', '~']) {
            return Some(Cow::Borrowed(path));
        }
        let [folder] = folders else { return None };
        folder.join(path).into_os_string().into_string().ok().map(Cow::Owned)
    }

    /// The folders of which the commands run in one, from `start` on, when that is known.
    fn folders(&self, of: &Understood, start: Option<&Path>) -> Option<Vec<PathBuf>> {
        let enter = |at: Entered, to: &Option<String>| at.enter(to.as_deref()?);
        let (first, later) = of.moves.split_at_checked(of.led)?;
        let start = Entered { folder: start?.to_owned(), is_straight: true };
        let led = first.iter().try_fold(start, enter)?;
        let folder = led.folder.clone();
        match later {
            [] => Some(vec![folder]),
            // It may run before a command or after it.
            [to] => Some(vec![folder, enter(led, to)?.folder]),
            _ => None,
        }
    }

    /// The subjects for a path from where relative ones start.
    pub(super) fn about(&self, path: &str, is_certain: bool, access: Access) -> Vec<Subject> {
        let (permission, class) = access.kind();
        let named = |subject: Subject| match subject.permission() {
            None => subject.under(permission).class(class),
            Some(_) => subject,
        };
        let mut subjects: Vec<Subject> = match (self.place(path), access) {
            (None, _) => Vec::new(),
            (Some(place), Access::Read) => place.read(self.cx),
            (Some(place), Access::Write) => place.written(self.cx),
            (Some(place), Access::Remove) => place.removed(self.cx),
        };
        // What has no place here may have one when it is opened.
        subjects.retain(|subject| subject.absolute().is_some());
        // A command may have set another home folder.
        let is_known = !subjects.is_empty() && is_certain && home::below(path).is_none();
        let mut subjects: Vec<Subject> = subjects.into_iter().map(named).collect();
        if !is_known {
            subjects.extend(unknown(path, access));
        }
        subjects
    }

    fn place(&self, path: &str) -> Option<WorkspacePath> {
        let path = match (home::below(path), &self.folder) {
            (Some(_), _) => home::place(path)?,
            // The home folder of somebody else, or a name that begins so.
            (None, _) if path.starts_with('~') => return None,
            (None, Some(folder)) => folder.join(path),
            (None, None) if Path::new(path).is_absolute() => PathBuf::from(path),
            (None, None) => return None,
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

/// A folder that was entered.
struct Entered {
    folder: PathBuf,
    /// Whether bash knows it under its own path, without links.
    is_straight: bool,
}

impl Entered {
    /// The one that `cd` enters from here, when that is known.
    fn enter(self, to: &str) -> Option<Self> {
        let place = self.folder.join(to);
        let folder = place.canonicalize().ok()?;
        let is_straight = self.is_straight && without_steps_up(&place) == folder;
        let goes_up = Path::new(to).components().any(|part| part == Component::ParentDir);
        // To bash, `link/..` is not where it is to the system.
        let is_known = (is_straight || !goes_up)
            // Nobody enters a folder in which nothing can be found.
            && folder.join(".").is_dir();
        is_known.then_some(Self { folder, is_straight })
    }
}

/// A path as bash reads it, to which `a/..` is nothing.
fn without_steps_up(path: &Path) -> PathBuf {
    let mut read = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(read.pop()),
            part => read.push(part),
        }
    }
    read
}

/// The subjects for a file that nobody knows.
pub(super) fn unknown(path: &str, access: Access) -> Vec<Subject> {
    let (permission, class) = access.kind();
    // No folder holds a path that is not absolute.
    let unknown = Subject::path(path, path.trim_start_matches('/'))
        .because("which file this is, is only known when it runs")
        .nameless()
        .class(class);
    let mut subjects = vec![unknown.clone().under(OUTSIDE), unknown.clone().under(permission)];
    // PA7: it may be one that something obeys.
    subjects.extend((access != Access::Read).then(|| unknown.under(PROTECTED)));
    subjects
}

/// Whether a path may lead out of the folder that it starts in.
pub(super) fn leads_out(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..")
}
