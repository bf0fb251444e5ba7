//! What is answered without rmcp: calls, lists and pings of a legacy session over two
//! streams.
//!
//! ```text
//! peer ─▶ Front ─▶ envelope ─▶ pipeline ─▶ answer ─▶ out ─▶ peer
//!           └────▶ rmcp: everything else ────────────▶┘
//! ```
//!
//! A [`Front`] stands between the peer and rmcp. It takes the lines that it knows to the last
//! key out of the stream and answers them, all that came at once with one write; every other
//! line goes on to rmcp as it is. A call is polled once where it stands, and gets a task of
//! its own only when it has to wait.
//!
//! **Invariant:** the answers are those that rmcp would give, and nothing is answered here
//! before rmcp has opened the session.

mod answer;
mod envelope;
mod heard;
mod out;

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use self::envelope::{Simple, ToolCall};
use self::heard::Heard;
pub(super) use self::heard::Level;
use self::out::{Out, Writer};
use super::listing::Listing;
use crate::call::{Call, Outcome};
use crate::context::Session;
use crate::pipeline::Pipeline;
use crate::toolset::View;

/// How long calls may take to end when the peer has hung up.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much is read at once.
const CHUNK: usize = 64 * 1024;
/// A longer line is rmcp's to judge.
const LONGEST: usize = 1024 * 1024;
/// How many bytes of answers may wait before no more is read.
const BACKLOG: usize = 16 * 1024 * 1024;

/// The session for which a [`Front`] may answer; set when rmcp has opened it.
pub(super) struct Opened {
    out: Arc<Out>,
    level: Arc<Level>,
    session: OnceLock<Session>,
}

impl Opened {
    /// From now on calls are answered here.
    pub(super) fn open(&self, session: Session) {
        let heard = Heard { out: Arc::clone(&self.out), level: Arc::clone(&self.level) };
        let _ = self.session.set(session.with_listener(Arc::new(heard)));
    }
}

/// Puts a front before rmcp: gives what rmcp reads and writes, and what opens it.
pub(super) fn front<R, W>(
    read: R,
    write: W,
    pipeline: Pipeline,
    listing: Arc<Listing>,
    level: Arc<Level>,
) -> (Front<R>, impl AsyncWrite + Send + Unpin + 'static, Arc<Opened>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + 'static,
{
    let out = Out::new(write);
    let opened = Arc::new(Opened { out: Arc::clone(&out), level, session: OnceLock::new() });
    let front = Front {
        read,
        lines: Lines::default(),
        passed: Vec::new(),
        desk: Desk {
            pipeline,
            listing,
            opened: Arc::clone(&opened),
            out: Arc::clone(&out),
            running: JoinSet::new(),
            cancels: Arc::default(),
        },
        ending: None,
    };
    (front, Writer(out), opened)
}

/// The stream of a peer without what was answered already.
pub(super) struct Front<R> {
    read: R,
    lines: Lines,
    /// What rmcp has to read next.
    passed: Vec<u8>,
    desk: Desk,
    /// The peer has hung up, and calls have until then.
    ending: Option<Pin<Box<Sleep>>>,
}

/// What has come and is not looked at yet.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// A line that is too long goes on to rmcp in pieces.
    long: bool,
}

impl Lines {
    /// The next whole line without its end.
    fn next(&mut self) -> Option<&[u8]> {
        let rest = &self.bytes[self.start..];
        let length = memchr(b'\n', rest)?;
        self.start += length + 1;
        Some(&rest[..length])
    }

    /// Makes room for the next read; what is left has no end yet.
    fn compact(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
    }
}

impl<R: AsyncRead + Unpin> Front<R> {
    /// Answers lines until one is for rmcp, or none is left.
    fn look(&mut self) {
        while self.passed.is_empty() {
            let is_rest = self.lines.long;
            let Some(line) = self.lines.next() else { break };
            if is_rest || !self.desk.answer(line) {
                self.passed.extend_from_slice(line);
                self.passed.push(b'\n');
                self.lines.long = false;
            }
        }
        if self.passed.is_empty() {
            self.lines.compact();
            if self.lines.bytes.len() > LONGEST {
                self.passed.append(&mut self.lines.bytes);
                self.lines.long = true;
            }
        }
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let bytes = &mut self.lines.bytes;
        let before = bytes.len();
        bytes.resize(before + CHUNK, 0);
        let mut buf = ReadBuf::new(&mut bytes[before..]);
        let polled = Pin::new(&mut self.read).poll_read(cx, &mut buf);
        let count = buf.filled().len();
        bytes.truncate(before + count);
        polled.map_ok(|()| count)
    }

