//! References to environment variables in the configuration of a server: `${NAME}`, and
//! `${NAME:-default}` for a variable that may be missing. `$${` is a literal `${`.
//!
//! **Invariant:** the value of a variable is inserted as it is, and not searched for references.

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TextPart<'t> {
    Literal(&'t str),
    Variable { name: &'t str, default: Option<&'t str> },
}

/// Splits a text into literals and references. What looks like a reference and has no valid name is
/// a literal.
pub(super) fn parse_references(text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            parts.extend([TextPart::Literal(&rest[..at - 1]), TextPart::Literal("${")]);
            rest = &rest[at + 2..];
            continue;
        }
        let Some((reference, end)) = parse_reference(&rest[at..]) else {
            parts.push(TextPart::Literal(&rest[..at + 2]));
            rest = &rest[at + 2..];
            continue;
        };
        parts.extend([TextPart::Literal(&rest[..at]), reference]);
        rest = &rest[at + end..];
    }
    parts.push(TextPart::Literal(rest));
    parts.retain(|part| *part != TextPart::Literal(""));
    parts
}

/// Parses a reference at the start of a text; returns its length.
fn parse_reference(text: &str) -> Option<(TextPart<'_>, usize)> {
    let end = text.find('}')?;
    let inner = &text[2..end];
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    is_variable_name(name).then_some((TextPart::Variable { name, default }, end + 1))
}

/// Whether a text can be the name of an environment variable.
pub(super) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the names of the variables without which a text has no value.
pub(super) fn required_variables(text: &str) -> impl Iterator<Item = &str> {
    parse_references(text).into_iter().filter_map(|part| match part {
        TextPart::Variable { name, default: None } => Some(name),
        _ => None,
    })
}

/// Inserts the values of the variables; a missing one without a default is empty.
pub(super) fn expand_references(text: &str, var: impl Fn(&str) -> Option<String>) -> String {
    let value = |part| match part {
        TextPart::Literal(text) => text.to_owned(),
        TextPart::Variable { name, default } => {
            let value = var(name).filter(|value| !value.is_empty());
            value.unwrap_or_else(|| default.unwrap_or_default().to_owned())
        }
    };
    parse_references(text).into_iter().map(value).collect()
}

/// Escapes a text, so that it holds no references.
pub(super) fn escape_references(text: &str) -> String {
    text.replace("${", "$${")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_expanded() {
        let var = |name: &str| (name == "A").then(|| "${B}".to_owned());
        for (text, expected) in [
            ("", ""),
            ("x${A}y", "x${B}y"),
            ("${A:-d}${B:-d e}${B:-}", "${B}d e"),
            ("${B}", ""),
            ("$${A} $A $$ ${", "${A} $A $$ ${"),
            ("${a b}${}${1}", "${a b}${}${1}"),
            ("${A", "${A"),
            ("$${A}${A}", "${A}${B}"),
        ] {
            assert_eq!(expand_references(text, var), expected, "{text}");
        }
        for text in ["${A}", "a${", "$${x}", "${A:-b}"] {
            assert_eq!(expand_references(&escape_references(text), var), text);
        }
    }

    #[test]
    fn a_default_makes_a_variable_optional() {
        let names: Vec<_> = required_variables("${A}${B:-x}$${C}${D}").collect();
        assert_eq!(names, ["A", "D"]);
    }
}
