//! From an entry to the configuration of the MCP client, with the values of its references.

use std::path::PathBuf;

use tool_sdk_mcp::{
    ClientFeatures, HttpEndpoint, InvalidServerConfig, RemoteError, ServerCommand, ServerConfig,
    TransportConfig,
};

use super::{AllowedQuestion, ServerEntry, parse_seconds};
use crate::Io;
use crate::exit::{CommandError, Result};
use crate::mcp::references::expand_references;
use crate::mcp::server_folders::ServerFolders;

impl ServerEntry {
    /// Builds the server configuration. `folders` are the roots that the server may ask for, and
    /// the limits of its sandbox.
    pub(crate) fn to_server_config(
        &self,
        folders: &ServerFolders,
        io: &Io<'_>,
    ) -> Result<ServerConfig> {
        if self.enabled == Some(false) {
            // A disabled server needs none of its variables.
            let config = self
                .with_literal_url()
                .build_config(folders, |_| Some(String::new()))
                .map_err(CommandError::config)?;
            return Ok(config.enabled(false));
        }
        let var = |name: &str| io.env_var(name)?.into_string().ok();
        if let Some(missing) = self.needed_variables().into_iter().find(|it| var(it).is_none()) {
            return ServerConfig::new(self.name.clone(), missing_variable_transport(&missing))
                .map_err(CommandError::config);
        }
        let config = self.build_config(folders, var).map_err(CommandError::config)?;
        Ok(config.client_features(self.question_policy(&folders.roots)))
    }

    fn question_policy(&self, roots: &[PathBuf]) -> ClientFeatures {
        self.questions.iter().fold(ClientFeatures::none(), |answered, question| match question {
            AllowedQuestion::Forms => answered.elicitation(),
            AllowedQuestion::Roots => answered.roots(roots),
            AllowedQuestion::Urls => answered.urls(),
        })
    }

    pub(super) fn build_config(
        &self,
        folders: &ServerFolders,
        var: impl Fn(&str) -> Option<String>,
    ) -> std::result::Result<ServerConfig, InvalidServerConfig> {
        let transport = match (&self.url, &self.command) {
            (Some(url), _) => self.http_transport(url, &var)?.into(),
            (None, command) => {
                self.stdio_transport(command.as_deref().unwrap_or_default(), folders, &var)
            }
        };
        let mut config = ServerConfig::new(self.name.clone(), transport)?;
        if let Some(time) = self.startup_timeout.and_then(parse_seconds) {
            config = config.startup_timeout(time);
        }
        if let Some(time) = self.call_timeout.and_then(parse_seconds) {
            config = config.call_timeout(time);
        }
        if let Some(only) = &self.enabled_tools {
            config = config.only_tools(only);
        }
        Ok(config
            .without_tools(&self.disabled_tools)
            .trust_annotations(self.trust_annotations.unwrap_or(false)))
    }

    fn http_transport(
        &self,
        url: &str,
        var: &impl Fn(&str) -> Option<String>,
    ) -> std::result::Result<HttpEndpoint, InvalidServerConfig> {
        let mut endpoint = HttpEndpoint::new(&expand_references(url, var))?;
        if let Some(oauth) = &self.oauth {
            endpoint = endpoint.oauth(oauth.to_settings(var)?);
        }
        for (name, value) in &self.headers {
            endpoint = endpoint.header(name, &expand_references(value, var))?;
        }
        Ok(match self.bearer_env.as_deref().and_then(var) {
            Some(token) => endpoint.bearer_token(token),
            None => endpoint,
        })
    }

    /// Returns the URL with the values of its references.
    pub(crate) fn expanded_url(&self, io: &Io<'_>) -> Option<String> {
        let var = |name: &str| io.env_var(name)?.into_string().ok();
        self.url.as_ref().map(|url| expand_references(url, var))
    }

    fn stdio_transport(
        &self,
        command: &str,
        folders: &ServerFolders,
        var: &impl Fn(&str) -> Option<String>,
    ) -> TransportConfig {
        let expand = |text: &str| expand_references(text, var);
        let args = self.args.iter().map(|arg| expand(arg));
        let mut launch = ServerCommand::new(expand(command), args);
        if let Some(mode) = self.sandbox {
            let policy = folders.sandbox_policy(mode, self.sandbox_level.unwrap_or_default());
            launch = launch.sandbox(policy.with_network(self.sandbox_network.unwrap_or_default()));
        }
        for name in &self.env_from {
            launch = launch.env(name, var(name).unwrap_or_default());
        }
        for (name, value) in &self.env {
            launch = launch.env(name, expand(value));
        }
        if let Some(time) = self.exit_timeout.and_then(parse_seconds) {
            launch = launch.exit_timeout(time);
        }
        match &self.cwd {
            Some(folder) => {
                let written = folder.to_str().map(|folder| PathBuf::from(expand(folder)));
                launch.current_dir(written.unwrap_or_else(|| folder.clone())).into()
            }
            None => launch.into(),
        }
    }
}

/// Returns a transport that fails because an environment variable is not set. The error is only
/// reported when the server is needed, so that other servers still work.
fn missing_variable_transport(variable: &str) -> TransportConfig {
    let why = format!(
        "it needs the variable `{}`, which is not set in the environment of this program; set it \
         there, or write `enabled = false`",
        variable.escape_debug()
    );
    TransportConfig::custom(move || {
        let error = RemoteError::connection(&why).not_run();
        async move { Err(error) }
    })
}
