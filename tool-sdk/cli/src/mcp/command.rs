//! The command `mcp`: lists, inspects, adds and removes the servers of the configuration.
//!
//! **Invariant:** a server's tools are only pinned as trusted after the user saw their names, and what
//! is odd about them, and could see all of their text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Value, json};
use tool_sdk_core::{Definition, Registry, ToolError, Toolset, internal::spell_hidden};
use tool_sdk_mcp::{AuthorizationStatus, ServerManager, ServerStatus, internal::name_prefix};

use super::config_edit::{ConfigDocument, duplicate_server};
use super::server_entry::{OAuthEntry, ServerEntry};
use super::{
    ConfiguredServers, ServerScope, import, login, offers, open_credentials, open_pins, pack,
};
use crate::exit::{CommandError, DENIED, FAILED, Result, USAGE, with_cause};
use crate::settings::Settings;
use crate::setup::ClientProgram;
use crate::{App, Io, args, style};

const COMMAND: &str = "command";
const URL: &str = "url";
const BEARER: &str = "bearer-env";
const CLIENT_ID: &str = "client-id";
const CLIENT_SECRET: &str = "client-secret-env";
const ISSUER: &str = "issuer";
const SCOPE: &str = "scope";
const REDIRECT_PORT: &str = "redirect-port";
const ENV: &str = "env";
const HEADER: &str = "header";
const CWD: &str = "cwd";
const TRUST: &str = "trust-annotations";
/// How many warnings are shown without `--verbose`.
const MAX_WARNINGS: usize = 10;

/// Builds the clap command `mcp`.
pub(crate) fn build_command(program: &str) -> Option<Command> {
    let name = || Arg::new(args::NAME).value_name("NAME").required(true).help("Its name here");
    let json = || {
        let json = Arg::new(args::JSON).long(args::JSON).action(ArgAction::SetTrue);
        json.help("Print JSON")
    };
    let words = Arg::new(COMMAND).value_name("COMMAND").num_args(1..).last(true);
    let value = |name: &'static str, placeholder: &'static str| {
        Arg::new(name).long(name).value_name(placeholder)
    };
    let list = Command::new("list").about("List the servers, and whether they answer").arg(json());
    let inspect = Command::new("inspect")
        .about("Show the tools of a server, with warnings about their descriptions")
        .args([name(), json()]);
    let remove = Command::new("remove").about("Remove a server from the configuration").arg(name());
    let import = Command::new("import")
        .about("Add the servers that are configured for another client")
        .arg(Arg::new(import::SOURCE).value_name("CLIENT | FILE").help(format!(
            "The client ({}), or a file; by default the `.mcp.json` of the first root",
            ClientProgram::ALL.map(ClientProgram::as_str).join(", ")
        )));
    let add = Command::new("add")
        .about("Start a server, show its tools, and write it into the configuration")
        .override_usage(format!(
            "{program} mcp add NAME [--env NAME[=VALUE]]… [--cwd DIR] [--sandbox MODE] \
             [--sandbox-level LEVEL] [--sandbox-network] [--trust-annotations] -- COMMAND [ARG]…\n       \
             {program} mcp add NAME --url URL [--bearer-env NAME] [--header 'NAME: VALUE']…\n       \
             {program} mcp add NAME --url URL [--client-id ID [--client-secret-env NAME]] [--issuer URL] \
             [--scope SCOPE]… [--redirect-port PORT]"
        ))
        .args([
            name(),
            value(URL, "URL").help("Its address").conflicts_with(COMMAND),
            value(BEARER, "NAME").help("The variable that holds the token").requires(URL),
            value(HEADER, "NAME: VALUE")
                .help("A header of each request; repeatable. For a token, `--bearer-env` is safer")
                .requires(URL)
                .action(ArgAction::Append),
            value(CLIENT_ID, "ID")
                .help("The id of a client that was registered by hand, for the login")
                .requires(URL),
            value(CLIENT_SECRET, "NAME")
                .help("The variable that holds the secret of the client; needs `--issuer`")
                .requires_all([URL, CLIENT_ID, ISSUER]),
            value(ISSUER, "URL")
                .help("The only authorization server that is used for the login")
                .requires(URL),
            value(SCOPE, "SCOPE")
                .help("A scope that the login always requests; repeatable")
                .requires(URL)
                .action(ArgAction::Append),
            value(REDIRECT_PORT, "PORT")
                .help("The port at which the browser comes back; a free one by default")
                .requires(URL)
                .value_parser(value_parser!(u16).range(1..)),
            value(ENV, "NAME[=VALUE]")
                .help(
                    "An environment variable of the program, with its value, or else that of the \
                     host; repeatable",
                )
                .action(ArgAction::Append),
            value(CWD, "DIR")
                .help("The folder in which the program runs")
                .value_parser(value_parser!(PathBuf)),
            Arg::new(TRUST)
                .long(TRUST)
                .help("Believe the server about which of its tools only read")
                .action(ArgAction::SetTrue)
                .overrides_with(TRUST),
            words.help("The program and its arguments").required_unless_present(URL),
        ]);
    Some(
        Command::new("mcp")
            .about("Use the tools of servers of the Model Context Protocol")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands([list, inspect, remove, import].map(args::with_globals))
            .subcommands(login::build_commands(name).map(args::with_globals))
            .subcommands(offers::build_commands(json).map(args::with_globals))
            .subcommand(describe_sandbox_args(args::with_globals(add)))
            .subcommand(args::with_globals(pack::build_command(program))),
    )
}

