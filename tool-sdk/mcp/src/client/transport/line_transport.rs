//! Newline-delimited JSON over two streams, with a limit for each line.
//!
//! A message that is too long ends the connection, and so do too many open requests of the server
//! or too many messages in one line; callers get the reason. A line that cannot be parsed is
//! skipped, unless it is a response: see [`decode_fallback`](super::decode_fallback).

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

use super::{MAX_MESSAGE_BYTES, decode_fallback};
use crate::client::remote::RemoteError;
use crate::json_rpc;
use crate::json_rpc::BatchMessages;

/// The limit that a server exceeded first, if any.
#[derive(Clone, Debug, Default)]
pub(super) struct ProtocolViolation(Arc<OnceLock<String>>);

impl ProtocolViolation {
    /// Records a violation, unless there is one already.
    pub(super) fn record(&self, what: fmt::Arguments<'_>) {
        self.0.get_or_init(|| format!("the server sent {what}"));
    }

    /// Returns the error for callers.
    pub(super) fn to_error(&self) -> Option<RemoteError> {
        self.0.get().map(RemoteError::protocol)
    }
}

/// A transport over two streams, one message a line. rmcp writes; reading is done here.
pub(super) struct LineTransport<R, W: AsyncWrite> {
    read: FramedRead<R, MessageDecoder>,
    write: AsyncRwTransport<RoleClient, Empty, W>,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(read: R, write: W, violation: ProtocolViolation) -> Self {
        let read = FramedRead::new(
            read,
            MessageDecoder { violation, scanned: 0, queued: VecDeque::new() },
        );
        Self { read, write: AsyncRwTransport::new_client(tokio::io::empty(), write) }
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
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
struct MessageDecoder {
    violation: ProtocolViolation,
    /// The prefix of the buffer that has no line end.
    scanned: usize,
    /// Further messages of the last line, which was a batch.
    queued: VecDeque<RxJsonRpcMessage<RoleClient>>,
}

impl MessageDecoder {
    /// Returns the first message of a line.
    fn decode_line(&mut self, line: &[u8]) -> io::Result<Option<RxJsonRpcMessage<RoleClient>>> {
        let line = decode_fallback::strip_byte_order_mark(line);
        if !json_rpc::is_batch(line) {
            return Ok(decode_fallback::decode_message(line).ok());
        }
        let Ok(BatchMessages { messages, is_longer }) = serde_json::from_slice(line) else {
            return Ok(None);
        };
        if is_longer {
            self.violation.record(format_args!(
                "more than {} messages at once",
                json_rpc::MAX_BATCH_MESSAGES
            ));
            return Err(io::ErrorKind::InvalidData.into());
        }
        let messages =
            messages.iter().map(|one| decode_fallback::decode_message(one.get().as_bytes()));
        self.queued = messages.filter_map(Result::ok).collect();
        Ok(self.queued.pop_front())
    }
}

impl Decoder for MessageDecoder {
    type Item = RxJsonRpcMessage<RoleClient>;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        if let Some(message) = self.queued.pop_front() {
            return Ok(Some(message));
        }
        loop {
            let end = memchr(b'\n', &bytes[self.scanned..]).map(|more| self.scanned + more);
            if end.unwrap_or(bytes.len()) > MAX_MESSAGE_BYTES {
                self.violation
                    .record(format_args!("a message of more than {MAX_MESSAGE_BYTES} bytes"));
                return Err(io::ErrorKind::InvalidData.into());
            }
            let Some(end) = end else {
                self.scanned = bytes.len();
                return Ok(None);
            };
            self.scanned = 0;
            if let Some(message) = self.decode_line(&bytes.split_to(end + 1))? {
                return Ok(Some(message));
            }
        }
    }
}
