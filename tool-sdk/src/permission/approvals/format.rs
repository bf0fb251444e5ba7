//! How approvals are written down: a line that says which version wrote them, then a line for
//! each approval, with a checksum of its own.
//!
//! Approvals are added at the end, so that a file always begins with what was there before.
//! A last line without its end is one that somebody did not finish writing, and is none. Where
//! the disk did not get what was written there may be zeros: nothing behind them was flushed,
//! so that nobody was told of it, and no line has any.
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

/// Around the approval and its checksum.
const BEGIN: &str = "{\"approval\":";
const BETWEEN: &str = ",\"sha256\":\"";
const END: &str = "\"}";

/// The first line.
#[derive(Deserialize)]
struct Head {
    version: u64,
}

/// The first line of every file.
pub(super) fn head() -> String {
    format!("{{\"version\":{VERSION}}}\n")
}

/// One line for each approval.
pub(super) fn lines(approvals: &[StoredApproval]) -> io::Result<String> {
    let mut lines = String::new();
    for approval in approvals {
        let body = serde_json::to_string(approval)?;
        let seal = seal(&body);
        lines.extend([BEGIN, &body, BETWEEN, &seal, END, "\n"]);
    }
    Ok(lines)
}

/// The approvals and the length of what was finished, or what is wrong with `bytes`.
pub(super) fn decode(bytes: &[u8]) -> Result<(Vec<StoredApproval>, usize), &'static str> {
    if bytes.is_empty() {
        return Err("it is empty");
    }
    let flushed = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let bytes = &bytes[..flushed];
    let finished = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let text = std::str::from_utf8(&bytes[..finished]).map_err(|_| "it is not text")?;
    let Some(lines) = text.strip_prefix(&head()) else {
        let first = text.lines().next().unwrap_or_default();
        return Err(match serde_json::from_str::<Head>(first) {
            Ok(other) if other.version != u64::from(VERSION) => "another version wrote it",
            _ => "it does not have the expected form",
        });
    };
    let approvals = lines.lines().map(approval).collect::<Result<_, _>>()?;
    Ok((approvals, finished))
}

fn approval(line: &str) -> Result<StoredApproval, &'static str> {
    let inside = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    let (body, found) = inside
        .and_then(|inside| inside.rsplit_once(BETWEEN))
        .ok_or("it does not have the expected form")?;
    if found != seal(body) {
        return Err("its checksum does not match");
    }
    serde_json::from_str(body).map_err(|_| "it does not have the expected form")
}

fn seal(body: &str) -> String {
    format!("{:x}", Sha256::digest(body))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `body` as a line whose checksum matches.
    pub(in super::super) fn sealed(body: &str) -> String {
        format!("{BEGIN}{body}{BETWEEN}{}{END}\n", seal(body))
    }

    #[track_caller]
    fn check(text: &str, why: &str) {
        assert_eq!(decode(text.as_bytes()).unwrap_err(), why, "{text}");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let none = (Vec::new(), head().len());
        assert_eq!(decode(head().as_bytes()), Ok(none.clone()));
        // Somebody did not finish the line.
        for rest in ["{\"approval\":", &sealed("{}")[..20], "\u{e4}"] {
            assert_eq!(decode(format!("{}{rest}", head()).as_bytes()), Ok(none.clone()), "{rest}");
        }
        check("", "it is empty");
        check("{\"version\":2}\n", "another version wrote it");
        check("{\"version\":2,\"other\":{}}\n", "another version wrote it");
        assert_eq!(decode(b"\xff\n").unwrap_err(), "it is not text");
        for text in ["{\"version\":1}", "[]\n", "{\"version\":1,\"x\":1}\n", "\n"] {
            check(text, "it does not have the expected form");
        }
        for line in ["\n", "x\n", "{}\n", &sealed("{}"), &sealed("{\"x\":1}")] {
            check(&format!("{}{line}", head()), "it does not have the expected form");
        }
        let changed = sealed("{}").replace("{}", "[]");
        check(&format!("{}{changed}", head()), "its checksum does not match");
    }
}