/// Changes the help of the sandbox options: here they apply to the server process.
fn describe_sandbox_args(add: Command) -> Command {
    let meant = |help: &'static str| move |arg: Arg| arg.help(help).help_heading(None);
    add.mut_arg(args::SANDBOX, meant("Run the program in a sandbox, now and at every start"))
        .mut_arg(args::SANDBOX_LEVEL, meant("What the sandboxed program may do"))
        .mut_arg(args::SANDBOX_NETWORK, meant("Let the sandboxed program use the network"))
}

/// Runs `mcp`. `top` holds the options before the command.
pub(crate) fn run(
    app: &App,
    settings: &Settings,
    top: &ArgMatches,
    mcp: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let Some((command, matches)) = mcp.subcommand() else {
        return Err(CommandError::usage(
            "`list`, `add`, `import`, `remove`, `inspect`, `login`, `logout`, `resources`, `prompts`, \
             `read` or `pack` is missing",
        ));
    };
    match command {
        "add" => add_server(app, settings, entry_from_args(&[top, matches], io)?, io),
        "import" => import::run(settings, config_path(settings)?, matches, io),
        "remove" => remove_server(settings, server_name(matches), io),
        "inspect" => inspect_server(app, settings, matches, io),
        "login" => login::log_in(settings, matches, io),
        "logout" => login::log_out(settings, matches, io),
        "resources" => offers::list_resources(settings, matches, io),
        "prompts" => offers::list_prompts(settings, matches, io),
        "read" => offers::read_resource(settings, matches, io),
        "pack" => pack::run(app, matches, io),
        _ => list_servers(settings, matches.get_flag(args::JSON), io),
    }
}

pub(super) fn server_name(matches: &ArgMatches) -> &str {
    matches.get_one::<String>(args::NAME).map_or("", String::as_str)
}

fn list_servers(settings: &Settings, json: bool, io: &mut Io<'_>) -> Result {
    let servers = ConfiguredServers::load(settings, io)?;
    servers.merge_tools(Toolset::new(Registry::default()), ServerScope::All, io);
    let statuses = servers.manager().statuses();
    if json {
        let with_instructions = |status: &ServerStatus| {
            let mut entry = json!(status);
            if let Some(text) = servers.manager().instructions(&status.name) {
                entry["instructions"] = text.into();
            }
            let changed = changed_tools(&status.name, servers.manager());
            if !changed.is_empty() {
                entry["changed"] = json!(changed);
            }
            entry
        };
        let entries: Vec<Value> = statuses.iter().map(with_instructions).collect();
        writeln!(io.stdout, "{:#}", json!(entries))?;
        return Ok(0);
    }
    if statuses.is_empty() {
        io.print_stderr("no servers are configured");
    }
    for status in &statuses {
        let state = match (&status.last_error, status.connected) {
            _ if !status.enabled => "switched off".to_owned(),
            (_, true) => connected_state(status, servers.manager()),
            (Some(error), false) => error.clone(),
            (None, false) => "not connected".to_owned(),
        };
        let line = format!("{}  {state}  {}", status.name, transport_text(status));
        writeln!(io.stdout, "{}", style::sanitize_text(&line).replace('\n', " "))?;
        if settings.is_verbose {
            let text = servers.manager().instructions(&status.name);
            for line in instruction_lines(text.as_deref()) {
                writeln!(io.stdout, "  {line}")?;
            }
        }
    }
    Ok(0)
}

