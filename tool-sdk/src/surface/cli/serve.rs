//! The command `serve`: serves the tools over MCP, on standard input and output or over HTTP.
//!
//! **Invariant:** standard input and output belong to the protocol, so messages only go to
//! standard error.

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, value_parser};

use super::endpoint::Endpoint;
use super::exit::{FAILED, Failure, Result};
use super::guard::Answers;
use super::mcp::Foreign;
use super::principals;
pub(super) use super::principals::{Principals, principals};
use super::stage::{Spoken, Stage};
use super::{App, Io, config, drive, grammar, place, signals, style};
use crate::effect::RiskClass;
use crate::error::ToolError;
use crate::pipeline::Pipeline;
use crate::store::place::{Place, put};
use crate::store::{self, StoreError};
use crate::surface::mcp::{Http, Server, Token};
use crate::toolset::Toolset;

const HTTP: &str = "http";
const TOKEN: &str = "TOOL_SDK_TOKEN";
/// The category of the tools that manage servers.
const SERVERS: &str = "mcp";
/// How long serving waits for configured servers to connect, so that clients that list tools only
/// once get their tools.
const HEAD_START: Duration = Duration::from_secs(1);

/// Builds the clap command `serve mcp [--http ADDR | --http unix:PATH]`.
pub(super) fn command() -> Option<Command> {
    let http =
        Arg::new(HTTP).long(HTTP).value_name("ADDR").value_parser(value_parser!(Endpoint)).help(
            "Serve over HTTP at this address, such as 127.0.0.1:8080, or at the UNIX socket \
             unix:PATH, for clients that have the token [env: TOOL_SDK_TOKEN]",
        );
    let mcp = Command::new("mcp")
        .about("Serve over the Model Context Protocol, to the parent process or over HTTP")
        .arg(http);
    Some(
        Command::new("serve")
            .about("Serve the tools to other programs")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(grammar::with_globals(mcp)),
    )
}

pub(super) fn run(
    app: &App,
    program: &str,
    top: &ArgMatches,
    serve: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let Some((_, matches)) = serve.subcommand() else {
        return Err(Failure::usage("the name of a protocol is missing")
            .hint(format_args!("try `{program} serve --help`")));
    };
    // The MCP client prompts its own user; the terminal of this process is not used.
    io.console = None;
    let foreign = Foreign::load(&[top, matches], io)?;
    let mut stage = Stage::set(app, &[top, matches], io)?;
    foreign.lend_to(&mut stage);
    let spoken = stage.spoken();
    let Stage { pipeline, session, answers, readable, .. } = stage;
    let server = Server::new(pipeline.clone(), session)
        .named(program, env!("CARGO_PKG_VERSION"))
        .asking_peers(answers != Answers::Nobody)
        .equipping(move |session| readable.lend(session));
    let served = match matches.get_one::<Endpoint>(HTTP) {
        Some(endpoint) => {
            let own = config::load(&[top, matches], io)?.principals;
            let token = token(endpoint, own.is_empty(), keep(&[top, matches], io), io)?;
            let (http, tools) = (Http::new(token.as_token().clone()), pipeline.toolset());
            let http = principals::admit(http, token.as_token(), &own, tools, io)?;
            // Registered servers are shared by all principals.
            if !own.register_servers {
                hide_registration(tools);
            }
            let roots = place::roots(&[top, matches], io);
            let serving = async {
                let place = (endpoint, roots.as_slice());
                let serving = over_http(server, place, (token, http, &own), io).await?;
                beside(serving, &foreign, &spoken, io).await
            };
            drive::block_on(until_interrupted(serving, &pipeline))?
        }
        None => {
            let serving = beside(server.serve_stdio(), &foreign, &spoken, io);
            drive::block_on_here(until_interrupted(serving, &pipeline))?
        }
    };
    served.map(|()| 0).map_err(|error| {
        Failure::new(FAILED, ToolError::failed(format_args!("cannot serve: {error}")))
    })
}

/// Connects to the configured servers, and serves. Servers that connect within the head start are
/// available from the beginning; later ones are announced to clients by `list_changed`.
async fn beside(
    serving: impl Future<Output = io::Result<()>>,
    foreign: &Foreign,
    spoken: &Spoken,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let (mut serving, mut coming) = (pin!(serving), pin!(foreign.connect_beside()));
    let failed = match tokio::time::timeout(HEAD_START, &mut coming).await {
        Ok(failed) => failed,
        Err(_) => tokio::select! {
            served = &mut serving => return served,
            failed = coming => failed,
        },
    };
    foreign.tell(failed, spoken, io);
    serving.await
}

