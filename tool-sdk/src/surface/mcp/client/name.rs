//! Under which names the tools of a server are known here.
//!
//! A model sees `mcp__{server}__{tool}` in letters that every provider takes; the server is
//! always called by the name that it gave. A name that would be too long, or that two tools
//! of a server would share, ends in a part of its hash, so that it never depends on the order
//! of the tools; which of them there are counts only for whether it is shared.
//!
//! **Invariant:** the server is the name in the host's configuration, never what it says of
//! itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::name::ToolName;

/// What the names of foreign tools start with; no other tool may have such a name.
const FOREIGN: &str = "mcp__";

/// How many hexadecimal digits of a hash tell the names of foreign tools apart.
const DIGITS: usize = 12;

/// Names that would be mistaken for parts of the program itself.
const RESERVED: &[&str] = &["all", "builtin", "host", "mcp", "native", "self", "tool", "tools"];

/// The longest name of a server.
const MAX_SERVER: usize = 32;

/// The longest name that a server may give to a tool.
const MAX_TOOL: usize = 128;

/// What is wrong with the name of a server, if anything.
pub(super) fn server_fault(name: &str) -> Option<&'static str> {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-');
    let starts = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    if name.len() > MAX_SERVER || !starts || !name.bytes().all(plain) {
        return Some("it must be 1 to 32 of a-z 0-9 _ - and start with a letter or digit");
    }
    // Providers know no `-`, so that the two are the same to a model.
    let known_as = self::plain(name);
    if known_as.ends_with('_') || known_as.contains("__") {
        return Some("two of _ - in a row, or one at its end, look like the start of a tool");
    }
    RESERVED.contains(&name).then_some("the name is reserved")
}

/// Whether a server may give this name to a tool.
pub(super) fn is_tool_name(name: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.');
    (1..=MAX_TOOL).contains(&name.len()) && name.bytes().all(plain)
}

/// The letters of `name` that every provider takes: two servers or tools of which these are
/// the same could be mistaken for each other.
pub(super) fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(plain).collect()
}

/// How the names of all tools of `server` start.
pub(in crate::surface) fn namespace(server: &str) -> String {
    format!("{FOREIGN}{}__", plain(server))
}

/// The server of which a model's name for a tool speaks, in plain letters.
#[cfg(feature = "cli")]
pub(in crate::surface) fn server_of(name: &str) -> Option<&str> {
    Some(name.strip_prefix(FOREIGN)?.split_once("__")?.0)
}

/// What models call a tool, and what they would call it with other tools beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) name: ToolName,
    pub(super) also: Vec<ToolName>,
}

/// What models call the tools of `server`: one name each, no two alike in any case.
pub(super) fn names<'t>(
    server: &str,
    tools: impl IntoIterator<Item = &'t str>,
) -> BTreeMap<&'t str, Called> {
    let tools: BTreeSet<&str> = tools.into_iter().filter(|tool| is_tool_name(tool)).collect();
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    for tool in &tools {
        *alike.entry(plain(tool).to_ascii_lowercase()).or_default() += 1;
    }
    let name = |tool: &'t str| {
        let is_shared = alike.get(&plain(tool).to_ascii_lowercase()).is_some_and(|&n| n > 1)
            || ends_in_digits(tool);
        let [name, other] = [is_shared, !is_shared].map(|it| model_name(server, tool, it));
        let also = (name != other).then(|| ToolName::new(other).ok()).flatten();
        let name = ToolName::new(name).ok()?;
        Some((tool, Called { name, also: also.into_iter().collect() }))
    };
    tools.iter().copied().filter_map(name).collect()
}

fn model_name(server: &str, tool: &str, is_shared: bool) -> String {
    let mut name = namespace(server) + &plain(tool);
    if is_shared || name.len() > ToolName::MAX {
        name.truncate(ToolName::MAX - DIGITS - 1);
        name.push('_');
        name.push_str(&digits(server, tool));
    }
    name
}

/// Whether models may call this tool so.
#[cfg(feature = "cli")]
pub(super) fn is_called(server: &str, tool: &str, name: &str) -> bool {
    [false, true].iter().any(|is_shared| model_name(server, tool, *is_shared) == name)
}

