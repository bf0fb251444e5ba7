//! The way from this process into a program, in the child.
//!
//! The child borrows the memory of this process until it is the program, while the thread
//! that started it stands still: nothing has to be copied, however much memory there is.
//! Therefore the child only makes system calls, on what was prepared before.
//!
//! **Invariant:** in the child nothing allocates, takes a lock or runs a handler for signals.

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

/// Enough for a handful of system calls.
const STACK: usize = 32 << 10;

/// The numbers of signals end here.
const SIGNALS: c_int = 64;

/// The first descriptor that the child does not get.
const FIRST_CLOSED: c_int = 3;

/// How many descriptors are closed one by one where the system cannot close them at once.
const CLOSED_BY_HAND: c_int = 1 << 16;

/// Everything that the child needs to become the program.
pub(super) struct Plan<'a> {
    pub(super) path: &'a CStr,
    pub(super) words: &'a [CString],
    pub(super) vars: &'a [CString],
    pub(super) folder: Option<&'a CStr>,
    pub(super) ends: &'a Ends,
    pub(super) limits: Limits,
    /// The mark as a limit.
    pub(super) marked: Option<Rlimit>,
}

/// A plan as the system reads it.
struct Prepared<'a> {
    plan: &'a Plan<'a>,
    streams: [Stream<'a>; 3],
    words: Vec<*const c_char>,
    vars: Vec<*const c_char>,
    /// What went wrong in the child.
    failed: AtomicI32,
}

/// What the child gets as a stream.
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

/// Starts the child, and returns when it is the program.
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
            // It has ended already.
            let _ = handle.status(WaitIdOptions::empty());
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// The descriptor, or a copy, so that no stream of the child takes its place.
fn out_of_the_way(fd: &OwnedFd) -> io::Result<Stream<'_>> {
    if fd.as_raw_fd() >= FIRST_CLOSED {
        return Ok(Stream::Itself(fd.as_fd()));
    }
    Ok(Stream::Copy(rustix::io::fcntl_dupfd_cloexec(fd, FIRST_CLOSED)?))
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

#[expect(unsafe_code, reason = "the standard library can only copy this process")]
fn clone(prepared: &Prepared<'_>) -> io::Result<Handle> {
    let mut stack = Box::<[u8]>::new_uninit_slice(STACK);
    let top = stack.as_mut_ptr_range().end;
    // Stacks grow down, and begin at a multiple of sixteen.
    let top = top.wrapping_byte_sub(top.addr() % 16).cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let argument = ptr::from_ref(prepared).cast_mut().cast::<c_void>();
    let mut fd: c_int = -1;
    // SAFETY: this thread stands still until the child has left its memory, so that
    // `prepared`, `stack` and `fd` outlive its use of them. The child only reads `prepared`,
    // but for an atomic.
    let number = unsafe { libc::clone(in_child, top, flags, argument, &raw mut fd) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system has just opened it, and nobody else knows of it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(Handle { fd, number })
}

extern "C" fn in_child(argument: *mut c_void) -> c_int {
    #[expect(unsafe_code, reason = "what `clone` hands over")]
    // SAFETY: it is what `clone` was given, which outlives the child's use of it.
    let prepared = unsafe { &*argument.cast::<Prepared<'_>>() };
    let Err(error) = prepared.become_program();
    prepared.failed.store(error.raw_os_error(), Ordering::Release);
    #[expect(unsafe_code, reason = "no destructor of this process may run")]
    // SAFETY: it only ends the child.
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
            // Where it is refused, the mark in the environment is there.
            let _ = setrlimit(MARKED, limit);
        }
        close_others();
        default_signals();
        #[expect(unsafe_code, reason = "nothing else becomes another program")]
        // SAFETY: both lists end in a null pointer, and what they point to is prepared.
        unsafe {
            libc::execve(self.plan.path.as_ptr(), self.words.as_ptr(), self.vars.as_ptr());
        }
        Err(last_error())
    }
}

pub(super) fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Closes whatever this process had open, also what it opened to be handed down.
#[expect(unsafe_code, reason = "what is open here is not known")]
fn close_others() {
    // SAFETY: the child's table of descriptors is its own; closing in it closes nothing here.
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

/// Lets every signal do what it does to a program that knows nothing of it.
#[expect(unsafe_code, reason = "the child begins with the handlers of this process")]
fn default_signals() {
    // For every system that Rust runs on, an action of zeros is the default one.
    let default = [0_u64; 16];
    for signal in 1..=SIGNALS {
        // SAFETY: the buffer is longer than an action. Without shared handlers, this changes
        // those of the child only.
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

/// Does `work` while no signal interrupts this thread: its handlers would run in the child.
#[expect(unsafe_code, reason = "the standard library has no word for it")]
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
