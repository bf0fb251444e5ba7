//! How a kept process is wired: to a terminal of its own, or to a pipe and nothing to read.
//!
//! Both of its outputs go into one pipe, so that they come in the order in which they were
//! written, as on a screen.

use std::io;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use pty_process::{OwnedWritePty, Size};
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::super::group::Group;
use super::super::mark::{self, Mark};
use super::live::{Spawn, TypeError};

/// The size of a terminal: wide enough that programs do not wrap their lines.
const ROWS: u16 = 40;
const COLUMNS: u16 = 200;

/// Where can be typed.
#[derive(Debug)]
pub(super) enum Input {
    Terminal(OwnedWritePty),
    Closed,
}

impl Input {
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), TypeError> {
        match self {
            Self::Terminal(terminal) => terminal.write_all(bytes).await.map_err(TypeError::Gone),
            Self::Closed => Err(TypeError::Closed),
        }
    }
}

type Wired = (Child, Box<dyn AsyncRead + Send + Unpin>, Input);

/// Held while a child is started: a terminal is opened in two steps, and a child that starts
/// between them would get it too.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts `spawn`; what it writes can be read from the stream.
pub(super) fn spawn(spawn: &Spawn, mark: &Mark) -> io::Result<Wired> {
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(&spawn.program);
    command.args(&spawn.args).env_clear().envs(spawn.env.vars()).env(mark::NAME, mark.as_str());
    if let Some(folder) = &spawn.folder {
        command.current_dir(folder);
    }
    if spawn.terminal { on_terminal(command) } else { on_pipe(command) }
}

fn on_pipe(mut command: Command) -> io::Result<Wired> {
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    Group::lead(&mut command);
    let child = command.spawn()?;
    // The command holds the other end open.
    drop(command);
    let reader = pipe::Receiver::from_owned_fd(reader.into())?;
    Ok((child, Box::new(reader), Input::Closed))
}

/// The child leads a session of its own, and its group with it.
fn on_terminal(command: Command) -> io::Result<Wired> {
    let (terminal, end) = pty_process::open().map_err(io::Error::other)?;
    terminal.resize(Size::new(ROWS, COLUMNS)).map_err(io::Error::other)?;
    let child = pty_process::Command::from(command).spawn(end).map_err(io_error)?;
    let (reader, writer) = terminal.into_split();
    Ok((child, Box::new(reader), Input::Terminal(writer)))
}

fn io_error(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}
