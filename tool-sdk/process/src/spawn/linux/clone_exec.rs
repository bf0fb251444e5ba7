//! Starts a program with `clone(CLONE_VM | CLONE_VFORK)` and `execve`.
//!
//! The child shares the memory of the host until `execve`, while the calling thread is suspended.
//! Nothing is copied, so the cost does not depend on the memory of the host. The child therefore
//! only makes system calls, on data that was prepared before.
//!
//! **Invariant:** the child never allocates, takes a lock or runs a signal handler.

use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;
use rustix::process::{Rlimit, WaitIdOptions, chdir, fchdir, ioctl_tiocsctty, setrlimit, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin};

use super::PidFd;
use crate::ResourceLimits;
use crate::spawn::stdio::ChildStdio;
use crate::tag::TAG_RLIMIT;

/// The size of the child's stack: enough for a few system calls.
const STACK_BYTES: usize = 32 << 10;

/// The highest signal number.
const MAX_SIGNAL: c_int = 64;

/// The first descriptor that is closed in the child.
const FIRST_CLOSED_FD: c_int = 3;

/// The end of the descriptors that are closed one by one without `close_range`.
const MAX_CLOSED_FD: c_int = 1 << 16;

/// Everything that the child needs to execute the program.
pub(super) struct ExecPlan<'a> {
    pub(super) path: &'a CStr,
    pub(super) args: &'a [CString],
    pub(super) environ: &'a [CString],
    pub(super) current_dir: Option<ChildDir<'a>>,
    pub(super) stdio: &'a ChildStdio,
    pub(super) limits: ResourceLimits,
    /// The process tag as an rlimit.
    pub(super) tag_rlimit: Option<Rlimit>,
}

/// The folder that the child enters.
#[derive(Clone, Copy)]
pub(super) enum ChildDir<'a> {
    Path(&'a CStr),
    Handle(BorrowedFd<'a>),
}

/// An [`ExecPlan`] with the pointer arrays of `execve`.
struct PreparedExec<'a> {
    plan: &'a ExecPlan<'a>,
    stdio_fds: [StdioFd<'a>; 3],
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    /// The error number of a failure in the child.
    errno: AtomicI32,
}

/// A descriptor for the stdio of the child.
enum StdioFd<'a> {
    Borrowed(BorrowedFd<'a>),
    Duplicated(OwnedFd),
}

impl AsFd for StdioFd<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Borrowed(fd) => *fd,
            Self::Duplicated(fd) => fd.as_fd(),
        }
    }
}

