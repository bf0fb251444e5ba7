//! What a child may do, as the host says it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::status::{Enforced, Status, Support};
use super::{confine, system};
use crate::context::Session;

/// How much a child may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Level {
    /// Read files. Nothing can be written, and no network is reached.
    ReadOnly,
    /// Write to the workspace and to folders for temporary files as well.
    #[default]
    WorkspaceWrite,
    /// Everything that the user may.
    Full,
}

/// What happens where the kernel cannot hold what a policy says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// There is no sandbox.
    #[default]
    Off,
    /// As much is enforced as can be, and the [`Status`] says how much that is.
    BestEffort,
    /// Nothing runs.
    Required,
}

macro_rules! words {
    ($type:ident, $what:literal, $($variant:ident => $word:literal),*) => {
        impl $type {
            /// Every one of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name, as in a configuration file.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                let found = Self::ALL.iter().copied().find(|one| one.as_str() == text);
                found.ok_or_else(|| InvalidName {
                    name: text.to_owned(),
                    expected: concat!($what, ":", $(" ", $word),*),
                })
            }
        }
    };
}

words!(
    Level, "a level of the sandbox",
    ReadOnly => "read_only", WorkspaceWrite => "workspace_write", Full => "full"
);
words!(
    Mode, "a mode of the sandbox",
    Off => "off", BestEffort => "best_effort", Required => "required"
);

/// A text that names no level, or no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not {expected}")]
#[non_exhaustive]
pub struct InvalidName {
    /// The text.
    pub name: String,
    /// What would be one.
    expected: &'static str,
}

/// What a child may do, and what happens where that cannot be enforced.
///
/// Without a policy, and with [`Mode::Off`] or [`Level::Full`], nothing is confined.
///
/// # Examples
///
/// ```
/// use tool_sdk::Session;
/// use tool_sdk::process::sandbox::{Level, Mode, Policy};
///
/// let policy = Policy::new(Mode::BestEffort, Level::WorkspaceWrite).writable("/home/ada/project");
/// let session = Session::new("s1").lend(policy.clone());
///
/// assert_eq!(Policy::of(&session), policy);
/// assert!(Policy::of(&Session::new("s2")).is_off());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    mode: Mode,
    pub(super) level: Level,
    pub(super) network: bool,
    pub(super) unix_sockets: bool,
    pub(super) roots: BTreeSet<PathBuf>,
    pub(super) protected: BTreeSet<PathBuf>,
    pub(super) helper: Option<PathBuf>,
}

impl Policy {
    /// A policy without a network and without writable folders.
    #[must_use]
    pub fn new(mode: Mode, level: Level) -> Self {
        Self { mode, level, ..Self::default() }
    }

    /// What was lent to `session`; nothing is confined when that is nothing.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        session.lent().get::<Self>().map(|lent| (*lent).clone()).unwrap_or_default()
    }

    /// Sets what happens where it cannot be enforced.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the level.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Whether the child may reach networks; no when nothing is said.
    #[must_use]
    pub fn network(mut self, network: bool) -> Self {
        self.network = network;
        self
    }

    /// Whether the child may open Unix sockets; no when nothing is said.
    ///
    /// Behind some of them wait programs that do as they are told, such as those for
    /// containers and keys. Pairs of sockets, which lead nowhere else, are always there.
    #[must_use]
    pub fn unix_sockets(mut self, unix_sockets: bool) -> Self {
        self.unix_sockets = unix_sockets;
        self
    }

    /// Adds a folder that may be written on [`Level::WorkspaceWrite`].
    ///
    /// What programs execute or obey later stays protected in it: `.git` as a whole, also
    /// before it is there, and whatever else the [`Workspace`](crate::Workspace) protects, as
    /// far as it is found when the child starts. What is not there yet can be made; what was
    /// is told when the child has ended.
    #[must_use]
    pub fn writable(mut self, folder: impl Into<PathBuf>) -> Self {
        self.roots.insert(folder.into());
        self
    }

    /// Adds something in a writable folder that must not change.
    #[must_use]
    pub fn protect(mut self, path: impl Into<PathBuf>) -> Self {
        self.protected.insert(path.into());
        self
    }

    /// Names a program that calls [`run_helper_if_asked`](super::run_helper_if_asked), for
    /// hosts whose own program does not.
    #[must_use]
    pub fn helper(mut self, program: impl Into<PathBuf>) -> Self {
        self.helper = Some(program.into());
        self
    }

    /// What happens where it cannot be enforced.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// How much the child may do.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Whether the child may reach networks.
    #[must_use]
    pub const fn has_network(&self) -> bool {
        self.network || matches!(self.level, Level::Full)
    }

    /// Whether nothing is confined.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        matches!(self.mode, Mode::Off) || matches!(self.level, Level::Full)
    }

    /// How far a child would be confined; found out once per process and policy.
    #[must_use]
    pub fn status(&self) -> Status {
        self.support().status
    }

    /// What this machine offers for it; found out once per process and policy.
    #[must_use]
    pub fn support(&self) -> Support {
        confine::support(self)
    }

    /// Whether a child with this status may run.
    #[must_use]
    pub fn is_met_by(&self, status: &Status) -> bool {
        self.mode != Mode::Required || self.is_off() || self.is_whole(status)
    }

    /// Whether a child with this status is confined as far as this says.
    fn is_whole(&self, status: &Status) -> bool {
        status.filesystem == Enforced::Full
            && status.processes == Enforced::Full
            && (self.network || status.network == Enforced::Full)
    }

    /// How a child is confined less than this says, where it is.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers are told of"))]
    pub(in crate::process) fn shortfall(&self, status: Option<&Status>) -> Option<Status> {
        status.filter(|status| !self.is_whole(status)).cloned()
    }

    /// The folders that a child can write below, beside those for temporary files; `None` where
    /// the kernel does not hold it there.
    #[must_use]
    pub fn enforced_roots(&self) -> Option<Vec<PathBuf>> {
        if self.is_off() || self.status().filesystem != Enforced::Full {
            return None;
        }
        Some(match self.level {
            Level::WorkspaceWrite => self.roots.iter().cloned().collect(),
            Level::ReadOnly | Level::Full => Vec::new(),
        })
    }

    /// Everything that may be written, the outermost folders first.
    pub(super) fn writable_folders(&self) -> Vec<PathBuf> {
        if self.level != Level::WorkspaceWrite {
            return Vec::new();
        }
        let temporary = system::temporary().into_iter();
        let all: BTreeSet<PathBuf> = self.roots.iter().cloned().chain(temporary).collect();
        // A folder stands before what is below it.
        let mut outermost: Vec<PathBuf> = Vec::new();
        for folder in all {
            if !outermost.iter().any(|outer| folder.starts_with(outer)) {
                outermost.push(folder);
            }
        }
        outermost
    }

    /// What must not change and need not be there: what stands in for it comes and goes
    /// with the child.
    pub(super) fn always_protected(&self) -> BTreeSet<PathBuf> {
        if self.level != Level::WorkspaceWrite {
            return BTreeSet::new();
        }
        let writable = self.writable_folders();
        let repositories = self.roots.iter().map(|root| root.join(".git"));
        let all = repositories.chain(self.protected.iter().cloned());
        // What cannot be written anyhow needs no protection.
        all.filter(|path| writable.iter().any(|folder| path.starts_with(folder))).collect()
    }
}
