//! The tokens that `token create` makes: a file of the user with their digests and scopes.
//!
//! A running server reads the file again when it changed, so that a token counts from the moment
//! that it is made until it is revoked.
//!
//! **Invariant:** the file contains no token, and a file that cannot be read grants nothing.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use tool_sdk_core::internal::private_file::{
    self, FileVersion, LOCK_TIMEOUT, PrivateFolder, acquire_lock, append_to, open_private,
};
use tool_sdk_core::internal::sha256_hex;
use tool_sdk_core::{Principal, PrivateFileError};
use tool_sdk_http::{Token, TokenIdentity, TokenScope, TokenScopes, TokenVerifier};

use super::settings::Settings;

/// The limit of the file in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
const FILE_NAME: &str = "tokens.json";

/// One token in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredToken {
    /// The first digits of the digest.
    pub(super) id: String,
    sha256: String,
    pub(super) scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) principal: Option<String>,
    /// Seconds since 1970.
    pub(super) created: u64,
}

impl StoredToken {
    fn new(token: &Token, scopes: TokenScopes, principal: Option<String>) -> Self {
        let sha256 = sha256_hex(token.reveal().as_bytes());
        Self {
            id: sha256.chars().take(8).collect(),
            sha256,
            scopes: scopes.iter().map(|scope| scope.to_string()).collect(),
            principal,
            created: UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()),
        }
    }

    /// A scope of a later version grants nothing.
    fn token_scopes(&self) -> TokenScopes {
        self.scopes.iter().filter_map(|scope| scope.parse::<TokenScope>().ok()).collect()
    }

    fn identity(&self) -> TokenIdentity {
        let principal = self.principal.as_deref().map(Principal::new);
        TokenIdentity { principal, scopes: self.token_scopes() }
    }
}

/// The file of tokens.
pub(super) struct TokenFile {
    folder: PrivateFolder,
    /// What was read last.
    cache: Mutex<Option<(FileVersion, Vec<StoredToken>)>>,
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenFile")
    }
}

impl TokenFile {
    /// Returns the file in the state folder of the settings, for a server; `None` without such a
    /// folder. A folder that the tools of the server can write to is not trusted.
    pub(super) fn for_server(settings: &Settings) -> Option<Self> {
        let mut tokens = Self::in_state_folder(settings)?;
        tokens.folder.add_writable_roots(&settings.roots);
        Some(tokens)
    }

    /// Returns the file in the state folder of the settings, for a command that runs no tool, so
    /// that the roots do not matter.
    pub(super) fn in_state_folder(settings: &Settings) -> Option<Self> {
        let folder = PrivateFolder::new(settings.state_dir.as_ref()?.join("http"));
        Some(Self { folder, cache: Mutex::default() })
    }

    /// Makes a token and stores its digest.
    pub(super) fn create_token(
        &self,
        scopes: TokenScopes,
        principal: Option<String>,
    ) -> Result<(Token, StoredToken), PrivateFileError> {
        let path = self.folder.create_folder()?.join(FILE_NAME);
        let token = Token::random().map_err(PrivateFileError::io("make a token for", &path))?;
        let stored = StoredToken::new(&token, scopes, principal);
        change_file(&path, |tokens| tokens.push(stored.clone()))?;
        Ok((token, stored))
    }

    /// Removes a token; returns whether there was one with this id.
    pub(super) fn revoke_token(&self, id: &str) -> Result<bool, PrivateFileError> {
        let Some(folder) = self.folder.find_folder()? else { return Ok(false) };
        let mut is_found = false;
        change_file(&folder.join(FILE_NAME), |tokens| {
            tokens.retain(|token| token.id != id || std::mem::replace(&mut is_found, true));
        })?;
        Ok(is_found)
    }

    /// Returns the tokens, the oldest first.
    pub(super) fn list_tokens(&self) -> Result<Vec<StoredToken>, PrivateFileError> {
        let Some(folder) = self.folder.find_folder()? else { return Ok(Vec::new()) };
        let path = folder.join(FILE_NAME);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((version, tokens)) = &*cache
            && FileVersion::is_current(Some(version), &path)?
        {
            return Ok(tokens.clone());
        }
        *cache = None;
        let Some(file) = open_private(&path)? else { return Ok(Vec::new()) };
        let version = FileVersion::from_file(file, &path)?;
        let tokens = read_tokens(version.file(), &path)?;
        *cache = Some((version, tokens.clone()));
        Ok(tokens)
    }

    /// Returns the tokens; none when they cannot be read.
    fn readable_tokens(&self) -> Vec<StoredToken> {
        self.list_tokens().unwrap_or_else(|error| {
            tracing::warn!("cannot read the tokens: {error}");
            Vec::new()
        })
    }
}

fn read_tokens(file: &File, path: &Path) -> Result<Vec<StoredToken>, PrivateFileError> {
    let mut text = String::new();
    let read = file.take(MAX_BYTES).read_to_string(&mut text);
    read.map_err(PrivateFileError::io("read", path))?;
    serde_json::from_str(&text)
        .map_err(|error| PrivateFileError::io("read", path)(std::io::Error::other(error)))
}

/// Changes the file under its lock.
fn change_file(
    path: &Path,
    change: impl FnOnce(&mut Vec<StoredToken>),
) -> Result<(), PrivateFileError> {
    let _lock = acquire_lock(&path.with_extension("lock"), LOCK_TIMEOUT)?;
    let mut tokens = match open_private(path)? {
        Some(file) => read_tokens(&file, path)?,
        None => Vec::new(),
    };
    change(&mut tokens);
    let text = serde_json::to_string_pretty(&tokens).unwrap_or_default();
    private_file::remove_unfinished(path);
    private_file::replace_file(path, |file| append_to(file, text.as_bytes()))
        .map_err(PrivateFileError::io("write", path))
}

/// A verifier that shares the file with the command.
impl TokenVerifier for TokenFile {
    /// Digests are compared, so the time tells nothing about the tokens.
    fn verify_token(&self, token: &str) -> Option<TokenIdentity> {
        let digest = sha256_hex(token.as_bytes());
        let found = self.readable_tokens().into_iter().find(|it| it.sha256 == digest)?;
        Some(found.identity())
    }

    fn has_approver(&self, principal: Option<&Principal>) -> bool {
        let user = principal.map(Principal::name);
        self.readable_tokens().iter().any(|token| {
            let scopes = token.token_scopes();
            scopes.contains(TokenScope::Administration)
                || scopes.contains(TokenScope::Approvals) && token.principal.as_deref() == user
        })
    }
}
