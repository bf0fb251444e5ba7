//! Why a request failed.
//!
//! **Invariant:** a message names the host or the limit, and no header of the request.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::time::Duration;

use crate::RefusedUrl;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL, or that of a redirect, is not requested.
    #[error(transparent)]
    Refused(#[from] RefusedUrl),
    /// The name of a host leads to an address that is not public.
    #[error("`{host}` leads to {address}, which is not public")]
    PrivateAddress {
        /// The host.
        host: String,
        /// The first address that is not public.
        address: IpAddr,
    },
    /// The name of a host has no address.
    #[error("the host `{host}` is not found")]
    UnknownHost {
        /// The host.
        host: String,
        /// What the resolver said.
        source: std::io::Error,
    },
    /// The host does not accept connections.
    #[error("no connection to `{host}`")]
    Connect {
        /// The host.
        host: String,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The time is over.
    #[error("no complete answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The body is over the limit, decompressed.
    #[error("the answer is over {0} bytes long")]
    BodyTooLarge(usize),
    /// The headers are over the limit.
    #[error("the headers of the answer are over {0} bytes long")]
    HeadersTooLarge(usize),
    /// The body is compressed in a way that was not offered.
    #[error("the answer is encoded with `{0}`, which was not offered")]
    UnknownEncoding(String),
    /// The compressed body is invalid.
    #[error("the answer cannot be decompressed")]
    InvalidEncoding(#[source] std::io::Error),
    /// There were too many redirects.
    #[error("the page redirects more than {0} times")]
    TooManyRedirects(usize),
    /// A redirect names no target.
    #[error("the answer is a redirect without a target")]
    MissingLocation,
    /// The HTTP exchange failed.
    #[error("the request failed")]
    Exchange(#[source] Box<dyn StdError + Send + Sync>),
}
