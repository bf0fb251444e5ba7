//! The configuration file.
//!
//! `parse` turns its text into a [`ConfigFile`], and `toml_reader` walks TOML values and collects
//! errors with their lines.
//!
//! ```toml
//! mode = "auto"
//! allow = ["run(git status)"]
//!
//! [[rules]]
//! permission = "run"
//! pattern = "git push *"
//! action = "deny"
//! locked = true
//! ```
//!
//! **Invariant:** everything that cannot be parsed is an error with its line, and all errors are
//! reported. A rule that got lost could allow a call.

mod parse;
mod toml_reader;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tool_sdk_core::{AgentProfile, Mode, Rule};
use tool_sdk_hooks::ExternalHooks;
use tool_sdk_process::sandbox;
use tool_sdk_workspace::Durability;

#[cfg(all(test, feature = "mcp"))]
pub(crate) use self::toml_reader::ConfigErrors;
pub(crate) use self::toml_reader::TomlValue;
use super::limits::FileLimits;
use super::web::FileWeb;
use crate::exit::{CommandError, Result};
use crate::secrets::SecretsCommand;
use crate::{chat, input, mcp, serve, workers};

/// The limit of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The `[hooks]` table: commands that run before and after calls.
#[derive(Debug)]
pub(crate) struct HooksConfig {
    pub(crate) commands: ExternalHooks,
    /// Mistakes in the table that do not disable a deciding hook.
    pub(crate) warnings: Vec<String>,
}

impl HooksConfig {
    /// Sets the folder in which the commands run.
    pub(super) fn in_folder(self, folder: &Path) -> Self {
        Self { commands: self.commands.in_folder(folder), ..self }
    }
}

/// The parsed configuration file.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    /// The rules in the order of the file.
    pub(super) rules: Vec<Rule>,
    pub(super) mode: Option<Mode>,
    pub(super) safe_commands: Option<bool>,
    pub(super) agents: Vec<AgentProfile>,
    /// The selected variant of each group of tools.
    pub(super) variants: BTreeMap<String, String>,
    /// Patterns of the experimental tools that are enabled.
    pub(super) experimental: Vec<String>,
    /// Categories and name patterns of the tools that are left out.
    pub(super) disable: Vec<String>,
    /// The command that prints secrets.
    pub(super) secrets_command: Option<SecretsCommand>,
    /// The configured remote workers.
    pub(super) workers: workers::WorkerEntries,
    /// The only folders in which tools may write.
    pub(super) writable: Option<Vec<PathBuf>>,
    pub(super) hooks: Option<HooksConfig>,
    /// The path of the audit log.
    pub(super) audit: Option<PathBuf>,
    /// The configured MCP servers.
    pub(super) servers: mcp::ServerEntries,
    /// The settings of `chat`.
    pub(super) chat: chat::ChatConfig,
    /// The settings of `serve`.
    pub(super) serve: serve::ServeConfig,
    /// Whether changed files are synced to disk before their call ends.
    pub(super) durable: Option<Durability>,
    /// Whether directory walks stay on one file system.
    pub(super) one_device: Option<bool>,
    /// Whether the calls of sessions are recorded.
    pub(super) record_sessions: Option<bool>,
    pub(super) limits: FileLimits,
    /// The settings of tools on the web.
    #[cfg_attr(not(feature = "net"), expect(dead_code, reason = "it is empty"))]
    pub(super) web: FileWeb,
    pub(super) sandbox: Option<sandbox::SandboxMode>,
    pub(super) sandbox_level: Option<sandbox::SandboxLevel>,
    pub(super) sandbox_network: Option<bool>,
    /// Whether commands that the sandbox fully confines run without an approval.
    pub(super) sandbox_auto_allow: Option<bool>,
}

/// Loads the file. A missing one is empty, unless it `must_exist`.
pub(super) fn load(path: Option<&Path>, must_exist: bool) -> Result<ConfigFile> {
    let Some(path) = path else { return Ok(ConfigFile::default()) };
    match File::open(path) {
        Err(error) if !must_exist && is_missing(&error) => Ok(ConfigFile::default()),
        Err(error) => {
            Err(CommandError::config(format_args!("cannot open `{}`: {error}", path.display())))
        }
        Ok(mut file) => {
            let name = path.display().to_string();
            let text = input::read_text(&mut file, &format!("`{name}`"), MAX_BYTES)?;
            parse::parse_config(&text, &name)
                .map_err(|mistakes| CommandError::config(mistakes.format_errors(&name)))
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
