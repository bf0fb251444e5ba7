//! One peer at the other end of two streams, and what it is answered without rmcp: calls,
//! lists and pings of a legacy session.
//!
//! ```text
//! peer ─▶ Front ─▶ envelope ─▶ pipeline ─▶ answer ─▶ out ─▶ peer
//!           └────▶ message ──▶ Behind ─▶ rmcp ───────▶┘
//! ```
//!
//! A [`Front`] stands between the peer and rmcp, in a task of its own so that nobody else is
//! woken by what it answers. It takes the lines that it knows to the last key out of the
//! stream and answers them, all that came at once with one write; every other line is judged
//! and goes on to rmcp. On a runtime of one thread a call is polled once where it stands, and
//! gets a task of its own only when it has to wait. Where there are more threads it gets one
//! at once, so that a tool that blocks its thread stops nobody else.
//!
//! Several messages in one line are taken apart first, and their answers leave in one line, see
//! [`together`]. Requests over HTTP come without a front, see [`Single`].
//!
//! **Invariant:** the answers are those that rmcp would give, and nothing is answered here
//! before rmcp has opened the session.

mod answer;
mod desk;
mod envelope;
mod heard;
mod held;
mod lines;
mod open;
mod order;
mod out;
mod single;
mod together;
mod usual;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerResult};
use rmcp::service::{RoleServer, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use self::desk::Desk;
use self::heard::Heard;
pub(super) use self::heard::Level;
use self::held::Held;
use self::lines::{Line, Lines};
pub(super) use self::open::{Open, Ticket, written};
use self::out::Out;
pub(super) use self::single::{Begun, Handed, Single, Told};
use self::together::{Batches, Together, say};
use super::batch;
use super::listing::Listing;
use super::message::Fault;
use super::page::Shows;
use super::result::Blocks;
use crate::context::Session;
use crate::pipeline::Pipeline;

/// How long calls may take to end when the peer has hung up.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many bytes of answers may wait before no more is read.
const BACKLOG: usize = 16 * 1024 * 1024;

/// The session for which a [`Front`] may answer; set when rmcp has opened it.
pub(super) struct Opened {
    pipeline: Pipeline,
    out: Arc<Out>,
    level: Arc<Level>,
    /// Triggered when the peer says nothing any more.
    hung_up: CancellationToken,
    /// Triggered when calls have had their time after that.
    over: CancellationToken,
    talk: OnceLock<Arc<Talk>>,
    /// The peer may send several messages at once.
    with_batches: AtomicBool,
}

/// What calls of an open session are made with.
struct Talk {
    pipeline: Pipeline,
    session: Session,
    shows: Shows,
    blocks: Blocks,
}

impl Opened {
    /// What the connection has as well.
    pub(super) fn shared(&self) -> (Arc<Level>, CancellationToken, CancellationToken) {
        (Arc::clone(&self.level), self.hung_up.clone(), self.over.clone())
    }

    /// From now on calls are answered here.
    pub(super) fn open(&self, session: Session, shows: Shows, blocks: Blocks) {
        let heard = Heard { out: Arc::clone(&self.out), level: Arc::clone(&self.level) };
        let session = session.with_listener(Arc::new(heard));
        let pipeline = self.pipeline.clone();
        let _ = self.talk.set(Arc::new(Talk { pipeline, session, shows, blocks }));
    }
}

/// Puts a front before rmcp: gives what rmcp talks to, and what opens it.
pub(super) fn front<R, W>(
    read: R,
    write: W,
    pipeline: Pipeline,
    listing: Arc<Listing>,
) -> (Behind, Arc<Opened>)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + 'static,
{
    let front = Front::new(read, Out::new(write), pipeline, listing);
    let (out, open) = (Arc::clone(&front.desk.out), Arc::clone(&front.desk.open));
    let opened = Arc::clone(&front.desk.opened);
    let (pass, passed) = mpsc::channel(1);
    let mut reading = JoinSet::new();
    reading.spawn(front.read(pass));
    (Behind { passed, out, open, opened: Arc::clone(&opened), _reading: reading }, opened)
}

/// Who reads what a peer says.
struct Front<R> {
    read: R,
    lines: Lines,
    batches: Batches,
    held: Held,
    desk: Desk,
    /// The peer has hung up, and calls have until then.
    ending: Option<Pin<Box<Sleep>>>,
}

impl<R: AsyncRead + Unpin> Front<R> {
    fn new(read: R, out: Arc<Out>, pipeline: Pipeline, listing: Arc<Listing>) -> Self {
        let opened = Arc::new(Opened {
            pipeline,
            out: Arc::clone(&out),
            level: Arc::default(),
            hung_up: CancellationToken::new(),
            over: CancellationToken::new(),
            talk: OnceLock::new(),
            with_batches: AtomicBool::new(false),
        });
        let desk = Desk {
            listing,
            opened,
            out,
            running: JoinSet::new(),
            open: Arc::default(),
            order: None,
            has_begun: false,
            is_alone: Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread,
        };
        let (lines, batches, held) = (Lines::default(), Batches::default(), Held::default());
        Self { read, lines, batches, held, desk, ending: None }
    }

    /// Reads until the peer has hung up, or nobody wants to hear what it passes on.
    async fn read(mut self, pass: mpsc::Sender<ClientJsonRpcMessage>) {
        while let Some(message) = poll_fn(|cx| self.poll_receive(cx)).await {
            if pass.send(message).await.is_err() {
                return;
            }
        }
    }

    /// Answers lines until one is for rmcp, or none is left.
    fn look(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let mut batch = None;
            let passed = if let Some((line, among)) = self.held.next(&self.desk.open) {
                batch = among;
                self.desk.take(&line, batch.as_ref())
            } else if let Some((line, among)) = self.batches.next() {
                let among = batch.insert(among);
                let is_fine = among.check(&line);
                is_fine.and_then(|()| enter(&mut self.desk, &mut self.held, &line, Some(among)))
            } else {
                match self.lines.next()? {
                    Line::Whole(line) if batch::is_one(line) => {
                        match self.desk.opened.with_batches.load(Ordering::Relaxed) {
                            true => self.batches.take(line, &self.desk.out).map(|()| None),
                            false => Err(batch::unknown(line)),
                        }
                    }
                    Line::Whole(line) => enter(&mut self.desk, &mut self.held, line, None),
                    Line::TooLong => Err(Fault::too_long()),
                }
            };
            match passed {
                Ok(None) => {}
                Ok(message) => return message,
                Err(fault) => say(&self.desk.out, batch.as_deref(), |queue| {
                    answer::message(queue, &fault.answer());
                }),
            }
        }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<ClientJsonRpcMessage>> {
        loop {
            let message = self.look();
            let flushed = self.desk.out.poll_flush(cx);
            if message.is_some() {
                return Poll::Ready(message);
            }
            // Who does not read its answers yet may still say more, but not without end.
            if flushed.is_pending() && self.desk.out.waiting() > BACKLOG {
                return Poll::Pending;
            }
            if !self.held.is_empty() && self.desk.open.poll_room(cx).is_ready() {
                continue;
            }
            if self.ending.is_some() || ready!(self.lines.poll_more(&mut self.read, cx)).is_break()
            {
                ready!(self.poll_end(cx));
                return Poll::Ready(None);
            }
            self.desk.clear(cx);
        }
    }

    /// Waits until the calls that run have ended, and their answers have left.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Nobody answers what is asked.
        self.desk.opened.hung_up.cancel();
        let ending = self.ending.get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
        self.desk.clear(cx);
        let is_over = ending.as_mut().poll(cx).is_ready();
        let is_done = self.desk.running.is_empty() && self.held.is_empty();
        if !is_done && !is_over {
            return Poll::Pending;
        }
        if is_over {
            self.desk.opened.over.cancel();
        }
        self.desk.running.abort_all();
        for (fault, batch) in self.held.refuse() {
            say(&self.desk.out, batch.as_deref(), |queue| {
                answer::message(queue, &fault.answer());
            });
        }
        if is_over {
            // A call may still hold its batch, on a thread that it blocks.
            self.batches.end();
        }
        // Who does not read has had its time as well.
        match self.desk.out.poll_flush(cx) {
            Poll::Pending if !is_over => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

/// Answers a line, or lets it wait where there is no room for another request.
fn enter(
    desk: &mut Desk,
    held: &mut Held,
    line: &[u8],
    batch: Option<&Arc<Together>>,
) -> Result<Option<ClientJsonRpcMessage>, Fault> {
    match !desk.open.has_room() && held.take(line, batch, &desk.open)? {
        true => Ok(None),
        false => desk.take(line, batch),
    }
}

/// The peer as rmcp has it: without what was answered already.
pub(super) struct Behind {
    passed: mpsc::Receiver<ClientJsonRpcMessage>,
    out: Arc<Out>,
    open: Arc<Open>,
    opened: Arc<Opened>,
    /// The front, which ends with this.
    _reading: JoinSet<()>,
}

impl Transport<RoleServer> for Behind {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let JsonRpcMessage::Response(response) = &message
            && let ServerResult::InitializeResult(hello) = &response.result
            && batch::are_of(&hello.protocol_version)
        {
            self.opened.with_batches.store(true, Ordering::Relaxed);
        }
        let (out, open) = (Arc::clone(&self.out), Arc::clone(&self.open));
        async move {
            let answered = match &message {
                JsonRpcMessage::Response(response) => Some(written(&response.id)),
                JsonRpcMessage::Error(error) => error.id.as_ref().map(written),
                _ => None,
            };
            let batch = answered.as_ref().and_then(|id| open.joined(id));
            say(&out, batch.as_deref(), |queue| answer::message(queue, &message));
            drop(batch);
            let sent = poll_fn(|cx| out.poll_flush(cx)).await;
            if let Some(id) = answered {
                open.end(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.passed.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.open.part();
        poll_fn(|cx| self.out.poll_shutdown(cx)).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex, empty};

    use super::*;
    use crate::registry::Registry;

    // A call that blocks its thread cannot be made to end, and the answers of those that came
    // with it do not wait for it.
    #[tokio::test(start_paused = true)]
    async fn a_batch_leaves_without_the_call_that_blocks_its_thread() {
        let (ours, mut theirs) = duplex(1024);
        let pipeline = Pipeline::new(Registry::default());
        let mut front = Front::new(empty(), Out::new(ours), pipeline, Arc::default());
        let two =
            br#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#;
        front.batches.take(two, &front.desk.out).ok().unwrap();
        let (_, answered) = front.batches.next().unwrap();
        say(&front.desk.out, Some(&answered), |queue| answer::whole(queue, "1", "{}"));
        drop(answered);
        let (_, blocked) = front.batches.next().unwrap();
        front.desk.running.spawn(std::future::pending());

        let begun = tokio::time::Instant::now();
        let passed = poll_fn(|cx| front.poll_receive(cx)).await;
        assert!(passed.is_none() && begun.elapsed() == PATIENCE);
        drop((front, blocked));
        let mut heard = String::new();
        theirs.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n");
    }
}
