//! Finds the names in quoted types of Python, such as `"Frame"` in `parent: Optional["Frame"]`.
//!
//! **Invariant:** text that is not a type, such as the words of `Annotated[int, "in metres"]`, has no names.

use std::ops::Range;

use tree_sitter::{Node, Point};

/// Returns the bytes and the place of each name in the quoted parts of a type. Types inside of it have
/// captures of their own.
pub(crate) fn quoted_names(node: Node<'_>, text: &str) -> Vec<(Range<usize>, Point)> {
    let (mut names, mut rest) = (Vec::new(), vec![node]);
    while let Some(part) = rest.pop() {
        if part.kind() == "string_content" {
            let quoted = text.get(part.byte_range()).unwrap_or_default();
            let (start, Point { row, column }) = (part.start_byte(), part.start_position());
            names.extend(names_in_type(quoted).map(|name| {
                // A type in quotes has no line ends.
                let place = Point { row, column: column + name.start };
                (start + name.start..start + name.end, place)
            }));
        }
        if is_literal(part, text) {
            continue;
        }
        let mut cursor = part.walk();
        rest.extend(part.children(&mut cursor).filter(|child| child.kind() != "type"));
    }
    names
}

/// Whether the strings of a type are values, as those of `Literal["w", "r"]`.
fn is_literal(node: Node<'_>, text: &str) -> bool {
    matches!(node.kind(), "subscript" | "generic_type")
        && node
            .child(0)
            .and_then(|generic| text.get(generic.byte_range()))
            .is_some_and(|name| name.rsplit('.').next() == Some("Literal"))
}

/// Returns the names in the text of a type; none if it is not a type.
fn names_in_type(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_type =
        text.chars().all(|c| is_name(c) || ".,|[] '\"".contains(c)) && !has_two_words(text);
    let text = if is_type { text } else { "" };
    let starts = text
        .char_indices()
        .filter(move |(at, c)| is_name(*c) && !c.is_numeric() && !text[..*at].ends_with(is_name));
    starts.map(move |(start, _)| {
        let length = text[start..].find(|c| !is_name(c)).unwrap_or(text.len() - start);
        start..start + length
    })
}

/// Whether two words follow each other, as in a sentence.
fn has_two_words(text: &str) -> bool {
    text.split([',', '|', '[', ']']).any(|part| part.split_whitespace().nth(1).is_some())
}

#[cfg(test)]
mod tests {
    use super::names_in_type;

    #[test]
    fn names_of_types_are_found() {
        for (text, names) in [
            ("Frame", &["Frame"][..]),
            ("t.Union[V, Undefined]", &["t", "Union", "V", "Undefined"]),
            ("dict[str, int | None]", &["dict", "str", "int", "None"]),
            ("_Größe2", &["_Größe2"]),
            ("in metres", &[]),
            ("utf-8", &[]),
            ("", &[]),
        ] {
            let found: Vec<&str> = names_in_type(text).map(|name| &text[name]).collect();
            assert_eq!(found, names, "{text}");
        }
    }
}
