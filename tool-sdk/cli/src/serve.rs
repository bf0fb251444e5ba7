//! The command `serve`: serves the tools over MCP, on standard input and output or over HTTP.
//!
//! **Invariant:** standard input and output belong to the protocol, so messages only go to
//! standard error.

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{
    Pipeline, PrivateFileError, RiskClass, Session, ToolError, Toolset,
    internal::private_file::{self, PrivateFolder, append_to},
};
use tool_sdk_http::{HttpOptions, Token, serve_http};
use tool_sdk_mcp::Server;
use tool_sdk_process::sandbox::SandboxMode;

use super::call_environment::{CallEnvironment, UnmatchedPatterns};
use super::exit::{CommandError, FAILED, Result};
use super::listen_address::ListenAddress;
use super::mcp::ConfiguredServers;
use super::principals;
pub(super) use super::principals::{ServeConfig, parse_serve_config};
use super::settings::{PromptMode, Settings};
use super::{App, Io, args, chat, run_loop, signals, style};

const HTTP: &str = "http";
const TOKEN: &str = "TOOL_SDK_TOKEN";
/// The category of the tools that manage servers.
const SERVERS: &str = "mcp";
/// How long serving waits for configured servers to connect, so that clients that list tools only
/// once get their tools.
const CONNECT_HEAD_START: Duration = Duration::from_secs(1);

/// Builds the clap command `serve mcp [--http ADDR | --http unix:PATH]`.
pub(super) fn build_command() -> Option<Command> {
    let http = Arg::new(HTTP)
        .long(HTTP)
        .value_name("ADDR")
        .value_parser(value_parser!(ListenAddress))
        .help(
            "Serve over HTTP at this address, such as 8080, localhost:8080 or [::1]:8080, or at the \
             UNIX socket unix:PATH. Clients send the token that is in the variable TOOL_SDK_TOKEN, or the one \
             that is generated without it",
        );
    let mcp = Command::new("mcp")
        .about("Serve over the Model Context Protocol, to the parent process or over HTTP")
        .arg(http)
        .arg(
            Arg::new(args::ROOTS_FROM_CLIENT)
                .long(args::ROOTS_FROM_CLIENT)
                .help(
                    "Let tools read the folders that the client says it works in \
                     [env: TOOL_SDK_ROOTS_FROM_CLIENT]",
                )
                .action(ArgAction::SetTrue)
                .overrides_with(args::ROOTS_FROM_CLIENT),
        )
        .arg(agents_arg())
        .args(args::caller_args());
    Some(
        Command::new("serve")
            .about("Serve the tools to other programs")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(args::with_globals(mcp))
            .subcommands(http_command().map(args::with_globals))
            .subcommands(nats_command().map(args::with_globals))
            .subcommands(super::acp::build_command().map(args::with_globals)),
    )
}

/// Returns the switch that serves the tools which start agents.
pub(super) fn agents_arg() -> Arg {
    args::switch_arg(
        args::AGENTS,
        "Serve the tools that start agents, which use the model of the table [chat] \
         [env: TOOL_SDK_SERVE_AGENTS]",
    )
}

#[cfg(feature = "http")]
fn http_command() -> Option<Command> {
    Some(super::serve_http::build_command())
}

#[cfg(not(feature = "http"))]
fn http_command() -> Option<Command> {
    None
}

#[cfg(feature = "remote")]
fn nats_command() -> Option<Command> {
    Some(super::serve_nats::build_command())
}

#[cfg(not(feature = "remote"))]
fn nats_command() -> Option<Command> {
    None
}

pub(super) fn run(
    app: &App,
    program: &str,
    settings: &Settings,
    levels: &[&ArgMatches],
    serve: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let served = match serve.subcommand() {
        Some(("acp", matches)) => super::acp::run(app, program, settings, levels, matches, io)?,
        #[cfg(feature = "http")]
        Some(("http", matches)) => super::serve_http::run(app, program, settings, matches, io)?,
        #[cfg(feature = "remote")]
        Some(("nats", matches)) => super::serve_nats::run(app, program, settings, matches, io)?,
        Some((_, matches)) => serve_mcp(app, program, settings, matches, io)?,
        None => {
            return Err(CommandError::usage("the name of a protocol is missing")
                .hint(format_args!("try `{program} serve --help`")));
        }
    };
    served.map(|()| 0).map_err(|error| {
        CommandError::new(FAILED, ToolError::failed(format_args!("cannot serve: {error}")))
    })
}

