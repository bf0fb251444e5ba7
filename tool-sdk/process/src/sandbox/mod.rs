//! The sandbox: restrictions on a child process that the kernel enforces.
//!
//! A host attaches a [`SandboxPolicy`] to its session. Tools that start programs pass it to
//! [`Command`](super::Command) or [`BackgroundCommand`](super::BackgroundCommand). The child is
//! then started through a helper: the host's own program, which restricts itself and executes the
//! child. So no code runs between `fork` and `exec`, and nothing that the child reads or sets can
//! change its restrictions.
//!
//! On Linux the helper combines four mechanisms:
//!
//! * A PID namespace kills all descendants with the child.
//! * A mount namespace makes everything read-only except the writable folders, protects files in
//!   them that programs later execute or obey, and covers the files that the child must not read.
//! * Landlock restricts writes to devices and FIFOs, which mounts do not cover, and blocks signals
//!   and ptrace to processes outside.
//! * Seccomp blocks networks, and system calls that builds and tests do not need.
//!
//! **Invariant:** a restriction that is not enforced is reported: see [`SandboxStatus`].
//!
//! **Not included:** only the paths of [`SandboxPolicy::with_unreadable`] are covered, so a child can
//! print every other file that it can read. Systems other than Linux have no sandbox, and [`SandboxMode::Required`] refuses to run anything there.

mod confine;
mod helper_protocol;
mod policy;
mod status;
mod unreadable;

#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod linux;
#[cfg(not(all(feature = "sandbox", target_os = "linux")))]
mod none;

pub(super) use self::confine::{
    ConfinedCommand, PlaceholderDirs, ProtectedBaseline, confine_command,
};
use self::helper_protocol::HelperRequest;
#[cfg(all(feature = "sandbox", target_os = "linux"))]
use self::linux as system;
#[cfg(not(all(feature = "sandbox", target_os = "linux")))]
use self::none as system;
pub use self::policy::{InvalidSandboxName, SandboxLevel, SandboxMode, SandboxPolicy};
pub use self::status::{
    EnforcementLevel, SandboxStatus, SandboxSupport, SelfTestAttempt, SelfTestReport,
};

/// Runs the sandbox helper if this process was started as one; returns otherwise.
///
/// A program that sandboxes its children calls this first in `main`, before it starts a thread
/// or opens a file. [`cli::App::main`](https://docs.rs/tool-sdk) does. Without this call there is
/// no sandbox: [`SandboxMode::Required`] refuses to run anything, and every [`SandboxStatus`]
/// gives the reason.
///
/// # Examples
///
/// ```
/// use tool_sdk::process::sandbox;
///
/// fn main() {
///     sandbox::run_helper_if_asked();
///     // The rest of the program follows.
/// }
/// ```
pub fn run_helper_if_asked() {
    system::run_helper_if_asked();
}

/// Returns what this machine can enforce; probed once per process and cached.
///
/// The probe starts a helper, which applies all restrictions to itself and reports the result.
///
/// # Examples
///
/// ```
/// use tool_sdk::process::sandbox::{self, EnforcementLevel};
///
/// let status = sandbox::probe().status;
/// assert!(status.filesystem == EnforcementLevel::Full || !status.reasons.is_empty());
/// ```
#[must_use]
pub fn probe() -> SandboxSupport {
    confine::cached_support(&SandboxPolicy::new(
        SandboxMode::BestEffort,
        SandboxLevel::WorkspaceWrite,
    ))
}

/// Runs the self-test: a sandboxed child tries to escape, and to do ordinary work.
///
/// # Errors
///
/// Fails when the test cannot run: there is no sandbox, or no folder to run it in.
pub fn self_test() -> std::io::Result<SelfTestReport> {
    system::run_self_test()
}

#[cfg(test)]
mod tests;
