//! The chat prompt by prompt.

use std::pin::pin;

use tokio::task::block_in_place;
use tool_sdk_agent::{AgentOutcome, AgentStop};

use super::conversation::{ChatEvent, Conversation, RunningAgent};
use super::editor::{EnteredLine, PromptReader};
use super::markdown::MarkdownPrinter;
use super::slash_command::{self, SlashOutcome};
use super::typed_lines::{TypedInput, TypedLines};
use crate::exit::{ENDED_EARLY, Result};
use crate::style::TextStyle;
use crate::{Io, signals, style};

/// Reads prompts and answers them until the user ends the chat.
pub(super) async fn run(conversation: &mut Conversation, io: &mut Io<'_>) -> Result {
    let mut reader = PromptReader::open(conversation.history_file(), io);
    let is_editor = matches!(reader, PromptReader::Editor(..));
    if is_editor {
        io.print_stderr(format_args!(
            "{}, conversation {}; /help lists the commands, Ctrl-D ends",
            style::sanitize_text(&conversation.model.name),
            conversation.id
        ));
    }
    loop {
        let line = match block_in_place(|| reader.read(io)) {
            EnteredLine::Prompt(line) => line,
            EnteredLine::Interrupted => continue,
            EnteredLine::End => return Ok(0),
        };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with('/') {
            match slash_command::run(line, conversation).await {
                SlashOutcome::Quit => return Ok(0),
                SlashOutcome::Show(text) => {
                    writeln!(io.stdout, "{}", style::sanitize_text(&text))?;
                    io.stdout.flush()?;
                }
            }
            continue;
        }
        // Text from a pipe may be that of others, who could name any file of the user.
        let notes = match is_editor {
            true => conversation.push_typed_prompt(line),
            false => {
                conversation.push_user(line.to_owned(), Vec::new());
                Vec::new()
            }
        };
        for note in notes {
            io.print_stderr(style::sanitize_text(&format!("note: {note}")));
        }
        let Some(outcome) = answer(conversation, is_editor, io).await? else {
            return Ok(ENDED_EARLY);
        };
        if outcome.stop != AgentStop::Finished {
            let line = format!("stopped: {}", outcome.stop);
            io.print_stderr(style::sanitize_text(&line));
        }
        // What was typed too late to steer is the next prompt.
        for text in conversation.steering.take_messages() {
            io.print_stderr(style::sanitize_text(&format!("not read by the model: {text}")));
        }
    }
}

/// Answers the prompt while the user may steer or interrupt. `None` when the user interrupted twice.
async fn answer(
    conversation: &mut Conversation,
    reads_keys: bool,
    io: &mut Io<'_>,
) -> Result<Option<AgentOutcome>> {
    let lock = conversation.environment.terminal_lock();
    let mut typed = reads_keys.then(|| TypedLines::start(lock)).flatten();
    let mut printer = conversation.event_printer(io);
    let mut screen = ChatScreen::new(io);
    let RunningAgent { mut events, cancel, mut task } = conversation.start();
    let mut interrupt = pin!(signals::wait_for_shutdown());
    let ended = loop {
        tokio::select! {
            biased;
            _ = &mut interrupt => {
                if cancel.is_cancelled() {
                    return Ok(None);
                }
                cancel.cancel();
                interrupt.set(signals::wait_for_shutdown());
            }
            Some(input) = next_input(typed.as_mut()) => match input {
                TypedInput::Escape => cancel.cancel(),
                TypedInput::Line(line) => conversation.steering.push(line),
            },
            Some(event) = events.recv() => screen.show(&event, io)?,
            Some(event) = printer.events.recv() => printer.format.print_event(&event, io.stderr),
            ended = &mut task => break ended,
        }
    };
    printer.finish(io.stderr);
    while let Ok(event) = events.try_recv() {
        screen.show(&event, io)?;
    }
    screen.finish(io)?;
    drop(typed);
    // The task is never aborted and the pipeline catches panics of tools, so this is a bug.
    let (outcome, transcript) =
        ended.unwrap_or_else(|it| std::panic::resume_unwind(it.into_panic()));
    conversation.finish(transcript, io).await;
    Ok(Some(outcome))
}

async fn next_input(typed: Option<&mut TypedLines>) -> Option<TypedInput> {
    match typed {
        Some(typed) => typed.input.recv().await,
        None => std::future::pending().await,
    }
}

/// Prints the model's messages.
struct ChatScreen {
    markdown: MarkdownPrinter,
    style: TextStyle,
    /// Whether a line of reasoning is open.
    has_reasoning: bool,
}

impl ChatScreen {
    fn new(io: &Io<'_>) -> Self {
        let style = TextStyle::for_stdout(io);
        Self { markdown: MarkdownPrinter::new(style), style, has_reasoning: false }
    }

    fn show(&mut self, event: &ChatEvent, io: &mut Io<'_>) -> Result<()> {
        match event {
            ChatEvent::Reasoning(text) => {
                self.has_reasoning = true;
                let text = style::escape_text(text);
                write!(io.stdout, "{}", self.style.dim(&text))?;
            }
            ChatEvent::Text(text) => {
                self.end_reasoning(io)?;
                write!(io.stdout, "{}", self.markdown.push(text))?;
            }
            ChatEvent::Message(_) => self.finish(io)?,
            ChatEvent::Discarded => {
                self.finish(io)?;
                io.print_stderr("note: the connection broke; the answer begins again");
            }
            ChatEvent::Note(text) => {
                self.finish(io)?;
                io.print_stderr(style::sanitize_text(&format!("note: {text}")));
            }
            ChatEvent::Answers(_) => {}
        }
        Ok(io.stdout.flush()?)
    }

    fn end_reasoning(&mut self, io: &mut Io<'_>) -> Result<()> {
        if std::mem::take(&mut self.has_reasoning) {
            writeln!(io.stdout)?;
        }
        Ok(())
    }

    fn finish(&mut self, io: &mut Io<'_>) -> Result<()> {
        self.end_reasoning(io)?;
        write!(io.stdout, "{}", self.markdown.finish())?;
        Ok(io.stdout.flush()?)
    }
}
