//! The command `serve http`: REST, OpenAPI, live events, approvals, the console and MCP from one
//! server.

use std::io;

use clap::{Arg, ArgMatches, Command, value_parser};
use tokio_util::sync::CancellationToken;
use tool_sdk_http::rest::{self, RestOptions};
use tool_sdk_http::{ConsoleAccess, HttpOptions, TokenScope, TokenVerifier as _};

use super::call_environment::CallEnvironment;
use super::exit::Result;
use super::listen_address::ListenAddress;
use super::principals;
use super::serve::{self, ServerToken};
use super::settings::{PromptMode, Settings};
use super::token_file::TokenFile;
use super::{App, Io, chat, run_loop, style};

const ADDRESS: &str = "address";
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// Builds the clap command `http [ADDR]`.
pub(super) fn build_command() -> Command {
    let address = Arg::new(ADDRESS)
        .value_name("ADDR")
        .default_value(DEFAULT_ADDRESS)
        .value_parser(value_parser!(ListenAddress))
        .help(
            "Listen at this address, at this port of 127.0.0.1, or at the UNIX socket unix:PATH. \
             Clients send the token that is in the variable TOOL_SDK_TOKEN, or the one that is \
             generated without it; it only calls tools. `token create --scope approvals` makes a \
             token for approvals",
        );
    Command::new("http")
        .about("Serve REST, OpenAPI, live events, approvals, a console and MCP over HTTP")
        .arg(address)
        .arg(serve::agents_arg())
}

/// Serves until a shutdown signal.
pub(super) fn run(
    app: &App,
    program: &str,
    settings: &Settings,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result<io::Result<()>> {
    let Some(endpoint) = matches.get_one::<ListenAddress>(ADDRESS) else { return Ok(Ok(())) };
    settings.check_broad_roots(program, "served", io)?;
    let own = &settings.serve;
    let (servers, environment) = serve::build_environment(app, settings, io)?;
    let patterns = environment.unmatched_patterns();
    let CallEnvironment { pipeline, session, session_workspace: readable, .. } = environment;
    let session = chat::add_agents(app, settings, &pipeline, session, io)?;
    let shutdown = CancellationToken::new();
    let token = serve::choose_token(endpoint, own.is_empty(), settings, io)?;
    let http = HttpOptions::new(token.as_token().clone()).shut_down_on(shutdown.clone());
    let http = principals::add_principals(http, token.as_token(), own, pipeline.toolset(), io)?;
    if !own.register_servers {
        serve::remove_registration_tools(pipeline.toolset());
    }
    let asks = settings.prompt_mode != PromptMode::NoInput;
    let mcp_readable = readable.clone();
    let mcp =
        serve::mcp_server(app, program, settings, &pipeline, session.clone(), shutdown.clone())
            .with_session_setup(move |session| mcp_readable.attach_to(session));
    // Without prompts there is no person to open the link.
    let console = asks.then(ConsoleAccess::default);
    let serving = async {
        let (listener, endpoint) = endpoint.bind(&settings.roots, io).await?;
        announce(program, settings, &endpoint, &token, asks, io)?;
        if let Some(console) = &console {
            announce_console(console, &endpoint, io)?;
        }
        let http = principals::allow_hosts(http, own, endpoint.port());
        let http = match TokenFile::for_server(settings) {
            Some(tokens) => http.with_token_verifier(tokens),
            None => http,
        };
        let options = RestOptions::new(http)
            .with_name(program, app.announced_version())
            .with_session(session)
            .with_session_setup(move |session| readable.attach_to(session))
            .with_approvals(asks)
            .with_server_manager(servers.manager().clone())
            .with_mcp_server(mcp);
        let options = match console {
            Some(console) => options.with_console(console),
            None => options,
        };
        let options = with_history(options, settings);
        #[cfg(feature = "remote")]
        let options = super::workers::with_worker_load(options, &servers);
        let serving = rest::serve(pipeline.clone(), listener, options);
        serve::serve_and_connect(serving, &servers, &patterns, io).await
    };
    run_loop::block_on(serve::serve_until_interrupted(serving, &pipeline, &shutdown))
}

/// Lets clients read the history of earlier servers, where calls are recorded.
#[cfg(feature = "store")]
fn with_history(options: RestOptions, settings: &Settings) -> RestOptions {
    use super::recorded_history::RecordedHistory;
    use super::state_store::open_store;

    match settings.record_sessions {
        true => options.with_session_store(RecordedHistory::new(open_store(settings))),
        false => options,
    }
}

#[cfg(not(feature = "store"))]
fn with_history(options: RestOptions, _: &Settings) -> RestOptions {
    options
}

/// Prints the link to the console. Browsers cannot open a UNIX socket, so there is none.
fn announce_console(
    console: &ConsoleAccess,
    endpoint: &ListenAddress,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let Some(base) = endpoint.browser_url() else { return Ok(()) };
    let link = console.create_link(&base)?;
    let minutes = ConsoleAccess::LINK_LIFETIME.as_secs() / 60;
    io.print_stderr(format_args!("console, once and within {minutes} minutes: {link}"));
    Ok(())
}

/// Prints where clients find what, and how they get a token.
fn announce(
    program: &str,
    settings: &Settings,
    endpoint: &ListenAddress,
    token: &ServerToken,
    asks: bool,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let base = endpoint.base_url();
    let mut lines = vec![
        format!("listening on {base}"),
        format!("  tools    {base}/v1/tools"),
        format!("  OpenAPI  {base}/openapi.json, {base}/v1/openapi.json"),
        format!("  MCP      {base}/mcp"),
    ];
    lines.extend(principals::describe_allowed_hosts(&settings.serve, endpoint));
    lines.extend(token.describe(endpoint)?);
    let has_approver =
        TokenFile::for_server(settings).is_some_and(|tokens| tokens.has_approver(None));
    if asks && !has_approver {
        let scope = TokenScope::Approvals;
        lines.push(format!(
            "no token approves calls yet: `{program} token create --scope {scope}` makes one"
        ));
    }
    for line in lines {
        io.print_stderr(style::sanitize_text(&line));
    }
    Ok(())
}
