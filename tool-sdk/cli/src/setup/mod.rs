//! The command `setup`: prints or writes the configuration with which an MCP client starts this
//! program as a server.
//!
//! The entry names the program by its absolute path and the roots explicitly, because desktop
//! clients have neither the user's `PATH` nor a working folder of the user.
//!
//! **Invariant:** a file that cannot be parsed is not changed, and a file that is changed is
//! replaced atomically after a copy was made.

mod client_file;
mod client_program;
mod json_document;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Map, Value, json};

use self::client_file::ClientFile;
pub(crate) use self::client_program::{ClientFileFormat, ClientProgram, HostSystem};
pub(crate) use self::json_document::parse_json;
use super::exit::{CommandError, Result};
use super::mcp::config_edit;
use super::settings::Settings;
use super::{Io, args, style};

const ACP: &str = "acp";
const CLIENT: &str = "client";
const PROJECT: &str = "project";
const WRITE: &str = "write";

/// What the client starts the program as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgramRole {
    McpServer,
    /// The agent itself, over the Agent Client Protocol.
    Agent,
}

impl ProgramRole {
    /// Returns the key of the table that holds the entry.
    const fn table_key(self, client: ClientProgram) -> &'static str {
        match self {
            Self::McpServer => client.servers_key(),
            Self::Agent => "agent_servers",
        }
    }

    /// Returns the protocol that the program serves.
    const fn protocol(self) -> &'static str {
        match self {
            Self::McpServer => "mcp",
            Self::Agent => "acp",
        }
    }
}

/// Builds the clap command `setup CLIENT [--acp] [--write] [--project] [--name NAME]`.
pub(super) fn build_command(program: &str) -> Option<Command> {
    let clients = PossibleValuesParser::new(ClientProgram::ALL.map(ClientProgram::as_str))
        .try_map(|name| name.parse::<ClientProgram>());
    let client = Arg::new(CLIENT).value_name("CLIENT").required(true).value_parser(clients);
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue).overrides_with(name)
    };
    Some(args::with_globals(
        Command::new("setup")
            .about("Print or write the configuration with which an MCP client starts this program")
            .after_help(format!(
                "The client starts the program with the options that are given here, such as \
                 `{program} setup cursor --root ~/project --deny 'read(.env)' --write`."
            ))
            .args([
                client.help("The client"),
                switch(ACP, "Configure the agent of `serve acp` instead of an MCP server; for zed"),
                switch(WRITE, "Write it into the client's file; the rest of the file is kept"),
                switch(PROJECT, "Use the file of the project in the first root, not the user's"),
                Arg::new(args::NAME)
                    .long(args::NAME)
                    .value_name("NAME")
                    .value_parser(value_parser!(String))
                    .help("The name of the server in the client [default: that of the program]"),
            ]),
    ))
}

/// Runs `setup`. `levels` are the parsed options from left to right.
pub(super) fn run(
    program: &str,
    settings: &Settings,
    levels: &[&ArgMatches],
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let Some(&client) = matches.get_one::<ClientProgram>(CLIENT) else {
        return Err(CommandError::usage("the name of a client is missing"));
    };
    let role = choose_role(client, matches)?;
    if role == ProgramRole::McpServer {
        settings.check_broad_roots(program, "configured", io)?;
    }
    let name = server_name(program, matches)?;
    let path = config_file(client, matches.get_flag(PROJECT), settings, io)?;
    let entry = server_entry(client, role, program, settings, levels, io)?;
    if !matches.get_flag(WRITE) {
        writeln!(io.stdout, "{}", render_entry(client, role, &name, &entry))?;
        let path = path.display();
        let place = format!("put this into `{path}`, or add `--write` to let {program} do so");
        io.print_stderr(style::sanitize_text(&place));
        return Ok(0);
    }
    write_entry(client, role, &name, &entry, &path, io)?;
    Ok(0)
}

fn choose_role(client: ClientProgram, matches: &ArgMatches) -> Result<ProgramRole> {
    match (matches.get_flag(ACP), client) {
        (false, _) => Ok(ProgramRole::McpServer),
        (true, ClientProgram::Zed) => Ok(ProgramRole::Agent),
        (true, other) => Err(CommandError::usage(format_args!(
            "`--acp` configures Zed, and not {}",
            other.title()
        ))
        .hint("the guide has the configuration of other editors, in the chapter on agents")),
    }
}

/// Returns the name of the server: letters, digits, `-` and `_`, which every client accepts.
fn server_name(program: &str, matches: &ArgMatches) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match matches.get_one::<String>(args::NAME) {
        Some(name) if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) => {
            Ok(name.clone())
        }
        Some(name) => Err(CommandError::usage(format_args!(
            "`{}` is not a name for a server: use a-z, A-Z, 0-9, - and _, at most 64",
            name.escape_debug()
        ))),
        None => Ok(program.chars().take(64).map(|c| if is_plain(c) { c } else { '-' }).collect()),
    }
}

