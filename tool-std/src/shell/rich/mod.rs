//! The second layer: what people really type around plain commands.
//!
//! Redirections, comments, quoted heredocs, line continuations between words, variables,
//! subshells, `<(..)` and `$(..)`, whose commands are judged like all others. Where it is not
//! certain what bash does, the scan fails and the whole script is not understood. The
//! text must have passed `rawcheck`.
//!
//! **Invariant:** one look at each character, brackets on a stack of bounded height.

mod expand;
mod redirect;

use self::redirect::{Heredoc, Redirect};
use super::Why;
use super::lex::{MAX_COMMANDS, MAX_WORDS};
use super::word::{Builder, Word, is_assignment, is_reserved};

/// How deep brackets may stand in each other.
const MAX_DEPTH: usize = 16;

/// What a script does, as far as its text tells.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) commands: Vec<Command>,
    /// Files that redirections open.
    pub(super) files: Vec<File>,
    /// Texts that some command gets as its input.
    pub(super) inputs: Vec<String>,
}

/// One command of a script.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// Whether it stands in a substitution.
    pub(super) inner: bool,
    /// Where it begins.
    pub(super) at: usize,
}

/// A file that a redirection opens.
#[derive(Debug)]
pub(super) struct File {
    /// The path as it is written.
    pub(super) path: String,
    pub(super) is_written: bool,
    /// Where the command begins that it is opened for.
    pub(super) own: Option<usize>,
    /// Where everything begins that cannot run before it is opened.
    pub(super) until: usize,
}

impl File {
    /// Whether a command may have run when the file is opened.
    pub(super) fn is_after(&self, command: usize) -> bool {
        command < self.until && Some(command) != self.own
    }
}

/// Scans a script, or says what is not understood.
pub(super) fn scan(script: &str) -> Result<Scan, Why> {
    let mut scanner = Scanner {
        text: script,
        at: 0,
        frames: vec![Frame::new(Bracket::None, 0)],
        scan: Scan::default(),
        words: 0,
        settled: 0,
    };
    while let Some(c) = scanner.peek() {
        if scanner.top().quoted { scanner.quoted(c)? } else { scanner.bare(c)? }
    }
    scanner.finish()
}

/// What a list of commands stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    None,
    Subshell,
    /// `$(..)`
    Substitution,
    /// `<(..)`
    Process,
}

/// A list of commands that is being read.
#[derive(Debug)]
struct Frame {
    bracket: Bracket,
    /// Where it begins, with its bracket.
    start: usize,
    /// The command that is being read: its words, and where it begins.
    words: Vec<Word>,
    /// How many words at its start set variables.
    assignments: usize,
    command_at: usize,
    word: Option<Builder>,
    /// Whether the word is inside double quotes.
    quoted: bool,
    redirect: Option<Redirect>,
    redirected: bool,
    /// Whether a subshell stands in the place of the command.
    closed: bool,
    /// Whether an operator waits for the command after it.
    joined: bool,
    /// Whether it has a command.
    any: bool,
    heredocs: Vec<Heredoc>,
    /// The files of the command that is being read.
    files: Vec<File>,
}

impl Frame {
    fn new(bracket: Bracket, start: usize) -> Self {
        Self {
            bracket,
            start,
            words: Vec::new(),
            assignments: 0,
            command_at: start,
            word: None,
            quoted: false,
            redirect: None,
            redirected: false,
            closed: false,
            joined: false,
            any: false,
            heredocs: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Whether the next word names a program, for all that is known so far.
    fn is_at_program(&self) -> bool {
        let is_time = |word: &Word| matches!(&*word.value, "time" | "-p" | "--");
        self.words[self.assignments..].iter().all(is_time)
    }
}

struct Scanner<'s> {
    text: &'s str,
    at: usize,
    /// Never empty; the last one is being read.
    frames: Vec<Frame>,
    scan: Scan,
    /// Words so far.
    words: usize,
    /// How many files belong to pipelines that are read.
    settled: usize,
}

impl<'s> Scanner<'s> {
    fn rest(&self) -> &'s str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn top(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn word(&mut self) -> &mut Builder {
        let at = self.at;
        let frame = self.top();
        if frame.word.is_none() && frame.words.is_empty() {
            frame.command_at = at;
        }
        frame.word.get_or_insert_default()
    }

