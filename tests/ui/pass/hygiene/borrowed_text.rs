//! `&str` and types that nest.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use serde_json::json;
use tool_sdk::{tool, tools};

use crate::pass::{call, definition};

/// Joins.
#[tool(read, display(summary = "{first} {second} {third}"))]
async fn borrowed_text(
    /// The first.
    first: &str,
    /// The second.
    second: Option<&str>,
    /// The third.
    #[arg(default = "c")]
    third: &str,
    /// The fourth.
    #[arg(default = Some("d"))]
    fourth: Option<&str>,
    /// The fifth.
    #[arg(default = fifth())]
    fifth: &'_ str,
) -> String {
    std::future::ready(()).await;
    [first, second.unwrap_or("-"), third, fourth.unwrap_or("-"), fifth].concat()
}

fn fifth() -> &'static str {
    "e"
}

/// Counts.
#[expect(clippy::type_complexity, reason = "that is what it tests")]
#[tool(read, display(summary = "{list} {optional}"))]
fn nested_types(
    /// A list.
    list: Vec<Option<String>>,
    /// An optional list.
    optional: Option<Vec<(u8, bool)>>,
    /// A map.
    map: HashMap<String, Vec<Option<BTreeMap<String, [u8; 2]>>>>,
    /// A path.
    path: Option<PathBuf>,
    /// Anything.
    any: serde_json::Value,
) -> String {
    let optional = optional.map(|list| list.len());
    format!("{} {optional:?} {} {path:?} {any}", list.len(), map.len())
}

#[test]
fn text_is_borrowed_from_what_was_decoded() {
    assert_eq!(call(tools![borrowed_text], json!({"first": "a\n"})), "a\n-cde");
    let all = json!({"first": "1", "second": "2", "third": "3", "fourth": "4", "fifth": "5"});
    assert_eq!(call(tools![borrowed_text], all), "12345");
    let schema = definition(tools![borrowed_text]).parameters;
    assert_eq!(schema.required().collect::<Vec<_>>(), ["first"]);
}

#[test]
fn types_may_nest() {
    assert_eq!(
        call(
            tools![nested_types],
            json!({"list": ["a", null], "optional": [[1, true]], "map": {}, "any": [1]})
        ),
        "2 Some(1) 0 None [1]"
    );
}
