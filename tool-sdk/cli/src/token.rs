//! The command `token`: makes tokens for `serve http`, lists and revokes them.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};
use tool_sdk_core::{PrivateFileError, ToolError};
use tool_sdk_http::{TokenScope, TokenScopes};

use super::exit::{CommandError, Result};
use super::settings::Settings;
use super::token_file::{StoredToken, TokenFile};
use super::{Io, args, exit, style};

const SCOPE: &str = "token-scope";
const PRINCIPAL: &str = "principal";

/// Builds the clap command `token create | list | revoke`.
pub(super) fn build_command() -> Command {
    let scopes = PossibleValuesParser::new(TokenScope::ALL.map(TokenScope::as_str))
        .try_map(|name| name.parse::<TokenScope>());
    let scope = Arg::new(SCOPE)
        .long("scope")
        .value_name("SCOPE")
        .value_parser(scopes)
        .action(ArgAction::Append)
        .required(true)
        .help("What the token allows; may be repeated");
    let principal = Arg::new(PRINCIPAL)
        .long(PRINCIPAL)
        .value_name("NAME")
        .help("Whose token it is; by default that of the owner of the server");
    let id = Arg::new(args::ID).value_name("ID").required(true).help("The id that `list` shows");
    let create = Command::new("create")
        .about("Make a token and print it, this once")
        .args([scope, principal])
        .arg(args::json_flag("Print one JSON value"));
    let list = Command::new("list")
        .about("List the tokens, without their secrets")
        .arg(args::json_flag("Print a JSON array"));
    let revoke = Command::new("revoke").about("Revoke a token; running servers refuse it").arg(id);
    args::with_globals(
        Command::new("token")
            .about("Make, list and revoke tokens for `serve http`")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands([create, list, revoke].map(args::with_globals)),
    )
}

pub(super) fn run(settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let Some((command, behind)) = matches.subcommand() else {
        return Err(CommandError::usage("`create`, `list` or `revoke ID` is missing"));
    };
    let tokens = TokenFile::in_state_folder(settings).ok_or_else(|| {
        CommandError::config("there is no state folder to store tokens in")
            .hint("`--state-dir` or HOME sets it")
    })?;
    match command {
        "create" => create_token(&tokens, behind, io),
        "revoke" => revoke_token(&tokens, behind, io),
        _ => list_tokens(&tokens, behind.get_flag(args::JSON), io),
    }
}

fn create_token(tokens: &TokenFile, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let scopes: TokenScopes = matches.get_many(SCOPE).into_iter().flatten().copied().collect();
    let principal = matches.get_one::<String>(PRINCIPAL).cloned();
    if principal.as_deref().is_some_and(|name| name.trim().is_empty()) {
        return Err(CommandError::usage("`--principal` must not be empty"));
    }
    let (token, stored) = tokens.create_token(scopes, principal).map_err(file_error)?;
    if matches.get_flag(args::JSON) {
        let mut entry = token_json(&stored);
        entry["token"] = token.reveal().into();
        writeln!(io.stdout, "{entry:#}")?;
    } else {
        writeln!(io.stdout, "{}", token.reveal())?;
        io.print_stderr(format_args!(
            "made the token {} with the scopes {scopes}; it is not shown again",
            stored.id
        ));
    }
    Ok(0)
}

fn list_tokens(tokens: &TokenFile, json: bool, io: &mut Io<'_>) -> Result {
    let stored = tokens.list_tokens().map_err(file_error)?;
    if json {
        let entries: Vec<Value> = stored.iter().map(token_json).collect();
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
    } else if stored.is_empty() {
        io.print_stderr("no tokens are stored");
    } else {
        for token in &stored {
            let principal = token.principal.as_ref().map(|name| format!("  of {name}"));
            let principal = principal.unwrap_or_default();
            let line = format!("{}  {}{principal}", token.id, token.scopes.join(" "));
            writeln!(io.stdout, "{}", style::sanitize_text(&line).replace('\n', "\n  "))?;
        }
    }
    Ok(0)
}

fn token_json(token: &StoredToken) -> Value {
    json!({
        "id": token.id,
        "scopes": token.scopes,
        "principal": token.principal,
        "created": token.created,
    })
}

fn revoke_token(tokens: &TokenFile, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let id = matches.get_one::<String>(args::ID).map_or("", String::as_str);
    if tokens.revoke_token(id).map_err(file_error)? {
        io.print_stderr(format_args!("revoked {id}"));
        return Ok(0);
    }
    let message = format!("there is no token `{}`", id.escape_debug());
    Err(CommandError::new(exit::USAGE, ToolError::not_found(message))
        .hint("`token list` shows the ids"))
}

fn file_error(error: PrivateFileError) -> CommandError {
    CommandError::config(exit::with_cause(&error))
}
