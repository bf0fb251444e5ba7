//! The self-test: a confined child that tries to get out, and to work.
//!
//! The host sets up something for each attempt to reach: files, sockets that somebody
//! listens on, itself. The child is this program once more, started by the helper as any
//! other child would be.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Access, access};
use rustix::process::{getppid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::super::confine::{self, Confined};
use super::super::status::{Attempt, Enforced, SelfTest, Support};
use super::super::{Level, Mode, Policy};
use super::steps::{SIGNALS, TRUNCATE};
use super::{OWN_PROGRAM, temporary};

/// The first argument of a program that shall make the attempts.
pub(super) const ASKED: &str = "__tool-sdk-sandbox-attempts";

/// What there is to reach.
#[derive(Debug, Serialize, Deserialize)]
struct Targets {
    /// A folder that may be written, with a repository in it.
    inside: PathBuf,
    /// One without a repository.
    fresh: PathBuf,
    /// A folder that may not be written.
    outside: PathBuf,
    tcp: u16,
    udp: u16,
    unix: PathBuf,
}

/// What has to be enforced for an attempt to fail.
#[derive(Clone, Copy)]
enum By {
    /// It has to succeed.
    Nobody,
    Writes,
    Truncation,
    Protection,
    Network,
    Filter,
    Processes,
    Signals,
}

type Try = fn(&Targets) -> io::Result<()>;

/// Every attempt: its name, what must make it fail, and how it is made.
const ATTEMPTS: &[(&str, By, Try)] = &[
    ("write inside", By::Nobody, |at| fs::write(at.inside.join("new"), "x")),
    ("write by a relative path", By::Nobody, |_| fs::write("relative", "x")),
    ("write to a folder for temporary files", By::Nobody, write_temporary),
    ("write to /dev/null", By::Nobody, |_| fs::write("/dev/null", "x")),
    ("read outside", By::Nobody, |at| fs::read(at.outside.join("file")).map(drop)),
    ("fork, exec and pipe", By::Nobody, pipe),
    ("pair of sockets", By::Nobody, |_| UnixStream::pair().map(drop)),
    ("write outside", By::Writes, |at| fs::write(at.outside.join("new"), "x")),
    ("write outside through a link", By::Writes, |at| fs::write(at.inside.join("link"), "x")),
    ("remove outside", By::Writes, |at| fs::remove_file(at.outside.join("kept"))),
    ("rename from outside", By::Writes, |at| {
        fs::rename(at.outside.join("kept"), at.inside.join("kept"))
    }),
    ("truncate outside", By::Truncation, |at| truncate(&at.outside.join("file"))),
    ("write .git/hooks/x", By::Protection, |at| fs::write(at.inside.join(".git/hooks/x"), "x")),
    ("write .git/hooks/x by a relative path", By::Protection, |_| fs::write(".git/hooks/y", "x")),
    ("write .git/config", By::Protection, |at| fs::write(at.inside.join(".git/config"), "x")),
    ("rename a protected parent", By::Protection, |at| {
        fs::rename(at.inside.join(".git"), at.inside.join("gone"))
    }),
    ("rename the folder around it", By::Protection, |at| {
        fs::rename(&at.inside, at.inside.with_file_name("gone"))
    }),
    ("replace what is protected", By::Protection, |at| {
        fs::write(at.inside.join("agents"), "x")?;
        fs::rename(at.inside.join("agents"), at.inside.join("AGENTS.md"))
    }),
    ("replace a protected link", By::Protection, |at| fs::remove_file(at.inside.join("CLAUDE.md"))),
    ("write a workflow", By::Protection, |at| {
        fs::write(at.inside.join(".github/workflows/x.yml"), "x")
    }),
    ("make what is protected and not there", By::Protection, |at| {
        fs::create_dir_all(at.fresh.join(".git/hooks"))
    }),
    ("connect to 127.0.0.1", By::Network, |at| TcpStream::connect(("127.0.0.1", at.tcp)).map(drop)),
    ("send a datagram", By::Network, |at| {
        UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", ("127.0.0.1", at.udp)).map(drop)
    }),
    ("connect to a Unix socket", By::Filter, |at| UnixStream::connect(&at.unix).map(drop)),
    ("send a datagram to a Unix socket", By::Filter, |_| UnixDatagram::pair().map(drop)),
    ("io_uring", By::Filter, |_| called(libc::SYS_io_uring_setup)),
    ("userfaultfd", By::Filter, |_| called(libc::SYS_userfaultfd)),
    ("keyctl", By::Filter, |_| called(libc::SYS_keyctl)),
    ("a call of x32", By::Filter, |_| x32()),
    ("a call of i386", By::Filter, |_| i386()),
    ("have a capability", By::Writes, |_| have_capability()),
    ("ptrace the parent", By::Processes, |_| seize_parent()),
    ("read the secrets of the parent", By::Processes, |_| fs::read(parents("environ")).map(drop)),
    ("open the root of another process", By::Processes, |_| {
        fs::read_dir(parents("root/")).map(drop)
    }),
    ("open /proc/1/root", By::Processes, |_| fs::read_dir("/proc/1/root/").map(drop)),
    ("signal the parent", By::Signals, |_| match getppid() {
        Some(parent) => Ok(test_kill_process(parent)?),
        None => Err(io::ErrorKind::NotFound.into()),
    }),
];

impl By {
    /// Why it cannot be expected to fail here.
    fn missing(self, support: &Support) -> Option<&'static str> {
        let version = support.landlock.unwrap_or_default();
        let (there, why) = match self {
            Self::Nobody => (true, ""),
            Self::Writes => (support.status.is_confined(), "writing is not confined here"),
            Self::Truncation => {
                (support.namespaces || version >= TRUNCATE, "truncation is not confined here")
            }
            Self::Protection => (
                support.status.filesystem == Enforced::Full && support.namespaces,
                "there are no mounts to protect it",
            ),
            Self::Network => {
                (support.status.network == Enforced::Full, "networks are not confined here")
            }
            Self::Filter => (support.seccomp, "there is no seccomp"),
            Self::Processes => {
                (support.namespaces || version > 0, "other processes are not out of reach here")
            }
            Self::Signals => (version >= SIGNALS, "Landlock is too old for signals"),
        };
        (!there).then_some(why)
    }
}

