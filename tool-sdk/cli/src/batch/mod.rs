//! The command `batch`: reads calls as JSON lines and prints one result a line, in input order.
//!
//! A line that is not a valid call becomes a failed result in its place; the others still run.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;

use clap::ArgMatches;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tool_sdk_core::{Batch, Call, CallId, ToolError, ToolsetView};

use super::call_environment::CallEnvironment;
use super::exit::{CommandError, Result};
use super::mcp::{ConfiguredServers, ServerScope};
use super::settings::Settings;
use super::{App, Io, args, exit, input, json_output, run_loop, show};

/// The limit of the whole input in bytes, against endless input.
const MAX_BYTES: u64 = 64 << 20;
/// The limit of one line in bytes.
const MAX_LINE: usize = 4 << 20;

pub(super) fn run(
    app: &App,
    program: &str,
    settings: &Settings,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let servers = ConfiguredServers::load(settings, io)?;
    let mut environment = CallEnvironment::build(app, settings, app.build_toolset(settings)?, io)?;
    servers.connect_into(&mut environment, ServerScope::All, io);
    environment.warn_missing_services(io);
    let view = environment.toolset_view();
    let entries: Vec<BatchEntry> = read_input(matches, io)?
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| BatchEntry::parse(line, program, &view))
        .collect();

    let results = run_entries(entries, environment, matches.get_flag(args::EVENTS), io)?;
    let code = worst_exit_code(&results);
    let documents: Vec<Value> = results.into_iter().map(|(document, _)| document).collect();
    if matches.get_flag(args::JSON) {
        writeln!(io.stdout, "{}", Value::from(documents))?;
    } else {
        for document in documents {
            writeln!(io.stdout, "{document}")?;
        }
    }
    Ok(code)
}

/// Returns the exit code of the batch. A denial takes precedence, because the abort of other
/// calls may be its consequence.
fn worst_exit_code(results: &[(Value, u8)]) -> u8 {
    let order = [exit::DENIED, exit::USAGE, exit::ENDED_EARLY, exit::FAILED];
    let ended = |wanted: &u8| results.iter().any(|(_, code)| code == wanted);
    order.into_iter().find(ended).unwrap_or(0)
}

fn read_input(matches: &ArgMatches, io: &mut Io<'_>) -> Result<Vec<u8>> {
    match matches.get_one::<OsString>(args::FILE).filter(|file| *file != "-") {
        None => {
            if io.stdin_is_terminal {
                io.print_stderr("reads calls until Ctrl-D, one JSON object a line");
            }
            input::read_bytes(&mut *io.stdin, "standard input", MAX_BYTES)
        }
        Some(file) => {
            let name = file.display();
            let mut file = File::open(io.resolve_path(file)).map_err(|error| {
                CommandError::usage(format_args!("cannot open `{name}`: {error}"))
            })?;
            input::read_bytes(&mut file, &format!("`{name}`"), MAX_BYTES)
        }
    }
}

/// Runs the valid calls, and returns a result document and an exit code for every entry.
fn run_entries(
    entries: Vec<BatchEntry>,
    environment: CallEnvironment,
    events: bool,
    io: &mut Io<'_>,
) -> Result<Vec<(Value, u8)>> {
    let calls: Vec<Call<'static>> = entries.iter().filter_map(BatchEntry::to_call).collect();
    let printer = environment.event_printer(events, io);
    let session = environment.ending_session();
    let CallEnvironment { pipeline, cancel_token: stop, .. } = environment;
    let after = pipeline.clone();
    let work = async move { Batch::new(&pipeline).run(&session, calls).await };
    let (outcomes, _) = run_loop::run_calls(work, after.finish(), &stop, printer, io.stderr)?;
    let mut outcomes = outcomes.into_iter();

    let results = entries.into_iter().map(|entry| {
        let (document, code) = match entry.call_or_error {
            Ok(BatchCall { tool, .. }) => match outcomes.next() {
                Some(outcome) => json_output::outcome_document(&tool, &outcome),
                None => {
                    let error = ToolError::internal("the call has no outcome");
                    (json_output::failure_document(&tool, &entry.call, &error), exit::FAILED)
                }
            },
            Err(RejectedLine { tool, code, error, is_unknown }) => {
                if is_unknown {
                    // The call only exists to emit its events; the error here has better hints.
                    drop(outcomes.next());
                }
                (json_output::failure_document(&tool, &entry.call, &error), code)
            }
        };
        (prepend_id(entry.id, document), code)
    });
    Ok(results.collect())
}

