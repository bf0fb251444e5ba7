//! Maps the tool names of a server to the names that models see.
//!
//! A model sees `mcp__{server}__{tool}` in characters that every provider accepts; `server` is
//! the name in the host's configuration. A name that would be too long, or that two tools of a
//! server would share, ends in a part of its hash. The hash covers the server's and the tool's
//! name only, so a name does not depend on the order of the tools; the other tools decide only
//! whether a name is shared.
//!
//! **Invariant:** the server's name comes from the host's configuration, never from the server.

use std::collections::{BTreeMap, BTreeSet};

use tool_sdk_core::{ToolName, ToolPins, internal::sha256_hex};

/// The prefix of all foreign tool names; no other tool may have it.
const FOREIGN_PREFIX: &str = "mcp__";

/// How many hexadecimal digits of the hash a name gets.
const HASH_DIGITS: usize = 12;

/// Names that would be mistaken for parts of the program itself.
const RESERVED_NAMES: &[&str] =
    &["all", "builtin", "host", "mcp", "native", "self", "tool", "tools"];

/// The longest name of a server, in bytes.
const MAX_SERVER_LEN: usize = 32;

/// The longest name that a server may give to a tool, in bytes.
const MAX_TOOL_LEN: usize = 128;

/// Returns what is wrong with the name of a server, if anything.
pub(super) fn server_name_error(name: &str) -> Option<&'static str> {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-');
    let starts = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    if name.len() > MAX_SERVER_LEN || !starts || !name.bytes().all(plain) {
        return Some("it must be 1 to 32 of a-z 0-9 _ - and start with a letter or digit");
    }
    // Providers do not accept `-`, so a model cannot tell `-` from `_`.
    let known_as = sanitize_name(name);
    if known_as.ends_with('_') || known_as.contains("__") {
        return Some(
            "it must not have two of _ - in a row, or end in one: that separates server and tool",
        );
    }
    RESERVED_NAMES.contains(&name).then_some("the name is reserved")
}

/// Whether a server may give this name to a tool.
pub(super) fn is_valid_tool_name(name: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.');
    (1..=MAX_TOOL_LEN).contains(&name.len()) && name.bytes().all(plain)
}

/// Replaces each character that some provider does not accept by `_`. Names that are equal
/// afterwards can be confused.
pub(super) fn sanitize_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Returns the prefix of the names of all tools of `server`.
pub fn name_prefix(server: &str) -> String {
    format!("{FOREIGN_PREFIX}{}__", sanitize_name(server))
}

/// Returns the sanitized server name in a model's name for a tool.
pub fn parse_server(name: &str) -> Option<&str> {
    Some(name.strip_prefix(FOREIGN_PREFIX)?.split_once("__")?.0)
}

/// The name that models see, and the name that the tool gets when the list of tools changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelToolName {
    pub(super) name: ToolName,
    pub(super) alternatives: Vec<ToolName>,
}

/// Returns the names that models see for the tools of `server`, unique without regard to case.
pub(super) fn model_names<'t>(
    server: &str,
    tools: impl IntoIterator<Item = &'t str>,
) -> BTreeMap<&'t str, ModelToolName> {
    let tools: BTreeSet<&str> = tools.into_iter().filter(|tool| is_valid_tool_name(tool)).collect();
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    for tool in &tools {
        *alike.entry(sanitize_name(tool).to_ascii_lowercase()).or_default() += 1;
    }
    let name = |tool: &'t str| {
        let is_shared =
            alike.get(&sanitize_name(tool).to_ascii_lowercase()).is_some_and(|&n| n > 1)
                || has_hash_suffix(tool);
        let [name, other] = [is_shared, !is_shared].map(|it| model_name(server, tool, it));
        let also = (name != other).then(|| ToolName::new(other).ok()).flatten();
        let name = ToolName::new(name).ok()?;
        Some((tool, ModelToolName { name, alternatives: also.into_iter().collect() }))
    };
    tools.iter().copied().filter_map(name).collect()
}

fn model_name(server: &str, tool: &str, is_shared: bool) -> String {
    let mut name = name_prefix(server) + &sanitize_name(tool);
    if is_shared || name.len() > ToolName::MAX {
        name.truncate(ToolName::MAX - HASH_DIGITS - 1);
        name.push('_');
        name.push_str(&hash_suffix(server, tool));
    }
    name
}

/// Whether an approval of the tool that models call `name` is void, because the tool changed since.
pub fn is_approval_void(pins: &ToolPins, name: &str, definition: &str) -> bool {
    pins.is_approval_void(|server, tool| is_model_name_of(server, tool, name), definition)
}

/// Whether `name` is one of the names that models may see for this tool.
fn is_model_name_of(server: &str, tool: &str, name: &str) -> bool {
    [false, true].iter().any(|is_shared| model_name(server, tool, *is_shared) == name)
}

/// Whether a name ends like one that has a hash, so that another tool could get the same name.
fn has_hash_suffix(name: &str) -> bool {
    let digits = name.len().checked_sub(HASH_DIGITS + 1).and_then(|at| name.get(at..));
    digits.is_some_and(|end| {
        sanitize_name(end).starts_with('_') && end[1..].bytes().all(|c| c.is_ascii_hexdigit())
    })
}

/// Returns the start of the hash of both names, before they are sanitized.
fn hash_suffix(server: &str, tool: &str) -> String {
    let mut digits = sha256_hex([server, tool].join("\0"));
    digits.truncate(HASH_DIGITS);
    digits
}

/// The start of the URIs of foreign resources.
pub(super) const PASSED_URI_START: &str = "mcp://";

