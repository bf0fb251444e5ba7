//! Extracts the relevant header fields of a request in one pass.
//!
//! **Invariant:** a field that is repeated or not text has no value.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, header};
use rmcp::model::ProtocolVersion;

use super::responses::{EVENT_STREAM, JSON};
use crate::listing::ProtocolEra;

/// The name under which a head says which session it is of.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// What stands in a head under the names that matter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestHead<'a> {
    pub(super) session: HeaderField<'a>,
    content_type: HeaderField<'a>,
    accept: HeaderField<'a>,
    version: HeaderField<'a>,
}

/// What stands in a head under one name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum HeaderField<'a> {
    #[default]
    Missing,
    Once(&'a HeaderValue),
    Repeated,
}

impl<'a> HeaderField<'a> {
    pub(super) fn is_present(self) -> bool {
        !matches!(self, Self::Missing)
    }

    pub(super) fn value(self) -> Option<&'a HeaderValue> {
        match self {
            Self::Once(value) => Some(value),
            Self::Missing | Self::Repeated => None,
        }
    }

    pub(super) fn as_text(self) -> Option<&'a str> {
        self.value()?.to_str().ok()
    }
}

impl<'a> RequestHead<'a> {
    pub(super) fn from_headers(headers: &'a HeaderMap) -> Self {
        let mut head = Self::default();
        for (name, value) in headers {
            let field = match name {
                it if *it == header::CONTENT_TYPE => &mut head.content_type,
                it if *it == header::ACCEPT => &mut head.accept,
                it if *it == SESSION_ID => &mut head.session,
                it if *it == PROTOCOL_VERSION => &mut head.version,
                _ => continue,
            };
            *field =
                if field.is_present() { HeaderField::Repeated } else { HeaderField::Once(value) };
        }
        head
    }

    /// Whether rmcp would take the head of a request for what it is without a question. One
    /// that says anything unusual is for rmcp to judge.
    pub(super) fn is_fast_path(&self, method: &Method) -> bool {
        *method == Method::POST
            && self.content_type.as_text() == Some(JSON)
            && self.accept.as_text().is_some_and(accepts_json_and_events)
            && (!self.version.is_present() || self.version.as_text().is_some_and(is_legacy_version))
    }
}

/// Whether an answer may be a message as well as a stream of events.
fn accepts_json_and_events(list: &str) -> bool {
    let accepts = |wanted| list.split(',').any(|kind| kind.trim() == wanted);
    list == "application/json, text/event-stream" || (accepts(JSON) && accepts(EVENT_STREAM))
}

/// Whether a request of a session is of a version from before events that say nothing. The first
/// ones named none.
pub(super) fn predates_empty_events(headers: &HeaderMap) -> bool {
    let version = headers.get(PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
    version.is_none_or(|version| version < ProtocolVersion::V_2025_11_25.as_str())
}

/// Returns true for a stateless request; a session that it names is ignored.
pub(super) fn is_stateless(method: &Method, headers: &HeaderMap) -> bool {
    let mut versions = headers.get_all(PROTOCOL_VERSION).iter();
    let only = versions.next().filter(|_| *method == Method::POST && versions.next().is_none());
    let version = only.and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

fn is_legacy_version(version: &str) -> bool {
    let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| known.as_str() == version);
    known.is_some_and(|known| ProtocolEra::from_version(Some(known)) == ProtocolEra::Legacy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(HeaderName, &[u8])], session: Option<&str>, is_plain: bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let head = RequestHead::from_headers(&map);
        assert_eq!(head.session.as_text(), session, "{headers:?}");
        assert_eq!(head.is_fast_path(&Method::POST), is_plain, "{headers:?}");
        assert!(!head.is_fast_path(&Method::GET));
    }

    #[test]
    fn what_is_unusual_in_a_head_is_not_plain() {
        let json = (header::CONTENT_TYPE, JSON.as_bytes());
        let both = (header::ACCEPT, &b"text/event-stream ,application/json"[..]);
        let other = (header::ACCEPT_LANGUAGE, &b"\xff"[..]);
        check(&[json.clone(), both.clone(), other], None, true);
        check(&[json.clone(), both.clone(), (PROTOCOL_VERSION, b"2025-06-18")], None, true);

        check(&[json.clone(), both.clone(), (PROTOCOL_VERSION, b"2026-07-28")], None, false);
        check(&[json.clone(), both.clone(), (PROTOCOL_VERSION, b"\xff")], None, false);
        let twice = (PROTOCOL_VERSION, &b"2025-06-18"[..]);
        check(&[json.clone(), both.clone(), twice.clone(), twice], None, false);
        check(&[json.clone(), json.clone(), both.clone()], None, false);
        check(&[json.clone(), both.clone(), both.clone()], None, false);
        check(&[json.clone(), (header::ACCEPT, JSON.as_bytes())], None, false);
        check(&[json], None, false);
        check(&[both], None, false);
    }

    #[test]
    fn only_requests_of_today_stand_alone() {
        let alone = |versions: &[&str], method| {
            let mut map = HeaderMap::new();
            for version in versions {
                map.append(PROTOCOL_VERSION, HeaderValue::from_str(version).unwrap());
            }
            is_stateless(&method, &map)
        };
        assert!(alone(&["2026-07-28"], Method::POST));
        for versions in [&[][..], &["2025-11-25"], &["2026-07-28", "2026-07-28"]] {
            assert!(!alone(versions, Method::POST), "{versions:?}");
        }
        assert!(!alone(&["2026-07-28"], Method::GET) && !alone(&["2026-07-28"], Method::DELETE));
    }

    #[test]
    fn what_stands_there_twice_says_nothing() {
        check(&[(SESSION_ID, b"a")], Some("a"), false);
        check(&[(SESSION_ID, b"a"), (SESSION_ID, b"a")], None, false);
        check(&[(SESSION_ID, b"\xff")], None, false);
    }
}
