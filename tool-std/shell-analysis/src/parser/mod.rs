//! The parser for scripts that are not plain.
//!
//! Supports redirections, comments, quoted heredocs, line continuations between words, variables,
//! braces, groups, conditions, loops, subshells, `<(..)` and `$(..)`, whose commands are analysed
//! like all others. If it is uncertain how bash reads the script, parsing fails and the script is
//! opaque. The text must have passed `check_raw_text`.
//!
//! **Invariant:** one look at each character; nested brackets are kept on a stack of bounded
//! height.

mod braces;
mod compound;
mod expansion;
mod redirect;

use std::ops::Range;

use self::braces::expand_braces;
use self::compound::LoopVariable;
use self::redirect::{PendingHeredoc, RedirectKind};
use super::OpaqueReason;
use super::lexer::{MAX_COMMANDS, MAX_WORDS};
use super::word::{ShellWord, WordBuilder, is_assignment, is_reserved};

/// The maximum nesting depth of brackets.
const MAX_DEPTH: usize = 16;

/// The result of parsing a script.
#[derive(Debug, Default)]
pub(super) struct ParsedScript {
    pub(super) commands: Vec<ParsedCommand>,
    /// Files that redirections open.
    pub(super) files: Vec<RedirectedFile>,
    /// The contents of heredocs and here-strings.
    pub(super) inputs: Vec<String>,
}

/// One command of a script.
#[derive(Debug)]
pub(super) struct ParsedCommand {
    pub(super) words: Vec<ShellWord>,
    /// Whether it is inside a substitution.
    pub(super) is_nested: bool,
    /// Whether it is inside a loop, so that it may run after the commands that follow it.
    pub(super) is_repeated: bool,
    /// The byte offset of its first word.
    pub(super) offset: usize,
}

/// A file that a redirection opens.
#[derive(Debug)]
pub(super) struct RedirectedFile {
    /// The path as spelled in the script.
    pub(super) path: String,
    pub(super) is_written: bool,
    /// The offsets of the commands that it is opened for, and that run only after that.
    pub(super) own_commands: Range<usize>,
    /// The offset from which commands run only after the file is opened.
    pub(super) opened_before: usize,
}

impl RedirectedFile {
    /// Whether the command at this offset may run before the file is opened.
    pub(super) fn may_open_after(&self, command: usize) -> bool {
        command < self.opened_before && !self.own_commands.contains(&command)
    }
}

/// Parses a script. Fails with the reason why it is opaque.
pub(super) fn parse_script(script: &str) -> Result<ParsedScript, OpaqueReason> {
    let mut scanner = ScriptParser {
        text: script,
        pos: 0,
        frames: vec![ParserFrame::new(BracketKind::None, 0)],
        parsed: ParsedScript::default(),
        word_count: 0,
        settled_files: 0,
    };
    while let Some(c) = scanner.peek() {
        if scanner.current_frame().in_quotes {
            scanner.parse_quoted(c)?
        } else {
            scanner.parse_unquoted(c)?
        }
    }
    scanner.finish()
}

/// The bracket around a list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BracketKind {
    None,
    Subshell,
    /// `$(..)`
    Substitution,
    /// `<(..)`
    Process,
    /// `{ ..; }`
    Group,
    /// `if ..;` or `elif ..;`
    Condition,
    /// `then ..;`
    Branch,
    /// `else ..;`
    LastBranch,
    /// `for NAME in WORDS` up to the end of the words, and behind it up to `do`.
    LoopHeader,
    LoopWords,
    /// `while ..;` or `until ..;`
    LoopCondition,
    /// `do ..;`
    LoopBody,
}

impl BracketKind {
    /// Whether a closing parenthesis ends the list.
    fn is_bracket(self) -> bool {
        matches!(self, Self::Subshell | Self::Substitution | Self::Process)
    }
}

