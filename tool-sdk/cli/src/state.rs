//! The command `state`: what the state folder holds, copies of it, and its limits.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::{Value, json};
use tool_sdk_core::SessionStore as _;
use tool_sdk_store::{DatabaseReport, ExportCursor, StateReport};

use super::exit::{CommandError, Result};
use super::settings::{Settings, WrittenDuration};
use super::state_store::{end_plan_mode, open_conversations, with_store};
use super::{Io, args, style};

const OLDER_THAN: &str = "older-than";

/// Builds the clap command `state show | backup | export | prune | end-plan`.
pub(super) fn build_command() -> Command {
    let file = Arg::new(args::FILE)
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("The new file; of calls, FILE with `-history` after its name. No file is replaced");
    let older = Arg::new(OLDER_THAN)
        .long(OLDER_THAN)
        .value_name("TIME")
        .required(true)
        .value_parser(value_parser!(WrittenDuration))
        .help("The age of the calls and conversations that are removed, such as 30d");
    let commands = [
        Command::new("show")
            .about("Show what the state folder holds, and check it")
            .arg(args::json_flag("Print one JSON value")),
        Command::new("backup")
            .about("Copy notes and plans to a new database, and the history of calls beside it")
            .arg(file),
        Command::new("export")
            .about("Print notes, plans, calls, events and conversations as JSON lines"),
        Command::new("prune")
            .about("Remove old calls and conversations from the history")
            .arg(older),
        Command::new("end-plan")
            .about("End plan mode, which a tool entered, for calls in these roots"),
    ];
    args::with_globals(
        Command::new("state")
            .about("Show, copy and prune the state of the tools")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands(commands.map(args::with_globals)),
    )
}

pub(super) fn run(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    match matches.subcommand() {
        Some(("backup", behind)) => back_up(settings, behind, io),
        Some(("export", _)) => export(settings, io),
        Some(("prune", behind)) => prune(settings, behind, io),
        Some(("end-plan", _)) => end_plan(settings, io),
        Some((_, behind)) => show(settings, behind.get_flag(args::JSON), io),
        None => {
            Err(CommandError::usage("`show`, `backup`, `export`, `prune` or `end-plan` is missing"))
        }
    }
}

fn show(settings: &Settings, json: bool, io: &mut Io<'_>) -> Result {
    let report = with_store(settings, |store| async move { store.describe().await })?;
    if json {
        writeln!(io.stdout, "{:#}", report_json(&report))?;
        return Ok(0);
    }
    let mut lines = vec![
        format!("folder      {}", report.folder.display()),
        format!("SQLite      {}", report.sqlite),
    ];
    lines.extend(report.databases.iter().map(describe_database));
    if report.databases.is_empty() {
        lines.push("(nothing is stored yet)".to_owned());
    }
    lines.extend(report.set_aside.iter().map(|path| format!("set aside   {}", path.display())));
    for line in lines {
        writeln!(io.stdout, "{}", style::sanitize_text(&line))?;
    }
    Ok(0)
}

fn describe_database(database: &DatabaseReport) -> String {
    let name = database.path.file_name().unwrap_or_default().to_string_lossy();
    let entries: Vec<String> =
        database.entries.iter().map(|(kind, count)| count_entries(*count, kind)).collect();
    format!(
        "{name:<10}  version {}, {} KiB, {}: {}",
        database.version,
        database.bytes.div_ceil(1024),
        entries.join(", "),
        database.soundness
    )
}

/// Returns the count of entries of a kind, whose name is a plural.
fn count_entries(count: u64, kind: &str) -> String {
    let count = count.try_into().unwrap_or(usize::MAX);
    style::count_noun(count, kind.strip_suffix('s').unwrap_or(kind))
}

fn report_json(report: &StateReport) -> Value {
    let describe = |database: &DatabaseReport| {
        let entries =
            database.entries.iter().map(|(kind, count)| ((*kind).to_owned(), json!(count)));
        json!({
            "path": database.path,
            "bytes": database.bytes,
            "version": database.version,
            "soundness": database.soundness,
            "entries": Value::Object(entries.collect()),
        })
    };
    json!({
        "folder": report.folder,
        "sqlite": report.sqlite,
        "databases": report.databases.iter().map(describe).collect::<Vec<_>>(),
        "set_aside": report.set_aside,
    })
}

fn back_up(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let Some(file) = matches.get_one::<PathBuf>(args::FILE) else { return Ok(0) };
    let target = io.resolve_path(file);
    let copies = with_store(settings, |store| async move { store.back_up(&target).await })?;
    let mut text = format!("copied notes and plans to {}", copies.state.display());
    if let Some(history) = copies.history {
        text += &format!("\ncopied the history of calls to {}", history.display());
    }
    io.print_stderr(style::sanitize_text(&text));
    Ok(0)
}

