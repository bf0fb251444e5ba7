//! Standard input and output as lines, one message each.
//!
//! **Invariant:** a line takes a bounded amount of memory, and bytes that are not text are a message
//! that cannot be parsed.

use std::io;

use futures_util::{Sink, Stream, sink, stream};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};

/// The longest message in bytes: several images as base64.
const MAX_LINE: u64 = 256 * 1024 * 1024;

/// Returns the lines of `input`. The stream ends with an error at a line that is too long.
pub(super) fn read_lines(
    input: impl AsyncRead + Send + Unpin + 'static,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let reader = BufReader::new(input);
    Box::pin(stream::try_unfold(reader, async |mut reader| {
        let mut line = Vec::new();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await?;
        if read as u64 == MAX_LINE {
            return Err(io::Error::other(format!("a message has more than {MAX_LINE} bytes")));
        }
        if read == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        Ok(Some((line.trim_end_matches(['\n', '\r']).to_owned(), reader)))
    }))
}

/// Returns a sink that writes each line at once. When the client reads no more, the sink drops what
/// it gets: the client has ended, and its side of the input ends too.
pub(super) fn write_lines(
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    Box::pin(sink::unfold(output, async |mut output, mut line: String| {
        line.push('\n');
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        match written.await {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Ok(()) | Err(_) => Ok(output),
        }
    }))
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};

    use super::*;

    #[tokio::test]
    async fn each_line_is_a_message() {
        let lines: Vec<_> = read_lines(&b"one\r\n\n\xfftwo\nthree"[..]).collect().await;
        let lines: Vec<String> = lines.into_iter().map(Result::unwrap).collect();
        assert_eq!(lines, ["one", "", "\u{fffd}two", "three"]);
    }

    #[tokio::test]
    async fn a_client_that_reads_no_more_is_no_failure() {
        let (ours, theirs) = tokio::io::duplex(8);
        drop(theirs);
        let mut lines = Box::pin(write_lines(ours));
        assert!(lines.send("one".to_owned()).await.is_ok());
        assert!(lines.send("two".to_owned()).await.is_ok());
    }
}
