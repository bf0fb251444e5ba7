//! The sandbox policy, which the host sets for its children.
//!
//! **Invariant:** the default policy is off; a host has to opt in.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::status::{EnforcementLevel, SandboxStatus, SandboxSupport};
use super::unreadable::UnreadablePaths;
use super::{confine, system};

/// How much a sandboxed child may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SandboxLevel {
    /// Read files, but write nothing and use no network.
    ReadOnly,
    /// Also write to the workspace and to folders for temporary files.
    #[default]
    WorkspaceWrite,
    /// Everything that the user may do.
    Full,
}

/// What happens when the kernel cannot enforce a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SandboxMode {
    /// There is no sandbox.
    #[default]
    Off,
    /// As much as possible is enforced, and the [`SandboxStatus`] reports how much.
    BestEffort,
    /// Nothing is started.
    Required,
}

macro_rules! words {
    ($type:ident, $what:literal, $($variant:ident => $word:literal),*) => {
        impl $type {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name used in configuration files.
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
            type Err = InvalidSandboxName;

            fn from_str(text: &str) -> Result<Self, InvalidSandboxName> {
                let found = Self::ALL.iter().copied().find(|one| one.as_str() == text);
                found.ok_or_else(|| InvalidSandboxName {
                    name: text.to_owned(),
                    expected: concat!($what, ":", $(" ", $word),*),
                })
            }
        }
    };
}

words!(
    SandboxLevel, "a sandbox level",
    ReadOnly => "read_only", WorkspaceWrite => "workspace_write", Full => "full"
);
words!(
    SandboxMode, "a sandbox mode",
    Off => "off", BestEffort => "best_effort", Required => "required"
);

/// The error for a text that is not the name of a level or mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not {expected}")]
#[non_exhaustive]
pub struct InvalidSandboxName {
    /// The text.
    pub name: String,
    /// The kind of name and the valid names.
    expected: &'static str,
}

/// The restrictions of a child, and what happens when they cannot be enforced.
///
/// Without a policy, and with [`SandboxMode::Off`] or [`SandboxLevel::Full`], there are none.
///
/// # Examples
///
/// ```
/// use tool_sdk::Session;
/// use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};
///
/// let policy = SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::WorkspaceWrite)
///     .with_writable("/home/ada/project");
/// let session = Session::new("s1").with_service(policy.clone());
///
/// assert_eq!(session.extension::<SandboxPolicy>(), policy);
/// assert!(Session::new("s2").extension::<SandboxPolicy>().is_off());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SandboxPolicy {
    mode: SandboxMode,
    pub(super) level: SandboxLevel,
    pub(super) network: bool,
    pub(super) unix_sockets: bool,
    auto_allow: bool,
    pub(super) writable_roots: BTreeSet<PathBuf>,
    pub(super) protected: BTreeSet<PathBuf>,
    /// `None` if no path is to be covered.
    pub(super) unreadable: Option<UnreadablePaths>,
    pub(super) helper: Option<PathBuf>,
}

impl SandboxPolicy {
    /// Creates a policy without network access and without writable folders.
    #[must_use]
    pub fn new(mode: SandboxMode, level: SandboxLevel) -> Self {
        Self { mode, level, ..Self::default() }
    }