/// Builds the environment of a server of any protocol, with the configured servers, which connect
/// later.
pub(super) fn build_environment(
    app: &App,
    settings: &Settings,
    io: &mut Io<'_>,
) -> Result<(ConfiguredServers, CallEnvironment)> {
    let servers = ConfiguredServers::load(settings, io)?;
    let mut environment = CallEnvironment::build(app, settings, app.build_toolset(settings)?, io)?;
    servers.attach_to(&mut environment);
    environment.warn_missing_services(io);
    Ok((servers, environment))
}

/// Serves MCP until the transport closes.
fn serve_mcp(
    app: &App,
    program: &str,
    settings: &Settings,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result<io::Result<()>> {
    settings.check_broad_roots(program, "served", io)?;
    // The MCP client prompts its own user; the terminal of this process is not used.
    io.console = None;
    let (servers, environment) = build_environment(app, settings, io)?;
    let patterns = environment.unmatched_patterns();
    let CallEnvironment { pipeline, session, session_workspace: readable, .. } = environment;
    let session = chat::add_agents(app, settings, &pipeline, session, io)?;
    let shutdown = CancellationToken::new();
    let own_workspace = readable.clone();
    let own_session = session.clone();
    let server = mcp_server(app, program, settings, &pipeline, session, shutdown.clone())
        .with_session_setup(move |session| own_workspace.attach_to(session));
    match matches.get_one::<ListenAddress>(HTTP) {
        Some(_) if matches.get_flag(args::ROOTS_FROM_CLIENT) => Err(CommandError::usage(
            "`--roots-from-client` has no effect over HTTP, where the folders of a client may be on \
                 another computer",
        )),
        Some(endpoint) => {
            let own = &settings.serve;
            let token = choose_token(endpoint, own.is_empty(), settings, io)?;
            let http = HttpOptions::new(token.as_token().clone()).shut_down_on(shutdown.clone());
            let tools = pipeline.toolset();
            let http = principals::add_principals(http, token.as_token(), own, tools, io)?;
            // Registered servers are shared by all principals.
            if !own.register_servers {
                remove_registration_tools(tools);
            }
            let serving = async {
                let serving = start_http(server, endpoint, token, http, settings, io).await?;
                serve_and_connect(serving, &servers, &patterns, io).await
            };
            run_loop::block_on(serve_until_interrupted(serving, &pipeline, &shutdown))
        }
        None => {
            if io.stdin_is_terminal {
                io.print_stderr(format_args!(
                    "waiting for an MCP client on standard input; Ctrl-C ends the server\n\
                     hint: clients start this command themselves: `{program} setup claude-code \
                     --write` configures one, `{program} setup --help` names the others, and \
                     `--http 8080` serves over HTTP"
                ));
            }
            // Over HTTP, servers are shared, and what they have is not that of one principal.
            let server = app.stdio_server_setup.apply(server, &pipeline, &own_session);
            let server = servers.pass_on(server);
            let server = match settings.roots_from_client {
                true => {
                    let is_refused = settings.refused_client_roots(io);
                    server.with_client_roots(move |session, folders| {
                        readable.attach_with_folders(session, folders, &is_refused)
                    })
                }
                false => server,
            };
            let serving = serve_and_connect(server.serve_stdio(), &servers, &patterns, io);
            run_loop::block_on_current_thread(serve_until_interrupted(
                serving, &pipeline, &shutdown,
            ))
        }
    }
}

/// Returns the MCP server of the program, which `serve mcp` and `serve http` share.
pub(super) fn mcp_server(
    app: &App,
    program: &str,
    settings: &Settings,
    pipeline: &Pipeline,
    session: Session,
    shutdown: CancellationToken,
) -> Server {
    let server = Server::new(pipeline.clone(), session)
        .with_name(program, app.announced_version())
        .with_shutdown(shutdown)
        .with_instructions(describe_settings(settings, pipeline.toolset()))
        .with_client_approvals(settings.prompt_mode != PromptMode::NoInput);
    app.prepare_server(server)
}

/// Describes for clients what the tools act on and what restricts them, also where nothing does.
/// The sandbox is of interest where a tool can run commands.
fn describe_settings(settings: &Settings, tools: &Toolset) -> String {
    let roots: Vec<String> =
        settings.roots.iter().map(|it| format!("`{}`", it.display())).collect();
    let mut text = format!(
        "The tools act on {}. Permission mode: {}.",
        roots.join(", "),
        settings.mode.as_str()
    );
    if tools.all_tools().iter().any(|tool| tool.definition().risk.class == RiskClass::Execute) {
        let sandbox = match (settings.sandbox.mode(), settings.sandbox.level()) {
            (SandboxMode::Off, _) => "off, so a command can do what its user can".to_owned(),
            (mode, level) => {
                let network = if settings.sandbox.has_network() { "with" } else { "without" };
                format!("{}, {}, {network} network", mode.as_str(), level.as_str())
            }
        };
        text.push_str(&format!(" Sandbox of commands: {sandbox}."));
    }
    style::sanitize_text(&text).into_owned()
}

/// Connects to the configured servers, and serves. Servers that connect within the head start are
/// available from the beginning; later ones are announced to clients by `list_changed`.
pub(super) async fn serve_and_connect(
    serving: impl Future<Output = io::Result<()>>,
    servers: &ConfiguredServers,
    patterns: &UnmatchedPatterns,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let (mut serving, mut coming) = (pin!(serving), pin!(servers.connect_in_background()));
    let failed = match tokio::time::timeout(CONNECT_HEAD_START, &mut coming).await {
        Ok(failed) => failed,
        Err(_) => tokio::select! {
            served = &mut serving => return served,
            failed = coming => failed,
        },
    };
    servers.report_failures(failed, patterns, io);
    let mut late = servers.late_connections();
    loop {
        tokio::select! {
            served = &mut serving => return served,
            Some(line) = late.recv() => io.print_stderr(style::sanitize_text(&line)),
        }
    }
}

/// Listens at the address and prints it, and returns the future that serves. A Unix socket must
/// not be inside the roots.
async fn start_http(
    server: Server,
    endpoint: &ListenAddress,
    token: ServerToken,
    http: HttpOptions,
    settings: &Settings,
    io: &mut Io<'_>,
) -> io::Result<impl Future<Output = io::Result<()>> + use<>> {
    let own = &settings.serve;
    let (listener, endpoint) = endpoint.bind(&settings.roots, io).await?;
    io.print_stderr(style::sanitize_text(&format!("listening on {endpoint}")));
    if let Some(names) = principals::describe_allowed_hosts(own, &endpoint) {
        io.print_stderr(style::sanitize_text(&names));
    }
    if let Some(line) = token.describe(&endpoint)? {
        io.print_stderr(style::sanitize_text(&line));
    }
    Ok(serve_http(&server, listener, principals::allow_hosts(http, own, endpoint.port())))
}

/// Removes the tools that register servers.
pub(super) fn remove_registration_tools(tools: &Toolset) {
    let view = tools.view();
    let all = view.tools().map(|tool| tool.definition());
    for it in all.filter(|it| it.category.as_deref() == Some(SERVERS)) {
        if it.risk.class != RiskClass::Read {
            tools.remove(it.name.as_str());
        }
    }
}

/// The default token of the server, and how the user learns it.
pub(super) enum ServerToken {
    /// From the environment.
    FromEnv(Token),
    /// Generated, and written to a file in this folder, or else printed.
    Generated(Token, Option<PrivateFolder>),
    /// Generated and never shown, because every principal has its own token.
    Unused(Token),
}

impl ServerToken {
    pub(super) fn as_token(&self) -> &Token {
        let (Self::FromEnv(token) | Self::Generated(token, _) | Self::Unused(token)) = self;
        token
    }

    /// Returns how the user learns a generated token, which is written to its file.
    pub(super) fn describe(&self, endpoint: &ListenAddress) -> io::Result<Option<String>> {
        Ok(match self {
            Self::Generated(token, Some(place)) => {
                let path = write_token_file(token, place, endpoint).map_err(io::Error::other)?;
                Some(format!("the token is in {}", path.display()))
            }
            Self::Generated(token, None) => Some(format!("the token is {}", token.reveal())),
            Self::FromEnv(_) | Self::Unused(_) => None,
        })
    }
}

/// Returns the token of the environment, or else generates one.
///
/// Fails when other machines can connect and neither the environment nor a principal has a token.
pub(super) fn choose_token(
    endpoint: &ListenAddress,
    needed: bool,
    settings: &Settings,
    io: &Io<'_>,
) -> Result<ServerToken> {
    if let Some(secret) = io.env_var(TOKEN) {
        let token = secret.to_str().unwrap_or_default().parse();
        return token.map(ServerToken::FromEnv).map_err(|error| {
            CommandError::usage(format_args!("`{TOKEN}` is not a valid token: {error}"))
        });
    }
    if needed && !endpoint.is_local() {
        return Err(CommandError::usage(format_args!(
            "other machines can reach {endpoint} without a token"
        ))
        .hint(format_args!("set `{TOKEN}` to a secret, or serve at 127.0.0.1")));
    }
    let token = Token::random().map_err(|error| {
        CommandError::new(FAILED, ToolError::internal(format_args!("cannot make a token: {error}")))
    })?;
    if !needed {
        return Ok(ServerToken::Unused(token));
    }
    settings.check_state_outside_roots()?;
    Ok(ServerToken::Generated(token, token_folder(settings)))
}

/// Returns the folder for the file of a generated token. Tools cannot write there.
fn token_folder(settings: &Settings) -> Option<PrivateFolder> {
    let mut place = PrivateFolder::new(settings.state_dir.as_ref()?.join("mcp"));
    place.add_writable_roots(&settings.roots);
    Some(place)
}

/// Writes a generated token to a file that only the user can read, and returns its path.
fn write_token_file(
    token: &Token,
    place: &PrivateFolder,
    endpoint: &ListenAddress,
) -> std::result::Result<PathBuf, PrivateFileError> {
    let path = place.create_folder()?.join(format!("token-{}", endpoint.file_suffix()));
    private_file::replace_file(&path, |file| {
        append_to(file, format!("{}\n", token.reveal()).as_bytes())
    })
    .map_err(PrivateFileError::io("write", &path))?;
    Ok(path)
}

/// Serves until the transport closes, or until a shutdown signal.
pub(super) async fn serve_until_interrupted(
    serving: impl Future<Output = io::Result<()>>,
    pipeline: &Pipeline,
    shutdown: &CancellationToken,
) -> io::Result<()> {
    let mut serving = pin!(serving);
    // Signals are caught before a client can learn the address.
    let served = tokio::select! {
        biased;
        caught = signals::wait_for_shutdown() => {
            shutdown.cancel();
            // Running calls have a grace period, which a second signal ends.
            tokio::select! {
                served = serving => caught.and(served),
                caught = signals::wait_for_shutdown() => caught,
            }
        }
        served = &mut serving => served,
    };
    // No client waits for the calls that still run.
    let closing = pipeline.close();
    let ending = async {
        for name in closing.await {
            tracing::warn!("`{name}` did not end in time");
        }
        pipeline.finish().await;
    };
    tokio::select! {
        () = ending => {}
        _ = signals::wait_for_shutdown() => {}
    }
    served
}

#[cfg(test)]
mod tests {
    use crate::test_support::{TestCli, run};

    #[test]
    fn rejects_invalid_usage() {
        for args in [
            &["serve"][..],
            &["serve", "nonsense"],
            &["serve", "mcp", "--http", "nonsense"],
            &["serve", "mcp", "--http", "unix:"],
            &["serve", "mcp", "--http", "0.0.0.0:0"],
            &["--root", "/no/such/folder", "serve", "mcp", "--http", "127.0.0.1:0"],
        ] {
            let ran = run(args);
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
        }
    }

    #[test]
    fn rejects_invalid_hosts_and_origins() {
        for wrong in [
            "hosts = [\"https://example.com\"]",
            "hosts = [\"\"]",
            "origins = [\"example.com\"]",
            "origins = [\"https://example.com/path\"]",
        ] {
            let setting = TestCli::default();
            let config = setting.write_text("c.toml", &format!("[serve.mcp]\n{wrong}\n"));
            let ran = setting.run(&["--config", &config, "serve", "mcp", "--http", "127.0.0.1:0"]);
            assert!(ran.code == 2 && ran.err.contains("is not a"), "{wrong}: {}", ran.err);
        }
    }

    // F130: a mistyped agent must not grant every tool.
    #[test]
    fn rejects_a_principal_with_an_unknown_agent() {
        let mut setting = TestCli::default();
        setting.env.push(("ADA_TOKEN", "0123456789abcdef0123456789abcdef".to_owned()));
        let config = setting.write_text(
            "c.toml",
            "[agents.reader]\nonly = [\"echo\"]\n\
             [serve.mcp.principals.ada]\ntoken_env = \"ADA_TOKEN\"\nagent = \"raeder\"\n",
        );
        let ran = setting.run(&["--config", &config, "serve", "mcp", "--http", "127.0.0.1:0"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("`ada` uses the agent `raeder`"), "{}", ran.err);
    }

    // F130: otherwise the principal would depend on the order of the lookup.
    #[test]
    fn rejects_a_principal_with_the_default_token() {
        let mut setting = TestCli::default();
        let token = "0123456789abcdef0123456789abcdef";
        setting.env.extend([("ADA_TOKEN", token.to_owned()), ("TOOL_SDK_TOKEN", token.to_owned())]);
        let config =
            setting.write_text("c.toml", "[serve.mcp.principals.ada]\ntoken_env = \"ADA_TOKEN\"\n");
        let ran = setting.run(&["--config", &config, "serve", "mcp", "--http", "127.0.0.1:0"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("`ada` must not use the default token"), "{}", ran.err);
    }
}
