//! Answers one prompt and ends, for scripts: text, one JSON value, or a line of JSON for each step.
//!
//! The JSON has the field names of Claude Code's `--output-format json` and `stream-json`, so that
//! scripts carry over.

use std::collections::HashMap;
use std::io::Read as _;
use std::pin::pin;

use clap::ArgMatches;
use serde_json::{Value, json};
use tool_sdk_agent::{AgentOutcome, AgentStop, TranscriptEntry};
use tool_sdk_core::provider::{CallAnswer, ModelMessage};
use tool_sdk_core::{Call, ErrorKind, ToolError};

use super::OUTPUT;
use super::conversation::{ChatEvent, Conversation};
use crate::exit::{self, CommandError, ENDED_EARLY, FAILED, Result};
use crate::{Io, signals, style};

/// The largest prompt on standard input, in bytes.
const MAX_PROMPT: u64 = 4 * 1024 * 1024;

/// What is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrintFormat {
    Text,
    Json,
    JsonLines,
}

pub(super) async fn run(
    conversation: &mut Conversation,
    prompt: &str,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let format = match matches.get_one::<String>(OUTPUT).map(String::as_str) {
        Some("json") => PrintFormat::Json,
        Some("jsonl") => PrintFormat::JsonLines,
        _ => PrintFormat::Text,
    };
    let prompt = match prompt {
        "-" => read_prompt(io)?,
        prompt => prompt.to_owned(),
    };
    if prompt.trim().is_empty() {
        return Err(CommandError::usage("the prompt is empty"));
    }
    let first_entry = conversation.transcript.entries.len();
    conversation.push_user(prompt, Vec::new());
    if format == PrintFormat::JsonLines {
        writeln!(io.stdout, "{}", init_line(conversation, io))?;
        io.stdout.flush()?;
    }
    let outcome = answer(conversation, format, io).await?;
    let code = exit_code(&outcome.stop);
    match format {
        PrintFormat::Text => {
            if !outcome.text.is_empty() {
                let text = match io.stdout_is_terminal {
                    true => style::escape_text(&outcome.text),
                    false => outcome.text.as_str().into(),
                };
                writeln!(io.stdout, "{text}")?;
            }
            if code != 0 {
                return Err(CommandError::new(code, ToolError::failed(&outcome.stop)));
            }
        }
        PrintFormat::Json | PrintFormat::JsonLines => {
            let entries = conversation.transcript.entries.get(first_entry..).unwrap_or_default();
            let denials = permission_denials(entries);
            writeln!(io.stdout, "{}", result_line(conversation, &outcome, denials))?;
        }
    }
    Ok(code)
}

fn read_prompt(io: &mut Io<'_>) -> Result<String> {
    let mut text = String::new();
    let reading = (&mut *io.stdin).take(MAX_PROMPT).read_to_string(&mut text);
    reading.map_err(|error| {
        CommandError::usage(format_args!("cannot read the prompt on standard input: {error}"))
    })?;
    Ok(text)
}

/// Runs the agent to its end. A signal cancels it.
async fn answer(
    conversation: &mut Conversation,
    format: PrintFormat,
    io: &mut Io<'_>,
) -> Result<AgentOutcome> {
    let mut printer = conversation.event_printer(io);
    let mut running = conversation.start();
    let mut interrupt = pin!(signals::wait_for_shutdown());
    let ended = loop {
        tokio::select! {
            biased;
            _ = &mut interrupt, if !running.cancel.is_cancelled() => running.cancel.cancel(),
            Some(event) = running.events.recv() => {
                print_event(&event, format, &conversation.id, io)?;
            }
            Some(event) = printer.events.recv() => printer.format.print_event(&event, io.stderr),
            ended = &mut running.task => break ended,
        }
    };
    printer.finish(io.stderr);
    while let Ok(event) = running.events.try_recv() {
        print_event(&event, format, &conversation.id, io)?;
    }
    let (outcome, transcript) = ended.map_err(|panic| {
        CommandError::new(FAILED, ToolError::internal(format_args!("the agent failed: {panic}")))
    })?;
    conversation.finish(transcript, io).await;
    Ok(outcome)
}

fn print_event(event: &ChatEvent, format: PrintFormat, id: &str, io: &mut Io<'_>) -> Result<()> {
    let line = match event {
        ChatEvent::Note(text) => {
            io.print_stderr(style::sanitize_text(&format!("note: {text}")));
            return Ok(());
        }
        _ if format != PrintFormat::JsonLines => return Ok(()),
        ChatEvent::Message(message) => assistant_line(message, id),
        ChatEvent::Answers(answers) => user_line(answers, id),
        ChatEvent::Text(_) | ChatEvent::Reasoning(_) | ChatEvent::Discarded => return Ok(()),
    };
    writeln!(io.stdout, "{line}")?;
    Ok(io.stdout.flush()?)
}

