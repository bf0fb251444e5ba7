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
use rustix::process::{Rlimit, WaitIdOptions, chdir, ioctl_tiocsctty, setrlimit, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin};

use super::super::super::Limits;
use super::super::super::mark::MARKED;
use super::super::wires::Ends;
use super::Handle;

/// The size of the child's stack: enough for a few system calls.
const STACK: usize = 32 << 10;

/// The highest signal number.
const SIGNALS: c_int = 64;

/// The first descriptor that is closed in the child.
const FIRST_CLOSED: c_int = 3;

/// The end of the descriptors that are closed one by one without `close_range`.
const CLOSED_BY_HAND: c_int = 1 << 16;

/// Everything that the child needs to execute the program.
pub(super) struct Plan<'a> {
    pub(super) path: &'a CStr,
    pub(super) words: &'a [CString],
    pub(super) vars: &'a [CString],
    pub(super) folder: Option<&'a CStr>,
    pub(super) ends: &'a Ends,
    pub(super) limits: Limits,
    /// The process tag as an rlimit.
    pub(super) marked: Option<Rlimit>,
}

/// An [`ExecPlan`] with the pointer arrays of `execve`.
struct Prepared<'a> {
    plan: &'a Plan<'a>,
    streams: [Stream<'a>; 3],
    words: Vec<*const c_char>,
    vars: Vec<*const c_char>,
    /// The error number of a failure in the child.
    failed: AtomicI32,
}

/// A descriptor for the stdio of the child.
enum Stream<'a> {
    Itself(BorrowedFd<'a>),
    Copy(OwnedFd),
}

impl AsFd for Stream<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Itself(fd) => *fd,
            Self::Copy(fd) => fd.as_fd(),
        }
    }
}

/// Starts the child and returns when it has executed the program.
pub(super) fn enter(plan: &Plan<'_>) -> io::Result<Handle> {
    let ends = plan.ends;
    let prepared = Prepared {
        plan,
        streams: [
            out_of_the_way(&ends.input)?,
            out_of_the_way(&ends.output)?,
            out_of_the_way(ends.complaints.as_ref().unwrap_or(&ends.output))?,
        ],
        words: pointers(plan.words),
        vars: pointers(plan.vars),
        failed: AtomicI32::new(0),
    };
    let handle = without_signals(|| clone(&prepared))?;
    match prepared.failed.load(Ordering::Acquire) {
        0 => Ok(handle),
        error => {
            // It has exited already; reap it.
            let _ = handle.status(WaitIdOptions::empty());
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// Returns the descriptor, or a duplicate above 2, so that `dup2` to 0, 1 or 2 does not
/// overwrite it.
fn out_of_the_way(fd: &OwnedFd) -> io::Result<Stream<'_>> {
    if fd.as_raw_fd() >= FIRST_CLOSED {
        return Ok(Stream::Itself(fd.as_fd()));
    }
    Ok(Stream::Copy(rustix::io::fcntl_dupfd_cloexec(fd, FIRST_CLOSED)?))
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

#[expect(unsafe_code, reason = "the standard library has no clone")]
fn clone(prepared: &Prepared<'_>) -> io::Result<Handle> {
    let mut stack = Box::<[u8]>::new_uninit_slice(STACK);
    let top = stack.as_mut_ptr_range().end;
    // The stack grows down and is aligned to 16 bytes.
    let top = top.wrapping_byte_sub(top.addr() % 16).cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let argument = ptr::from_ref(prepared).cast_mut().cast::<c_void>();
    let mut fd: c_int = -1;
    // SAFETY: this thread is suspended until the child has executed or exited, so `prepared`,
    // `stack` and `fd` outlive their use. The child only reads `prepared`, except for an atomic.
    let number = unsafe { libc::clone(in_child, top, flags, argument, &raw mut fd) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it, and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(Handle { fd, number })
}

extern "C" fn in_child(argument: *mut c_void) -> c_int {
    #[expect(unsafe_code, reason = "the argument of `clone` is a raw pointer")]
    // SAFETY: it is the pointer that was passed to `clone`, and outlives its use in the child.
    let prepared = unsafe { &*argument.cast::<Prepared<'_>>() };
    let Err(error) = prepared.become_program();
    prepared.failed.store(error.raw_os_error(), Ordering::Release);
    #[expect(unsafe_code, reason = "no destructor of the host may run")]
    // SAFETY: it only exits the child.
    unsafe {
        libc::_exit(127)
    }
}

impl Prepared<'_> {
    fn become_program(&self) -> Result<Infallible, Errno> {
        let [input, output, complaints] = &self.streams;
        setsid()?;
        dup2_stdin(input)?;
        dup2_stdout(output)?;
        dup2_stderr(complaints)?;
        if self.plan.ends.is_terminal {
            ioctl_tiocsctty(stdin())?;
        }
        if let Some(folder) = self.plan.folder {
            chdir(folder)?;
        }
        self.plan.limits.apply()?;
        if let Some(limit) = self.plan.marked {
            // Best effort: the tag in the environment remains.
            let _ = setrlimit(MARKED, limit);
        }
        close_others();
        default_signals();
        #[expect(unsafe_code, reason = "no safe API calls execve with prepared pointers")]
        // SAFETY: both arrays end in a null pointer and point to live C strings.
        unsafe {
            libc::execve(self.plan.path.as_ptr(), self.words.as_ptr(), self.vars.as_ptr());
        }
        Err(last_error())
    }
}

pub(super) fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Closes all inherited descriptors, also those without the close-on-exec flag.
#[expect(unsafe_code, reason = "the open descriptors are not known")]
fn close_others() {
    // SAFETY: without `CLONE_FILES` the child has a descriptor table of its own.
    unsafe {
        let closed = libc::syscall(libc::SYS_close_range, FIRST_CLOSED, c_int::MAX, 0);
        if closed == 0 {
            return;
        }
        for fd in FIRST_CLOSED..CLOSED_BY_HAND {
            libc::close(fd);
        }
    }
}

/// Resets every signal to its default action and unblocks all signals.
#[expect(unsafe_code, reason = "the child inherits the signal handlers of the host")]
fn default_signals() {
    // On every architecture that Rust supports, an all-zero action is the default action.
    let default = [0_u64; 16];
    for signal in 1..=SIGNALS {
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
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
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
