//! One table `[workers.NAME]`, and the connection that it describes.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tool_sdk_remote::internal::{name_prefix, shared_prefix_message};
use tool_sdk_remote::{
    Namespace, NatsConfig, PermitSigner, RemoteError, ToolPins, Workers, WorkersConfig,
};

use crate::exit::{CommandError, Result};
use crate::settings::TomlValue;
use crate::{Io, input};

/// The limit of a file with a secret, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// The configured workers.
pub(crate) type WorkerEntries = Vec<WorkerEntry>;

/// The configuration of the workers of one namespace.
#[derive(Debug)]
pub(crate) struct WorkerEntry {
    namespace: Namespace,
    keys: WorkerKeys,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkerKeys {
    url: String,
    /// The file that holds the permit key.
    key_file: Option<PathBuf>,
    /// The environment variable that holds the permit key.
    key_env: Option<String>,
    credentials_file: Option<PathBuf>,
    tls_ca_file: Option<PathBuf>,
    #[serde(default)]
    trust_definitions: bool,
}

/// Parses the table `[workers]`.
pub(crate) fn parse_workers(entries: Vec<(String, TomlValue<'_, '_>)>) -> WorkerEntries {
    let mut parsed = WorkerEntries::new();
    for (name, part) in entries {
        let entry = part.read_with(|keys: WorkerKeys| parse_entry(&name, keys, &parsed));
        parsed.extend(entry);
    }
    parsed
}

fn parse_entry(
    name: &str,
    keys: WorkerKeys,
    others: &[WorkerEntry],
) -> std::result::Result<WorkerEntry, String> {
    let namespace: Namespace = name.parse().map_err(|error: RemoteError| error.to_string())?;
    NatsConfig::new(keys.url.clone()).map_err(|error| error.to_string())?;
    let prefix = name_prefix(&namespace);
    if let Some(other) = others.iter().find(|other| name_prefix(&other.namespace) == prefix) {
        return Err(shared_prefix_message(other.namespace.as_str(), &namespace));
    }
    match keys.key_file.is_some() == keys.key_env.is_some() {
        true => Err("it needs either `key_file` or `key_env`".to_owned()),
        false => Ok(WorkerEntry { namespace, keys }),
    }
}

/// The workers of a namespace, with their keys.
pub(super) struct WorkerServer {
    pub(super) namespace: Namespace,
    nats: NatsConfig,
    config: WorkersConfig,
}

impl WorkerServer {
    pub(super) async fn connect(&self) -> std::result::Result<Workers, RemoteError> {
        Workers::connect(&self.nats, self.config.clone()).await
    }

    /// Connects in the background, and tries again until the server is there.
    pub(super) fn connect_in_background(&self) -> Workers {
        Workers::connect_in_background(&self.nats, self.config.clone())
    }

    /// Returns the address of the NATS server.
    pub(super) fn url(&self) -> &str {
        self.nats.url()
    }
}

impl WorkerEntry {
    /// Reads the keys.
    pub(super) fn to_server(&self, pins: &ToolPins, io: &Io<'_>) -> Result<WorkerServer> {
        let Self { namespace, keys } = self;
        let key = match (&keys.key_file, &keys.key_env) {
            (Some(file), _) => read_secret_file(file, io)?,
            (None, Some(variable)) => read_secret_variable(variable, io)?,
            (None, None) => String::new(),
        };
        let signer = PermitSigner::from_key(&key).map_err(|error| {
            CommandError::config(format_args!("the key of `workers.{namespace}`: {error}"))
        })?;
        let mut nats = NatsConfig::new(keys.url.clone()).map_err(CommandError::config)?;
        if let Some(file) = &keys.credentials_file {
            nats = nats.credentials(read_secret_file(file, io)?);
        }
        if let Some(file) = &keys.tls_ca_file {
            nats = nats.root_certificates(io.resolve_path(file));
        }
        let config = WorkersConfig::new(namespace.clone(), signer).pins(pins.clone());
        let config = match keys.trust_definitions {
            true => config.trust_definitions(),
            false => config,
        };
        Ok(WorkerServer { namespace: namespace.clone(), nats, config })
    }
}

/// Reads a file that holds a secret.
pub(crate) fn read_secret_file(file: &Path, io: &Io<'_>) -> Result<String> {
    let path = io.resolve_path(file);
    let mut opened = File::open(&path).map_err(|error| {
        CommandError::config(format_args!("cannot open `{}`: {error}", path.display()))
    })?;
    input::read_text(&mut opened, &format!("`{}`", path.display()), MAX_BYTES)
}

fn read_secret_variable(variable: &str, io: &Io<'_>) -> Result<String> {
    let value = io.env_var(variable).and_then(|value| value.into_string().ok());
    value.ok_or_else(|| {
        CommandError::config(format_args!("the variable `{variable}` is not set"))
            .hint("it must hold the permit key of the workers")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ConfigErrors;

    /// Parses workers; returns the formatted errors.
    fn errors_of(text: &str) -> String {
        let errors = ConfigErrors::new(text);
        let table = errors.parse_root().and_then(|root| root.into_table_with(&["workers"]));
        if let Some(mut table) = table {
            parse_workers(table.take_named_values("workers"));
        }
        errors.format_errors("f")
    }

    #[test]
    fn rejects_invalid_entries() {
        for (name, keys, words) in [
            ("a", "key_env = 'K'", "missing field `url`"),
            ("a", "url = 'nats://a'", "needs either `key_file` or `key_env`"),
            ("a", "url = 'nats://a'\nkey_env = 'K'\nkey_file = 'f'", "needs either"),
            ("a", "url = 'http://a'\nkey_env = 'K'", "must begin with nats:// or tls://"),
            ("a", "url = 'nats://me:secret@a'\nkey_env = 'K'", "file of credentials"),
            ("a", "url = 'nats://a'\nkey_env = 'K'\nkey = 'x'", "unknown field `key`"),
            ("A", "url = 'nats://a'\nkey_env = 'K'", "`A` is not a namespace"),
        ] {
            let errors = errors_of(&format!("[workers.{name}]\n{keys}\n"));
            assert!(errors.contains(words), "{keys}: {errors}");
        }
    }

    #[test]
    fn rejects_namespaces_with_the_same_tool_names() {
        let entry = |name: &str| format!("[workers.{name}]\nurl = 'nats://a'\nkey_env = 'K'\n");
        assert_eq!(errors_of(&(entry("gpu-pool") + &entry("gpu-pool2"))), "");
        let errors = errors_of(&(entry("gpu-pool") + &entry("gpu_pool")));
        assert!(
            errors.contains("the namespaces `gpu-pool` and `gpu_pool` cannot be used together"),
            "{errors}"
        );
        assert!(errors.contains("`workers.gpu_pool`"), "{errors}");
    }
}
