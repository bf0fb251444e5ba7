//! The sandbox helper on Linux: restricts itself, then executes the requested program.
//!
//! The order of the steps matters: `no_new_privs` first; then the namespaces, of which the helper
//! becomes the init process; then the mounts, which need capabilities; then the capabilities are
//! dropped; then Landlock; and last seccomp, which blocks the system calls of the other steps.
//!
//! **Invariant:** a restriction that could not be enforced is in the status, and with less than
//! the required status nothing is started.

mod confinement_steps;
mod init;
mod landlock_rules;
mod mounts;
mod namespaces;
mod placeholder_dirs;
mod protected;
mod read_covers;
mod seccomp;
mod self_test;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};

use self::confinement_steps::ConfinementSteps;
use self::init::InitProcess;
use self::namespaces::NamespaceReport;
pub(super) use self::placeholder_dirs::PlaceholderDir;
pub(super) use self::protected::find_protected;
pub(super) use self::self_test::run_self_test;
use super::helper_protocol::HELPER_ARG;
use super::status::SandboxSupport;
use super::{HelperRequest, SandboxPolicy};

/// This program, even if its file was replaced or removed meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Exit codes as in shells: invalid request, not executable, not found.
const EXIT_BAD_REQUEST: i32 = 125;
const EXIT_REFUSED: i32 = 126;
const EXIT_NOT_STARTED: i32 = 127;

/// Whether this program called `run_helper_if_asked`, so that it acts as the helper when it is
/// started again.
static IS_HELPER_READY: AtomicBool = AtomicBool::new(false);

pub(super) fn run_helper_if_asked() {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == HELPER_ARG => std::process::exit(run_helper(args)),
        Some(first) if first == self_test::SELF_TEST_ARG => {
            std::process::exit(self_test::run_attempts(args))
        }
        _ => IS_HELPER_READY.store(true, Ordering::Relaxed),
    }
}

/// Returns the program to start as the helper.
pub(super) fn helper_program(policy: &SandboxPolicy) -> Result<OsString, &'static str> {
    match &policy.helper {
        Some(program) => Ok(program.clone().into()),
        None if IS_HELPER_READY.load(Ordering::Relaxed) => Ok(OWN_PROGRAM.into()),
        None => Err("the program has no sandbox helper: its `main` must call \
                         `run_helper_if_asked` first"),
    }
}

/// Returns the folders for temporary files.
pub(super) fn temporary_folders() -> Vec<PathBuf> {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let own = std::env::temp_dir().canonicalize().ok();
    let own = own.filter(|folder| is_temporary(folder, home.as_deref()));
    let folders = [own.unwrap_or_else(|| PathBuf::from("/tmp")), PathBuf::from("/dev/shm")];
    // Symlinks are resolved here, and never later.
    folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect()
}

/// Returns whether `folder`, the value of `TMPDIR`, can be one for temporary files. It must not
/// contain files that a user or the system keeps, because it becomes writable.
fn is_temporary(folder: &Path, home: Option<&Path>) -> bool {
    const SYSTEM: &[&str] =
        &["/bin", "/boot", "/etc", "/lib", "/lib64", "/opt", "/proc", "/sbin", "/sys", "/usr"];
    // System folders with exceptions for temporary files.
    const KEPT: &[(&str, &[&str])] = &[("/var", &["/var/tmp"]), ("/run", &["/run/user"])];
    const STICKY: u32 = 0o1000;
    let is_shared = || folder.metadata().is_ok_and(|it| it.mode() & STICKY != 0);
    let is_deep = folder.components().count() > 2;
    (is_deep || is_shared())
        && !home.is_some_and(|home| home.starts_with(folder))
        && !home.is_some_and(|home| is_hidden_in(folder, home))
        && !SYSTEM.iter().any(|system| folder.starts_with(system))
        && KEPT.iter().all(|(kept, but)| {
            !folder.starts_with(kept) || but.iter().any(|but| folder.starts_with(but))
        })
}

/// Returns whether it is in a hidden folder of a home directory, where programs keep keys and
/// settings.
fn is_hidden_in(folder: &Path, home: &Path) -> bool {
    let first = folder.strip_prefix(home).ok().and_then(|rest| rest.components().next());
    let name = first.map(|first| first.as_os_str().as_encoded_bytes()).unwrap_or_default();
    name.starts_with(b".") && !matches!(name, b".cache" | b".tmp")
}

