//! What the servers of a manager are authorized with.

use std::sync::Arc;

use super::{CredentialStore, TokenSource};
use crate::client::config::TransportConfig;

/// What the servers of a manager are authorized with.
#[derive(Clone)]
pub(crate) struct ManagerAuthorization {
    pub(crate) credentials: CredentialStore,
    /// The command by which the user authorizes a server, without the server's name.
    pub(crate) login_command: String,
}

impl Default for ManagerAuthorization {
    fn default() -> Self {
        let (credentials, login_command) = (CredentialStore::in_memory(), "mcp login".to_owned());
        Self { credentials, login_command }
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
