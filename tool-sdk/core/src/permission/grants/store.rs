//! Stores grants that outlive the process.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::file::{self, CurrentGrants, GrantWriter};
use super::stored_grant::dedup_grants;
use super::workspace_identity::WorkspaceIdentity;
use super::write_queue::{QueuedGrants, WriteQueue};
use super::{Grant, GrantSource, Grantee, PrivateFileError, StoredGrant};
use crate::permission::Pattern;
use crate::private_file::LOCK_TIMEOUT;
use crate::private_file::location::PrivateFolder;
use crate::private_file::version::FileVersion;
use crate::tool::Resource;

/// The stored grants of all workspaces in one file, seen from one workspace.
///
/// Grants and revocations of another process are seen by the next
/// [`load_grants`](Self::load_grants). On any error there are no grants, and the user is asked
/// again.
///
/// All methods read or write files and may block.
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
    writes: WriteQueue,
}

/// The stored grants of a workspace at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredGrants {
    /// The grants.
    pub grants: Arc<[StoredGrant]>,
    /// What is wrong, for the user; reported once as long as it does not change.
    pub warning: Option<String>,
}

impl StoredGrants {
    /// Whether a grant lets `to` act on `resource`.
    #[must_use]
    pub fn covers(&self, to: &Grantee, resource: &Resource) -> bool {
        self.grants.iter().any(|approval| approval.grant.covers(to, resource))
    }

    /// Returns the patterns granted to `to`, for tools that evaluate them themselves.
    #[must_use]
    pub fn patterns(&self, to: &Grantee) -> Vec<Pattern> {
        let grants = self.grants.iter().map(|approval| &approval.grant);
        grants.filter(|grant| grant.to == *to).map(|grant| grant.pattern.clone()).collect()
    }
}

/// The result of the last read of the file.
#[derive(Debug, Default)]
struct GrantCache {
    version: Option<FileVersion>,
    grants: Arc<[StoredGrant]>,
    /// A warning of a writer that was not reported yet.
    pending_warning: Option<String>,
    last_warning: Option<String>,
}

