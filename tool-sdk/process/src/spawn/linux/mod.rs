//! Starts a child on Linux and waits for it through a pidfd.
//!
//! **Invariant:** a child is reaped only through its pidfd, so the pid is not reused while the
//! handle exists.

mod clone_exec;
mod rlimit;
mod sigchld;

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

use self::clone_exec::{ChildDir, ExecPlan, clone_and_exec};
pub(crate) use self::rlimit::rlimit_of_pid;
pub(crate) use self::sigchld::{receives_sigchld, restore_sigchld};
use super::stdio::{ChildStdio, open_stdio};
use super::{SpawnedChild, StdioMode};
use crate::env::split_path_dirs;
use crate::program::CommandSpec;
use crate::reaper::{self, RegisteredChild};
use crate::tag::{self, ProcessTag};

/// The search path for a child without `PATH`.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The interpreter of a script without `#!`.
const FALLBACK_SHELL: &str = "/bin/sh";

/// A child that is reaped even if this handle is dropped.
///
/// A child that has exited keeps its pid until this is dropped, so that its process group can
/// be signalled until then.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    /// `None` only while this is dropped.
    handle: Option<AsyncFd<PidFd>>,
    status: Option<ExitStatus>,
    pid: i32,
    /// The registration with the reaper, until the child has exited.
    registration: Option<RegisteredChild>,
}

/// A pidfd. The process keeps its pid until it is reaped.
#[derive(Debug)]
pub(crate) struct PidFd {
    fd: OwnedFd,
    pid: i32,
}

pub(super) fn spawn_with_stdio(
    spec: &CommandSpec,
    tag: &ProcessTag,
    wiring: StdioMode,
) -> io::Result<SpawnedChild> {
    if !receives_sigchld() {
        let what = "this program ignores SIGCHLD, so the exit status of a child would be lost; \
                    call `restore_sigchld` first";
        return Err(io::Error::other(what));
    }
    let (ends, mut streams) = open_stdio(wiring)?;
    let handle = spawn_untracked(spec, Some(tag.as_str().as_ref()), tag.rlimit(), &ends)?;
    streams.child_fds = ends.into_output_fds();
    Ok(SpawnedChild { child: ChildProcess::new(handle)?, streams })
}

/// Starts `spec` without registering it with the reaper.
pub(crate) fn spawn_untracked(
    spec: &CommandSpec,
    mark: Option<&OsStr>,
    tag_rlimit: Option<Rlimit>,
    ends: &ChildStdio,
) -> io::Result<PidFd> {
    let env = spec.effective_env();
    let path = find_executable(&spec.program, env.as_map().get(OsStr::new("PATH")))?;
    let folder = spec.current_dir.as_ref();
    let folder_path = folder.map(|folder| to_c_string(folder.path.as_os_str())).transpose()?;
    let current_dir = match folder.and_then(|folder| folder.handle.as_deref()) {
        Some(handle) => Some(ChildDir::Handle(handle.as_fd())),
        None => folder_path.as_deref().map(ChildDir::Path),
    };
    let words = std::iter::once(&spec.program).chain(&spec.args);
    let words: Vec<CString> = words.map(|word| to_c_string(word)).collect::<io::Result<_>>()?;
    let vars = build_environ(env.as_map(), mark)?;
    let plan = |path: &CString, words: &[CString]| {
        clone_and_exec(&ExecPlan {
            path,
            args: words,
            environ: &vars,
            current_dir,
            stdio: ends,
            limits: spec.limits,
            tag_rlimit,
        })
    };
    match plan(&path, &words) {
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            let shell = to_c_string(FALLBACK_SHELL.as_ref())?;
            let words: Vec<_> =
                [shell.clone(), path].into_iter().chain(words.into_iter().skip(1)).collect();
            plan(&shell, &words)
        }
        started => started,
    }
}

fn to_c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(io::Error::from)
}