    /// Sets what happens when the policy cannot be enforced.
    #[must_use]
    pub fn with_mode(mut self, mode: SandboxMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the level.
    #[must_use]
    pub fn with_level(mut self, level: SandboxLevel) -> Self {
        self.level = level;
        self
    }

    /// Sets whether the child may use networks. Default: no.
    #[must_use]
    pub fn with_network(mut self, network: bool) -> Self {
        self.network = network;
        self
    }

    /// Sets whether the child may open Unix sockets. Default: no.
    ///
    /// Some of them belong to daemons that execute requests, such as container engines and key
    /// agents. `socketpair`, which connects to nothing else, is always allowed.
    #[must_use]
    pub fn with_unix_sockets(mut self, unix_sockets: bool) -> Self {
        self.unix_sockets = unix_sockets;
        self
    }

    /// Sets whether confined commands need no approval in the mode `auto`. Default: they do.
    ///
    /// This holds only where [`allows_confined_commands`](Self::allows_confined_commands) does, and
    /// a command that was allowed for this reason does not start with less.
    #[must_use]
    pub fn with_auto_allow(mut self, auto_allow: bool) -> Self {
        self.auto_allow = auto_allow;
        self
    }

    /// Returns whether confined commands need no approval, provided that the sandbox is enforced in
    /// full.
    #[must_use]
    pub const fn has_auto_allow(&self) -> bool {
        self.auto_allow
    }

    /// Returns whether a command needs no approval because this policy confines it: the kernel
    /// enforces it in full, and it lets no network and no Unix socket be reached.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};
    ///
    /// let policy = SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::WorkspaceWrite);
    /// assert!(!policy.allows_confined_commands());
    ///
    /// let online = policy.with_auto_allow(true).with_network(true);
    /// assert!(!online.allows_confined_commands());
    /// ```
    #[must_use]
    pub fn allows_confined_commands(&self) -> bool {
        self.auto_allow
            && !self.is_off()
            && !self.network
            && !self.unix_sockets
            && self.is_fully_enforced(&self.status())
    }

    /// Adds a folder that is writable on [`SandboxLevel::WorkspaceWrite`].
    ///
    /// Files in it that programs later execute or obey stay protected: `.git` as a whole, even
    /// before it exists, and all other files that the `Workspace` protects and
    /// that exist when the child starts. Other protected files can be created, and are reported
    /// when the child has exited.
    #[must_use]
    pub fn with_writable(mut self, folder: impl Into<PathBuf>) -> Self {
        self.writable_roots.insert(folder.into());
        self
    }

    /// Adds a protected path in a writable folder.
    #[must_use]
    pub fn with_protected(mut self, path: impl Into<PathBuf>) -> Self {
        self.protected.insert(path.into());
        self
    }

    /// Adds files and folders that the child must not read; each is covered by an empty one that
    /// cannot be opened. Without any, the status still says whether they could be covered.
    ///
    /// The paths must be absolute and without symlinks. A path is covered if it exists when the
    /// child starts; the child must not start in such a folder. At most 1,024 paths are covered,
    /// with 64 KiB together; the rest is a [gap](Self::with_unreadable_gap). The same file under
    /// another path, as by a hard link, stays readable.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};
    ///
    /// let policy = SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::WorkspaceWrite);
    /// assert_eq!(policy.status().reads, None);
    ///
    /// let policy = policy.with_unreadable(["/home/ada/.ssh"]);
    /// assert!(policy.status().reads.is_some());
    /// ```
    #[must_use]
    pub fn with_unreadable(mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let unreadable = self.unreadable.get_or_insert_default();
        paths.into_iter().for_each(|path| unreadable.add_path(path.into()));
        self
    }

    /// Adds the reason why not all files that the child must not read are known. They are then
    /// covered in part at most, which [`SandboxMode::Required`] refuses.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::process::sandbox::{EnforcementLevel, SandboxLevel, SandboxMode, SandboxPolicy};
    ///
    /// let policy = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite)
    ///     .with_unreadable_gap("`/home/*/.ssh` is not searched for");
    /// let status = policy.status();
    /// assert_ne!(status.reads, Some(EnforcementLevel::Full));
    /// assert!(!policy.is_met_by(&status));
    /// ```
    #[must_use]
    pub fn with_unreadable_gap(mut self, reason: impl Into<String>) -> Self {
        self.unreadable.get_or_insert_default().add_gap(reason.into());
        self
    }

    /// Sets the helper, a program that calls [`run_helper_if_asked`](super::run_helper_if_asked).
    /// For hosts whose own program does not.
    #[must_use]
    pub fn with_helper(mut self, program: impl Into<PathBuf>) -> Self {
        self.helper = Some(program.into());
        self
    }

    /// Returns what happens when the policy cannot be enforced.
    #[must_use]
    pub const fn mode(&self) -> SandboxMode {
        self.mode
    }

    /// Returns how much the child may do.
    #[must_use]
    pub const fn level(&self) -> SandboxLevel {
        self.level
    }

    /// Returns whether the child may use networks.
    #[must_use]
    pub const fn has_network(&self) -> bool {
        self.network || matches!(self.level, SandboxLevel::Full)
    }

    /// Returns whether the policy restricts nothing.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        matches!(self.mode, SandboxMode::Off) || matches!(self.level, SandboxLevel::Full)
    }

