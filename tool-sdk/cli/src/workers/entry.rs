//! One table `[workers.NAME]`, and the connection that it describes.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
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
    entries.into_iter().filter_map(parse_entry).collect()
}

fn parse_entry((name, part): (String, TomlValue<'_, '_>)) -> Option<WorkerEntry> {
    part.read_with(|keys: WorkerKeys| {
        let namespace: Namespace = name.parse().map_err(|error: RemoteError| error.to_string())?;
        NatsConfig::new(keys.url.clone()).map_err(|error| error.to_string())?;
        match keys.key_file.is_some() == keys.key_env.is_some() {
            true => Err("it needs either `key_file` or `key_env`".to_owned()),
            false => Ok(WorkerEntry { namespace, keys }),
        }
    })
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
