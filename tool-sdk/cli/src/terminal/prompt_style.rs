//! Colours of approval prompts.
//!
//! A colour follows from the line of the prompt before it is wrapped, so a row that continues a
//! line has the colour of the line and not that of its own first letter.
//!
//! **Invariant:** without the escape sequences, the text is that of `wrap_text`.

use tool_sdk_core::internal::wrap_rows;

use crate::style::TextStyle;

/// The start of every line of foreign text.
const FRAME: &str = "  | ";
/// The label of the lines of a diff.
const PREVIEW: &str = "preview";

/// Wraps a prompt to the terminal, with bold labels, yellow warnings and a diff in colours.
pub(super) fn style_prompt(text: &str, columns: u16, style: TextStyle) -> String {
    let mut styled = String::with_capacity(text.len());
    let mut label = "";
    for line in text.lines() {
        let paint: &dyn Fn(&str) -> String = match line.strip_prefix(FRAME) {
            Some(content) if label == PREVIEW => &|row| style.diff_line(content, row),
            Some(_) => &str::to_owned,
            None if line.starts_with("warning: ") => &|row| style.warning(row).into_owned(),
            None => &|row| style.bold(row).into_owned(),
        };
        for row in wrap_rows(line, columns).lines() {
            match row.strip_prefix(FRAME) {
                Some(content) => styled.extend([FRAME, &paint(content)]),
                None => styled += &paint(row),
            }
            styled.push('\n');
        }
        if !line.starts_with(FRAME) {
            label = line;
        }
    }
    styled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_colour_of_its_line() {
        let text = "tool t\n  | +a\npreview\n  | @@ -1 +1 @@\n  | -one+two\n  | +x\nwarning: w\n";
        let plain = style_prompt(text, 10, TextStyle::plain());
        assert_eq!(plain, wrap_rows(text, 10));
        let styled = style_prompt(text, 10, TextStyle::coloured());
        assert!(
            styled.starts_with("\x1b[1mtool t\x1b[0m\n  | +a\n\x1b[1mpreview\x1b[0m\n"),
            "{styled:?}"
        );
        assert!(
            styled.contains("  | \x1b[31m-one+\x1b[0m\n  | \x1b[31mtwo\x1b[0m\n"),
            "{styled:?}"
        );
        assert!(styled.contains("  | \x1b[32m+x\x1b[0m\n"), "{styled:?}");
    }
}
