//! The self-test: a sandboxed child tries to escape, and to do ordinary work.
//!
//! The host creates targets for the attempts: files, listening sockets, shared memory, a
//! terminal, and itself. The child is this program again, started by the helper like any other
//! child.
//!
//! **Invariant:** an attempt counts only if the mechanism that must block it is available.

mod attempts;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Access, access};
use rustix::process::{Pid, test_kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde::{Deserialize, Serialize};

use self::attempts::{
    I386_ARG, attach_ptrace, attach_shared_memory, call_i386, call_x32, have_capability,
    read_parent_limits, run_pipeline, see_other_processes, spawn_i386_call, start_daemon,
    start_thread, truncate_file, try_clone3, try_syscall, write_temporary,
};
use super::confinement_steps::{SIGNALS_ABI, TRUNCATE_ABI};
use super::{OWN_PROGRAM, temporary_folders};
use crate::sandbox::confine::{self, ConfinedCommand};
use crate::sandbox::status::{EnforcementLevel, SandboxSupport, SelfTestAttempt, SelfTestReport};
use crate::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};

/// The first argument of a program that is started to make the attempts.
pub(super) const SELF_TEST_ARG: &str = "__tool-sdk-sandbox-attempts";

/// The targets of the attempts.
#[derive(Debug, Serialize, Deserialize)]
struct AttemptTargets {
    /// A writable folder with a repository.
    inside: PathBuf,
    /// A writable folder without a repository.
    fresh: PathBuf,
    /// A folder that is not writable.
    outside: PathBuf,
    /// A file and a folder that must not be read.
    unreadable: [PathBuf; 2],
    tcp: u16,
    udp: u16,
    unix: PathBuf,
    /// A terminal outside of the sandbox.
    terminal: PathBuf,
    /// The id of shared memory of the host.
    memory: i32,
    /// The pid of the host.
    host: i32,
}

/// What must block an attempt.
#[derive(Clone, Copy)]
enum Barrier {
    /// Nothing: it must succeed.
    MustSucceed,
    WriteRules,
    Truncation,
    Protection,
    ReadCovers,
    Network,
    Filter,
    Namespaces,
    Devices,
    Processes,
    Signals,
    ProcessVisibility,
}

type AttemptFn = fn(&AttemptTargets) -> io::Result<()>;

