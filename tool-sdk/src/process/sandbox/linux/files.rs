//! Landlock rules: restrict writes to writable folders, and signals and ptrace to the sandbox.
//!
//! Landlock grants access below a folder and has no exceptions inside of it; the mounts protect
//! single files.
//!
//! **Invariant:** reading is never restricted.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    PathBeneath, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
};

use super::super::Order;
use super::{opened, writable};

/// The requested ABI; older kernels enforce the part that they support.
const WANTED: ABI = ABI::V7;

/// Devices that store no data and stay writable.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// The folder of the pseudoterminals.
const TERMINALS: &str = "/dev/pts";

/// Restricts writes of this process to the writable folders; returns the Landlock ABI version.
/// With `terminals`, `/dev/pts` contains only terminals of the sandbox and becomes writable.
pub(super) fn confine(order: &Order, terminals: bool) -> Result<i32, String> {
    let status = restrict(order, terminals).map_err(|error| error.to_string())?;
    match status {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Ok(kernel_abi.unwrap_or(effective_abi as i32))
        }
        LandlockStatus::NotEnabled => Err("it is not enabled in the kernel".to_owned()),
        LandlockStatus::NotImplemented => Err("the kernel does not support it".to_owned()),
    }
}

fn restrict(order: &Order, terminals: bool) -> Result<LandlockStatus, RulesetError> {
    let write = AccessFs::from_write(WANTED);
    let device = write & AccessFs::from_file(WANTED);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(write)?
        .scope(Scope::from_all(WANTED))?;
    if !order.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(WANTED))?;
    }
    let mut created = ruleset.create()?;
    for (_, folder) in writable(order) {
        created = created.add_rule(below(&folder, write))?;
    }
    let terminals = if terminals { Some(PathBuf::from(TERMINALS)) } else { own_terminal() };
    for path in DEVICES.iter().map(Path::new).chain(terminals.as_deref()) {
        if let Ok(found) = opened(path) {
            created = created.add_rule(below(&found, device))?;
        }
    }
    Ok(created.restrict_self()?.landlock)
}

/// Returns the terminal on standard input of the child.
fn own_terminal() -> Option<PathBuf> {
    let name = rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(name.as_bytes())))
}

fn below(folder: &OwnedFd, access: BitFlags<AccessFs>) -> PathBeneath<&OwnedFd> {
    PathBeneath::new(folder, access)
}
