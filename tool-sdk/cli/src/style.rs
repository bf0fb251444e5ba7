//! Text formatting for the terminal: styles, escaping of control characters, shell quoting.

use std::borrow::Cow;
use std::ffi::OsString;

#[cfg(feature = "mcp")]
use tool_sdk_core::Risk;

use super::Io;

/// The text style; without colours it changes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextStyle {
    is_enabled: bool,
}

/// When colours are used (`--color`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ColorChoice {
    /// On a terminal that supports them, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorChoice {
    pub(super) const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// Returns the last `--color` among the words, or else that of the variable, before the words
    /// are parsed, because errors in them are coloured, too. The parser reports invalid values.
    pub(super) fn from_words(words: &[OsString], io: &Io<'_>) -> Self {
        let mut given = io.env_var("TOOL_SDK_COLOR").and_then(|text| text.into_string().ok());
        let mut words = words.iter().filter_map(|word| word.to_str()).take_while(|it| *it != "--");
        while let Some(word) = words.next() {
            match word.strip_prefix("--color") {
                Some("") => given = words.next().map(str::to_owned),
                Some(value) if value.starts_with('=') => given = Some(value[1..].to_owned()),
                _ => {}
            }
        }
        let choice = Self::ALL.into_iter().find(|choice| given.as_deref() == Some(choice.as_str()));
        choice.unwrap_or_default()
    }
}

impl TextStyle {
    /// Returns the style for standard output.
    pub(super) fn for_stdout(io: &Io<'_>) -> Self {
        Self::for_stream(io.stdout_is_terminal, io)
    }

    /// Returns the style for standard error, and for prompts.
    pub(super) fn for_stderr(io: &Io<'_>) -> Self {
        Self::for_stream(io.stderr_is_terminal, io)
    }

    fn for_stream(is_terminal: bool, io: &Io<'_>) -> Self {
        let is_enabled = match io.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                is_terminal && io.env_var("NO_COLOR").is_none() && !is_dumb_terminal(io)
            }
        };
        Self { is_enabled }
    }

    /// The style without colours.
    #[cfg(test)]
    pub(super) const fn plain() -> Self {
        Self { is_enabled: false }
    }

    /// The style with colours.
    #[cfg(test)]
    pub(super) const fn coloured() -> Self {
        Self { is_enabled: true }
    }

    pub(super) fn bold<'t>(self, text: &'t str) -> Cow<'t, str> {
        self.wrap_code("1", text)
    }

    pub(super) fn dim<'t>(self, text: &'t str) -> Cow<'t, str> {
        self.wrap_code("2", text)
    }

    #[cfg_attr(not(feature = "agent"), expect(dead_code, reason = "only the chat shows code"))]
    pub(super) fn code<'t>(self, text: &'t str) -> Cow<'t, str> {
        self.wrap_code("36", text)
    }

    pub(super) fn warning<'t>(self, text: &'t str) -> Cow<'t, str> {
        self.wrap_code("33", text)
    }

    /// Colours `row`, a part of the line `line` of a unified diff.
    pub(super) fn diff_line(self, line: &str, row: &str) -> String {
        let code = match line.as_bytes().first() {
            _ if line.starts_with("--- ") || line.starts_with("+++ ") => "1",
            Some(b'+') => "32",
            Some(b'-') => "31",
            Some(b'@') => "36",
            _ => return row.to_owned(),
        };
        self.wrap_code(code, row).into_owned()
    }

    /// Colours the word with which a message for people starts.
    pub(super) fn message(self, line: &str) -> Cow<'_, str> {
        if !self.is_enabled {
            return line.into();
        }
        let words = [("error:", "1;31"), ("warning:", "1;33"), ("hint:", "1;36"), ("cause:", "1")];
        let paint = |line: &str| match words.iter().find(|(word, _)| line.starts_with(word)) {
            Some((word, code)) => {
                format!("{}{}", self.wrap_code(code, word), &line[word.len()..])
            }
            None => line.to_owned(),
        };
        line.split('\n').map(paint).collect::<Vec<_>>().join("\n").into()
    }

    fn wrap_code<'t>(self, code: &str, text: &'t str) -> Cow<'t, str> {
        if self.is_enabled { format!("\x1b[{code}m{text}\x1b[0m").into() } else { text.into() }
    }
}

/// Whether the terminal supports no escape sequences (`TERM=dumb`).
pub(super) fn is_dumb_terminal(io: &Io<'_>) -> bool {
    io.env_var("TERM").is_some_and(|term| term == "dumb")
}

/// Replaces control and invisible characters by U+FFFD, so that foreign text can neither move the
/// cursor nor look different from what it is.
pub(super) fn sanitize_text(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return text.into();
    }
    text.chars().map(|c| if is_printable(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Like [`sanitize_text`], but escapes these characters.
pub(super) fn escape_text(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_printable(c) { out.push(c) } else { out.extend(c.escape_default()) }
    }
    out.into()
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | '\t') || !c.is_control() && !is_invisible(c)
}

/// Whether a character has no width or changes the text direction.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Joins the lines of each paragraph, so that clap can wrap them. Code, lists, headings and tables
/// keep their lines.
pub(super) fn join_paragraphs(text: &str) -> String {
    const CODE: usize = 4;
    let (mut out, mut fenced, mut goes_on) = (String::with_capacity(text.len()), false, false);
    for line in text.lines() {
        let words = line.trim_start();
        let is_fence = words.starts_with("```");
        let is_open = !fenced && !is_fence && line.len() - words.len() < CODE;
        match goes_on && is_open && continues_paragraph(words) {
            true => out.extend([" ", words]),
            false => out.extend([if out.is_empty() { "" } else { "\n" }, line]),
        }
        fenced ^= is_fence;
        goes_on = is_open && !words.is_empty() && !words.starts_with(['#', '|']);
    }
    out
}

