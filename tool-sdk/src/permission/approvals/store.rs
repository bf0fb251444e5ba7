//! Approvals that outlive the process.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::file::{self, Newest, Writer};
use super::identity::Site;
use super::stored::distinct;
use super::{Grant, GrantSource, Grantee, PrivateFileError, StoredApproval};
use crate::permission::Pattern;
use crate::private_file::LOCK_TIMEOUT;
use crate::private_file::location::PrivateFolder;
use crate::private_file::version::FileVersion;
use crate::tool::Subject;

/// The approvals of all workspaces in one file, seen from one workspace.
///
/// What another process grants or revokes is seen by the next [`grants`](Self::grants). Where
/// anything is wrong there are no approvals, and somebody is asked again.
///
/// All of it reads or writes files, so that async code calls it where that may block.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ApprovalStore, Grant, GrantSource, Grantee, Subject, ToolName};
///
/// # let state = tempfile::tempdir()?;
/// # let workspace = tempfile::tempdir()?;
/// # let (state, workspace) = (state.path(), workspace.path());
/// let store = ApprovalStore::open(state.join("approvals"), workspace);
/// let run = Grantee::new(ToolName::new("run")?, "run");
/// store.grant(vec![Grant::new(run.clone(), "git *")], GrantSource::new("session", "call"))?;
///
/// let later = ApprovalStore::open(state.join("approvals"), workspace);
/// assert!(later.grants().covers(&run, &Subject::new("git status")));
///
/// # let other = tempfile::tempdir()?;
/// let elsewhere = ApprovalStore::open(state.join("approvals"), other.path());
/// assert!(!elsewhere.grants().covers(&run, &Subject::new("git status")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ApprovalStore {
    place: PrivateFolder,
    workspace: PathBuf,
    /// The folder that was there at the start, if there was one.
    site: Option<Site>,
    seen: Mutex<Seen>,
}

/// The approvals that hold in a workspace at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The approvals.
    pub approvals: Arc<[StoredApproval]>,
    /// What is wrong, for the user; told once for as long as it stays the same.
    pub warning: Option<String>,
}

impl Loaded {
    /// Whether an approval covers what `to` does to `subject`.
    #[must_use]
    pub fn covers(&self, to: &Grantee, subject: &Subject) -> bool {
        self.approvals.iter().any(|approval| approval.grant.covers(to, subject))
    }

    /// The patterns that were granted to `to`, for tools that judge them on their own.
    #[must_use]
    pub fn patterns(&self, to: &Grantee) -> Vec<Pattern> {
        let grants = self.approvals.iter().map(|approval| &approval.grant);
        grants.filter(|grant| grant.to == *to).map(|grant| grant.pattern.clone()).collect()
    }
}

/// What the last look at the file gave.
#[derive(Debug, Default)]
struct Seen {
    version: Option<FileVersion>,
    approvals: Arc<[StoredApproval]>,
    /// What a writer came across that was not told yet.
    untold: Option<String>,
    told: Option<String>,
}