/// Starts the child and returns when it has executed the program.
pub(super) fn clone_and_exec(plan: &ExecPlan<'_>) -> io::Result<PidFd> {
    let ends = plan.stdio;
    let prepared = PreparedExec {
        plan,
        stdio_fds: [
            move_above_stdio(&ends.stdin)?,
            move_above_stdio(&ends.stdout)?,
            move_above_stdio(ends.stderr.as_ref().unwrap_or(&ends.stdout))?,
        ],
        argv: to_pointers(plan.args),
        envp: to_pointers(plan.environ),
        errno: AtomicI32::new(0),
    };
    let handle = with_signals_blocked(|| clone_process(&prepared))?;
    match prepared.errno.load(Ordering::Acquire) {
        0 => Ok(handle),
        error => {
            // It has exited already; reap it.
            let _ = handle.try_wait(WaitIdOptions::empty());
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// Returns the descriptor, or a duplicate above 2, so that `dup2` to 0, 1 or 2 does not
/// overwrite it.
fn move_above_stdio(fd: &OwnedFd) -> io::Result<StdioFd<'_>> {
    if fd.as_raw_fd() >= FIRST_CLOSED_FD {
        return Ok(StdioFd::Borrowed(fd.as_fd()));
    }
    Ok(StdioFd::Duplicated(rustix::io::fcntl_dupfd_cloexec(fd, FIRST_CLOSED_FD)?))
}

fn to_pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

#[expect(unsafe_code, reason = "the standard library has no clone")]
fn clone_process(prepared: &PreparedExec<'_>) -> io::Result<PidFd> {
    let mut stack = Box::<[u8]>::new_uninit_slice(STACK_BYTES);
    let top = stack.as_mut_ptr_range().end;
    // The stack grows down and is aligned to 16 bytes.
    let top = top.wrapping_byte_sub(top.addr() % 16).cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let argument = ptr::from_ref(prepared).cast_mut().cast::<c_void>();
    let mut fd: c_int = -1;
    // SAFETY: this thread is suspended until the child has executed or exited, so `prepared`,
    // `stack` and `fd` outlive their use. The child only reads `prepared`, except for an atomic.
    let number = unsafe { libc::clone(child_main, top, flags, argument, &raw mut fd) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it, and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(PidFd { fd, pid: number })
}

extern "C" fn child_main(argument: *mut c_void) -> c_int {
    #[expect(unsafe_code, reason = "the argument of `clone` is a raw pointer")]
    // SAFETY: it is the pointer that was passed to `clone_process`, and outlives its use in the child.
    let prepared = unsafe { &*argument.cast::<PreparedExec<'_>>() };
    let Err(error) = prepared.exec_program();
    prepared.errno.store(error.raw_os_error(), Ordering::Release);
    #[expect(unsafe_code, reason = "no destructor of the host may run")]
    // SAFETY: it only exits the child.
    unsafe {
        libc::_exit(127)
    }
}

impl PreparedExec<'_> {
    fn exec_program(&self) -> Result<Infallible, Errno> {
        let [input, output, complaints] = &self.stdio_fds;
        setsid()?;
        // Before a descriptor of the host is replaced: its number may be that of the folder.
        match self.plan.current_dir {
            Some(ChildDir::Handle(folder)) => fchdir(folder)?,
            Some(ChildDir::Path(folder)) => chdir(folder)?,
            None => {}
        }
        dup2_stdin(input)?;
        dup2_stdout(output)?;
        dup2_stderr(complaints)?;
        if self.plan.stdio.is_terminal {
            ioctl_tiocsctty(stdin())?;
        }
        self.plan.limits.apply_to_self()?;
        if let Some(limit) = self.plan.tag_rlimit {
            // Best effort: the tag in the environment remains.
            let _ = setrlimit(TAG_RLIMIT, limit);
        }
        close_inherited_fds();
        reset_signal_handlers();
        #[expect(unsafe_code, reason = "no safe API calls execve with prepared pointers")]
        // SAFETY: both arrays end in a null pointer and point to live C strings.
        unsafe {
            libc::execve(self.plan.path.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr());
        }
        Err(last_error())
    }
}

pub(super) fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Closes all inherited descriptors, also those without the close-on-exec flag.
#[expect(unsafe_code, reason = "the open descriptors are not known")]
fn close_inherited_fds() {
    // SAFETY: without `CLONE_FILES` the child has a descriptor table of its own.
    unsafe {
        let closed = libc::syscall(libc::SYS_close_range, FIRST_CLOSED_FD, c_int::MAX, 0);
        if closed == 0 {
            return;
        }
        for fd in FIRST_CLOSED_FD..MAX_CLOSED_FD {
            libc::close(fd);
        }
    }
}

/// Resets every signal to its default action and unblocks all signals.
#[expect(unsafe_code, reason = "the child inherits the signal handlers of the host")]
fn reset_signal_handlers() {
    // On every architecture that Rust supports, an all-zero action is the default action.
    let default = [0_u64; 16];
    for signal in 1..=MAX_SIGNAL {
        // SAFETY: the buffer is longer than an action. Without `CLONE_SIGHAND` this changes only
        // the actions of the child.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null_mut::<c_void>(),
                size_of::<u64>(),
            );
        }
    }
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled before it is read.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

/// Runs `work` with all signals blocked: handlers would otherwise run in the child.
#[expect(unsafe_code, reason = "no safe API blocks signals")]
fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: `all` is filled before it is read, and `before` by the first call.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let done = work();
    // SAFETY: as above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
    }
    done
}
