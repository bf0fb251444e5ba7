//! Parses `[serve.mcp]`: the principals that may connect over HTTP, each with its own token, and
//! the allowed hosts and origins.
//!
//! ```toml
//! [serve.mcp]
//! hosts = ["tools.example.com"]
//! origins = ["https://example.com"]
//!
//! [serve.mcp.principals.ada]
//! token_env = "ADA_TOKEN"
//! permissions = ["notes:write"]
//!
//! [serve.mcp.principals.robot]
//! token_file = "/run/secrets/robot"
//! agent = "reader"
//!
//! [serve.mcp.oauth]
//! issuer = "https://login.example.com"
//! resource = "https://tools.example.com/mcp"
//! tools_scope = "tools"
//! ```
//!
//! **Invariant:** the configuration contains no token, only where to read it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use serde::Deserialize;
use tool_sdk_core::{Principal, Toolset};
use tool_sdk_http::{AccessTokenIssuer, HttpOptions, Token};

use super::exit::{CommandError, Result};
use super::listen_address::ListenAddress;
use super::settings::TomlValue;
use super::{Io, input, style};

/// The limit of a token file in bytes.
const MAX_BYTES: u64 = 4096;

/// The `[serve.mcp]` table.
#[derive(Debug, Default)]
pub(super) struct ServeConfig {
    /// The principals by name.
    principals: BTreeMap<String, PrincipalEntry>,
    /// Whether a principal may register servers over HTTP, whose tools all principals then share.
    pub(super) register_servers: bool,
    /// Whether tools may read the folders that a client says it works in.
    roots_from_client: bool,
    /// Whether the tools that start agents are served.
    agents: bool,
    /// The authorization server whose access tokens are accepted.
    access_tokens: Option<AccessTokenIssuer>,
    /// Host names that are accepted besides those of this machine.
    hosts: Vec<String>,
    /// Web origins whose scripts may connect.
    origins: Vec<String>,
}

/// The configuration of one principal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrincipalEntry {
    /// The environment variable that holds the token.
    token_env: Option<String>,
    /// The file that holds the token.
    token_file: Option<PathBuf>,
    #[serde(default)]
    permissions: Vec<String>,
    agent: Option<String>,
}

/// The authorization server whose access tokens are accepted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessTokenEntry {
    issuer: String,
    /// The URL under which clients reach the MCP endpoint.
    resource: String,
    /// A further audience.
    audience: Option<String>,
    tools_scope: Option<String>,
    approvals_scope: Option<String>,
}

impl AccessTokenEntry {
    fn into_issuer(self) -> std::result::Result<AccessTokenIssuer, String> {
        let new = AccessTokenIssuer::new(self.issuer, self.resource);
        let mut issuer = new.map_err(|error| error.to_string())?;
        if let Some(audience) = self.audience {
            issuer = issuer.audience(audience);
        }
        if let Some(scope) = self.tools_scope {
            issuer = issuer.tools_scope(scope);
        }
        Ok(match self.approvals_scope {
            Some(scope) => issuer.approvals_scope(scope),
            None => issuer,
        })
    }
}

/// Parses the `[serve]` table.
pub(super) fn parse_serve_config(serve: TomlValue<'_, '_>) -> ServeConfig {
    const KEYS: &[&str] = &[
        "agents",
        "hosts",
        "oauth",
        "origins",
        "principals",
        "register_servers",
        "roots_from_client",
    ];
    let mcp = serve.into_table_with(&["mcp"]).and_then(|mut keys| keys.take_value("mcp"));
    let Some(mut keys) = mcp.and_then(|mcp| mcp.into_table_with(KEYS)) else {
        return ServeConfig::default();
    };
    let read = |part: TomlValue<'_, '_>, check: fn(String) -> CheckedText| part.read_with(check);
    ServeConfig {
        principals: keys
            .take_named_values("principals")
            .into_iter()
            .filter_map(parse_principal)
            .collect(),
        access_tokens: keys
            .take_value("oauth")
            .and_then(|entry| entry.read_with(AccessTokenEntry::into_issuer)),
        register_servers: keys.read_value("register_servers").unwrap_or_default(),
        agents: keys.read_value("agents").unwrap_or_default(),
        roots_from_client: keys.read_value("roots_from_client").unwrap_or_default(),
        hosts: keys.take_items("hosts").into_iter().filter_map(|it| read(it, parse_host)).collect(),
        origins: keys
            .take_items("origins")
            .into_iter()
            .filter_map(|it| read(it, parse_origin))
            .collect(),
    }
}