/// Returns the URI of a server's resource for clients of this program.
pub(super) fn passed_uri(server: &str, uri: &str) -> String {
    format!("{PASSED_URI_START}{server}/{uri}")
}

/// Returns the server and its own URI of a resource that is passed on.
pub(super) fn parse_passed_uri(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(PASSED_URI_START)?.split_once('/')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Cases of the Codex agent, as data.
    fn cases() -> Value {
        let text = include_str!("../../tests/fixtures/codex-mcp-names/cases.json");
        serde_json::from_str(text).unwrap()
    }

    /// The tools of one case, by server.
    fn by_server(case: &Value) -> BTreeMap<&str, Vec<&str>> {
        let mut servers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for pair in case["tools"].as_array().unwrap() {
            let [server, tool] = [0, 1].map(|at| pair[at].as_str().unwrap());
            servers.entry(server).or_default().push(tool);
        }
        servers
    }

    // F118
    #[test]
    fn model_names_match_the_codex_fixtures() {
        for case in cases()["names"].as_array().unwrap() {
            let name = case["name"].as_str().unwrap();
            // Every foreign tool has its prefix here, and of two servers whose sanitized names are equal
            // the second is refused.
            if matches!(name, "no_prefix_for_selected" | "namespace_collision") {
                continue;
            }
            for (server, tools) in by_server(case) {
                let names = model_names(server, tools.iter().copied());
                assert!(names.keys().all(|raw| tools.contains(raw)), "{name}: raw names are kept");
                let given: BTreeSet<String> =
                    names.values().map(|it| it.name.to_string()).collect();
                if let Some(expected) = case["expected"].as_array() {
                    let part = |pair: &Value, at: usize| pair[at].as_str().unwrap().to_owned();
                    let expected: BTreeSet<String> = expected
                        .iter()
                        .map(|pair| format!("{}__{}", part(pair, 0), part(pair, 1)))
                        .collect();
                    assert_eq!(given, expected, "{name}");
                } else {
                    let properties = &case["properties"];
                    assert_eq!(given.len() as u64, properties["count"], "{name}");
                    if let Some(length) = properties["total_len_with_double_underscore"].as_u64() {
                        assert!(given.iter().all(|name| name.len() as u64 == length), "{given:?}");
                    }
                }
            }
        }
        assert_eq!(
            sanitize_name("basic-server"),
            sanitize_name("basic_server"),
            "the second is refused"
        );
    }

    // MC1
    #[test]
    fn validates_server_and_tool_names() {
        for good in ["git", "my-files", "a1", "0", "a_b", &"a".repeat(32)] {
            assert_eq!(server_name_error(good), None, "{good}");
        }
        for bad in [
            "",
            "Git",
            "a b",
            "a__b",
            "a_-b",
            "a_",
            "a-",
            "_a",
            "-a",
            "mcp",
            "native",
            "ä",
            "a/b",
            &"a".repeat(33),
        ] {
            assert!(server_name_error(bad).is_some(), "{bad}");
        }
        for bad in ["", "a b", "größe", "a\u{200b}", &"a".repeat(129)] {
            assert!(!is_valid_tool_name(bad), "{bad}");
        }
    }

    #[test]
    fn hash_does_not_depend_on_other_tools() {
        let pair = model_names("s", ["a-b", "a_b", "A.B"]);
        assert_eq!(pair.len(), 3);
        assert_eq!(model_names("s", ["a_b", "x", "A.B", "a-b"])["a-b"], pair["a-b"]);
        let [alone, shared] = [&model_names("s", ["a-b"])["a-b"], &pair["a-b"]];
        assert_eq!(shared.name.as_str(), "mcp__s__a_b_ed3867d6ec2b");
        assert_eq!((&alone.name, &shared.name), (&shared.alternatives[0], &alone.alternatives[0]));
    }

    // F118: a server cannot give a tool the name that another one has here.
    #[test]
    fn a_tool_cannot_take_the_hashed_name_of_another() {
        let clash = "delete_bee4270b087b";
        let names = model_names("s", ["delete", "Delete", clash, "DELETE-BEE4270B087B", "x"]);
        let given: BTreeSet<String> =
            names.values().map(|it| it.name.as_str().to_ascii_lowercase()).collect();
        assert_eq!((names.len(), given.len()), (5, 5), "{given:?}");
        assert_eq!(names["delete"].name.as_str(), format!("mcp__s__{clash}"));
        assert!(names[clash].name.as_str().starts_with(&format!("mcp__s__{clash}_")));
        // The name is the same without the other tools.
        assert_eq!(model_names("s", [clash])[clash].name, names[clash].name);
    }

    proptest! {
        // F118: unique, at most 64 bytes, for any tool names.
        #[test]
        fn names_are_unique_and_short(
            server in "[a-z0-9][a-z0-9_-]{0,31}",
            tools in prop::collection::vec("[A-Ba-b_.-]{1,6}|[a-z_.-]{40,140}|.{0,9}", 0..24),
        ) {
            let names = model_names(&server, tools.iter().map(String::as_str));
            let told: BTreeSet<String> =
                names.values().map(|it| it.name.as_str().to_ascii_lowercase()).collect();
            prop_assert_eq!(told.len(), names.len());
            let start = name_prefix(&server);
            for (raw, ModelToolName { name, alternatives }) in &names {
                prop_assert!(alternatives.iter().all(|it| it.as_str().starts_with(&start)));
                prop_assert!(name.as_str().len() <= 64 && name.as_str().starts_with(&start));
                prop_assert!(is_valid_tool_name(raw));
            }
        }
    }
}
