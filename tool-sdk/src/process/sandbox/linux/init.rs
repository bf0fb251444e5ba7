//! The first of a confined child's processes, and who waits for it outside.
//!
//! When the first process of a namespace ends, the kernel ends all others, wherever they went
//! and whatever they left behind, and it has ended only when they have. It is no program that
//! anybody asked for: signals do not end it, and it has to wait for orphans. So it starts the
//! program, and ends when the program does.
//!
//! The process that the host started stays outside as the keeper. It hands on interrupts, and
//! ends as the program has ended.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, ioctl_tiocsctty, kill_process, kill_process_group,
    set_dumpable_behavior, set_parent_process_death_signal, setsid, wait, waitpid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin};

/// This process, as the first one.
#[derive(Debug)]
pub(super) struct Init {
    /// Whether the program gets the terminal that it reads from.
    terminal: bool,
    /// Where it tells how the program ended.
    told: PipeWriter,
}

/// Goes on as the first process of a namespace, while the one that called this waits outside
/// and never comes back.
pub(super) fn begin() -> io::Result<Init> {
    let terminal = leave_terminal();
    let (hears, told) = io::pipe()?;
    default(Signal::CHILD);
    hold_back_signals();
    match fork()? {
        Some(first) => {
            drop(told);
            keep(first, hears)
        }
        None => {
            drop(hears);
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if !is_heard(&told)? {
                return Err(io::Error::other("nobody waits for it any more"));
            }
            // Signals for the keeper's group are none for this one.
            setsid()?;
            Ok(Init { terminal, told })
        }
    }
}

impl Init {
    /// Starts the program and waits until it has ended; gives the exit code.
    pub(super) fn run(mut self, program: &OsStr, args: impl Iterator<Item = OsString>) -> i32 {
        let child = match fork() {
            Ok(Some(child)) => child,
            Ok(None) => return self.become_program(program, args),
            Err(error) => return super::not_started(program, &error),
        };
        close_streams();
        // What it starts has no business in its memory.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        loop {
            if next_signal() == libc::SIGINT {
                // Before it leads a group, it has nothing to interrupt.
                let _ = kill_process_group(child, Signal::INT);
            }
            while let Ok(Some((ended, status))) = wait(WaitOptions::NOHANG) {
                if ended == child {
                    let status = status.as_raw();
                    // Without it, the keeper has the code.
                    let _ = self.told.write_all(&status.to_ne_bytes());
                    return code(ExitStatus::from_raw(status));
                }
            }
        }
    }

    fn become_program(&self, program: &OsStr, args: impl Iterator<Item = OsString>) -> i32 {
        let ready = setsid().and_then(|_| match self.terminal {
            true => ioctl_tiocsctty(stdin()),
            false => Ok(()),
        });
        if let Err(error) = ready {
            return super::not_started(program, &error.into());
        }
        let_signals_come();
        super::not_started(program, &Command::new(program).args(args).exec())
    }
}

/// Waits for the first process, and ends as the program did.
fn keep(first: Pid, mut hears: PipeReader) -> ! {
    close_streams();
    let _ = super::drop_rights();
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        // They are meant for the program, which gets its own.
        act(signal, libc::SIG_IGN);
    }
    loop {
        if next_signal() == libc::SIGINT {
            let _ = kill_process(first, Signal::INT);
        }
        // Nobody else waits for it.
        if let Ok(Some((_, status))) = waitpid(Some(first), WaitOptions::NOHANG) {
            let mut told = [0; size_of::<i32>()];
            let is_told = hears.read_exact(&mut told).is_ok();
            end_like(if is_told { i32::from_ne_bytes(told) } else { status.as_raw() });
        }
    }
}

fn end_like(status: i32) -> ! {
    let status = ExitStatus::from_raw(status);
    if let Some(signal) = status.signal() {
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        // The program has left its own memory already, if anybody wanted that.
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        act(signal, libc::SIG_DFL);
        let_signals_come();
        #[expect(unsafe_code, reason = "real-time signals have no name")]
        // SAFETY: it takes a number only.
        unsafe {
            libc::raise(signal);
        }
    }
    std::process::exit(code(status));
}

/// The exit code as shells count it.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(128 + status.signal().unwrap_or_default())
}

/// Whether the keeper is still there: it holds the only other end.
fn is_heard(told: &PipeWriter) -> io::Result<bool> {
    let mut end = [PollFd::new(told, PollFlags::OUT)];
    poll(&mut end, Some(&Timespec::default()))?;
    Ok(!end[0].revents().contains(PollFlags::ERR))
}

/// Gives up the terminal of this session, so that another one can have it; whether there was
/// one.
fn leave_terminal() -> bool {
    // Whoever gives it up is told so, too.
    act(libc::SIGHUP, libc::SIG_IGN);
    #[expect(unsafe_code, reason = "no crate has this request")]
    // SAFETY: the request takes no argument.
    let left = unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCNOTTY) } == 0;
    default(Signal::HUP);
    left
}

/// Lets go of the program's streams: whoever reads them waits for their last holder.
fn close_streams() {
    // Without a device for it they stay open for as long as the program runs.
    if let Ok(none) = File::options().read(true).write(true).open("/dev/null") {
        let _ =
            dup2_stdin(&none).and_then(|()| dup2_stdout(&none)).and_then(|()| dup2_stderr(&none));
    }
}

/// Another process like this one; nothing in that one.
fn fork() -> io::Result<Option<Pid>> {
    #[expect(unsafe_code, reason = "the standard library cannot go on in a copy")]
    // SAFETY: the helper has one thread.
    let number = unsafe { libc::fork() };
    if number < 0 { Err(io::Error::last_os_error()) } else { Ok(Pid::from_raw(number)) }
}

/// What the keeper and the first process wait for.
const AWAITED: [i32; 2] = [libc::SIGCHLD, libc::SIGINT];

fn awaited() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    #[expect(unsafe_code, reason = "the standard library has no word for it")]
    // SAFETY: the set is filled before it is read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in AWAITED {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

fn hold_back_signals() {
    mask(libc::SIG_BLOCK);
}

fn let_signals_come() {
    mask(libc::SIG_UNBLOCK);
}

#[expect(unsafe_code, reason = "the standard library has no word for it")]
fn mask(how: i32) {
    let set = awaited();
    // SAFETY: the set is filled.
    unsafe {
        libc::sigprocmask(how, &raw const set, std::ptr::null_mut());
    }
}

fn next_signal() -> i32 {
    let (set, mut signal) = (awaited(), 0);
    #[expect(unsafe_code, reason = "the standard library has no word for it")]
    // SAFETY: the set is filled, and the number is only read behind the call.
    unsafe {
        libc::sigwait(&raw const set, &raw mut signal);
    }
    signal
}

fn default(signal: Signal) {
    act(signal.as_raw(), libc::SIG_DFL);
}

#[expect(unsafe_code, reason = "the standard library has no word for it")]
fn act(signal: i32, action: libc::sighandler_t) {
    // SAFETY: both actions are the system's own; no code of this process runs.
    unsafe {
        libc::signal(signal, action);
    }
}
