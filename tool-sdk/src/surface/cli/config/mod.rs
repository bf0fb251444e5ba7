//! The configuration file: rules and a mode, as a person writes them down.
//!
//! Here is where it is found and what it says; `read` makes the one of the other, and `part`
//! knows how TOML is taken apart.
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
//! **Invariant:** what is not understood is an error with its place, and all of it is told. A
//! rule that got lost could be a call that runs.

mod part;
mod read;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

#[cfg(all(test, feature = "mcp"))]
pub(super) use self::part::Mistakes;
pub(super) use self::part::Part;
use super::exit::{Failure, Result};
use super::{Io, grammar, input, mcp, serve};
use crate::hook::external::ExternalHooks;
use crate::permission::{Mode, Rule};
use crate::process::sandbox;
use crate::toolset::AgentProfile;
use crate::workspace::Durability;

/// The most that is read: more is no configuration.
const MAX_BYTES: u64 = 1 << 20;

/// Commands that look at calls.
#[derive(Debug)]
pub(super) struct Hooks {
    pub(super) commands: ExternalHooks,
    /// What among them is not understood, and costs no guard.
    pub(super) remarks: Vec<String>,
}

/// What a configuration says.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// In the order in which they are written.
    pub(super) rules: Vec<Rule>,
    pub(super) mode: Option<Mode>,
    pub(super) safe_commands: Option<bool>,
    pub(super) agents: Vec<AgentProfile>,
    /// Which variant of which group of tools.
    pub(super) variants: BTreeMap<String, String>,
    /// The experiments that take part.
    pub(super) experimental: Vec<String>,
    /// The only folders in which something is written.
    pub(super) writable: Option<Vec<PathBuf>>,
    pub(super) hooks: Option<Hooks>,
    /// Where decisions and runs are written down.
    pub(super) audit: Option<PathBuf>,
    /// Servers whose tools are used.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "there is nobody to use them"))]
    pub(super) servers: mcp::Servers,
    /// Who may come in where the tools are served.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nothing is served"))]
    pub(super) principals: serve::Principals,
    /// Whether changed files are on the disk when their call ends.
    pub(super) durable: Option<Durability>,
    /// Whether who goes through a folder stays on one device.
    pub(super) one_device: Option<bool>,
    pub(super) sandbox: Option<sandbox::Mode>,
    pub(super) sandbox_level: Option<sandbox::Level>,
    pub(super) sandbox_network: Option<bool>,
}

/// The configuration that the command line or the environment names, else the user's own,
/// where there is one.
///
/// None is ever looked for in the workspace: whoever writes there must not be able to
/// change what is allowed.
pub(super) fn load(levels: &[&ArgMatches], io: &Io<'_>) -> Result<Config> {
    let named = named(levels, io);
    let Some(path) = named.clone().or_else(|| users_config(io)) else {
        return Ok(Config::default());
    };
    match File::open(&path) {
        Err(error) if named.is_none() && is_missing(&error) => Ok(Config::default()),
        Err(error) => {
            Err(Failure::config(format_args!("cannot open `{}`: {error}", path.display())))
        }
        Ok(mut file) => {
            let name = path.display().to_string();
            let text = input::text(&mut file, &format!("`{name}`"), MAX_BYTES)?;
            read::config(&text, &name).map_err(|mistakes| Failure::config(mistakes.told(&name)))
        }
    }
}

/// The file that is read, whether it is there or not.
pub(super) fn path(levels: &[&ArgMatches], io: &Io<'_>) -> Option<PathBuf> {
    named(levels, io).or_else(|| users_config(io))
}

/// A path as it is written, where it is one that a person can have meant.
///
/// # Errors
///
/// Fails for no path at all, which would be the folder that the program runs in, and for `~`: a
/// shell would have made it the home folder.
pub(super) fn written_out(path: PathBuf) -> std::result::Result<PathBuf, &'static str> {
    match path.components().next() {
        None => Err("it is empty; write `.` for the folder that the program runs in"),
        Some(first) if first.as_os_str() == "~" => {
            Err("`~` is a name like any other here; write the home folder out, or `./~`")
        }
        Some(_) => Ok(path),
    }
}

fn named(levels: &[&ArgMatches], io: &Io<'_>) -> Option<PathBuf> {
    levels
        .iter()
        .rev()
        .find_map(|matches| matches.get_one::<PathBuf>(grammar::CONFIG).cloned())
        .or_else(|| io.var("TOOL_SDK_CONFIG").map(PathBuf::from))
        .map(|path| io.path(path))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn users_config(io: &Io<'_>) -> Option<PathBuf> {
    let absolute = |name| io.var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .or_else(|| absolute("APPDATA"))
        .map(|base| base.join(Path::new("tool-sdk/config.toml")))
}
