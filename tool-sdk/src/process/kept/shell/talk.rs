//! What is said to a kept shell, and what it answers.
//!
//! **Invariant:** a shell that has not said the secret of a request has run nothing of it.

use std::io::{self, PipeReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

use super::super::live::Spawn;
use crate::process::start::wires::Ends;

/// The longest answer.
const MAX_ANSWER: usize = 256;

/// The host's end of the socket.
pub(super) struct Talk {
    /// It takes every request at once, so nobody is woken when it takes more.
    requests: UnixStream,
    /// The same socket.
    answers: pipe::Receiver,
    /// What was heard and not yet understood.
    heard: Vec<u8>,
    /// What the scripts write into.
    output: PipeReader,
}

/// What a shell says of a script.
pub(super) enum Answer {
    /// It begins.
    Begun,
    /// It ended with this code.
    Ended(i32),
}

impl Talk {
    /// Gives the shell's ends, too.
    pub(super) fn new() -> io::Result<(Self, Ends)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        // It only reads, as from a pipe.
        let answers = pipe::Receiver::from_owned_fd_unchecked(ours.try_clone()?.into())?;
        let theirs = OwnedFd::from(theirs);
        // Whoever writes opens the other end.
        let (output, _) = io::pipe()?;
        let ends = Ends {
            output: theirs.try_clone()?,
            input: theirs,
            complaints: output.try_clone()?.into(),
            is_terminal: false,
        };
        Ok((Self { requests: ours, answers, heard: Vec::new(), output }, ends))
    }

    /// Asks for a script to be run. When it has begun, gives its output, and the secret that
    /// the shell tells again at its end.
    pub(super) async fn begin(&mut self, spawn: &Spawn) -> io::Result<(pipe::Receiver, String)> {
        let none = || io::Error::from(io::ErrorKind::InvalidInput);
        let script = spawn.script.as_deref().ok_or_else(none)?;
        let folder = spawn.program.folder.as_deref().and_then(Path::to_str).ok_or_else(none)?;
        let secret = random()?;
        let text = format!("{folder}{script}{secret}");
        let (folder, all) = (folder.chars().count(), text.chars().count());
        let request = format!("{folder:08}{all:08}{secret}{text}");
        let taken = self.requests.write(request.as_bytes())?;
        if taken < request.len() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match self.answer(&secret).await {
            // Only now has it a writer, and without one it would have ended.
            Some(Answer::Begun) => {
                let output = pipe::Receiver::from_owned_fd(self.output.try_clone()?.into())?;
                Ok((output, secret))
            }
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The next thing that the shell says; nothing when it says nothing any more.
    pub(super) async fn answer(&mut self, secret: &str) -> Option<Answer> {
        let end = loop {
            if let Some(end) = memchr::memchr(b'\n', &self.heard) {
                break end;
            }
            let count = self.answers.read_buf(&mut self.heard).await.ok()?;
            if count == 0 || self.heard.len() > MAX_ANSWER {
                return None;
            }
        };
        let line: Vec<u8> = self.heard.drain(..=end).collect();
        let line = str::from_utf8(&line).ok()?;
        match line.strip_prefix(secret)?.trim() {
            "begun" => Some(Answer::Begun),
            code => code.parse().ok().map(Answer::Ended),
        }
    }
}

/// Thirty-two digits that nobody can guess.
fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