fn export(settings: &Settings, io: &mut Io<'_>) -> Result {
    let stdout = &mut io.stdout;
    with_store(settings, |store| async move {
        let mut cursor = Some(ExportCursor::default());
        while let Some(at) = cursor {
            let (entries, next) = store.export_page(at).await?;
            for entry in entries {
                writeln!(stdout, "{entry}")?;
            }
            cursor = next;
        }
        Ok(())
    })?;
    Ok(0)
}

fn prune(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let Some(age) = matches.get_one::<WrittenDuration>(OLDER_THAN) else { return Ok(0) };
    let before = SystemTime::now().checked_sub(age.0).unwrap_or(SystemTime::UNIX_EPOCH);
    let conversations = open_conversations(settings);
    let (calls, conversations) = with_store(settings, |store| async move {
        let removed = match conversations {
            Some(conversations) => conversations.remove_conversations_before(before).await?,
            None => 0,
        };
        Ok((store.remove_calls_before(before).await?, removed))
    })?;
    let (calls, conversations) =
        (count_entries(calls, "calls"), count_entries(conversations, "conversations"));
    io.print_stderr(format_args!("removed {calls} and {conversations}"));
    Ok(0)
}

fn end_plan(settings: &Settings, io: &mut Io<'_>) -> Result {
    io.print_stderr(match end_plan_mode(settings)? {
        true => "plan mode has ended",
        false => "plan mode is off",
    });
    Ok(0)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::test_support::TestCli;

    #[test]
    fn state_is_shown_copied_exported_and_pruned() {
        let setting = TestCli::default();
        let ran = setting.run_with_state(&["state", "show"]);
        assert!(ran.code == 0 && ran.out.ends_with("(nothing is stored yet)\n"), "{}", ran.out);
        setting.write_text("notes/a.md", "kept");
        setting.run_with_state(&["memory", "import", "notes"]);
        setting.run_with_state(&["call", "echo", "--text", "x", "--record-sessions"]);

        let ran = setting.run_with_state(&["state", "show"]);
        assert!(ran.out.contains("state.db    version 1, "), "{}", ran.out);
        assert!(ran.out.contains(" KiB, 1 note, 0 plans: ok\n"), "{}", ran.out);
        let ran = setting.run_with_state(&["state", "show", "--json"]);
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(report["databases"][1]["entries"]["calls"], 1, "{report}");

        let ran = setting.run_with_state(&["state", "backup", "copy.db"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(setting.folder.path().join("copy.db").exists());
        assert!(setting.folder.path().join("copy-history.db").exists());
        assert!(ran.err.contains("the history of calls to "), "{}", ran.err);
        let ran = setting.run_with_state(&["state", "backup", "copy.db"]);
        assert!(ran.code == 1 && ran.err.contains("cannot create"), "{}", ran.err);

        let ran = setting.run_with_state(&["state", "export"]);
        let entries: Vec<Value> =
            ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(entries[0]["content"], "kept");
        assert_eq!(entries[1]["tool"], "echo");
        assert_eq!(
            setting.run_with_state(&["state", "prune", "--older-than", "1d"]).err,
            "removed 0 calls and 0 conversations\n"
        );
        assert_eq!(
            setting.run_with_state(&["state", "prune", "--older-than", "1ms"]).err,
            "removed 1 call and 0 conversations\n"
        );
    }

    #[test]
    fn wrong_usage_is_reported() {
        for args in [&["state"][..], &["state", "prune"], &["state", "backup"], &["state", "x"]] {
            assert_eq!(TestCli::default().run(args).code, 2, "{args:?}");
        }
        let ran = TestCli::default().run(&["state", "show"]);
        assert!(ran.code == 2 && ran.err.contains("hint: `--state-dir`"), "{}", ran.err);
    }

    // Recording is what the user asks for, by an option, a variable or the file.
    #[test]
    fn calls_are_recorded_only_when_the_settings_say_so() {
        for (option, variable, file, recorded) in [
            (false, None, "", false),
            (true, None, "", true),
            (false, Some("true"), "", true),
            (false, Some("false"), "record_sessions = true\n", false),
            (false, None, "record_sessions = true\n", true),
        ] {
            let mut setting = TestCli::default();
            let config = setting.write_text("config.toml", file);
            setting
                .env
                .extend(variable.map(|value| ("TOOL_SDK_RECORD_SESSIONS", value.to_owned())));
            let mut args = vec!["call", "echo", "--text", "x", "--config", &*config];
            args.extend(option.then_some("--record-sessions"));
            assert_eq!(setting.run_with_state(&args).code, 0);
            let ran = setting.run_with_state(&["sessions", "list", "--json"]);
            let sessions: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
            assert_eq!(sessions.len(), usize::from(recorded), "{option} {variable:?} {file}");
        }
        let ran = TestCli::default().run(&["call", "echo", "--text", "x", "--record-sessions"]);
        assert!(ran.code == 2 && ran.err.contains("no state folder"), "{}", ran.err);
    }
}
