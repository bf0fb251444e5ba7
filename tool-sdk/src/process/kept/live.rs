//! A background process: it keeps running between calls, and its output is buffered for the next
//! read.
//!
//! A task of its own reads the output and waits for the exit, so the process is never blocked and
//! is reaped at once. Callers only wait for notifications and take the buffered output.
//!
//! **Invariant:** output is returned once, and dropping a pending read loses none of it.

use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::FusedFuture;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::begun::Begun;
use super::super::capture::{Capture, read};
use super::super::group::Group;
use super::super::mark::{self, Mark};
use super::super::program::Confinement;
use super::super::sandbox::{StandIns, Status};
use super::super::start::{Held, INTERRUPT, Reader, Streams, Terminal, Writer};
use super::super::tree::Tree;
use super::super::{Captured, DRAIN, Exit, RunError, planted};
use super::Spawn;
use super::typed::{OpenFrom, Typed, line_start};
use crate::call::CallId;

/// A running or exited background process with its unread output.
pub struct Process {
    id: u32,
    title: String,
    started: Instant,
    group: Option<Group>,
    input: tokio::sync::Mutex<Option<Writer>>,
    terminal: Option<Terminal>,
    typed: Mutex<Typed>,
    shared: Arc<Shared>,
    kill: CancellationToken,
    driver: JoinHandle<()>,
    confinement: Confinement,
}

/// The state that a process shares with its supervisor task.
struct Shared {
    output: Mutex<Output>,
    ended: watch::Sender<Option<Exit>>,
}

struct Output {
    capture: Capture,
    begun: Begun,
    listener: Option<Listener>,
    /// Whether a descendant still held it open after the process had exited.
    held: bool,
}

type Listener = Box<dyn FnMut(&[u8]) + Send>;

/// What a process wrote since the last read, and whether it has exited.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Look {
    /// The output.
    pub output: Captured,
    /// How it exited; `None` while it runs.
    pub exit: Option<Exit>,
    /// Whether a descendant still held the output open after the process had exited. Its later
    /// output is not read.
    pub held: bool,
}

/// A program that is attached to a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attached {
    /// The executable; `None` when it may not be read.
    pub program: Option<PathBuf>,
    /// The arguments, starting with the program name.
    pub words: Vec<OsString>,
}

/// Why input could not be typed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// The process was started without a terminal.
    #[error("the process has no terminal to type into")]
    Closed,
    /// The process has exited or closed its terminal.
    #[error("the process has exited or closed its terminal")]
    Gone(#[source] io::Error),
    /// Another call has changed the pending input since this call was authorized.
    #[error("another call typed into the terminal meanwhile; read its output, then type again")]
    Changed,
    /// The process does not read, and the input buffer is full. A part may have been typed.
    #[error("the process does not read its input; wait until it does, or interrupt it")]
    Stuck,
}

/// How long a write may make no progress before it fails.
const STUCK: Duration = Duration::from_secs(1);

impl Process {
    /// Starts `spawn` with the tag `mark`.
    pub(super) fn start(id: u32, spawn: &Spawn, mark: Mark) -> Result<Self, RunError> {
        let started = Instant::now();
        let (confined, confinement) = spawn.program.confined()?;
        let (tree, streams) = Tree::start(&confined, mark, spawn.wiring(), spawn.grace)
            .map_err(|source| spawn.failed(source))?;
        let Streams { input, output: reader, terminal, held, .. } = streams;
        let capture = Capture::new(spawn.keep);
        let output = Output { capture, begun: Begun::default(), listener: None, held: false };
        let shared =
            Arc::new(Shared { output: Mutex::new(output), ended: watch::Sender::new(None) });
        let kill = spawn.until.child_token();
        let group = tree.group();
        let driver = tokio::spawn(drive(tree, reader, held, Arc::clone(&shared), kill.clone()));
        Ok(Self {
            id,
            title: spawn.title.clone(),
            started,
            group,
            input: tokio::sync::Mutex::new(input),
            terminal,
            typed: Mutex::default(),
            shared,
            kill,
            driver,
            confinement,
        })
    }

