//! The command `mcp import`: adds the servers that the user has configured for other clients.
//!
//! `client_entries` translates what each client understands into entries of this program. Nothing is
//! started: the tools of an imported server are unseen, so the first use of each is asked about.
//!
//! **Invariant:** a secret that stands in the file of a client is not copied. The entry refers to a
//! variable instead, and the user is told its name.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::ArgMatches;
use serde_json::{Map, Value};
use tool_sdk_core::{ToolError, internal::spell_hidden};

use super::client_entries::{ImportedServer, SkippedServer, TranslationContext, translate_server};
use super::config_edit::ConfigDocument;
use crate::exit::{CommandError, DENIED, Result};
use crate::settings::Settings;
use crate::setup::{ClientFileFormat, ClientProgram, HostSystem, parse_json};
use crate::{Io, style};

/// The clap id of the client or file.
pub(super) const SOURCE: &str = "source";
/// The keys below which clients have their servers.
const SERVER_KEYS: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp_servers"];

/// A file with servers, and the client whose references it uses; `None` if that is not known.
struct SourceFile {
    path: PathBuf,
    client: Option<ClientProgram>,
}

/// Runs `mcp import`.
pub(super) fn run(
    settings: &Settings,
    config: &Path,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let files = source_files(matches.get_one::<String>(SOURCE), settings, io)?;
    let (mut found, mut skipped) = (Vec::<ImportedServer>::new(), Vec::<SkippedServer>::new());
    for file in &files {
        for (name, server) in read_servers(file, settings)? {
            let context = TranslationContext::new(file.client, &name, &file.path, settings, io);
            match translate_server(&server, context) {
                // A file of the project stands after that of the user, and replaces its servers.
                Ok(server) => {
                    found.retain(|other| other.entry.name != server.entry.name);
                    found.push(server);
                }
                Err(why) => skipped.push(SkippedServer { name, why }),
            }
        }
    }
    let is_configured = |server: &ImportedServer| {
        settings.servers.iter().any(|other| other.name == server.entry.name)
    };
    let (known, new): (Vec<_>, Vec<_>) = found.into_iter().partition(is_configured);
    skipped.extend(known.into_iter().map(|server| SkippedServer {
        name: server.entry.name,
        why: "a server of this name is configured already".to_owned(),
    }));
    print_table(&new, &skipped, io);
    if new.is_empty() {
        let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
        io.print_stderr(style::sanitize_text(&format!(
            "nothing to import from {}",
            names.join(", ")
        )));
        return Ok(0);
    }
    if !confirm_import(settings, new.len(), io)? {
        return Err(CommandError::new(DENIED, ToolError::denied("no server was imported"))
            .hint("`--yes` imports them without asking"));
    }
    for server in &new {
        ConfigDocument::lock_for_edit(config)?
            .add_server(&server.entry.name, &server.entry.to_toml())?;
    }
    let done =
        format!("imported {} to {}", style::count_noun(new.len(), "server"), config.display());
    io.print_stderr(style::sanitize_text(&done));
    io.print_stderr("hint: `mcp inspect NAME` shows what a server says about its tools");
    Ok(0)
}

/// Returns the files to import from: those of a client, a named one, or the project's `.mcp.json`.
fn source_files(
    source: Option<&String>,
    settings: &Settings,
    io: &Io<'_>,
) -> Result<Vec<SourceFile>> {
    let project = settings.roots.first().unwrap_or(&io.current_dir);
    let Some(source) = source else {
        let client = ClientProgram::ClaudeCode;
        let path = client.project_file(project).filter(|path| path.is_file());
        return path.map(|path| vec![SourceFile { path, client: Some(client) }]).ok_or_else(|| {
            CommandError::usage("the project has no `.mcp.json`").hint(format_args!(
                "name a file, or a client: {}",
                ClientProgram::ALL.map(ClientProgram::as_str).join(", ")
            ))
        });
    };
    let Ok(client) = source.parse::<ClientProgram>() else {
        let path = io.resolve_path(source);
        if !path.is_file() {
            return Err(CommandError::usage(format_args!(
                "`{}` is neither a file nor a client",
                source.escape_debug()
            ))
            .hint(format_args!(
                "the clients are {}",
                ClientProgram::ALL.map(ClientProgram::as_str).join(", ")
            )));
        }
        return Ok(vec![SourceFile { path, client: None }]);
    };
    let paths = [client.user_file(HostSystem::current(), io), client.project_file(project)];
    let files: Vec<SourceFile> = paths
        .into_iter()
        .flatten()
        .filter(|path| path.is_file())
        .map(|path| SourceFile { path, client: Some(client) })
        .collect();
    if files.is_empty() {
        let title = client.title();
        return Err(CommandError::usage(format_args!("{title} has no configuration here"))
            .hint("name its file"));
    }
    Ok(files)
}

