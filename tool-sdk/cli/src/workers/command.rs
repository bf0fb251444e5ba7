//! The command `workers`: which workers there are, what they do, and how one ends.

use clap::{Arg, ArgMatches, Command};
use serde::Serialize;
use serde_json::{Value, json};
use tool_sdk_core::ToolError;
use tool_sdk_remote::{RemoteError, WorkerStats, WorkerStatus, Workers};

use super::{ConfiguredWorkers, NamespaceConnection, review};
use crate::exit::{CommandError, FAILED, Result};
use crate::settings::Settings;
use crate::{Io, args, run_loop, style};

const WORKER: &str = "worker";

/// Builds the clap command `workers list | stats | drain`.
pub(crate) fn build_command() -> Command {
    let commands = [
        Command::new("list")
            .about("List the workers; with `--verbose`, with their tools")
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
    let commands = commands.into_iter().chain(review::build_commands());
    args::with_globals(
        Command::new("workers")
            .about("List, watch, review and end the remote workers of the table [workers]")
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
        match matches.subcommand() {
            Some(("list", behind)) => {
                let is_json = behind.get_flag(args::JSON);
                list(&configured, is_json, settings.is_verbose, io).await
            }
            Some(("stats", behind)) => stats(&configured, behind.get_flag(args::JSON), io).await,
            Some(("inspect", behind)) => review::inspect(&configured, behind, io).await,
            Some(("trust", behind)) => review::trust(&configured, settings, behind, io).await,
            Some((_, behind)) => {
                let id = behind.get_one::<String>(WORKER).map(String::as_str).unwrap_or_default();
                drain(&configured, id, io).await
            }
            None => Err(CommandError::usage(
                "`list`, `stats`, `inspect`, `trust` or `drain` is missing",
            )),
        }
    })?
}

/// A namespace, and what its workers told or why they told nothing.
struct NamespaceAnswer<T> {
    namespace: String,
    url: String,
    workers: std::result::Result<Vec<T>, String>,
}

impl<T: Serialize> NamespaceAnswer<T> {
    fn to_json(&self) -> Value {
        let (error, workers) = match &self.workers {
            Ok(workers) => (None, workers.as_slice()),
            Err(reason) => (Some(reason), [].as_slice()),
        };
        json!({
            "namespace": self.namespace,
            "url": self.url,
            "connected": error.is_none(),
            "error": error,
            "workers": workers,
        })
    }
}

/// Asks the workers of each namespace, and prints what they tell as JSON or as lines.
async fn print_answers<T: Serialize>(
    configured: &ConfiguredWorkers,
    ask: impl AsyncFn(&Workers) -> std::result::Result<Vec<T>, RemoteError>,
    is_json: bool,
    to_lines: impl Fn(&T) -> Vec<String>,
    io: &mut Io<'_>,
) -> Result {
    let mut answers = Vec::new();
    for NamespaceConnection { namespace, url, workers } in configured.connect_each().await {
        let workers = match workers {
            Ok(workers) => ask(&workers).await.map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        answers.push(NamespaceAnswer { namespace: namespace.to_string(), url, workers });
    }
    if is_json {
        let answers: Vec<Value> = answers.iter().map(NamespaceAnswer::to_json).collect();
        writeln!(io.stdout, "{:#}", json!(answers))?;
        return Ok(0);
    }
    for NamespaceAnswer { namespace, workers, .. } in &answers {
        let lines = match workers {
            Err(reason) => vec![format!("not connected: {reason}")],
            Ok(workers) if workers.is_empty() => vec!["no workers".to_owned()],
            Ok(workers) => workers.iter().flat_map(&to_lines).collect(),
        };
        for line in lines {
            writeln!(io.stdout, "{}", style::sanitize_text(&format!("{namespace}  {line}")))?;
        }
    }
    Ok(0)
}

async fn list(
    configured: &ConfiguredWorkers,
    is_json: bool,
    is_verbose: bool,
    io: &mut Io<'_>,
) -> Result {
    let to_lines = |WorkerStatus { id, program, tools, answers, .. }: &WorkerStatus| {
        let count = style::count_noun(tools.len(), "tool");
        let silent = if *answers { "" } else { "  (does not answer)" };
        let line = format!("{id}  {program}  {count}{silent}");
        let names = tools.iter().filter(|_| is_verbose).map(|tool| format!("{id}  {tool}"));
        std::iter::once(line).chain(names).collect()
    };
    print_answers(configured, Workers::list, is_json, to_lines, io).await
}

async fn stats(configured: &ConfiguredWorkers, is_json: bool, io: &mut Io<'_>) -> Result {
    let to_line = |worker: &WorkerStats| {
        let WorkerStats { id, running, limit, calls, failed, busy, refused, average_ms, .. } =
            worker;
        let calls = style::count_noun(usize::try_from(*calls).unwrap_or(usize::MAX), "call");
        vec![format!(
            "{id}  {running} of {limit} running  {calls} ({average_ms} ms on average, {failed} \
             failed)  refused: {busy} busy, {refused} other"
        )]
    };
    print_answers(configured, Workers::stats, is_json, to_line, io).await
}

async fn drain(configured: &ConfiguredWorkers, id: &str, io: &mut Io<'_>) -> Result {
    let mut missing = Vec::new();
    for NamespaceConnection { namespace, workers, .. } in configured.connect_each().await {
        let workers = match workers {
            Ok(workers) => workers,
            Err(reason) => {
                missing.push(format!("the workers of `{namespace}` are not connected: {reason}"));
                continue;
            }
        };
        match workers.drain(id).await {
            Ok(()) => {
                io.print_stderr(format_args!("the worker `{id}` ends after its running calls"));
                return Ok(0);
            }
            // It is none of this namespace.
            Err(RemoteError::Config(_)) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let error = failed(format_args!("there is no worker `{}`", id.escape_debug()));
    Err(error.hint(match missing.is_empty() {
        true => "`workers list` names them".to_owned(),
        false => missing.join("; "),
    }))
}

pub(super) fn failed(error: impl std::fmt::Display) -> CommandError {
    CommandError::new(FAILED, ToolError::unavailable(error))
}
