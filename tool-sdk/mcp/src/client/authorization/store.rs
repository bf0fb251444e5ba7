//! Stored credentials: for each server the tokens, and the client and the authorization server that
//! they belong to.
//!
//! The file is private to the user, locked while it is written, and replaced atomically. It is a
//! plain file with mode `0600`, as that of other programs of this kind, not a keychain.
//!
//! **Invariant:** credentials are found by the URL of their server only, and name their issuer.
//! `Debug` shows none of them.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac_sha256::Hash;
use serde::{Deserialize, Serialize};
use tool_sdk_core::{
    PrivateFileError,
    internal::private_file::{self, FileLock, FileVersion, LOCK_TIMEOUT, PrivateFolder},
};
use tool_sdk_net::Url;

use super::error::AuthorizationError;
use super::metadata::is_secure_url;
use super::registration::RegisteredClient;

const FILE_NAME: &str = "credentials.json";
const LOCK_NAME: &str = "credentials.lock";
const FORMAT_VERSION: u32 = 1;

/// The largest file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// What is stored of one server.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ServerCredentials {
    /// The authorization server that issued everything else.
    pub(super) issuer: String,
    /// The resource for which the tokens are.
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client: RegisteredClient,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) access_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// In seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// The scopes that were requested at the last login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) scopes: Vec<String>,
    /// The scopes that a request lacked since then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) missing_scopes: Vec<String>,
}

impl ServerCredentials {
    pub(super) fn token_endpoint(&self) -> Result<Url, AuthorizationError> {
        parse_stored_url(&self.token_endpoint)
    }

    pub(super) fn revocation_endpoint(&self) -> Result<Option<Url>, AuthorizationError> {
        self.revocation_endpoint.as_deref().map(parse_stored_url).transpose()
    }
}

fn parse_stored_url(text: &str) -> Result<Url, AuthorizationError> {
    let url = Url::parse(text).ok().filter(is_secure_url);
    let invalid = || AuthorizationError::Discovery("a stored endpoint is not an https URL".into());
    url.ok_or_else(invalid)
}

/// Credentials by the URL of their server.
type CredentialsByServer = BTreeMap<String, ServerCredentials>;

/// The credentials of all servers of a host. Clones share them.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{CredentialStore, ServerManager};
/// use tool_sdk::{Pipeline, Registry};
///
/// # let folder = tempfile::tempdir()?;
/// let credentials = CredentialStore::in_folder(folder.path().join("mcp"));
/// let servers = ServerManager::for_pipeline(&Pipeline::new(Registry::default())).with_credentials(credentials);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct CredentialStore(Arc<CredentialStorage>);

#[derive(Default)]
struct CredentialStorage {
    folder: Option<PrivateFolder>,
    cache: Mutex<CredentialCache>,
    /// By server, held while its token is refreshed in this process.
    refresh_locks: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The credentials as read last, with the version of the file.
#[derive(Default)]
struct CredentialCache {
    servers: CredentialsByServer,
    version: Option<FileVersion>,
}

#[derive(Serialize, Deserialize)]
struct CredentialFile {
    version: u32,
    servers: CredentialsByServer,
}

impl fmt::Debug for CredentialStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialStore").field("folder", &self.0.folder).finish_non_exhaustive()
    }
}

/// Held while the token of a server is refreshed: no other task or process refreshes it.
pub(super) struct RefreshGuard {
    _task: tokio::sync::OwnedMutexGuard<()>,
    _process: Option<FileLock>,
}

