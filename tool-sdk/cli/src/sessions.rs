//! The command `sessions`: the recorded calls of sessions, and the conversations of agents.

use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};
use tool_sdk_core::internal::rfc3339;
use tool_sdk_core::provider::{CallAnswer, ModelMessage};
use tool_sdk_core::{
    CallRecord, ConversationQuery, ConversationRecord, ConversationSummary, EventRecord,
    SessionStore as _, SessionSummary, ToolError,
};

use super::exit::{self, CommandError, Result};
use super::settings::Settings;
use super::state_store::{open_conversations, with_store};
use super::{Io, args, style};

/// Builds the clap command `sessions list | show | export`.
pub(super) fn build_command() -> Command {
    let id = || Arg::new(args::ID).value_name("ID").required(true).help("The id that `list` shows");
    let commands = [
        Command::new("list")
            .about("List the sessions with recorded calls and the conversations, the last one first")
            .arg(args::json_flag("Print a JSON array")),
        Command::new("show")
            .about("Show the calls of a session, or what was said in a conversation")
            .arg(id())
            .arg(args::json_flag("Print a JSON array")),
        Command::new("export")
            .about("Print the calls of a session with their events, or the entries of a conversation, as JSON lines")
            .arg(id()),
    ];
    args::with_globals(
        Command::new("sessions")
            .about("Show and export the recorded calls of sessions, and conversations")
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

/// An entry of the list.
enum ListedEntry {
    Session(SessionSummary),
    Conversation(ConversationSummary),
}

fn summarize_sessions(settings: &Settings, json: bool, io: &mut Io<'_>) -> Result {
    let conversations = open_conversations(settings);
    let mut entries = with_store(settings, |store| async move {
        let mut entries = Vec::new();
        if let Some(conversations) = conversations {
            let all = conversations.list_conversations(&ConversationQuery::default()).await?;
            entries.extend(all.into_iter().map(ListedEntry::Conversation));
        }
        // A command that only looks creates no database.
        if !store.describe().await?.databases.is_empty() {
            let sessions = store.summarize_sessions().await?;
            entries.extend(sessions.into_iter().map(ListedEntry::Session));
        }
        Ok(entries)
    })?;
    entries.sort_by_key(|entry| {
        std::cmp::Reverse(match entry {
            ListedEntry::Session(session) => session.last_call,
            ListedEntry::Conversation(conversation) => conversation.changed_at,
        })
    });
    if json {
        let entries: Vec<Value> = entries.iter().map(ListedEntry::to_json).collect();
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
        return Ok(0);
    }
    if entries.is_empty() {
        io.print_stderr("no sessions are recorded\nhint: `--record-sessions` records the calls");
    }
    for entry in &entries {
        let line = entry.to_line();
        writeln!(io.stdout, "{}", style::sanitize_text(&line).replace('\n', "\n  "))?;
    }
    Ok(0)
}

impl ListedEntry {
    fn to_line(&self) -> String {
        let count =
            |count: u64, noun| style::count_noun(count.try_into().unwrap_or(usize::MAX), noun);
        match self {
            Self::Session(session) => {
                let user = session.user.as_ref().map(|user| format!("  of {user}"));
                format!(
                    "{}  {}  {} to {}{}",
                    session.session,
                    count(session.calls, "call"),
                    rfc3339(session.first_call),
                    rfc3339(session.last_call),
                    user.unwrap_or_default(),
                )
            }
            Self::Conversation(conversation) => format!(
                "{}  a conversation of {}  {}  {}",
                conversation.id,
                // English forms this plural in its own way.
                match conversation.entries {
                    1 => "1 entry".to_owned(),
                    entries => format!("{entries} entries"),
                },
                rfc3339(conversation.changed_at),
                conversation.title.as_deref().unwrap_or_default(),
            ),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Session(session) => json!({
                "kind": "session",
                "id": session.session,
                "user": session.user,
                "calls": session.calls,
                "first_call": rfc3339(session.first_call),
                "last_call": rfc3339(session.last_call),
            }),
            Self::Conversation(conversation) => json!({
                "kind": "conversation",
                "id": conversation.id,
                "title": conversation.title,
                "folder": conversation.folder,
                "entries": conversation.entries,
                "changed_at": rfc3339(conversation.changed_at),
            }),
        }
    }
}

/// What an id names.
enum ShownEntry {
    /// The calls of a session, each with its events if wanted.
    Session(Vec<(CallRecord, Vec<EventRecord>)>),
    Conversation(Box<ConversationRecord>),
}

/// Returns what the command names.
fn load_entry(settings: &Settings, matches: &ArgMatches, with_events: bool) -> Result<ShownEntry> {
    let id = matches.get_one::<String>(args::ID).cloned().unwrap_or_default();
    let (session, conversations) = (id.clone(), open_conversations(settings));
    let found = with_store(settings, |store| async move {
        if let Some(conversations) = conversations
            && let Some(record) = conversations.find_conversation(&session).await?
        {
            return Ok(Some(ShownEntry::Conversation(Box::new(record))));
        }
        if store.describe().await?.databases.is_empty() {
            return Ok(None);
        }
        let mut calls = Vec::new();
        for record in store.list_calls(&session).await? {
            let events =
                if with_events { store.list_events(&record.call).await? } else { Vec::new() };
            calls.push((record, events));
        }
        Ok((!calls.is_empty()).then_some(ShownEntry::Session(calls)))
    })?;
    found.ok_or_else(|| {
        let message =
            format!("there is no recorded session or conversation `{}`", id.escape_debug());
        CommandError::new(exit::USAGE, ToolError::not_found(message))
            .hint("`sessions list` shows the ids")
    })
}

fn show_session(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let is_json = matches.get_flag(args::JSON);
    let (entries, lines): (Vec<Value>, Vec<String>) = match load_entry(settings, matches, false)? {
        ShownEntry::Session(calls) => {
            calls.iter().map(|(record, _)| (call_json(record), describe_call(record))).unzip()
        }
        ShownEntry::Conversation(conversation) => transcript_entries(&conversation)
            .into_iter()
            .map(|entry| (entry.clone(), describe_entry(entry)))
            .unzip(),
    };
    if is_json {
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
        return Ok(0);
    }
    for line in lines {
        writeln!(io.stdout, "{}", style::sanitize_text(&line).replace('\n', "\n  "))?;
    }
    Ok(0)
}

fn describe_call(record: &CallRecord) -> String {
    let took = record.elapsed_ms.map(|millis| format!(" in {millis} ms")).unwrap_or_default();
    let status = serde_json::to_value(record.status).unwrap_or_default();
    format!(
        "{}  {}  {}{took}  {} {}",
        rfc3339(record.started_at),
        record.call,
        status.as_str().unwrap_or_default(),
        record.tool,
        record.arguments,
    )
}

fn transcript_entries(conversation: &ConversationRecord) -> Vec<Value> {
    conversation.transcript["entries"].as_array().cloned().unwrap_or_default()
}

/// Describes an entry of a transcript: who said what, and which calls were made. Of results it has
/// the length, because they can be long; an export has them whole.
fn describe_entry(entry: Value) -> String {
    fn part<T: serde::de::DeserializeOwned>(entry: &Value, key: &str) -> Option<T> {
        T::deserialize(entry.get(key)?).ok()
    }
    if let Some(message) = part::<ModelMessage>(&entry, "message") {
        let text = message.text();
        let said = (!text.is_empty()).then(|| format!("model: {text}"));
        let calls = message.calls().into_iter();
        let calls = calls.map(|call| format!("call: {} {}", call.name, call.arguments.text()));
        return said.into_iter().chain(calls).collect::<Vec<_>>().join("\n");
    }
    if let Some(answers) = part::<Vec<CallAnswer>>(&entry, "answers") {
        let answer = |it: &CallAnswer| {
            let kind = if it.is_error { "error" } else { "result" };
            format!("{kind}: {}, {} bytes", it.name, it.text.len())
        };
        return answers.iter().map(answer).collect::<Vec<_>>().join("\n");
    }
    format!("user: {}", entry["text"].as_str().unwrap_or_default())
}

fn export_session(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    match load_entry(settings, matches, true)? {
        ShownEntry::Session(calls) => {
            for (record, events) in calls {
                let mut entry = call_json(&record);
                let events =
                    events.into_iter().map(|it| json!({ "at": rfc3339(it.at), "event": it.event }));
                entry["events"] = events.collect::<Vec<_>>().into();
                writeln!(io.stdout, "{entry}")?;
            }
        }
        ShownEntry::Conversation(conversation) => {
            for mut entry in transcript_entries(&conversation) {
                entry["conversation"] = conversation.summary.id.as_str().into();
                writeln!(io.stdout, "{entry}")?;
            }
        }
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
                ran.code == 2
                    && ran.err.contains("there is no recorded session or conversation `nope`"),
                "{}",
                ran.err
            );
        }
    }
}