/// Listens at the address and prints it, and returns the future that serves. A Unix socket must
/// not be inside `roots`.
async fn over_http(
    server: Server,
    (endpoint, roots): (&Endpoint, &[PathBuf]),
    (token, http, own): (Given, Http, &Principals),
    io: &mut Io<'_>,
) -> io::Result<impl Future<Output = io::Result<()>> + use<>> {
    let (listener, endpoint) = endpoint.listen(roots, io).await?;
    io.say(style::plain(&format!("listening on {endpoint}")));
    if let Some(names) = principals::reached_as(own, &endpoint) {
        io.say(style::plain(&names));
    }
    if let Given::Made(token, place) = &token {
        match place {
            Some(place) => {
                let path = write_down(token, place, &endpoint).map_err(io::Error::other)?;
                io.say(style::plain(&format!("the token is in {}", path.display())));
            }
            None => io.say(format_args!("the token is {}", token.reveal())),
        }
    }
    Ok(server.serve_http(listener, principals::at(http, own, endpoint.port())))
}

/// Removes the tools that register servers.
fn hide_registration(tools: &Toolset) {
    let view = tools.view();
    let all = view.tools().map(|tool| tool.definition());
    for it in all.filter(|it| it.category.as_deref() == Some(SERVERS)) {
        if it.risk.class != RiskClass::Read {
            tools.remove(it.name.as_str());
        }
    }
}

/// The default token of the server, and how the user learns it.
enum Given {
    /// From the environment.
    ByUser(Token),
    /// Generated, and written to a file in this folder, or else printed.
    Made(Token, Option<Place>),
    /// Generated and never shown, because every principal has its own token.
    Untold(Token),
}

impl Given {
    fn as_token(&self) -> &Token {
        let (Self::ByUser(token) | Self::Made(token, _) | Self::Untold(token)) = self;
        token
    }
}

/// Returns the token of the environment, or else generates one.
///
/// Fails when other machines can connect and neither the environment nor a principal has a token.
fn token(endpoint: &Endpoint, needed: bool, place: Option<Place>, io: &Io<'_>) -> Result<Given> {
    if let Some(secret) = io.var(TOKEN) {
        let token = secret.to_str().unwrap_or_default().parse();
        return token.map(Given::ByUser).map_err(|error| {
            Failure::usage(format_args!("`{TOKEN}` is not a valid token: {error}"))
        });
    }
    if needed && !endpoint.is_local() {
        return Err(Failure::usage(format_args!(
            "other machines can reach {endpoint} without a token"
        ))
        .hint(format_args!("set `{TOKEN}` to a secret, or serve at 127.0.0.1")));
    }
    let token = Token::random().map_err(|error| {
        Failure::new(FAILED, ToolError::internal(format_args!("cannot make a token: {error}")))
    })?;
    Ok(if needed { Given::Made(token, place) } else { Given::Untold(token) })
}

/// Returns the folder for the file of a generated token. Tools cannot write there.
fn keep(levels: &[&ArgMatches], io: &Io<'_>) -> Option<Place> {
    let mut place = Place::new(place::state_dir(levels, io)?.join("mcp"));
    place.not_inside(&place::roots(levels, io));
    Some(place)
}

/// Writes a generated token to a file that only the user can read, and returns its path.
fn write_down(
    token: &Token,
    place: &Place,
    endpoint: &Endpoint,
) -> std::result::Result<PathBuf, StoreError> {
    let path = place.create()?.join(format!("token-{}", endpoint.id()));
    store::replace(&path, |file| put(file, format!("{}\n", token.reveal()).as_bytes()))
        .map_err(StoreError::io("write", &path))?;
    Ok(path)
}

/// Serves until the transport closes, or until a shutdown signal.
async fn until_interrupted(
    serving: impl Future<Output = io::Result<()>>,
    pipeline: &Pipeline,
) -> io::Result<()> {
    let served = tokio::select! {
        served = serving => served,
        caught = signals::end() => caught,
    };
    // No client waits for the calls that still run.
    pipeline.close();
    tokio::select! {
        () = pipeline.finish() => {}
        _ = signals::end() => {}
    }
    served
}

#[cfg(test)]
mod tests {
    use super::super::toy::{Setting, run};

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
            let setting = Setting::default();
            let config = setting.file("c.toml", &format!("[serve.mcp]\n{wrong}\n"));
            let ran = setting.run(&["--config", &config, "serve", "mcp", "--http", "127.0.0.1:0"]);
            assert!(ran.code == 2 && ran.err.contains("is not a"), "{wrong}: {}", ran.err);
        }
    }

    // F130: a mistyped agent must not grant every tool.
    #[test]
    fn rejects_a_principal_with_an_unknown_agent() {
        let mut setting = Setting::default();
        setting.env.push(("ADA_TOKEN", "0123456789abcdef0123456789abcdef".to_owned()));
        let config = setting.file(
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
        let mut setting = Setting::default();
        let token = "0123456789abcdef0123456789abcdef";
        setting.env.extend([("ADA_TOKEN", token.to_owned()), ("TOOL_SDK_TOKEN", token.to_owned())]);
        let config =
            setting.file("c.toml", "[serve.mcp.principals.ada]\ntoken_env = \"ADA_TOKEN\"\n");
        let ran = setting.run(&["--config", &config, "serve", "mcp", "--http", "127.0.0.1:0"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("`ada` must not use the default token"), "{}", ran.err);
    }
}
