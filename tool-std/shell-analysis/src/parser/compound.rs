//! Parses compound commands: groups, conditions and loops.
//!
//! Each is a frame of the parser, as a subshell is. The commands of all branches are listed, as if
//! all of them ran. The body of a `for` loop over known words is listed once for each word, with
//! the word in place of the variable.
//!
//! **Invariant:** a reserved word out of place fails, so that the script is opaque.

use super::{BracketKind, MAX_DEPTH, OpaqueReason, ParsedCommand, ParserFrame, ScriptParser};
use crate::lexer::{MAX_COMMANDS, MAX_WORDS};
use crate::word::{ShellWord, is_assignment, list_contains};

/// Builtins that may set a variable whose name is one of their arguments, or run text as code.
const SETTING_BUILTINS: &str = "\
    . declare eval export getopts let local mapfile read readarray readonly source trap typeset \
    unset wait";

/// The variable of a `for` loop and the words that it takes.
#[derive(Debug)]
pub(super) struct LoopVariable {
    name: String,
    values: Vec<ShellWord>,
    /// The index of the first command of the loop.
    first_command: usize,
}

impl LoopVariable {
    /// Whether the variable, outside of quotes, expands to exactly one word.
    fn is_single_word(&self) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-+,:@%".contains(c);
        let is_one = |value: &ShellWord| {
            value.is_literal() && !value.value.is_empty() && value.value.chars().all(is_plain)
        };
        self.values.iter().all(is_one)
    }
}