/// Sets everything up, lets a confined child make the attempts, and clears up.
pub(in super::super) fn self_test() -> io::Result<SelfTest> {
    let place = Place::new()?;
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    let _unix = UnixListener::bind(place.0.join("socket"))?;
    let targets = Targets {
        inside: place.0.join("inside"),
        fresh: place.0.join("fresh"),
        outside: place.0.join("outside"),
        tcp: tcp.local_addr()?.port(),
        udp: udp.local_addr()?.port(),
        unix: place.0.join("socket"),
    };
    targets.set_up()?;

    let policy = Policy::new(Mode::BestEffort, Level::WorkspaceWrite)
        .writable(&targets.inside)
        .writable(&targets.fresh);
    let told = [OsString::from(ASKED), serde_json::to_string(&targets)?.into()];
    let confined = confine::confine(&policy, OWN_PROGRAM.as_ref(), &told)
        .map_err(|status| io::Error::other(status.to_string()))?
        .filter(|confined| confined.start.is_some());
    let Some(Confined { start: Some((program, args)), stand_ins, .. }) = confined else {
        return Err(io::Error::other(policy.status().to_string()));
    };
    let output = Command::new(program)
        .args(args)
        .current_dir(&targets.inside)
        .stdin(Stdio::null())
        .output()?;
    drop(stand_ins);
    let outcomes: Vec<Option<String>> = serde_json::from_slice(&output.stdout)
        .map_err(|_| io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))?;

    let support = policy.support();
    let judged = ATTEMPTS.iter().zip(outcomes);
    let mut attempts: Vec<Attempt> =
        judged.map(|((name, by, _), failed)| judge(name, *by, failed, &support)).collect();
    let left = targets.fresh.join(".git").exists();
    attempts.push(Attempt {
        name: "nothing is left behind".to_owned(),
        allowed: true,
        passed: Some(!left),
        detail: if left { "a folder is".to_owned() } else { "done".to_owned() },
    });
    Ok(SelfTest { status: support.status, attempts })
}

fn judge(name: &str, by: By, failed: Option<String>, support: &Support) -> Attempt {
    let allowed = matches!(by, By::Nobody);
    let (passed, detail) = match by.missing(support) {
        Some(why) => (None, why.to_owned()),
        None => (Some(failed.is_none() == allowed), failed.unwrap_or_else(|| "done".to_owned())),
    };
    Attempt { name: name.to_owned(), allowed, passed, detail }
}

/// Makes the attempts; gives the exit code.
pub(super) fn attempt(args: impl Iterator<Item = OsString>) -> i32 {
    let mut args = args.peekable();
    if args.next_if(|first| first == I386).is_some() {
        return call_i386();
    }
    let targets = args.next().and_then(|text| serde_json::from_str(text.to_str()?).ok());
    let Some(targets): Option<Targets> = targets else { return super::WRONG_ORDER };
    let outcomes: Vec<Option<String>> =
        ATTEMPTS.iter().map(|(.., go)| go(&targets).err().map(|why| why.to_string())).collect();
    let report = serde_json::to_vec(&outcomes).unwrap_or_default();
    i32::from(io::stdout().write_all(&report).is_err())
}

