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

use super::BackgroundCommand;
use super::pty_input::{FindPendingStart, PtyInput, find_line_start};
use crate::capture::{OutputCapture, read_chunks};
use crate::group::ProcessGroup;
use crate::partial_sequence::PartialSequence;
use crate::program::ActiveSandbox;
use crate::sandbox::{PlaceholderDirs, SandboxStatus};
use crate::spawn::{HeldFd, HostStdio, INTERRUPT_CHAR, InputWriter, OutputReader, PtyMaster};
use crate::tag::{self, ProcessTag};
use crate::tree::ProcessTree;
use crate::{CapturedOutput, DRAIN_TIMEOUT, ExitOutcome, RunError, find_new_protected_files};

/// A running or exited background process with its unread output.
pub struct BackgroundProcess {
    id: u32,
    title: String,
    started: Instant,
    group: Option<ProcessGroup>,
    input: tokio::sync::Mutex<Option<InputWriter>>,
    terminal: Option<PtyMaster>,
    pty_input: Mutex<PtyInput>,
    shared: Arc<SharedState>,
    kill: CancellationToken,
    driver: JoinHandle<()>,
    active_sandbox: ActiveSandbox,
}

/// The state that a process shares with its supervisor task.
struct SharedState {
    output: Mutex<OutputState>,
    ended: watch::Sender<Option<ExitOutcome>>,
}

struct OutputState {
    capture: OutputCapture,
    partial: PartialSequence,
    listener: Option<OutputListener>,
    /// Whether a descendant still held it open after the process had exited.
    left_open: bool,
}

type OutputListener = Box<dyn FnMut(&[u8]) + Send>;

/// What a process wrote since the last read, and whether it has exited.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessOutput {
    /// The output.
    pub output: CapturedOutput,
    /// How it exited; `None` while it runs.
    pub exit: Option<ExitOutcome>,
    /// Whether a descendant still held the output open after the process had exited. Its later
    /// output is not read.
    pub output_left_open: bool,
}

/// A program that is attached to a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttachedProgram {
    /// The executable; `None` when it may not be read.
    pub program: Option<PathBuf>,
    /// The arguments, starting with the program name.
    pub argv: Vec<OsString>,
}

/// Why input could not be typed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtyInputError {
    /// The process was started without a terminal.
    #[error("the process has no terminal to type into")]
    NoTerminal,
    /// The process has exited or closed its terminal.
    #[error("the process has exited or closed its terminal")]
    Exited(#[source] io::Error),
    /// Another call has changed the pending input since this call was authorized.
    #[error("another call typed into the terminal meanwhile; read its output, then type again")]
    InputChanged,
    /// The process does not read, and the input buffer is full. A part may have been typed.
    #[error("the process does not read its input; wait until it does, or interrupt it")]
    NotReading,
}

/// How long a write may make no progress before it fails.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

