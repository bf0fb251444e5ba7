//! Writes messages to the client, one per line.
//!
//! All messages that are queued are written at once. Senders wait while too much is unsent.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, TryAcquireError};
use tokio_util::sync::CancellationToken;

use crate::server::message_sink::Disconnected;

/// How many unsent bytes may be queued before senders wait.
const MAX_UNSENT_BYTES: usize = 16 * 1024 * 1024;
/// How many messages are written at once.
const MAX_MESSAGES: usize = 256;
/// How much of the buffer is kept for later messages.
const MAX_KEPT_BYTES: usize = 1024 * 1024;

/// The sender of lines. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LineSender {
    messages: UnboundedSender<Vec<u8>>,
    /// A permit for each byte that may be queued.
    capacity: Arc<Semaphore>,
}

impl LineSender {
    /// Queues a message; waits while too much is unsent.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), Disconnected> {
        let permits = permits(&message);
        match self.capacity.try_acquire_many(permits) {
            Ok(acquired) => acquired.forget(),
            Err(TryAcquireError::Closed) => return Err(Disconnected),
            Err(TryAcquireError::NoPermits) => {
                self.capacity.acquire_many(permits).await.map_err(|_| Disconnected)?.forget();
            }
        }
        self.messages.send(message).map_err(|_| Disconnected)
    }

    /// Waits until the client does not read any more.
    pub(super) async fn closed(&self) {
        self.messages.closed().await;
    }
}

/// Returns the number of permits for a message. One that is larger than the capacity waits until
/// nothing else is unsent.
fn permits(message: &[u8]) -> u32 {
    u32::try_from(message.len().min(MAX_UNSENT_BYTES)).unwrap_or(u32::MAX)
}

/// The queue of lines, and its end.
pub(super) struct LineWriter {
    messages: UnboundedReceiver<Vec<u8>>,
    capacity: Arc<Semaphore>,
    /// Triggered when no more messages are sent.
    finished: CancellationToken,
}

impl LineWriter {
    /// Returns a writer, its sender, and the token that ends it once all messages are written.
    pub(super) fn new() -> (Self, LineSender, CancellationToken) {
        let (sender, messages) = unbounded_channel();
        let capacity = Arc::new(Semaphore::new(MAX_UNSENT_BYTES));
        let finished = CancellationToken::new();
        let sender = LineSender { messages: sender, capacity: Arc::clone(&capacity) };
        (Self { messages, capacity, finished: finished.clone() }, sender, finished)
    }

    /// Writes messages until it is told to finish. Fails when the client does not read any more.
    pub(super) async fn run(mut self, mut write: impl AsyncWrite + Unpin) -> io::Result<()> {
        let written = self.write_messages(&mut write).await;
        self.capacity.close();
        written?;
        write.shutdown().await
    }

    async fn write_messages(&mut self, write: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let (mut batch, mut lines) = (Vec::new(), Vec::new());
        loop {
            tokio::select! {
                biased;
                count = self.messages.recv_many(&mut batch, MAX_MESSAGES) => {
                    if count == 0 {
                        return Ok(());
                    }
                }
                () = self.finished.cancelled() => {
                    self.messages.close();
                    continue;
                }
            }
            let mut released = 0;
            for message in batch.drain(..) {
                released += permits(&message) as usize;
                lines.extend_from_slice(&message);
                lines.push(b'\n');
            }
            write.write_all(&lines).await?;
            write.flush().await?;
            self.capacity.add_permits(released);
            lines.clear();
            lines.shrink_to(MAX_KEPT_BYTES);
        }
    }
}
