//! What stands for something else: variables, home folders, and commands in brackets.

use super::{Bracket, Frame, MAX_DEPTH, Scanner, Why};

impl Scanner<'_> {
    /// What begins with `$`.
    pub(super) fn dollar(&mut self, in_quotes: bool) -> Result<(), Why> {
        let rest = self.rest();
        let after = &rest[1..];
        let length = match after.chars().next() {
            Some('(') if after.starts_with("((") => return Err(Why::Arithmetic),
            Some('(') => return self.open(Bracket::Substitution, 2),
            Some('[') => return Err(Why::Arithmetic),
            Some('\'' | '"') if !in_quotes => return Err(Why::SpecialQuote),
            Some('\\') => return Err(Why::Continuation),
            Some('{') => braced_name(after).ok_or(Why::Expansion)?,
            Some('@' | '*' | '!' | '-' | '0'..='9') => 1,
            Some('?' | '$' | '#') => {
                self.word().number(&rest[..2]);
                self.at += 2;
                return Ok(());
            }
            _ => name_length(after),
        };
        if matches!(&after[..length], "IFS" | "{IFS}") {
            // It stands for blanks between words.
            return Err(Why::Expansion);
        }
        if length == 0 {
            self.push('$');
        } else {
            self.word().parameter(&rest[..=length], in_quotes);
            self.at += 1 + length;
        }
        Ok(())
    }

    /// `~` where bash puts a home folder.
    pub(super) fn tilde(&mut self) {
        match self.peek_second() {
            None | Some('/' | ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | ':') => {
                self.word().raw("~");
            }
            // The home of somebody else, or a folder from before.
            _ => self.word().parameter("~", true),
        }
        self.at += 1;
    }

    pub(super) fn open_subshell(&mut self) -> Result<(), Why> {
        let frame = self.top();
        let is_free = frame.word.is_none()
            && frame.words.is_empty()
            && !frame.closed
            && !frame.redirected
            && frame.redirect.is_none();
        if !is_free {
            return Err(Why::Compound);
        }
        if self.rest().starts_with("((") {
            return Err(Why::Arithmetic);
        }
        self.open(Bracket::Subshell, 1)
    }

    pub(super) fn open(&mut self, bracket: Bracket, length: usize) -> Result<(), Why> {
        if self.frames.len() == MAX_DEPTH {
            return Err(Why::TooDeep);
        }
        if bracket != Bracket::Subshell {
            self.word();
        }
        self.frames.push(Frame::new(bracket, self.at));
        self.at += length;
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), Why> {
        self.end_command(false)?;
        let end = self.at + 1;
        let frame = match self.frames.pop() {
            Some(frame) if frame.bracket != Bracket::None && frame.any && !frame.joined => frame,
            _ => return Err(Why::Operator),
        };
        if !frame.heredocs.is_empty() {
            return Err(Why::Heredoc);
        }
        self.at = end;
        let source = &self.text[frame.start..end];
        let outer = self.top();
        match frame.bracket {
            Bracket::None | Bracket::Subshell => outer.closed = true,
            // How many processors there are.
            Bracket::Substitution if source == "$(nproc)" => self.word().number(source),
            Bracket::Substitution => {
                let in_quotes = outer.quoted;
                self.word().unknown(source, in_quotes);
            }
            Bracket::Process => self.word().pipe(source),
        }
        Ok(())
    }
}

/// The length of the name at the start of `text`.
fn name_length(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { 0 } else { end }
}

/// The length of `{name}` at the start of `text`.
fn braced_name(text: &str) -> Option<usize> {
    let name = name_length(text.strip_prefix('{')?);
    (name > 0 && text[1 + name..].starts_with('}')).then_some(name + 2)
}
