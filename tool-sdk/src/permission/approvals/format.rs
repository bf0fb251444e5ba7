//! How approvals are written down: one JSON object, an approval a line, and a line that says
//! whether all of it arrived.
//!
//! **Invariant:** what is not understood to the last byte is not understood at all.

use std::io;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::StoredApproval;

/// What this version writes, and the only thing that it reads.
const VERSION: u32 = 1;

/// More than any number of answers, and little enough to read at once.
pub(super) const MOST_BYTES: u64 = 8 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    approvals: Vec<StoredApproval>,
}

#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

pub(super) fn encode(approvals: &[StoredApproval]) -> io::Result<Vec<u8>> {
    let mut text = format!("{{\"version\":{VERSION},\"approvals\":[");
    for (nth, approval) in approvals.iter().enumerate() {
        text.push_str(if nth == 0 { "\n" } else { ",\n" });
        text.push_str(&serde_json::to_string(approval)?);
    }
    text.push_str("\n]}\n");
    let seal = seal(text.as_bytes());
    text.push_str(&seal);
    Ok(text.into_bytes())
}

/// The approvals, or what is wrong with `bytes`.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<StoredApproval>, &'static str> {
    if bytes.is_empty() {
        return Err("it is empty");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
    let start_of_seal = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
    let (body, seal_found) = text.split_at(start_of_seal);
    if seal_found != seal(body.as_bytes()) {
        return Err("its checksum does not match");
    }
    match serde_json::from_str::<Document>(body) {
        Ok(document) if document.version == VERSION => Ok(document.approvals),
        _ => Err(match serde_json::from_str::<Versioned>(body) {
            Ok(other) if other.version != u64::from(VERSION) => "another version wrote it",
            _ => "it does not have the expected form",
        }),
    }
}

/// The last line.
fn seal(body: &[u8]) -> String {
    format!("{{\"sha256\":\"{:x}\"}}\n", Sha256::digest(body))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `body` with a checksum that matches.
    pub(in super::super) fn sealed(body: &str) -> String {
        format!("{body}{}", seal(body.as_bytes()))
    }

    #[track_caller]
    fn check(text: &str, why: &str) {
        assert_eq!(decode(text.as_bytes()).unwrap_err(), why, "{text}");
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let whole = String::from_utf8(encode(&[]).unwrap()).unwrap();
        assert_eq!(decode(whole.as_bytes()), Ok(Vec::new()));
        for end in 0..whole.len() {
            assert!(decode(&whole.as_bytes()[..end]).is_err(), "{end}");
        }
        check("", "it is empty");
        check("{\"version\":1,\"approvals\":[]}\n", "its checksum does not match");
        check(&format!("{whole}\n"), "its checksum does not match");
        check(&whole.replace('1', "2"), "its checksum does not match");
        assert_eq!(decode(b"\xff").unwrap_err(), "it is not text");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        check(&sealed("{\"version\":2,\"approvals\":[]}\n"), "another version wrote it");
        check(&sealed("{\"version\":2,\"other\":{}}\n"), "another version wrote it");
        for body in ["[]\n", "{\"version\":1}\n", "{\"version\":1,\"approvals\":[],\"x\":1}\n"] {
            check(&sealed(body), "it does not have the expected form");
        }
    }
}
