//! What the servers of a manager are authorized with.

use std::sync::Arc;

use super::{CredentialStore, TokenSource};
use crate::client::config::TransportConfig;

/// What the servers of a manager are authorized with.
#[derive(Clone)]
pub(crate) struct ManagerAuthorization {
    pub(crate) credentials: CredentialStore,
    /// The command that has `login` and `inspect`, for messages to the user.
    pub(crate) mcp_command: String,
}

impl Default for ManagerAuthorization {
    fn default() -> Self {
        Self { credentials: CredentialStore::in_memory(), mcp_command: "mcp".to_owned() }
    }
}

impl ManagerAuthorization {
    /// Returns the tokens of a server over HTTP, unless the host configured what authorizes it.
    pub(crate) fn token_source(&self, transport: &TransportConfig) -> Option<Arc<TokenSource>> {
        let TransportConfig::Http(endpoint) = transport else { return None };
        let store = self.credentials.clone();
        let build = || TokenSource::new(&endpoint.url, &endpoint.oauth, store);
        (!endpoint.has_own_token()).then(build).map(Arc::new)
    }
}
