//! The fast path over two streams: answers calls, lists and pings of a legacy session without rmcp.
//!
//! ```text
//! client ─▶ FastPathReader ─▶ fast_request ─▶ pipeline ─▶ response_writer ─▶ line_writer ─▶ client
//!              └────▶ message ──▶ FastTransport ─▶ rmcp ──────────────────────▶┘
//! ```
//!
//! A [`FastPathReader`] reads from the client in a task of its own. It answers the lines whose
//! every key it knows, and flushes all responses to one read with one write. It validates every
//! other line and passes it to rmcp through the [`FastTransport`]. On a single-threaded runtime a
//! call is polled once in place, and spawned only if it has to wait. On a multi-threaded runtime it
//! is spawned at once, so that a tool that blocks its thread does not delay other requests.
//!
//! A JSON-RPC batch is split first, and its responses are sent in one line, see [`json_rpc_batch`].
//! Requests over HTTP use a [`SessionResponder`].
//!
//! **Invariant:** the responses equal those of rmcp, and nothing is answered here before rmcp has
//! initialized the session.

mod call_buffers;
mod call_parser;
mod dispatcher;
mod fast_request;
mod in_flight;
mod json_rpc_batch;
mod line_reader;
mod line_writer;
mod log_forwarder;
mod request_queue;
mod response_writer;
mod session_responder;

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
use tool_sdk_core::{Pipeline, Session};

use self::dispatcher::RequestDispatcher;
pub(super) use self::in_flight::{InFlightGuard, InFlightRequests, id_json};
use self::json_rpc_batch::{BatchQueue, JsonRpcBatch, write_response};
use self::line_reader::{InputLine, LineReader};
use self::line_writer::LineWriter;
use self::log_forwarder::LogForwarder;
pub(super) use self::log_forwarder::LogThreshold;
use self::request_queue::RequestQueue;
pub(super) use self::session_responder::{
    FastResponse, HandedOffCall, SessionResponder, SpawnedCall,
};
use super::json_rpc_batch::{is_batch, unsupported_batch, version_has_batches};
use super::listing::ToolListing;
use super::message::MessageError;
use super::result::ContentSupport;
use super::ui::UiSupport;

/// How long running calls may take after the client has disconnected.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
/// How many unsent bytes may be queued before reading pauses.
const MAX_UNSENT_BYTES: usize = 16 * 1024 * 1024;

/// The switch that enables the fast path; rmcp's handler opens it when the session is initialized.
pub(super) struct FastPathGate {
    pipeline: Pipeline,
    out: Arc<LineWriter>,
    level: Arc<LogThreshold>,
    /// Triggered when the peer says nothing any more.
    disconnected: CancellationToken,
    /// Triggered when calls have had their time after that.
    grace_expired: CancellationToken,
    session: OnceLock<Arc<OpenSession>>,
    /// The peer may send several messages at once.
    allows_batches: AtomicBool,
}

/// What calls of an open session are made with.
struct OpenSession {
    pipeline: Pipeline,
    session: Session,
    ui: UiSupport,
    blocks: ContentSupport,
}

impl FastPathGate {
    /// What the connection has as well.
    pub(super) fn connection_state(
        &self,
    ) -> (Arc<LogThreshold>, CancellationToken, CancellationToken) {
        (Arc::clone(&self.level), self.disconnected.clone(), self.grace_expired.clone())
    }

    /// From now on calls are answered here.
    pub(super) fn open_session(&self, session: Session, ui: UiSupport, blocks: ContentSupport) {
        let heard = LogForwarder { out: Arc::clone(&self.out), level: Arc::clone(&self.level) };
        let session = session.with_listener(Arc::new(heard));
        let pipeline = self.pipeline.clone();
        let _ = self.session.set(Arc::new(OpenSession { pipeline, session, ui, blocks }));
    }
}

/// Puts a front before rmcp: gives what rmcp talks to, and what opens it.
pub(super) fn wrap_streams<R, W>(
    read: R,
    write: W,
    pipeline: Pipeline,
    listing: Arc<ToolListing>,
) -> (FastTransport, Arc<FastPathGate>)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + 'static,
{
    let front = FastPathReader::new(read, LineWriter::new(write), pipeline, listing);
    let (out, open) =
        (Arc::clone(&front.dispatcher.writer), Arc::clone(&front.dispatcher.in_flight));
    let opened = Arc::clone(&front.dispatcher.gate);
    let (pass, passed) = mpsc::channel(1);
    let mut reading = JoinSet::new();
    reading.spawn(front.read(pass));
    (
        FastTransport {
            messages: passed,
            writer: out,
            in_flight: open,
            gate: Arc::clone(&opened),
            _reading: reading,
        },
        opened,
    )
}