impl GrantStore {
    /// Opens the store in `folder`, for the grants of `workspace`.
    ///
    /// The first grant creates the folder; until then no file is touched. No tool may be able to
    /// write there: a store in the workspace is refused, and so is a store in a root of the
    /// `Workspace` of a session. Name other places that tools can write to with
    /// [`with_writable_roots`](Self::with_writable_roots).
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>, workspace: &Path) -> Self {
        // AP1: a model that writes files must not be able to write itself a grant.
        let mut folder = PrivateFolder::new(folder.into());
        folder.add_writable_roots(&[workspace.to_owned()]);
        Self {
            folder,
            workspace: workspace.to_owned(),
            site: WorkspaceIdentity::from_path(workspace),
            cache: Mutex::default(),
            writes: WriteQueue::default(),
        }
    }

    /// Sets where tools may write: a store in such a folder is refused.
    #[must_use]
    pub fn with_writable_roots(mut self, roots: &[PathBuf]) -> Self {
        self.folder.add_writable_roots(roots);
        self
    }

    /// Whether `path`, which contains no link, is the folder or something in it.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.folder.contains_path(path)
    }

    /// Returns the grants of the workspace; none when anything is wrong.
    ///
    /// The file is only read when it changed since the last read.
    #[must_use]
    pub fn load_grants(&self) -> StoredGrants {
        self.load_grants_with_roots(&[])
    }

    /// Like [`load_grants`](Self::load_grants), when tools may write to `roots` as well.
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

    /// Stores `grants` for every session in this workspace; returns their ids.
    ///
    /// The grants are on the disk when this returns. A grant that is stored already keeps its id.
    /// Grants that several threads add while another process writes are written in one go.
    ///
    /// # Errors
    ///
    /// Fails when the file is not trusted, when other processes hold the lock for more than ten
    /// seconds, or when the file cannot be written. The old file stays then.
    pub fn add_grants(
        &self,
        grants: Vec<Grant>,
        source: GrantSource,
    ) -> Result<Vec<StoredGrant>, PrivateFileError> {
        self.add_grants_with_roots(&[], grants, source)
    }

    /// Like [`add_grants`](Self::add_grants), when tools may write to `roots` as well.
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

        let started = Instant::now();
        let slot = self.writes.push(dedup_grants(new));
        let turn = self.writes.wait_for_turn();
        // Another call may have written these grants with its own.
        if let Some(result) = slot.take() {
            return result;
        }
        turn.let_others_pass();
        let patience = LOCK_TIMEOUT.saturating_sub(started.elapsed());
        let writer = GrantWriter::acquire(&folder, patience).inspect_err(|_| turn.remove(&slot))?;
        self.write_queued(&writer, turn.take_waiting());
        drop(writer);
        turn.end();
        slot.take().unwrap_or(Err(PrivateFileError::Busy { path: folder }))
    }

    /// Writes the grants of several calls at once. If that fails, each is written alone, so that
    /// no call fails because of another.
    fn write_queued(&self, writer: &GrantWriter<'_>, queued: Vec<QueuedGrants>) {
        let all: Vec<&[StoredGrant]> = queued.iter().map(|queued| &*queued.grants).collect();
        match self.write_sets(writer, &all) {
            Ok(results) => {
                for (queued, kept) in queued.iter().zip(results) {
                    queued.slot.set(Ok(kept));
                }
            }
            Err(error) if queued.len() == 1 => queued[0].slot.set(Err(error)),
            Err(_) => {
                for queued in &queued {
                    let alone = self.write_sets(writer, &[&queued.grants]);
                    queued.slot.set(alone.map(|mut kept| kept.pop().unwrap_or_default()));
                }
            }
        }
    }

    /// Adds sets of grants to the file in one write; returns each set as it is stored.
    fn write_sets(
        &self,
        writer: &GrantWriter<'_>,
        sets: &[&[StoredGrant]],
    ) -> Result<Vec<Vec<StoredGrant>>, PrivateFileError> {
        let mut approvals = self.read_current(writer)?;
        // A known id may be used to revoke its grant, so no later grant replaces it, even if the
        // clock went back.
        let mut add = |new: &StoredGrant| {
            if let Some(known) = approvals.iter().find(|known| known.is_same_grant(new)) {
                return known.clone();
            }
            approvals.push(new.clone());
            new.clone()
        };
        let kept = sets.iter().map(|set| set.iter().map(&mut add).collect()).collect();
        writer.replace_all(&approvals)?;
        Ok(kept)
    }

    /// Returns the grants of all workspaces, the oldest first.
    ///
    /// # Errors
    ///
    /// Fails when the file is not trusted, is corrupt, or cannot be read.
    pub fn list(&self) -> Result<Vec<StoredGrant>, PrivateFileError> {
        let Some(folder) = self.folder.find_folder()? else { return Ok(Vec::new()) };
        let found = file::read_or_set_aside(&folder, LOCK_TIMEOUT)?;
        Ok(found.map(|(approvals, _)| dedup_grants(approvals)).unwrap_or_default())
    }

    /// Revokes the grant with this id, in any workspace; returns `false` when there is none.
    ///
    /// # Errors
    ///
    /// Fails like [`add_grants`](Self::add_grants).
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
        // Reading does not wait for the lock; the next read sees the change.
        let patience = Duration::ZERO;
        let found = folder.map_or(Ok(None), |folder| file::read_or_set_aside(&folder, patience))?;
        let (approvals, version) = found.unzip();
        let here = approvals.into_iter().flatten().filter(|approval| approval.applies_to(site));
        seen.grants = here.collect();
        seen.version = version;
        Ok(())
    }

    /// Returns the workspace, as long as its folder is the one that was there at the start.
    fn check_workspace(&self) -> Result<&WorkspaceIdentity, PrivateFileError> {
        let now = WorkspaceIdentity::from_path(&self.workspace);
        let site = self.site.as_ref().filter(|site| now.as_ref() == Some(site));
        site.ok_or_else(|| PrivateFileError::WorkspaceReplaced { path: self.workspace.clone() })
    }

    /// Returns the stored grants before a change.
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

/// Returns the error and its cause in one line.
fn describe_error(error: &PrivateFileError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
