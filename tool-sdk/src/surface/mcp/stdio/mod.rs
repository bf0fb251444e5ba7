//! This process's standard input and output, without the locks of the standard library.
//!
//! A peer starts its server with two pipes. Those are read and written without a thread in
//! between where the system allows it; anything else, such as a file, is served all the
//! same.

#[cfg(target_os = "linux")]
mod wide;

use std::fs::File;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

pub(super) type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub(super) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Both ends of the connection to whoever started this process.
pub(super) fn streams() -> io::Result<(Reader, Writer)> {
    Ok(match pipes() {
        Some(pipes) => pipes,
        None => {
            let (input, output) = files()?;
            let (input, output) =
                (tokio::fs::File::from_std(input), tokio::fs::File::from_std(output));
            (Box::new(input), Box::new(output))
        }
    })
}

/// The pipes, opened once more: what is set on these does not touch those that children
/// inherit.
#[cfg(target_os = "linux")]
fn pipes() -> Option<(Reader, Writer)> {
    use tokio::net::unix::pipe::OpenOptions;

    let input = OpenOptions::new().open_receiver("/proc/self/fd/0").ok()?;
    let output = OpenOptions::new().open_sender("/proc/self/fd/1").ok()?;
    Some((Box::new(input), Box::new(wide::Wide::new(output))))
}

#[cfg(not(target_os = "linux"))]
fn pipes() -> Option<(Reader, Writer)> {
    None
}

#[cfg(unix)]
fn files() -> io::Result<(File, File)> {
    use std::os::fd::AsFd as _;

    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

#[cfg(windows)]
fn files() -> io::Result<(File, File)> {
    use std::os::windows::io::AsHandle as _;

    let input = io::stdin().as_handle().try_clone_to_owned()?;
    let output = io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}
