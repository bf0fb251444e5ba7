//! Tools that use every form a parameter can have; the contract test sees them all.

#![expect(clippy::too_many_arguments, reason = "every form in few tools")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_sdk::{Args, Json, tool};

/// Numbers of every size.
#[tool(read, name = "sample_numbers")]
fn numbers(
    /// A number.
    a: u8,
    /// A number.
    b: i16,
    /// A number.
    c: u32,
    /// A number.
    d: i64,
    /// A number.
    e: u64,
    /// A number.
    f: f64,
    /// A number.
    #[arg(range = 1..=10)]
    g: i32,
    /// A number.
    #[arg(range = 0.0..=1.0, default = 0.5)]
    h: f64,
    /// A number.
    #[arg(range = ..=9)]
    i: Option<u16>,
    /// A number.
    #[arg(range = 5.., default = 5)]
    j: usize,
    /// A flag.
    k: bool,
) -> String {
    format!("{a} {b} {c} {d} {e} {f} {g} {h} {i:?} {j} {k}")
}

/// Texts with every constraint.
#[tool(read, name = "sample_texts")]
fn texts(
    /// Any text.
    free: &str,
    /// A short text.
    #[arg(length = 1..=5)]
    short: String,
    /// Lower case letters.
    #[arg(pattern = "^[a-z]*$")]
    lower: Option<String>,
    /// One of three.
    #[arg(choices("red", "green", "blue"), default = "red")]
    colour: &str,
    /// A path.
    path: Option<PathBuf>,
    /// Some labels.
    #[arg(length = 1..=3)]
    labels: Vec<String>,
    /// An optional text.
    label: Option<&str>,
) -> String {
    format!("{free} {short} {lower:?} {colour} {path:?} {labels:?} {label:?}")
}

/// How something is done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// Quickly.
    Fast,
    /// With care.
    Slow,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "decoding is what is tested")]
struct Spot {
    line: u32,
    column: Option<u16>,
    way: Option<Way>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "decoding is what is tested")]
enum Shape {
    Circle { radius: f32 },
    Square { side: u8, at: Option<Spot> },
    Nothing,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "decoding is what is tested")]
enum Change {
    Add(String),
    Move { from: u32, to: u32 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "decoding is what is tested")]
struct Tree {
    name: String,
    #[serde(default)]
    children: Vec<Tree>,
}

/// Values that nest.
#[tool(read, name = "sample_nested")]
fn nested(
    /// A place.
    spot: Spot,
    /// Places.
    spots: Option<Vec<Spot>>,
    /// A way.
    way: Option<Way>,
    /// A shape.
    shape: Shape,
    /// A change.
    change: Option<Change>,
    /// A tree.
    tree: Option<Tree>,
    /// Counts by name.
    counts: Option<BTreeMap<String, u8>>,
    /// A pair.
    pair: Option<(u8, String)>,
    /// Optional items.
    items: Option<Vec<Option<bool>>>,
) -> String {
    format!(
        "{spot:?} {spots:?} {way:?} {shape:?} {change:?} {tree:?} {counts:?} {pair:?} {items:?}"
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Search {
    /// What to look for.
    #[schemars(length(min = 1, max = 50))]
    query: String,
    /// How many at most.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// Where.
    within: Option<Spot>,
    /// Labels.
    #[serde(default)]
    #[schemars(length(max = 2))]
    labels: Vec<String>,
}

fn ten() -> u32 {
    10
}

#[derive(Debug, Serialize, JsonSchema)]
struct Found {
    /// How many.
    count: u32,
    /// The first.
    first: Option<String>,
}

/// All arguments as one struct.
#[tool(read, name = "sample_struct")]
async fn with_struct(args: Args<Search>) -> Json<Found> {
    let Search { query, limit, within, labels } = args.0;
    Json(Found { count: limit, first: within.map(|spot| format!("{query} {labels:?} {spot:?}")) })
}

/// Nothing to say.
#[tool(read, name = "sample_nothing")]
fn nothing() {}