/// Every attempt: its name, what must block it, and the function that makes it.
const ATTEMPTS: &[(&str, Barrier, AttemptFn)] = &[
    ("write inside", Barrier::MustSucceed, |at| fs::write(at.inside.join("new"), "x")),
    ("write by a relative path", Barrier::MustSucceed, |_| fs::write("relative", "x")),
    ("write to a folder for temporary files", Barrier::MustSucceed, write_temporary),
    ("write to /dev/null", Barrier::MustSucceed, |_| fs::write("/dev/null", "x")),
    ("read outside", Barrier::MustSucceed, |at| fs::read(at.outside.join("file")).map(drop)),
    ("fork, exec and pipe", Barrier::MustSucceed, run_pipeline),
    ("start a thread", Barrier::MustSucceed, |_| start_thread()),
    ("start what hides from its parents", Barrier::MustSucceed, start_daemon),
    ("pair of sockets", Barrier::MustSucceed, |_| UnixStream::pair().map(drop)),
    ("write outside", Barrier::WriteRules, |at| fs::write(at.outside.join("new"), "x")),
    ("write outside through a link", Barrier::WriteRules, |at| {
        fs::write(at.inside.join("link"), "x")
    }),
    ("remove outside", Barrier::WriteRules, |at| fs::remove_file(at.outside.join("kept"))),
    ("rename from outside", Barrier::WriteRules, |at| {
        fs::rename(at.outside.join("kept"), at.inside.join("kept"))
    }),
    ("truncate outside", Barrier::Truncation, |at| truncate_file(&at.outside.join("file"))),
    ("write .git/hooks/x", Barrier::Protection, |at| {
        fs::write(at.inside.join(".git/hooks/x"), "x")
    }),
    ("write .git/hooks/x by a relative path", Barrier::Protection, |_| {
        fs::write(".git/hooks/y", "x")
    }),
    ("write .git/config", Barrier::Protection, |at| fs::write(at.inside.join(".git/config"), "x")),
    ("rename a protected parent", Barrier::Protection, |at| {
        fs::rename(at.inside.join(".git"), at.inside.join("gone"))
    }),
    ("rename the folder around it", Barrier::Protection, |at| {
        fs::rename(&at.inside, at.inside.with_file_name("gone"))
    }),
    ("replace what is protected", Barrier::Protection, |at| {
        fs::write(at.inside.join("agents"), "x")?;
        fs::rename(at.inside.join("agents"), at.inside.join("AGENTS.md"))
    }),
    ("replace a protected link", Barrier::Protection, |at| {
        fs::remove_file(at.inside.join("CLAUDE.md"))
    }),
    ("write a workflow", Barrier::Protection, |at| {
        fs::write(at.inside.join(".github/workflows/x.yml"), "x")
    }),
    ("make what is protected and not there", Barrier::Protection, |at| {
        fs::create_dir_all(at.fresh.join(".git/hooks"))
    }),
    ("write a hook further down", Barrier::Protection, |at| {
        fs::write(at.inside.join("sub/.git/hooks/x"), "x")
    }),
    ("read a covered file", Barrier::ReadCovers, |at| fs::read(&at.unreadable[0]).map(drop)),
    ("read a file in a covered folder", Barrier::ReadCovers, |at| {
        fs::read(at.unreadable[1].join("file")).map(drop)
    }),
    ("move a covered file away", Barrier::ReadCovers, |at| {
        fs::rename(&at.unreadable[0], at.inside.join("moved"))
    }),
    ("make a covered file readable", Barrier::ReadCovers, |at| {
        fs::set_permissions(&at.unreadable[0], fs::Permissions::from_mode(0o600))
    }),
    ("write to another terminal", Barrier::Devices, |at| {
        File::options().write(true).open(&at.terminal)?.write_all(b"x")
    }),
    ("reach shared memory", Barrier::Namespaces, |at| attach_shared_memory(at.memory)),
    ("connect to 127.0.0.1", Barrier::Network, |at| {
        TcpStream::connect(("127.0.0.1", at.tcp)).map(drop)
    }),
    ("send a datagram", Barrier::Network, |at| {
        UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", ("127.0.0.1", at.udp)).map(drop)
    }),
    ("connect to a Unix socket", Barrier::Filter, |at| UnixStream::connect(&at.unix).map(drop)),
    ("send a datagram to a Unix socket", Barrier::Filter, |_| UnixDatagram::pair().map(drop)),
    ("io_uring", Barrier::Filter, |_| try_syscall(libc::SYS_io_uring_setup)),
    ("userfaultfd", Barrier::Filter, |_| try_syscall(libc::SYS_userfaultfd)),
    ("keyctl", Barrier::Filter, |_| try_syscall(libc::SYS_keyctl)),
    ("users of its own", Barrier::Filter, |_| try_syscall(libc::SYS_unshare)),
    ("a process with users of its own", Barrier::Filter, |_| try_syscall(libc::SYS_clone)),
    ("clone3", Barrier::Filter, |_| try_clone3()),
    ("a call of x32", Barrier::Filter, |_| call_x32()),
    ("a call of i386", Barrier::Filter, |_| spawn_i386_call()),
    ("have a capability", Barrier::WriteRules, |_| have_capability()),
    ("limits of another process", Barrier::Filter, |_| read_parent_limits()),
    ("ptrace the host", Barrier::Processes, |at| attach_ptrace(at.host)),
    ("read the secrets of the host", Barrier::Processes, |at| {
        fs::read(at.host_file("environ")).map(drop)
    }),
    ("open the root of the host", Barrier::Processes, |at| {
        fs::read_dir(at.host_file("root/")).map(drop)
    }),
    ("open /proc/1/root", Barrier::Processes, |_| fs::read_dir("/proc/1/root/").map(drop)),
    ("see a process outside", Barrier::ProcessVisibility, |_| see_other_processes()),
    ("signal the host", Barrier::Signals, |at| match Pid::from_raw(at.host) {
        Some(host) => Ok(test_kill_process(host)?),
        None => Err(io::ErrorKind::NotFound.into()),
    }),
];