fn parse_principal((name, part): (String, TomlValue<'_, '_>)) -> Option<(String, PrincipalEntry)> {
    let is_nobody = name.trim().is_empty();
    // The name is shown in prompts and logs.
    let is_plain = name.trim() == name
        && style::escape_text(&name) == name
        && !name.contains(char::is_control);
    let one_token = move |entry: PrincipalEntry| match entry.token_env.is_some()
        == entry.token_file.is_some()
    {
        _ if is_nobody => Err("a principal needs a name"),
        _ if !is_plain => Err("a name must have no blanks at its ends and no hidden characters"),
        true => Err("it needs either `token_env` or `token_file`"),
        false => Ok(entry),
    };
    Some((name, part.read_with(one_token)?))
}

/// A validated text, or the error message.
type CheckedText = std::result::Result<String, String>;

fn parse_host(text: String) -> CheckedText {
    if is_host(&text) {
        Ok(text)
    } else {
        Err(format!("`{text}` is not a host; write `HOST` or `HOST:PORT`"))
    }
}

fn parse_origin(text: String) -> CheckedText {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if host.is_some_and(is_host) {
        return Ok(text);
    }
    Err(format!("`{text}` is not an origin; write one such as `https://example.com`"))
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && !text.contains(|it: char| "/@*?#".contains(it) || it <= ' ')
}

impl ServeConfig {
    /// Whether tools may read the folders that a client says it works in.
    pub(super) fn has_client_roots(&self) -> bool {
        self.roots_from_client
    }

    /// Whether the tools that start agents are served.
    pub(super) fn has_agents(&self) -> bool {
        self.agents
    }

    /// Whether neither principals nor an authorization server are configured, so that the server has
    /// one token.
    pub(super) fn is_empty(&self) -> bool {
        self.principals.is_empty() && self.access_tokens.is_none()
    }
}

/// Adds the configured hosts and origins to those that the server accepts. A host without a port
/// is accepted with and without the server's port.
pub(super) fn allow_hosts(http: HttpOptions, own: &ServeConfig, port: Option<u16>) -> HttpOptions {
    let http = own.origins.iter().fold(http, |http, site| http.allow_origin(site));
    own.hosts.iter().fold(http, |http, host| {
        // Colons in brackets belong to an IPv6 address.
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let http = http.allow_host(host);
        match port.filter(|_| !has_port) {
            Some(port) => http.allow_host(format!("{host}:{port}")),
            None => http,
        }
    })
}

/// Describes the hosts under which other machines can connect, or how to add one; `None` if other
/// machines cannot reach the address.
pub(super) fn describe_allowed_hosts(
    own: &ServeConfig,
    endpoint: &ListenAddress,
) -> Option<String> {
    const NONE: &str =
        "only this machine can connect: list the host names for others as `hosts` in `[serve.mcp]`";
    let ListenAddress::Tcp(address) = endpoint else { return None };
    if endpoint.is_local() {
        return None;
    }
    match own.hosts.as_slice() {
        [] => address.ip().is_unspecified().then(|| NONE.to_owned()),
        hosts => Some(format!("other machines can connect as {}", hosts.join(", "))),
    }
}

/// Adds the configured principals to the server, whose default token is `general`.
///
/// Fails for an agent that `tools` does not know, because it would have every tool.
pub(super) fn add_principals(
    mut http: HttpOptions,
    general: &Token,
    ServeConfig { principals, access_tokens, .. }: &ServeConfig,
    tools: &Toolset,
    io: &Io<'_>,
) -> Result<HttpOptions> {
    let mut known: Vec<(String, &str)> = Vec::new();
    for (name, entry) in principals {
        if let Some(agent) = entry.agent.as_ref().filter(|agent| !tools.has_agent(agent)) {
            let words = format_args!("`{name}` uses the agent `{agent}`, which is not configured");
            return Err(CommandError::config(words)
                .hint(format_args!("add `[agents.{agent}]`, or name an existing agent")));
        }
        let token = entry.read_token(name, io)?;
        if token.reveal() == general.reveal() {
            return Err(CommandError::config(format_args!(
                "`{name}` must not use the default token of the server"
            )));
        }
        if let Some((_, other)) = known.iter().find(|(secret, _)| secret == token.reveal()) {
            return Err(CommandError::config(format_args!(
                "`{other}` and `{name}` have the same token"
            )));
        }
        known.push((token.reveal().to_owned(), name));
        let permissions = entry.permissions.iter().cloned();
        let mut principal = permissions.fold(Principal::new(name), Principal::with_permission);
        if let Some(agent) = &entry.agent {
            principal = principal.with_agent(agent);
        }
        http = http.with_principal(token, principal);
    }
    Ok(match access_tokens {
        Some(issuer) => http.with_access_tokens(issuer.clone()),
        None => http,
    })
}

