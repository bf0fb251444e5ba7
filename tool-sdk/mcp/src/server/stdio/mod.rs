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
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::line_reader::{InputLine, LineReader};
pub(super) use self::line_writer::LineSender;
use self::line_writer::LineWriter;
pub(super) use self::streams::open_streams;
use super::Server;
use super::batch::Batch;
use super::connection::{ClientTransport, Connection};
use super::dispatch::Dispatched;
use super::message::{ClientMessage, MessageError, parse_message};
use super::message_sink::MessageSink;
use super::response::Response;
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
    let mut writing = tokio::spawn(writer.run(write));
    let sink = MessageSink::Lines(sender.clone());
    let connection = Connection::new(server, None, ClientTransport::Stdio, sink.clone())?;
    let mut serving =
        StreamService { connection: Arc::new(connection), sink, requests: JoinSet::new() };
    let served = tokio::select! {
        served = serving.read_messages(LineReader::new(read), &sender) => served,
        // The client does not read any more.
        () = sender.closed() => Ok(()),
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
    /// The requests that run. They end with the connection.
    requests: JoinSet<()>,
}

impl StreamService {
    /// Reads messages until the client closes its side.
    async fn read_messages(
        &mut self,
        mut lines: LineReader<impl AsyncRead + Unpin>,
        output: &LineSender,
    ) -> io::Result<()> {
        loop {
            let next_line = async {
                // A client that does not read its responses is not read either.
                output.ready().await;
                lines.next_line().await
            };
            tokio::select! {
                Some(_) = self.requests.join_next() => {}
                line = next_line => match line {
                    Ok(Some(InputLine::Whole(line))) => self.handle_line(line).await?,
                    Ok(Some(InputLine::TooLong { front })) => {
                        let refused = MessageError::too_long(front);
                        self.respond(refused).await;
                    }
                    // A broken stream is a closed one.
                    Ok(None) | Err(_) => return Ok(()),
                },
            }
        }
    }

    async fn handle_line(&mut self, line: &[u8]) -> io::Result<()> {
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
                    Dispatched::Answered(response) => self.respond(response).await,
                    Dispatched::Running { request, .. } => {
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

    fn spawn_batch(&mut self, mut batch: Batch) {
        let sink = self.sink.clone();
        self.requests.spawn(async move {
            batch.start();
            batch.finish().await;
            if let Some(responses) = batch.take_array() {
                let _ = sink.send(responses).await;
            }
        });
    }

    async fn respond(&self, response: impl Into<Response>) {
        // The client may have disconnected.
        let _ = self.sink.send(response.into().text).await;
    }

    /// Waits for the requests that run, cancels them after the grace period, and ends those that
    /// go on nevertheless.
    async fn close(&mut self) {
        self.connection.disconnect();
        let is_finished = timeout(GRACE_PERIOD, self.join_requests()).await.is_ok();
        self.connection.close();
        if !is_finished && timeout(CLOSE_TIMEOUT, self.join_requests()).await.is_err() {
            self.requests.abort_all();
        }
    }

    async fn join_requests(&mut self) {
        while self.requests.join_next().await.is_some() {}
    }
}

const NO_HANDSHAKE: &str =
    "the client must begin with `initialize`, or with a request that states its protocol version";
