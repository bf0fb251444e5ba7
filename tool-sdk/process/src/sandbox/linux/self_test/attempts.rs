//! The attempts of the self-test that take more than a line.
//!
//! **Invariant:** an attempt leaves nothing behind outside of the sandbox.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::getppid;

use super::{AttemptTargets, OWN_PROGRAM, SELF_TEST_ARG};

pub(super) fn write_temporary(_: &AttemptTargets) -> io::Result<()> {
    let file = std::env::temp_dir().join(format!("tool-sdk-self-test-{}", std::process::id()));
    File::create_new(&file)?;
    fs::remove_file(file)
}

pub(super) fn run_pipeline(_: &AttemptTargets) -> io::Result<()> {
    let output = Command::new("/bin/sh").args(["-c", "echo hello | cat"]).output()?;
    if output.stdout == b"hello\n" { Ok(()) } else { Err(io::Error::other(format!("{output:?}"))) }
}

/// Starts a daemon in a session of its own, which must end with the sandbox.
pub(super) fn start_daemon(_: &AttemptTargets) -> io::Result<()> {
    let script = "(setsid sh -c 'while :; do sleep 1; done' &) </dev/null >/dev/null 2>&1";
    let status = Command::new("/bin/sh").args(["-c", script]).env_clear().status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

pub(super) fn attach_shared_memory(number: i32) -> io::Result<()> {
    #[expect(unsafe_code, reason = "no safe API has this system call")]
    // SAFETY: the kernel chooses the address, and the memory is never accessed.
    let place = unsafe { libc::shmat(number, std::ptr::null(), libc::SHM_RDONLY) };
    if place.addr() == usize::MAX { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads the limits of a process of the same sandbox, which only the filter blocks.
pub(super) fn read_parent_limits() -> io::Result<()> {
    let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    #[expect(unsafe_code, reason = "no safe API reads without writing")]
    // SAFETY: with null pointers it reads and writes nothing.
    let done = unsafe {
        libc::prlimit(parent, libc::RLIMIT_NOFILE, std::ptr::null(), std::ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn have_capability() -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    if effective.is_some_and(|all| all.trim().trim_start_matches('0').is_empty()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

pub(super) fn truncate_file(file: &Path) -> io::Result<()> {
    let path = std::ffi::CString::new(file.as_os_str().as_bytes())?;
    #[expect(unsafe_code, reason = "the standard library only truncates open files")]
    // SAFETY: the path is a C string and outlives the call.
    let done = unsafe { libc::truncate(path.as_ptr(), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Checks whether `/proc` shows another PID namespace, in which this process has another pid.
pub(super) fn see_other_processes() -> io::Result<()> {
    let seen_as = fs::read_link("/proc/self")?;
    let own = std::process::id().to_string();
    if seen_as == Path::new(&own) { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
}

/// Attaches to a process with `PTRACE_SEIZE`, which does not stop it.
pub(super) fn attach_ptrace(number: i32) -> io::Result<()> {
    const PTRACE_SEIZE: libc::c_long = 0x4206;
    #[expect(unsafe_code, reason = "no safe API has this system call")]
    // SAFETY: takes integers only.
    let done = unsafe { libc::syscall(libc::SYS_ptrace, PTRACE_SEIZE, number, 0, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a system call with invalid arguments; fails only if the filter blocks it.
pub(super) fn try_syscall(call: libc::c_long) -> io::Result<()> {
    #[expect(unsafe_code, reason = "no safe API makes a call that must fail")]
    // SAFETY: with these arguments none of the calls has an effect.
    let done = unsafe { libc::syscall(call, -1, 0, 0, 0, 0, 0) };
    match io::Error::last_os_error() {
        error if done == -1 && error.raw_os_error() == Some(libc::EPERM) => Err(error),
        _ => Ok(()),
    }
}

/// Calls `try_clone3`, whose arguments a filter cannot read.
pub(super) fn try_clone3() -> io::Result<()> {
    #[expect(unsafe_code, reason = "no safe API makes a call that must fail")]
    // SAFETY: arguments of size zero start nothing.
    let done = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<u8>(), 0) };
    match io::Error::last_os_error() {
        error if done == -1 && error.raw_os_error() == Some(libc::ENOSYS) => Err(error),
        _ => Ok(()),
    }
}

/// Starts a thread, which must stay possible.
pub(super) fn start_thread() -> io::Result<()> {
    let thread = std::thread::Builder::new().spawn(|| ())?;
    thread.join().map_err(|_| io::Error::other("it did not run"))
}

/// Calls `getpid` of the x32 ABI.
pub(super) fn call_x32() -> io::Result<()> {
    match std::env::consts::ARCH {
        "x86_64" => try_syscall(0x4000_0000 | libc::SYS_getpid),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Makes an i386 system call in a child, because the filter kills the process.
pub(super) fn spawn_i386_call() -> io::Result<()> {
    let status = Command::new(OWN_PROGRAM).args([SELF_TEST_ARG, I386_ARG]).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

pub(super) const I386_ARG: &str = "i386";

/// Calls `getpid` of the i386 ABI.
#[cfg(target_arch = "x86_64")]
pub(super) fn call_i386() -> i32 {
    const GETPID: i64 = 20;
    let mut number = GETPID;
    #[expect(unsafe_code, reason = "no safe API makes calls of another architecture")]
    // SAFETY: the call takes no arguments, and changes no memory and no other register.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") number);
    }
    i32::from(number <= 0)
}

/// Other architectures have no i386 ABI.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn call_i386() -> i32 {
    1
}