/// A list of commands that is being parsed.
#[derive(Debug)]
struct ParserFrame {
    bracket: BracketKind,
    /// The offset of its opening bracket.
    start: usize,
    /// The words of the current command.
    words: Vec<ShellWord>,
    /// How many leading words are variable assignments.
    assignments: usize,
    command_at: usize,
    word: Option<WordBuilder>,
    /// Whether the current word is inside double quotes.
    in_quotes: bool,
    pending_redirect: Option<RedirectKind>,
    has_redirect: bool,
    /// Whether a subshell or a compound command takes the place of the command.
    has_subshell: bool,
    /// Whether an operator still needs the command after it.
    awaits_command: bool,
    /// Whether the list has a command.
    has_command: bool,
    heredocs: Vec<PendingHeredoc>,
    /// The files of the current command.
    files: Vec<RedirectedFile>,
    /// The variable of a `for` loop.
    loop_variable: Option<LoopVariable>,
}

impl ParserFrame {
    fn new(bracket: BracketKind, start: usize) -> Self {
        Self {
            bracket,
            start,
            words: Vec::new(),
            assignments: 0,
            command_at: start,
            word: None,
            in_quotes: false,
            pending_redirect: None,
            has_redirect: false,
            has_subshell: false,
            awaits_command: false,
            has_command: false,
            heredocs: Vec::new(),
            files: Vec::new(),
            loop_variable: None,
        }
    }

    /// Lets a subshell or compound command that begins at `start` take the place of the command.
    fn replace_command(&mut self, start: usize) {
        self.has_subshell = true;
        self.command_at = start;
    }

    /// Whether the next word is in the position of the program name.
    fn is_at_program(&self) -> bool {
        let is_time = |word: &ShellWord| matches!(&*word.value, "time" | "-p" | "--");
        self.words[self.assignments..].iter().all(is_time)
    }
}

struct ScriptParser<'s> {
    text: &'s str,
    pos: usize,
    /// Never empty; the last frame is the current one.
    frames: Vec<ParserFrame>,
    parsed: ParsedScript,
    /// The number of words so far.
    word_count: usize,
    /// How many files belong to completed pipelines.
    settled_files: usize,
}

impl<'s> ScriptParser<'s> {
    fn remaining(&self) -> &'s str {
        &self.text[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.remaining().chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.remaining().chars().nth(1)
    }

    fn current_frame(&mut self) -> &mut ParserFrame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn current_word(&mut self) -> &mut WordBuilder {
        let at = self.pos;
        let frame = self.current_frame();
        if frame.word.is_none() && frame.words.is_empty() && !frame.has_subshell {
            frame.command_at = at;
        }
        frame.word.get_or_insert_default()
    }

    /// Adds the next character to the current word.
    fn push_char(&mut self, c: char) {
        self.current_word().push(c);
        self.pos += c.len_utf8();
    }

    fn has_heredocs(&self) -> bool {
        self.frames.iter().any(|frame| !frame.heredocs.is_empty())
    }

    /// Parses a character outside of quotes.
    fn parse_unquoted(&mut self, c: char) -> Result<(), OpaqueReason> {
        let is_first = self.current_frame().word.is_none();
        match c {
            ' ' | '\t' => {
                self.end_word()?;
                self.pos += 1;
            }
            '\n' => self.end_line()?,
            '\\' => self.parse_escape()?,
            '\'' => self.parse_single_quoted()?,
            '"' => {
                self.current_word().is_quoted = true;
                self.current_frame().in_quotes = true;
                self.pos += 1;
            }
            '$' => self.parse_dollar(false)?,
            '`' => return Err(OpaqueReason::Backtick),
            '#' if is_first => {
                self.pos += self.remaining().find('\n').unwrap_or(self.remaining().len())
            }
            '(' => self.open_subshell()?,
            ')' => self.close_bracket()?,
            ';' | '&' | '|' => self.parse_operator(c)?,
            '<' | '>' => self.parse_redirect()?,
            '*' | '?' | '[' | ']' => {
                self.current_word().push_glob(c);
                self.pos += 1;
            }
            '~' if is_first || self.current_word().value().ends_with(['=', ':']) => {
                self.parse_tilde()
            }
            '{' | '}' => {
                self.current_word().has_braces = true;
                self.push_char(c);
            }
            c => self.push_char(c),
        }
        Ok(())
    }

