//! Parses expansions: variables, home directories, and commands in brackets.

use super::{BracketKind, MAX_DEPTH, OpaqueReason, ParserFrame, ScriptParser};

impl ScriptParser<'_> {
    /// Parses an expansion that begins with `$`.
    pub(super) fn parse_dollar(&mut self, in_quotes: bool) -> Result<(), OpaqueReason> {
        let rest = self.remaining();
        let after = &rest[1..];
        let length = match after.chars().next() {
            Some('(') if after.starts_with("((") => return Err(OpaqueReason::Arithmetic),
            Some('(') => return self.open_bracket(BracketKind::Substitution, 2),
            Some('[') => return Err(OpaqueReason::Arithmetic),
            Some('\'' | '"') if !in_quotes => return Err(OpaqueReason::SpecialQuote),
            Some('\\') => return Err(OpaqueReason::Continuation),
            Some('{') => braced_name_length(after).ok_or(OpaqueReason::Expansion)?,
            Some('@' | '*' | '!' | '-' | '0'..='9') => 1,
            Some('?' | '$' | '#') => {
                self.current_word().push_number(&rest[..2]);
                self.pos += 2;
                return Ok(());
            }
            _ => name_length(after),
        };
        if matches!(&after[..length], "IFS" | "{IFS}") {
            // `$IFS` splits words.
            return Err(OpaqueReason::Expansion);
        }
        if length == 0 {
            self.push_char('$');
        } else {
            self.push_variable(&rest[..=length], in_quotes);
            self.pos += 1 + length;
        }
        Ok(())
    }

    /// Adds the value of a variable to the current word.
    fn push_variable(&mut self, text: &str, in_quotes: bool) {
        let name = text.trim_start_matches(['$', '{']).trim_end_matches('}');
        let is_program = self.current_frame().is_at_program();
        if !is_program && self.is_loop_variable(name, in_quotes) {
            self.current_word().push_loop_variable(text, name, in_quotes);
        } else {
            self.current_word().push_parameter(text, name, in_quotes);
        }
    }

    /// Parses a `~` that bash expands to a home directory.
    pub(super) fn parse_tilde(&mut self) {
        match self.peek_second() {
            None | Some('/' | ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | ':') => {
                self.current_word().push_home();
            }
            // The home of another user, or a previous directory.
            _ => self.current_word().push_parameter("~", "", true),
        }
        self.pos += 1;
    }

    pub(super) fn open_subshell(&mut self) -> Result<(), OpaqueReason> {
        let frame = self.current_frame();
        let is_free = !matches!(frame.bracket, BracketKind::LoopHeader | BracketKind::LoopWords)
            && frame.word.is_none()
            && frame.words.is_empty()
            && !frame.has_subshell
            && !frame.has_redirect
            && frame.pending_redirect.is_none();
        if !is_free {
            return Err(OpaqueReason::Compound);
        }
        if self.remaining().starts_with("((") {
            return Err(OpaqueReason::Arithmetic);
        }
        self.open_bracket(BracketKind::Subshell, 1)
    }

    pub(super) fn open_bracket(
        &mut self,
        bracket: BracketKind,
        length: usize,
    ) -> Result<(), OpaqueReason> {
        if self.frames.len() == MAX_DEPTH {
            return Err(OpaqueReason::TooDeep);
        }
        if bracket != BracketKind::Subshell {
            self.current_word();
        }
        self.frames.push(ParserFrame::new(bracket, self.pos));
        self.pos += length;
        Ok(())
    }

    pub(super) fn close_bracket(&mut self) -> Result<(), OpaqueReason> {
        self.end_command(false)?;
        let end = self.pos + 1;
        let frame = match self.frames.pop() {
            Some(frame)
                if frame.bracket.is_bracket() && frame.has_command && !frame.awaits_command =>
            {
                frame
            }
            _ => return Err(OpaqueReason::Operator),
        };
        if !frame.heredocs.is_empty() {
            return Err(OpaqueReason::Heredoc);
        }
        self.pos = end;
        let source = &self.text[frame.start..end];
        let outer = self.current_frame();
        match frame.bracket {
            // A number of processors.
            BracketKind::Substitution if source == "$(nproc)" => {
                self.current_word().push_number(source)
            }
            BracketKind::Substitution => {
                let in_quotes = outer.in_quotes;
                self.current_word().push_unknown(source, in_quotes);
            }
            BracketKind::Process => self.current_word().push_pipe(source),
            _ => outer.replace_command(frame.start),
        }
        Ok(())
    }
}

/// Returns the length of the variable name at the start of `text`.
fn name_length(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { 0 } else { end }
}

/// Returns the length of `{name}` at the start of `text`.
fn braced_name_length(text: &str) -> Option<usize> {
    let name = name_length(text.strip_prefix('{')?);
    (name > 0 && text[1 + name..].starts_with('}')).then_some(name + 2)
}
