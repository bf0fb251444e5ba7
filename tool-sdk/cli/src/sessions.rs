//! The command `sessions`: the recorded calls of sessions.

use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};
use tool_sdk_core::internal::rfc3339;
use tool_sdk_core::{CallRecord, EventRecord, SessionStore as _, SessionSummary, ToolError};

use super::exit::{self, CommandError, Result};
use super::settings::Settings;
use super::state_store::with_store;
use super::{Io, args, style};

/// Builds the clap command `sessions list | show | export`.
pub(super) fn build_command() -> Command {
    let id = || Arg::new(args::ID).value_name("ID").required(true).help("The id that `list` shows");
    let commands = [
        Command::new("list")
            .about("List the sessions with recorded calls, the last one first")
            .arg(args::json_flag("Print a JSON array")),
        Command::new("show")
            .about("Show the calls of a session")
            .arg(id())
            .arg(args::json_flag("Print a JSON array")),
        Command::new("export")
            .about("Print the calls of a session with their events as JSON lines")
            .arg(id()),
    ];
    args::with_globals(
        Command::new("sessions")
            .about("Show and export the recorded calls of sessions")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands(commands.map(args::with_globals)),
    )
}

pub(super) fn run(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    match matches.subcommand() {
        Some(("show", behind)) => show_session(settings, behind, io),
        Some(("export", behind)) => export_session(settings, behind, io),
        Some((_, behind)) => summarize_sessions(settings, behind.get_flag(args::JSON), io),
        None => Err(CommandError::usage("`list`, `show ID` or `export ID` is missing")),
    }
}

fn summarize_sessions(settings: &Settings, json: bool, io: &mut Io<'_>) -> Result {
    let sessions = with_store(settings, |store| async move {
        // A command that only looks creates no database.
        if store.describe().await?.databases.is_empty() {
            return Ok(Vec::new());
        }
        store.summarize_sessions().await
    })?;
    if json {
        let entries: Vec<Value> = sessions.iter().map(summary_json).collect();
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
    } else if sessions.is_empty() {
        io.print_stderr("no sessions are recorded\nhint: `--record-sessions` records the calls");
    }
    for session in sessions.iter().filter(|_| !json) {
        let user = session.user.as_ref().map(|user| format!("  of {user}")).unwrap_or_default();
        let line = format!(
            "{}  {}  {} to {}{user}",
            session.session,
            style::count_noun(session.calls.try_into().unwrap_or(usize::MAX), "call"),
            rfc3339(session.first_call),
            rfc3339(session.last_call),
        );
        writeln!(io.stdout, "{}", style::sanitize_text(&line).replace('\n', "\n  "))?;
    }
    Ok(0)
}

fn summary_json(session: &SessionSummary) -> Value {
    json!({
        "id": session.session,
        "user": session.user,
        "calls": session.calls,
        "first_call": rfc3339(session.first_call),
        "last_call": rfc3339(session.last_call),
    })
}

/// Returns the calls of the session that the command names, each with its events if wanted.
fn load_calls(
    settings: &Settings,
    matches: &ArgMatches,
    with_events: bool,
) -> Result<Vec<(CallRecord, Vec<EventRecord>)>> {
    let id = matches.get_one::<String>(args::ID).cloned().unwrap_or_default();
    let session = id.clone();
    let calls = with_store(settings, |store| async move {
        if store.describe().await?.databases.is_empty() {
            return Ok(Vec::new());
        }
        let mut calls = Vec::new();
        for record in store.list_calls(&session).await? {
            let events =
                if with_events { store.list_events(&record.call).await? } else { Vec::new() };
            calls.push((record, events));
        }
        Ok(calls)
    })?;
    if calls.is_empty() {
        let message = format!("there is no recorded session `{}`", id.escape_debug());
        return Err(CommandError::new(exit::USAGE, ToolError::not_found(message))
            .hint("`sessions list` shows the ids"));
    }
    Ok(calls)
}

fn show_session(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let calls = load_calls(settings, matches, false)?;
    if matches.get_flag(args::JSON) {
        let entries: Vec<Value> = calls.iter().map(|(record, _)| call_json(record)).collect();
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
        return Ok(0);
    }
    for (record, _) in &calls {
        let took = record.elapsed_ms.map(|millis| format!(" in {millis} ms")).unwrap_or_default();
        let status = serde_json::to_value(record.status).unwrap_or_default();
        let line = format!(
            "{}  {}  {}{took}  {} {}",
            rfc3339(record.started_at),
            record.call,
            status.as_str().unwrap_or_default(),
            record.tool,
            record.arguments,
        );
        writeln!(io.stdout, "{}", style::sanitize_text(&line).replace('\n', "\n  "))?;
    }
    Ok(0)
}

fn export_session(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    for (record, events) in load_calls(settings, matches, true)? {
        let mut entry = call_json(&record);
        let events =
            events.into_iter().map(|it| json!({ "at": rfc3339(it.at), "event": it.event }));
        entry["events"] = events.collect::<Vec<_>>().into();
        writeln!(io.stdout, "{entry}")?;
    }
    Ok(0)
}

fn call_json(record: &CallRecord) -> Value {
    json!({
        "call": record.call,
        "session": record.session,
        "user": record.user,
        "tool": record.tool,
        "arguments": record.arguments,
        "request": record.request,
        "status": record.status,
        "started_at": rfc3339(record.started_at),
        "elapsed_ms": record.elapsed_ms,
        "response": record.response,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::test_support::TestCli;

    #[test]
    fn recorded_calls_are_listed_shown_and_exported() {
        let mut setting = TestCli::default();
        let ran = setting.run_with_state(&["sessions", "list"]);
        assert!(ran.err.starts_with("no sessions are recorded"), "{}", ran.err);
        setting.run_with_state(&["call", "echo", "--text", "hello", "--record-sessions"]);
        setting.stdin = b"{\"name\": \"echo\", \"arguments\": {\"text\": \"batched\"}}\n".to_vec();
        setting.run_with_state(&["batch", "--record-sessions"]);
        setting.stdin.clear();

        let listed = setting.run_with_state(&["sessions", "list", "--json"]);
        let listed: Value = serde_json::from_str(&listed.out).unwrap();
        let id = listed[0]["id"].as_str().unwrap();
        assert_eq!((&listed[0]["calls"], id.starts_with("cli-")), (&2.into(), true), "{listed}");
        let lines = setting.run_with_state(&["sessions", "list"]).out;
        assert!(lines.starts_with(&format!("{id}  2 calls  20")), "{lines}");

        let shown = setting.run_with_state(&["sessions", "show", id]).out;
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(
            shown.contains("  completed in ") && shown.contains("{\"text\":\"batched\"}"),
            "{shown}"
        );
        let exported = setting.run_with_state(&["sessions", "export", id]).out;
        let call: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
        assert_eq!(call["response"]["text"], "hello", "{call}");
        let events = call["events"].as_array().unwrap();
        assert_eq!(events[0]["event"]["type"], "pending", "{call}");
        assert_eq!(events.last().unwrap()["event"]["type"], "completed", "{call}");
    }

    #[test]
    fn an_unknown_session_is_reported() {
        for command in ["show", "export"] {
            let ran = TestCli::default().run_with_state(&["sessions", command, "nope"]);
            assert!(
                ran.code == 2 && ran.err.contains("there is no recorded session `nope`"),
                "{}",
                ran.err
            );
        }
    }
}