    /// Adds the next character to the word.
    fn push(&mut self, c: char) {
        self.word().push(c);
        self.at += c.len_utf8();
    }

    fn has_heredocs(&self) -> bool {
        self.frames.iter().any(|frame| !frame.heredocs.is_empty())
    }

    /// Reads on outside of quotes.
    fn bare(&mut self, c: char) -> Result<(), Why> {
        let is_first = self.top().word.is_none();
        match c {
            ' ' | '\t' => {
                self.end_word()?;
                self.at += 1;
            }
            '\n' => self.end_line()?,
            '\\' => self.escape()?,
            '\'' => self.single_quoted()?,
            '"' => {
                self.word().quoted = true;
                self.top().quoted = true;
                self.at += 1;
            }
            '$' => self.dollar(false)?,
            '`' => return Err(Why::Backtick),
            '#' if is_first => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
            '(' => self.open_subshell()?,
            ')' => self.close()?,
            ';' | '&' | '|' => self.operator(c)?,
            '<' | '>' => self.redirect()?,
            '*' | '?' | '[' | ']' => {
                self.word().glob(c);
                self.at += 1;
            }
            '~' if is_first || self.word().value().ends_with(['=', ':']) => self.tilde(),
            '{' | '}' => {
                self.word().braces = true;
                self.push(c);
            }
            c => self.push(c),
        }
        Ok(())
    }