impl BackgroundProcess {
    /// Starts `spawn` with the tag `mark`.
    pub(super) fn spawn(
        id: u32,
        spawn: &BackgroundCommand,
        mark: ProcessTag,
    ) -> Result<Self, RunError> {
        let started = Instant::now();
        let (confined, confinement) = spawn.spec.wrap_in_sandbox()?;
        let (tree, streams) =
            ProcessTree::spawn(&confined, mark, spawn.stdio_mode(), spawn.grace_period)
                .map_err(|source| spawn.spawn_error(source))?;
        let HostStdio { stdin: input, stdout: reader, terminal, child_fds: held, .. } = streams;
        let capture = OutputCapture::new(spawn.output_limit);
        let output = OutputState {
            capture,
            partial: PartialSequence::default(),
            listener: None,
            left_open: false,
        };
        let shared =
            Arc::new(SharedState { output: Mutex::new(output), ended: watch::Sender::new(None) });
        let kill = spawn.cancel_token.child_token();
        let group = tree.group();
        let driver = tokio::spawn(supervise(tree, reader, held, Arc::clone(&shared), kill.clone()));
        Ok(Self {
            id,
            title: spawn.title.clone(),
            started,
            group,
            input: tokio::sync::Mutex::new(input),
            terminal,
            pty_input: Mutex::default(),
            shared,
            kill,
            driver,
            active_sandbox: confinement,
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
    pub fn sandbox_status(&self) -> Option<&SandboxStatus> {
        self.active_sandbox.status.as_ref()
    }

    /// Returns the protected files that appeared since it was started. The sandbox cannot protect
    /// a file that does not exist yet.
    pub async fn new_protected_files(&self) -> Vec<PathBuf> {
        find_new_protected_files(&self.active_sandbox).await
    }

    /// Returns the placeholders of missing protected files, if there are any.
    pub(super) fn placeholders(&self) -> Option<PlaceholderDirs> {
        let stand_ins = &self.active_sandbox.placeholders;
        (!stand_ins.is_empty()).then(|| stand_ins.clone())
    }

    /// How it exited; `None` while it runs.
    #[must_use]
    pub fn exit(&self) -> Option<ExitOutcome> {
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
    pub fn foreground_file(&self) -> Option<PathBuf> {
        self.foreground_program()?.program
    }

    /// Returns the same program with its arguments.
    #[must_use]
    pub fn foreground_program(&self) -> Option<AttachedProgram> {
        let group = self.terminal.as_ref()?.foreground_group()?;
        // Any member of the foreground group may read, not only its leader.
        if !tag::is_only_member(group) {
            return None;
        }
        tag::program_of_pid(group)
    }

    /// Returns the working directory of the same program.
    #[must_use]
    pub fn foreground_dir(&self) -> Option<PathBuf> {
        let group = self.terminal.as_ref()?.foreground_group()?;
        // Linux only; on other systems there is no such file.
        std::fs::read_link(format!("/proc/{group}/cwd")).ok()
    }

    /// Waits up to `within` for the exit, then takes the output. While the process runs, an
    /// incomplete character, line end or escape sequence at the end stays buffered.
    ///
    /// `listener` is called with each chunk of this output as it arrives, cut in the same way.
    pub async fn read_output(
        &self,
        within: Duration,
        listener: impl FnMut(&[u8]) + Send + 'static,
    ) -> ProcessOutput {
        // Poll without a timer for zero: the shortest timer takes a millisecond.
        if !within.is_zero() {
            let _ = timeout(within, self.wait_for_exit(listener)).await;
        }
        // The exit is set after the last output, so none is missed.
        let exit = self.exit();
        let mut output = self.shared.lock_output();
        ProcessOutput { output: output.take(), exit, output_left_open: output.left_open }
    }

    /// Waits for the exit without taking output.
    ///
    /// `listener` is called with the buffered output and with each new chunk, cut as for
    /// [`read_output`](Self::read_output).
    pub async fn wait_for_exit(&self, listener: impl FnMut(&[u8]) + Send + 'static) {
        self.shared.lock_output().attach_listener(Box::new(listener));
        let _quiet = ListenerGuard(&self.shared);
        let mut ended = self.shared.ended.subscribe();
        // Cannot fail: the sender lives as long as this process.
        let _ = ended.wait_for(Option::is_some).await;
    }

    /// Returns whether the terminal driver would alter `text` before it is read, for example by an
    /// erase character or by lowercasing it.
    ///
    /// Returns `true` when that is unknown.
    #[must_use]
    pub fn alters_input(&self, text: &str) -> bool {
        self.terminal.as_ref().is_none_or(|terminal| terminal.alters_text(text))
    }

    /// Returns whether its terminal is in noncanonical mode, as for a shell at its prompt, which
    /// edits the line itself.
    #[must_use]
    pub fn is_noncanonical(&self) -> bool {
        self.terminal.as_ref().is_some_and(PtyMaster::is_noncanonical)
    }

    /// Returns whether typed input has not been read yet, so that its reader is undecided. Returns
    /// `true` when that is unknown.
    #[must_use]
    pub fn has_unread_input(&self) -> bool {
        self.terminal.as_ref().is_none_or(PtyMaster::has_unread_input)
    }

    /// Records that several programs may read parts of the input of `call`. Until Ctrl-C discards
    /// the input, only its last line counts as pending. Other calls with an earlier
    /// [snapshot](Self::pending_input_for) are rejected.
    pub fn mark_input_shared(&self, call: &str, open_from: impl Fn(&str) -> usize + Sync) {
        self.lock_input().mark_shared(call, &open_from);
    }

    /// Returns whether several programs [may have read](Self::mark_input_shared) parts of the
    /// input.
    #[must_use]
    pub fn is_input_shared(&self) -> bool {
        self.lock_input().is_shared()
    }

    /// Returns the programs attached to its terminal, with their arguments; `None` where the system
    /// does not list them.
    #[must_use]
    pub fn attached_programs(&self) -> Option<Vec<AttachedProgram>> {
        tag::programs_of_session(self.terminal.as_ref()?.session_id()?)
    }

    /// Returns the pending input, which starts where the callback `open_from` says, and stores it
    /// as the snapshot by which `call` is authorized: see [`type_checked`](Self::type_checked).
    pub fn pending_input_for(
        &self,
        call: &str,
        open_from: impl Fn(&str) -> usize + Sync,
    ) -> String {
        self.lock_input().snapshot_for(call, &open_from)
    }

    /// Types `text` like [`type_text`](Self::type_text), if the pending input still equals the
    /// [snapshot](Self::pending_input_for) of the call `judged`. The callback `open_from` returns
    /// where the pending input starts.
    ///
    /// # Errors
    ///
    /// Fails with [`PtyInputError::InputChanged`] when the snapshot is outdated, and where
    /// `type_text` does.
    pub async fn type_checked(
        &self,
        text: &str,
        judged: Option<&str>,
        open_from: impl Fn(&str) -> usize + Sync,
    ) -> Result<(), PtyInputError> {
        self.type_if_unchanged(text, judged, &open_from).await
    }

    /// Types `text` into its terminal. If Ctrl-C sends `SIGINT`, it takes effect at once, and
    /// unread input before it is discarded.
    ///
    /// # Errors
    ///
    /// Fails when it has no terminal, has exited, or reads nothing for a second.
    pub async fn type_text(&self, text: &str) -> Result<(), PtyInputError> {
        self.type_if_unchanged(text, None, &find_line_start).await
    }

    async fn type_if_unchanged(
        &self,
        text: &str,
        call: Option<&str>,
        open_from: FindPendingStart<'_>,
    ) -> Result<(), PtyInputError> {
        // The lock serializes typing calls.
        let mut input = self.input.lock().await;
        let input = input.as_mut().ok_or(PtyInputError::NoTerminal)?;
        if call.is_some_and(|call| !self.lock_input().is_unchanged_for(call, open_from)) {
            return Err(PtyInputError::InputChanged);
        }
        let typed = self.write_text(input, text).await;
        self.lock_input().discard_completed(open_from);
        typed
    }

    async fn write_text(&self, input: &mut InputWriter, text: &str) -> Result<(), PtyInputError> {
        for part in text.split_inclusive(INTERRUPT_CHAR) {
            let before = part.trim_end_matches(INTERRUPT_CHAR);
            let typed = self.write_part(input, before, true).await;
            let key = &part[before.len()..];
            let terminal = self.terminal.as_ref().filter(|_| !key.is_empty());
            let ends = !terminal.is_some_and(keeps_line_on_interrupt);
            match (typed, terminal.is_some_and(PtyMaster::flush_unread_input)) {
                (Err(PtyInputError::NotReading), true) => {}
                (typed, _) => typed?,
            }
            self.write_part(input, key, ends).await?;
        }
        Ok(())
    }

    /// Writes `text`; `is_pending_line` says whether it becomes part of the pending input.
    async fn write_part(
        &self,
        input: &mut InputWriter,
        text: &str,
        is_pending_line: bool,
    ) -> Result<(), PtyInputError> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let written = timeout(WRITE_TIMEOUT, input.write(rest)).await;
            let count =
                written.map_err(|_| PtyInputError::NotReading)?.map_err(PtyInputError::Exited)?;
            if count == 0 {
                return Err(PtyInputError::Exited(io::ErrorKind::WriteZero.into()));
            }
            // Record each part at once: the caller may drop the future during the next write.
            let (written, left) = rest.split_at(count);
            if is_pending_line {
                self.lock_input().push(written);
            }
            rest = left;
        }
        Ok(())
    }

    /// Returns the pending input: after [`type_text`](Self::type_text), the unterminated last line.
    #[must_use]
    pub fn pending_input(&self) -> String {
        self.lock_input().to_text()
    }

    fn lock_input(&self) -> MutexGuard<'_, PtyInput> {
        self.pty_input.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `SIGINT` to its process group, as Ctrl-C does.
    pub fn interrupt(&self) {
        if let Some(group) = &self.group {
            group.interrupt();
        }
    }

    /// Returns the id of its process group, until it was reaped.
    #[cfg(test)]
    pub(crate) fn pgid(&self) -> Option<i32> {
        self.group.as_ref().and_then(ProcessGroup::pgid)
    }

    /// Terminates it with all descendants and waits for the exit.
    pub async fn kill(&self) -> ExitOutcome {
        self.kill.cancel();
        let mut ended = self.shared.ended.subscribe();
        let exit = ended.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        exit.unwrap_or(ExitOutcome::Unknown)
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        // Aborting the task drops the process tree, which terminates it.
        self.driver.abort();
    }
}

impl fmt::Debug for BackgroundProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.id)
            .field("title", &self.title)
            .field("exit", &self.exit())
            .finish_non_exhaustive()
    }
}