/// A folder outside of those for temporary files, which goes with this.
struct Place(PathBuf);

impl Place {
    fn new() -> io::Result<Self> {
        let temporary = temporary();
        let homes = ["/var/tmp", "/tmp", "/run/shm"].map(PathBuf::from).into_iter();
        let mut homes = homes.chain(std::env::current_dir());
        let home = homes.find(|home| {
            let is_temporary = temporary.iter().any(|folder| home.starts_with(folder));
            !is_temporary && access(home, Access::WRITE_OK).is_ok()
        });
        let Some(home) = home.and_then(|home| home.canonicalize().ok()) else {
            return Err(io::Error::other("there is no folder to try it in"));
        };
        let mut name = [0; 8];
        getrandom::fill(&mut name).map_err(io::Error::other)?;
        let place = home.join(format!("tool-sdk-{:016x}", u64::from_ne_bytes(name)));
        fs::DirBuilder::new().mode(0o700).create(&place)?;
        Ok(Self(place))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Whoever clears up temporary files finds it otherwise.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Targets {
    fn set_up(&self) -> io::Result<()> {
        for folder in [".git/hooks", ".github/workflows"] {
            fs::create_dir_all(self.inside.join(folder))?;
        }
        for file in [".git/config", "AGENTS.md"] {
            fs::write(self.inside.join(file), "kept")?;
        }
        fs::create_dir(&self.fresh)?;
        fs::create_dir(&self.outside)?;
        for file in ["file", "kept"] {
            fs::write(self.outside.join(file), "kept")?;
        }
        std::os::unix::fs::symlink(self.outside.join("file"), self.inside.join("link"))?;
        std::os::unix::fs::symlink("AGENTS.md", self.inside.join("CLAUDE.md"))
    }
}

fn write_temporary(_: &Targets) -> io::Result<()> {
    let file = std::env::temp_dir().join(format!("tool-sdk-self-test-{}", std::process::id()));
    File::create_new(&file)?;
    fs::remove_file(file)
}

fn pipe(_: &Targets) -> io::Result<()> {
    let output = Command::new("/bin/sh").args(["-c", "echo hello | cat"]).output()?;
    if output.stdout == b"hello\n" { Ok(()) } else { Err(io::Error::other(format!("{output:?}"))) }
}

fn parents(file: &str) -> PathBuf {
    let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    Path::new("/proc").join(parent.to_string()).join(file)
}

fn have_capability() -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    if effective.is_some_and(|all| all.trim().trim_start_matches('0').is_empty()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

fn truncate(file: &Path) -> io::Result<()> {
    let path = std::ffi::CString::new(file.as_os_str().as_bytes())?;
    #[expect(unsafe_code, reason = "the library only truncates what was opened")]
    // SAFETY: the path ends with a zero and lives as long as the call.
    let done = unsafe { libc::truncate(path.as_ptr(), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Attaches to the parent in the way that does not stop it.
fn seize_parent() -> io::Result<()> {
    const PTRACE_SEIZE: libc::c_long = 0x4206;
    let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    #[expect(unsafe_code, reason = "no crate has this call")]
    // SAFETY: it takes numbers only.
    let done = unsafe { libc::syscall(libc::SYS_ptrace, PTRACE_SEIZE, parent, 0, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether a call reaches the kernel; that it fails there, without arguments, is no refusal.
fn called(call: libc::c_long) -> io::Result<()> {
    #[expect(unsafe_code, reason = "no crate has a call that must fail")]
    // SAFETY: without arguments none of these calls does anything.
    let done = unsafe { libc::syscall(call, -1, 0, 0, 0, 0, 0) };
    match io::Error::last_os_error() {
        error if done == -1 && error.raw_os_error() == Some(libc::EPERM) => Err(error),
        _ => Ok(()),
    }
}

/// Asks for the number of this process as x32 does.
fn x32() -> io::Result<()> {
    match std::env::consts::ARCH {
        "x86_64" => called(0x4000_0000 | libc::SYS_getpid),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Asks another process to make a call of i386: what refuses it ends the process.
fn i386() -> io::Result<()> {
    let status = Command::new(OWN_PROGRAM).args([ASKED, I386]).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

const I386: &str = "i386";

/// Asks for the number of this process as i386 does.
#[cfg(target_arch = "x86_64")]
fn call_i386() -> i32 {
    const GETPID: i64 = 20;
    let mut number = GETPID;
    #[expect(unsafe_code, reason = "no library makes a call of another architecture")]
    // SAFETY: the call takes nothing, and changes no memory and no other register.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") number);
    }
    i32::from(number <= 0)
}

/// Elsewhere there is no such call.
#[cfg(not(target_arch = "x86_64"))]
fn call_i386() -> i32 {
    1
}
