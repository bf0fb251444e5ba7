//! Approvals that outlive the process.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::file::{self, CurrentGrants, GrantWriter};
use super::stored_grant::dedup_grants;
use super::workspace_identity::WorkspaceIdentity;
use super::{Grant, GrantSource, Grantee, PrivateFileError, StoredGrant};
use crate::permission::Pattern;
use crate::private_file::LOCK_TIMEOUT;
use crate::private_file::location::PrivateFolder;
use crate::private_file::version::FileVersion;
use crate::tool::Resource;

/// The approvals of all workspaces in one file, seen from one workspace.
///
/// What another process grants or revokes is seen by the next [`grants`](Self::load_grants). Where
/// anything is wrong there are no approvals, and somebody is asked again.
///
/// All of it reads or writes files, so that async code calls it where that may block.
///
/// # Examples
///
/// ```
/// use tool_sdk::{GrantStore, Grant, GrantSource, Grantee, Resource, ToolName};
///
/// # let state = tempfile::tempdir()?;
/// # let workspace = tempfile::tempdir()?;
/// # let (state, workspace) = (state.path(), workspace.path());
/// let store = GrantStore::open(state.join("approvals"), workspace);
/// let run = Grantee::new(ToolName::new("run")?, "run");
/// store.add_grants(vec![Grant::new(run.clone(), "git *")], GrantSource::new("session", "call"))?;
///
/// let later = GrantStore::open(state.join("approvals"), workspace);
/// assert!(later.load_grants().covers(&run, &Resource::new("git status")));
///
/// # let other = tempfile::tempdir()?;
/// let elsewhere = GrantStore::open(state.join("approvals"), other.path());
/// assert!(!elsewhere.load_grants().covers(&run, &Resource::new("git status")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GrantStore {
    folder: PrivateFolder,
    workspace: PathBuf,
    /// The folder that was there at the start, if there was one.
    site: Option<WorkspaceIdentity>,
    cache: Mutex<GrantCache>,
}

/// The approvals that hold in a workspace at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredGrants {
    /// The approvals.
    pub grants: Arc<[StoredGrant]>,
    /// What is wrong, for the user; told once for as long as it stays the same.
    pub warning: Option<String>,
}

impl StoredGrants {
    /// Whether an approval covers what `to` does to `subject`.
    #[must_use]
    pub fn covers(&self, to: &Grantee, subject: &Resource) -> bool {
        self.grants.iter().any(|approval| approval.grant.covers(to, subject))
    }

    /// The patterns that were granted to `to`, for tools that judge them on their own.
    #[must_use]
    pub fn patterns(&self, to: &Grantee) -> Vec<Pattern> {
        let grants = self.grants.iter().map(|approval| &approval.grant);
        grants.filter(|grant| grant.to == *to).map(|grant| grant.pattern.clone()).collect()
    }
}

/// What the last look at the file gave.
#[derive(Debug, Default)]
struct GrantCache {
    version: Option<FileVersion>,
    grants: Arc<[StoredGrant]>,
    /// What a writer came across that was not told yet.
    pending_warning: Option<String>,
    last_warning: Option<String>,
}

