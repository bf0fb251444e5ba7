//! The command `serve nats`: serves the tools to hosts on other machines, as a worker.
//!
//! **Invariant:** no secret comes from the command line; a permit key is in a file or a variable.

use std::io;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use tokio_util::sync::CancellationToken;
use tool_sdk_remote::{Namespace, NatsConfig, PermitVerifier, RemoteError, Worker, WorkerConfig};

use super::call_environment::CallEnvironment;
use super::exit::{CommandError, Result};
use super::settings::Settings;
use super::workers::read_secret_file;
use super::{App, Io, run_loop, serve, style};

const URL: &str = "url";
const NAMESPACE: &str = "namespace";
const CREDENTIALS: &str = "credentials";
const PERMIT_KEY: &str = "permit-key";
const TLS_CA: &str = "tls-ca";
const MAX_CALLS: &str = "max-calls";

/// The variables for these options.
const URL_VARIABLE: &str = "TOOL_SDK_NATS_URL";
const NAMESPACE_VARIABLE: &str = "TOOL_SDK_NATS_NAMESPACE";
const CREDENTIALS_VARIABLE: &str = "TOOL_SDK_NATS_CREDENTIALS";
const TLS_CA_VARIABLE: &str = "TOOL_SDK_NATS_TLS_CA";
/// The variable that holds the permit key itself.
const KEY_VARIABLE: &str = "TOOL_SDK_PERMIT_KEY";

/// Builds the clap command `nats`.
pub(super) fn build_command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let file = |name, help| option(name, "FILE", help).value_parser(value_parser!(PathBuf));
    Command::new("nats")
        .about("Serve the tools to hosts on other machines, as a worker on a NATS server")
        .args([
            option(
                URL,
                "URL",
                "The NATS server, as nats://HOST:PORT or tls://HOST:PORT [env: TOOL_SDK_NATS_URL]",
            ),
            option(
                NAMESPACE,
                "NAME",
                "The namespace under which hosts find the tools [env: TOOL_SDK_NATS_NAMESPACE]",
            ),
            file(
                CREDENTIALS,
                "The file with the credentials for the server, or with the seed of an nkey \
                 [env: TOOL_SDK_NATS_CREDENTIALS]",
            ),
            file(
                PERMIT_KEY,
                "The file with the key of permits: the secret that hosts and workers share, or the \
                 public nkey of the host; without it, the variable TOOL_SDK_PERMIT_KEY holds the key",
            ),
            file(
                TLS_CA,
                "The file with the certificates that sign the server's [env: TOOL_SDK_NATS_TLS_CA]",
            ),
            option(MAX_CALLS, "N", "How many calls run at a time [default: 16]")
                .value_parser(value_parser!(u16).range(1..)),
        ])
}

/// Serves until a shutdown signal, or until a host drains the worker. A server that cannot be reached is
/// waited for, so that machines may start in any order; one that refuses ends the command.
pub(super) fn run(
    app: &App,
    program: &str,
    settings: &Settings,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result<io::Result<()>> {
    settings.check_broad_roots(program, "served", io)?;
    // Hosts ask their own users; the terminal of this process is not used.
    io.console = None;
    let nats = nats_config(matches, io)?;
    let config = worker_config(program, matches, io)?;
    let (servers, environment) = serve::build_environment(app, settings, io)?;
    let patterns = environment.unmatched_patterns();
    let CallEnvironment { pipeline, session, .. } = environment;
    serve::remove_registration_tools(pipeline.toolset());
    let shutdown = CancellationToken::new();
    let serving = async {
        let mut last_reason = String::new();
        let on_failure = |error: &RemoteError| {
            let reason = error.to_string();
            if reason != last_reason {
                let line = format!("{reason}; trying again until it answers");
                io.print_stderr(style::sanitize_text(&line));
                last_reason = reason;
            }
        };
        let connecting =
            Worker::connect_with_retry(&nats, config, pipeline.clone(), session, on_failure);
        let worker = tokio::select! {
            worker = connecting => worker.map_err(io::Error::other)?,
            () = shutdown.cancelled() => return Ok(()),
        };
        let line = format!("serving as the worker {} on {}", worker.id(), nats.url());
        io.print_stderr(style::sanitize_text(&line));
        let until = shutdown.clone();
        let serving = async move { worker.serve(until).await.map_err(io::Error::other) };
        let ended = serve::serve_and_connect(serving, &servers, &patterns, io).await;
        if ended.is_ok() && !shutdown.is_cancelled() {
            io.print_stderr("a host drained the worker, which has ended");
        }
        ended
    };
    run_loop::block_on(serve::serve_until_interrupted(serving, &pipeline, &shutdown))
}

fn nats_config(matches: &ArgMatches, io: &Io<'_>) -> Result<NatsConfig> {
    let url = text(matches, URL, URL_VARIABLE, io)?;
    let mut nats = NatsConfig::new(url).map_err(usage)?;
    if let Some(file) = path(matches, CREDENTIALS, CREDENTIALS_VARIABLE, io) {
        nats = nats.credentials(read_secret_file(&file, io)?);
    }
    if let Some(file) = path(matches, TLS_CA, TLS_CA_VARIABLE, io) {
        nats = nats.root_certificates(io.resolve_path(file));
    }
    Ok(nats)
}

fn worker_config(program: &str, matches: &ArgMatches, io: &Io<'_>) -> Result<WorkerConfig> {
    let namespace: Namespace =
        text(matches, NAMESPACE, NAMESPACE_VARIABLE, io)?.parse().map_err(usage)?;
    let key = match matches.get_one::<PathBuf>(PERMIT_KEY) {
        Some(file) => Some(read_secret_file(file, io)?),
        None => io.env_var(KEY_VARIABLE).and_then(|key| key.into_string().ok()),
    };
    let key = key.ok_or_else(|| {
        CommandError::usage("the key of permits is missing").hint(format_args!(
            "`openssl rand -hex 32 > permit.key` makes one; give its file as `--{PERMIT_KEY}` to the \
             workers, and as `key_file` to the hosts"
        ))
    })?;
    let verifier = PermitVerifier::from_key(&key).map_err(usage)?;
    let config = WorkerConfig::new(namespace, verifier).program(program);
    Ok(match matches.get_one::<u16>(MAX_CALLS) {
        Some(calls) => config.max_calls(usize::from(*calls)),
        None => config,
    })
}

fn usage(error: RemoteError) -> CommandError {
    CommandError::usage(error)
}

/// Returns the value of a required option, or of its variable.
fn text(matches: &ArgMatches, name: &str, variable: &str, io: &Io<'_>) -> Result<String> {
    let written = matches.get_one::<String>(name).cloned();
    let value = written.or_else(|| io.env_var(variable)?.into_string().ok());
    value.ok_or_else(|| {
        CommandError::usage(format_args!("`--{name}` is missing"))
            .hint(format_args!("write it, or set `{variable}`"))
    })
}

fn path(matches: &ArgMatches, name: &str, variable: &str, io: &Io<'_>) -> Option<PathBuf> {
    let written = matches.get_one::<PathBuf>(name).cloned();
    written.or_else(|| io.env_var(variable).map(PathBuf::from))
}
