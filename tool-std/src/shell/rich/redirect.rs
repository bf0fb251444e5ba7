//! Redirections: where output goes, where input comes from.

use super::{Bracket, File, Scanner, Why, Word};

/// A redirection whose target comes next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Redirect {
    Read,
    Write,
    /// A text as input.
    Here,
}

/// A heredoc whose body comes after the line.
#[derive(Debug)]
pub(super) struct Heredoc {
    delimiter: String,
    /// Whether nothing in the body is expanded.
    is_literal: bool,
    /// Whether tabs at the start of its lines are dropped.
    drops_tabs: bool,
}

impl Scanner<'_> {
    /// What begins with `<`, `>` or `&>`.
    pub(super) fn redirect(&mut self) -> Result<(), Why> {
        let rest = self.rest();
        let is_free = self.top().word.is_none() && self.top().redirect.is_none();
        if rest.starts_with("<(") && is_free {
            return self.open(Bracket::Process, 2);
        }
        if rest.starts_with('&') {
            self.end_word()?
        } else {
            self.end_descriptor()?
        }
        if self.top().redirect.is_some() {
            return Err(Why::Operator);
        }
        self.top().redirected = true;
        let (redirect, length) = match rest.as_bytes() {
            [b'<' | b'>', b'(', ..] => return Err(Why::ProcessSubstitution),
            [b'<', b'<', b'<', ..] => (Redirect::Here, 3),
            [b'<', b'<', ..] => return self.heredoc(),
            [b'<', b'&' | b'>', ..] => return Err(Why::Descriptor),
            [b'<', ..] => (Redirect::Read, 1),
            [b'>', b'&', b'1' | b'2', ..] if ends_word(&rest[3..]) => {
                self.at += 3;
                return Ok(());
            }
            [b'>', b'&', ..] => return Err(Why::Descriptor),
            [b'&', b'>', b'>', ..] => (Redirect::Write, 3),
            [b'&', b'>', ..] | [b'>', b'>' | b'|', ..] => (Redirect::Write, 2),
            _ => (Redirect::Write, 1),
        };
        self.at += length;
        // A target of its own in another shell, or an operator that is not known.
        if self.rest().starts_with(['&', '|', '!', '<', '>', '(']) {
            return Err(Why::Operator);
        }
        self.top().redirect = Some(redirect);
        Ok(())
    }

    /// Ends the word before `<` or `>`; a number there says what is redirected.
    fn end_descriptor(&mut self) -> Result<(), Why> {
        let number = self.top().word.as_ref().filter(|word| !word.quoted).map(|word| word.value());
        match number {
            Some("0" | "1" | "2") => {
                self.top().word = None;
                Ok(())
            }
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) || text.ends_with('}') => {
                Err(Why::Descriptor)
            }
            _ => self.end_word(),
        }
    }

    /// Takes the target of a redirection.
    pub(super) fn target(&mut self, redirect: Redirect, word: &Word) -> Result<(), Why> {
        let value = word.value.as_str();
        if value.starts_with("/dev/tcp/") || value.starts_with("/dev/udp/") {
            return Err(Why::Network);
        }
        if matches!(redirect, Redirect::Here) {
            self.scan.inputs.push(value.to_owned());
            return if word.parameter { Err(Why::Parameter) } else { Ok(()) };
        }
        if !word.is_literal() || value.is_empty() {
            return Err(Why::Target);
        }
        if value != "/dev/null" {
            let is_written = matches!(redirect, Redirect::Write);
            let path = value.to_owned();
            self.top().files.push(File { path, is_written, own: None, until: usize::MAX });
        }
        Ok(())
    }

    /// `<<` or `<<-` and the delimiter.
    fn heredoc(&mut self) -> Result<(), Why> {
        self.at += 2;
        let drops_tabs = self.rest().starts_with('-');
        self.at += usize::from(drops_tabs);
        let rest = self.rest();
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
        let after = named[delimiter.len()..].strip_prefix(closing).ok_or(Why::Heredoc)?;
        if delimiter.is_empty() || !ends_word(after) {
            return Err(Why::Heredoc);
        }
        self.at += rest.len() - after.len();
        self.top().heredocs.push(Heredoc {
            delimiter: delimiter.to_owned(),
            is_literal: !opening.is_empty(),
            drops_tabs,
        });
        Ok(())
    }

    /// Reads the body of a heredoc, from the start of a line.
    pub(super) fn body(&mut self, heredoc: &Heredoc) -> Result<(), Why> {
        let start = self.at;
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return Err(Why::Heredoc);
            }
            let line = rest.split('\n').next().unwrap_or_default();
            let shown = if heredoc.drops_tabs { line.trim_start_matches('\t') } else { line };
            if shown == heredoc.delimiter {
                self.scan.inputs.push(self.text[start..self.at].to_owned());
                self.at = self.text.len().min(self.at + line.len() + 1);
                return Ok(());
            }
            // Versions of bash differ about a line that only begins with the delimiter.
            if shown.starts_with(&heredoc.delimiter) {
                return Err(Why::Heredoc);
            }
            if !heredoc.is_literal && line.contains(['$', '`', '\\']) {
                return Err(Why::Heredoc);
            }
            self.at = self.text.len().min(self.at + line.len() + 1);
        }
    }
}

/// Whether no word goes on at the start of `rest`.
fn ends_word(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '&', '|', ')', '<', '>'])
}
