//! `[serve.mcp.principals.NAME]`: who may come in over HTTP, each with a token of their own.
//!
//! ```toml
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
    Ok(mcp)
}

impl Principals {
    /// Whether nobody has a token of their own.
    pub(super) fn is_empty(&self) -> bool {
        self.principals.is_empty()
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
