//! Reads prompts: with a line editor on a terminal, line by line from a pipe.

use std::borrow::Cow;
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};

use super::slash_command::COMMANDS;
use crate::Io;

/// What the user entered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EnteredLine {
    Prompt(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
}

/// The source of prompts.
pub(super) enum PromptReader {
    Editor(Box<Editor<ChatHelper, FileHistory>>, Option<PathBuf>),
    /// The input is not a terminal.
    Lines,
}

impl PromptReader {
    /// Opens the line editor where there is a terminal. `history` is its file.
    pub(super) fn open(history: Option<PathBuf>, io: &Io<'_>) -> Self {
        let has_terminal = io.console.is_some() && io.stdin_is_terminal && io.stdout_is_terminal;
        if !has_terminal {
            return Self::Lines;
        }
        let config = Config::builder().max_history_size(1_000).map(|it| it.bracketed_paste(true));
        let Ok(config) = config else { return Self::Lines };
        let Ok(mut editor) = Editor::with_config(config.build()) else { return Self::Lines };
        editor.set_helper(Some(ChatHelper));
        if let Some(path) = &history {
            // The first chat has no history.
            let _ = editor.load_history(path);
        }
        Self::Editor(Box::new(editor), history)
    }

    /// Reads the next prompt; blocks the thread.
    pub(super) fn read(&mut self, io: &mut Io<'_>) -> EnteredLine {
        let (editor, history) = match self {
            Self::Lines => return read_plain_line(io),
            Self::Editor(editor, history) => (editor, history),
        };
        match editor.readline("> ") {
            Ok(line) => {
                let _ = editor.add_history_entry(&line);
                if let Some(path) = history {
                    let _ = editor.save_history(path);
                }
                // A backslash at the end of a line continues it.
                EnteredLine::Prompt(line.replace("\\\n", "\n"))
            }
            Err(ReadlineError::Interrupted) => EnteredLine::Interrupted,
            Err(_) => EnteredLine::End,
        }
    }
}

fn read_plain_line(io: &mut Io<'_>) -> EnteredLine {
    const MAX: usize = 1 << 20;
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match io.stdin.read(&mut byte) {
            Ok(0) | Err(_) if line.is_empty() => return EnteredLine::End,
            Ok(0) | Err(_) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() < MAX => line.push(byte[0]),
            Ok(_) => {}
        }
    }
    EnteredLine::Prompt(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
}

/// Completes commands, and continues lines that end with a backslash.
pub(super) struct ChatHelper;

impl Helper for ChatHelper {}

impl Highlighter for ChatHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Hinter for ChatHelper {
    type Hint = String;
}

impl Completer for ChatHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let begun = &line[..position];
        let names = COMMANDS.iter().map(|(name, ..)| *name);
        let fitting = names.filter(|name| begun.starts_with('/') && name.starts_with(begun));
        Ok((0, fitting.map(str::to_owned).collect()))
    }
}

impl Validator for ChatHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}
