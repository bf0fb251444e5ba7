//! SHA-256 as text: checksums, fingerprints and names of files.

use std::fmt::Write as _;

/// Returns the SHA-256 hash of `bytes` in hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    to_hex(hmac_sha256::Hash::hash(bytes.as_ref()))
}

/// Returns a finished hash in hexadecimal digits.
#[must_use]
pub fn to_hex(hash: [u8; 32]) -> String {
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_the_test_vector_of_the_standard() {
        let wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex("abc"), wanted);
    }
}
