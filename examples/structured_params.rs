//! Parameters of any type that a model can send, and a typed result.
//!
//! A parameter may have any type that is `Deserialize` and `JsonSchema`: enums, lists, structs. A
//! tool with many parameters takes one struct as `Args<T>`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_sdk::{Args, Call, Json, Pipeline, Registry, Session, tool};

/// How the trip is made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Means {
    /// On foot.
    Foot,
    /// By bicycle.
    Bicycle,
}

/// A place on the map.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Point {
    /// Kilometres to the east.
    x: f64,
    /// Kilometres to the north.
    y: f64,
}

/// A trip, as programs read it.
#[derive(Debug, Serialize, JsonSchema)]
struct Trip {
    kilometres: f64,
    minutes: f64,
}

/// Say how long a trip takes.
#[tool(read, example = r#"{"stops": [{"x": 0, "y": 0}, {"x": 3, "y": 4}], "means": "foot"}"#)]
fn plan_trip(
    /// Where it leads along, in order.
    #[arg(length = 2..=50)]
    stops: Vec<Point>,
    /// How the trip is made.
    means: Means,
    /// Minutes of rest on the way.
    rest: Option<f64>,
) -> Json<Trip> {
    let leg = |pair: &[Point]| (pair[1].x - pair[0].x).hypot(pair[1].y - pair[0].y);
    let kilometres: f64 = stops.windows(2).map(leg).sum();
    let per_hour = match means {
        Means::Foot => 5.0,
        Means::Bicycle => 15.0,
    };
    Json(Trip { kilometres, minutes: kilometres / per_hour * 60.0 + rest.unwrap_or_default() })
}

/// What to search for; the fields' doc comments are their descriptions.
#[derive(Debug, Deserialize, JsonSchema)]
struct Search {
    /// Words that the title must have.
    words: Vec<String>,
    /// How many results at most.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
}

/// Search the library.
#[tool(read)]
fn search(args: Args<Search>) -> String {
    format!("no book has `{}` ({} asked for)", args.words.join(" "), args.limit.unwrap_or(10))
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pipeline = Pipeline::new(Registry::linked()?);
    for (name, arguments) in [
        ("plan_trip", r#"{"stops": [{"x": 0, "y": 0}, {"x": 3, "y": 4}], "means": "foot"}"#),
        ("plan_trip", r#"{"stops": [{"x": 0}], "means": "train"}"#),
        ("search", r#"{"words": ["shell"], "limit": 90}"#),
    ] {
        let outcome = pipeline.call(&Session::new("example"), Call::new(name, arguments)).await;
        println!("{name} {arguments}\n{}\n", outcome.text());
    }
    Ok(())
}

#[cfg(test)]
#[tokio::test]
async fn a_trip_is_timed() {
    let harness = tool_sdk::testing::Harness::new(tool_sdk::tools![plan_trip, search]);
    harness.run_examples().await;
    harness.error("search", r#"{"words": ["shell"], "limit": 90}"#).await;
}
