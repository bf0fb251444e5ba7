//! Starts a child on Linux and waits for it through a pidfd.
//!
//! **Invariant:** a child is reaped only through its pidfd, so the pid is not reused while the
//! handle exists.

mod ends;
mod enter;
mod limit;

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use rustix::fs::{Access, access};
use rustix::process::{Rlimit, WaitId, WaitIdOptions, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(in crate::process) use self::ends::{hear_of_children, hears_of_children};
use self::enter::{Plan, enter};
pub(in crate::process) use self::limit::limit_of;
use super::super::env::folders;
use super::super::guardian::{self, Told};
use super::super::mark::{self, Mark};
use super::super::program::Program;
use super::wires::{Ends, wires};
use super::{Started, Wiring};

/// The search path for a child without `PATH`.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The interpreter of a script without `#!`.
const SHELL: &str = "/bin/sh";

/// A child that is reaped even if this handle is dropped.
///
/// A child that has exited keeps its pid until this is dropped, so that its process group can
/// be signalled until then.
#[derive(Debug)]
pub(in crate::process) struct Child {
    /// `None` only while this is dropped.
    handle: Option<AsyncFd<Handle>>,
    status: Option<ExitStatus>,
    number: i32,
    /// The registration with the reaper, until the child has exited.
    told: Option<Told>,
}

/// A pidfd. The process keeps its pid until it is reaped.
#[derive(Debug)]
pub(in crate::process) struct Handle {
    fd: OwnedFd,
    number: i32,
}

pub(super) fn start_wired(program: &Program, mark: &Mark, wiring: Wiring) -> io::Result<Started> {
    if !hears_of_children() {
        let what = "this program ignores SIGCHLD, so the exit status of a child would be lost; \
                    call `restore_sigchld` first";
        return Err(io::Error::other(what));
    }
    let (ends, mut streams) = wires(wiring)?;
    let handle = launch(program, Some(mark.as_str().as_ref()), mark.limit(), &ends)?;
    streams.held = ends.written();
    Ok(Started { child: Child::new(handle)?, streams })
}

/// Starts `program` without registering it with the reaper.
pub(in crate::process) fn launch(
    program: &Program,
    mark: Option<&OsStr>,
    marked: Option<Rlimit>,
    ends: &Ends,
) -> io::Result<Handle> {
    let env = program.env();
    let path = find(&program.name, env.vars().get(OsStr::new("PATH")))?;
    let folder = program.folder.as_ref().map(|folder| text(folder.as_os_str())).transpose()?;
    let words = std::iter::once(&program.name).chain(&program.args);
    let words: Vec<CString> = words.map(|word| text(word)).collect::<io::Result<_>>()?;
    let vars = variables(env.vars(), mark)?;
    let plan = |path: &CString, words: &[CString]| {
        enter(&Plan {
            path,
            words,
            vars: &vars,
            folder: folder.as_deref(),
            ends,
            limits: program.limits,
            marked,
        })
    };
    match plan(&path, &words) {
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            let shell = text(SHELL.as_ref())?;
            let words: Vec<_> =
                [shell.clone(), path].into_iter().chain(words.into_iter().skip(1)).collect();
            plan(&shell, &words)
        }
        started => started,
    }
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(io::Error::from)
}

/// Builds the environment block of `vars`, with `mark` in place of an inherited tag.
fn variables(
    vars: &BTreeMap<OsString, OsString>,
    mark: Option<&OsStr>,
) -> io::Result<Vec<CString>> {
    let marked = mark.map(|mark| variable(mark::NAME.as_ref(), mark));
    let others = vars.iter().filter(|(name, _)| mark.is_none() || *name != mark::NAME);
    let mut texts = Vec::with_capacity(vars.len() + 1);
    for text in others.map(|(name, value)| variable(name, value)).chain(marked) {
        texts.push(text?);
    }
    Ok(texts)
}

fn variable(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    // One more byte for the terminating zero.
    let mut text = Vec::with_capacity(name.len() + value.len() + 2);
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value.as_bytes());
    Ok(CString::new(text)?)
}

/// Returns the file of a program; a name without a slash is searched in `path`.
fn find(name: &OsStr, path: Option<&OsString>) -> io::Result<CString> {
    if name.as_bytes().contains(&b'/') {
        return text(name);
    }
    let mut found = io::Error::from_raw_os_error(libc::ENOENT);
    let path = path.map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str);
    // A relative entry would depend on the working directory of the host.
    for folder in folders(path).filter(|folder| folder.is_absolute()) {
        let file = folder.join(name);
        match executable(&file) {
            Ok(()) => return text(file.as_os_str()),
            // A later entry may have an executable file.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => found = error,
            Err(_) => {}
        }
    }
    Err(found)
}

fn executable(file: &Path) -> io::Result<()> {
    access(file, Access::EXEC_OK)?;
    match file.metadata()?.is_file() {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

impl Child {
    fn new(handle: Handle) -> io::Result<Self> {
        let number = handle.number;
        let told = guardian::tell(number);
        // SAFETY: the handle owns its descriptor, which stays open and unchanged until dropped.
        #[expect(unsafe_code, reason = "the registered descriptor must not change")]
        let registered = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
        match registered {
            Ok(handle) => Ok(Self { handle: Some(handle), status: None, number, told: Some(told) }),
            Err(error) => {
                let (handle, error) = error.into_parts();
                handle.kill();
                wait_elsewhere(handle, Some(told));
                Err(error)
            }
        }
    }

    /// Returns the pid, until the exit was observed.
    pub(in crate::process) fn id(&self) -> Option<u32> {
        u32::try_from(self.number).ok().filter(|_| self.status.is_none())
    }

    /// Waits for the exit. Cancel safe.
    pub(in crate::process) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let gone = || io::Error::other("the child was given up");
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            let handle = self.handle.as_ref().ok_or_else(gone)?;
            let mut ready = handle.readable().await?;
            self.status = handle.get_ref().status(WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)?;
            if self.status.is_none() {
                ready.clear_ready();
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take().map(AsyncFd::into_inner) else { return };
        if let Ok(None) = handle.status(WaitIdOptions::NOHANG) {
            wait_elsewhere(handle, self.told.take());
        }
    }
}

impl Handle {
    fn kill(&self) {
        // An error means that it has exited already.
        let _ = rustix::process::pidfd_send_signal(&self.fd, rustix::process::Signal::KILL);
    }

    /// Returns the exit status; `None` while it runs.
    pub(in crate::process) fn status(&self, how: WaitIdOptions) -> io::Result<Option<ExitStatus>> {
        let ended = waitid(WaitId::PidFd(self.fd.as_fd()), how | WaitIdOptions::EXITED)?;
        Ok(ended.map(|ended| {
            let code = ended.exit_status().unwrap_or_default() << 8;
            ExitStatus::from_raw(code | ended.terminating_signal().unwrap_or_default())
        }))
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl std::os::fd::AsRawFd for Handle {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.as_raw_fd()
    }
}

/// Reaps a child whose handle was dropped, so that it does not stay a zombie.
fn wait_elsewhere(handle: Handle, told: Option<Told>) {
    // If no thread can be started, the zombie stays until the host exits.
    let _ = std::thread::Builder::new().name("reaper".to_owned()).spawn(move || {
        let _ = handle.status(WaitIdOptions::empty());
        drop(told);
    });
}