impl SharedState {
    fn lock_output(&self) -> MutexGuard<'_, OutputState> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputState {
    fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        let whole = self.partial.take_complete(bytes);
        notify_listener(&mut self.listener, &whole);
    }

    /// Passes on the buffered incomplete sequence at the end of the stream.
    fn close(&mut self) {
        let rest = self.partial.take_pending();
        notify_listener(&mut self.listener, &rest);
    }

    /// Takes the output without an incomplete sequence at its end.
    fn take(&mut self) -> CapturedOutput {
        self.capture.take_output(self.partial.len())
    }

    /// Sets the listener and calls it with the buffered output.
    fn attach_listener(&mut self, listener: OutputListener) {
        self.listener = Some(listener);
        let kept: usize = self.capture.chunks().map(<[u8]>::len).sum();
        let mut whole = kept.saturating_sub(self.partial.len());
        for part in self.capture.chunks() {
            let part = &part[..part.len().min(whole)];
            whole -= part.len();
            notify_listener(&mut self.listener, part);
        }
    }
}

/// Calls the listener. A listener that panics is removed; the process keeps running.
fn notify_listener(listener: &mut Option<OutputListener>, bytes: &[u8]) {
    let Some(hears) = listener.as_mut().filter(|_| !bytes.is_empty()) else { return };
    if catch_unwind(AssertUnwindSafe(|| hears(bytes))).is_err() {
        *listener = None;
    }
}