    /// Returns what would be enforced for a child; probed once per policy and cached. Which paths are
    /// [to be covered](Self::with_unreadable) needs no new probe.
    #[must_use]
    pub fn status(&self) -> SandboxStatus {
        self.support().status
    }

    /// Returns what this machine supports; probed once per policy and cached.
    #[must_use]
    pub fn support(&self) -> SandboxSupport {
        confine::cached_support(self)
    }

    /// Returns whether a child with this status may run.
    #[must_use]
    pub fn is_met_by(&self, status: &SandboxStatus) -> bool {
        let is_required = self.mode == SandboxMode::Required || self.allows_confined_commands();
        !is_required || self.is_off() || self.is_fully_enforced(status)
    }

    /// Returns whether `status` enforces this policy completely.
    fn is_fully_enforced(&self, status: &SandboxStatus) -> bool {
        status.filesystem == EnforcementLevel::Full
            && status.processes == EnforcementLevel::Full
            && (self.network || status.network == EnforcementLevel::Full)
            && self.covers_reads(status)
    }

    /// Returns whether nothing that is to be covered stays readable.
    fn covers_reads(&self, status: &SandboxStatus) -> bool {
        match status.reads {
            Some(level) => level == EnforcementLevel::Full,
            None => self.unreadable.is_none(),
        }
    }

    /// Returns the policy without the paths to cover. Whether the machine can cover paths does not
    /// depend on them, so probes of the machine are cached by this policy.
    pub(crate) fn without_unreadable_paths(&self) -> Self {
        let unreadable = self.unreadable.is_some().then(UnreadablePaths::default);
        Self { unreadable, ..self.clone() }
    }

    /// Returns the status if it enforces less than this policy.
    pub(crate) fn find_shortfall(&self, status: Option<&SandboxStatus>) -> Option<SandboxStatus> {
        status.filter(|status| !self.is_fully_enforced(status)).cloned()
    }

    /// Returns the writable folders, without those for temporary files; `None` when the kernel does
    /// not fully confine writes to them.
    #[must_use]
    pub fn enforced_roots(&self) -> Option<Vec<PathBuf>> {
        if self.is_off() || self.status().filesystem != EnforcementLevel::Full {
            return None;
        }
        Some(match self.level {
            SandboxLevel::WorkspaceWrite => self.writable_roots.iter().cloned().collect(),
            SandboxLevel::ReadOnly | SandboxLevel::Full => Vec::new(),
        })
    }

    /// Returns all writable folders, without those inside of another one.
    pub(super) fn writable_folders(&self) -> Vec<PathBuf> {
        if self.level != SandboxLevel::WorkspaceWrite {
            return Vec::new();
        }
        let temporary = system::temporary_folders().into_iter();
        let all: BTreeSet<PathBuf> = self.writable_roots.iter().cloned().chain(temporary).collect();
        // In path order, a folder comes before its subfolders.
        let mut outermost: Vec<PathBuf> = Vec::new();
        for folder in all {
            if !outermost.iter().any(|outer| folder.starts_with(outer)) {
                outermost.push(folder);
            }
        }
        outermost
    }

    /// Returns the protected paths that need not exist: a placeholder is created and removed with
    /// the child.
    pub(super) fn always_protected(&self) -> BTreeSet<PathBuf> {
        if self.level != SandboxLevel::WorkspaceWrite {
            return BTreeSet::new();
        }
        let writable = self.writable_folders();
        let repositories = self.writable_roots.iter().map(|root| root.join(".git"));
        let all = repositories.chain(self.protected.iter().cloned());
        // Paths outside of the writable folders are read-only anyway.
        all.filter(|path| writable.iter().any(|folder| path.starts_with(folder))).collect()
    }
}