/// Adds the id as the first member of a document.
fn prepend_id(id: Value, document: Value) -> Value {
    let mut all = Map::from_iter([("id".to_owned(), id)]);
    if let Value::Object(members) = document {
        all.extend(members);
    }
    Value::Object(all)
}

/// One line of the input.
struct BatchEntry {
    /// The id as it was sent.
    id: Value,
    call: CallId,
    call_or_error: std::result::Result<BatchCall, RejectedLine>,
}

/// A valid call.
struct BatchCall {
    /// The canonical name of the tool; the line may have used an alias.
    tool: String,
    arguments: String,
}

/// Why a line is not a valid call.
struct RejectedLine {
    tool: String,
    code: u8,
    error: ToolError,
    /// Whether the line is valid except that the tool is unknown.
    is_unknown: bool,
}

/// The JSON form of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchLine<'a> {
    #[serde(default)]
    id: Value,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl BatchEntry {
    fn parse(line: &[u8], program: &str, view: &ToolsetView) -> Self {
        let (id, call_or_error) = match parse_line(line) {
            Ok(line) => {
                let what = resolve_call(&line, program, view);
                let is_unknown = view.definition(&line.name).is_none();
                let refused =
                    |failure| RejectedLine::new(line.name.into_owned(), is_unknown, failure);
                (line.id, what.map_err(refused))
            }
            Err(failure) => (find_id(line), Err(RejectedLine::new(String::new(), false, failure))),
        };
        let call = match &id {
            Value::String(id) => CallId::from_external(id),
            Value::Number(id) => CallId::from_external(&id.to_string()),
            _ => CallId::generate(),
        };
        Self { id, call, call_or_error }
    }

    fn to_call(&self) -> Option<Call<'static>> {
        let (tool, arguments) = match &self.call_or_error {
            Ok(BatchCall { tool, arguments }) => (tool, &**arguments),
            // Made anyway, so that event subscribers see it fail.
            Err(RejectedLine { tool, is_unknown: true, .. }) => (tool, "{}"),
            Err(_) => return None,
        };
        let mut call = Call::new(tool.clone(), arguments.to_owned()).message("batch");
        call.id = Some(self.call.clone());
        Some(call)
    }
}

impl RejectedLine {
    fn new(tool: String, is_unknown: bool, failure: CommandError) -> Self {
        let (code, error) = failure.into_tool_error().unwrap_or_else(|_| {
            (exit::FAILED, ToolError::internal("cannot report why this line is not a valid call"))
        });
        Self { tool, code, error, is_unknown }
    }
}

fn parse_line(line: &[u8]) -> Result<BatchLine<'_>> {
    if line.len() > MAX_LINE {
        let limit = MAX_LINE >> 20;
        return Err(CommandError::usage(format_args!("the line is longer than {limit} MiB")));
    }
    let text =
        std::str::from_utf8(line).map_err(|_| CommandError::usage("the line is not UTF-8"))?;
    let no_call = |why: &dyn Display| {
        CommandError::usage(format_args!("the line is not a valid call: {why}"))
            .hint(r#"write {"id": "1", "name": "…", "arguments": {…}} on one line"#)
    };
    // serde would also accept an array of the values in field order.
    if text.trim_ascii_start().starts_with('[') {
        return Err(no_call(&"expected an object, found an array"));
    }
    let line: BatchLine<'_> = serde_json::from_str(text).map_err(|error| no_call(&error))?;
    match line.id {
        Value::Null | Value::String(_) | Value::Number(_) => Ok(line),
        _ => Err(CommandError::usage("`id` must be a string or a number")),
    }
}

fn resolve_call(line: &BatchLine<'_>, program: &str, view: &ToolsetView) -> Result<BatchCall> {
    let tool = show::find_tool(program, view, &line.name)?.name.into();
    let arguments = match line.arguments.map(RawValue::get) {
        None => "{}".to_owned(),
        // Model providers send the arguments as a JSON string that holds an object.
        Some(text) if text.starts_with('"') => serde_json::from_str(text).map_err(|error| {
            CommandError::usage(format_args!("`arguments` is not valid JSON: {error}"))
        })?,
        // Kept as text, so that the pipeline still finds duplicate keys.
        Some(text) => text.to_owned(),
    };
    Ok(BatchCall { tool, arguments })
}

/// Returns the id of a line that is not a valid call, if it has one.
fn find_id(line: &[u8]) -> Value {
    let line: Value = serde_json::from_slice(&line[..line.len().min(MAX_LINE)]).unwrap_or_default();
    let id = line.get("id").filter(|id| id.is_string() || id.is_number());
    id.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests;
