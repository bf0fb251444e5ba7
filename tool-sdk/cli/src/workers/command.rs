//! The command `workers`: which workers there are, what they do, and how one ends.

use clap::{Arg, ArgMatches, Command};
use serde::Serialize;
use serde_json::json;
use tool_sdk_core::ToolError;
use tool_sdk_remote::{WorkerStats, WorkerStatus, Workers};

use super::ConfiguredWorkers;
use crate::exit::{CommandError, FAILED, Result};
use crate::settings::Settings;
use crate::{Io, args, run_loop, style};

const WORKER: &str = "worker";

/// Builds the clap command `workers list | stats | drain`.
pub(crate) fn build_command() -> Command {
    let commands = [
        Command::new("list")
            .about("List the workers and their tools")
            .arg(args::json_flag("Print a JSON array")),
        Command::new("stats")
            .about("Show the load of the workers, their calls and failures")
            .arg(args::json_flag("Print a JSON array")),
        Command::new("drain").about("Let a worker end after its running calls").arg(
            Arg::new(WORKER)
                .value_name("ID")
                .required(true)
                .help("The id of the worker, as `workers list` shows it"),
        ),
    ];
    args::with_globals(
        Command::new("workers")
            .about("List, watch and end the remote workers of the table [workers]")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands(commands.map(args::with_globals)),
    )
}

pub(crate) fn run(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let configured = ConfiguredWorkers::load(settings, io)?;
    if configured.is_empty() {
        return Err(CommandError::config("no workers are configured").hint(
            "add a table `[workers.NAMESPACE]` with `url` and `key_file` to the configuration",
        ));
    }
    run_loop::block_on(async {
        for (name, error) in configured.connect_all().await {
            io.print_stderr(style::sanitize_text(&format!("warning: {name}: {error}")));
        }
        let connected = configured.connected();
        if connected.is_empty() {
            let error = ToolError::unavailable("no NATS server of the workers can be reached");
            return Err(CommandError::new(FAILED, error));
        }
        match matches.subcommand() {
            Some(("list", behind)) => list(&connected, behind.get_flag(args::JSON), io).await,
            Some(("stats", behind)) => stats(&connected, behind.get_flag(args::JSON), io).await,
            Some((_, behind)) => {
                let id = behind.get_one::<String>(WORKER).map(String::as_str).unwrap_or_default();
                drain(&connected, id, io).await
            }
            None => Err(CommandError::usage("`list`, `stats` or `drain ID` is missing")),
        }
    })?
}

fn failed(error: impl std::fmt::Display) -> CommandError {
    CommandError::new(FAILED, ToolError::unavailable(error))
}

/// Prints what each worker of a namespace told, as JSON.
fn print_json<T: Serialize>(found: &[(String, T)], io: &mut Io<'_>) -> Result {
    let row =
        |(namespace, worker): &(String, T)| json!({ "namespace": namespace, "worker": worker });
    let rows: Vec<_> = found.iter().map(row).collect();
    writeln!(io.stdout, "{:#}", json!(rows))?;
    Ok(0)
}

async fn list(connected: &[Workers], is_json: bool, io: &mut Io<'_>) -> Result {
    let mut found: Vec<(String, WorkerStatus)> = Vec::new();
    for workers in connected {
        let namespace = workers.namespace().to_string();
        let listed = workers.list().await.map_err(failed)?;
        found.extend(listed.into_iter().map(|worker| (namespace.clone(), worker)));
    }
    if is_json {
        return print_json(&found, io);
    }
    if found.is_empty() {
        io.print_stderr("there are no workers");
    }
    for (namespace, worker) in found {
        let tools = worker.tools.join(", ");
        let silent = if worker.answers { "" } else { "  (does not answer)" };
        let line = format!("{namespace}  {}  {}{silent}  {tools}", worker.id, worker.program);
        writeln!(io.stdout, "{}", style::sanitize_text(&line))?;
    }
    Ok(0)
}

async fn stats(connected: &[Workers], is_json: bool, io: &mut Io<'_>) -> Result {
    let mut found: Vec<(String, WorkerStats)> = Vec::new();
    for workers in connected {
        let namespace = workers.namespace().to_string();
        let asked = workers.stats().await.map_err(failed)?;
        found.extend(asked.into_iter().map(|worker| (namespace.clone(), worker)));
    }
    if is_json {
        return print_json(&found, io);
    }
    if found.is_empty() {
        io.print_stderr("there are no workers");
    }
    for (namespace, worker) in found {
        let WorkerStats { id, running, limit, calls, failed, busy, refused, average_ms, .. } =
            worker;
        let line = format!(
            "{namespace}  {id}  {running} of {limit} running  {calls} calls of {average_ms} ms, \
             {failed} failed  refused: {busy} busy, {refused} other"
        );
        writeln!(io.stdout, "{}", style::sanitize_text(&line))?;
    }
    Ok(0)
}

async fn drain(connected: &[Workers], id: &str, io: &mut Io<'_>) -> Result {
    let mut answer = Err(failed("there are no workers"));
    for workers in connected {
        answer = workers.drain(id).await.map_err(failed);
        if answer.is_ok() {
            io.print_stderr(format_args!("the worker `{id}` ends after its running calls"));
            return Ok(0);
        }
    }
    answer.map(|()| 0)
}