impl CredentialStore {
    /// Returns a store that ends with the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Returns a store in `credentials.json` in this folder, which is created with mode `0700` when
    /// it is needed.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = Some(PrivateFolder::new(folder.into()));
        Self(Arc::new(CredentialStorage { folder, ..CredentialStorage::default() }))
    }

    /// Refuses to keep credentials in a folder inside of one of `roots`, where tools may write.
    /// Call it before the store is shared.
    #[must_use]
    pub fn not_inside(mut self, roots: &[PathBuf]) -> Self {
        if let Some(storage) = Arc::get_mut(&mut self.0)
            && let Some(folder) = &mut storage.folder
        {
            folder.add_writable_roots(roots);
        }
        self
    }

    /// Removes what is stored of the server at `url`, without revoking it; returns whether there was
    /// something.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or written.
    pub fn forget_server(&self, url: &str) -> Result<bool, PrivateFileError> {
        let Ok(server) = Url::parse(url) else { return Ok(false) };
        if self.load(&server)?.is_none() {
            return Ok(false);
        }
        let key = server_key(&server);
        self.update_blocking(|servers| servers.remove(&key).is_some())
    }

    /// Returns what is stored of a server.
    pub(super) fn load(&self, server: &Url) -> Result<Option<ServerCredentials>, PrivateFileError> {
        let mut cache = self.lock_cache();
        if let Some(folder) = &self.0.folder {
            cache.refresh(folder)?;
        }
        Ok(cache.servers.get(&server_key(server)).cloned())
    }

    /// Changes what is stored of a server: `change` gets it and returns what stays.
    pub(super) async fn update(
        &self,
        server: &Url,
        change: impl FnOnce(Option<ServerCredentials>) -> Option<ServerCredentials> + Send + 'static,
    ) -> Result<(), PrivateFileError> {
        let (store, key) = (self.clone(), server_key(server));
        let work = move || {
            store.update_blocking(|servers| {
                let changed = change(servers.remove(&key));
                servers.extend(changed.map(|changed| (key, changed)));
            })
        };
        let joined = tokio::task::spawn_blocking(work).await;
        joined.unwrap_or_else(|error| {
            let place = Path::new(FILE_NAME);
            Err(PrivateFileError::io("write", place)(io::Error::other(error)))
        })
    }

    /// Waits until no other task and no other process refreshes the token of this server. A lock file
    /// that cannot be used is ignored: at worst, the user has to log in again.
    pub(super) async fn lock_refresh(&self, server: &Url) -> RefreshGuard {
        let key = server_key(server);
        let task = self.refresh_lock_of(&key).lock_owned().await;
        let store = self.clone();
        let acquire = move || {
            let folder = store.0.folder.as_ref()?.create_folder().ok()?;
            private_file::acquire_lock(&folder.join(refresh_lock_name(&key)), LOCK_TIMEOUT).ok()
        };
        let process = tokio::task::spawn_blocking(acquire).await.ok().flatten();
        RefreshGuard { _task: task, _process: process }
    }

    fn refresh_lock_of(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.refresh_locks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(key.to_owned()).or_default())
    }

    /// Changes the credentials, in the file under its lock.
    fn update_blocking<T>(
        &self,
        change: impl FnOnce(&mut CredentialsByServer) -> T,
    ) -> Result<T, PrivateFileError> {
        let Some(folder) = &self.0.folder else {
            return Ok(change(&mut self.lock_cache().servers));
        };
        let folder = folder.create_folder()?;
        let _lock = private_file::acquire_lock(&folder.join(LOCK_NAME), LOCK_TIMEOUT)?;
        let path = folder.join(FILE_NAME);
        let mut servers = read_or_set_aside(&path)?.servers;
        let changed = change(&mut servers);
        write_credentials(&path, servers)?;
        *self.lock_cache() = read_credentials(&path)?;
        Ok(changed)
    }

    fn lock_cache(&self) -> MutexGuard<'_, CredentialCache> {
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialCache {
    /// Reads the file if it changed since the last time.
    fn refresh(&mut self, folder: &PrivateFolder) -> Result<(), PrivateFileError> {
        let Some(folder) = folder.find_folder()? else {
            *self = Self::default();
            return Ok(());
        };
        let path = folder.join(FILE_NAME);
        if !FileVersion::is_current(self.version.as_ref(), &path)? {
            *self = Self::default();
            *self = read_credentials(&path)?;
        }
        Ok(())
    }
}

/// Returns the key of a server: its URL without the fragment.
fn server_key(server: &Url) -> String {
    let mut server = server.clone();
    server.set_fragment(None);
    server.into()
}

/// Returns the name of the lock file for refreshes of the server with this key.
fn refresh_lock_name(key: &str) -> String {
    let digest = URL_SAFE_NO_PAD.encode(&Hash::hash(key.as_bytes())[..12]);
    format!("credentials-refresh-{digest}.lock")
}

/// Reads the file for an update. A file that cannot be parsed is set aside, not overwritten: a
/// later version of the program may be able to read it.
fn read_or_set_aside(path: &Path) -> Result<CredentialCache, PrivateFileError> {
    match read_credentials(path) {
        Err(PrivateFileError::Io { ref source, .. })
            if source.kind() == io::ErrorKind::InvalidData =>
        {
            let aside = private_file::set_aside(path)?;
            tracing::warn!(aside = %aside.display(), "the file of MCP credentials cannot be parsed and was set aside");
            Ok(CredentialCache::default())
        }
        read => read,
    }
}

fn read_credentials(path: &Path) -> Result<CredentialCache, PrivateFileError> {
    // The parser's words could repeat a token, so they are not part of the error.
    let invalid = || {
        let why = io::Error::new(io::ErrorKind::InvalidData, "it is not a file of credentials");
        PrivateFileError::io("understand", path)(why)
    };
    let Some(file) = private_file::open_private(path)? else {
        return Ok(CredentialCache::default());
    };
    let version = FileVersion::from_file(file, path)?;
    let mut bytes = Vec::new();
    version
        .file()
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .map_err(PrivateFileError::io("read", path))?;
    let read: CredentialFile = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
    match read.version {
        FORMAT_VERSION => Ok(CredentialCache { servers: read.servers, version: Some(version) }),
        _ => Err(invalid()),
    }
}

fn write_credentials(path: &Path, servers: CredentialsByServer) -> Result<(), PrivateFileError> {
    private_file::remove_unfinished(path);
    let written = CredentialFile { version: FORMAT_VERSION, servers };
    let bytes = serde_json::to_vec(&written)
        .map_err(|error| PrivateFileError::io("write", path)(error.into()))?;
    private_file::replace_file(path, |file| file.write_all(&bytes))
        .map_err(PrivateFileError::io("write", path))
}
