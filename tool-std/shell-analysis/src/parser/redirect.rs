//! Parses redirections and heredocs.

use super::{BracketKind, OpaqueReason, RedirectedFile, ScriptParser, ShellWord};

/// A redirection that waits for its target.
#[derive(Clone, Copy, Debug)]
pub(super) enum RedirectKind {
    Read,
    Write,
    /// A here-string.
    HereString,
}

/// A heredoc whose body follows the current line.
#[derive(Debug)]
pub(super) struct PendingHeredoc {
    delimiter: String,
    /// Whether the delimiter is quoted, so that nothing in the body is expanded.
    is_literal: bool,
    /// Whether leading tabs are removed (`<<-`).
    drops_tabs: bool,
}

impl ScriptParser<'_> {
    /// Parses an operator that begins with `<`, `>` or `&>`.
    pub(super) fn parse_redirect(&mut self) -> Result<(), OpaqueReason> {
        let rest = self.remaining();
        let is_free =
            self.current_frame().word.is_none() && self.current_frame().pending_redirect.is_none();
        if rest.starts_with("<(") && is_free {
            return self.open_bracket(BracketKind::Process, 2);
        }
        if rest.starts_with('&') {
            self.end_word()?
        } else {
            self.end_descriptor()?
        }
        if self.current_frame().pending_redirect.is_some() {
            return Err(OpaqueReason::Operator);
        }
        self.current_frame().has_redirect = true;
        let (redirect, length) = match rest.as_bytes() {
            [b'<' | b'>', b'(', ..] => return Err(OpaqueReason::ProcessSubstitution),
            [b'<', b'<', b'<', ..] => (RedirectKind::HereString, 3),
            [b'<', b'<', ..] => return self.parse_heredoc(),
            [b'<', b'&' | b'>', ..] => return Err(OpaqueReason::Descriptor),
            [b'<', ..] => (RedirectKind::Read, 1),
            [b'>', b'&', b'1' | b'2', ..] if ends_word(&rest[3..]) => {
                self.pos += 3;
                return Ok(());
            }
            [b'>', b'&', ..] => return Err(OpaqueReason::Descriptor),
            [b'&', b'>', b'>', ..] => (RedirectKind::Write, 3),
            [b'&', b'>', ..] | [b'>', b'>' | b'|', ..] => (RedirectKind::Write, 2),
            _ => (RedirectKind::Write, 1),
        };
        self.pos += length;
        // Another operator, or a target with special meaning in another shell.
        if self.remaining().starts_with(['&', '|', '!', '<', '>', '(']) {
            return Err(OpaqueReason::Operator);
        }
        self.current_frame().pending_redirect = Some(redirect);
        Ok(())
    }

    /// Ends the word before `<` or `>`; a number is the redirected descriptor.
    fn end_descriptor(&mut self) -> Result<(), OpaqueReason> {
        let number = self
            .current_frame()
            .word
            .as_ref()
            .filter(|word| !word.is_quoted)
            .map(|word| word.value());
        match number {
            Some("0" | "1" | "2") => {
                self.current_frame().word = None;
                Ok(())
            }
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) || text.ends_with('}') => {
                Err(OpaqueReason::Descriptor)
            }
            _ => self.end_word(),
        }
    }

    /// Records the target of a redirection.
    pub(super) fn record_target(
        &mut self,
        redirect: RedirectKind,
        word: &ShellWord,
    ) -> Result<(), OpaqueReason> {
        let value = word.value.as_str();
        if value.starts_with("/dev/tcp/") || value.starts_with("/dev/udp/") {
            return Err(OpaqueReason::Network);
        }
        if matches!(redirect, RedirectKind::HereString) {
            self.parsed.inputs.push(value.to_owned());
            return if word.has_parameter { Err(OpaqueReason::Parameter) } else { Ok(()) };
        }
        if !word.is_literal() || value.is_empty() {
            return Err(OpaqueReason::UnknownTarget);
        }
        if value != "/dev/null" {
            let is_written = matches!(redirect, RedirectKind::Write);
            let path = value.to_owned();
            self.current_frame().files.push(RedirectedFile {
                path,
                is_written,
                own_commands: 0..0,
                opened_before: usize::MAX,
            });
        }
        Ok(())
    }

    /// Parses `<<` or `<<-` and the delimiter.
    fn parse_heredoc(&mut self) -> Result<(), OpaqueReason> {
        self.pos += 2;
        let drops_tabs = self.remaining().starts_with('-');
        self.pos += usize::from(drops_tabs);
        let rest = self.remaining();
        let word = rest.trim_start_matches([' ', '\t']);
        let (opening, closing) = match word.chars().next() {
            Some('\'') => ("'", "'"),
            Some('"') => ("\"", "\""),
            Some('\\') => ("\\", ""),
            _ => ("", ""),
        };
        let named = &word[opening.len()..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let delimiter = &named[..named.find(|c| !is_part(c)).unwrap_or(named.len())];
        let after = named[delimiter.len()..].strip_prefix(closing).ok_or(OpaqueReason::Heredoc)?;
        if delimiter.is_empty() || !ends_word(after) {
            return Err(OpaqueReason::Heredoc);
        }
        self.pos += rest.len() - after.len();
        self.current_frame().heredocs.push(PendingHeredoc {
            delimiter: delimiter.to_owned(),
            is_literal: !opening.is_empty(),
            drops_tabs,
        });
        Ok(())
    }

    /// Reads the body of a heredoc, from the start of a line.
    pub(super) fn read_heredoc_body(
        &mut self,
        heredoc: &PendingHeredoc,
    ) -> Result<(), OpaqueReason> {
        let start = self.pos;
        loop {
            let rest = self.remaining();
            if rest.is_empty() {
                return Err(OpaqueReason::Heredoc);
            }
            let line = rest.split('\n').next().unwrap_or_default();
            let shown = if heredoc.drops_tabs { line.trim_start_matches('\t') } else { line };
            if shown == heredoc.delimiter {
                self.parsed.inputs.push(self.text[start..self.pos].to_owned());
                self.pos = self.text.len().min(self.pos + line.len() + 1);
                return Ok(());
            }
            // Versions of bash differ about a line that only begins with the delimiter.
            if shown.starts_with(&heredoc.delimiter) {
                return Err(OpaqueReason::Heredoc);
            }
            if !heredoc.is_literal && line.contains(['$', '`', '\\']) {
                return Err(OpaqueReason::Heredoc);
            }
            self.pos = self.text.len().min(self.pos + line.len() + 1);
        }
    }
}

/// Whether a word ends before `rest`.
fn ends_word(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '&', '|', ')', '<', '>'])
}