/// Reads the servers of a file, those for all projects first.
fn read_servers(file: &SourceFile, settings: &Settings) -> Result<Vec<(String, Value)>> {
    let path = &file.path;
    let failed = |error: io::Error| {
        CommandError::config(format_args!("cannot read `{}`: {error}", path.display()))
    };
    let text = fs::read_to_string(path).map_err(failed)?;
    let is_toml = match file.client {
        Some(client) => client.file_format() == ClientFileFormat::Toml,
        None => path.extension().is_some_and(|end| end == "toml"),
    };
    let document = if is_toml { parse_toml(&text, path)? } else { parse_json(&text, path)? };
    let keys: Vec<&str> = match file.client {
        Some(client) => vec![client.servers_key()],
        None => SERVER_KEYS.to_vec(),
    };
    let mut servers = Vec::new();
    let mut add = |within: &Map<String, Value>| {
        let tables = keys.iter().filter_map(|key| within.get(*key)?.as_object());
        servers.extend(tables.flatten().map(|(name, server)| (name.clone(), server.clone())));
    };
    add(&document);
    // Claude Code keeps the servers of one user for one project in the user's file.
    let projects = document.get("projects").and_then(Value::as_object);
    for (folder, project) in projects.into_iter().flatten() {
        let is_root = |root: &PathBuf| {
            let root = root.canonicalize();
            root.is_ok_and(|root| root == Path::new(folder))
        };
        if let Some(project) = project.as_object().filter(|_| settings.roots.iter().any(is_root)) {
            add(project);
        }
    }
    Ok(servers)
}

fn parse_toml(text: &str, path: &Path) -> Result<Map<String, Value>> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or_default();
        let line = line.matches('\n').count() + 1;
        let message = error.message().replace('\n', ", ");
        CommandError::config(format_args!("{}:{line}: {message}", path.display()))
    })?;
    match serde_json::to_value(table) {
        Ok(Value::Object(members)) => Ok(members),
        _ => Ok(Map::new()),
    }
}

fn print_table(new: &[ImportedServer], skipped: &[SkippedServer], io: &mut Io<'_>) {
    let columns = io.columns.map_or(100, usize::from);
    let names = new.iter().map(|server| &server.entry.name);
    let width = names.chain(skipped.iter().map(|it| &it.name)).map(|name| name.chars().count());
    let width = width.max().unwrap_or_default().min(30);
    for server in new {
        let line = format!("{:width$}  {}", server.entry.name, server.entry.describe_transport());
        io.print_stderr(style::cut_line(&spell_hidden(&line), columns));
        for note in &server.notes {
            io.print_stderr(format_args!("{:width$}  - {}", "", spell_hidden(note)));
        }
    }
    for SkippedServer { name, why } in skipped {
        let line = format!("{name:width$}  not imported: {why}");
        io.print_stderr(spell_hidden(&line));
    }
}

fn confirm_import(settings: &Settings, count: usize, io: &Io<'_>) -> Result<bool> {
    let question = match count {
        1 => "import this server? Its program runs as you [y/N] ".to_owned(),
        _ => format!("import these {count} servers? Their programs run as you [y/N] "),
    };
    settings.confirm(&question, io)
}
