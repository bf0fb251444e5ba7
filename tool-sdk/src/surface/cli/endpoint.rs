//! Parses the value of `--http`: a socket address or the path of a Unix socket.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

use super::Io;
use crate::surface::mcp::{Listener, Socket};

/// The prefix of a Unix socket path.
const SOCKET: &str = "unix:";

/// Where an HTTP server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Address(SocketAddr),
    Socket(PathBuf),
}

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix(SOCKET) {
            Some("") => Err("the path of the socket is missing"),
            Some(path) => Ok(Self::Socket(path.into())),
            None => text
                .parse()
                .map(Self::Address)
                .map_err(|_| "write an address such as `127.0.0.1:8080`, or `unix:PATH`"),
        }
    }
}

/// Formats the URL for clients.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "http://{address}/mcp"),
            Self::Socket(path) => {
                write!(f, "{SOCKET}{}, as http://localhost/mcp", path.display())
            }
        }
    }
}

impl Endpoint {
    /// Whether only this machine can connect.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Address(address) => address.ip().is_loopback(),
            Self::Socket(_) => true,
        }
    }

    /// Returns the TCP port.
    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Self::Address(address) => Some(address.port()),
            Self::Socket(_) => None,
        }
    }

    /// Returns a file name suffix that is unique for this address on this machine.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Address(address) => address.port().to_string(),
            Self::Socket(path) => {
                let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
                format!("unix-{:.16}", format!("{digest:x}"))
            }
        }
    }

    /// Starts to listen, and returns the actual address (port 0 is resolved). Fails for a Unix
    /// socket inside one of `roots`, where tools may write.
    pub(super) async fn listen(
        &self,
        roots: &[PathBuf],
        io: &Io<'_>,
    ) -> io::Result<(Listener, Self)> {
        match self {
            Self::Address(address) => {
                let listener = TcpListener::bind(address).await?;
                let address = listener.local_addr()?;
                Ok((listener.into(), Self::Address(address)))
            }
            Self::Socket(path) => {
                let socket = Socket::bind_outside(&io.path(path), roots).await?;
                let path = socket.path().to_owned();
                Ok((socket.into(), Self::Socket(path)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_and_unix_sockets() {
        let address: Endpoint = "127.0.0.1:80".parse().unwrap();
        assert_eq!(address.to_string(), "http://127.0.0.1:80/mcp");
        assert_eq!((address.port(), &*address.id()), (Some(80), "80"));
        let socket: Endpoint = "unix:/run/a/b".parse().unwrap();
        assert_eq!(socket.to_string(), "unix:/run/a/b, as http://localhost/mcp");
        assert!(socket.is_local() && socket.port().is_none());
        assert_ne!(socket.id(), "unix:/run/c/b".parse::<Endpoint>().unwrap().id());
        for wrong in ["", "unix:", "unix", "localhost:80", "/run/a/b"] {
            assert!(wrong.parse::<Endpoint>().is_err(), "{wrong}");
        }
    }
}