impl PrincipalEntry {
    fn read_token(&self, name: &str, io: &Io<'_>) -> Result<Token> {
        let secret = match (&self.token_env, &self.token_file) {
            (Some(variable), _) => {
                let value = io.env_var(variable).and_then(|value| value.into_string().ok());
                value.ok_or_else(|| {
                    CommandError::config(format_args!(
                        "`{variable}`, the token of `{name}`, is not set"
                    ))
                })?
            }
            (None, file) => {
                let path = io.resolve_path(file.clone().unwrap_or_default());
                let shown = path.display().to_string();
                let mut file = File::open(&path).map_err(|error| {
                    CommandError::config(format_args!("cannot open `{shown}` of `{name}`: {error}"))
                })?;
                input::read_text(&mut file, &format!("`{shown}`"), MAX_BYTES)?
            }
        };
        secret
            .trim_end_matches(['\r', '\n'])
            .parse()
            .map_err(|error| CommandError::config(format_args!("the token of `{name}`: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ConfigErrors;

    /// Parses `[serve.mcp]`; fails with the formatted errors.
    fn read(text: &str) -> std::result::Result<ServeConfig, String> {
        let text = format!("[serve.mcp]\n{text}");
        let mistakes = ConfigErrors::new(&text);
        let serve = mistakes
            .parse_root()
            .and_then(|it| it.into_table_with(&["serve"])?.take_value("serve"));
        let known = serve.map(parse_serve_config).unwrap_or_default();
        match mistakes.format_errors("f") {
            told if told.is_empty() => Ok(known),
            told => Err(told),
        }
    }

    #[track_caller]
    fn check(text: &str, words: &str) {
        let mistake = read(text).unwrap_err();
        assert!(mistake.contains(words), "{mistake}");
    }

    #[test]
    fn access_tokens_need_an_issuer_and_a_resource() {
        let issuer = "[serve.mcp.oauth]\nissuer = 'https://login.example.com'\n";
        let known = read(&format!("{issuer}resource = 'https://a.example/mcp'\n")).unwrap();
        assert!(known.access_tokens.is_some() && !known.is_empty());
        check(issuer, "missing field `resource`");
        check(&format!("{issuer}resource = 'http://a.example/mcp'\n"), "an https URL");
        check(&format!("{issuer}resource = 'https://a'\nscope = 'x'\n"), "unknown field `scope`");
    }

    #[test]
    fn describes_the_hosts_for_other_machines() {
        let told = |hosts: &str, address: &str| {
            let own = read(&format!("hosts = {hosts}\n")).unwrap();
            describe_allowed_hosts(&own, &address.parse().unwrap())
        };
        assert_eq!(told("['a.example']", "127.0.0.1:80"), None);
        assert_eq!(told("['a.example']", "unix:/run/s"), None);
        assert_eq!(told("[]", "192.0.2.1:80"), None);
        let none = told("[]", "0.0.0.0:80").unwrap();
        assert!(none.contains("`hosts`"), "{none}");
        let named = told("['a.example', 'b.example:80']", "[::]:80").unwrap();
        assert_eq!(named, "other machines can connect as a.example, b.example:80");
    }

    // F130
    #[test]
    fn every_principal_has_exactly_one_token() {
        let ada = |entry: &str| format!("[serve.mcp.principals.ada]\n{entry}\n");
        let known = read(&ada("token_env = 'A'\npermissions = ['p']")).unwrap();
        assert_eq!(known.principals["ada"].permissions, ["p"]);
        check(&ada(""), "`serve.mcp.principals.ada`: it needs either `token_env` or `token_file`");
        check(&ada("token_env = 'A'\ntoken_file = 'b'"), "needs either");
        // A token in the file would be readable with the file.
        check(&ada("token = '0123456789abcdef0123456789abcdef'"), "unknown field `token`");
        check("[serve.mcp.principals.\"a\\n\"]\ntoken_env = 'A'\n", "no blanks at its ends");
        check("[serve.mcp.principals.\"a\\u202e\"]\ntoken_env = 'A'\n", "no hidden characters");
        check("hosts = ['*']\n", "`*` is not a host");
        check("origins = ['https://*.example.com']\n", "is not an origin");
        check("[serve.mcp.principals.'']\ntoken_env = 'A'\n", "a principal needs a name");
        check("[serve.mpc]\n", "unknown key `mpc`; did you mean `mcp`?");
    }
}