    /// Returns the id by which a model refers to it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the title that is shown in lists.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the time since it was started.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns what its sandbox enforces; `None` without a sandbox.
    #[must_use]
    pub fn sandbox(&self) -> Option<&Status> {
        self.confinement.status.as_ref()
    }

    /// Returns the protected files that appeared since it was started. The sandbox cannot protect
    /// a file that does not exist yet.
    pub async fn planted(&self) -> Vec<PathBuf> {
        planted(&self.confinement).await
    }

    /// Returns the placeholders of missing protected files, if there are any.
    pub(super) fn stand_ins(&self) -> Option<StandIns> {
        let stand_ins = &self.confinement.stand_ins;
        (!stand_ins.is_empty()).then(|| stand_ins.clone())
    }

    /// How it exited; `None` while it runs.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        *self.shared.ended.borrow()
    }

    /// Returns whether it has a terminal to type into.
    #[must_use]
    pub fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Returns the executable of the program in the foreground of the terminal, which reads the
    /// input. `None` when it is unknown or shares the foreground with another program.
    ///
    /// It may change at any time.
    #[must_use]
    pub fn reader(&self) -> Option<PathBuf> {
        self.reading()?.program
    }

    /// Returns the same program with its arguments.
    #[must_use]
    pub fn reading(&self) -> Option<Attached> {
        let group = self.terminal.as_ref()?.foreground()?;
        // Any member of the foreground group may read, not only its leader.
        if !mark::is_alone(group) {
            return None;
        }
        mark::attached(group)
    }

    /// Returns the working directory of the same program.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let group = self.terminal.as_ref()?.foreground()?;
        // Linux only; on other systems there is no such file.
        std::fs::read_link(format!("/proc/{group}/cwd")).ok()
    }

    /// Waits up to `within` for the exit, then takes the output. While the process runs, an
    /// incomplete character, line end or escape sequence at the end stays buffered.
    ///
    /// `listener` is called with each chunk of this output as it arrives, cut in the same way.
    pub async fn look(
        &self,
        within: Duration,
        listener: impl FnMut(&[u8]) + Send + 'static,
    ) -> Look {
        // Poll without a timer for zero: the shortest timer takes a millisecond.
        if !within.is_zero() {
            let _ = timeout(within, self.ended(listener)).await;
        }
        // The exit is set after the last output, so none is missed.
        let exit = self.exit();
        let mut output = self.shared.output();
        Look { output: output.take(), exit, held: output.held }
    }

    /// Waits for the exit without taking output.
    ///
    /// `listener` is called with the buffered output and with each new chunk, cut as for
    /// [`read_output`](Self::read_output).
    pub async fn ended(&self, listener: impl FnMut(&[u8]) + Send + 'static) {
        self.shared.output().hear(Box::new(listener));
        let _quiet = Quiet(&self.shared);
        let mut ended = self.shared.ended.subscribe();
        // Cannot fail: the sender lives as long as this process.
        let _ = ended.wait_for(Option::is_some).await;
    }

    /// Returns whether the terminal driver would alter `text` before it is read, for example by an
    /// erase character or by lowercasing it.
    ///
    /// Returns `true` when that is unknown.
    #[must_use]
    pub fn alters(&self, text: &str) -> bool {
        self.terminal.as_ref().is_none_or(|terminal| terminal.alters(text))
    }

    /// Returns whether its terminal is in noncanonical mode, as for a shell at its prompt, which
    /// edits the line itself.
    #[must_use]
    pub fn hands_on_keys(&self) -> bool {
        self.terminal.as_ref().is_some_and(Terminal::hands_on_keys)
    }

    /// Returns whether typed input has not been read yet, so that its reader is undecided. Returns
    /// `true` when that is unknown.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        self.terminal.as_ref().is_none_or(Terminal::has_unread)
    }

    /// Records that several programs may read parts of the input of `call`. Until Ctrl-C discards
    /// the input, only its last line counts as pending. Other calls with an earlier
    /// [snapshot](Self::pending_input_for) are rejected.
    pub fn mix_up(&self, call: &CallId, open_from: impl Fn(&str) -> usize + Sync) {
        self.has().mix(call, &open_from);
    }

    /// Returns whether several programs [may have read](Self::mark_input_shared) parts of the
    /// input.
    #[must_use]
    pub fn is_mixed_up(&self) -> bool {
        self.has().is_mixed()
    }

    /// Returns the programs attached to its terminal, with their arguments; `None` where the system
    /// does not list them.
    #[must_use]
    pub fn attached(&self) -> Option<Vec<Attached>> {
        mark::of_session(self.terminal.as_ref()?.session()?)
    }

    /// Returns the pending input, which starts where the callback `open_from` says, and stores it
    /// as the snapshot by which `call` is authorized: see [`type_checked`](Self::type_checked).
    pub fn open_for(&self, call: &CallId, open_from: impl Fn(&str) -> usize + Sync) -> String {
        self.has().seen_by(call, &open_from)
    }

    /// Types `text` like [`type_text`](Self::type_text), if the pending input still equals the
    /// [snapshot](Self::pending_input_for) of the call `judged`. The callback `open_from` returns
    /// where the pending input starts.
    ///
    /// # Errors
    ///
    /// Fails with [`PtyInputError::InputChanged`] when the snapshot is outdated, and where
    /// `type_text` does.
    pub async fn type_from(
        &self,
        text: &str,
        judged: Option<&CallId>,
        open_from: impl Fn(&str) -> usize + Sync,
    ) -> Result<(), TypeError> {
        self.type_as_seen(text, judged, &open_from).await
    }

    /// Types `text` into its terminal. If Ctrl-C sends `SIGINT`, it takes effect at once, and
    /// unread input before it is discarded.
    ///
    /// # Errors
    ///
    /// Fails when it has no terminal, has exited, or reads nothing for a second.
    pub async fn type_in(&self, text: &str) -> Result<(), TypeError> {
        self.type_as_seen(text, None, &line_start).await
    }

    async fn type_as_seen(
        &self,
        text: &str,
        call: Option<&CallId>,
        open_from: OpenFrom<'_>,
    ) -> Result<(), TypeError> {
        // The lock serializes typing calls.
        let mut input = self.input.lock().await;
        let input = input.as_mut().ok_or(TypeError::Closed)?;
        if call.is_some_and(|call| !self.has().is_as_seen(call, open_from)) {
            return Err(TypeError::Changed);
        }
        let typed = self.type_all(input, text).await;
        self.has().settle(open_from);
        typed
    }

    async fn type_all(&self, input: &mut Writer, text: &str) -> Result<(), TypeError> {
        for part in text.split_inclusive(INTERRUPT) {
            let before = part.trim_end_matches(INTERRUPT);
            let typed = self.write(input, before, true).await;
            let key = &part[before.len()..];
            let terminal = self.terminal.as_ref().filter(|_| !key.is_empty());
            let ends = !terminal.is_some_and(keeps_line);
            match (typed, terminal.is_some_and(Terminal::make_way)) {
                (Err(TypeError::Stuck), true) => {}
                (typed, _) => typed?,
            }
            self.write(input, key, ends).await?;
        }
        Ok(())
    }

    /// Writes `text`; `counts` says whether it becomes part of the pending input.
    async fn write(&self, input: &mut Writer, text: &str, counts: bool) -> Result<(), TypeError> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let written = timeout(STUCK, input.write(rest)).await;
            let count = written.map_err(|_| TypeError::Stuck)?.map_err(TypeError::Gone)?;
            if count == 0 {
                return Err(TypeError::Gone(io::ErrorKind::WriteZero.into()));
            }
            // Record each part at once: the caller may drop the future during the next write.
            let (written, left) = rest.split_at(count);
            if counts {
                self.has().push(written);
            }
            rest = left;
        }
        Ok(())
    }

    /// Returns the pending input: after [`type_text`](Self::type_text), the unterminated last line.
    #[must_use]
    pub fn typed(&self) -> String {
        self.has().text()
    }

    fn has(&self) -> MutexGuard<'_, Typed> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `SIGINT` to its process group, as Ctrl-C does.
    pub fn interrupt(&self) {
        if let Some(group) = &self.group {
            group.interrupt();
        }
    }

    /// Returns the id of its process group, until it was reaped.
    #[cfg(test)]
    pub(in super::super) fn group_number(&self) -> Option<i32> {
        self.group.as_ref().and_then(Group::number)
    }

    /// Terminates it with all descendants and waits for the exit.
    pub async fn kill(&self) -> Exit {
        self.kill.cancel();
        let mut ended = self.shared.ended.subscribe();
        let exit = ended.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        exit.unwrap_or(Exit::Unknown)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Aborting the task drops the process tree, which terminates it.
        self.driver.abort();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.id)
            .field("title", &self.title)
            .field("exit", &self.exit())
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        let whole = self.begun.next(bytes);
        tell(&mut self.listener, &whole);
    }

    /// Passes on the buffered incomplete sequence at the end of the stream.
    fn close(&mut self) {
        let rest = self.begun.rest();
        tell(&mut self.listener, &rest);
    }

    /// Takes the output without an incomplete sequence at its end.
    fn take(&mut self) -> Captured {
        self.capture.take(self.begun.len())
    }

    /// Sets the listener and calls it with the buffered output.
    fn hear(&mut self, listener: Listener) {
        self.listener = Some(listener);
        let kept: usize = self.capture.parts().map(<[u8]>::len).sum();
        let mut whole = kept.saturating_sub(self.begun.len());
        for part in self.capture.parts() {
            let part = &part[..part.len().min(whole)];
            whole -= part.len();
            tell(&mut self.listener, part);
        }
    }
}

