//! Writes messages to the client, one per line, from the fast path and from rmcp.
//!
//! Lines are queued and flushed in one write. Several tasks may wait for the flush; the first one
//! writes for all.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};

use tokio::io::AsyncWrite;

/// The way to the peer.
pub(super) struct LineWriter {
    state: Mutex<State>,
    wakers: Arc<SharedWakers>,
    /// Wakes everybody who waits.
    waker: Waker,
}

struct State {
    writer: Pin<Box<dyn AsyncWrite + Send>>,
    queue: Vec<u8>,
    /// How much of the queue has left.
    written: usize,
}

/// A writer keeps one waker, and many may wait for it.
#[derive(Default)]
struct SharedWakers(Mutex<Vec<Waker>>);

impl SharedWakers {
    fn add(&self, waker: &Waker) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.iter().any(|known| known.will_wake(waker)) {
            all.push(waker.clone());
        }
    }
}

impl Wake for SharedWakers {
    fn wake(self: Arc<Self>) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().for_each(Waker::wake);
    }
}

impl LineWriter {
    pub(super) fn new(writer: impl AsyncWrite + Send + 'static) -> Arc<Self> {
        let waiting = Arc::<SharedWakers>::default();
        let waker = Arc::clone(&waiting).into();
        let state = State { writer: Box::pin(writer), queue: Vec::new(), written: 0 };
        Arc::new(Self { state: Mutex::new(state), wakers: waiting, waker })
    }

    /// Puts a whole message into the queue.
    pub(super) fn enqueue(&self, message: impl FnOnce(&mut Vec<u8>)) {
        message(&mut self.lock_state().queue);
    }

    /// How much waits to leave.
    pub(super) fn unsent_bytes(&self) -> usize {
        let state = self.lock_state();
        state.queue.len() - state.written
    }

    /// Waits until all of the queue has left.
    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.lock_state();
        if state.queue.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut shared = Context::from_waker(&self.waker);
        if let Poll::Ready(flushed) = state.poll_flush(&mut shared) {
            return Poll::Ready(flushed);
        }
        // The writer may have become ready before the waker was registered.
        self.wakers.add(cx.waker());
        state.poll_flush(&mut shared)
    }

    pub(super) fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        self.lock_state().writer.as_mut().poll_shutdown(cx)
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.queue.len() {
            let left = &self.queue[self.written..];
            match ready!(self.writer.as_mut().poll_write(cx, left)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => self.written += written,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.queue.clear();
        self.queue.shrink_to(MAX_KEPT_BYTES);
        self.written = 0;
        self.writer.as_mut().poll_flush(cx)
    }
}

/// How much room is kept for later messages: for a page of a list, since the system takes much
/// longer to find new room for one than it takes to be copied.
const MAX_KEPT_BYTES: usize = 1024 * 1024;
