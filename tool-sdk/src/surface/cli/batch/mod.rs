//! `batch`: many calls, one JSON object a line in, one result a line out, in their order.
//!
//! A line that is no call is a failed result in its place; it stops none of the others.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;

use clap::ArgMatches;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::exit::{Failure, Result};
use super::mcp::{Foreign, Need};
use super::stage::Stage;
use super::{App, Io, drive, exit, grammar, input, outcome, show};
use crate::batch::Batch;
use crate::call::{Call, CallId};
use crate::error::ToolError;
use crate::toolset::View;

/// The most that is read in all; this only ends what would never end.
const MAX_BYTES: u64 = 64 << 20;
/// The most that one call may take.
const MAX_LINE: usize = 4 << 20;

pub(super) fn run(
    app: &App,
    program: &str,
    top: &ArgMatches,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let foreign = Foreign::load(&[top, matches], io)?;
    let mut stage = Stage::set(app, &[top, matches], io)?;
    foreign.join(&mut stage, Need::All, io);
    let view = stage.view();
    let entries: Vec<Entry> = read(matches, io)?
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| Entry::read(line, program, &view))
        .collect();

    let results = results(entries, stage, matches.get_flag(grammar::EVENTS), io)?;
    let code = code(&results);
    let documents: Vec<Value> = results.into_iter().map(|(document, _)| document).collect();
    if matches.get_flag(grammar::JSON) {
        writeln!(io.stdout, "{}", Value::from(documents))?;
    } else {
        for document in documents {
            writeln!(io.stdout, "{document}")?;
        }
    }
    Ok(code)
}

/// The exit code of the whole: a denial is told before anything else, since what was
/// aborted may only be its consequence.
fn code(results: &[(Value, u8)]) -> u8 {
    let order = [exit::DENIED, exit::USAGE, exit::ENDED_EARLY, exit::FAILED];
    let ended = |wanted: &u8| results.iter().any(|(_, code)| code == wanted);
    order.into_iter().find(ended).unwrap_or(0)
}

fn read(matches: &ArgMatches, io: &mut Io<'_>) -> Result<Vec<u8>> {
    match matches.get_one::<OsString>(grammar::FILE).filter(|file| *file != "-") {
        None => input::bytes(&mut *io.stdin, "standard input", MAX_BYTES),
        Some(file) => {
            let name = file.display();
            let mut file = File::open(io.path(file))
                .map_err(|error| Failure::usage(format_args!("cannot open `{name}`: {error}")))?;
            input::bytes(&mut file, &format!("`{name}`"), MAX_BYTES)
        }
    }
}

/// Runs what can be run; gives a document and an exit code for every entry.
fn results(
    entries: Vec<Entry>,
    stage: Stage,
    events: bool,
    io: &mut Io<'_>,
) -> Result<Vec<(Value, u8)>> {
    let calls: Vec<Call<'static>> = entries.iter().filter_map(Entry::call).collect();
    let watch = stage.watch(events, io);
    let Stage { pipeline, session, stop, .. } = stage;
    let after = pipeline.clone();
    let work = async move { Batch::new(&pipeline).run(&session, calls).await };
    let mut outcomes = drive::run(work, after.finish(), &stop, watch, io.stderr)?.into_iter();

    let results = entries.into_iter().map(|entry| {
        let (document, code) = match entry.what {
            Ok(Wanted { tool, .. }) => match outcomes.next() {
                Some(outcome) => outcome::document(&tool, &outcome),
                None => {
                    let error = ToolError::internal("the call has no outcome");
                    (outcome::failure(&tool, &entry.call, &error), exit::FAILED)
                }
            },
            Err(Refused { tool, code, error, is_unknown }) => {
                if is_unknown {
                    // Told like any call; what is said of it is for a command line.
                    drop(outcomes.next());
                }
                (outcome::failure(&tool, &entry.call, &error), code)
            }
        };
        (with_id(entry.id, document), code)
    });
    Ok(results.collect())
}