/// Calls the listener. A listener that panics is removed; the process keeps running.
fn tell(listener: &mut Option<Listener>, bytes: &[u8]) {
    let Some(hears) = listener.as_mut().filter(|_| !bytes.is_empty()) else { return };
    if catch_unwind(AssertUnwindSafe(|| hears(bytes))).is_err() {
        *listener = None;
    }
}

/// Removes the listener, also when the wait is dropped.
struct Quiet<'a>(&'a Shared);

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let listener = self.0.output().listener.take();
        // Drop it without the lock: its destructor may run foreign code.
        drop(listener);
    }
}

/// Returns whether an incomplete line stays in the input when Ctrl-C is typed: Ctrl-C does not
/// send `SIGINT`, or the foreground group ignores `SIGINT`.
fn keeps_line(terminal: &Terminal) -> bool {
    terminal.interrupt_key().is_none_or(|key| {
        key != INTERRUPT || terminal.foreground().is_none_or(mark::ignores_interrupts)
    })
}

/// Reads the output of a process and waits for its exit; `held` are its output descriptors.
async fn drive(
    mut tree: Tree,
    reader: Reader,
    held: Vec<Held>,
    shared: Arc<Shared>,
    kill: CancellationToken,
) {
    let mut reading = pin!(read(reader, |part| shared.output().push(part)).fuse());
    let status = beside(reading.as_mut(), async {
        tokio::select! {
            status = tree.wait() => status.ok(),
            () = kill.cancelled() => tree.end().await,
        }
    });
    let status = status.await;
    drop(held);
    if !reading.is_terminated() {
        // A descendant may hold the pipe open forever.
        shared.output().held |= timeout(DRAIN, reading.as_mut()).await.is_err();
    }
    shared.output().close();
    shared.ended.send_replace(Some(status.map_or(Exit::Unknown, Exit::of)));
}

/// Waits for `main` and polls `other` meanwhile.
async fn beside<T>(
    mut other: Pin<&mut impl FusedFuture<Output = ()>>,
    main: impl Future<Output = T>,
) -> T {
    let mut main = pin!(main);
    loop {
        tokio::select! {
            done = main.as_mut() => return done,
            () = other.as_mut(), if !other.is_terminated() => {}
        }
    }
}