impl Barrier {
    /// Returns why the attempt is skipped: the mechanism that must block it is not available.
    fn skip_reason(self, support: &SandboxSupport) -> Option<&'static str> {
        let version = support.landlock.unwrap_or_default();
        let full = support.status.processes == EnforcementLevel::Full;
        let (there, why) = match self {
            Self::MustSucceed => (true, ""),
            Self::WriteRules => (support.status.is_confined(), "writing is not confined here"),
            Self::Truncation => {
                (support.namespaces || version >= TRUNCATE_ABI, "truncation is not confined here")
            }
            Self::Protection => (
                support.status.filesystem == EnforcementLevel::Full && support.namespaces,
                "there are no mounts to protect it",
            ),
            Self::ReadCovers => (
                support.status.reads == Some(EnforcementLevel::Full),
                "reading is not confined here",
            ),
            Self::Network => {
                (support.status.network == EnforcementLevel::Full, "networks are not confined here")
            }
            Self::Filter => (support.seccomp, "there is no seccomp"),
            Self::Namespaces => (support.namespaces, "there are no namespaces"),
            Self::Devices => (support.namespaces || version > 0, "devices can be written to here"),
            Self::Processes => (full || version > 0, "other processes are not out of reach here"),
            Self::ProcessVisibility => (full, "other processes can be seen here"),
            Self::Signals => {
                (full || version >= SIGNALS_ABI, "other processes can be sent signals here")
            }
        };
        (!there).then_some(why)
    }
}

/// Creates the targets, makes the attempts in a sandboxed child, and cleans up.
pub(crate) fn run_self_test() -> io::Result<SelfTestReport> {
    let place = TestFolder::new()?;
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    let _unix = UnixListener::bind(place.0.join("socket"))?;
    let (terminal, name) = open_terminal()?;
    let memory = SharedMemory::new()?;
    let targets = AttemptTargets {
        inside: place.0.join("inside"),
        fresh: place.0.join("fresh"),
        outside: place.0.join("outside"),
        unreadable: ["inside/covered", "outside/covered"].map(|name| place.0.join(name)),
        tcp: tcp.local_addr()?.port(),
        udp: udp.local_addr()?.port(),
        unix: place.0.join("socket"),
        terminal: name,
        memory: memory.0,
        host: std::process::id().cast_signed(),
    };
    targets.set_up()?;

    let policy = SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::WorkspaceWrite)
        .with_writable(&targets.inside)
        .with_writable(&targets.fresh)
        .with_unreadable(&targets.unreadable);
    let told = [OsString::from(SELF_TEST_ARG), serde_json::to_string(&targets)?.into()];
    let confined = confine::confine_command(&policy, OWN_PROGRAM.as_ref(), &told)
        .map_err(|status| io::Error::other(status.to_string()))?
        .filter(|confined| confined.command.is_some());
    let Some(ConfinedCommand { command: Some((program, args)), placeholders: stand_ins, .. }) =
        confined
    else {
        return Err(io::Error::other(policy.status().to_string()));
    };
    let output = Command::new(program)
        .args(args)
        .current_dir(&targets.inside)
        .stdin(Stdio::null())
        .output()?;
    drop((stand_ins, terminal, memory));
    let outcomes: Vec<Option<String>> = serde_json::from_slice(&output.stdout)
        .map_err(|_| io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))?;

    let support = policy.support();
    let judged = ATTEMPTS.iter().zip(outcomes);
    let mut attempts: Vec<SelfTestAttempt> = judged
        .map(|((name, by, _), failed)| evaluate_attempt(name, *by, failed, &support))
        .collect();
    let left = targets.fresh.join(".git").exists();
    attempts.push(SelfTestAttempt {
        name: "nothing is left behind".to_owned(),
        allowed: true,
        passed: Some(!left),
        detail: if left { "a folder is".to_owned() } else { "done".to_owned() },
    });
    Ok(SelfTestReport { status: support.status, attempts })
}

