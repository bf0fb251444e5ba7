//! The sandbox: what the kernel lets a child process do, whatever the child tries.
//!
//! A host lends its session a [`Policy`]; tools that start programs hand it to
//! [`Run`](super::Run) or [`Spawn`](super::Spawn). The child is then not started directly:
//! this program starts itself once more as a small helper, which confines itself and becomes
//! the child. So nothing has to be done between `fork` and `exec`, and nothing that the
//! child sees or sets can change what holds for it.
//!
//! On Linux four things come together, each with what it does best. Processes of its own end
//! together with it, however they hide. Mounts of its own make everything read-only but the
//! writable folders, and hold files of the workspace that programs execute or obey later. Landlock says the same once more where no mount is looked
//! at, and keeps signals and ptrace away from processes outside. Seccomp takes away
//! networks, and calls that nobody needs who builds and tests.
//!
//! What is missing is told and never passed over: see [`Status`].
//!
//! **Not promised:** files are not hidden, so what a child may read it can print. Elsewhere
//! than on Linux there is no sandbox, and [`Mode::Required`] refuses to run anything.

mod confine;
mod order;
mod policy;
mod status;

#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod linux;
#[cfg(not(all(feature = "sandbox", target_os = "linux")))]
mod none;

pub(super) use self::confine::{Confined, Planted, StandIns, confine};
#[cfg(all(feature = "sandbox", target_os = "linux"))]
use self::linux as system;
#[cfg(not(all(feature = "sandbox", target_os = "linux")))]
use self::none as system;
use self::order::Order;
pub use self::policy::{InvalidName, Level, Mode, Policy};
pub use self::status::{Attempt, Enforced, SelfTest, Status, Support};

/// Becomes the sandbox's helper when this process was started as one; returns otherwise.
///
/// A program that confines its children calls this first thing in `main`, before it starts
/// a thread or opens a file. [`cli::App::main`](crate::cli::App::main) does. Without it
/// nothing is ever confined: [`Mode::Required`] refuses, and every [`Status`] says why.
///
/// # Examples
///
/// ```
/// use tool_sdk::process::sandbox;
///
/// fn main() {
///     sandbox::run_helper_if_asked();
///     // What the program does comes here.
/// }
/// ```
pub fn run_helper_if_asked() {
    system::run_helper_if_asked();
}

/// What this machine offers; found out once per process.
///
/// It is tried, not looked up: a child confines itself as far as it can, and says how far
/// it came.
///
/// # Examples
///
/// ```
/// use tool_sdk::process::sandbox::{self, Enforced};
///
/// let support = sandbox::probe();
/// assert!(support.status.filesystem == Enforced::Full || !support.status.reasons.is_empty());
/// ```
#[must_use]
pub fn probe() -> Support {
    confine::support(&Policy::new(Mode::BestEffort, Level::WorkspaceWrite))
}

/// Lets a confined child of this program try to get out, and to work.
///
/// # Errors
///
/// Fails when it could not be tried: there is no sandbox, or no folder to try it in.
pub fn self_test() -> std::io::Result<SelfTest> {
    system::self_test()
}

#[cfg(test)]
mod tests;
