//! The `server.json` with which a bundle is published in the MCP registry.
//!
//! The registry holds no files: the entry names the address from which the bundle is downloaded, and
//! the SHA-256 hash that clients check after the download.
//!
//! **Invariant:** the entry is valid by its JSON Schema, which a test holds.

use serde_json::{Value, json};
use tool_sdk_core::ToolError;
use url::Url;

use super::PackedProgram;
use crate::exit::{CommandError, Result, USAGE};

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// How many characters the registry takes for a description and for a title.
const MAX_TEXT: usize = 100;
const MAX_NAME: usize = 200;

/// Where a bundle is published.
pub(super) struct BundleAddress {
    /// The address of the bundle, as the user wrote it.
    url: String,
    /// The name of the server in the registry, such as `io.github.ada/notes`.
    server_name: String,
    /// The address of the source code, if the bundle is published beside it.
    pub(super) repository: Option<String>,
}

impl BundleAddress {
    /// Checks the address, and derives what the registry needs from it: a release at GitHub names
    /// the owner and the repository.
    pub(super) fn parse(url: &str, server_name: Option<&String>, program: &str) -> Result<Self> {
        let parsed = parse_https_url(url)?;
        // A rule of the registry, by which clients recognize bundles.
        if !url.to_ascii_lowercase().contains("mcp") {
            return Err(usage(format_args!("the registry takes no bundle at `{url}`"))
                .hint("the address must contain `mcp`, as the end `.mcpb` does"));
        }
        let release = github_release(&parsed);
        let server_name = match (server_name, &release) {
            (Some(name), _) => name.clone(),
            (None, Some((owner, _))) => format!("io.github.{owner}/{program}"),
            (None, None) => {
                return Err(usage("the name of the server in the registry is missing").hint(
                    "`--server-name com.example/notes`, where you can prove that the domain is yours",
                ));
            }
        };
        check_server_name(&server_name)?;
        let repository =
            release.map(|(owner, repository)| format!("https://github.com/{owner}/{repository}"));
        Ok(Self { url: url.to_owned(), server_name, repository })
    }
}

/// Returns the entry of a bundle with this SHA-256 hash.
pub(super) fn registry_entry(
    program: &PackedProgram,
    address: &BundleAddress,
    sha256: &str,
) -> Value {
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": address.server_name,
        "description": cut_text(&program.description),
        "version": program.version,
        "packages": [{
            "registryType": "mcpb",
            "identifier": address.url,
            "fileSha256": sha256,
            "transport": { "type": "stdio" },
        }],
    });
    if let Some(title) = &program.title {
        entry["title"] = cut_text(title).into();
    }
    if let Some(repository) = &address.repository {
        entry["repository"] = json!({ "url": repository, "source": "github" });
    }
    entry
}

fn usage(words: impl std::fmt::Display) -> CommandError {
    CommandError::new(USAGE, ToolError::invalid_args(words))
}

fn parse_https_url(text: &str) -> Result<Url> {
    let shown = text.escape_debug();
    let url =
        Url::parse(text).map_err(|error| usage(format_args!("`{shown}` is not a URL: {error}")))?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    if url.scheme() != "https" || url.host_str().is_none() || has_user {
        return Err(usage(format_args!("`{shown}` is not an address to download from"))
            .hint("such as https://github.com/ada/notes/releases/download/v1.0.0/notes.mcpb"));
    }
    Ok(url)
}

/// Returns owner and repository of a file in a release at GitHub.
fn github_release(url: &Url) -> Option<(String, String)> {
    let parts: Vec<&str> = url.path_segments()?.collect();
    match (url.host_str()?, &*parts) {
        ("github.com", [owner, repository, "releases", "download", _, _]) => {
            Some(((*owner).to_owned(), (*repository).to_owned()))
        }
        _ => None,
    }
}

fn check_server_name(name: &str) -> Result<()> {
    let is_plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let fits = name.len() <= MAX_NAME
        && name.split_once('/').is_some_and(|(space, own)| {
            is_plain(space, ".-") && space.contains('.') && is_plain(own, "._-")
        });
    if fits {
        return Ok(());
    }
    let name = name.escape_debug();
    Err(usage(format_args!("`{name}` is not a name for the registry"))
        .hint("it is a domain from its end, a slash and a name: `io.github.ada/notes`"))
}

/// Cuts a text to what the registry takes.
fn cut_text(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MAX_TEXT - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, name: Option<&str>) -> std::result::Result<BundleAddress, String> {
        let name = name.map(str::to_owned);
        BundleAddress::parse(url, name.as_ref(), "notes").map_err(|error| match error {
            CommandError::Reported { error, .. } => error.to_string(),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn derives_the_name_from_a_release_at_github() {
        let url = "https://github.com/ada/shelf/releases/download/v1/notes.mcpb";
        let address = check(url, None).unwrap();
        assert_eq!(address.server_name, "io.github.ada/notes");
        assert_eq!(address.repository.as_deref(), Some("https://github.com/ada/shelf"));
        let named = check("https://example.com/notes.mcpb", Some("com.example/notes")).unwrap();
        assert_eq!((named.server_name.as_str(), named.repository), ("com.example/notes", None));
    }

    #[test]
    fn rejects_addresses_and_names_that_the_registry_does_not_take() {
        for (url, name, words) in [
            ("notes.mcpb", None, "is not a URL"),
            ("http://example.com/notes.mcpb", None, "not an address to download from"),
            ("https://ada:pw@example.com/notes.mcpb", None, "not an address to download from"),
            ("https://example.com/notes.zip", Some("com.example/notes"), "must contain `mcp`"),
            ("https://example.com/notes.mcpb", None, "--server-name"),
            ("https://example.com/notes.mcpb", Some("notes"), "is not a name for the registry"),
            ("https://example.com/notes.mcpb", Some("notes/x"), "is not a name for the registry"),
            ("https://example.com/notes.mcpb", Some("a.b/c d"), "is not a name for the registry"),
            ("https://example.com/notes.mcpb", Some("a.b/c/d"), "is not a name for the registry"),
        ] {
            let Err(error) = check(url, name) else { panic!("{url} {name:?} is accepted") };
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn cuts_long_texts_between_characters() {
        assert_eq!(cut_text("short"), "short");
        let cut = cut_text(&"ü".repeat(101));
        assert_eq!((cut.chars().count(), cut.ends_with('…')), (100, true));
        assert_eq!(cut_text(&"ü".repeat(100)).chars().count(), 100);
    }
}
