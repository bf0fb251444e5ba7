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

use super::{open_without_links, open_writable_folders};
use crate::sandbox::HelperRequest;

/// The requested ABI; older kernels enforce the part that they support.
const REQUESTED_ABI: ABI = ABI::V7;

/// Devices that store no data and stay writable.
const WRITABLE_DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// The folder of the pseudoterminals.
const PTS_FOLDER: &str = "/dev/pts";

/// Restricts writes of this process to the writable folders; returns the Landlock ABI version.
/// With `terminals`, `/dev/pts` contains only terminals of the sandbox and becomes writable.
pub(super) fn restrict_writes(order: &HelperRequest, terminals: bool) -> Result<i32, String> {
    let status = apply_ruleset(order, terminals).map_err(|error| error.to_string())?;
    match status {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Ok(kernel_abi.unwrap_or(effective_abi as i32))
        }
        LandlockStatus::NotEnabled => Err("it is not enabled in the kernel".to_owned()),
        LandlockStatus::NotImplemented => Err("the kernel does not support it".to_owned()),
    }
}

fn apply_ruleset(order: &HelperRequest, terminals: bool) -> Result<LandlockStatus, RulesetError> {
    let write = AccessFs::from_write(REQUESTED_ABI);
    let device = write & AccessFs::from_file(REQUESTED_ABI);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(write)?
        .scope(Scope::from_all(REQUESTED_ABI))?;
    if !order.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(REQUESTED_ABI))?;
    }
    let mut created = ruleset.create()?;
    for (_, folder) in open_writable_folders(order) {
        created = created.add_rule(allow_beneath(&folder, write))?;
    }
    let terminals = if terminals { Some(PathBuf::from(PTS_FOLDER)) } else { own_terminal() };
    for path in WRITABLE_DEVICES.iter().map(Path::new).chain(terminals.as_deref()) {
        if let Ok(found) = open_without_links(path) {
            created = created.add_rule(allow_beneath(&found, device))?;
        }
    }
    Ok(created.restrict_self()?.landlock)
}

/// Returns the terminal on standard input of the child.
fn own_terminal() -> Option<PathBuf> {
    let name = rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(name.as_bytes())))
}

fn allow_beneath(folder: &OwnedFd, access: BitFlags<AccessFs>) -> PathBeneath<&OwnedFd> {
    PathBeneath::new(folder, access)
}
