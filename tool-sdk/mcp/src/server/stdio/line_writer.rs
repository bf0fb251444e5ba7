//! Writes messages to the client, one per line.
//!
//! All messages that are queued are written at once. Senders wait while too much is unsent.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, TryAcquireError, oneshot};
use tokio_util::sync::CancellationToken;

use crate::server::message_sink::ClientDisconnected;

/// How many unsent bytes may be queued before senders wait.
const MAX_UNSENT_BYTES: usize = 16 * 1024 * 1024;
/// How many messages are written at once.
const MAX_MESSAGES: usize = 256;
/// How much of the buffer is kept for later messages.
const MAX_KEPT_BYTES: usize = 1024 * 1024;

/// A message, which is written in one line.
struct OutgoingLine {
    message: Vec<u8>,
    /// Tells the sender that the message was written.
    written: Option<oneshot::Sender<()>>,
}

/// The sender of lines. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LineSender {
    lines: UnboundedSender<OutgoingLine>,
    /// A permit for each byte that may be queued.
    capacity: Arc<Semaphore>,
}

impl LineSender {
    /// Queues a message; waits while too much is unsent.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), ClientDisconnected> {
        self.enqueue(message, None).await
    }

    /// Waits until a message is written, so that later ones are not part of the same write.
    pub(crate) async fn send_alone(&self, message: Vec<u8>) -> Result<(), ClientDisconnected> {
        let (written, is_written) = oneshot::channel();
        self.enqueue(message, Some(written)).await?;
        is_written.await.map_err(|_| ClientDisconnected)
    }

    async fn enqueue(
        &self,
        message: Vec<u8>,
        written: Option<oneshot::Sender<()>>,
    ) -> Result<(), ClientDisconnected> {
        let permits = permits(&message);
        match self.capacity.try_acquire_many(permits) {
            Ok(acquired) => acquired.forget(),
            Err(TryAcquireError::Closed) => return Err(ClientDisconnected),
            Err(TryAcquireError::NoPermits) => {
                self.capacity.acquire_many(permits).await.map_err(|_| ClientDisconnected)?.forget();
            }
        }
        self.lines.send(OutgoingLine { message, written }).map_err(|_| ClientDisconnected)
    }

    /// Waits until a message can be queued.
    pub(super) async fn ready(&self) {
        // A closed writer is noticed by the sender of the next message.
        let _ = self.capacity.acquire().await;
    }

    /// Waits until the client does not read any more.
    pub(super) async fn closed(&self) {
        self.lines.closed().await;
    }
}

/// Returns the number of permits for a message. One that is larger than the capacity waits until
/// nothing else is unsent.
fn permits(message: &[u8]) -> u32 {
    u32::try_from(message.len().min(MAX_UNSENT_BYTES)).unwrap_or(u32::MAX)
}

/// The queue of lines, and its end.
pub(super) struct LineWriter {
    lines: UnboundedReceiver<OutgoingLine>,
    capacity: Arc<Semaphore>,
    /// Triggered when no more messages are sent.
    finished: CancellationToken,
}

impl LineWriter {
    /// Returns a writer, its sender, and the token that ends it once all messages are written.
    pub(super) fn new() -> (Self, LineSender, CancellationToken) {
        let (sender, lines) = unbounded_channel();
        let capacity = Arc::new(Semaphore::new(MAX_UNSENT_BYTES));
        let finished = CancellationToken::new();
        let sender = LineSender { lines: sender, capacity: Arc::clone(&capacity) };
        (Self { lines, capacity, finished: finished.clone() }, sender, finished)
    }

    /// Writes messages until it is told to finish. Fails when the client does not read any more.
    pub(super) async fn run(mut self, mut write: impl AsyncWrite + Unpin) -> io::Result<()> {
        let written = self.write_messages(&mut write).await;
        self.capacity.close();
        written?;
        write.shutdown().await
    }

    async fn write_messages(&mut self, write: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let (mut batch, mut buffer) = (Vec::new(), Vec::new());
        loop {
            tokio::select! {
                biased;
                count = self.lines.recv_many(&mut batch, MAX_MESSAGES) => {
                    if count == 0 {
                        return Ok(());
                    }
                }
                () = self.finished.cancelled() => {
                    self.lines.close();
                    continue;
                }
            }
            let mut released = 0;
            for line in &batch {
                released += permits(&line.message) as usize;
                buffer.extend_from_slice(&line.message);
                buffer.push(b'\n');
            }
            write.write_all(&buffer).await?;
            write.flush().await?;
            self.capacity.add_permits(released);
            buffer.clear();
            buffer.shrink_to(MAX_KEPT_BYTES);
            for written in batch.drain(..).filter_map(|line| line.written) {
                // The sender may have stopped waiting.
                let _ = written.send(());
            }
        }
    }
}
