//! The terminal of this process as a [`Console`].
//!
//! Lines are read from the terminal without a buffer, so that `tcflush` discards all typed-ahead
//! input.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize,
    tcsetattr,
};

use super::Console;

/// A console on a terminal: input and output.
pub(super) struct TtyConsole<I, O> {
    input: I,
    output: Mutex<O>,
    /// The escape sequence that clears a progress line before a prompt.
    line_reset: &'static str,
}

/// Opens the terminal of this process, if standard input and standard error are one. With
/// `is_dumb`, no escape sequences are written.
pub(super) fn open_process_tty(is_dumb: bool) -> Option<TtyConsole<io::Stdin, io::Stderr>> {
    let (input, output) = (io::stdin(), io::stderr());
    (input.is_terminal() && output.is_terminal()).then(|| TtyConsole::new(input, output, is_dumb))
}

/// Returns the width of the terminal that standard output or standard error is.
pub(super) fn process_columns() -> Option<u16> {
    let of = |terminal: BorrowedFd<'_>| Some(tcgetwinsize(terminal).ok()?.ws_col);
    let known = of(io::stdout().as_fd()).or_else(|| of(io::stderr().as_fd()));
    // Some terminals report 0.
    known.filter(|columns| *columns > 0)
}

impl<I: AsFd, O: Write> TtyConsole<I, O> {
    fn new(input: I, output: O, is_dumb: bool) -> Self {
        let line_reset = if is_dumb { "" } else { "\r\x1b[2K" };
        Self { input, output: Mutex::new(output), line_reset }
    }

    fn write_text(&self, text: &str) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        output.write_all(text.as_bytes())?;
        output.flush()
    }

    /// Waits a short time for input; returns whether there is any.
    fn has_input(&self) -> io::Result<bool> {
        /// How often `wanted` is checked.
        const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        match poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&TICK)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads one line; a terminal delivers input line by line.
    fn read_line(&self, wanted: &dyn Fn() -> bool) -> io::Result<Option<String>> {
        const MAX: usize = 64 << 10;
        let mut line = Vec::new();
        let mut part = [0; 4096];
        while wanted() && line.len() < MAX {
            if !self.has_input()? {
                continue;
            }
            match rustix::io::read(&self.input, &mut part) {
                Ok(0) => return Ok(None),
                Ok(read) => line.extend_from_slice(&part[..read]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
            if line.ends_with(b"\n") {
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
        }
        Ok(None)
    }
}

/// While it exists, the terminal does not show what is typed.
struct HiddenInput<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> HiddenInput<'a> {
    fn start(terminal: BorrowedFd<'a>) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for HiddenInput<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

impl<I: AsFd + Send + Sync + 'static, O: Write + Send + 'static> Console for TtyConsole<I, O> {
    fn prompt(&self, text: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<String>> {
        self.write_text(self.line_reset)?;
        self.write_text(text)?;
        // Typed-ahead input must not answer the prompt.
        tcflush(&self.input, QueueSelector::IFlush)?;
        let line = self.read_line(wanted)?;
        if line.is_none() {
            self.write_text("\n")?;
        }
        Ok(line)
    }

    fn prompt_hidden(&self, text: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<String>> {
        // Discards typed-ahead input, before the prompt is shown.
        let _hidden = HiddenInput::start(self.input.as_fd())?;
        self.write_text(self.line_reset)?;
        self.write_text(text)?;
        let line = self.read_line(wanted);
        // The terminal did not show the end of the line.
        self.write_text("\n")?;
        line
    }

    fn can_hide_input(&self) -> bool {
        true
    }

    fn columns(&self) -> u16 {
        // Some terminals report 0.
        let known = tcgetwinsize(&self.input).map_or(0, |size| size.ws_col);
        if known > 0 { known } else { 80 }
    }
}

#[cfg(test)]
mod tests;
