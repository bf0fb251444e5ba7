//! The connection to the NATS server.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};

use crate::error::RemoteError;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest pause between two attempts to reach a server that was lost.
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// The pause after the first attempt to connect that failed; it doubles with each further one.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two attempts to connect. NATS clients wait as long by default.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(2);

/// How a NATS server is reached.
///
/// # Examples
///
/// ```
/// use tool_sdk::remote::NatsConfig;
///
/// let server = NatsConfig::new("nats://127.0.0.1:4222")?;
/// assert!(NatsConfig::new("nats://me:secret@127.0.0.1").is_err(), "secrets belong in a file");
/// # let _ = server;
/// # Ok::<(), tool_sdk::remote::RemoteError>(())
/// ```
#[derive(Clone)]
pub struct NatsConfig {
    url: String,
    credentials: Option<String>,
    root_certificates: Option<PathBuf>,
}

impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConfig")
            .field("url", &self.url)
            .field("root_certificates", &self.root_certificates)
            .finish_non_exhaustive()
    }
}

impl NatsConfig {
    /// Sets the address: `nats://HOST:PORT`, or `tls://HOST:PORT`, which requires TLS.
    ///
    /// # Errors
    ///
    /// Fails when the address has another scheme, or a user name or password in it.
    pub fn new(url: impl Into<String>) -> Result<Self, RemoteError> {
        let url = url.into();
        let rest = url.strip_prefix("nats://").or_else(|| url.strip_prefix("tls://"));
        match rest {
            None => Err(RemoteError::Config(
                "the address of a NATS server must begin with nats:// or tls://".into(),
            )),
            Some(rest) if rest.contains('@') => Err(RemoteError::Config(
                "the address of a NATS server must not have a user or password in it; write \
                 them into a file of credentials"
                    .into(),
            )),
            Some(_) => Ok(Self { url, credentials: None, root_certificates: None }),
        }
    }

    /// Returns the address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the content of a file of credentials: that of `nsc` (a JWT and a seed), or the seed of
    /// an nkey alone.
    #[must_use]
    pub fn credentials(mut self, text: impl Into<String>) -> Self {
        self.credentials = Some(text.into());
        self
    }

    /// Sets the file of the certificates that sign the server's, for TLS.
    #[must_use]
    pub fn root_certificates(mut self, file: impl Into<PathBuf>) -> Self {
        self.root_certificates = Some(file.into());
        self
    }

    /// Connects. The connection is renewed for as long as the client is used.
    pub(crate) async fn connect(&self, name: &str) -> Result<Client, RemoteError> {
        self.connect_watched(name, |_| {}).await
    }

    /// Like [`connect`](Self::connect); `on_event` hears when the connection is lost and renewed.
    pub(crate) async fn connect_watched(
        &self,
        name: &str,
        on_event: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Client, RemoteError> {
        let mut options = ConnectOptions::new();
        if let Some(text) = &self.credentials {
            options = match text.trim() {
                seed if seed.starts_with("SU") && !seed.contains(char::is_whitespace) => {
                    options.nkey(seed.to_owned())
                }
                _ => options.credentials(text).map_err(|_| {
                    RemoteError::Config("the file of credentials cannot be read".into())
                })?,
            };
        }
        if let Some(file) = &self.root_certificates {
            options = options.add_root_certificates(file.clone());
        }
        options
            .name(name)
            .require_tls(self.url.starts_with("tls://"))
            .connection_timeout(CONNECT_TIMEOUT)
            .reconnect_delay_callback(|attempts| {
                let steps = u32::try_from(attempts.min(6)).unwrap_or(6);
                Duration::from_millis(20 << steps).min(MAX_RECONNECT_DELAY)
            })
            .event_callback(move |event| {
                on_event(event);
                std::future::ready(())
            })
            .connect(&self.url)
            .await
            .map_err(|error| {
                let words = format!("{}: {error}", self.url);
                match error.kind() {
                    ConnectErrorKind::Authentication
                    | ConnectErrorKind::AuthorizationViolation
                    | ConnectErrorKind::Tls => RemoteError::Refused(words),
                    ConnectErrorKind::ServerParse => RemoteError::Config(words),
                    _ => RemoteError::Connect(words),
                }
            })
    }

    /// Connects with `connect`, and tries again after a growing pause for as long as `goes_on` says so
    /// of the error.
    pub(crate) async fn retry<T, C: Future<Output = Result<T, RemoteError>>>(
        connect: impl Fn() -> C,
        mut goes_on: impl FnMut(&RemoteError) -> bool,
    ) -> Result<T, RemoteError> {
        let mut pause = FIRST_RETRY_PAUSE;
        loop {
            match connect().await {
                Err(error) if goes_on(&error) => tokio::time::sleep(pause).await,
                ended => return ended,
            }
            pause = (pause * 2).min(MAX_RETRY_PAUSE);
        }
    }
}
