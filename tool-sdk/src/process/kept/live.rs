//! A process that is kept: it runs on between calls, and its output waits for the next one.
//!
//! A task of its own reads what it writes and waits for its end, so that the process is never
//! blocked, and reaped at once. Whoever looks after it only waits for news and takes what has
//! come.
//!
//! **Invariant:** output is given out once, and a wait that is dropped takes nothing.

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

/// A running or ended program, with the output that nobody took yet.
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

/// What a process and the task that looks after it share.
struct Shared {
    output: Mutex<Output>,
    ended: watch::Sender<Option<Exit>>,
}

struct Output {
    capture: Capture,
    begun: Begun,
    listener: Option<Listener>,
    /// Whether something still held it open when the process had ended.
    held: bool,
}

type Listener = Box<dyn FnMut(&[u8]) + Send>;

/// What a process wrote since the last look, and whether it has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Look {
    /// The output.
    pub output: Captured,
    /// How it ended, when it did.
    pub exit: Option<Exit>,
    /// Whether something that it started still held its output open when it had ended: what that
    /// writes later nobody reads.
    pub held: bool,
}

/// A program that has a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attached {
    /// The file that runs.
    pub program: Option<PathBuf>,
    /// What it was started with, its own name first.
    pub words: Vec<OsString>,
}

/// Why nothing could be typed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// It was started without a terminal.
    #[error("the process has no terminal to type into")]
    Closed,
    /// It has ended, or reads no more.
    #[error("the process reads no more")]
    Gone(#[source] io::Error),
    /// Others have typed what it would go on with, since it was judged.
    #[error("something else was typed meanwhile; look at it, and type again")]
    Changed,
    /// It runs and does not read, and the terminal takes no more. A part may have been typed.
    #[error("the process does not read what is typed; wait until it does, or interrupt it")]
    Stuck,
}

/// How long a terminal may take nothing at all of what is typed.
const STUCK: Duration = Duration::from_secs(1);

impl Process {
    /// Starts `spawn`; `mark` is what it and everything below it carries.
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

    /// The number by which a model speaks of it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What it is, for lists.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// How long ago it was started.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// How far it is confined, where that was wanted.
    #[must_use]
    pub fn sandbox(&self) -> Option<&Status> {
        self.confinement.status.as_ref()
    }

    /// The names that are protected and have come since it was started: the sandbox could not
    /// hold them, for there was nothing to hold.
    pub async fn planted(&self) -> Vec<PathBuf> {
        planted(&self.confinement).await
    }

    /// What stands in for protected files that are not there, where there is something.
    pub(super) fn stand_ins(&self) -> Option<StandIns> {
        let stand_ins = &self.confinement.stand_ins;
        (!stand_ins.is_empty()).then(|| stand_ins.clone())
    }