/// Returns the path of the client's file.
fn config_file(
    client: ClientProgram,
    is_project: bool,
    settings: &Settings,
    io: &Io<'_>,
) -> Result<PathBuf> {
    if is_project {
        let folder = settings.roots.first().unwrap_or(&io.current_dir);
        return client.project_file(&absolute_path(folder)).ok_or_else(|| {
            CommandError::usage(format_args!("{} has no file for a project", client.title()))
                .hint("leave out `--project`")
        });
    }
    client.user_file(HostSystem::current(), io).ok_or_else(|| {
        CommandError::config("the user has no home folder")
            .hint("set HOME, or APPDATA and USERPROFILE on Windows")
    })
}

/// Builds the entry of the server or agent. An agent gets its root with each session, so that only
/// roots that options name are repeated.
fn server_entry(
    client: ClientProgram,
    role: ProgramRole,
    program: &str,
    settings: &Settings,
    levels: &[&ArgMatches],
    io: &Io<'_>,
) -> Result<Map<String, Value>> {
    let command = match &io.program_path {
        Some(path) => path_text(path)?,
        None => program.to_owned(),
    };
    let mut words = Vec::new();
    let named_roots: &[PathBuf] = match role {
        ProgramRole::Agent if !settings.are_roots_named => &[],
        _ => &settings.roots,
    };
    for root in named_roots {
        words.extend(["--root".to_owned(), path_text(&absolute_path(root))?]);
    }
    words.extend(args::repeat_options(levels, |path| {
        path_text(&absolute_path(&io.resolve_path(path)))
    })?);
    words.extend(["serve", role.protocol()].map(str::to_owned));
    let mut entry = Map::new();
    if role == ProgramRole::Agent {
        entry.insert("type".to_owned(), "custom".into());
    } else if client.names_transport() {
        entry.insert("type".to_owned(), "stdio".into());
    }
    entry.insert("command".to_owned(), command.into());
    entry.insert("args".to_owned(), words.into());
    Ok(entry)
}

/// Returns the path without links, or at least absolute.
fn absolute_path(path: &Path) -> PathBuf {
    // On Windows, canonical paths have a prefix that other programs do not expect.
    let canonical = if cfg!(windows) { None } else { path.canonicalize().ok() };
    canonical.or_else(|| std::path::absolute(path).ok()).unwrap_or_else(|| path.to_owned())
}

fn path_text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CommandError::config(format_args!("the path `{}` is not UTF-8", path.display()))
            .hint("a configuration file can only name paths that are")
    })
}

/// Renders a file that holds nothing but the entry.
fn render_entry(
    client: ClientProgram,
    role: ProgramRole,
    name: &str,
    entry: &Map<String, Value>,
) -> String {
    let key = role.table_key(client);
    let whole = json!({ key: { name: entry } });
    match client.file_format() {
        ClientFileFormat::Json => format!("{whole:#}"),
        ClientFileFormat::Toml => {
            let table = config_edit::to_toml_table(entry).to_string();
            format!("[{key}.{name}]\n{}", table.trim_end())
        }
    }
}

/// Writes the entry into the client's file, after a copy of the old file.
fn write_entry(
    client: ClientProgram,
    role: ProgramRole,
    name: &str,
    entry: &Map<String, Value>,
    path: &Path,
    io: &mut Io<'_>,
) -> Result<()> {
    if path.parent().is_some_and(|folder| !folder.exists()) {
        let note =
            format!("note: there is no folder for the file yet; is {} installed?", client.title());
        io.print_stderr(style::sanitize_text(&note));
    }
    let (file, key) = (ClientFile::lock(path)?, role.table_key(client));
    let edited = match client.file_format() {
        ClientFileFormat::Json => json_document::set_entry(file.text(), path, key, name, entry)?,
        ClientFileFormat::Toml => config_edit::set_entry(file.text(), path, key, name, entry)?,
    };
    let place = path.display();
    let Some(edited) = edited else {
        io.print_stderr(style::sanitize_text(&format!("`{name}` is already in `{place}`")));
        return Ok(());
    };
    let copy = file.replace_text(&edited)?;
    let what = if role == ProgramRole::Agent { "agent" } else { "server" };
    io.print_stderr(style::sanitize_text(&format!("wrote the {what} `{name}` into `{place}`")));
    if let Some(copy) = copy {
        let copy = copy.display();
        io.print_stderr(style::sanitize_text(&format!("the old file is `{copy}`")));
    }
    let title = client.title();
    io.print_stderr(format_args!("restart {title}, or reload its servers, to use it"));
    Ok(())
}
