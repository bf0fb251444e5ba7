//! Landlock: what may be written, and whom signals and ptrace may reach.
//!
//! It says who may write below which folders, and cannot except anything in them: that is
//! what the mounts are for.

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

/// What is asked for; older kernels enforce what they know of it.
const WANTED: ABI = ABI::V7;

/// Devices that keep nothing.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// Where terminals have their names.
const TERMINALS: &str = "/dev/pts";

/// Lets this process write to the writable folders and to nothing else; gives the version of
/// Landlock. `terminals` says whether all of those that have a name are its own.
pub(super) fn confine(order: &Order, terminals: bool) -> Result<i32, String> {
    let status = restrict(order, terminals).map_err(|error| error.to_string())?;
    match status {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Ok(kernel_abi.unwrap_or(effective_abi as i32))
        }
        LandlockStatus::NotEnabled => Err("the kernel has it, and it is not enabled".to_owned()),
        LandlockStatus::NotImplemented => Err("the kernel does not have it".to_owned()),
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

/// The terminal that the child reads from.
fn own_terminal() -> Option<PathBuf> {
    let name = rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(name.as_bytes())))
}

fn below(folder: &OwnedFd, access: BitFlags<AccessFs>) -> PathBeneath<&OwnedFd> {
    PathBeneath::new(folder, access)
}