    /// Waits until the calls that run have ended, and their answers have left.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ending = self.ending.get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
        while let Poll::Ready(Some(_)) = self.desk.running.poll_join_next(cx) {}
        let is_over = ending.as_mut().poll(cx).is_ready();
        if !self.desk.running.is_empty() && !is_over {
            return Poll::Pending;
        }
        self.desk.running.abort_all();
        // Who does not read has had its time as well.
        match self.desk.out.poll_flush(cx) {
            Poll::Pending if !is_over => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Front<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let front = self.get_mut();
        loop {
            front.look();
            // Who does not read its answers yet may still say more.
            let flushed = front.desk.out.poll_flush(cx);
            if !front.passed.is_empty() {
                let count = front.passed.len().min(buf.remaining());
                buf.put_slice(&front.passed[..count]);
                front.passed.drain(..count);
                return Poll::Ready(Ok(()));
            }
            if flushed.is_pending() && front.desk.out.waiting() > BACKLOG {
                return Poll::Pending;
            }
            if front.ending.is_some() || ready!(front.poll_more(cx))? == 0 {
                ready!(front.poll_end(cx));
                // A piece of a line that the peer did not end is rmcp's to judge.
                return Poll::Ready(Ok(()));
            }
            while let Poll::Ready(Some(_)) = front.desk.running.poll_join_next(cx) {}
        }
    }
}

/// Ends calls that nobody waits for any more, by the id of their request.
type Cancels = Arc<Mutex<HashMap<String, CancellationToken>>>;

/// Where lines are answered.
struct Desk {
    pipeline: Pipeline,
    listing: Arc<Listing>,
    opened: Arc<Opened>,
    out: Arc<Out>,
    /// Calls that had to wait. They end with the connection.
    running: JoinSet<()>,
    cancels: Cancels,
}

impl Desk {
    /// Whether the line is answered, or will be.
    fn answer(&mut self, line: &[u8]) -> bool {
        let opened = Arc::clone(&self.opened);
        let Some(session) = opened.session.get() else { return false };
        match Simple::read(line) {
            Some(Simple::Ping { id }) => self.out.say(|queue| answer::whole(queue, id, "{}")),
            Some(Simple::List { id }) => {
                let view = self.pipeline.toolset().view();
                let Some(list) = self.listing.text(&view) else { return false };
                self.out.say(|queue| answer::whole(queue, id, &list));
            }
            Some(Simple::Call { id, call }) => {
                let view = self.pipeline.toolset().view();
                if view.definition(&call.name).is_none() {
                    return false;
                }
                self.call(session, view, id, &call);
            }
            Some(Simple::Cancelled { id }) => return self.cancel(id),
            None => return false,
        }
        true
    }

    fn call(&mut self, session: &Session, view: Arc<View>, id: &str, call: &ToolCall<'_>) {
        let name = call.name.clone().into_owned();
        let arguments = call.arguments.map_or("{}", |arguments| arguments.get()).to_owned();
        let cancel = CancellationToken::new();
        let (pipeline, session) = (self.pipeline.clone(), session.clone());
        let call = Call::new(name.clone(), arguments).cancelled_by(cancel.clone());
        let mut running = Box::pin(async move { pipeline.call(&session, call).await });
        // Whoever is to be woken is not known before the call has a task.
        let mut cx = Context::from_waker(Waker::noop());
        match running.as_mut().poll(&mut cx) {
            Poll::Ready(outcome) => tell(&self.out, id, outcome, &view, &name),
            Poll::Pending => self.wait(running, cancel, id.to_owned(), view, name),
        }
    }

    /// Goes on with a call on a task of its own.
    fn wait(
        &mut self,
        running: Pin<Box<dyn Future<Output = Outcome> + Send>>,
        cancel: CancellationToken,
        id: String,
        view: Arc<View>,
        name: String,
    ) {
        lock(&self.cancels).insert(id.clone(), cancel.clone());
        let (out, cancels) = (Arc::clone(&self.out), Arc::clone(&self.cancels));
        self.running.spawn(async move {
            let outcome = running.await;
            lock(&cancels).remove(&id);
            // Nobody waits for the answer to a request that was taken back.
            if !cancel.is_cancelled() {
                tell(&out, &id, outcome, &view, &name);
            }
            // A peer that is gone need not be told.
            let _ = std::future::poll_fn(|cx| out.poll_flush(cx)).await;
        });
    }

    /// Whether the request was one of ours.
    fn cancel(&self, id: &str) -> bool {
        let cancel = lock(&self.cancels).remove(id);
        cancel.inspect(CancellationToken::cancel).is_some()
    }
}

fn tell(out: &Out, id: &str, outcome: Outcome, view: &View, name: &str) {
    if let Some(definition) = view.definition(name) {
        out.say(|queue| answer::outcome(queue, id, outcome, definition));
    }
}

fn lock(cancels: &Cancels) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
    cancels.lock().unwrap_or_else(PoisonError::into_inner)
}