/// Whether a line continues a paragraph: not empty, no list item, heading, quote or table row.
fn continues_paragraph(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < line.len() && number.starts_with([')', '.']);
    let is_marked = ["- ", "* ", "+ ", "#", "|", ">"].iter().any(|mark| line.starts_with(mark));
    !line.is_empty() && !is_numbered && !is_marked
}

/// Returns the first sentence on one line, at most 160 characters.
pub(super) fn first_sentence(text: &str) -> String {
    const MAX: usize = 160;
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default();
    let mut line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(end) = line.find(". ") {
        line.truncate(end + 1);
    }
    match line.char_indices().nth(MAX) {
        Some((cut, _)) => format!("{}…", sanitize_text(&line[..cut])),
        None => sanitize_text(&line).into_owned(),
    }
}

/// Cuts a line to this many characters, with an ellipsis.
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers have tables"))]
pub(super) fn cut_line(line: &str, width: usize) -> String {
    match line.char_indices().nth(width.saturating_sub(1)) {
        Some((cut, last)) if cut + last.len_utf8() < line.len() => format!("{}…", &line[..cut]),
        _ => line.to_owned(),
    }
}

/// Returns a count with its noun in the singular or plural: `1 note`, `2 notes`.
pub(super) fn count_noun(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Names the risk of a tool, as it is judged here.
#[cfg(feature = "mcp")]
pub(super) fn describe_risk(risk: Risk) -> String {
    let class = risk.class.as_str();
    if risk.destructive { format!("{class} (destructive)") } else { class.to_owned() }
}

/// Quotes `text` as one word for a POSIX shell.
pub(super) fn shell_quote(text: &str) -> Cow<'_, str> {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', r"'\''")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_fits_on_a_line() {
        assert_eq!(first_sentence("Reads a\n  file. Then more."), "Reads a file.");
        assert_eq!(first_sentence("Reads v1.2 files\n\nMore."), "Reads v1.2 files");
        assert_eq!(first_sentence("\x1b[2Jx"), "\u{fffd}[2Jx");
        assert_eq!(first_sentence("a\u{202e}b\u{200b}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(first_sentence(&"x".repeat(500)).chars().count(), 161);
    }

    #[track_caller]
    fn check_unbroken(text: &str, expected: &str) {
        assert_eq!(join_paragraphs(text), expected);
    }

    #[test]
    fn joins_paragraphs_and_keeps_other_lines() {
        check_unbroken("", "");
        check_unbroken("a\nb\n\nc\n(d)\n", "a b\n\nc (d)");
        check_unbroken("of\n3 files\n", "of 3 files");
        check_unbroken("two:\n* a\n  b\n* c\n", "two:\n* a b\n* c");
        check_unbroken("1. a\n2. b\n", "1. a\n2. b");
        check_unbroken("# a\nb\n| c |\n| d |\n", "# a\nb\n| c |\n| d |");
        check_unbroken("a\n\n    b\n    c\n", "a\n\n    b\n    c");
        check_unbroken("a\n```\nb\nc\n```\nd\ne\n", "a\n```\nb\nc\n```\nd e");
    }

    #[test]
    fn quotes_words_for_the_shell() {
        assert_eq!(shell_quote("src/main.rs"), "src/main.rs");
        assert_eq!(shell_quote(""), "''");
        assert_eq!(shell_quote("it's"), r"'it'\''s'");
        assert_eq!(shell_quote("$HOME"), "'$HOME'");
    }

    #[test]
    fn colours_need_a_terminal_without_no_color() {
        let style = |terminal, variable: &'static str| {
            let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
            TextStyle::for_stdout(&Io {
                stdout_is_terminal: terminal,
                env: &|name| (name == variable).then(|| "dumb".into()),
                ..Io::new(&mut stdin, &mut out, &mut err)
            })
        };
        assert_eq!(style(true, "").bold("x"), "\x1b[1mx\x1b[0m");
        assert_eq!(style(true, "").dim("x"), "\x1b[2mx\x1b[0m");
        assert_eq!(style(false, "").bold("x"), "x");
        assert_eq!(style(true, "NO_COLOR").bold("x"), "x");
        assert_eq!(style(true, "TERM").bold("x"), "x");
    }

    #[test]
    fn the_option_decides_over_terminal_and_environment() {
        let choice = |words: &[&str], variable: &str| {
            let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
            let env = |name: &str| (name == "TOOL_SDK_COLOR").then(|| variable.into());
            let io = Io { env: &env, ..Io::new(&mut stdin, &mut out, &mut err) };
            let words: Vec<OsString> = words.iter().map(Into::into).collect();
            ColorChoice::from_words(&words, &io)
        };
        assert_eq!(choice(&["list"], ""), ColorChoice::Auto);
        assert_eq!(choice(&["list", "--color", "always"], "never"), ColorChoice::Always);
        assert_eq!(choice(&["--color=never", "list"], "always"), ColorChoice::Never);
        assert_eq!(choice(&["list", "--", "--color=never"], "always"), ColorChoice::Always);
    }
}
