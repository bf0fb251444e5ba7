//! The init process of the PID namespace, and the keeper outside of it.
//!
//! When the init process of a PID namespace exits, the kernel kills all other processes in it,
//! including daemons, and the exit completes only after they are gone. An init process ignores
//! signals without handlers and has to reap orphans, so it does not execute the program itself:
//! it starts the program as a child and exits with it.
//!
//! The process that the host started stays outside as the keeper. It forwards `SIGINT` and exits
//! with the status of the program.
//!
//! **Invariant:** when the keeper dies, the init process is killed, and with it the sandbox.

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

/// The init process of a PID namespace.
#[derive(Debug)]
pub(super) struct InitProcess {
    /// Whether the terminal on standard input becomes the program's controlling terminal.
    terminal: bool,
    /// The pipe on which it reports the exit status of the program to the keeper.
    status_writer: PipeWriter,
}

/// Forks the init process and returns in it. The calling process becomes the keeper and never
/// returns.
pub(super) fn fork_init() -> io::Result<InitProcess> {
    let terminal = detach_terminal();
    let (hears, told) = io::pipe()?;
    reset_signal(Signal::CHILD);
    block_signals();
    match fork()? {
        Some(first) => {
            drop(told);
            run_keeper(first, hears)
        }
        None => {
            drop(hears);
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if !is_keeper_alive(&told)? {
                return Err(io::Error::other("the keeper process has exited"));
            }
            // Leave the keeper's process group, so that its signals do not reach this process.
            setsid()?;
            Ok(InitProcess { terminal, status_writer: told })
        }
    }
}

impl InitProcess {
    /// Starts the program and reaps processes until it exits; returns the exit code.
    pub(super) fn run_program(
        mut self,
        program: &OsStr,
        args: impl Iterator<Item = OsString>,
    ) -> i32 {
        let child = match fork() {
            Ok(Some(child)) => child,
            Ok(None) => return self.exec_program(program, args),
            Err(error) => return super::report_start_error(program, &error),
        };
        redirect_to_null();
        // Deny the program access to the memory of this process.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        loop {
            if wait_for_signal() == libc::SIGINT {
                // Fails only before the program leads its group.
                let _ = kill_process_group(child, Signal::INT);
            }
            while let Ok(Some((ended, status))) = wait(WaitOptions::NOHANG) {
                if ended == child {
                    let status = status.as_raw();
                    // If this fails, the keeper uses the exit code.
                    let _ = self.status_writer.write_all(&status.to_ne_bytes());
                    return shell_exit_code(ExitStatus::from_raw(status));
                }
            }
        }
    }

    fn exec_program(&self, program: &OsStr, args: impl Iterator<Item = OsString>) -> i32 {
        let ready = setsid().and_then(|_| match self.terminal {
            true => ioctl_tiocsctty(stdin()),
            false => Ok(()),
        });
        if let Err(error) = ready {
            return super::report_start_error(program, &error.into());
        }
        unblock_signals();
        super::report_start_error(program, &Command::new(program).args(args).exec())
    }
}

/// Waits for the init process and exits with the status of the program.
fn run_keeper(first: Pid, mut hears: PipeReader) -> ! {
    redirect_to_null();
    let _ = super::drop_capabilities();
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        // The program receives these signals itself.
        set_signal_action(signal, libc::SIG_IGN);
    }
    loop {
        if wait_for_signal() == libc::SIGINT {
            let _ = kill_process(first, Signal::INT);
        }
        // No other thread waits for it.
        if let Ok(Some((_, status))) = waitpid(Some(first), WaitOptions::NOHANG) {
            let mut told = [0; size_of::<i32>()];
            let is_told = hears.read_exact(&mut told).is_ok();
            exit_like(if is_told { i32::from_ne_bytes(told) } else { status.as_raw() });
        }
    }
}

fn exit_like(status: i32) -> ! {
    let status = ExitStatus::from_raw(status);
    if let Some(signal) = status.signal() {
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        // The program has already dumped core, if that is enabled.
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        set_signal_action(signal, libc::SIG_DFL);
        unblock_signals();
        #[expect(unsafe_code, reason = "no safe API raises real-time signals")]
        // SAFETY: takes an integer only.
        unsafe {
            libc::raise(signal);
        }
    }
    std::process::exit(shell_exit_code(status));
}

/// Returns the exit code as in shells: 128 plus the number of a signal.
fn shell_exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(128 + status.signal().unwrap_or_default())
}

/// Returns whether the keeper is running: it holds the only read end of the pipe.
fn is_keeper_alive(told: &PipeWriter) -> io::Result<bool> {
    let mut end = [PollFd::new(told, PollFlags::OUT)];
    poll(&mut end, Some(&Timespec::default()))?;
    Ok(!end[0].revents().contains(PollFlags::ERR))
}

/// Detaches the controlling terminal, so that another session can have it; returns whether there
/// was one.
fn detach_terminal() -> bool {
    // The kernel sends SIGHUP to the foreground group, which includes this process.
    set_signal_action(libc::SIGHUP, libc::SIG_IGN);
    #[expect(unsafe_code, reason = "no safe API has this request")]
    // SAFETY: the request takes no argument.
    let left = unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCNOTTY) } == 0;
    reset_signal(Signal::HUP);
    left
}

/// Replaces the stdio of this process by `/dev/null`: readers of the program's output wait until
/// the last holder has closed it.
fn redirect_to_null() {
    // Without `/dev/null` they stay open while the program runs.
    if let Ok(none) = File::options().read(true).write(true).open("/dev/null") {
        let _ =
            dup2_stdin(&none).and_then(|()| dup2_stdout(&none)).and_then(|()| dup2_stderr(&none));
    }
}

/// Forks; returns the pid of the child, and `None` in the child.
fn fork() -> io::Result<Option<Pid>> {
    #[expect(unsafe_code, reason = "the standard library has no fork")]
    // SAFETY: the helper is single-threaded.
    let number = unsafe { libc::fork() };
    if number < 0 { Err(io::Error::last_os_error()) } else { Ok(Pid::from_raw(number)) }
}

/// The signals that the keeper and the init process wait for.
const AWAITED_SIGNALS: [i32; 2] = [libc::SIGCHLD, libc::SIGINT];

fn awaited_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    #[expect(unsafe_code, reason = "no safe API for signal masks and actions")]
    // SAFETY: the set is filled before it is read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in AWAITED_SIGNALS {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

fn block_signals() {
    set_signal_mask(libc::SIG_BLOCK);
}

fn unblock_signals() {
    set_signal_mask(libc::SIG_UNBLOCK);
}

#[expect(unsafe_code, reason = "no safe API for signal masks and actions")]
fn set_signal_mask(how: i32) {
    let set = awaited_set();
    // SAFETY: the set is filled.
    unsafe {
        libc::sigprocmask(how, &raw const set, std::ptr::null_mut());
    }
}

fn wait_for_signal() -> i32 {
    let (set, mut signal) = (awaited_set(), 0);
    #[expect(unsafe_code, reason = "no safe API for signal masks and actions")]
    // SAFETY: the set is filled, and the number is read after the call.
    unsafe {
        libc::sigwait(&raw const set, &raw mut signal);
    }
    signal
}

fn reset_signal(signal: Signal) {
    set_signal_action(signal.as_raw(), libc::SIG_DFL);
}

#[expect(unsafe_code, reason = "no safe API for signal masks and actions")]
fn set_signal_action(signal: i32, action: libc::sighandler_t) {
    // SAFETY: callers pass `SIG_DFL` or `SIG_IGN`; no handler of this process is installed.
    unsafe {
        libc::signal(signal, action);
    }
}
