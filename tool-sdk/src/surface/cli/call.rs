//! `call`: one tool, run as any other caller runs it, through the pipeline.

use std::ffi::OsString;
use std::future::pending;
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::pin::pin;
use std::time::Duration;

use clap::ArgMatches;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::exit::{FAILED, Failure};
use super::{Io, exit, flag, grammar, input, place, show, style};
use crate::call::{Call, CallId, Outcome};
use crate::content::{Attachment, Data, Output};
use crate::context::{Client, Session};
use crate::error::{ErrorKind, ToolError};
use crate::event::{Events, ToolEvent};
use crate::pipeline::Pipeline;
use crate::registry::Registry;
use crate::toolset::Toolset;

/// `top` holds the options before the command, `matches` those between it and the name.
pub(super) fn run(
    program: &str,
    registry: Registry,
    top: &ArgMatches,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> exit::Result {
    let Some((name, behind)) = matches.subcommand() else {
        return Err(Failure::usage("the name of a tool is missing")
            .hint(format_args!("`{program} list` names the tools")));
    };
    let rest: Vec<OsString> = behind.get_many("").into_iter().flatten().cloned().collect();
    let json = matches.get_flag(grammar::JSON) || rest.iter().any(|word| word == "--json");
    let id = CallId::next();
    match attempt(program, registry, &id, name, rest, [top, matches], io) {
        Ok((tool, outcome)) if json => print_json(&tool, &outcome, io),
        Ok((tool, outcome)) => print(program, &tool, outcome, io),
        Err(failure) if json => print_failure(name, &id, failure, io),
        Err(failure) => Err(failure),
    }
}

/// Calls the tool; gives its name and what became of the call.
fn attempt(
    program: &str,
    registry: Registry,
    id: &CallId,
    name: &str,
    rest: Vec<OsString>,
    [top, before]: [&ArgMatches; 2],
    io: &mut Io<'_>,
) -> exit::Result<(String, Outcome)> {
    let toolset = Toolset::new(registry);
    let definition = show::find(program, &toolset, name)?;
    let flags = flag::flags(&definition);
    let behind = grammar::tool(program, &definition, &flags)
        .try_get_matches_from(rest)
        .map_err(|error| flag::explain(error, &flags))?;
    let arguments = input::arguments(&flags, &behind, io)?;

    let levels = [top, before, &behind];
    let session = Session::new("cli").with_client(Client::Cli).lend(place::workspace(&levels, io)?);
    let pipeline = pipeline(toolset, &levels, io);
    let events = before.get_flag(grammar::EVENTS) || behind.get_flag(grammar::EVENTS);
    let events = events.then(|| pipeline.subscribe());
    let mut call = Call::new(name.to_owned(), arguments);
    call.id = Some(id.clone());
    match block_on(drive(pipeline, session, call, events, io.stderr))? {
        Some(outcome) => Ok((definition.name.into(), outcome)),
        None => {
            let error = ToolError::aborted("the call was aborted and did not end in time");
            Err(Failure::new(exit::code(error.kind()), error))
        }
    }
}

pub(super) fn pipeline(toolset: Toolset, levels: &[&ArgMatches], io: &Io<'_>) -> Pipeline {
    let pipeline = Pipeline::new(toolset);
    match place::state_dir(levels, io) {
        Some(dir) => pipeline.output_dir(dir.join("outputs")),
        None => pipeline,
    }
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> exit::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| {
            Failure::new(
                FAILED,
                ToolError::internal(format_args!("cannot start a runtime: {error}")),
            )
        })?;
    let value = runtime.block_on(future);
    // Work that was told to stop and does not listen must not keep the program.
    runtime.shutdown_background();
    Ok(value)
}

/// How long a call that was aborted may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the call on a thread of its own, so that one that blocks is heard and can be left.
///
/// Ctrl-C aborts the call. When it does not end soon, or with a second Ctrl-C, nobody waits
/// for it any more, and there is no outcome.
async fn drive(
    pipeline: Pipeline,
    session: Session,
    call: Call<'static>,
    mut events: Option<Events>,
    stderr: &mut dyn Write,
) -> Option<Outcome> {
    let stop = CancellationToken::new();
    let call = call.cancelled_by(stop.clone());
    let mut interrupt = pin!(interrupt(Duration::MAX));
    let mut running = tokio::spawn(async move { pipeline.call(&session, call).await });
    let ended = loop {
        tokio::select! {
            biased;
            () = &mut interrupt => {
                if stop.is_cancelled() {
                    return None;
                }
                stop.cancel();
                interrupt.set(self::interrupt(PATIENCE));
            }
            Some(event) = next(&mut events) => tell(&event, stderr),
            ended = &mut running => break ended,
        }
    };
    while let Some(event) = events.as_mut().and_then(Events::try_recv) {
        tell(&event, stderr);
    }
    // Nothing aborts the task, so this is a defect of the pipeline and no tool's panic.
    Some(ended.unwrap_or_else(|failure| resume_unwind(failure.into_panic())))
}