/// Runs the helper; returns the exit code when no program was executed.
fn run_helper(mut args: impl Iterator<Item = OsString>) -> i32 {
    let order = args.next().and_then(|order| serde_json::from_str(order.to_str()?).ok());
    let Some(order): Option<HelperRequest> = order else {
        return report_error(EXIT_BAD_REQUEST, "the request to the sandbox helper is invalid");
    };
    // Set-uid programs gain no privileges from here on.
    if let Err(error) = set_no_new_privs(true) {
        return report_error(EXIT_REFUSED, format_args!("cannot set `no_new_privs`: {error}"));
    }
    let namespaces = namespaces::unshare_all();
    let init = match namespaces.processes {
        // Only children started from now on are in the PID namespace.
        Ok(()) => match init::fork_init() {
            Ok(init) => Some(init),
            Err(error) => return report_error(EXIT_NOT_STARTED, error),
        },
        Err(_) => None,
    };
    let support = confine_self(&order, namespaces);
    let Some(program) = args.next() else {
        let report = serde_json::to_vec(&support).unwrap_or_default();
        return i32::from(io::stdout().write_all(&report).is_err());
    };
    match &order.required_status {
        Some(floor) if support.status.is_at_least(floor) => start_program(init, &program, args),
        _ => {
            let status = &support.status;
            report_error(
                EXIT_REFUSED,
                format_args!("the sandbox is not enforced as required: {status}"),
            )
        }
    }
}

fn start_program(
    init: Option<InitProcess>,
    program: &OsStr,
    args: impl Iterator<Item = OsString>,
) -> i32 {
    match init {
        Some(init) => init.run_program(program, args),
        None => report_start_error(program, &Command::new(program).args(args).exec()),
    }
}

fn report_start_error(program: &OsStr, error: &io::Error) -> i32 {
    report_error(EXIT_NOT_STARTED, format_args!("{}: {error}", program.display()))
}

fn report_error(code: i32, what: impl std::fmt::Display) -> i32 {
    // Standard error is the only channel to report to.
    let _ = writeln!(io::stderr(), "not started: {what}");
    code
}

/// Applies all restrictions to this process, as far as possible.
fn confine_self(order: &HelperRequest, namespaces: NamespaceReport) -> SandboxSupport {
    let mounts = namespaces.mounts.and_then(|()| mounts::apply_mounts(order));
    let terminals = mounts.as_ref().is_ok_and(|mounts| mounts.has_own_terminals);
    let steps = ConfinementSteps {
        mounts,
        processes: namespaces.processes,
        capabilities: drop_capabilities(),
        landlock: landlock_rules::restrict_writes(order, terminals),
        seccomp: seccomp::install_filters(order),
    };
    steps.to_support(order)
}

/// Opens the writable folders that exist.
fn open_writable_folders(order: &HelperRequest) -> Vec<(&Path, OwnedFd)> {
    let folders = order.writable.iter().map(PathBuf::as_path);
    folders.filter_map(|folder| Some((folder, open_without_links(folder).ok()?))).collect()
}

/// Opens a path without following symlinks: the host has resolved them before.
fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), resolve)?)
}

/// Drops every capability; `no_new_privs` keeps them from coming back.
fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    clear_ambient_capability_set()?;
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // SB3: `TMPDIR` of the host does not make the files of the user writable.
    #[test]
    fn folders_that_people_keep_files_in_are_not_temporary() {
        let home = Path::new("/home/ada");
        for folder in [
            "/",
            "/etc",
            "/home",
            "/home/ada",
            "/usr/lib/x",
            "/root",
            "/var/lib",
            "/var/log/x",
            "/home/ada/.ssh",
            "/home/ada/.config/tmp",
            "/run/lock",
        ] {
            assert!(!is_temporary(Path::new(folder), Some(home)), "{folder}");
        }
        for folder in
            ["/tmp", "/tmp/user/1000", "/var/tmp", "/home/ada/.cache/tmp", "/run/user/1000"]
        {
            assert!(is_temporary(Path::new(folder), Some(home)), "{folder}");
        }
    }
}