/// Who reads what a peer says.
struct FastPathReader<R> {
    read: R,
    lines: LineReader,
    batches: BatchQueue,
    queue: RequestQueue,
    dispatcher: RequestDispatcher,
    /// The peer has hung up, and calls have until then.
    grace_timer: Option<Pin<Box<Sleep>>>,
}

impl<R: AsyncRead + Unpin> FastPathReader<R> {
    fn new(read: R, out: Arc<LineWriter>, pipeline: Pipeline, listing: Arc<ToolListing>) -> Self {
        let opened = Arc::new(FastPathGate {
            pipeline,
            out: Arc::clone(&out),
            level: Arc::default(),
            disconnected: CancellationToken::new(),
            grace_expired: CancellationToken::new(),
            session: OnceLock::new(),
            allows_batches: AtomicBool::new(false),
        });
        let dispatcher = RequestDispatcher {
            listing,
            gate: opened,
            writer: out,
            running: JoinSet::new(),
            in_flight: Arc::default(),
            spare_buffers: None,
            is_initialized: false,
            is_single_threaded: Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread,
        };
        let (lines, batches, queue) =
            (LineReader::default(), BatchQueue::default(), RequestQueue::default());
        Self { read, lines, batches, queue, dispatcher, grace_timer: None }
    }

    /// Reads until the client disconnects or the receiver of forwarded messages is dropped.
    async fn read(mut self, pass: mpsc::Sender<ClientJsonRpcMessage>) {
        while let Some(message) = poll_fn(|cx| self.poll_receive(cx)).await {
            if pass.send(message).await.is_err() {
                return;
            }
        }
    }

    /// Answers lines until one is for rmcp, or none is left.
    fn next_message(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let mut batch = None;
            let passed =
                if let Some((line, among)) = self.queue.pop_ready(&self.dispatcher.in_flight) {
                    batch = among;
                    self.dispatcher.dispatch(&line, batch.as_ref())
                } else if let Some((line, among)) = self.batches.next_message() {
                    let among = batch.insert(among);
                    let is_fine = among.check_size(&line);
                    is_fine.and_then(|()| {
                        dispatch_or_queue(&mut self.dispatcher, &mut self.queue, &line, Some(among))
                    })
                } else {
                    match self.lines.next_line()? {
                        InputLine::Whole(line) if is_batch(line) => {
                            match self.dispatcher.gate.allows_batches.load(Ordering::Relaxed) {
                                true => self
                                    .batches
                                    .enqueue_batch(line, &self.dispatcher.writer)
                                    .map(|()| None),
                                false => Err(unsupported_batch(line)),
                            }
                        }
                        InputLine::Whole(line) => {
                            dispatch_or_queue(&mut self.dispatcher, &mut self.queue, line, None)
                        }
                        InputLine::TooLong => Err(MessageError::too_long()),
                    }
                };
            match passed {
                Ok(None) => {}
                Ok(message) => return message,
                Err(fault) => write_response(&self.dispatcher.writer, batch.as_deref(), |queue| {
                    response_writer::message(queue, &fault.to_response());
                }),
            }
        }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<ClientJsonRpcMessage>> {
        loop {
            let message = self.next_message();
            let flushed = self.dispatcher.writer.poll_flush(cx);
            if message.is_some() {
                return Poll::Ready(message);
            }
            // A client that does not read its responses may still send more, within limits.
            if flushed.is_pending() && self.dispatcher.writer.unsent_bytes() > MAX_UNSENT_BYTES {
                return Poll::Pending;
            }
            if !self.queue.is_empty() && self.dispatcher.in_flight.poll_capacity(cx).is_ready() {
                continue;
            }
            if self.grace_timer.is_some()
                || ready!(self.lines.poll_read_more(&mut self.read, cx)).is_break()
            {
                ready!(self.poll_end(cx));
                return Poll::Ready(None);
            }
            self.dispatcher.reap_finished(cx);
        }
    }

