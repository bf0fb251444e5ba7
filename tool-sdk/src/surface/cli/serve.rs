//! `serve`: the tools for other programs, until they hang up.
//!
//! Standard input and output belong to the protocol, so that nothing of this is said through
//! [`Io`] but remarks on standard error.

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
/// The category of the tools about servers; one that starts them adds tools for everybody.
const SERVERS: &str = "mcp";
/// How long serving waits for the servers whose tools are served as well: programs that are
/// well take less, and clients that never ask twice have their tools then.
const HEAD_START: Duration = Duration::from_secs(1);

/// `serve mcp [--http ADDR | --http unix:PATH]`.
pub(super) fn command() -> Option<Command> {
    let http =
        Arg::new(HTTP).long(HTTP).value_name("ADDR").value_parser(value_parser!(Endpoint)).help(
            "Serve over HTTP at this address, such as 127.0.0.1:8080, or at the UNIX socket \
             unix:PATH, for those who have the token [env: TOOL_SDK_TOKEN]",
        );
    let mcp = Command::new("mcp")
        .about("Serve over the Model Context Protocol, to whoever started the program")
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
    // Whoever sits at the terminal started another program, which asks its own user.
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
            // What one adds is there for all, and who comes in here is not one.
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

/// Serves, and connects to the servers whose tools are served as well. Those that come soon
/// are there from the start; nobody waits for the others, and clients hear of their tools.
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

/// What serves at an address or at a socket, once that is said. No socket is in `roots`.
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

/// Takes away what adds servers.
fn hide_registration(tools: &Toolset) {
    let view = tools.view();
    let all = view.tools().map(|tool| tool.definition());
    for it in all.filter(|it| it.category.as_deref() == Some(SERVERS)) {
        if it.risk.class != RiskClass::Read {
            tools.remove(it.name.as_str());
        }
    }
}

/// The token of nobody in particular, and who knows it.
enum Given {
    ByUser(Token),
    /// Whoever started the server is told: by a file in this folder, where there is one.
    Made(Token, Option<Place>),
    /// Nobody: everybody has a token of their own.
    Untold(Token),
}

impl Given {
    fn as_token(&self) -> &Token {
        let (Self::ByUser(token) | Self::Made(token, _) | Self::Untold(token)) = self;
        token
    }
}

/// The token of the environment, else a new one. Where others can reach the server, somebody
/// has to have thought of one, unless nobody needs it.
fn token(endpoint: &Endpoint, needed: bool, place: Option<Place>, io: &Io<'_>) -> Result<Given> {
    if let Some(secret) = io.var(TOKEN) {
        let token = secret.to_str().unwrap_or_default().parse();
        return token
            .map(Given::ByUser)
            .map_err(|error| Failure::usage(format_args!("`{TOKEN}` is no token: {error}")));
    }
    if needed && !endpoint.is_local() {
        return Err(Failure::usage(format_args!("other machines can reach {endpoint}"))
            .hint(format_args!("set `{TOKEN}` to a secret, or serve at 127.0.0.1")));
    }
    let token = Token::random().map_err(|error| {
        Failure::new(FAILED, ToolError::internal(format_args!("cannot make a token: {error}")))
    })?;
    Ok(if needed { Given::Made(token, place) } else { Given::Untold(token) })
}

/// Where a token that is made is kept: nowhere where tools may write.
fn keep(levels: &[&ArgMatches], io: &Io<'_>) -> Option<Place> {
    let mut place = Place::new(place::state_dir(levels, io)?.join("mcp"));
    place.not_inside(&place::roots(levels, io));
    Some(place)
}

/// Writes down a token that was made, for the user alone; gives where.
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

/// Serves until that ends by itself, or until Ctrl-C or its like.
async fn until_interrupted(
    serving: impl Future<Output = io::Result<()>>,
    pipeline: &Pipeline,
) -> io::Result<()> {
    let served = tokio::select! {
        served = serving => served,
        caught = signals::end() => caught,
    };
    // What still runs has nobody to tell.
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
    fn what_cannot_be_served_is_wrong_usage() {
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

    // Under which names others reach the server is for the configuration to say.
    #[test]
    fn a_host_that_is_none_is_refused() {
        for wrong in [
            "hosts = [\"https://example.com\"]",
            "hosts = [\"\"]",
            "origins = [\"example.com\"]",
            "origins = [\"https://example.com/path\"]",
        ] {
            let setting = Setting::default();
            let config = setting.file("c.toml", &format!("[serve.mcp]\n{wrong}\n"));
            let ran = setting.run(&["--config", &config, "serve", "mcp", "--http", "127.0.0.1:0"]);
            assert!(ran.code == 2 && ran.err.contains("is no "), "{wrong}: {}", ran.err);
        }
    }

    // F130: a name that is written wrong opens nothing.
    #[test]
    fn a_principal_is_no_agent_that_there_is_not() {
        let mut setting = Setting::default();
        setting.env.push(("ADA_TOKEN", "0123456789abcdef0123456789abcdef".to_owned()));
        let config = setting.file(
            "c.toml",
            "[agents.reader]\nonly = [\"echo\"]\n\
             [serve.mcp.principals.ada]\ntoken_env = \"ADA_TOKEN\"\nagent = \"raeder\"\n",
        );
        let ran = setting.run(&["--config", &config, "serve", "mcp", "--http", "127.0.0.1:0"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("`ada` is to be the agent `raeder`"), "{}", ran.err);
    }
    // F130: whose token it is would depend on who is asked first.
    #[test]
    fn one_token_is_nobodys_and_somebodys_at_once_for_nobody() {
        let mut setting = Setting::default();
        let token = "0123456789abcdef0123456789abcdef";
        setting.env.extend([("ADA_TOKEN", token.to_owned()), ("TOOL_SDK_TOKEN", token.to_owned())]);
        let config =
            setting.file("c.toml", "[serve.mcp.principals.ada]\ntoken_env = \"ADA_TOKEN\"\n");
        let ran = setting.run(&["--config", &config, "serve", "mcp", "--http", "127.0.0.1:0"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("`ada` has the token that is nobody's"), "{}", ran.err);
    }
}
