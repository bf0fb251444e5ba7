//! Values that are written as text: durations, sizes, names, summaries.
//!
//! **Invariant:** plain functions over strings; no tokens.

/// Milliseconds of `10s`, `2m`, `1h` or `500ms`.
pub(super) fn duration_ms(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Bytes of `64 KiB`, `10 KB`, `1 MiB`, `100 B` or `4096`.
pub(super) fn size_bytes(text: &str) -> Option<usize> {
    let (number, unit) = split_unit(text)?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "KB" | "kB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    usize::try_from(number.checked_mul(factor)?).ok()
}

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

/// The rules for names, for messages; kept in step with the runtime's `ToolName`.
pub(super) const NAME_RULE: &str = "1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or _";

/// Whether `name` can be the name of a tool.
pub(super) fn is_tool_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The identifier of a tool's name: as names, identifiers are equal when only the case of
/// letters tells them apart, which leaves upper case for what no identifier can hold.
pub(super) fn name_identifier(name: &str) -> String {
    format!("tool_named_{}", name.to_lowercase().replace('-', "Hyphen"))
}

/// `read_page` as `ReadPage`.
pub(crate) fn camel_case(name: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        first + chars.as_str()
    };
    name.split('_').map(capital).collect()
}

/// A piece of a summary.
#[derive(Debug, PartialEq)]
pub(super) enum SummaryPiece<'t> {
    /// Text, with its braces still doubled.
    Text(&'t str),
    /// `{name}` or `{name:spec}`.
    Value { name: &'t str, spec: &'t str },
}

/// Parses a summary, or returns what is wrong with it.
pub(super) fn parse_summary(summary: &str) -> Result<Vec<SummaryPiece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = summary;
    while let Some(brace) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(brace);
        if from.starts_with("{{") || from.starts_with("}}") {
            pieces.push(SummaryPiece::Text(&rest[..brace + 2]));
            rest = &from[2..];
            continue;
        }
        pieces.push(SummaryPiece::Text(before));
        let inside = from.strip_prefix('{').ok_or("has a `}` without `{`")?;
        let (inside, after) = inside.split_once('}').ok_or("has a `{` without `}`")?;
        pieces.push(parse_placeholder(inside)?);
        rest = after;
    }
    pieces.push(SummaryPiece::Text(rest));
    pieces.retain(|piece| *piece != SummaryPiece::Text(""));
    Ok(pieces)
}

fn parse_placeholder(inside: &str) -> Result<SummaryPiece<'_>, String> {
    let (name, spec) = match inside.find(':') {
        Some(colon) => inside.split_at(colon),
        None => (inside, ""),
    };
    let name = name.trim();
    if let Some(plain) = name.strip_prefix("r#") {
        return Err(format!("must name a parameter without `r#`, as in `{{{plain}}}`"));
    }
    let is_name = !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_name {
        return Err(format!("must name a parameter in `{{{inside}}}`"));
    }
    let format = spec.trim_start_matches(|c: char| !c.is_alphabetic() && c != '?');
    if !matches!(format, "" | "?") {
        return Err(format!("has an unknown format `{format}` in `{{{inside}}}`"));
    }
    if spec.contains(['{', '$', '*']) {
        return Err(format!("must not borrow a width from an argument in `{{{inside}}}`"));
    }
    Ok(SummaryPiece::Value { name, spec })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration_ms("10s"), Some(10_000));
        assert_eq!(duration_ms("2 m"), Some(120_000));
        assert_eq!(duration_ms("500ms"), Some(500));
        for bad in ["10", "s", "1.5s", "-1s", "10 sec", ""] {
            assert_eq!(duration_ms(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_may_have_a_unit() {
        assert_eq!(size_bytes("64 KiB"), Some(65_536));
        assert_eq!(size_bytes("10 KB"), Some(10_000));
        assert_eq!(size_bytes("4096"), Some(4096));
        for bad in ["KiB", "64 kib", "1.5 MB", "99999999999999999999"] {
            assert_eq!(size_bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_follow_the_runtime() {
        for good in ["a", "_x", "read_page", "A-1", &"x".repeat(64)] {
            assert!(is_tool_name(good), "{good}");
        }
        for bad in ["", "1a", "-a", "a b", "é", &"x".repeat(65)] {
            assert!(!is_tool_name(bad), "{bad}");
        }
    }

    #[test]
    fn names_that_differ_only_in_case_have_one_identifier() {
        assert_eq!(name_identifier("Look-Up"), "tool_named_lookHyphenup");
        assert_eq!(name_identifier("look-up"), name_identifier("LOOK-UP"));
        assert_ne!(name_identifier("look-up"), name_identifier("look_up"));
        assert_ne!(name_identifier("look-up"), name_identifier("lookhyphenup"));
    }

    #[test]
    fn words_become_a_type_name() {
        assert_eq!(camel_case("read_page"), "ReadPage");
        assert_eq!(camel_case("_x2_y"), "X2Y");
        assert_eq!(camel_case("readPage"), "ReadPage");
    }

    #[test]
    fn a_summary_has_text_and_values() {
        assert_eq!(
            parse_summary("Read {path:>5} {{x}}"),
            Ok(vec![
                SummaryPiece::Text("Read "),
                SummaryPiece::Value { name: "path", spec: ":>5" },
                SummaryPiece::Text(" {{"),
                SummaryPiece::Text("x}}"),
            ])
        );
        for bad in ["{", "}", "{}", "{0}", "{a.b}", "{a:w$}", "{a:{b}}", "{a:huge}", "{a:>5x}"] {
            assert!(parse_summary(bad).is_err(), "{bad}");
        }
    }
}
