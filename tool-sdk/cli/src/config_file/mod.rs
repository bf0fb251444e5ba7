//! The configuration file: where it is found and what it contains.
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

use clap::ArgMatches;

#[cfg(all(test, feature = "mcp"))]
pub(super) use self::toml_reader::ConfigErrors;
pub(super) use self::toml_reader::TomlValue;
use super::exit::{CommandError, Result};
use super::{Io, args, input, mcp, serve};
use tool_sdk_core::AgentProfile;
use tool_sdk_core::{Mode, Rule};
use tool_sdk_hooks::ExternalHooks;
use tool_sdk_process::sandbox;
use tool_sdk_workspace::Durability;

/// The limit of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The `[hooks]` table: commands that run before and after calls.
#[derive(Debug)]
pub(super) struct HooksConfig {
    pub(super) commands: ExternalHooks,
    /// Mistakes in the table that do not disable a deciding hook.
    pub(super) warnings: Vec<String>,
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
    /// The only folders in which tools may write.
    pub(super) writable: Option<Vec<PathBuf>>,
    pub(super) hooks: Option<HooksConfig>,
    /// The path of the audit log.
    pub(super) audit: Option<PathBuf>,
    /// The configured MCP servers.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "there is no MCP client"))]
    pub(super) servers: mcp::ServerEntries,
    /// The settings of `serve`.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nothing is served"))]
    pub(super) serve: serve::ServeConfig,
    /// Whether changed files are synced to disk before their call ends.
    pub(super) durable: Option<Durability>,
    /// Whether directory walks stay on one file system.
    pub(super) one_device: Option<bool>,
    pub(super) sandbox: Option<sandbox::SandboxMode>,
    pub(super) sandbox_level: Option<sandbox::SandboxLevel>,
    pub(super) sandbox_network: Option<bool>,
}

/// Loads the configuration that the command line or the environment names, or else the user's
/// own, if there is one.
///
/// The workspace is never searched for a configuration: a tool that can write there must not be
/// able to change what is allowed.
pub(super) fn load(levels: &[&ArgMatches], io: &Io<'_>) -> Result<ConfigFile> {
    let named = named_path(levels, io);
    let Some(path) = named.clone().or_else(|| default_config_path(io)) else {
        return Ok(ConfigFile::default());
    };
    match File::open(&path) {
        Err(error) if named.is_none() && is_missing(&error) => Ok(ConfigFile::default()),
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

/// Returns the path of the configuration file, whether or not it exists.
pub(super) fn config_path(levels: &[&ArgMatches], io: &Io<'_>) -> Option<PathBuf> {
    named_path(levels, io).or_else(|| default_config_path(io))
}

/// Returns the path if it can be meant literally.
///
/// # Errors
///
/// Fails for an empty path, which would be the current folder, and for a path that starts with
/// `~`, which only a shell expands.
pub(super) fn check_path(path: PathBuf) -> std::result::Result<PathBuf, &'static str> {
    match path.components().next() {
        None => Err("it is empty; write `.` for the folder that the program runs in"),
        Some(first) if first.as_os_str() == "~" => {
            Err("`~` is not expanded here; write the path of the home folder, or `./~`")
        }
        Some(_) => Ok(path),
    }
}

fn named_path(levels: &[&ArgMatches], io: &Io<'_>) -> Option<PathBuf> {
    levels
        .iter()
        .rev()
        .find_map(|matches| matches.get_one::<PathBuf>(args::CONFIG).cloned())
        .or_else(|| io.env_var("TOOL_SDK_CONFIG").map(PathBuf::from))
        .map(|path| io.resolve_path(path))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn default_config_path(io: &Io<'_>) -> Option<PathBuf> {
    let absolute = |name| io.env_var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .or_else(|| absolute("APPDATA"))
        .map(|base| base.join(Path::new("tool-sdk/config.toml")))
}