impl GrantStore {
    /// The approvals in `folder`, as they hold in `workspace`.
    ///
    /// The folder is made by the first grant; until then nothing is touched. It belongs where
    /// no tool writes: in the workspace it is not believed, nor in a root of the
    /// [`Workspace`](crate::Workspace) that a session is lent. What else tools may write to is
    /// said with [`not_inside`](Self::with_writable_roots).
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>, workspace: &Path) -> Self {
        // AP1: a model that writes files must not write itself an approval.
        let mut folder = PrivateFolder::new(folder.into());
        folder.add_writable_roots(&[workspace.to_owned()]);
        Self {
            folder,
            workspace: workspace.to_owned(),
            site: WorkspaceIdentity::from_path(workspace),
            cache: Mutex::default(),
        }
    }

    /// Says where tools may write: a store in there is not believed.
    #[must_use]
    pub fn with_writable_roots(mut self, roots: &[PathBuf]) -> Self {
        self.folder.add_writable_roots(roots);
        self
    }

    /// Whether `path`, which leads over no link, is the folder or something in it.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.folder.contains_path(path)
    }

    /// The approvals that hold here and now; none when anything is wrong.
    ///
    /// The file is read only when it is another one than the last time.
    #[must_use]
    pub fn load_grants(&self) -> StoredGrants {
        self.load_grants_with_roots(&[])
    }

    /// The same where tools may write to `roots`, too.
    pub(crate) fn load_grants_with_roots(&self, roots: &[PathBuf]) -> StoredGrants {
        let mut seen = self.lock_cache();
        let fresh = self.folder.check_outside(roots).and_then(|()| self.refresh_cache(&mut seen));
        let problem = match fresh {
            Ok(()) => None,
            Err(error) => {
                seen.version = None;
                seen.grants = Arc::default();
                Some(describe_error(&error))
            }
        };
        let untold = seen.pending_warning.take();
        let news = problem.clone().filter(|_| problem != seen.last_warning);
        seen.last_warning = problem;
        StoredGrants { grants: Arc::clone(&seen.grants), warning: untold.or(news) }
    }

    /// Keeps `grants` for every session in this workspace, and says under what ids.
    ///
    /// They are on the disk when it returns. What was granted before keeps its id.
    ///
    /// # Errors
    ///
    /// Fails when the file is not trusted, another process writes for more than two seconds,
    /// or the system refuses. What was stored before is still there.
    pub fn add_grants(
        &self,
        grants: Vec<Grant>,
        source: GrantSource,
    ) -> Result<Vec<StoredGrant>, PrivateFileError> {
        self.add_grants_with_roots(&[], grants, source)
    }

    /// The same where tools may write to `roots`, too.
    pub(crate) fn add_grants_with_roots(
        &self,
        roots: &[PathBuf],
        grants: Vec<Grant>,
        source: GrantSource,
    ) -> Result<Vec<StoredGrant>, PrivateFileError> {
        self.folder.check_outside(roots)?;
        let site = self.check_workspace()?;
        let folder = self.folder.create_folder()?;
        let new = grants
            .into_iter()
            .map(|grant| Ok(StoredGrant::new(new_grant_id(&folder)?, grant, site, source.clone())))
            .collect::<Result<Vec<_>, PrivateFileError>>()?;

        let new = dedup_grants(new);

        let writer = GrantWriter::acquire(&folder, LOCK_TIMEOUT)?;
        let mut approvals = self.read_current(&writer)?;
        // Whoever was told an id may revoke it, so that no later grant takes its place,
        // whatever the clock says.
        let mut kept = Vec::new();
        for new in new {
            match approvals.iter().find(|known| known.is_same_grant(&new)) {
                Some(known) => kept.push(known.clone()),
                None => {
                    kept.push(new.clone());
                    approvals.push(new);
                }
            }
        }
        writer.replace_all(&approvals)?;
        Ok(kept)
    }

    /// The approvals of all workspaces, the oldest first.
    ///
    /// # Errors
    ///
    /// Fails when the file is not trusted, is corrupt, or cannot be read.
    pub fn list(&self) -> Result<Vec<StoredGrant>, PrivateFileError> {
        let Some(folder) = self.folder.find_folder()? else { return Ok(Vec::new()) };
        let found = file::read_or_set_aside(&folder, LOCK_TIMEOUT)?;
        Ok(found.map(|(approvals, _)| dedup_grants(approvals)).unwrap_or_default())
    }

    /// Takes back the approval with this id, of any workspace; `false` when there is none.
    ///
    /// # Errors
    ///
    /// Fails as [`grant`](Self::add_grants) does.
    pub fn revoke(&self, id: &str) -> Result<bool, PrivateFileError> {
        let Some(folder) = self.folder.find_folder()? else { return Ok(false) };
        let writer = GrantWriter::acquire(&folder, LOCK_TIMEOUT)?;
        let mut approvals = self.read_current(&writer)?;
        let before = approvals.len();
        approvals.retain(|approval| approval.id != id);
        if approvals.len() == before {
            return Ok(false);
        }
        writer.replace_all(&approvals)?;
        Ok(true)
    }

    /// Brings `seen` up to date.
    fn refresh_cache(&self, seen: &mut GrantCache) -> Result<(), PrivateFileError> {
        let site = self.check_workspace()?;
        let folder = self.folder.find_folder()?;
        let last = seen.version.as_ref();
        let is_still = match &folder {
            Some(folder) => file::is_unchanged(last, folder)?,
            None => last.is_none(),
        };
        if is_still {
            return Ok(());
        }
        // Whoever asks does not wait; the next one sees what is there then.
        let patience = Duration::ZERO;
        let found = folder.map_or(Ok(None), |folder| file::read_or_set_aside(&folder, patience))?;
        let (approvals, version) = found.unzip();
        let here = approvals.into_iter().flatten().filter(|approval| approval.applies_to(site));
        seen.grants = here.collect();
        seen.version = version;
        Ok(())
    }

    /// The workspace, as long as it is the folder that was there at the start.
    fn check_workspace(&self) -> Result<&WorkspaceIdentity, PrivateFileError> {
        let now = WorkspaceIdentity::from_path(&self.workspace);
        let site = self.site.as_ref().filter(|site| now.as_ref() == Some(site));
        site.ok_or_else(|| PrivateFileError::WorkspaceReplaced { path: self.workspace.clone() })
    }

    /// What is there before a change.
    fn read_current(&self, writer: &GrantWriter<'_>) -> Result<Vec<StoredGrant>, PrivateFileError> {
        let CurrentGrants { grants: approvals, corrupt } = writer.read_current()?;
        if let Some(corrupt) = &corrupt {
            self.lock_cache().pending_warning = Some(describe_error(corrupt));
        }
        Ok(approvals)
    }

    fn lock_cache(&self) -> MutexGuard<'_, GrantCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_grant_id(folder: &Path) -> Result<String, PrivateFileError> {
    let random = getrandom::u64().map_err(|error| {
        PrivateFileError::io("make an id for an approval in", folder)(error.into())
    })?;
    Ok(format!("{random:016x}"))
}

/// The error with its cause, in one line.
fn describe_error(error: &PrivateFileError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
