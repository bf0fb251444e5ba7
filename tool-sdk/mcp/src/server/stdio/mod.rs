//! Serves one client over two streams, one message per line.
//!
//! One loop reads and dispatches messages. Requests that may wait run in tasks of their own; all
//! responses go through one [`LineWriter`].

mod line_reader;
mod line_writer;
mod streams;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use self::line_reader::{InputLine, LineReader};
pub(super) use self::line_writer::LineSender;
use self::line_writer::LineWriter;
pub use self::streams::open_streams;
use super::Server;
use super::batch::Batch;
use super::connection::{ClientTransport, Connection};
use super::dispatch::DispatchedRequest;
use super::message::{ClientMessage, MessageError, parse_message};
use super::message_sink::MessageSink;
use super::response::JsonRpcResponse;
use crate::json_rpc::is_batch;

/// How long running requests may take after the client has disconnected.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
/// How long requests may take to end after that, when they are cancelled, and how long the client
/// may take to read the last responses.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves a client until it disconnects.
pub(super) async fn serve_streams(
    server: Arc<Server>,
    read: impl AsyncRead + Unpin,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let (writer, sender, finished) = LineWriter::new();
    let shutdown = server.shutdown.clone();
    let mut writing = tokio::spawn(writer.run(write));
    let sink = MessageSink::Lines(sender.clone());
    let connection = Connection::new(server, None, ClientTransport::Stdio, sink.clone())?;
    let serving =
        StreamService { connection: Arc::new(connection), sink, requests: TaskTracker::new() };
    let served = tokio::select! {
        served = serving.read_messages(LineReader::new(read), &sender) => served,
        // The client does not read any more.
        () = sender.closed() => Ok(()),
        () = shutdown.cancelled() => Ok(()),
    };
    serving.close().await;
    finished.cancel();
    // A client that does not read loses what is unsent.
    if timeout(CLOSE_TIMEOUT, &mut writing).await.is_err() {
        writing.abort();
    }
    served
}

struct StreamService {
    connection: Arc<Connection>,
    sink: MessageSink,
    /// The requests that run. They end when the connection is closed.
    requests: TaskTracker,
}

impl StreamService {
    /// Reads messages until the client closes its side.
    async fn read_messages(
        &self,
        mut lines: LineReader<impl AsyncRead + Unpin>,
        output: &LineSender,
    ) -> io::Result<()> {
        loop {
            // A client that does not read its responses is not read either.
            output.ready().await;
            match lines.next_line().await {
                Ok(Some(InputLine::Whole(line))) => self.handle_line(line).await?,
                Ok(Some(InputLine::TooLong { front })) => {
                    self.respond(MessageError::too_long(front)).await;
                }
                // A broken stream is a closed one.
                Ok(None) | Err(_) => return Ok(()),
            }
        }
    }

    async fn handle_line(&self, line: &[u8]) -> io::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        if is_batch(line) {
            match Batch::dispatch(&self.connection, line, &self.sink, None) {
                Ok(batch) => self.spawn_batch(batch),
                Err(refused) => self.respond(refused).await,
            }
            return Ok(());
        }
        match parse_message(line) {
            Ok(ClientMessage::Request(request)) => {
                match self.connection.begin_request(request, self.sink.clone(), None) {
                    DispatchedRequest::Answered(response) => self.respond(response).await,
                    DispatchedRequest::Running { request, .. } => {
                        let sink = self.sink.clone();
                        self.requests.spawn(async move {
                            if let Some(response) = request.await {
                                // The client may have disconnected.
                                let _ = sink.send(response.text).await;
                            }
                        });
                    }
                }
            }
            Ok(ClientMessage::Response { .. }) if !self.connection.has_handshake() => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, NO_HANDSHAKE));
            }
            Ok(other) => self.connection.handle_other(other),
            Err(refused) => self.respond(refused).await,
        }
        Ok(())
    }

    fn spawn_batch(&self, mut batch: Batch) {
        let sink = self.sink.clone();
        self.requests.spawn(async move {
            batch.start();
            batch.finish().await;
            if let Some(responses) = batch.take_array() {
                let _ = sink.send(responses).await;
            }
        });
    }

    async fn respond(&self, response: impl Into<JsonRpcResponse>) {
        // The client may have disconnected.
        let _ = self.sink.send(response.into().text).await;
    }

    /// Waits for the requests that run, and cancels them after the grace period.
    async fn close(&self) {
        self.connection.disconnect();
        self.requests.close();
        let is_finished = timeout(GRACE_PERIOD, self.requests.wait()).await.is_ok();
        self.connection.close();
        if !is_finished {
            // A tool that blocks its thread does not end.
            let _ = timeout(CLOSE_TIMEOUT, self.requests.wait()).await;
        }
    }
}

const NO_HANDSHAKE: &str =
    "the client must begin with `initialize`, or with a request that states its protocol version";
