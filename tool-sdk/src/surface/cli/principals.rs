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
//! ```
//!
//! **Invariant:** the configuration contains no token, only where to read it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use serde::Deserialize;

use super::config::Part;
use super::endpoint::Endpoint;
use super::exit::{Failure, Result};
use super::{Io, input, style};
use crate::surface::mcp::{Http, Principal, Token};
use crate::toolset::Toolset;

/// The limit of a token file in bytes.
const MAX_BYTES: u64 = 4096;

/// The `[serve.mcp]` table.
#[derive(Debug, Default)]
pub(super) struct Principals {
    /// The principals by name.
    principals: BTreeMap<String, Entry>,
    /// Whether a principal may register servers over HTTP, whose tools all principals then share.
    pub(super) register_servers: bool,
    /// Host names that are accepted besides those of this machine.
    hosts: Vec<String>,
    /// Web origins whose scripts may connect.
    origins: Vec<String>,
}

/// The configuration of one principal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The environment variable that holds the token.
    token_env: Option<String>,
    /// The file that holds the token.
    token_file: Option<PathBuf>,
    #[serde(default)]
    permissions: Vec<String>,
    agent: Option<String>,
}

/// Parses the `[serve]` table.
pub(super) fn principals(serve: Part<'_, '_>) -> Principals {
    const KEYS: &[&str] = &["hosts", "origins", "principals", "register_servers"];
    let mcp = serve.keys(&["mcp"]).and_then(|mut keys| keys.take("mcp"));
    let Some(mut keys) = mcp.and_then(|mcp| mcp.keys(KEYS)) else { return Principals::default() };
    let read = |part: Part<'_, '_>, check: fn(String) -> Checked| part.read_as(check);
    Principals {
        principals: keys.named("principals").into_iter().filter_map(principal).collect(),
        register_servers: keys.read("register_servers").unwrap_or_default(),
        hosts: keys.items("hosts").into_iter().filter_map(|it| read(it, host)).collect(),
        origins: keys.items("origins").into_iter().filter_map(|it| read(it, origin)).collect(),
    }
}

fn principal((name, part): (String, Part<'_, '_>)) -> Option<(String, Entry)> {
    let is_nobody = name.trim().is_empty();
    // The name is shown in prompts and logs.
    let is_plain =
        name.trim() == name && style::escaped(&name) == name && !name.contains(char::is_control);
    let one_token = move |entry: Entry| match entry.token_env.is_some()
        == entry.token_file.is_some()
    {
        _ if is_nobody => Err("a principal needs a name"),
        _ if !is_plain => Err("a name must have no blanks at its ends and no hidden characters"),
        true => Err("it needs either `token_env` or `token_file`"),
        false => Ok(entry),
    };
    Some((name, part.read_as(one_token)?))
}

/// A validated text, or the error message.
type Checked = std::result::Result<String, String>;

fn host(text: String) -> Checked {
    if is_host(&text) {
        Ok(text)
    } else {
        Err(format!("`{text}` is not a host; write `HOST` or `HOST:PORT`"))
    }
}

fn origin(text: String) -> Checked {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if host.is_some_and(is_host) {
        return Ok(text);
    }
    Err(format!("`{text}` is not an origin; write one such as `https://example.com`"))
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && !text.contains(|it: char| "/@*?#".contains(it) || it <= ' ')
}

impl Principals {
    /// Whether no principals are configured.
    pub(super) fn is_empty(&self) -> bool {
        self.principals.is_empty()
    }
}

/// Adds the configured hosts and origins to those that the server accepts. A host without a port
/// is accepted with and without the server's port.
pub(super) fn at(http: Http, own: &Principals, port: Option<u16>) -> Http {
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
pub(super) fn reached_as(own: &Principals, endpoint: &Endpoint) -> Option<String> {
    const NONE: &str =
        "only this machine can connect: list the host names for others as `hosts` in `[serve.mcp]`";
    let Endpoint::Address(address) = endpoint else { return None };
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
pub(super) fn admit(
    mut http: Http,
    general: &Token,
    Principals { principals, .. }: &Principals,
    tools: &Toolset,
    io: &Io<'_>,
) -> Result<Http> {
    let mut known: Vec<(String, &str)> = Vec::new();
    for (name, entry) in principals {
        if let Some(agent) = entry.agent.as_ref().filter(|agent| !tools.has_agent(agent)) {
            let words = format_args!("`{name}` uses the agent `{agent}`, which is not configured");
            return Err(Failure::config(words)
                .hint(format_args!("add `[agents.{agent}]`, or name an existing agent")));
        }
        let token = entry.token(name, io)?;
        if token.reveal() == general.reveal() {
            return Err(Failure::config(format_args!(
                "`{name}` must not use the default token of the server"
            )));
        }
        if let Some((_, other)) = known.iter().find(|(secret, _)| secret == token.reveal()) {
            return Err(Failure::config(format_args!(
                "`{other}` and `{name}` have the same token"
            )));
        }
        known.push((token.reveal().to_owned(), name));
        let permissions = entry.permissions.iter().cloned();
        let mut principal = permissions.fold(Principal::new(name), Principal::with_permission);
        if let Some(agent) = &entry.agent {
            principal = principal.with_agent(agent);
        }
        http = http.principal(token, principal);
    }
    Ok(http)
}

impl Entry {
    fn token(&self, name: &str, io: &Io<'_>) -> Result<Token> {
        let secret = match (&self.token_env, &self.token_file) {
            (Some(variable), _) => {
                let value = io.var(variable).and_then(|value| value.into_string().ok());
                value.ok_or_else(|| {
                    Failure::config(format_args!("`{variable}`, the token of `{name}`, is not set"))
                })?
            }
            (None, file) => {
                let path = io.path(file.clone().unwrap_or_default());
                let shown = path.display().to_string();
                let mut file = File::open(&path).map_err(|error| {
                    Failure::config(format_args!("cannot open `{shown}` of `{name}`: {error}"))
                })?;
                input::text(&mut file, &format!("`{shown}`"), MAX_BYTES)?
            }
        };
        secret
            .trim_end_matches(['\r', '\n'])
            .parse()
            .map_err(|error| Failure::config(format_args!("the token of `{name}`: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Mistakes;
    use super::*;

    /// Parses `[serve.mcp]`; fails with the formatted errors.
    fn read(text: &str) -> std::result::Result<Principals, String> {
        let text = format!("[serve.mcp]\n{text}");
        let mistakes = Mistakes::of(&text);
        let serve = mistakes.whole().and_then(|it| it.keys(&["serve"])?.take("serve"));
        let known = serve.map(principals).unwrap_or_default();
        match mistakes.told("f") {
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
    fn describes_the_hosts_for_other_machines() {
        let told = |hosts: &str, address: &str| {
            let own = read(&format!("hosts = {hosts}\n")).unwrap();
            reached_as(&own, &address.parse().unwrap())
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
