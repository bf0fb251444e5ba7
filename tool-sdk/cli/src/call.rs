//! The command `call`: runs one tool through the pipeline and prints its result.

use std::io;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use tool_sdk_core::{AttachmentData, ErrorKind, Outcome, Output, ToolError};

use super::args::{self, ToolVerb};
use super::call_environment::FinishedCall;
use super::call_request::CallRequest;
use super::exit::CommandError;
use super::{App, Io, attachments, exit, json_output, style};

/// Runs `call`. `top` holds the options before the command, `matches` those between the command
/// and the tool's name.
pub(super) fn run(
    app: &App,
    program: &str,
    top: &ArgMatches,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> exit::Result {
    let request = CallRequest::from_matches(program, ToolVerb::Call, top, matches)?;
    let folder = request.save_folder().map(|folder| io.resolve_path(folder));
    match (call_tool(app, program, &request, io), request.has_switch(args::JSON)) {
        (Ok((tool, finished)), true) => {
            let saved = save_attachments(&finished.outcome, folder.as_deref())?;
            let (mut document, code) = json_output::outcome_document(&tool, &finished.outcome);
            json_output::add_saved_paths(&mut document, &saved);
            writeln!(io.stdout, "{document}")?;
            Ok(code)
        }
        (Ok((tool, finished)), false) => {
            let saved = save_attachments(&finished.outcome, folder.as_deref())?;
            print_outcome(program, &tool, finished, &saved, io)
        }
        (Err(failure), true) => {
            // A call that was never made is reported like one that failed; help stays text.
            let (code, error) = failure.into_tool_error()?;
            let document = json_output::failure_document(request.name, &request.id, &error);
            writeln!(io.stdout, "{document}")?;
            Ok(code)
        }
        (Err(failure), false) => Err(failure),
    }
}

/// Calls the tool, and returns its canonical name and the outcome.
fn call_tool(
    app: &App,
    program: &str,
    request: &CallRequest<'_>,
    io: &mut Io<'_>,
) -> exit::Result<(String, FinishedCall)> {
    let ready = request.prepare(app, program, io)?;
    let finished = ready.environment.call(ready.call, request.emits_events(), io)?;
    Ok((ready.tool, finished))
}

/// Returns the output of a call, also of one that failed.
fn outcome_output(outcome: &Outcome) -> Option<&Output> {
    outcome.result.as_ref().map_or_else(ToolError::output, Some)
}

/// Saves the attachments if there is a folder for them.
fn save_attachments(
    outcome: &Outcome,
    folder: Option<&Path>,
) -> exit::Result<Vec<Option<PathBuf>>> {
    match (outcome_output(outcome), folder) {
        (Some(output), Some(folder)) => attachments::save_attachments(output, folder),
        _ => Ok(Vec::new()),
    }
}

fn print_outcome(
    program: &str,
    tool: &str,
    finished: FinishedCall,
    saved: &[Option<PathBuf>],
    io: &mut Io<'_>,
) -> exit::Result {
    let error = match finished.outcome.result {
        Ok(output) => {
            print_output(&output, &finished.live_output, saved, io)?;
            return Ok(exit::output_exit_code(&output));
        }
        Err(error) => error,
    };
    let wrong_arguments = error.kind() == ErrorKind::InvalidArgs;
    let denied_in_plan_mode = finished.is_in_plan_mode && error.kind() == ErrorKind::Denied;
    if let Some(output) = error.output() {
        print_attachments(output, saved, io);
    }
    let code = exit::report_result(
        Err(CommandError::new(exit::exit_code(error.kind()), error)),
        false,
        io,
    );
    if wrong_arguments {
        io.print_stderr(format_args!("hint: `{program} call {tool} --help` lists the parameters"));
    }
    if denied_in_plan_mode {
        io.print_stderr(format_args!("hint: `{program} state end-plan` ends plan mode"));
    }
    Ok(code)
}

/// Prints the text of the result. On a terminal, a part at its end that was shown while the tool
/// ran is not printed again, and a diff is shown below.
fn print_output(
    output: &Output,
    live_output: &str,
    saved: &[Option<PathBuf>],
    io: &mut Io<'_>,
) -> io::Result<()> {
    let text = output.as_text();
    let text = match text.trim_end().strip_suffix(live_output.trim_end()) {
        Some(rest) if io.stdout_is_terminal && !live_output.trim_end().is_empty() => rest,
        _ => text,
    };
    // Control characters in tool output must not reach the terminal.
    let text = if io.stdout_is_terminal { style::escape_text(text) } else { text.into() };
    io.stdout.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        writeln!(io.stdout)?;
    }
    if io.stdout_is_terminal {
        print_diff(output, io)?;
    }
    io.stdout.flush()?;
    print_attachments(output, saved, io);
    Ok(())
}

