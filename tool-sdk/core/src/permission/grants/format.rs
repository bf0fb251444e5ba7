//! The file format of stored grants: a JSON document with one grant a line, followed by a line with
//! its checksum (AP3).
//!
//! **Invariant:** a file is accepted as a whole or not at all.

use crate::sha256::sha256_hex;
use std::io;

use serde::Deserialize;

use super::StoredGrant;

/// The version of the format; no other version is read.
const VERSION: u32 = 1;

/// More than any number of grants needs, and small enough to read at once.
pub(super) const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The text around the checksum.
const CHECKSUM_PREFIX: &str = "{\"sha256\":\"";
const CHECKSUM_SUFFIX: &str = "\"}\n";

const UNEXPECTED_FORM: &str = "it does not have the expected form";

/// The part of the document that every version has.
#[derive(Deserialize)]
struct VersionHeader {
    version: u64,
}

/// The document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantDocument {
    #[serde(rename = "version")]
    _version: u32,
    approvals: Vec<StoredGrant>,
}

/// Returns the content of the file.
pub(super) fn encode_grants(approvals: &[StoredGrant]) -> io::Result<String> {
    let lines = approvals.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(append_checksum(&format!(
        "{{\"version\":{VERSION},\"approvals\":[\n{}\n]}}\n",
        lines.join(",\n")
    )))
}

/// Returns the grants in `bytes`, or why these are not a valid file.
pub(super) fn decode_grants(bytes: &[u8]) -> Result<Vec<StoredGrant>, &'static str> {
    if bytes.is_empty() {
        return Err("it is empty");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<VersionHeader>();
    match values.next() {
        Some(Ok(head)) if head.version == u64::from(VERSION) => {}
        Some(Ok(_)) => return Err("another version wrote it"),
        _ => return Err(UNEXPECTED_FORM),
    }
    let inside =
        text.strip_suffix(CHECKSUM_SUFFIX).and_then(|text| text.rsplit_once(CHECKSUM_PREFIX));
    let (body, found) = inside.ok_or(UNEXPECTED_FORM)?;
    if found != checksum(body) {
        return Err("its checksum does not match");
    }
    let body: GrantDocument = serde_json::from_str(body).map_err(|_| UNEXPECTED_FORM)?;
    Ok(body.approvals)
}

/// Returns `body`, followed by its checksum.
fn append_checksum(body: &str) -> String {
    let seal = checksum(body);
    [body, CHECKSUM_PREFIX, &seal, CHECKSUM_SUFFIX].concat()
}

fn checksum(body: &str) -> String {
    sha256_hex(body)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Changes the document in `file` with `change`, and returns it with a matching checksum.
    pub(crate) fn rewrite_document(file: &str, change: impl Fn(&str) -> String) -> String {
        let (body, _) = file.rsplit_once(CHECKSUM_PREFIX).unwrap();
        append_checksum(&change(body))
    }

    #[track_caller]
    fn check(text: &str, why: &str) {
        assert_eq!(decode_grants(text.as_bytes()).unwrap_err(), why, "{text}");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let none = encode_grants(&[]).unwrap();
        assert_eq!(decode_grants(none.as_bytes()), Ok(Vec::new()));
        check("", "it is empty");
        assert_eq!(decode_grants(b"\xff\n").unwrap_err(), "it is not text");
        for text in ["{\"version\":2}\n", "{\"version\":2,\"other\":{}}\n", "{\"version\":0} x"] {
            check(text, "another version wrote it");
        }
        for text in ["{\"version\":1}", "[]\n", "{\"version\":-1}\n", "\n", "{}\n", "x\n"] {
            check(text, UNEXPECTED_FORM);
        }
        for body in [
            "{\"version\":1}\n",
            "{\"version\":1,\"approvals\":[{}]}\n",
            "{\"version\":1,\"approvals\":[],\"x\":1}\n",
            "{\"version\":1,\"approvals\":[]}\n{}\n",
            "{\"version\":1,\"version\":1,\"approvals\":[]}\n",
        ] {
            check(&append_checksum(body), UNEXPECTED_FORM);
        }
        check(&none.replace("[\n\n]", "[]"), "its checksum does not match");
        // Every truncated file is rejected.
        for end in 1..none.len() {
            assert!(decode_grants(&none.as_bytes()[..end]).is_err(), "{end}");
        }
        assert!(decode_grants(format!("{none}\n").as_bytes()).is_err());
    }
}