/// Whether a name ends as those do that have a hash: another tool could be called so here.
fn ends_in_digits(name: &str) -> bool {
    let digits = name.len().checked_sub(DIGITS + 1).and_then(|at| name.get(at..));
    digits.is_some_and(|end| {
        plain(end).starts_with('_') && end[1..].bytes().all(|c| c.is_ascii_hexdigit())
    })
}

/// The start of a hash over both names as they were given.
fn digits(server: &str, tool: &str) -> String {
    let hash = Sha256::new().chain_update(server).chain_update([0]).chain_update(tool).finalize();
    let mut digits = String::with_capacity(DIGITS);
    for byte in hash.iter().take(DIGITS / 2) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Cases of another agent, as data.
    fn cases() -> Value {
        let text = include_str!("../../../../tests/fixtures/codex-mcp-names/cases.json");
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
    fn names_are_those_of_the_fixtures() {
        for case in cases()["names"].as_array().unwrap() {
            let name = case["name"].as_str().unwrap();
            // Here every foreign tool has its prefix, and of two servers that look alike the
            // second is refused.
            if matches!(name, "no_prefix_for_selected" | "namespace_collision") {
                continue;
            }
            for (server, tools) in by_server(case) {
                let names = names(server, tools.iter().copied());
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
        assert_eq!(plain("basic-server"), plain("basic_server"), "the second is refused");
    }

    // MC1
    #[test]
    fn names_of_servers_are_plain_and_not_taken() {
        for good in ["git", "my-files", "a1", "0", "a_b", &"a".repeat(32)] {
            assert_eq!(server_fault(good), None, "{good}");
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
            assert!(server_fault(bad).is_some(), "{bad}");
        }
        for bad in ["", "a b", "größe", "a\u{200b}", &"a".repeat(129)] {
            assert!(!is_tool_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_hash_does_not_depend_on_the_neighbours() {
        let pair = names("s", ["a-b", "a_b", "A.B"]);
        assert_eq!(pair.len(), 3);
        assert_eq!(names("s", ["a_b", "x", "A.B", "a-b"])["a-b"], pair["a-b"]);
        let [alone, shared] = [&names("s", ["a-b"])["a-b"], &pair["a-b"]];
        assert_eq!(shared.name.as_str(), "mcp__s__a_b_ed3867d6ec2b");
        assert_eq!((&alone.name, &shared.name), (&shared.also[0], &alone.also[0]));
    }

    // F118: a server cannot give a tool the name that another one has here.
    #[test]
    fn the_name_that_another_tool_has_is_not_given_twice() {
        let clash = "delete_bee4270b087b";
        let names = names("s", ["delete", "Delete", clash, "DELETE-BEE4270B087B", "x"]);
        let given: BTreeSet<String> =
            names.values().map(|it| it.name.as_str().to_ascii_lowercase()).collect();
        assert_eq!((names.len(), given.len()), (5, 5), "{given:?}");
        assert_eq!(names["delete"].name.as_str(), format!("mcp__s__{clash}"));
        assert!(names[clash].name.as_str().starts_with(&format!("mcp__s__{clash}_")));
        // Nor does that depend on who else is there.
        assert_eq!(self::names("s", [clash])[clash].name, names[clash].name);
    }

    proptest! {
        // F118: unique, at most 64 bytes, whatever a server says.
        #[test]
        fn names_are_unique_and_short(
            server in "[a-z0-9][a-z0-9_-]{0,31}",
            tools in prop::collection::vec("[A-Ba-b_.-]{1,6}|[a-z_.-]{40,140}|.{0,9}", 0..24),
        ) {
            let names = names(&server, tools.iter().map(String::as_str));
            let told: BTreeSet<String> =
                names.values().map(|it| it.name.as_str().to_ascii_lowercase()).collect();
            prop_assert_eq!(told.len(), names.len());
            let start = namespace(&server);
            for (raw, Called { name, also }) in &names {
                prop_assert!(also.iter().all(|it| it.as_str().starts_with(&start)));
                prop_assert!(name.as_str().len() <= 64 && name.as_str().starts_with(&start));
                prop_assert!(is_tool_name(raw));
            }
        }
    }
}