/// Prints the diff of a result that has one.
fn print_diff(output: &Output, io: &mut Io<'_>) -> io::Result<()> {
    let style = style::TextStyle::for_stdout(io);
    let diff = output.display_data().and_then(|display| display.get("unified")?.as_str());
    for line in diff.into_iter().flat_map(str::lines) {
        writeln!(io.stdout, "{}", style.diff_line(line, &style::escape_text(line)))?;
    }
    Ok(())
}

/// Lists the attachments, each with the path under which it was saved.
fn print_attachments(output: &Output, saved: &[Option<PathBuf>], io: &mut Io<'_>) {
    for (nth, attachment) in output.attachments().iter().enumerate() {
        let name = attachment.name.as_deref().unwrap_or("unnamed");
        let place = match &attachment.data {
            AttachmentData::Bytes(bytes) => format!("{} bytes", bytes.len()),
            AttachmentData::Uri(uri) => uri.clone(),
        };
        let path = saved.get(nth).and_then(Option::as_ref);
        let path = path.map(|path| format!(" saved as {}", path.display())).unwrap_or_default();
        let line = format!("attachment: {name} ({}, {place}){path}", attachment.mime);
        io.print_stderr(style::sanitize_text(&line));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::test_support::{CliOutput, TestCli, run};

    #[track_caller]
    fn check(args: &[&str], code: u8, out: &str, err: &str) {
        let ran = run(&[&["call"], args].concat());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (code, out, err), "{args:?}");
    }

    fn parse(ran: &CliOutput) -> Value {
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
    fn a_terminal_gets_no_control_characters_and_a_file_gets_them() {
        let text = "a\u{1b}[2J\tb\nc";
        for (terminal, out) in [(true, "a\\u{1b}[2J\tb\nc\n"), (false, "a\u{1b}[2J\tb\nc\n")] {
            let setting = TestCli { stdout_is_terminal: terminal, ..TestCli::default() };
            assert_eq!(setting.run(&["call", "echo", "--text", text]).out, out);
        }
    }

    #[test]
    fn arguments_come_from_standard_input() {
        let setting = TestCli { stdin: br#"{"text": "in"}"#.to_vec(), ..TestCli::default() };
        let ran = setting.run(&["call", "echo", "-"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "in\n"));
    }

    #[test]
    fn attachments_are_listed_on_stderr() {
        let ran = run(&["--yes", "call", "kinds", "{}"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "{}\n"));
        assert_eq!(ran.err, "attachment: dot.png (image/png, 3 bytes)\n");
    }

    // F192
    #[test]
    fn a_call_ends_at_the_time_limit_of_the_user() {
        let definition = crate::test_support::make_definition("wait", json!({}));
        let wait =
            tool_sdk_core::DynamicTool::new(definition, |_: Value, _: tool_sdk_core::Context| {
                std::future::pending::<&'static str>()
            });
        let registry = tool_sdk_core::Registry::builder().add(wait).build().unwrap();
        let ran = crate::test_support::run_registry(
            registry,
            &["--yes", "--call-timeout", "20ms", "call", "wait"],
        );
        assert_eq!(ran.code, exit::ENDED_EARLY, "{}", ran.err);
    }

    #[test]
    fn attachments_are_saved_in_a_folder() {
        let setting = TestCli::default();
        let path = setting.folder.path().join("out/dot.png");
        let ran = setting.run(&["--yes", "call", "kinds", "{}", "--save", "out"]);
        let saved =
            format!("attachment: dot.png (image/png, 3 bytes) saved as {}\n", path.display());
        assert_eq!((ran.code, ran.out.as_str(), ran.err), (0, "{}\n", saved));
        assert_eq!(std::fs::read(&path).unwrap(), [0; 3]);
        let ran = setting.run(&["--yes", "call", "--save", "out", "kinds", "{}", "--json"]);
        let again = setting.folder.path().join("out/dot-1.png");
        assert_eq!(parse(&ran)["attachments"][0]["path"], again.to_str().unwrap());
        let file = setting.write_text("file", "");
        let ran = setting.run(&["--yes", "call", "kinds", "{}", "--save", &file]);
        assert!(ran.code == 1 && ran.err.contains("cannot save an attachment"), "{}", ran.err);
    }

    #[test]
    fn json_is_one_value_with_everything() {
        let ran = run(&["call", "--yes", "kinds", r#"{"count": 1}"#, "--json"]);
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
        // A key is written only for what the result has.
        let plain = parse(&run(&["call", "echo", "--text", "x", "--json"]));
        let keys: Vec<&String> = plain.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["ok", "tool", "call", "output"]);
    }

    #[test]
    fn the_exit_code_follows_from_the_kind() {
        for kind in ErrorKind::ALL {
            let ran = run(&["call", "fail", "--mode=bypass", "--kind", kind.as_str()]);
            assert_eq!((ran.code, ran.out.as_str()), (exit::exit_code(kind), ""), "{kind}");
            assert!(ran.err.starts_with("error: no luck\nhint: try again\n"), "{}", ran.err);
            let ran = run(&["call", "--json", "fail", "--yes", "--kind", kind.as_str()]);
            assert_eq!((ran.code, ran.err.as_str()), (exit::exit_code(kind), ""));
            let document = parse(&ran);
            assert_eq!(document["error"]["kind"], kind.as_str());
            assert_eq!(document.get("attachments"), None);
        }
    }

    #[test]
    fn invalid_arguments_point_at_the_help() {
        let ran = run(&["call", "echo", "--text", "x", "--times", "many"]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert!(ran.err.contains("times") && ran.err.contains("integer"), "{}", ran.err);
        assert!(ran.err.ends_with("hint: `toy call echo --help` lists the parameters\n"));
        assert_eq!(run(&["call", "echo"]).code, 2);
        assert_eq!(run(&["call", "echo", r#"{"text": "a", "text": "b"}"#]).code, 2);
    }

    #[test]
    fn reports_every_invalid_argument_at_once() {
        let flags = ["--txet", "x", "--times", "9", "--times", "8", "--mode", "fast"];
        let ran = run(&[&["call", "echo"][..], &flags].concat());
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        for words in [
            "error: invalid arguments for `echo`:\n",
            "- unknown argument `txet`; did you mean `text`?\n",
            "- `times` comes twice\n",
            "- invalid value 'fast' for '--mode <MODE>'",
            "- `text` is required (string",
            "\nexpected: {\"text\": string",
            "hint: `toy call echo --help` lists the parameters\n",
        ] {
            assert!(ran.err.contains(words), "{words}: {}", ran.err);
        }
    }

    #[test]
    fn a_tool_removed_from_the_toolset_is_unknown() {
        let app = App::new(crate::test_support::test_registry())
            .with_toolset(|tools| tools.without(["echo"]));
        for verb in ["call", "check", "show"] {
            let ran = TestCli::default().run_app(&app, &[verb, "echo", "--json"]);
            let document = parse(&ran);
            assert_eq!((ran.code, ran.err.as_str()), (2, ""), "{verb}");
            assert_eq!(document["error"]["message"], "there is no tool `echo`", "{verb}");
        }
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
        assert!(message.contains("unknown argument `txet`; did you mean `text`?"), "{message}");
    }

    // F33, F39: a call of an unknown tool emits a terminal event like any other.
    #[test]
    fn a_call_of_an_unknown_tool_emits_failed() {
        for words in [&["call", "--events", "ecko", "{}"], &["call", "ecko", "{}", "--events"]] {
            let ran = run(words);
            let (event, rest) = ran.err.split_once('\n').unwrap();
            let event: Value = serde_json::from_str(event).unwrap();
            assert_eq!((ran.code, &event["type"]), (2, &json!("failed")), "{words:?}");
            assert!(rest.starts_with("error: there is no tool `ecko`"), "{rest}");
        }
    }

    #[test]
    fn help_is_made_from_the_schema() {
        let ran = run(&["call", "echo", "--help"]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        for part in [
            "Says it again. And that is all.",
            "toy call echo [JSON | - | @FILE]",
            "toy call echo [--PARAMETER VALUE]…",
            "--text <STRING>",
            "What to say. [string; at most 20 characters; required]",
            "How often. [integer between 1 and 3; default: 1]",
            "--root <DIR>",
            "\n  toy call echo --text 'hello there' --times 2\n",
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
