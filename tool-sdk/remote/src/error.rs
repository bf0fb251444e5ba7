//! Why workers cannot be reached or served.

/// Why workers cannot be reached or served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The NATS server cannot be reached.
    #[error("cannot connect to the NATS server {0}")]
    Connect(String),
    /// The NATS server refuses the connection, or its certificate is refused.
    #[error("no connection to the NATS server {0}")]
    Refused(String),
    /// The host is not connected to the NATS server now, for this reason.
    #[error("{0}")]
    NotConnected(String),
    /// A request failed.
    #[error("the NATS server does not answer: {0}")]
    Request(String),
    /// A value of the configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// The tools cannot be offered.
    #[error("cannot offer the tools: {0}")]
    Offer(String),
}

impl RemoteError {
    /// Returns the error of a request that failed.
    pub(crate) fn request(error: impl std::fmt::Display) -> Self {
        Self::Request(error.to_string())
    }
}
