//! Prints Markdown line by line while it arrives: headings, code, emphasis.
//!
//! **Invariant:** control characters of the model's text never reach the terminal.

use crate::style::{self, TextStyle};

/// A printer of streamed Markdown. A line is styled when it is complete.
#[derive(Debug)]
pub(super) struct MarkdownPrinter {
    style: TextStyle,
    line: String,
    is_in_code: bool,
}

impl MarkdownPrinter {
    pub(super) fn new(style: TextStyle) -> Self {
        Self { style, line: String::new(), is_in_code: false }
    }

    /// Adds text, and returns what is to be printed now.
    pub(super) fn push(&mut self, text: &str) -> String {
        self.line.push_str(text);
        let Some(end) = self.line.rfind('\n') else { return String::new() };
        let whole: String = self.line.drain(..=end).collect();
        whole.lines().map(|line| self.style_line(line) + "\n").collect()
    }

    /// Ends the message, and returns what is to be printed of its last line.
    pub(super) fn finish(&mut self) -> String {
        let line = std::mem::take(&mut self.line);
        let rest = if line.is_empty() { String::new() } else { self.style_line(&line) + "\n" };
        self.is_in_code = false;
        rest
    }

    fn style_line(&mut self, line: &str) -> String {
        let line = style::escape_text(line);
        if line.trim_start().starts_with("```") {
            self.is_in_code = !self.is_in_code;
            return self.style.dim(&line).into_owned();
        }
        if self.is_in_code {
            return self.style.code(&line).into_owned();
        }
        if line.starts_with('#') {
            return self.style.bold(&line).into_owned();
        }
        self.style_spans(&line)
    }

    /// Styles `code` and **emphasis** within a line; the marks stay, so that the text can be copied.
    fn style_spans(&self, line: &str) -> String {
        let mut styled = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(start) = rest.find(['`', '*']) {
            let mark = if rest[start..].starts_with("**") { "**" } else { &rest[start..=start] };
            let inside = &rest[start + mark.len()..];
            let end = inside.find(mark).filter(|end| *end > 0 && mark != "*");
            let Some(end) = end else {
                styled.push_str(&rest[..start + mark.len()]);
                rest = inside;
                continue;
            };
            styled.push_str(&rest[..start]);
            let span = &rest[start..start + end + 2 * mark.len()];
            styled += &match mark {
                "`" => self.style.code(span),
                _ => self.style.bold(span),
            };
            rest = &inside[end + mark.len()..];
        }
        styled + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(style: TextStyle, parts: &[&str]) -> String {
        let mut printer = MarkdownPrinter::new(style);
        let printed: String = parts.iter().map(|part| printer.push(part)).collect();
        printed + &printer.finish()
    }

    #[test]
    fn without_colours_the_text_stays_as_it_is() {
        let parts =
            ["# He", "ading\nSome `code` and **bold", "**.\n```rust\nlet a = *b;\n```\nEnd"];
        let text = parts.concat() + "\n";
        assert_eq!(print(TextStyle::plain(), &parts), text);
    }

    #[test]
    fn spans_and_blocks_are_styled() {
        let printed = print(TextStyle::coloured(), &["a `b` **c** 2 * 3 * 4\n```\nx\n```\n"]);
        assert_eq!(
            printed,
            "a \x1b[36m`b`\x1b[0m \x1b[1m**c**\x1b[0m 2 * 3 * 4\n\x1b[2m```\x1b[0m\n\
             \x1b[36mx\x1b[0m\n\x1b[2m```\x1b[0m\n"
        );
    }

    #[test]
    fn escape_sequences_of_the_model_are_spelt_out() {
        assert_eq!(print(TextStyle::plain(), &["\x1b[2Jgone"]), "\\u{1b}[2Jgone\n");
    }
}