/// Builds the environment block of `vars`, with `tag` in place of an inherited tag.
fn build_environ(
    vars: &BTreeMap<OsString, OsString>,
    mark: Option<&OsStr>,
) -> io::Result<Vec<CString>> {
    let marked = mark.map(|mark| format_variable(tag::TAG_VARIABLE.as_ref(), mark));
    let others = vars.iter().filter(|(name, _)| mark.is_none() || *name != tag::TAG_VARIABLE);
    let mut texts = Vec::with_capacity(vars.len() + 1);
    for text in others.map(|(name, value)| format_variable(name, value)).chain(marked) {
        texts.push(text?);
    }
    Ok(texts)
}

fn format_variable(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    // One more byte for the terminating zero.
    let mut text = Vec::with_capacity(name.len() + value.len() + 2);
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value.as_bytes());
    Ok(CString::new(text)?)
}

/// Returns the file of a program; a name without a slash is searched in `path`.
fn find_executable(name: &OsStr, path: Option<&OsString>) -> io::Result<CString> {
    if name.as_bytes().contains(&b'/') {
        return to_c_string(name);
    }
    let mut found = io::Error::from_raw_os_error(libc::ENOENT);
    let path = path.map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str);
    // A relative entry would depend on the working directory of the host.
    for folder in split_path_dirs(path).filter(|folder| folder.is_absolute()) {
        let file = folder.join(name);
        match check_executable(&file) {
            Ok(()) => return to_c_string(file.as_os_str()),
            // A later entry may have an executable file.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => found = error,
            Err(_) => {}
        }
    }
    Err(found)
}

fn check_executable(file: &Path) -> io::Result<()> {
    access(file, Access::EXEC_OK)?;
    match file.metadata()?.is_file() {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

impl ChildProcess {
    fn new(handle: PidFd) -> io::Result<Self> {
        let number = handle.pid;
        let told = reaper::register_child(number);
        // SAFETY: the handle owns its descriptor, which stays open and unchanged until dropped.
        #[expect(unsafe_code, reason = "the registered descriptor must not change")]
        let registered = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
        match registered {
            Ok(handle) => Ok(Self {
                handle: Some(handle),
                status: None,
                pid: number,
                registration: Some(told),
            }),
            Err(error) => {
                let (handle, error) = error.into_parts();
                handle.kill();
                reap_in_background(handle, Some(told));
                Err(error)
            }
        }
    }

    /// Returns the pid, until the exit was observed.
    pub(crate) fn id(&self) -> Option<u32> {
        u32::try_from(self.pid).ok().filter(|_| self.status.is_none())
    }

    /// Waits for the exit. Cancel safe.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let gone = || io::Error::other("the child was given up");
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            let handle = self.handle.as_ref().ok_or_else(gone)?;
            let mut ready = handle.readable().await?;
            self.status =
                handle.get_ref().try_wait(WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)?;
            if self.status.is_none() {
                ready.clear_ready();
            }
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take().map(AsyncFd::into_inner) else { return };
        if let Ok(None) = handle.try_wait(WaitIdOptions::NOHANG) {
            reap_in_background(handle, self.registration.take());
        }
    }
}

impl PidFd {
    fn kill(&self) {
        // An error means that it has exited already.
        let _ = rustix::process::pidfd_send_signal(&self.fd, rustix::process::Signal::KILL);
    }

    /// Returns the exit status; `None` while it runs.
    pub(crate) fn try_wait(&self, how: WaitIdOptions) -> io::Result<Option<ExitStatus>> {
        let ended = waitid(WaitId::PidFd(self.fd.as_fd()), how | WaitIdOptions::EXITED)?;
        Ok(ended.map(|ended| {
            let code = ended.exit_status().unwrap_or_default() << 8;
            ExitStatus::from_raw(code | ended.terminating_signal().unwrap_or_default())
        }))
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl std::os::fd::AsRawFd for PidFd {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.as_raw_fd()
    }
}

/// Reaps a child whose handle was dropped, so that it does not stay a zombie.
fn reap_in_background(handle: PidFd, told: Option<RegisteredChild>) {
    // If no thread can be started, the zombie stays until the host exits.
    let _ = std::thread::Builder::new().name("reaper".to_owned()).spawn(move || {
        let _ = handle.try_wait(WaitIdOptions::empty());
        drop(told);
    });
}
