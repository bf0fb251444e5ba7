//! Standard input and output as asynchronous streams, without the locks of the standard library.
//!
//! A client starts its server with two pipes or, as Node.js does, with two sockets. Those are read
//! and written without a blocking thread where the system allows it. Anything else, such as a file,
//! is served by tokio's blocking file API.

use std::fs::File;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

type StdioReader = Box<dyn AsyncRead + Send + Unpin>;
type StdioWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens standard input and output of this process.
///
/// # Errors
///
/// Fails when the descriptors cannot be duplicated.
pub fn open_streams() -> io::Result<(StdioReader, StdioWriter)> {
    Ok(match open_pipes().or_else(open_sockets) {
        Some(streams) => streams,
        None => {
            let (input, output) = open_files()?;
            let (input, output) =
                (tokio::fs::File::from_std(input), tokio::fs::File::from_std(output));
            (Box::new(input), Box::new(output))
        }
    })
}

/// Reopens the pipes, so that non-blocking mode is not set on those that child processes inherit.
#[cfg(target_os = "linux")]
fn open_pipes() -> Option<(StdioReader, StdioWriter)> {
    use tokio::net::unix::pipe::OpenOptions;

    let input = OpenOptions::new().open_receiver("/proc/self/fd/0").ok()?;
    let output = OpenOptions::new().open_sender("/proc/self/fd/1").ok()?;
    Some((Box::new(input), Box::new(output)))
}

#[cfg(not(target_os = "linux"))]
fn open_pipes() -> Option<(StdioReader, StdioWriter)> {
    None
}

/// Duplicates the sockets. Non-blocking mode applies to the originals as well, but nothing else in
/// this process uses them, and the client has its own ends.
#[cfg(unix)]
fn open_sockets() -> Option<(StdioReader, StdioWriter)> {
    use std::os::fd::AsFd as _;

    let input = socket_from_fd(io::stdin().as_fd()).ok()?;
    let output = socket_from_fd(io::stdout().as_fd()).ok()?;
    Some((Box::new(input), Box::new(output)))
}

#[cfg(unix)]
fn socket_from_fd(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<tokio::net::UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd.try_clone_to_owned()?);
    // Fails for anything that is not a stream socket.
    stream.local_addr()?;
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}

#[cfg(not(unix))]
fn open_sockets() -> Option<(StdioReader, StdioWriter)> {
    None
}

#[cfg(unix)]
fn open_files() -> io::Result<(File, File)> {
    use std::os::fd::AsFd as _;

    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

#[cfg(windows)]
fn open_files() -> io::Result<(File, File)> {
    use std::os::windows::io::AsHandle as _;

    let input = io::stdin().as_handle().try_clone_to_owned()?;
    let output = io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    // Node.js starts servers with sockets.
    #[tokio::test]
    async fn sockets_are_served_as_pipes_are() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut served = socket_from_fd(theirs.as_fd()).unwrap();
        drop(theirs);
        let mut peer = socket_from_fd(ours.as_fd()).unwrap();
        drop(ours);
        peer.write_all(b"ping").await.unwrap();
        peer.shutdown().await.unwrap();
        let mut heard = String::new();
        served.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "ping");
        served.write_all(b"pong").await.unwrap();
        served.shutdown().await.unwrap();
        heard.clear();
        peer.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "pong");
    }

    #[tokio::test]
    async fn nothing_else_is_taken_for_a_socket() {
        let (read, _write) = io::pipe().unwrap();
        assert!(socket_from_fd(read.as_fd()).is_err());
        assert!(socket_from_fd(tempfile::tempfile().unwrap().as_fd()).is_err());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(socket_from_fd(listener.as_fd()).is_err());
    }
}
