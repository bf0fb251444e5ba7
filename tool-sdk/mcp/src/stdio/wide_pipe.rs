//! Enlarges the buffer of the output pipe for long messages.
//!
//! A message longer than the pipe buffer is written in parts, with a context switch for each. Large
//! buffers count towards a limit per user, so the pipe is only enlarged when such a message is
//! written.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::net::unix::pipe::Sender;

/// The default size of a pipe buffer on Linux.
const DEFAULT_PIPE_BYTES: usize = 64 * 1024;
/// The maximum size for unprivileged users (`/proc/sys/fs/pipe-max-size`).
const MAX_PIPE_BYTES: usize = 1024 * 1024;

/// The write end of a pipe.
pub(super) struct WidePipe {
    pipe: Sender,
    is_wide: bool,
}

impl WidePipe {
    pub(super) fn new(pipe: Sender) -> Self {
        Self { pipe, is_wide: false }
    }
}

impl AsyncWrite for WidePipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.len() > DEFAULT_PIPE_BYTES && !self.is_wide {
            self.is_wide = true;
            // If the pipe cannot be enlarged, the message is written in parts.
            let _ = rustix::pipe::fcntl_setpipe_size(&self.pipe, MAX_PIPE_BYTES);
        }
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::pipe::fcntl_getpipe_size;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::unix::pipe::pipe;

    use super::*;

    #[tokio::test]
    async fn a_pipe_is_widened_for_what_is_longer_than_it() {
        let (sender, mut reader) = pipe().unwrap();
        let mut wide = WidePipe::new(sender);
        wide.write_all(&[b'x'; DEFAULT_PIPE_BYTES]).await.unwrap();
        assert_eq!(fcntl_getpipe_size(wide.pipe.as_fd()).unwrap(), DEFAULT_PIPE_BYTES);
        reader.read_exact(&mut [0; DEFAULT_PIPE_BYTES]).await.unwrap();
        let sent = wide.write(&vec![b'x'; DEFAULT_PIPE_BYTES + 1]).await.unwrap();
        // The kernel refuses a larger buffer once the user's limit is reached.
        let size = fcntl_getpipe_size(wide.pipe.as_fd()).unwrap();
        assert_eq!(sent, size.min(DEFAULT_PIPE_BYTES + 1));
    }
}
