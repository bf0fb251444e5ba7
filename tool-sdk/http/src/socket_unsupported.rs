//! UNIX sockets on systems that have none.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};

use tokio::net::TcpStream;

/// There is no connection.
pub(super) type SocketStream = TcpStream;

/// A UNIX socket at which a server listens; this system has none.
#[derive(Debug)]
pub struct UnixSocket(Infallible);

impl UnixSocket {
    /// Listens at `path`, where there are UNIX sockets.
    ///
    /// # Errors
    ///
    /// Fails always on this system.
    pub async fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::bind_outside(path.as_ref(), &[]).await
    }

    #[doc(hidden)]
    pub async fn bind_outside(path: &Path, _: &[PathBuf]) -> io::Result<Self> {
        let path = path.display();
        Err(io::Error::other(format!("`{path}`: this system has no UNIX sockets")))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self.0 {}
    }

    pub(super) async fn accept(&self) -> io::Result<SocketStream> {
        match self.0 {}
    }
}