impl ScriptParser<'_> {
    /// Parses an unquoted word in the position of a program. Returns whether it is a reserved word
    /// that belongs there.
    pub(super) fn parse_reserved_word(&mut self, word: &str) -> Result<bool, OpaqueReason> {
        use BracketKind as Kind;
        let frame = self.current_frame();
        let bracket = frame.bracket;
        if !frame.words.is_empty() || frame.has_redirect {
            return Ok(false);
        }
        match (word, bracket) {
            ("do", Kind::LoopCondition | Kind::LoopWords) => self.enter_part(Kind::LoopBody)?,
            (_, Kind::LoopWords) => return Err(OpaqueReason::Compound),
            ("{", _) => self.open_compound(Kind::Group)?,
            ("if", _) => self.open_compound(Kind::Condition)?,
            ("while" | "until", _) => self.open_compound(Kind::LoopCondition)?,
            ("for", _) => self.open_compound(Kind::LoopHeader)?,
            ("then", Kind::Condition) => self.enter_part(Kind::Branch)?,
            ("elif", Kind::Branch) => self.enter_part(Kind::Condition)?,
            ("else", Kind::Branch) => self.enter_part(Kind::LastBranch)?,
            ("}", Kind::Group)
            | ("fi", Kind::Branch | Kind::LastBranch)
            | ("done", Kind::LoopBody) => self.close_compound()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn open_compound(&mut self, bracket: BracketKind) -> Result<(), OpaqueReason> {
        if self.frames.len() == MAX_DEPTH {
            return Err(OpaqueReason::TooDeep);
        }
        self.frames.push(ParserFrame::new(bracket, self.pos));
        Ok(())
    }

    /// Fails unless the current list of commands is complete.
    fn check_list(&mut self) -> Result<(), OpaqueReason> {
        let frame = self.current_frame();
        if !frame.heredocs.is_empty() {
            return Err(OpaqueReason::Heredoc);
        }
        let is_complete = frame.has_command && !frame.awaits_command;
        is_complete.then_some(()).ok_or(OpaqueReason::Operator)
    }

    /// Goes on to the next list of commands of the compound command.
    fn enter_part(&mut self, bracket: BracketKind) -> Result<(), OpaqueReason> {
        self.check_list()?;
        let frame = self.current_frame();
        frame.bracket = bracket;
        frame.has_command = false;
        Ok(())
    }

    fn close_compound(&mut self) -> Result<(), OpaqueReason> {
        self.check_list()?;
        let frame = self.current_frame();
        let (variable, start) = (frame.loop_variable.take(), frame.start);
        self.frames.pop();
        self.current_frame().replace_command(start);
        variable.map_or(Ok(()), |variable| self.repeat_body(&variable))
    }

    /// Ends the words of a `for` loop: `for NAME in WORDS`.
    pub(super) fn end_loop_header(&mut self, is_joined: bool) -> Result<bool, OpaqueReason> {
        let first_command = self.parsed.commands.len();
        let frame = self.current_frame();
        let has_files = frame.has_redirect || !frame.heredocs.is_empty();
        let mut words = std::mem::take(&mut frame.words).into_iter();
        let (name, preposition) = (words.next(), words.next());
        let name = name.map(|word| word.rule_text).unwrap_or_default();
        let values: Vec<_> = words.collect();
        let is_bound = self.find_loop_variable(&name).is_some();
        let is_valid = !is_joined
            && !has_files
            && is_loop_name(&name)
            && !is_bound
            && preposition.is_some_and(|word| word.rule_text == "in")
            && !values.is_empty();
        if !is_valid {
            return Err(OpaqueReason::Compound);
        }
        let frame = self.current_frame();
        frame.bracket = BracketKind::LoopWords;
        frame.has_command = true;
        frame.awaits_command = false;
        frame.loop_variable = Some(LoopVariable { name, values, first_command });
        Ok(true)
    }

    fn find_loop_variable(&self, name: &str) -> Option<&LoopVariable> {
        let variables = self.frames.iter().filter_map(|frame| frame.loop_variable.as_ref());
        variables.into_iter().find(|variable| variable.name == name)
    }

    /// Whether the name is that of a loop around the current word, whose value is one word.
    pub(super) fn is_loop_variable(&self, name: &str, in_quotes: bool) -> bool {
        self.find_loop_variable(name).is_some_and(|variable| in_quotes || variable.is_single_word())
    }

    /// Whether the current command may run more than once.
    pub(super) fn is_in_loop(&self) -> bool {
        use BracketKind::{LoopBody, LoopCondition};
        self.frames.iter().any(|frame| matches!(frame.bracket, LoopCondition | LoopBody))
    }

    /// Lists the commands that use the variable of a loop once for each of its values.
    fn repeat_body(&mut self, variable: &LoopVariable) -> Result<(), OpaqueReason> {
        let body = self.parsed.commands.split_off(variable.first_command);
        if body.iter().any(|command| may_set_variable(&command.words, &variable.name)) {
            return Err(OpaqueReason::Compound);
        }
        for command in body {
            if !command.words.iter().any(|word| word.uses_variable(&variable.name)) {
                self.parsed.commands.push(command);
                continue;
            }
            for value in &variable.values {
                let words: Vec<_> = command
                    .words
                    .iter()
                    .map(|word| word.with_variable(&variable.name, value))
                    .collect();
                self.word_count += words.len();
                self.parsed.commands.push(ParsedCommand { words, ..command });
                if self.parsed.commands.len() > MAX_COMMANDS || self.word_count > MAX_WORDS {
                    return Err(OpaqueReason::TooMany);
                }
            }
        }
        Ok(())
    }
}

/// Whether a name is a variable that nothing but the loop gives a meaning to.
fn is_loop_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a command of the loop may set the variable.
fn may_set_variable(words: &[ShellWord], name: &str) -> bool {
    let assigns = |word: &ShellWord| {
        let rest = word.value.strip_prefix(name);
        rest.is_some_and(|rest| is_assignment(&word.value) && rest.starts_with(['=', '+', '[']))
    };
    let is_printf = words.iter().any(|word| word.value == "printf");
    words.iter().any(|word| {
        assigns(word)
            || list_contains(SETTING_BUILTINS, &word.value)
            || is_printf && word.value.starts_with("-v")
    })
}