    /// How it ended, when it did.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        *self.shared.ended.borrow()
    }

    /// Whether it has a terminal to type into.
    #[must_use]
    pub fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// The file of the program that reads what is typed now, where the system tells and no
    /// other program shares the terminal with it.
    ///
    /// It may be another one a moment later.
    #[must_use]
    pub fn reader(&self) -> Option<PathBuf> {
        self.reading()?.program
    }

    /// The same program with its words.
    #[must_use]
    pub fn reading(&self) -> Option<Attached> {
        let group = self.terminal.as_ref()?.foreground()?;
        // The others of a group may read too, and the one that leads it may only wait for them.
        if !mark::is_alone(group) {
            return None;
        }
        mark::attached(group)
    }

    /// The folder in which the same program runs.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let group = self.terminal.as_ref()?.foreground()?;
        // Only Linux has such links.
        std::fs::read_link(format!("/proc/{group}/cwd")).ok()
    }

    /// Waits until it has ended, at most for `within`, and takes what it wrote. While it runs, a
    /// character, a line end or an escape sequence that has only begun waits for its rest.
    ///
    /// `listener` hears the output that it takes, each part as it comes and cut in the same way.
    pub async fn look(
        &self,
        within: Duration,
        listener: impl FnMut(&[u8]) + Send + 'static,
    ) -> Look {
        // Either way the state is looked at below. The shortest of timers takes a millisecond.
        if !within.is_zero() {
            let _ = timeout(within, self.ended(listener)).await;
        }
        // The end is set after the last output, so that none is missed.
        let exit = self.exit();
        let mut output = self.shared.output();
        Look { output: output.take(), exit, held: output.held }
    }

    /// Waits until it has ended, and takes nothing.
    ///
    /// `listener` hears what nobody took yet of the output, and every part that comes, cut as for
    /// [`look`](Self::look).
    pub async fn ended(&self, listener: impl FnMut(&[u8]) + Send + 'static) {
        self.shared.output().hear(Box::new(listener));
        let _quiet = Quiet(&self.shared);
        let mut ended = self.shared.ended.subscribe();
        // The sender lives as long as this does.
        let _ = ended.wait_for(Option::is_some).await;
    }

    /// Whether the terminal makes something else of `text` than it says before it is read: a
    /// character of it removes others, or letters become small ones.
    ///
    /// Where that cannot be found out, it does.
    #[must_use]
    pub fn alters(&self, text: &str) -> bool {
        self.terminal.as_ref().is_none_or(|terminal| terminal.alters(text))
    }

    /// Whether its terminal hands on each key at once, as to a shell that waits at its prompt and
    /// edits the line itself.
    #[must_use]
    pub fn hands_on_keys(&self) -> bool {
        self.terminal.as_ref().is_some_and(Terminal::hands_on_keys)
    }

    /// Whether some of what was typed waits to be read, so that nobody knows yet by whom; also
    /// where that cannot be found out.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        self.terminal.as_ref().is_none_or(Terminal::has_unread)
    }

    /// Says that several programs may read parts of what `call` types: how that goes on nobody
    /// knows, until Ctrl-C throws it away. Only the last line is kept of it. Other calls that were
    /// [judged](Self::open_for) before type nothing.
    pub fn mix_up(&self, call: &CallId, open_from: impl Fn(&str) -> usize + Sync) {
        self.has().mix(call, &open_from);
    }

    /// Whether several programs [may have read](Self::mix_up) parts of what was typed.
    #[must_use]
    pub fn is_mixed_up(&self) -> bool {
        self.has().is_mixed()
    }

    /// The programs that have its terminal, each with its words; nothing where the system does
    /// not tell. Of one that may not be looked at, there is no file.
    #[must_use]
    pub fn attached(&self) -> Option<Vec<Attached>> {
        mark::of_session(self.terminal.as_ref()?.session()?)
    }

    /// What was typed and goes on with what is typed next, from where `open_from` says, for
    /// whoever judges `call` by it: see [`type_from`](Self::type_from).
    pub fn open_for(&self, call: &CallId, open_from: impl Fn(&str) -> usize + Sync) -> String {
        self.has().seen_by(call, &open_from)
    }

    /// The same as [`type_in`](Self::type_in), but `open_from` says where of what was typed the
    /// part begins that goes on. A call that was [judged](Self::open_for) by another one types
    /// nothing.
    ///
    /// # Errors
    ///
    /// Fails then, and where `type_in` does.
    pub async fn type_from(
        &self,
        text: &str,
        judged: Option<&CallId>,
        open_from: impl Fn(&str) -> usize + Sync,
    ) -> Result<(), TypeError> {
        self.type_as_seen(text, judged, &open_from).await
    }

    /// Types `text` into its terminal. Where Ctrl-C interrupts, it does so at once: what stands
    /// before it and was not read by then is gone.
    ///
    /// # Errors
    ///
    /// Fails when it has no terminal, has ended, or reads nothing for a second.
    pub async fn type_in(&self, text: &str) -> Result<(), TypeError> {
        self.type_as_seen(text, None, &line_start).await
    }

    async fn type_as_seen(
        &self,
        text: &str,
        call: Option<&CallId>,
        open_from: OpenFrom<'_>,
    ) -> Result<(), TypeError> {
        // Until it is typed, nobody else types.
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

    /// `counts` says whether it belongs to the line.
    async fn write(&self, input: &mut Writer, text: &str, counts: bool) -> Result<(), TypeError> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let written = timeout(STUCK, input.write(rest)).await;
            let count = written.map_err(|_| TypeError::Stuck)?.map_err(TypeError::Gone)?;
            if count == 0 {
                return Err(TypeError::Gone(io::ErrorKind::WriteZero.into()));
            }
            // At once: whoever waits for the rest may give up.
            let (written, left) = rest.split_at(count);
            if counts {
                self.has().push(written);
            }
            rest = left;
        }
        Ok(())
    }

    /// What was typed and goes on: after [`type_in`](Self::type_in), the start of a line that was
    /// not ended.
    #[must_use]
    pub fn typed(&self) -> String {
        self.has().text()
    }

    fn has(&self) -> MutexGuard<'_, Typed> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Interrupts it, as Ctrl-C does.
    pub fn interrupt(&self) {
        if let Some(group) = &self.group {
            group.interrupt();
        }
    }

    /// The number of its group, until it was waited for.
    #[cfg(test)]
    pub(in super::super) fn group_number(&self) -> Option<i32> {
        self.group.as_ref().and_then(Group::number)
    }

    /// Ends it and everything below it, and waits until that is done.
    pub async fn kill(&self) -> Exit {
        self.kill.cancel();
        let mut ended = self.shared.ended.subscribe();
        let exit = ended.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        exit.unwrap_or(Exit::Unknown)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // What the task holds ends the tree when it is dropped.
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

    /// Nothing more comes.
    fn close(&mut self) {
        let rest = self.begun.rest();
        tell(&mut self.listener, &rest);
    }

    /// What has come, without what has only begun.
    fn take(&mut self) -> Captured {
        self.capture.take(self.begun.len())
    }

    /// From now on `listener` hears what comes, and first what waits and is whole.
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

/// One that panics hears no more; the process goes on.
fn tell(listener: &mut Option<Listener>, bytes: &[u8]) {
    let Some(hears) = listener.as_mut().filter(|_| !bytes.is_empty()) else { return };
    if catch_unwind(AssertUnwindSafe(|| hears(bytes))).is_err() {
        *listener = None;
    }
}

/// Takes the listener away, also when the wait is dropped.
struct Quiet<'a>(&'a Shared);

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let listener = self.0.output().listener.take();
        // Dropped without the lock: nobody knows what hangs on it.
        drop(listener);
    }
}

/// Whether what was typed of a line stays there when Ctrl-C is typed: another key interrupts or
/// none does, or who reads ignores it.
fn keeps_line(terminal: &Terminal) -> bool {
    terminal.interrupt_key().is_none_or(|key| {
        key != INTERRUPT || terminal.foreground().is_none_or(mark::ignores_interrupts)
    })
}

/// Looks after a process until it has ended; `held` is what it writes to.
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
        // What it left behind may hold the pipe open for ever.
        shared.output().held |= timeout(DRAIN, reading.as_mut()).await.is_err();
    }
    shared.output().close();
    shared.ended.send_replace(Some(status.map_or(Exit::Unknown, Exit::of)));
}

/// Waits for `main`, and lets `other` go on meanwhile.
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