async fn next(events: &mut Option<Events>) -> Option<ToolEvent> {
    match events {
        Some(events) => events.recv().await,
        None => pending().await,
    }
}

/// Waits for Ctrl-C, or until `patience` is over.
async fn interrupt(patience: Duration) {
    let ctrl_c = async {
        // Where it cannot be caught it ends the process, as it always did.
        if tokio::signal::ctrl_c().await.is_err() {
            pending::<()>().await;
        }
    };
    let _ = tokio::time::timeout(patience, ctrl_c).await;
}

/// One event as a line of JSON. That nobody reads it is no reason to end the call.
fn tell(event: &ToolEvent, stderr: &mut dyn Write) {
    if let Ok(line) = serde_json::to_string(event) {
        let _ = writeln!(stderr, "{line}");
    }
}

fn print(program: &str, tool: &str, outcome: Outcome, io: &mut Io<'_>) -> exit::Result {
    let error = match outcome.result {
        Ok(output) => {
            print_output(&output, io)?;
            return Ok(0);
        }
        Err(error) => error,
    };
    let wrong_arguments = error.kind() == ErrorKind::InvalidArgs;
    let code = exit::finish(Err(Failure::new(exit::code(error.kind()), error)), false, io);
    if wrong_arguments {
        io.say(format_args!("usage: `{program} call {tool} --help` lists the parameters"));
    }
    Ok(code)
}

fn print_output(output: &Output, io: &mut Io<'_>) -> io::Result<()> {
    let text = output.as_text();
    io.stdout.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        writeln!(io.stdout)?;
    }
    io.stdout.flush()?;
    for attachment in output.attachments() {
        let name = attachment.name.as_deref().unwrap_or("without a name");
        let place = match &attachment.data {
            Data::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Data::Uri(uri) => uri.clone(),
        };
        let line = format!("attachment: {name} ({}, {place})", attachment.mime);
        io.say(style::plain(&line));
    }
    Ok(())
}

fn print_json(tool: &str, outcome: &Outcome, io: &mut Io<'_>) -> exit::Result {
    let (document, code) = match &outcome.result {
        Ok(output) => (success(tool, outcome, output), 0),
        Err(error) => (failure(tool, &outcome.call, error), exit::code(error.kind())),
    };
    writeln!(io.stdout, "{document}")?;
    Ok(code)
}

/// A call that was never made, told like one that failed; help stays help.
fn print_failure(tool: &str, id: &CallId, why: Failure, io: &mut Io<'_>) -> exit::Result {
    let (code, error) = why.into_error()?;
    writeln!(io.stdout, "{}", failure(tool, id, &error))?;
    Ok(code)
}

fn success(tool: &str, outcome: &Outcome, output: &Output) -> Value {
    let mut document = json!({
        "ok": true,
        "tool": tool,
        "call": outcome.call,
        "output": output.as_text(),
    });
    let attachments: Vec<Value> = output.attachments().iter().map(attachment).collect();
    let beside = [
        ("structured", output.to_structured()),
        ("title", output.title_text().map(Value::from)),
        ("metadata", output.metadata_map().cloned().map(Value::from)),
        ("attachments", Some(attachments).filter(|all| !all.is_empty()).map(Value::from)),
        ("display", output.display_data().cloned()),
        ("truncated", outcome.truncated.as_ref().map(|cut| json!(cut))),
        ("notes", Some(&outcome.notes).filter(|notes| !notes.is_empty()).map(|notes| json!(notes))),
    ];
    for (key, value) in beside {
        if let Some(value) = value {
            document[key] = value;
        }
    }
    document
}

fn failure(tool: &str, call: &CallId, error: &ToolError) -> Value {
    json!({ "ok": false, "tool": tool, "call": call, "error": exit::report(error) })
}

