//! The header fields of a request that determine how it is handled.
//!
//! **Invariant:** a field that is repeated or not text has no value.

use hyper::header::{self, HeaderMap, HeaderName};
use rmcp::model::ProtocolVersion;

use super::responses::{HttpResponse, bad_request};

/// The field that names the session.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The field that names the last event that was received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The value of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HeaderField<'a> {
    #[default]
    Missing,
    Text(&'a str),
    /// It is repeated, or not text.
    Invalid,
}

impl<'a> HeaderField<'a> {
    pub(super) fn new(headers: &'a HeaderMap, name: &HeaderName) -> Self {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Missing,
            (Some(value), None) => value.to_str().map_or(Self::Invalid, Self::Text),
            (Some(_), Some(_)) => Self::Invalid,
        }
    }

    pub(super) fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Missing | Self::Invalid => None,
        }
    }
}

/// The relevant fields of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestHead<'a> {
    headers: &'a HeaderMap,
    pub(super) session: HeaderField<'a>,
    version: HeaderField<'a>,
}

impl<'a> RequestHead<'a> {
    pub(super) fn new(headers: &'a HeaderMap) -> Self {
        let session = HeaderField::new(headers, &SESSION_ID);
        Self { headers, session, version: HeaderField::new(headers, &PROTOCOL_VERSION) }
    }

    pub(super) fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// Returns the protocol version.
    pub(super) fn version(&self) -> Option<&'a str> {
        self.version.text()
    }

    /// Returns true if the version has no sessions; a session that the request names is ignored.
    pub(super) fn is_modern(&self) -> bool {
        self.version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
    }

    /// Fails for a protocol version that is unknown. One that the request itself states is
    /// judged by its handler.
    pub(super) fn check_version(&self, states_version: bool) -> Result<(), Box<HttpResponse>> {
        let version = match self.version {
            HeaderField::Missing => return Ok(()),
            HeaderField::Text(version) => version,
            HeaderField::Invalid => {
                return Err(bad_request("`MCP-Protocol-Version` must have one value").into());
            }
        };
        let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
        match states_version || known.any(|known| known.as_str() == version) {
            true => Ok(()),
            false => Err(bad_request("this `MCP-Protocol-Version` is not supported").into()),
        }
    }

    /// Returns true if the client takes an event without a message for one. The first versions
    /// were not named in requests.
    pub(super) fn predates_empty_events(&self) -> bool {
        self.version().is_none_or(|version| version < ProtocolVersion::V_2025_11_25.as_str())
    }

    pub(super) fn user_agent(&self) -> Option<&'a str> {
        self.headers.get(header::USER_AGENT)?.to_str().ok()
    }

    pub(super) fn last_event_id(&self) -> HeaderField<'a> {
        HeaderField::new(self.headers, &LAST_EVENT_ID)
    }

    /// Returns true if the body has this media type.
    pub(super) fn has_content_type(&self, media_type: &str) -> bool {
        let value = HeaderField::new(self.headers, &header::CONTENT_TYPE).text();
        value.is_some_and(|value| is_media_type(value, media_type))
    }

    /// Returns true if the client accepts a response of this media type.
    pub(super) fn accepts(&self, media_type: &str) -> bool {
        let values = self.headers.get_all(header::ACCEPT).iter();
        let mut ranges =
            values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        ranges.any(|range| is_media_type(range, media_type) && !has_zero_weight(range))
    }
}

/// Returns true if a media type is this one, with any parameters.
fn is_media_type(value: &str, media_type: &str) -> bool {
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
}

/// Returns true if a media range is excluded (RFC 9110, section 12.4.2).
fn has_zero_weight(range: &str) -> bool {
    let mut parameters = range.split(';').skip(1).filter_map(|it| it.split_once('='));
    parameters.any(|(name, weight)| {
        name.trim().eq_ignore_ascii_case("q") && weight.trim().parse::<f32>() == Ok(0.0)
    })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;
    use crate::server::http::responses::{EVENT_STREAM, JSON};

    fn headers(fields: &[(HeaderName, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn gives_no_value_to_repeated_fields() {
        for (values, expected) in [
            (&[][..], HeaderField::Missing),
            (&[&b"a"[..]], HeaderField::Text("a")),
            (&[b"a", b"a"], HeaderField::Invalid),
            (&[b"\xff"], HeaderField::Invalid),
        ] {
            let fields: Vec<_> = values.iter().map(|value| (SESSION_ID, *value)).collect();
            assert_eq!(RequestHead::new(&headers(&fields)).session, expected, "{values:?}");
        }
    }

    #[test]
    fn reads_the_protocol_version() {
        for (versions, is_valid, is_modern, predates_empty_events) in [
            (&[][..], true, false, true),
            (&["2025-06-18"], true, false, true),
            (&["2025-11-25"], true, false, false),
            (&["2026-07-28"], true, true, false),
            (&["1999-01-01"], false, false, true),
            (&["2026-07-28", "2026-07-28"], false, false, true),
        ] {
            let fields: Vec<_> =
                versions.iter().map(|version| (PROTOCOL_VERSION, version.as_bytes())).collect();
            let headers = headers(&fields);
            let head = RequestHead::new(&headers);
            assert_eq!(head.check_version(false).is_ok(), is_valid, "{versions:?}");
            assert_eq!(
                (head.is_modern(), head.predates_empty_events()),
                (is_modern, predates_empty_events),
                "{versions:?}"
            );
        }
    }

    #[test]
    fn matches_media_types() {
        let accepts = |values: &[&str], media_type| {
            let fields: Vec<_> = values.iter().map(|it| (header::ACCEPT, it.as_bytes())).collect();
            RequestHead::new(&headers(&fields)).accepts(media_type)
        };
        let both = ["text/event-stream ;charset=utf-8, Application/JSON;q=0.5"];
        assert!(accepts(&both, JSON) && accepts(&both, EVENT_STREAM));
        assert!(accepts(&["text/plain", "application/json"], JSON));
        for values in [&[][..], &["*/*"], &["application/json;q=0"], &["application/json; Q=0.00"]]
        {
            assert!(!accepts(values, JSON), "{values:?}");
        }
        let has_json = |value: &str| {
            let headers = headers(&[(header::CONTENT_TYPE, value.as_bytes())]);
            RequestHead::new(&headers).has_content_type(JSON)
        };
        assert!(has_json("application/json; charset=utf-8") && !has_json("text/json"));
    }
}