/// Removes the listener, also when the wait is dropped.
struct ListenerGuard<'a>(&'a SharedState);

impl Drop for ListenerGuard<'_> {
    fn drop(&mut self) {
        let listener = self.0.lock_output().listener.take();
        // Drop it without the lock: its destructor may run foreign code.
        drop(listener);
    }
}

/// Returns whether an incomplete line stays in the input when Ctrl-C is typed: Ctrl-C does not
/// send `SIGINT`, or the foreground group ignores `SIGINT`.
fn keeps_line_on_interrupt(terminal: &PtyMaster) -> bool {
    terminal.interrupt_key().is_none_or(|key| {
        key != INTERRUPT_CHAR || terminal.foreground_group().is_none_or(tag::group_ignores_sigint)
    })
}

/// Reads the output of a process and waits for its exit; `held` are its output descriptors.
async fn supervise(
    mut tree: ProcessTree,
    reader: OutputReader,
    held: Vec<HeldFd>,
    shared: Arc<SharedState>,
    kill: CancellationToken,
) {
    let mut reading = pin!(read_chunks(reader, |part| shared.lock_output().push(part)).fuse());
    let status = run_alongside(reading.as_mut(), async {
        tokio::select! {
            status = tree.wait() => status.ok(),
            () = kill.cancelled() => tree.shut_down().await,
        }
    });
    let status = status.await;
    drop(held);
    if !reading.is_terminated() {
        // A descendant may hold the pipe open forever.
        shared.lock_output().left_open |= timeout(DRAIN_TIMEOUT, reading.as_mut()).await.is_err();
    }
    shared.lock_output().close();
    shared.ended.send_replace(Some(status.map_or(ExitOutcome::Unknown, ExitOutcome::from_status)));
}

/// Waits for `main` and polls `other` meanwhile.
async fn run_alongside<T>(
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