/// An attachment without its bytes.
fn attachment(attachment: &Attachment) -> Value {
    let mut entry = json!({ "mime": attachment.mime, "name": attachment.name });
    match &attachment.data {
        Data::Bytes(bytes) => entry["bytes"] = bytes.len().into(),
        Data::Uri(uri) => entry["uri"] = uri.as_str().into(),
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::super::toy::{self, Ran, run};
    use super::*;

    #[track_caller]
    fn check(args: &[&str], code: u8, out: &str, err: &str) {
        let ran = run(&[&["call"], args].concat());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (code, out, err), "{args:?}");
    }

    fn parse(ran: &Ran) -> Value {
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
    }

    #[test]
    fn text_goes_to_stdout_with_a_line_end() {
        check(&["echo", r#"{"text": "hi", "times": 2}"#], 0, "hi\nhi\n", "");
        check(&["echo", "--text", "hi"], 0, "hi\n", "");
        check(&["say", "--text=hi"], 0, "hi\n", "");
        check(&["echo", "--text", ""], 0, "", "");
    }

    #[test]
    fn arguments_come_from_standard_input() {
        let ran = toy::run_on(toy::registry(), &["call", "echo", "-"], br#"{"text": "in"}"#);
        assert_eq!((ran.code, ran.out.as_str()), (0, "in\n"));
    }

    #[test]
    fn attachments_are_named_beside_the_result() {
        let ran = run(&["call", "kinds", "{}"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "{}\n"));
        assert_eq!(ran.err, "attachment: dot.png (image/png, 3 bytes)\n");
    }

    #[test]
    fn json_is_one_value_with_everything() {
        let ran = run(&["call", "kinds", r#"{"count": 1}"#, "--json"]);
        let mut document = parse(&ran);
        assert!(document["call"].is_string());
        document["call"] = "c".into();
        assert_eq!(
            document,
            json!({
                "ok": true, "tool": "kinds", "call": "c",
                "output": "{\"count\":1}", "structured": {"count": 1},
                "title": "Kinds", "metadata": {"n": 1},
                "attachments": [{"mime": "image/png", "name": "dot.png", "bytes": 3}],
                "display": {"type": "kinds"},
            })
        );
        assert_eq!((ran.err.as_str(), ran.out.lines().count()), ("", 1));
    }

    #[test]
    fn the_exit_code_follows_from_the_kind() {
        for kind in ErrorKind::ALL {
            let ran = run(&["call", "fail", "--kind", kind.as_str()]);
            assert_eq!((ran.code, ran.out.as_str()), (exit::code(kind), ""), "{kind}");
            assert!(ran.err.starts_with("error: no luck\nhint: try again\n"), "{}", ran.err);
            let ran = run(&["call", "--json", "fail", "--kind", kind.as_str()]);
            assert_eq!((ran.code, ran.err.as_str()), (exit::code(kind), ""));
            assert_eq!(parse(&ran)["error"]["kind"], kind.as_str());
        }
    }

    #[test]
    fn invalid_arguments_point_at_the_help() {
        let ran = run(&["call", "echo", "--text", "x", "--times", "many"]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert!(ran.err.contains("times") && ran.err.contains("integer"), "{}", ran.err);
        assert!(ran.err.ends_with("usage: `toy call echo --help` lists the parameters\n"));
        assert_eq!(run(&["call", "echo"]).code, 2);
        assert_eq!(run(&["call", "echo", r#"{"text": "a", "text": "b"}"#]).code, 2);
    }

    #[test]
    fn an_unknown_tool_is_wrong_usage() {
        check(&["ecko"], 2, "", "error: there is no tool `ecko`\nhint: did you mean `echo`?\n");
        let ran = run(&["call", "ecko", "{}", "--json"]);
        let document = parse(&ran);
        assert_eq!((ran.code, &document["ok"]), (2, &json!(false)));
        assert_eq!(document["error"]["kind"], "not_found");
        assert_eq!(document["error"]["hint"], "did you mean `echo`?");
    }

    #[test]
    fn wrong_usage_is_json_too_where_json_was_asked_for() {
        let ran = run(&["call", "echo", "--txet", "x", "--json"]);
        assert_eq!((ran.code, ran.err.as_str()), (2, ""));
        let document = parse(&ran);
        assert_eq!(document["error"]["kind"], "invalid_args");
        let message = document["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("unexpected argument '--txet'"), "{message}");
    }

    #[test]
    fn help_is_made_from_the_schema() {
        let ran = run(&["call", "echo", "--help"]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        for part in [
            "Says it again. And that is all.",
            "toy call echo [JSON | - | @FILE | --PARAMETER VALUE…]",
            "--text <STRING>",
            "What to say. [string; at most 20 characters; required]",
            "How often. [integer between 1 and 3; default: 1]",
            "--root <DIR>",
            "toy call echo --text 'hello there' --times 2",
        ] {
            assert!(ran.out.contains(part), "{part} is not in {}", ran.out);
        }
    }

    #[test]
    fn events_are_lines_of_json() {
        let ran = run(&["call", "echo", "--events", "--text", "hi"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "hi\n"));
        let events: Vec<Value> =
            ran.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["pending", "started", "progress", "completed"]);
    }

    #[test]
    fn a_root_that_cannot_be_opened_is_wrong_usage() {
        let ran = run(&["--root", "/no/such/folder", "call", "echo", "--text", "x"]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert!(ran.err.contains("/no/such/folder"), "{}", ran.err);
    }
}
