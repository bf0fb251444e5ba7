//! `mcp resources`, `mcp read` and `mcp prompts`: what servers offer beside tools.

use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};
use tool_sdk_core::ToolError;
use tool_sdk_core::internal::spell_hidden;
use tool_sdk_mcp::{RemoteError, RemotePrompt, RemoteResource, RemoteResult};

use super::ConfiguredServers;
use crate::exit::{CommandError, FAILED, Result, USAGE};
use crate::settings::Settings;
use crate::{Io, args};

const URI: &str = "uri";

/// Builds the three commands.
pub(super) fn build_commands(json: impl Fn() -> Arg) -> [Command; 3] {
    let server = |name: &'static str| Arg::new(name).value_name("SERVER");
    let one_or_all = || server(args::NAME).help("The server; all of them when it is left out");
    [
        Command::new("resources")
            .about("List the resources of the servers, and the templates of further ones")
            .args([one_or_all(), json()]),
        Command::new("prompts")
            .about("List the prompts of the servers, with their arguments")
            .args([one_or_all(), json()]),
        Command::new("read").about("Print a resource of a server").args([
            server(args::NAME).required(true),
            Arg::new(URI).value_name("URI").required(true),
            json(),
        ]),
    ]
}

/// `mcp resources`
pub(super) fn list_resources(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let servers = ConfiguredServers::load(settings, io)?;
    let listed = each_server(&servers, matches, |server| {
        servers.block_on(servers.manager().list_resources(server))
    })?;
    print_lists(listed, "resources", matches, resource_line, io)
}

/// `mcp prompts`
pub(super) fn list_prompts(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let servers = ConfiguredServers::load(settings, io)?;
    let listed = each_server(&servers, matches, |server| {
        servers.block_on(servers.manager().list_prompts(server))
    })?;
    print_lists(listed, "prompts", matches, prompt_line, io)
}

/// `mcp read`
pub(super) fn read_resource(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let servers = ConfiguredServers::load(settings, io)?;
    let [server] = &*server_names(&servers, matches)? else {
        return Err(CommandError::usage("the name of the server is missing"));
    };
    let uri = matches.get_one::<String>(URI).map_or("", String::as_str);
    let read = servers.block_on(servers.manager().read_resource(server, uri));
    let read = read.map_err(|error| server_error(server, error))?;
    if matches.get_flag(args::JSON) {
        writeln!(io.stdout, "{read:#}")?;
        return Ok(0);
    }
    let contents = read["contents"].as_array().cloned().unwrap_or_default();
    let block = |contents: Value| json!({ "type": "resource", "resource": contents });
    let output = RemoteResult::from_content(contents.into_iter().map(block).collect());
    writeln!(io.stdout, "{}", output.into_output().as_text())?;
    Ok(0)
}

/// Returns the named server, or all that are enabled.
fn server_names(servers: &ConfiguredServers, matches: &ArgMatches) -> Result<Vec<String>> {
    let Some(name) = matches.get_one::<String>(args::NAME) else {
        return Ok(servers.enabled_names.clone());
    };
    if servers.enabled_names.contains(name) {
        return Ok(vec![name.clone()]);
    }
    let words = format_args!("there is no enabled server `{}`", name.escape_debug());
    Err(CommandError::new(USAGE, ToolError::not_found(words)).hint("`mcp list` names them"))
}

/// What each server listed, or why it did not.
type ServerLists<T> = Vec<(String, std::result::Result<Vec<T>, RemoteError>)>;

/// Asks each server; with several of them, one that fails does not hide the others.
fn each_server<T>(
    servers: &ConfiguredServers,
    matches: &ArgMatches,
    ask: impl Fn(&str) -> std::result::Result<Vec<T>, RemoteError>,
) -> Result<ServerLists<T>> {
    let names = server_names(servers, matches)?;
    if let [name] = &*names {
        let listed = ask(name).map_err(|error| server_error(name, error))?;
        return Ok(vec![(name.clone(), Ok(listed))]);
    }
    Ok(names.into_iter().map(|name| (name.clone(), ask(&name))).collect())
}

fn server_error(server: &str, error: RemoteError) -> CommandError {
    let words = format_args!("cannot use the server `{server}`: {error}");
    CommandError::new(FAILED, ToolError::unavailable(words).source(error))
}

fn print_lists<T: serde::Serialize>(
    listed: ServerLists<T>,
    key: &str,
    matches: &ArgMatches,
    line: fn(&T) -> String,
    io: &mut Io<'_>,
) -> Result {
    if matches.get_flag(args::JSON) {
        let of_server = |(server, listed): &(String, std::result::Result<Vec<T>, _>)| match listed {
            Ok(listed) => json!({ "server": server, key: listed }),
            Err(error) => json!({ "server": server, "error": RemoteError::to_string(error) }),
        };
        let all: Vec<Value> = listed.iter().map(of_server).collect();
        writeln!(io.stdout, "{:#}", json!(all))?;
        return Ok(0);
    }
    if listed.is_empty() {
        io.print_stderr("no servers are configured");
    }
    for (server, listed) in &listed {
        match listed {
            Ok(listed) => {
                writeln!(io.stdout, "{server}: {} {key}", listed.len())?;
                for entry in listed {
                    writeln!(io.stdout, "  {}", spell_hidden(&line(entry)))?;
                }
            }
            Err(error) => io.print_stderr(format_args!("warning: {server}: {error}")),
        }
    }
    Ok(0)
}

fn resource_line(resource: &RemoteResource) -> String {
    let name = resource.title.as_ref().unwrap_or(&resource.name);
    let mime = resource.mime_type.as_ref().map(|mime| format!(" ({mime})"));
    format!("{}  {name}{}", resource.uri, mime.unwrap_or_default())
}

fn prompt_line(prompt: &RemotePrompt) -> String {
    let arguments = prompt.arguments.iter().map(|argument| match argument.required {
        true => argument.name.clone(),
        false => format!("{}?", argument.name),
    });
    let words = prompt.description.as_ref().map(|words| format!("  {words}"));
    let arguments: Vec<String> = arguments.collect();
    format!("{}({}){}", prompt.name, arguments.join(", "), words.unwrap_or_default())
}
