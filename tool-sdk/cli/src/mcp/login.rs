//! `mcp login` and `mcp logout`: the user authorizes a server over HTTP, or takes that back.
//!
//! **Invariant:** a browser is started only by these commands and by `mcp add`, never for a call. The
//! URL is an argument of the browser's program, and no shell reads it.

use std::ffi::OsString;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use clap::{Arg, ArgAction, ArgMatches, Command};
use tool_sdk_core::{ToolError, internal::spell_hidden};
use tool_sdk_mcp::{
    AuthorizationError, AuthorizationPrompt, AuthorizationRequest, AuthorizationStatus,
    LogoutOutcome, PromptFailure, ServerStatus,
};

use super::{ConfiguredServers, command::server_name};
use crate::exit::{CommandError, DENIED, ENDED_EARLY, FAILED, Result, USAGE};
use crate::settings::Settings;
use crate::terminal::Console;
use crate::{Io, style};

const NO_BROWSER: &str = "no-browser";

/// The variables that a browser needs beside those of every program.
const DESKTOP_VARIABLES: [&str; 14] = [
    "BROWSER",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "DISPLAY",
    "HOME",
    "LANG",
    "PATH",
    "USER",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CONFIG_HOME",
    "XDG_CURRENT_DESKTOP",
    "XDG_DATA_DIRS",
    "XDG_RUNTIME_DIR",
];

/// Builds the two commands.
pub(super) fn build_commands(name: impl Fn() -> Arg) -> [Command; 2] {
    let no_browser = Arg::new(NO_BROWSER)
        .long(NO_BROWSER)
        .action(ArgAction::SetTrue)
        .help("Start no browser: print the address, and read the one that the browser ends at");
    [
        Command::new("login")
            .about("Authorize a server in a browser, and store its token")
            .args([name(), no_browser]),
        Command::new("logout").about("Revoke and delete the token of a server").arg(name()),
    ]
}

/// `mcp login`
pub(super) fn log_in(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let servers = ConfiguredServers::load(settings, io)?;
    let name = server_name(matches);
    find_server(&servers, name)?;
    let browser = match matches.get_flag(NO_BROWSER) {
        true => BrowserChoice::None,
        false => BrowserChoice::for_desktop(io),
    };
    let before = servers.block_on(servers.manager().connect(name));
    let is_done = match &before {
        Ok(status) => status.authorization != Some(AuthorizationStatus::ScopesMissing),
        Err(error) => !error.needs_authorization,
    };
    if is_done {
        let status = before.map_err(|error| unusable_server(name, &error))?;
        let words = match status.authorization {
            Some(_) => "is logged in; `mcp logout` ends that",
            None => "needs no login",
        };
        io.print_stderr(format_args!("{name} {words}"));
        return Ok(0);
    }
    authorize_server(&servers, name, browser, io)?;
    let status = servers.block_on(servers.manager().connect(name));
    let status = status.map_err(|error| unusable_server(name, &error))?;
    let tools = style::count_noun(status.tools.len(), "tool");
    io.print_stderr(format_args!("logged in to {name}: {tools}"));
    Ok(0)
}

/// `mcp logout`
pub(super) fn log_out(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let servers = ConfiguredServers::load(settings, io)?;
    let name = server_name(matches);
    find_server(&servers, name)?;
    let outcome = servers.run_blocking(servers.manager().log_out(name))?;
    let words = match outcome {
        Ok(LogoutOutcome::NotLoggedIn) => "was not logged in",
        Ok(LogoutOutcome::Deleted) => {
            "is logged out; its token was deleted here, and stays valid until it expires"
        }
        Ok(_) => "is logged out; its token was revoked",
        Err(error @ (AuthorizationError::Request { .. } | AuthorizationError::Refused(_))) => {
            return Err(failed_login(&error).hint("the token was deleted here nevertheless"));
        }
        Err(error) => return Err(failed_login(&error)),
    };
    io.print_stderr(format_args!("{name} {words}"));
    Ok(0)
}

/// Lets the user authorize a server. What the user reads goes to standard error.
pub(super) fn authorize_server(
    servers: &ConfiguredServers,
    name: &str,
    browser: BrowserChoice,
    io: &mut Io<'_>,
) -> Result<()> {
    let (messages, shown) = mpsc::channel();
    let prompt = BrowserPrompt { browser, console: io.console.clone(), messages };
    let (manager, server) = (servers.manager().clone(), name.to_owned());
    let login = servers.spawn(async move { manager.authorize(&server, &prompt).await })?;
    // The channel ends with the prompt.
    for message in shown {
        io.print_stderr(message);
    }
    let ended = servers.run_blocking(login)?;
    let ended = ended.map_err(|error| {
        CommandError::new(FAILED, ToolError::internal(format_args!("the login ended: {error}")))
    })?;
    ended.map_err(|error| failed_login(&error))
}

fn find_server(servers: &ConfiguredServers, name: &str) -> Result<ServerStatus> {
    servers.manager().status(name).ok_or_else(|| {
        let words = format_args!("there is no server `{}`", name.escape_debug());
        CommandError::new(USAGE, ToolError::not_found(words)).hint("`mcp list` names them")
    })
}