impl ApprovalStore {
    /// The approvals in `folder`, as they hold in `workspace`.
    ///
    /// The folder is made by the first grant; until then nothing is touched. It belongs where
    /// no tool writes: in the workspace it is not believed, nor in a root of the
    /// [`Workspace`](crate::Workspace) that a session is lent. What else tools may write to is
    /// said with [`not_inside`](Self::not_inside).
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>, workspace: &Path) -> Self {
        // AP1: a model that writes files must not write itself an approval.
        let mut place = PrivateFolder::new(folder.into());
        place.add_writable_roots(&[workspace.to_owned()]);
        Self {
            place,
            workspace: workspace.to_owned(),
            site: Site::at(workspace),
            seen: Mutex::default(),
        }
    }

    /// Says where tools may write: a store in there is not believed.
    #[must_use]
    pub fn not_inside(mut self, roots: &[PathBuf]) -> Self {
        self.place.add_writable_roots(roots);
        self
    }

    /// Whether `path`, which leads over no link, is the folder or something in it.
    pub(crate) fn is_around(&self, path: &Path) -> bool {
        self.place.contains_path(path)
    }

    /// The approvals that hold here and now; none when anything is wrong.
    ///
    /// The file is read only when it is another one than the last time.
    #[must_use]
    pub fn grants(&self) -> Loaded {
        self.grants_beside(&[])
    }

    /// The same where tools may write to `roots`, too.
    pub(crate) fn grants_beside(&self, roots: &[PathBuf]) -> Loaded {
        let mut seen = self.seen();
        let fresh = self.place.check_outside(roots).and_then(|()| self.refresh(&mut seen));
        let problem = match fresh {
            Ok(()) => None,
            Err(error) => {
                seen.version = None;
                seen.approvals = Arc::default();
                Some(describe(&error))
            }
        };
        let untold = seen.untold.take();
        let news = problem.clone().filter(|_| problem != seen.told);
        seen.told = problem;
        Loaded { approvals: Arc::clone(&seen.approvals), warning: untold.or(news) }
    }

    /// Keeps `grants` for every session in this workspace, and says under what ids.
    ///
    /// They are on the disk when it returns. What was granted before keeps its id.
    ///
    /// # Errors
    ///
    /// Fails when the file is not trusted, another process writes for more than two seconds,
    /// or the system refuses. What was stored before is still there.
    pub fn grant(
        &self,
        grants: Vec<Grant>,
        source: GrantSource,
    ) -> Result<Vec<StoredApproval>, PrivateFileError> {
        self.grant_beside(&[], grants, source)
    }

    /// The same where tools may write to `roots`, too.
    pub(crate) fn grant_beside(
        &self,
        roots: &[PathBuf],
        grants: Vec<Grant>,
        source: GrantSource,
    ) -> Result<Vec<StoredApproval>, PrivateFileError> {
        self.place.check_outside(roots)?;
        let site = self.site()?;
        let folder = self.place.create_folder()?;
        let new = grants
            .into_iter()
            .map(|grant| Ok(StoredApproval::new(new_id(&folder)?, grant, site, source.clone())))
            .collect::<Result<Vec<_>, PrivateFileError>>()?;

        let new = distinct(new);

        let writer = Writer::lock(&folder, LOCK_TIMEOUT)?;
        let mut approvals = self.newest(&writer)?;
        // Whoever was told an id may revoke it, so that no later grant takes its place,
        // whatever the clock says.
        let mut kept = Vec::new();
        for new in new {
            match approvals.iter().find(|known| known.is_same(&new)) {
                Some(known) => kept.push(known.clone()),
                None => {
                    kept.push(new.clone());
                    approvals.push(new);
                }
            }
        }
        writer.replace(&approvals)?;
        Ok(kept)
    }

    /// The approvals of all workspaces, the oldest first.
    ///
    /// # Errors
    ///
    /// Fails when the file is not trusted, is corrupt, or cannot be read.
    pub fn list(&self) -> Result<Vec<StoredApproval>, PrivateFileError> {
        let Some(folder) = self.place.find_folder()? else { return Ok(Vec::new()) };
        let found = file::read_or_set_aside(&folder, LOCK_TIMEOUT)?;
        Ok(found.map(|(approvals, _)| distinct(approvals)).unwrap_or_default())
    }

    /// Takes back the approval with this id, of any workspace; `false` when there is none.
    ///
    /// # Errors
    ///
    /// Fails as [`grant`](Self::grant) does.
    pub fn revoke(&self, id: &str) -> Result<bool, PrivateFileError> {
        let Some(folder) = self.place.find_folder()? else { return Ok(false) };
        let writer = Writer::lock(&folder, LOCK_TIMEOUT)?;
        let mut approvals = self.newest(&writer)?;
        let before = approvals.len();
        approvals.retain(|approval| approval.id != id);
        if approvals.len() == before {
            return Ok(false);
        }
        writer.replace(&approvals)?;
        Ok(true)
    }

    /// Brings `seen` up to date.
    fn refresh(&self, seen: &mut Seen) -> Result<(), PrivateFileError> {
        let site = self.site()?;
        let folder = self.place.find_folder()?;
        let last = seen.version.as_ref();
        let is_still = match &folder {
            Some(folder) => file::is_still(last, folder)?,
            None => last.is_none(),
        };
        if is_still {
            return Ok(());
        }
        // Whoever asks does not wait; the next one sees what is there then.
        let patience = Duration::ZERO;
        let found = folder.map_or(Ok(None), |folder| file::read_or_set_aside(&folder, patience))?;
        let (approvals, version) = found.unzip();
        let here = approvals.into_iter().flatten().filter(|approval| approval.holds_in(site));
        seen.approvals = here.collect();
        seen.version = version;
        Ok(())
    }

    /// The workspace, as long as it is the folder that was there at the start.
    fn site(&self) -> Result<&Site, PrivateFileError> {
        let now = Site::at(&self.workspace);
        let site = self.site.as_ref().filter(|site| now.as_ref() == Some(site));
        site.ok_or_else(|| PrivateFileError::WorkspaceReplaced { path: self.workspace.clone() })
    }

    /// What is there before a change.
    fn newest(&self, writer: &Writer<'_>) -> Result<Vec<StoredApproval>, PrivateFileError> {
        let Newest { approvals, corrupt } = writer.newest()?;
        if let Some(corrupt) = &corrupt {
            self.seen().untold = Some(describe(corrupt));
        }
        Ok(approvals)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_id(folder: &Path) -> Result<String, PrivateFileError> {
    let random = getrandom::u64().map_err(|error| {
        PrivateFileError::io("make an id for an approval in", folder)(error.into())
    })?;
    Ok(format!("{random:016x}"))
}

/// The error with its cause, in one line.
fn describe(error: &PrivateFileError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
