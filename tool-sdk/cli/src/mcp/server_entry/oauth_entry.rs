//! How the program identifies itself to the authorization server of an MCP server.

use serde::Deserialize;
use toml_edit::{Array, InlineTable};
use tool_sdk_mcp::{InvalidServerConfig, OAuthSettings};

/// The table `oauth` of a server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OAuthEntry {
    pub(crate) client_id: Option<String>,
    /// The environment variable that holds the secret of the client.
    pub(crate) client_secret_env: Option<String>,
    pub(crate) client_metadata_url: Option<String>,
    pub(crate) issuer: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) redirect_port: Option<u16>,
}

impl OAuthEntry {
    /// Returns the entry if it says anything.
    pub(crate) fn if_any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    pub(super) fn to_settings(
        &self,
        var: &impl Fn(&str) -> Option<String>,
    ) -> Result<OAuthSettings, InvalidServerConfig> {
        let mut settings = OAuthSettings::default().scopes(&self.scopes);
        if let Some(id) = &self.client_id {
            settings = settings.client_id(id);
        }
        if let Some(secret) = self.client_secret_env.as_deref().and_then(var) {
            settings = settings.client_secret(secret);
        }
        if let Some(url) = &self.client_metadata_url {
            settings = settings.client_metadata_url(url)?;
        }
        if let Some(issuer) = &self.issuer {
            settings = settings.issuer(issuer)?;
        }
        Ok(match self.redirect_port {
            Some(port) => settings.redirect_port(port),
            None => settings,
        })
    }

    pub(super) fn to_toml(&self) -> InlineTable {
        let mut table = InlineTable::new();
        let texts = [
            ("client_id", &self.client_id),
            ("client_secret_env", &self.client_secret_env),
            ("client_metadata_url", &self.client_metadata_url),
            ("issuer", &self.issuer),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                table.insert(key, text.into());
            }
        }
        if !self.scopes.is_empty() {
            table.insert("scopes", self.scopes.iter().collect::<Array>().into());
        }
        if let Some(port) = self.redirect_port {
            table.insert("redirect_port", i64::from(port).into());
        }
        table
    }
}
