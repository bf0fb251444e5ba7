//! `[serve.mcp.principals.NAME]`: who may come in over HTTP, each with a token of their own.
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
//! **Invariant:** no token stands in the configuration itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::exit::{Failure, Result};
use super::{Io, input};
use crate::surface::mcp::{Http, Principal, Token};
use crate::toolset::Toolset;

/// A longer file is none that holds a token.
const MAX_BYTES: u64 = 4096;

/// `[serve.mcp]`: who comes in, and what they may do to each other.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Principals {
    /// Everybody with a token of their own, by name.
    principals: BTreeMap<String, Entry>,
    /// Whether one may add servers over HTTP, whose tools all others have then as well.
    pub(super) register_servers: bool,
    /// Names under which the server is reached, beside those of this machine.
    hosts: Vec<String>,
    /// Web sites whose scripts may come in.
    origins: Vec<String>,
}

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The variable of the environment that holds the token.
    token_env: Option<String>,
    /// The file that holds it.
    token_file: Option<PathBuf>,
    #[serde(default)]
    permissions: Vec<String>,
    agent: Option<String>,
}

/// The principals below `[serve]`.
///
/// # Errors
///
/// Says what is not understood.
pub(super) fn principals(serve: &Value) -> std::result::Result<Principals, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Serve {
        mcp: Principals,
    }
    let Serve { mcp } = Serve::deserialize(serve).map_err(|error| error.to_string())?;
    for (name, entry) in &mcp.principals {
        if entry.token_env.is_some() == entry.token_file.is_some() {
            return Err(format!("`{name}` needs either `token_env` or `token_file`"));
        }
    }
    if let Some(host) = mcp.hosts.iter().find(|host| !is_host(host)) {
        return Err(format!("`{host}` is no host; write `HOST` or `HOST:PORT`"));
    }
    if let Some(site) = mcp.origins.iter().find(|site| !is_origin(site)) {
        return Err(format!("`{site}` is no origin; write one such as `https://example.com`"));
    }
    Ok(mcp)
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && !text.contains(['/', '@', ' '])
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(is_host)
}

impl Principals {
    /// Whether nobody has a token of their own.
    pub(super) fn is_empty(&self) -> bool {
        self.principals.is_empty()
    }
}

/// Lets in who reached the server at `address` under one of its names. One without a port is
/// meant with any that leads here.
pub(super) fn at(http: Http, own: &Principals, address: SocketAddr) -> Http {
    let http = own.origins.iter().fold(http, |http, site| http.allow_origin(site));
    own.hosts.iter().fold(http, |http, host| {
        // Colons in brackets are those of an address.
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let http = http.allow_host(host);
        if has_port { http } else { http.allow_host(format!("{host}:{}", address.port())) }
    })
}

/// Under which names others are let in, where they can reach the server at all; how to add one
/// where there is none.
pub(super) fn reached_as(own: &Principals, address: SocketAddr) -> Option<String> {
    const NONE: &str =
        "only this machine is let in: name what others call it as `hosts` below `[serve.mcp]`";
    if address.ip().is_loopback() {
        return None;
    }
    match own.hosts.as_slice() {
        [] => address.ip().is_unspecified().then(|| NONE.to_owned()),
        hosts => Some(format!("others are let in as {}", hosts.join(", "))),
    }
}

/// Lets all of them in. An agent that `tools` does not know would have every tool there is.
pub(super) fn admit(
    mut http: Http,
    Principals { principals, .. }: &Principals,
    tools: &Toolset,
    io: &Io<'_>,
) -> Result<Http> {
    let mut known: Vec<(String, &str)> = Vec::new();
    for (name, entry) in principals {
        if let Some(agent) = entry.agent.as_ref().filter(|agent| !tools.has_agent(agent)) {
            let words = format_args!("`{name}` is to be the agent `{agent}`, which there is not");
            return Err(Failure::config(words)
                .hint(format_args!("write `[agents.{agent}]`, or name one that is there")));
        }
        let token = entry.token(name, io)?;
        if let Some((_, other)) = known.iter().find(|(secret, _)| secret == token.reveal()) {
            return Err(Failure::config(format_args!("`{other}` and `{name}` have one token")));
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
                input::text(&mut file, &shown, MAX_BYTES)?
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
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(serve: Value, words: &str) {
        let mistake = principals(&serve).unwrap_err();
        assert!(mistake.contains(words), "{mistake}");
    }

    #[test]
    fn others_are_told_how_they_are_let_in() {
        let told = |hosts: Value, address: &str| {
            let own = principals(&json!({ "mcp": { "hosts": hosts } })).unwrap();
            reached_as(&own, address.parse().unwrap())
        };
        assert_eq!(told(json!(["a.example"]), "127.0.0.1:80"), None);
        assert_eq!(told(json!([]), "192.0.2.1:80"), None);
        let none = told(json!([]), "0.0.0.0:80").unwrap();
        assert!(none.contains("`hosts`"), "{none}");
        let named = told(json!(["a.example", "b.example:80"]), "[::]:80").unwrap();
        assert_eq!(named, "others are let in as a.example, b.example:80");
    }

    // F130
    #[test]
    fn everybody_has_one_token_and_no_more() {
        let ada = |entry: Value| json!({ "mcp": { "principals": { "ada": entry } } });
        let known = principals(&ada(json!({ "token_env": "A", "permissions": ["p"] }))).unwrap();
        assert_eq!(known.principals["ada"].permissions, ["p"]);
        check(ada(json!({})), "`ada` needs either `token_env` or `token_file`");
        check(ada(json!({ "token_env": "A", "token_file": "b" })), "needs either");
        // What stands in the file may be read by whoever reads the file.
        check(ada(json!({ "token": "0123456789abcdef0123456789abcdef" })), "unknown field `token`");
        check(json!({ "mpc": {} }), "unknown field `mpc`");
    }
}