    /// Reads on inside double quotes.
    fn quoted(&mut self, c: char) -> Result<(), Why> {
        match c {
            '"' => {
                self.top().quoted = false;
                self.at += 1;
            }
            '$' => self.dollar(true)?,
            '`' => return Err(Why::Backtick),
            '\n' if self.has_heredocs() => return Err(Why::Heredoc),
            '\\' => match self.peek_second() {
                Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                    self.at += 1;
                    self.push(escaped);
                }
                Some('\n') => return Err(Why::Continuation),
                _ => self.push(c),
            },
            c => self.push(c),
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Why> {
        match self.peek_second() {
            None => Err(Why::Unclosed),
            Some('\n') if self.top().word.is_some() => Err(Why::Continuation),
            Some('\n') => {
                self.at += 2;
                Ok(())
            }
            Some(escaped) => {
                self.word().quoted = true;
                self.at += 1;
                self.push(escaped);
                Ok(())
            }
        }
    }

    fn single_quoted(&mut self) -> Result<(), Why> {
        let rest = &self.rest()[1..];
        let value = &rest[..rest.find('\'').ok_or(Why::Unclosed)?];
        if value.contains('\n') && self.has_heredocs() {
            return Err(Why::Heredoc);
        }
        let word = self.word();
        word.quoted = true;
        word.push_str(value);
        self.at += value.len() + 2;
        Ok(())
    }

    fn operator(&mut self, c: char) -> Result<(), Why> {
        let rest = self.rest();
        let length = match c {
            '&' if rest.starts_with("&>") => return self.redirect(),
            '&' if rest.starts_with("&&") => 2,
            '&' => return Err(Why::Background),
            '|' if rest.starts_with("||") => 2,
            ';' | '|' if rest[1..].starts_with([';', '&']) => return Err(Why::Operator),
            _ => 1,
        };
        if !self.end_command(c != ';')? {
            return Err(Why::Operator);
        }
        if c != '|' || length == 2 {
            self.end_pipeline();
        }
        self.at += length;
        Ok(())
    }

    /// What comes now runs after what came before, unless both stand in brackets, where
    /// everything may run beside everything.
    fn end_pipeline(&mut self) {
        if self.frames.len() == 1 {
            for file in &mut self.scan.files[self.settled..] {
                file.until = self.at;
            }
            self.settled = self.scan.files.len();
        }
    }

    fn end_word(&mut self) -> Result<(), Why> {
        let Some(word) = self.top().word.take() else { return Ok(()) };
        let (quoted, braces) = (word.quoted, word.braces);
        let word = word.finish();
        if braces && may_expand(&word.value) {
            return Err(Why::Braces);
        }
        self.words += 1;
        if self.words > MAX_WORDS {
            return Err(Why::TooMany);
        }
        let frame = self.top();
        if let Some(redirect) = frame.redirect.take() {
            return self.target(redirect, &word);
        }
        if frame.closed {
            return Err(Why::Operator);
        }
        if frame.is_at_program() {
            let value = word.value.as_str();
            // It only turns the exit code round.
            if value == "!" && !quoted && frame.words.is_empty() && !frame.redirected {
                return Ok(());
            }
            let is_time = value == "time" && !quoted;
            if is_reserved(value) && !is_time {
                return Err(Why::Compound);
            }
            if value.starts_with(['!', '%']) {
                return Err(Why::Operator);
            }
            if is_assignment(value) && frame.words.len() == frame.assignments {
                frame.assignments += 1;
            }
        }
        frame.words.push(word);
        Ok(())
    }

    /// Ends the command, and says whether there was one.
    fn end_command(&mut self, joined: bool) -> Result<bool, Why> {
        self.end_word()?;
        let is_inner = |bracket| matches!(bracket, Bracket::Substitution | Bracket::Process);
        let inner = self.frames.iter().any(|frame| is_inner(frame.bracket));
        let frame = self.top();
        if frame.redirect.is_some() {
            return Err(Why::Operator);
        }
        if frame.words.is_empty() && !frame.closed {
            return if frame.redirected { Err(Why::NoCommand) } else { Ok(false) };
        }
        let words = std::mem::take(&mut frame.words);
        frame.assignments = 0;
        let at = frame.command_at;
        frame.any = true;
        frame.joined = joined;
        frame.closed = false;
        frame.redirected = false;
        // A group of commands has no place of its own.
        let own = (!words.is_empty()).then_some(at);
        let files = std::mem::take(&mut frame.files);
        self.scan.files.extend(files.into_iter().map(|file| File { own, ..file }));
        if !words.is_empty() {
            self.scan.commands.push(Command { words, inner, at });
        }
        if self.scan.commands.len() > MAX_COMMANDS { Err(Why::TooMany) } else { Ok(true) }
    }

    fn end_line(&mut self) -> Result<(), Why> {
        if self.end_command(false)? {
            self.end_pipeline();
        }
        self.at += 1;
        let outer = self.frames.len() - 1;
        if self.frames[..outer].iter().any(|frame| !frame.heredocs.is_empty()) {
            return Err(Why::Heredoc);
        }
        for heredoc in std::mem::take(&mut self.top().heredocs) {
            self.body(&heredoc)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Scan, Why> {
        let frame = self.top();
        if frame.quoted || frame.bracket != Bracket::None {
            return Err(Why::Unclosed);
        }
        self.end_command(false)?;
        let frame = self.top();
        if !frame.heredocs.is_empty() {
            return Err(Why::Heredoc);
        }
        if frame.joined {
            return Err(Why::Operator);
        }
        if !frame.any {
            return Err(Why::Empty);
        }
        self.scan.commands.sort_by_key(|command| command.at);
        Ok(self.scan)
    }
}

/// Whether a word with unquoted braces may become several.
fn may_expand(value: &str) -> bool {
    !matches!(value, "{" | "{}")
        && (value.starts_with('{') || value.contains(',') || value.contains(".."))
}

#[cfg(test)]
mod tests;
