//! Newline-delimited JSON over two streams, with a limit for each line.
//!
//! A message that is too long ends the connection, and so do too many open requests of the server
//! or too many messages in one line; callers get the reason. A line that cannot be parsed is
//! skipped, unless it is a response: see [`unread`](super::unread).

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use futures_util::StreamExt as _;
use memchr::memchr;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, Empty};
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder, FramedRead};

use super::super::super::batch::{self, List};
use super::super::remote::RemoteError;
use super::{MAX_MESSAGE, unread};

/// The limit that a server exceeded first, if any.
#[derive(Clone, Debug, Default)]
pub(super) struct Overflow(Arc<OnceLock<String>>);

impl Overflow {
    /// Records a violation, unless there is one already.
    pub(super) fn note(&self, what: fmt::Arguments<'_>) {
        self.0.get_or_init(|| format!("the server sent {what}"));
    }

    /// Returns the error for callers.
    pub(super) fn error(&self) -> Option<RemoteError> {
        self.0.get().map(RemoteError::protocol)
    }
}

/// A transport over two streams, one message a line. rmcp writes; reading is done here.
pub(super) struct Lines<R, W: AsyncWrite> {
    read: FramedRead<R, Messages>,
    write: AsyncRwTransport<RoleClient, Empty, W>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(read: R, write: W, overflow: Overflow) -> Self {
        let read = FramedRead::new(read, Messages { overflow, seen: 0, more: VecDeque::new() });
        Self { read, write: AsyncRwTransport::new_client(tokio::io::empty(), write) }
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.write.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.read.next().await?.ok()
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.close().await
    }
}

/// Decodes messages; fails on one that is too long.
struct Messages {
    overflow: Overflow,
    /// The prefix of the buffer that has no line end.
    seen: usize,
    /// Further messages of the last line, which was a batch.
    more: VecDeque<RxJsonRpcMessage<RoleClient>>,
}

impl Messages {
    /// Returns the first message of a line.
    fn first(&mut self, line: &[u8]) -> io::Result<Option<RxJsonRpcMessage<RoleClient>>> {
        let line = unread::without_mark(line);
        if !batch::is_one(line) {
            return Ok(unread::read(line).ok());
        }
        let Ok(List { messages, is_longer }) = serde_json::from_slice(line) else {
            return Ok(None);
        };
        if is_longer {
            self.overflow.note(format_args!("more than {} messages at once", batch::MOST));
            return Err(io::ErrorKind::InvalidData.into());
        }
        let messages = messages.iter().map(|one| unread::read(one.get().as_bytes()));
        self.more = messages.filter_map(Result::ok).collect();
        Ok(self.more.pop_front())
    }
}

impl Decoder for Messages {
    type Item = RxJsonRpcMessage<RoleClient>;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        if let Some(message) = self.more.pop_front() {
            return Ok(Some(message));
        }
        loop {
            let end = memchr(b'\n', &bytes[self.seen..]).map(|more| self.seen + more);
            if end.unwrap_or(bytes.len()) > MAX_MESSAGE {
                self.overflow.note(format_args!("a message of more than {MAX_MESSAGE} bytes"));
                return Err(io::ErrorKind::InvalidData.into());
            }
            let Some(end) = end else {
                self.seen = bytes.len();
                return Ok(None);
            };
            self.seen = 0;
            if let Some(message) = self.first(&bytes.split_to(end + 1))? {
                return Ok(Some(message));
            }
        }
    }
}
