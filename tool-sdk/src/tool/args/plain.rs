//! Arguments that nobody can understand in two ways, told at a glance: one object of texts,
//! each written without escapes by number, and no key twice.
//!
//! **Invariant:** a no means nothing; whoever gets it reads the text with care.

use crate::escape::plain_json_string_len;

/// So few keys that comparing them all takes no time.
const FEW: usize = 16;

/// Whether the text is such an object.
pub(super) fn is_plain(text: &str) -> bool {
    let Some(mut rest) = text.strip_prefix('{') else { return false };
    let mut keys = Vec::new();
    while keys.len() < FEW {
        let Some((key, behind)) = member(rest) else { return false };
        // A key with escapes may be another key in disguise.
        if key.contains('\\') || keys.contains(&key) {
            return false;
        }
        keys.push(key);
        match behind.strip_prefix(',') {
            Some(behind) => rest = behind,
            None => return behind == "}",
        }
    }
    false
}

/// The key of the member at the start of `text`, and what comes behind its value.
fn member(text: &str) -> Option<(&str, &str)> {
    let (key, behind) = plain_text(text)?;
    let (_, behind) = plain_text(behind.strip_prefix(':')?)?;
    Some((key, behind))
}

fn plain_text(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix(' ').unwrap_or(text);
    Some(text.split_at(plain_json_string_len(text)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::json::Json;
    use super::*;

    #[test]
    fn only_objects_of_texts_are_plain() {
        for text in [r#"{"a":"b"}"#, r#"{"a": "b\n", "c": "\"é"}"#] {
            assert!(is_plain(text), "{text}");
        }
        let many: Vec<_> = (0..=FEW).map(|at| format!("\"{at}\":\"\"")).collect();
        let many = format!("{{{}}}", many.join(","));
        for text in [
            "",
            "{}",
            "\"a\"",
            r#"{"a":"b"} "#,
            r#"{"a":"b"}{"#,
            r#"{"a":"b",}"#,
            r#"{"a":"b","a":"c"}"#,
            r#"{"a":"b","\u0061":"c"}"#,
            r#"{"/":"b","\/":"c"}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":1}"#,
            r#"{"a":{}}"#,
            r#"{"a":"b"#,
            "{\"a\":\"\u{1}\"}",
            &many,
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_plain_is_strict(text in r#"\{( ?"[ab/\\n]{0,2}" ?: ?"[a\\nu"]{0,3}" ?,?){0,3}[} ]{0,2}"#) {
            prop_assert!(!is_plain(&text) || Json::parse_arguments(&text).is_ok(), "{}", text);
        }
    }
}