/// Describes a connected server: how many tools it has, how many of them are not the ones that were
/// approved, and how it is authorized.
fn connected_state(status: &ServerStatus, manager: &ServerManager) -> String {
    let tools = style::count_noun(status.tools.len(), "tool");
    let differences = manager.pin_differences(&status.name);
    let changed = differences.values().filter(|it| !it.is_first).count();
    let tools = match changed {
        0 => tools,
        changed => {
            format!("{tools}, {changed} changed since approved: `mcp inspect {}`", status.name)
        }
    };
    match status.authorization {
        Some(AuthorizationStatus::LoggedIn) => format!("{tools}, logged in"),
        Some(_) => format!("{tools}, more scopes needed: `mcp login {}`", status.name),
        None => tools,
    }
}

/// Returns how each tool that changed since it was approved differs from what was approved.
fn changed_tools(server: &str, manager: &ServerManager) -> BTreeMap<String, String> {
    let differences = manager.pin_differences(server).into_iter();
    differences.filter(|(_, it)| !it.is_first).map(|(tool, it)| (tool, it.diff)).collect()
}

/// Returns what a server says about how it is used, as lines that hide nothing.
fn instruction_lines(text: Option<&str>) -> Vec<String> {
    let lines = text.unwrap_or_default().lines().map(|line| spell_hidden(line).into_owned());
    lines.collect()
}

/// Returns the URL or the command of a server.
fn transport_text(status: &ServerStatus) -> String {
    let reach = &status.transport;
    match reach.get("url").and_then(Value::as_str) {
        Some(url) => url.to_owned(),
        None => {
            let words = reach["args"].as_array().into_iter().flatten();
            let words = std::iter::once(&reach["command"]).chain(words);
            let words = words.filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
            match sandbox_text(&reach["sandbox"]) {
                Some(how) => format!("{words}  (sandbox: {how})"),
                None => words,
            }
        }
    }
}

/// Describes the sandbox of a server; `None` without one.
fn sandbox_text(sandbox: &Value) -> Option<String> {
    let word = |key: &str| sandbox.get(key)?.as_str();
    let network = if sandbox["network"] == true { ", with networks" } else { "" };
    Some(format!("{}, {}{network}", word("mode")?, word("level")?))
}

/// Connects to a server, and returns its status and tools. No other server is started.
///
/// Fails with the reason if the server does not start or does not answer.
fn connect_and_list(
    app: &App,
    servers: &ConfiguredServers,
    server: &str,
) -> Result<(ServerStatus, Vec<Definition>)> {
    let status = servers.manager().status(server).ok_or_else(|| {
        let words = format_args!("there is no server `{}`", server.escape_debug());
        CommandError::new(USAGE, ToolError::not_found(words)).hint("`mcp list` names them")
    })?;
    if !status.enabled {
        let words = format_args!("the server `{server}` is switched off");
        return Err(CommandError::new(FAILED, ToolError::unavailable(words))
            .hint("the configuration says `enabled = false`"));
    }
    let tools = Arc::new(app.base_toolset());
    let status = servers.connect_server(&tools, server)?;
    let (start, view) = (name_prefix(server), tools.view());
    let own = view.definitions().filter(|tool| tool.name.as_str().starts_with(&start));
    Ok((status, own.cloned().collect()))
}

fn inspect_server(app: &App, settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let servers = ConfiguredServers::load(settings, io)?;
    let (status, tools) = connect_and_list(app, &servers, server_name(matches))?;
    // The descriptions are compared with the tools of all other servers.
    servers.connect_others(io);
    let status = servers.manager().status(&status.name).unwrap_or(status);
    if matches.get_flag(args::JSON) {
        let instructions = servers.manager().instructions(&status.name);
        let changed = changed_tools(&status.name, servers.manager());
        let report = json!({
            "server": status, "tools": tools, "instructions": instructions, "changed": changed,
        });
        writeln!(io.stdout, "{report:#}")?;
    } else {
        let page = render_page(&status, &tools, &servers);
        io.stdout.write_all(page.as_bytes())?;
    }
    Ok(0)
}