fn init_line(conversation: &Conversation, io: &Io<'_>) -> Value {
    let view = conversation.environment.pipeline.toolset().view_for(&conversation.session);
    let tools: Vec<&str> = view.definitions().map(|tool| tool.name.as_str()).collect();
    json!({
        "type": "system",
        "subtype": "init",
        "session_id": conversation.id,
        "model": conversation.model.name,
        "cwd": io.current_dir,
        "permissionMode": view.mode().as_str(),
        "tools": tools,
    })
}

fn assistant_line(message: &ModelMessage, id: &str) -> Value {
    let text = message.text();
    let said = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
    let call = |call: Call<'_>| {
        let input = call_input(&call);
        json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
    };
    let content: Vec<Value> =
        said.into_iter().chain(message.calls().into_iter().map(call)).collect();
    let message = json!({ "role": "assistant", "content": content });
    json!({ "type": "assistant", "message": message, "session_id": id })
}

/// Returns the arguments of a call. What is no JSON stays text, so that it can be seen.
fn call_input(call: &Call<'_>) -> Value {
    let text = call.arguments.text();
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// Returns the calls that were denied.
fn permission_denials(entries: &[TranscriptEntry]) -> Vec<Value> {
    let mut inputs = HashMap::new();
    let mut denials = Vec::new();
    for entry in entries {
        match entry {
            TranscriptEntry::Model { message } => {
                let calls = message.calls();
                let input =
                    |call: &Call<'_>| Some((call.id.as_ref()?.to_string(), call_input(call)));
                inputs.extend(calls.iter().filter_map(input));
            }
            TranscriptEntry::Answers { answers } => {
                for answer in answers.iter().filter(|answer| is_denial(answer)) {
                    denials.push(json!({
                        "tool_name": answer.name,
                        "tool_use_id": answer.id,
                        "tool_input": inputs.get(&answer.id),
                    }));
                }
            }
            _ => {}
        }
    }
    denials
}

fn is_denial(answer: &CallAnswer) -> bool {
    let error = || serde_json::from_str::<Value>(&answer.text).unwrap_or_default();
    answer.is_error && error()["category"] == ErrorKind::Denied.as_str()
}

fn user_line(answers: &[CallAnswer], id: &str) -> Value {
    let result = |answer: &CallAnswer| {
        json!({
            "type": "tool_result",
            "tool_use_id": answer.id,
            "content": answer.text,
            "is_error": answer.is_error,
        })
    };
    let content: Vec<Value> = answers.iter().map(result).collect();
    json!({ "type": "user", "message": { "role": "user", "content": content }, "session_id": id })
}

fn result_line(
    conversation: &Conversation,
    outcome: &AgentOutcome,
    permission_denials: Vec<Value>,
) -> Value {
    let elapsed = conversation.started.elapsed().as_millis();
    // With what the agents below cost. A sum of costs must not count an unknown one as 0.
    let spent = conversation.spent_here();
    let cost = (spent.unpriced_requests == 0).then_some(spent.cost);
    let mut line = json!({
        "type": "result",
        "subtype": subtype(&outcome.stop),
        "is_error": outcome.stop != AgentStop::Finished,
        "result": outcome.text,
        "session_id": conversation.id,
        "num_turns": outcome.turns,
        "duration_ms": u64::try_from(elapsed).unwrap_or(u64::MAX),
        "total_cost_usd": cost,
        "usage": {
            "input_tokens": spent.usage.input.saturating_sub(spent.usage.cached_input),
            "cache_read_input_tokens": spent.usage.cached_input,
            "output_tokens": spent.usage.output,
        },
        "permission_denials": permission_denials,
    });
    if outcome.stop != AgentStop::Finished {
        line["error"] = outcome.stop.to_string().into();
    }
    line
}

fn subtype(stop: &AgentStop) -> &'static str {
    match stop {
        AgentStop::Finished => "success",
        AgentStop::TurnLimit(_) => "error_max_turns",
        AgentStop::Limit(_) => "error_max_budget",
        _ => "error_during_execution",
    }
}

/// Returns the exit code: a limit or an interruption is not a failure.
fn exit_code(stop: &AgentStop) -> u8 {
    match stop {
        AgentStop::Finished => 0,
        AgentStop::TurnLimit(_) | AgentStop::Limit(_) | AgentStop::Cancelled => ENDED_EARLY,
        AgentStop::Halted(_) => exit::DENIED,
        _ => FAILED,
    }
}
