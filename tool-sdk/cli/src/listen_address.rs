//! Parses the value of `--http`: a socket address or the path of a Unix socket.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use tokio::net::TcpListener;
use tool_sdk_core::internal::sha256_hex;
use tool_sdk_http::{HttpListener, UnixSocket};

use super::Io;

/// The prefix of a Unix socket path.
const UNIX_PREFIX: &str = "unix:";

/// Where an HTTP server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix(UNIX_PREFIX) {
            Some("") => Err("the path of the socket is missing"),
            Some(path) => Ok(Self::Unix(path.into())),
            None => parse_socket_address(text).map(Self::Tcp).ok_or(
                "write a port, an address such as `127.0.0.1:8080`, `localhost:8080` or \
                 `[::1]:8080`, or `unix:PATH`",
            ),
        }
    }
}

/// Parses an address, a port of this machine, or `localhost` with a port. Other names are not
/// looked up, because an address of every interface must be written as one.
fn parse_socket_address(text: &str) -> Option<SocketAddr> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    match port.parse() {
        Ok(port) => Some((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => text.parse().ok(),
    }
}

/// Formats the URL of the MCP endpoint for clients.
impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/mcp", self.base_url())
    }
}

impl ListenAddress {
    /// Returns the URL of the server for clients.
    pub(super) fn base_url(&self) -> String {
        match self {
            Self::Tcp(address) => format!("http://{address}"),
            Self::Unix(path) => format!("{UNIX_PREFIX}{}, as http://localhost", path.display()),
        }
    }

    /// Returns the URL of the server for a browser on this machine; `None` for a UNIX socket, which
    /// browsers cannot open.
    #[cfg(feature = "http")]
    pub(super) fn browser_url(&self) -> Option<String> {
        match self {
            Self::Tcp(address) if address.ip().is_unspecified() => {
                Some(format!("http://127.0.0.1:{}", address.port()))
            }
            Self::Tcp(_) => Some(self.base_url()),
            Self::Unix(_) => None,
        }
    }

    /// Whether only this machine can connect.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Returns the TCP port.
    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(address) => Some(address.port()),
            Self::Unix(_) => None,
        }
    }

    /// Returns a file name suffix that is unique for this address on this machine.
    pub(super) fn file_suffix(&self) -> String {
        match self {
            Self::Tcp(address) => address.port().to_string(),
            Self::Unix(path) => {
                format!("unix-{:.16}", sha256_hex(path.as_os_str().as_encoded_bytes()))
            }
        }
    }

    /// Starts to listen, and returns the actual address (port 0 is resolved). Fails for a Unix
    /// socket inside one of `roots`, where tools may write.
    pub(super) async fn bind(
        &self,
        roots: &[PathBuf],
        io: &Io<'_>,
    ) -> io::Result<(HttpListener, Self)> {
        match self {
            Self::Tcp(address) => {
                let listener = TcpListener::bind(address).await?;
                let address = listener.local_addr()?;
                Ok((listener.into(), Self::Tcp(address)))
            }
            Self::Unix(path) => {
                let socket = UnixSocket::bind_outside(&io.resolve_path(path), roots).await?;
                let path = socket.path().to_owned();
                Ok((socket.into(), Self::Unix(path)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_and_unix_sockets() {
        let address: ListenAddress = "127.0.0.1:80".parse().unwrap();
        assert_eq!(address.to_string(), "http://127.0.0.1:80/mcp");
        assert_eq!((address.port(), &*address.file_suffix()), (Some(80), "80"));
        let socket: ListenAddress = "unix:/run/a/b".parse().unwrap();
        assert_eq!(socket.to_string(), "unix:/run/a/b, as http://localhost/mcp");
        assert!(socket.is_local() && socket.port().is_none());
        assert_ne!(
            socket.file_suffix(),
            "unix:/run/c/b".parse::<ListenAddress>().unwrap().file_suffix()
        );
        for (text, url) in [
            ("8080", "http://127.0.0.1:8080/mcp"),
            ("localhost:8080", "http://127.0.0.1:8080/mcp"),
            ("[::1]:8080", "http://[::1]:8080/mcp"),
            ("0.0.0.0:1", "http://0.0.0.0:1/mcp"),
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), url);
        }
        for wrong in
            ["", "unix:", "unix", "localhost", "example.com:80", ":80", "65536", "/run/a/b"]
        {
            assert!(wrong.parse::<ListenAddress>().is_err(), "{wrong}");
        }
    }
}
