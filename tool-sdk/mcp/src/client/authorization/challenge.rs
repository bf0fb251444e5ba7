//! Parses the `WWW-Authenticate` header of a response that asks for authorization (RFC 9110, 6750).
//!
//! **Invariant:** what a server writes is bounded, and a malformed part is skipped, not guessed.

/// The longest header that is parsed, in bytes.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// How many scopes of one challenge are used.
const MAX_SCOPES: usize = 100;

/// A challenge of the scheme `Bearer`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BearerChallenge {
    /// The URL of the protected-resource metadata.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub(super) scopes: Vec<String>,
    /// The code of the error, such as `insufficient_scope`.
    pub(super) error: Option<String>,
}

impl BearerChallenge {
    /// Parses a header, which may contain challenges of several schemes. Without a `Bearer`
    /// challenge the result is empty.
    pub(super) fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        if header.len() > MAX_HEADER_BYTES {
            return challenge;
        }
        let mut is_bearer = false;
        for part in split_outside_quotes(header) {
            let (scheme, parameter) = split_scheme(part);
            if let Some(scheme) = scheme {
                is_bearer = scheme.eq_ignore_ascii_case("bearer");
            }
            if let (true, Some((name, value))) = (is_bearer, parse_parameter(parameter)) {
                challenge.set_parameter(&name, value);
            }
        }
        challenge
    }

    /// Whether the token lacks scopes.
    pub(super) fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// Sets a parameter; the first one of a name counts.
    fn set_parameter(&mut self, name: &str, value: String) {
        match name {
            "resource_metadata" => {
                self.resource_metadata.get_or_insert(value);
            }
            "error" => {
                self.error.get_or_insert(value);
            }
            "scope" if self.scopes.is_empty() => self.scopes = split_scopes(&value),
            _ => {}
        }
    }
}

/// Splits a list of scopes at blanks; each counts once, and only characters of RFC 6749 do.
pub(super) fn split_scopes(text: &str) -> Vec<String> {
    merge_scopes(text.split_ascii_whitespace())
}

/// Returns the valid scopes of `all`, each once, in order.
pub(super) fn merge_scopes<'a>(all: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let is_valid = |scope: &str| {
        !scope.is_empty() && scope.bytes().all(|c| matches!(c, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
    };
    let mut merged: Vec<String> = Vec::new();
    for scope in all.into_iter().filter(|scope| is_valid(scope)) {
        if merged.len() < MAX_SCOPES && !merged.iter().any(|known| known == scope) {
            merged.push(scope.to_owned());
        }
    }
    merged
}

/// Splits at commas that are not inside a quoted string.
fn split_outside_quotes(header: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    header.split(move |c: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match c {
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            '"' if !was_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        c == ',' && !is_quoted
    })
}

/// Splits a part into the scheme, if it begins with one, and the parameter.
fn split_scheme(part: &str) -> (Option<&str>, &str) {
    let part = part.trim();
    let end = part.find(|c: char| c == '=' || c.is_ascii_whitespace()).unwrap_or(part.len());
    let rest = part[end..].trim_start();
    match rest.starts_with('=') {
        true => (None, part),
        false => (Some(&part[..end]), rest),
    }
}

/// Parses `name=value` or `name="value"`; the name in lower case.
fn parse_parameter(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let value = value.trim();
    let value = match value.strip_prefix('"') {
        Some(quoted) => unescape_quoted(quoted.strip_suffix('"')?),
        None => value.to_owned(),
    };
    Some((name.trim().to_ascii_lowercase(), value))
}

/// Removes the backslashes of a quoted string.
fn unescape_quoted(quoted: &str) -> String {
    let mut text = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_bearer_among_other_schemes() {
        let header = r#"Basic realm="a, b", Bearer error="insufficient_scope" , scope = "files:read files:write files:read", Resource_Metadata="https://a.example/x\"y", DPoP algs="ES256""#;
        let challenge = BearerChallenge::parse(header);
        assert!(challenge.is_insufficient_scope());
        assert_eq!(challenge.scopes, ["files:read", "files:write"]);
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://a.example/x\"y"));
    }

    #[test]
    fn malformed_challenges_are_empty() {
        for header in [
            "",
            "Bearer",
            "bearer ,,",
            "Bearer scope",
            "Bearer scope=\"unclosed",
            "Basic scope=\"a\"",
            "Bearer scope=\"\u{fc} \\\\ \"",
        ] {
            assert_eq!(BearerChallenge::parse(header), BearerChallenge::default(), "{header}");
        }
        assert_eq!(BearerChallenge::parse("bearer scope=a").scopes, ["a"]);
        let long = format!("Bearer scope=\"{}\"", "a ".repeat(9000));
        assert_eq!(BearerChallenge::parse(&long), BearerChallenge::default());
        let many: Vec<String> = (0..200).map(|nth| nth.to_string()).collect();
        assert_eq!(split_scopes(&many.join(" ")).len(), MAX_SCOPES);
    }
}