/// A document with the id in front.
fn with_id(id: Value, document: Value) -> Value {
    let mut all = Map::from_iter([("id".to_owned(), id)]);
    if let Value::Object(members) = document {
        all.extend(members);
    }
    Value::Object(all)
}

/// One line.
struct Entry {
    /// The id as it was given.
    id: Value,
    call: CallId,
    what: std::result::Result<Wanted, Refused>,
}

/// A call to be made.
struct Wanted {
    /// The tool's name, where the line may have an alias.
    tool: String,
    arguments: String,
}

/// Why a line is no call.
struct Refused {
    tool: String,
    code: u8,
    error: ToolError,
    /// Whether it is one, of a tool that there is not.
    is_unknown: bool,
}

/// A call as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(default)]
    id: Value,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Entry {
    fn read(line: &[u8], program: &str, view: &View) -> Self {
        let (id, what) = match parse(line) {
            Ok(line) => {
                let what = wanted(&line, program, view);
                let is_unknown = view.definition(&line.name).is_none();
                let refused = |failure| Refused::new(line.name.into_owned(), is_unknown, failure);
                (line.id, what.map_err(refused))
            }
            Err(failure) => (id_of(line), Err(Refused::new(String::new(), false, failure))),
        };
        let call = match &id {
            Value::String(id) => CallId::given(id),
            Value::Number(id) => CallId::given(&id.to_string()),
            _ => CallId::next(),
        };
        Self { id, call, what }
    }

    fn call(&self) -> Option<Call<'static>> {
        let (tool, arguments) = match &self.what {
            Ok(Wanted { tool, arguments }) => (tool, &**arguments),
            // Whoever listens is told of it, too.
            Err(Refused { tool, is_unknown: true, .. }) => (tool, "{}"),
            Err(_) => return None,
        };
        let mut call = Call::new(tool.clone(), arguments.to_owned()).message("batch");
        call.id = Some(self.call.clone());
        Some(call)
    }
}

impl Refused {
    fn new(tool: String, is_unknown: bool, failure: Failure) -> Self {
        let (code, error) = failure.into_error().unwrap_or_else(|_| {
            (exit::FAILED, ToolError::internal("why this is no call cannot be told"))
        });
        Self { tool, code, error, is_unknown }
    }
}

fn parse(line: &[u8]) -> Result<Line<'_>> {
    if line.len() > MAX_LINE {
        let limit = MAX_LINE >> 20;
        return Err(Failure::usage(format_args!("the line is longer than {limit} MiB")));
    }
    let text = std::str::from_utf8(line).map_err(|_| Failure::usage("the line is not UTF-8"))?;
    let no_call = |why: &dyn Display| {
        Failure::usage(format_args!("the line is no call: {why}"))
            .hint(r#"write {"id": "1", "name": "…", "arguments": {…}} on one line"#)
    };
    // A list of the values would be read as well, in the order of the keys.
    if text.trim_ascii_start().starts_with('[') {
        return Err(no_call(&"it is a list"));
    }
    let line: Line<'_> = serde_json::from_str(text).map_err(|error| no_call(&error))?;
    match line.id {
        Value::Null | Value::String(_) | Value::Number(_) => Ok(line),
        _ => Err(Failure::usage("`id` must be a string or a number")),
    }
}

fn wanted(line: &Line<'_>, program: &str, view: &View) -> Result<Wanted> {
    let tool = show::find(program, view, &line.name)?.name.into();
    let arguments = match line.arguments.map(RawValue::get) {
        None => "{}".to_owned(),
        // As providers send them: the object as a text of its own.
        Some(text) if text.starts_with('"') => serde_json::from_str(text)
            .map_err(|error| Failure::usage(format_args!("`arguments` is broken: {error}")))?,
        // As it was written, so that duplicate keys in it are still seen.
        Some(text) => text.to_owned(),
    };
    Ok(Wanted { tool, arguments })
}

/// The id of a line that is no call, where it has one.
fn id_of(line: &[u8]) -> Value {
    let line: Value = serde_json::from_slice(&line[..line.len().min(MAX_LINE)]).unwrap_or_default();
    let id = line.get("id").filter(|id| id.is_string() || id.is_number());
    id.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests;
