//! Reads the body of a response, decompresses it, and stops at the limit.
//!
//! **Invariant:** memory is bounded by the limit: what a small compressed body would become is
//! never held.

use std::io::{self, Write};

use flate2::write::{GzDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use crate::FetchError;

/// The compressions that the client offers.
pub(crate) const ACCEPTED_ENCODINGS: &str = "gzip, deflate";

/// Reads the body, at most `limit` bytes of it before and after it is decompressed.
pub(crate) async fn read_body(mut response: Response, limit: usize) -> Result<Vec<u8>, FetchError> {
    let mut decoder = BodyDecoder::new(response.headers(), limit)?;
    let length = response.content_length().unwrap_or_default();
    if length > limit as u64 {
        return Err(FetchError::BodyTooLarge(limit));
    }
    let mut received = 0_usize;
    while let Some(chunk) =
        response.chunk().await.map_err(|error| FetchError::Exchange(error.into()))?
    {
        received = received.saturating_add(chunk.len());
        if received > limit {
            return Err(FetchError::BodyTooLarge(limit));
        }
        decoder.write(&chunk).map_err(|error| read_error(error, limit))?;
    }
    decoder.into_bytes().map_err(|error| read_error(error, limit))
}

fn read_error(error: io::Error, limit: usize) -> FetchError {
    match error.kind() {
        io::ErrorKind::FileTooLarge => FetchError::BodyTooLarge(limit),
        _ => FetchError::InvalidEncoding(error),
    }
}

enum BodyDecoder {
    Identity(BoundedBuffer),
    Gzip(Box<GzDecoder<BoundedBuffer>>),
    Deflate(Box<ZlibDecoder<BoundedBuffer>>),
}

impl BodyDecoder {
    fn new(headers: &HeaderMap, limit: usize) -> Result<Self, FetchError> {
        let unknown = |name: &str| FetchError::UnknownEncoding(name.escape_debug().to_string());
        let buffer = BoundedBuffer { bytes: Vec::new(), limit };
        let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
        let encoding = match (encodings.next(), encodings.next()) {
            (None, _) => return Ok(Self::Identity(buffer)),
            (Some(one), None) => {
                one.to_str().map_err(|_| unknown("?"))?.trim().to_ascii_lowercase()
            }
            (Some(_), Some(_)) => return Err(unknown("several at once")),
        };
        match &*encoding {
            "" | "identity" => Ok(Self::Identity(buffer)),
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(GzDecoder::new(buffer)))),
            "deflate" => Ok(Self::Deflate(Box::new(ZlibDecoder::new(buffer)))),
            other => Err(unknown(other)),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Identity(buffer) => buffer.write_all(bytes),
            Self::Gzip(decoder) => decoder.write_all(bytes),
            Self::Deflate(decoder) => decoder.write_all(bytes),
        }
    }

    fn into_bytes(self) -> io::Result<Vec<u8>> {
        let buffer = match self {
            Self::Identity(buffer) => buffer,
            Self::Gzip(decoder) => decoder.finish()?,
            Self::Deflate(decoder) => decoder.finish()?,
        };
        Ok(buffer.bytes)
    }
}

/// A buffer that refuses more than `limit` bytes.
struct BoundedBuffer {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