    /// Waits until the calls that run have ended, and their answers have left.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Open questions to the client get no answer any more.
        self.dispatcher.gate.disconnected.cancel();
        let ending =
            self.grace_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(GRACE_PERIOD)));
        self.dispatcher.reap_finished(cx);
        let is_over = ending.as_mut().poll(cx).is_ready();
        let is_done = self.dispatcher.running.is_empty() && self.queue.is_empty();
        if !is_done && !is_over {
            return Poll::Pending;
        }
        if is_over {
            self.dispatcher.gate.grace_expired.cancel();
        }
        self.dispatcher.running.abort_all();
        for (fault, batch) in self.queue.refuse_all() {
            write_response(&self.dispatcher.writer, batch.as_deref(), |queue| {
                response_writer::message(queue, &fault.to_response());
            });
        }
        if is_over {
            // A call may still hold its batch, on a thread that it blocks.
            self.batches.send_all();
        }
        // A client that does not read is dropped after the grace period.
        match self.dispatcher.writer.poll_flush(cx) {
            Poll::Pending if !is_over => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

/// Answers a line, or lets it wait where there is no room for another request.
fn dispatch_or_queue(
    desk: &mut RequestDispatcher,
    held: &mut RequestQueue,
    line: &[u8],
    batch: Option<&Arc<JsonRpcBatch>>,
) -> Result<Option<ClientJsonRpcMessage>, MessageError> {
    match !desk.in_flight.has_capacity() && held.enqueue(line, batch, &desk.in_flight)? {
        true => Ok(None),
        false => desk.dispatch(line, batch),
    }
}

/// The peer as rmcp has it: without what was answered already.
pub(super) struct FastTransport {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    writer: Arc<LineWriter>,
    in_flight: Arc<InFlightRequests>,
    gate: Arc<FastPathGate>,
    /// The front, which ends with this.
    _reading: JoinSet<()>,
}

impl Transport<RoleServer> for FastTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let JsonRpcMessage::Response(response) = &message
            && let ServerResult::InitializeResult(hello) = &response.result
            && version_has_batches(&hello.protocol_version)
        {
            self.gate.allows_batches.store(true, Ordering::Relaxed);
        }
        let (out, open) = (Arc::clone(&self.writer), Arc::clone(&self.in_flight));
        async move {
            let answered = match &message {
                JsonRpcMessage::Response(response) => Some(id_json(&response.id)),
                JsonRpcMessage::Error(error) => error.id.as_ref().map(id_json),
                _ => None,
            };
            let batch = answered.as_ref().and_then(|id| open.take_batch(id));
            write_response(&out, batch.as_deref(), |queue| {
                response_writer::message(queue, &message)
            });
            drop(batch);
            let sent = poll_fn(|cx| out.poll_flush(cx)).await;
            if let Some(id) = answered {
                open.remove(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.in_flight.release_batches();
        poll_fn(|cx| self.writer.poll_shutdown(cx)).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex, empty};
    use tool_sdk_core::Registry;

    use super::*;

    // A call that blocks its thread cannot be made to end, and the answers of those that came
    // with it do not wait for it.
    #[tokio::test(start_paused = true)]
    async fn a_batch_leaves_without_the_call_that_blocks_its_thread() {
        let (ours, mut theirs) = duplex(1024);
        let pipeline = Pipeline::new(Registry::default());
        let mut front =
            FastPathReader::new(empty(), LineWriter::new(ours), pipeline, Arc::default());
        let two =
            br#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#;
        front.batches.enqueue_batch(two, &front.dispatcher.writer).ok().unwrap();
        let (_, answered) = front.batches.next_message().unwrap();
        write_response(&front.dispatcher.writer, Some(&answered), |queue| {
            response_writer::write_result(queue, "1", "{}")
        });
        drop(answered);
        let (_, blocked) = front.batches.next_message().unwrap();
        front.dispatcher.running.spawn(std::future::pending());

        let begun = tokio::time::Instant::now();
        let passed = poll_fn(|cx| front.poll_receive(cx)).await;
        assert!(passed.is_none() && begun.elapsed() == GRACE_PERIOD);
        drop((front, blocked));
        let mut heard = String::new();
        theirs.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n");
    }
}