fn evaluate_attempt(
    name: &str,
    by: Barrier,
    failed: Option<String>,
    support: &SandboxSupport,
) -> SelfTestAttempt {
    let allowed = matches!(by, Barrier::MustSucceed);
    let (passed, detail) = match by.skip_reason(support) {
        Some(why) => (None, why.to_owned()),
        None => (Some(failed.is_none() == allowed), failed.unwrap_or_else(|| "done".to_owned())),
    };
    SelfTestAttempt { name: name.to_owned(), allowed, passed, detail }
}

/// Makes the attempts in the child; returns the exit code.
pub(super) fn run_attempts(args: impl Iterator<Item = OsString>) -> i32 {
    let mut args = args.peekable();
    if args.next_if(|first| first == I386_ARG).is_some() {
        return call_i386();
    }
    let targets = args.next().and_then(|text| serde_json::from_str(text.to_str()?).ok());
    let Some(targets): Option<AttemptTargets> = targets else { return super::EXIT_BAD_REQUEST };
    let outcomes: Vec<Option<String>> =
        ATTEMPTS.iter().map(|(.., go)| go(&targets).err().map(|why| why.to_string())).collect();
    let report = serde_json::to_vec(&outcomes).unwrap_or_default();
    i32::from(io::stdout().write_all(&report).is_err())
}

/// A folder outside of those for temporary files; removed on drop.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new() -> io::Result<Self> {
        let temporary = temporary_folders();
        let homes = ["/var/tmp", "/tmp", "/run/shm"].map(PathBuf::from).into_iter();
        let mut homes = homes.chain(std::env::current_dir());
        let home = homes.find(|home| {
            let is_temporary = temporary.iter().any(|folder| home.starts_with(folder));
            !is_temporary && access(home, Access::WRITE_OK).is_ok()
        });
        let Some(home) = home.and_then(|home| home.canonicalize().ok()) else {
            return Err(io::Error::other("there is no folder for the self-test"));
        };
        let mut name = [0; 8];
        getrandom::fill(&mut name).map_err(io::Error::other)?;
        let place = home.join(format!("tool-sdk-{:016x}", u64::from_ne_bytes(name)));
        fs::DirBuilder::new().mode(0o700).create(&place)?;
        Ok(Self(place))
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        // Best effort.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Opens a terminal outside of the sandbox; returns it with its path.
fn open_terminal() -> io::Result<(OwnedFd, PathBuf)> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    let name = ptsname(&terminal, Vec::new())?;
    Ok((terminal, PathBuf::from(OsStr::from_bytes(name.as_bytes()))))
}

/// A shared memory segment, by its id.
struct SharedMemory(i32);

impl SharedMemory {
    fn new() -> io::Result<Self> {
        #[expect(unsafe_code, reason = "no safe API has this system call")]
        // SAFETY: takes integers only.
        let number = unsafe { libc::shmget(libc::IPC_PRIVATE, 1, 0o600 | libc::IPC_CREAT) };
        if number < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(number)) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "no safe API has this system call")]
        // SAFETY: this request reads and writes nothing.
        unsafe {
            libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut());
        }
    }
}

impl AttemptTargets {
    fn host_file(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.host.to_string()).join(name)
    }

    fn set_up(&self) -> io::Result<()> {
        for folder in [".git/hooks", ".github/workflows", "sub/.git/hooks"] {
            fs::create_dir_all(self.inside.join(folder))?;
        }
        for file in [".git/config", "AGENTS.md"] {
            fs::write(self.inside.join(file), "kept")?;
        }
        fs::create_dir(&self.fresh)?;
        fs::create_dir(&self.outside)?;
        let [file, folder] = &self.unreadable;
        fs::create_dir(folder)?;
        fs::write(file, "kept")?;
        fs::write(folder.join("file"), "kept")?;
        for file in ["file", "kept"] {
            fs::write(self.outside.join(file), "kept")?;
        }
        std::os::unix::fs::symlink(self.outside.join("file"), self.inside.join("link"))?;
        std::os::unix::fs::symlink("AGENTS.md", self.inside.join("CLAUDE.md"))
    }
}