    /// Parses a character inside double quotes.
    fn parse_quoted(&mut self, c: char) -> Result<(), OpaqueReason> {
        match c {
            '"' => {
                self.current_frame().in_quotes = false;
                self.pos += 1;
            }
            '$' => self.parse_dollar(true)?,
            '`' => return Err(OpaqueReason::Backtick),
            '\n' if self.has_heredocs() => return Err(OpaqueReason::Heredoc),
            '\\' => match self.peek_second() {
                Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                    self.pos += 1;
                    self.push_char(escaped);
                }
                Some('\n') => return Err(OpaqueReason::Continuation),
                _ => self.push_char(c),
            },
            c => self.push_char(c),
        }
        Ok(())
    }

    fn parse_escape(&mut self) -> Result<(), OpaqueReason> {
        match self.peek_second() {
            None => Err(OpaqueReason::Unclosed),
            Some('\n') if self.current_frame().word.is_some() => Err(OpaqueReason::Continuation),
            Some('\n') => {
                self.pos += 2;
                Ok(())
            }
            Some(escaped) => {
                self.current_word().is_quoted = true;
                self.pos += 1;
                self.push_char(escaped);
                Ok(())
            }
        }
    }

    fn parse_single_quoted(&mut self) -> Result<(), OpaqueReason> {
        let rest = &self.remaining()[1..];
        let value = &rest[..rest.find('\'').ok_or(OpaqueReason::Unclosed)?];
        if value.contains('\n') && self.has_heredocs() {
            return Err(OpaqueReason::Heredoc);
        }
        let word = self.current_word();
        word.is_quoted = true;
        word.push_str(value);
        self.pos += value.len() + 2;
        Ok(())
    }

    fn parse_operator(&mut self, c: char) -> Result<(), OpaqueReason> {
        let rest = self.remaining();
        let length = match c {
            '&' if rest.starts_with("&>") => return self.parse_redirect(),
            '&' if rest.starts_with("&&") => 2,
            '&' => return Err(OpaqueReason::Background),
            '|' if rest.starts_with("||") => 2,
            ';' | '|' if rest[1..].starts_with([';', '&']) => return Err(OpaqueReason::Operator),
            _ => 1,
        };
        if !self.end_command(c != ';')? {
            return Err(OpaqueReason::Operator);
        }
        if c != '|' || length == 2 {
            self.end_pipeline();
        }
        self.pos += length;
        Ok(())
    }

    /// Ends a pipeline: what follows runs after it. Inside brackets the order is unknown.
    fn end_pipeline(&mut self) {
        if self.frames.len() == 1 {
            for file in &mut self.parsed.files[self.settled_files..] {
                file.opened_before = self.pos;
            }
            self.settled_files = self.parsed.files.len();
        }
    }

    fn end_word(&mut self) -> Result<(), OpaqueReason> {
        let Some(word) = self.current_frame().word.take() else { return Ok(()) };
        let (is_quoted, has_braces) = (word.is_quoted, word.has_braces);
        let word = word.finish();
        if !has_braces || !may_expand(&word.value) {
            return self.add_word(word, is_quoted);
        }
        let frame = self.current_frame();
        let is_program = frame.is_at_program() && frame.bracket != BracketKind::LoopHeader;
        let is_fixed = is_program || frame.pending_redirect.is_some() || is_quoted;
        let words = if is_fixed || !word.is_literal() { None } else { expand_braces(&word.value) };
        for word in words.ok_or(OpaqueReason::Braces)? {
            self.add_word(ShellWord::from_braces(&word), is_quoted)?;
        }
        Ok(())
    }

    /// Adds a word to the current command.
    fn add_word(&mut self, word: ShellWord, is_quoted: bool) -> Result<(), OpaqueReason> {
        self.word_count += 1;
        if self.word_count > MAX_WORDS {
            return Err(OpaqueReason::TooMany);
        }
        let frame = self.current_frame();
        if let Some(redirect) = frame.pending_redirect.take() {
            return self.record_target(redirect, &word);
        }
        if frame.has_subshell {
            return Err(OpaqueReason::Operator);
        }
        if frame.bracket == BracketKind::LoopHeader {
            frame.words.push(word);
            return Ok(());
        }
        if frame.is_at_program() {
            let value = word.value.as_str();
            // `!` only negates the exit code.
            if value == "!" && !is_quoted && frame.words.is_empty() && !frame.has_redirect {
                return Ok(());
            }
            if !is_quoted && self.parse_reserved_word(value)? {
                return Ok(());
            }
            let frame = self.current_frame();
            if frame.bracket == BracketKind::LoopWords {
                return Err(OpaqueReason::Compound);
            }
            let is_time = value == "time" && !is_quoted;
            if is_reserved(value) && !is_time {
                return Err(OpaqueReason::Compound);
            }
            if value.starts_with(['!', '%']) {
                return Err(OpaqueReason::Operator);
            }
            if is_assignment(value) && frame.words.len() == frame.assignments {
                frame.assignments += 1;
            }
        }
        self.current_frame().words.push(word);
        Ok(())
    }

    /// Ends the command. Returns whether there was one.
    fn end_command(&mut self, joined: bool) -> Result<bool, OpaqueReason> {
        self.end_word()?;
        if self.current_frame().bracket == BracketKind::LoopHeader {
            return self.end_loop_header(joined);
        }
        let (is_repeated, end) = (self.is_in_loop(), self.pos);
        let is_inner =
            |bracket| matches!(bracket, BracketKind::Substitution | BracketKind::Process);
        let inner = self.frames.iter().any(|frame| is_inner(frame.bracket));
        let frame = self.current_frame();
        if frame.pending_redirect.is_some() {
            return Err(OpaqueReason::Operator);
        }
        if frame.words.is_empty() && !frame.has_subshell {
            return if frame.has_redirect { Err(OpaqueReason::NoCommand) } else { Ok(false) };
        }
        let words = std::mem::take(&mut frame.words);
        frame.assignments = 0;
        let at = frame.command_at;
        frame.has_command = true;
        frame.awaits_command = joined;
        frame.has_subshell = false;
        frame.has_redirect = false;
        let own = match is_repeated {
            // It also runs before the file is opened again.
            true => 0..0,
            // A compound command runs after the file is opened, with all that it contains.
            false if words.is_empty() => at..end,
            false => at..at + 1,
        };
        let files = std::mem::take(&mut frame.files);
        self.parsed.files.extend(
            files.into_iter().map(|file| RedirectedFile { own_commands: own.clone(), ..file }),
        );
        if !words.is_empty() {
            let command = ParsedCommand { words, is_nested: inner, is_repeated, offset: at };
            self.parsed.commands.push(command);
        }
        if self.parsed.commands.len() > MAX_COMMANDS {
            Err(OpaqueReason::TooMany)
        } else {
            Ok(true)
        }
    }

    fn end_line(&mut self) -> Result<(), OpaqueReason> {
        if self.end_command(false)? {
            self.end_pipeline();
        }
        self.pos += 1;
        let outer = self.frames.len() - 1;
        if self.frames[..outer].iter().any(|frame| !frame.heredocs.is_empty()) {
            return Err(OpaqueReason::Heredoc);
        }
        for heredoc in std::mem::take(&mut self.current_frame().heredocs) {
            self.read_heredoc_body(&heredoc)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ParsedScript, OpaqueReason> {
        if self.current_frame().in_quotes {
            return Err(OpaqueReason::Unclosed);
        }
        self.end_command(false)?;
        let frame = self.current_frame();
        if frame.bracket != BracketKind::None {
            return Err(OpaqueReason::Unclosed);
        }
        if !frame.heredocs.is_empty() {
            return Err(OpaqueReason::Heredoc);
        }
        if frame.awaits_command {
            return Err(OpaqueReason::Operator);
        }
        if !frame.has_command {
            return Err(OpaqueReason::Empty);
        }
        self.parsed.commands.sort_by_key(|command| command.offset);
        Ok(self.parsed)
    }
}

/// Whether a word with unquoted braces may expand to several words.
fn may_expand(value: &str) -> bool {
    !matches!(value, "{" | "{}")
        && (value.starts_with('{') || value.contains(',') || value.contains(".."))
}

#[cfg(test)]
mod tests;