/// Renders everything that a server says about itself and its tools, since exactly this is trusted.
fn render_page(status: &ServerStatus, tools: &[Definition], servers: &ConfiguredServers) -> String {
    let shown = servers.manager().pin_texts(&status.name);
    let changed = changed_tools(&status.name, servers.manager());
    let mut lines = vec![format!("{}: {}", status.name, transport_text(status))];
    let instructions = servers.manager().instructions(&status.name);
    if let Some(text) = &instructions {
        lines.push("instructions:".to_owned());
        lines.extend(text.lines().map(|line| format!("  {line}")));
    }
    for tool in tools {
        lines.push(format!("\n{}  {}", tool.name, tool.parameters.signature()));
        if let Some(diff) = changed.get(tool.name.as_str()) {
            lines.push("changed since it was approved:".to_owned());
            lines.extend(diff.lines().map(|line| format!("  {line}")));
            lines.push("now:".to_owned());
        }
        let text = shown.get(tool.name.as_str()).map_or("", String::as_str);
        lines.extend(text.lines().map(|line| format!("  {line}")));
    }
    lines.extend(status.warnings.iter().map(|warning| format!("\nwarning: {warning}")));
    let page: Vec<String> = lines.iter().map(|line| spell_hidden(line).into_owned()).collect();
    page.join("\n") + "\n"
}

/// Renders the tools of a server as a table, and what is odd about them.
fn render_table(status: &ServerStatus, tools: &[Definition], columns: usize) -> String {
    let mut lines = vec![format!("{}: {}", status.name, transport_text(status))];
    let start = name_prefix(&status.name);
    let short = |tool: &Definition| {
        tool.name.as_str().strip_prefix(&start).unwrap_or(tool.name.as_str()).to_owned()
    };
    let width = tools.iter().map(|tool| short(tool).len()).max().unwrap_or_default().min(40);
    for tool in tools {
        let risk = style::describe_risk(tool.risk);
        let title = tool.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        let title = style::first_sentence(title.unwrap_or(&tool.description));
        lines.push(format!("  {:width$}  {risk:8}  {title}", short(tool)));
    }
    let shown = lines.iter().map(|line| style::cut_line(&spell_hidden(line), columns));
    let mut table: Vec<String> = shown.collect();
    let warnings = status.warnings.iter().take(MAX_WARNINGS);
    table.extend(warnings.map(|warning| format!("warning: {}", spell_hidden(warning))));
    if let Some(more) = status.warnings.len().checked_sub(MAX_WARNINGS + 1) {
        table.push(format!("warning: {} more; `--verbose` shows all", more + 1));
    }
    table.join("\n")
}

fn add_server(app: &App, settings: &Settings, entry: ServerEntry, io: &mut Io<'_>) -> Result {
    let server = &*entry.name;
    // Before the server is started and the user is asked: nothing could be remembered.
    settings.check_state_outside_roots()?;
    let path = config_path(settings)?;
    if settings.servers.iter().any(|other| other.name == server) {
        return Err(duplicate_server(server));
    }
    // Loads it with the others, so that name conflicts are found now.
    let all = settings.servers.iter().chain([&entry]);
    let servers = ConfiguredServers::with_entries(all, settings, io)?;
    authorize_new_server(&servers, server, io)?;
    let (status, tools) = connect_and_list(app, &servers, server)?;
    let shown = servers.manager().pin_texts(server);
    let page = render_page(&status, &tools, &servers);
    if settings.is_verbose {
        io.print_stderr(page.trim_end());
    } else {
        io.print_stderr(render_table(&status, &tools, io.columns.map_or(100, usize::from)));
    }
    if let Some(line) = annotation_line(&entry) {
        io.print_stderr(line);
    }
    if !confirm_add(settings, server, tools.len(), &page, io)? {
        let words = format_args!("`{server}` was not added");
        return Err(CommandError::new(DENIED, ToolError::denied(words))
            .hint("`--yes` adds it without asking, `--verbose` shows all that it says"));
    }
    // The server may have changed its tools since they were shown.
    if !servers.manager().trust_reviewed(server, &shown).map_err(CommandError::config)? {
        let words = format_args!("the tools of `{server}` changed after they were shown");
        return Err(CommandError::new(FAILED, ToolError::conflict(words))
            .hint("add it again to review them"));
    }
    ConfigDocument::lock_for_edit(path)?.add_server(server, &entry.to_toml())?;
    io.print_stderr(format_args!(
        "added {server} with {} to {}",
        style::count_noun(tools.len(), "tool"),
        path.display()
    ));
    Ok(0)
}

/// Lets the user authorize a server that requires it, before its tools are shown.
fn authorize_new_server(servers: &ConfiguredServers, server: &str, io: &mut Io<'_>) -> Result<()> {
    let connected = servers.block_on(servers.manager().connect(server));
    let needs_login = connected.is_err_and(|error| error.needs_authorization);
    // Without a terminal no user waits for a browser.
    if !needs_login || io.console.is_none() {
        return Ok(());
    }
    let browser = login::BrowserChoice::for_desktop(io);
    login::authorize_server(servers, server, browser, io)
}

