//! The sources of connections: a TCP listener or a UNIX socket.
//!
//! **Invariant:** all connections are authenticated alike; only the accepted host names differ.

use std::io;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::either::Either;

use super::socket::{self, UnixSocket};

/// A connection.
pub(super) type HttpStream = Either<TcpStream, socket::SocketStream>;

/// Where a server over HTTP listens.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::HttpListener;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let listener = HttpListener::from(tokio::net::TcpListener::bind("127.0.0.1:0").await?);
/// # let _ = listener;
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct HttpListener(ListenerKind);

#[derive(Debug)]
enum ListenerKind {
    Address(TcpListener),
    Socket(UnixSocket),
}

impl From<TcpListener> for HttpListener {
    fn from(listener: TcpListener) -> Self {
        Self(ListenerKind::Address(listener))
    }
}

impl From<UnixSocket> for HttpListener {
    fn from(socket: UnixSocket) -> Self {
        Self(ListenerKind::Socket(socket))
    }
}

impl HttpListener {
    pub(super) async fn accept(&self) -> io::Result<HttpStream> {
        match &self.0 {
            ListenerKind::Address(listener) => {
                let (stream, _) = listener.accept().await?;
                // Events are small, and each is wanted at once. Where that cannot be set, they
                // come late.
                let _ = stream.set_nodelay(true);
                Ok(Either::Left(stream))
            }
            ListenerKind::Socket(socket) => socket.accept().await.map(Either::Right),
        }
    }

    /// The names under which this machine reaches it. At a socket there is no port, and clients
    /// take one of the names that they would take for this machine.
    pub(super) fn local_hosts(&self) -> io::Result<Vec<String>> {
        let local = ["127.0.0.1", "localhost", "[::1]"];
        Ok(match &self.0 {
            ListenerKind::Address(listener) => {
                let address = listener.local_addr()?;
                let local = local.map(|name| format!("{name}:{}", address.port()));
                local.into_iter().chain([address.to_string()]).collect()
            }
            ListenerKind::Socket(_) => local.map(str::to_owned).to_vec(),
        })
    }
}
