//! The tools that are called: once as plain functions, once as `#[tool]`s.

use schemars::JsonSchema;
use serde::Serialize;
use tool_sdk::{Json, tool};

/// What a search gives back.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Found {
    /// What was looked for.
    pub(crate) query: String,
    /// How many results at most.
    pub(crate) limit: u32,
    /// The tags.
    pub(crate) tags: Vec<String>,
    /// Whether only whole words count.
    pub(crate) exact: bool,
    /// How many there are.
    pub(crate) total: u64,
}

/// Add two numbers.
#[tool(read)]
pub(crate) async fn add(
    /// The first.
    a: i64,
    /// The second.
    b: i64,
) -> Json<i64> {
    Json(plain::add(a, b))
}

/// Search the catalogue.
#[tool(read)]
pub(crate) async fn search(
    /// What to look for.
    query: String,
    /// How many results at most.
    #[arg(default = 10, range = 1..=100)]
    limit: u32,
    /// Only results with these tags.
    tags: Option<Vec<String>>,
    /// Only whole words.
    #[arg(default = false)]
    exact: bool,
) -> Json<Found> {
    Json(plain::search(query, limit, tags, exact))
}

/// Say the text again.
#[tool(read, truncate = none)]
pub(crate) async fn echo(
    /// The text.
    text: String,
) -> String {
    text
}

/// The same without anything around it.
pub(crate) mod plain {
    use super::Found;

    #[inline(never)]
    pub(crate) fn add(a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }

    #[inline(never)]
    pub(crate) fn search(
        query: String,
        limit: u32,
        tags: Option<Vec<String>>,
        exact: bool,
    ) -> Found {
        let tags = tags.unwrap_or_default();
        Found { total: query.len() as u64, query, limit, tags, exact }
    }
}