fn unusable_server(name: &str, error: &tool_sdk_mcp::RemoteError) -> CommandError {
    let words = format_args!("cannot use the server `{name}`: {error}");
    CommandError::new(FAILED, ToolError::unavailable(words))
}

fn failed_login(error: &AuthorizationError) -> CommandError {
    let code = match error {
        AuthorizationError::UnknownServer(_) | AuthorizationError::NotApplicable(_) => USAGE,
        AuthorizationError::Prompt(PromptFailure::Timeout) => ENDED_EARLY,
        AuthorizationError::Prompt(_) | AuthorizationError::Refused(_) => DENIED,
        _ => FAILED,
    };
    let failed = CommandError::new(code, ToolError::unavailable(error));
    match error {
        AuthorizationError::Registration(_) => {
            failed.hint("write `[mcp.servers.NAME.oauth]` with `client_id`, as the guide shows")
        }
        _ => failed,
    }
}

/// How the address gets to the user.
#[derive(Clone, Debug)]
pub(super) enum BrowserChoice {
    /// A program opens it.
    Program { command: &'static [&'static str], env: Vec<(&'static str, OsString)> },
    /// The user opens it, perhaps on another machine.
    None,
}

impl BrowserChoice {
    /// Returns the program that opens addresses on this desktop, if there is a desktop.
    pub(super) fn for_desktop(io: &Io<'_>) -> Self {
        let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| is_set(io, name));
        let command: &[&str] = match () {
            () if cfg!(target_os = "macos") => &["open"],
            () if cfg!(windows) => &["rundll32", "url.dll,FileProtocolHandler"],
            () if has_display => &["xdg-open"],
            () => return Self::None,
        };
        let known = |name: &'static str| Some((name, io.env_var(name)?));
        Self::Program { command, env: DESKTOP_VARIABLES.into_iter().filter_map(known).collect() }
    }

    /// Starts the browser; returns whether it could be started.
    fn open(&self, url: &str) -> bool {
        let Self::Program { command, env } = self else { return false };
        let [program, args @ ..] = command else { return false };
        let mut program = Program::new(program);
        program.args(args).arg(url).stdin(Stdio::null()).stdout(Stdio::null());
        program.stderr(Stdio::null());
        if !cfg!(windows) {
            program.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
        }
        program.status().is_ok_and(|status| status.success())
    }
}

fn is_set(io: &Io<'_>, name: &str) -> bool {
    io.env_var(name).is_some_and(|value| !value.is_empty())
}

/// Shows the address in a browser, or lets the user paste where the browser ended.
struct BrowserPrompt {
    browser: BrowserChoice,
    console: Option<Arc<dyn Console>>,
    /// The lines for standard error.
    messages: mpsc::Sender<String>,
}

impl AuthorizationPrompt for BrowserPrompt {
    async fn show_url(
        &self,
        request: AuthorizationRequest<'_>,
    ) -> std::result::Result<Option<String>, PromptFailure> {
        self.print(request_text(&request));
        let (browser, url) = (self.browser.clone(), request.url.to_string());
        let opened = tokio::task::spawn_blocking(move || browser.open(&url)).await;
        if opened.unwrap_or(false) {
            self.print("waiting for the browser; Ctrl-C ends the login".to_owned());
            return Ok(None);
        }
        match &self.console {
            Some(console) => read_pasted(Arc::clone(console)).await,
            // The redirect may come from a browser on this machine.
            None => Ok(None),
        }
    }
}

impl BrowserPrompt {
    fn print(&self, text: String) {
        // The command that reads it outlives the login.
        let _ = self.messages.send(text);
    }
}

/// Tells the user who asks for what, with the address.
fn request_text(request: &AuthorizationRequest<'_>) -> String {
    let scopes = match request.scopes {
        [] => String::new(),
        scopes => format!(" for {}", scopes.join(", ")),
    };
    let words = format!(
        "{} asks you to log in at {}{scopes}. Open this address in a browser:",
        request.server, request.issuer
    );
    format!("{}\n  {}", spell_hidden(&words), request.url)
}

/// Ends the wait for a line when the login ends.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lets the user paste the address that the browser ended at.
async fn read_pasted(
    console: Arc<dyn Console>,
) -> std::result::Result<Option<String>, PromptFailure> {
    const QUESTION: &str = "Then paste the address that the browser ends at, which starts with \
                            http://127.0.0.1, unless the login goes on by itself:\n> ";
    let is_over = Arc::new(AtomicBool::new(false));
    let _stop = StopOnDrop(Arc::clone(&is_over));
    let ask = move || console.prompt(QUESTION, &|| !is_over.load(Ordering::Relaxed));
    let failed = |why: String| PromptFailure::Unavailable(why);
    let line = tokio::task::spawn_blocking(ask).await.map_err(|error| failed(error.to_string()))?;
    match line.map_err(|error| failed(error.to_string()))? {
        Some(line) if !line.trim().is_empty() => Ok(Some(line)),
        _ => Err(PromptFailure::Cancelled),
    }
}
