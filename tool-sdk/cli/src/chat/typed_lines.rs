//! What the user types while the model works: lines, and Esc.
//!
//! The terminal stays in its line mode, in which Esc ends a line too, so that prompts for approvals
//! work as they do everywhere else.
//!
//! **Invariant:** nothing is read while a prompt holds the terminal.

use tokio::sync::mpsc;

#[cfg(unix)]
use self::terminal_reader::TerminalReader;
use crate::terminal::TerminalLock;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedInput {
    Line(String),
    Escape,
}

/// Reads the terminal until it is dropped, which restores the terminal.
pub(super) struct TypedLines {
    pub(super) input: mpsc::UnboundedReceiver<TypedInput>,
    #[cfg(unix)]
    _reader: TerminalReader,
}

impl TypedLines {
    /// Starts to read; `None` where the input is not a terminal.
    #[cfg(unix)]
    pub(super) fn start(lock: TerminalLock) -> Option<Self> {
        let (sender, input) = mpsc::unbounded_channel();
        Some(Self { input, _reader: TerminalReader::start(lock, sender)? })
    }

    /// Other systems have no line mode that ends at Esc; Ctrl-C interrupts there.
    #[cfg(not(unix))]
    pub(super) fn start(_: TerminalLock) -> Option<Self> {
        None
    }
}

/// The thread that reads the terminal.
#[cfg(unix)]
mod terminal_reader {
    use std::io::{self, IsTerminal as _};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::{self, JoinHandle};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
    use tokio::sync::mpsc::UnboundedSender;

    use super::TypedInput;
    use crate::terminal::TerminalLock;

    const ESCAPE: u8 = 0x1b;
    /// How long is waited for input at a time.
    const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

    pub(super) struct TerminalReader {
        stop: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
        before: Termios,
    }

    impl TerminalReader {
        pub(super) fn start(
            lock: TerminalLock,
            sender: UnboundedSender<TypedInput>,
        ) -> Option<Self> {
            let stdin = io::stdin();
            if !stdin.is_terminal() {
                return None;
            }
            let before = tcgetattr(&stdin).ok()?;
            let mut changed = before.clone();
            changed.special_codes[SpecialCodeIndex::VEOL] = ESCAPE;
            tcsetattr(&stdin, OptionalActions::Now, &changed).ok()?;
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = Arc::clone(&stop);
            let reading = move || read_input(&lock, &stopped, &sender);
            let thread = thread::Builder::new().name("typed-lines".to_owned()).spawn(reading);
            Some(Self { stop, thread: thread.ok(), before })
        }
    }

    impl Drop for TerminalReader {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        }
    }

    fn read_input(lock: &TerminalLock, stop: &AtomicBool, sender: &UnboundedSender<TypedInput>) {
        let stdin = io::stdin();
        let mut buffer = [0; 4096];
        while !stop.load(Ordering::Relaxed) {
            if !matches!(poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&TICK)), Ok(1)) {
                continue;
            }
            // What was typed at a prompt is its answer.
            let Some(_quiet) = lock.try_acquire() else {
                // Without a file to wait for, this waits for one tick.
                let _ = poll(&mut [], Some(&TICK));
                continue;
            };
            let Ok(read) = rustix::io::read(&stdin, &mut buffer) else { continue };
            if read == 0 {
                return;
            }
            if let Some(input) = parse_input(&buffer[..read]) {
                // Fails when the chat has ended.
                let _ = sender.send(input);
            }
        }
    }

    /// Esc interrupts; a line steers. An empty line is nothing.
    fn parse_input(bytes: &[u8]) -> Option<TypedInput> {
        if bytes.contains(&ESCAPE) {
            return Some(TypedInput::Escape);
        }
        let line = String::from_utf8_lossy(bytes).trim().to_owned();
        (!line.is_empty()).then_some(TypedInput::Line(line))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn escape_is_told_from_a_line() {
            let line = TypedInput::Line("leave it".to_owned());
            assert_eq!(parse_input(b"leave it\n"), Some(line));
            assert_eq!(parse_input(b"\x1b"), Some(TypedInput::Escape));
            assert_eq!(parse_input(b"half\x1b"), Some(TypedInput::Escape));
            assert_eq!(parse_input(b"\n"), None);
        }
    }
}