/// Says what the server is believed, if it is.
fn annotation_line(entry: &ServerEntry) -> Option<&'static str> {
    (entry.trust_annotations == Some(true)).then_some(
        "its hints are trusted: the risk above is what the server says, and tools that only read \
         run without asking",
    )
}

/// Asks the user whether the server may be added. The answer `v` shows all that it says.
fn confirm_add(
    settings: &Settings,
    server: &str,
    count: usize,
    page: &str,
    io: &Io<'_>,
) -> Result<bool> {
    let tools = style::count_noun(count, "tool");
    settings.confirm_text(&format!("add the server {server} and trust its {tools}?"), page, io)
}

/// Builds a server entry from the options.
fn entry_from_args(levels: &[&ArgMatches; 2], io: &Io<'_>) -> Result<ServerEntry> {
    let matches = levels[1];
    let words = |id: &str| -> Vec<String> {
        matches.get_many::<String>(id).into_iter().flatten().cloned().collect()
    };
    let mut command = words(COMMAND).into_iter();
    let one = |id: &str| matches.get_one::<String>(id).cloned();
    let mut described = ServerEntry::default();
    described.command = command.next();
    described.args = command.collect();
    for variable in words(ENV) {
        match variable.split_once('=') {
            Some((name, value)) => {
                described.env.insert(name.to_owned(), value.to_owned());
            }
            None => described.env_from.push(variable),
        }
    }
    for header in words(HEADER) {
        let Some((name, value)) = header.split_once(':') else {
            let header = header.escape_debug();
            let words = format_args!("`--header` takes `NAME: VALUE`, not `{header}`");
            return Err(CommandError::usage(words));
        };
        described.headers.insert(name.trim().to_owned(), value.trim().to_owned());
    }
    let folder = matches.get_one::<PathBuf>(CWD).map(|folder| io.resolve_path(folder));
    described.cwd = folder.map(|folder| folder.canonicalize().unwrap_or(folder));
    described.url = one(URL);
    described.bearer_env = one(BEARER);
    described.oauth = OAuthEntry {
        client_id: one(CLIENT_ID),
        client_secret_env: one(CLIENT_SECRET),
        issuer: one(ISSUER),
        scopes: words(SCOPE),
        redirect_port: matches.get_one::<u16>(REDIRECT_PORT).copied(),
        ..OAuthEntry::default()
    }
    .if_any();
    // Environment and configuration are not read, because their sandbox settings are about commands.
    // For a URL, the options before the command are about commands, too, and no error.
    let confining = if described.url.is_some() { &levels[1..] } else { levels };
    described.sandbox = args::last_option(confining, args::SANDBOX);
    described.sandbox_level = args::last_option(confining, args::SANDBOX_LEVEL);
    let is_networked = confining.iter().any(|matches| matches.get_flag(args::SANDBOX_NETWORK));
    described.sandbox_network = is_networked.then_some(true);
    described.trust_annotations = matches.get_flag(TRUST).then_some(true);
    described.validate_as(server_name(matches)).map_err(CommandError::usage)
}

/// Returns the path of the configuration file, for an edit.
fn config_path(settings: &Settings) -> Result<&Path> {
    settings.config_path.as_deref().ok_or_else(|| {
        CommandError::config("no configuration file is known; set `--config` or HOME")
    })
}

fn remove_server(settings: &Settings, server: &str, io: &mut Io<'_>) -> Result {
    let path = config_path(settings)?;
    let url = server_url(settings, server, io);
    if !ConfigDocument::lock_for_edit(path)?.remove_server(server)? {
        let words = format_args!("there is no server `{}`", server.escape_debug());
        return Err(CommandError::new(USAGE, ToolError::not_found(words))
            .hint(format_args!("{} names them", path.display())));
    }
    // Without its pins, the server must be trusted again when it is added again.
    open_pins(settings).forget_server(server).map_err(|error| {
        let error = ToolError::unavailable(with_cause(&error));
        CommandError::new(FAILED, error)
            .hint("removed from the configuration, but its stored pins could not be deleted")
    })?;
    if let Some(url) = url {
        open_credentials(settings).forget_server(&url).map_err(|error| {
            let error = ToolError::unavailable(with_cause(&error));
            CommandError::new(FAILED, error)
                .hint("removed from the configuration, but its stored token could not be deleted")
        })?;
    }
    io.print_stderr(format_args!("removed {server}"));
    Ok(0)
}

/// Returns the URL of a configured server over HTTP.
fn server_url(settings: &Settings, server: &str, io: &Io<'_>) -> Option<String> {
    settings.servers.iter().find(|entry| entry.name == server)?.expanded_url(io)
}
