//! Methods as tools on a shared value.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tool_sdk::testing::Harness;
use tool_sdk::{Context, Json, State, ToolError, ToolMethods, toolset};

use crate::pass::wait;

/// A type whose tools are on one of its forms.
struct Counter<T> {
    value: AtomicU32,
    name: T,
}

impl<T> Counter<T> {
    const STEP: u32 = 2;
}

fn is_large(args: &CounterAddArgs) -> bool {
    args.by > 100
}

#[toolset(crate = tool_sdk)]
impl Counter<&'static str> {
    const MOST: u32 = 50;

    /// Adds.
    #[tool(
        write,
        approval(dangerous = is_large),
        display(primary = by, summary = "Adding {by}"),
        description = "Adds to the counter."
    )]
    async fn add(
        &self,
        cx: &Context,
        /// How much.
        #[arg(default = Self::STEP, range = 1..=Self::MOST)]
        by: u32,
        State(factor): State<u32>,
    ) -> Result<Json<u32>, ToolError> {
        let _ = cx;
        Ok(Json(self.raise(by * *factor)))
    }

    /// Reads.
    #[tool(read, name = "counter_read", aliases("counter"))]
    fn read(
        &self,
        /// In front.
        prefix: Option<&str>,
    ) -> String {
        format!(
            "{}{}: {}",
            prefix.unwrap_or_default(),
            self.name,
            self.value.load(Ordering::Relaxed)
        )
    }

    fn raise(&self, by: u32) -> u32 {
        self.value.fetch_add(by, Ordering::Relaxed) + by
    }

    /// Makes one.
    #[must_use]
    fn named(name: &'static str) -> Self {
        Self { value: AtomicU32::new(0), name }
    }
}

#[test]
fn calls_share_the_value() {
    let counter = Arc::new(Counter::named("n"));
    let harness = Harness::new(ToolMethods::tools(&counter)).lend(3_u32);
    let text = |name, arguments| wait(harness.ok(name, arguments)).into_text();
    assert_eq!(text("add", json!({})), "6");
    assert_eq!(text("add", json!({"by": 50})), "156");
    assert_eq!(text("counter_read", json!({"prefix": "the "})), "the n: 156");
    assert_eq!(text("counter", json!({})), "n: 156");
    assert_eq!(counter.value.load(Ordering::Relaxed), 156);
}

#[test]
fn a_value_is_added_as_it_is() {
    let registry = tool_sdk::Registry::builder().add(Counter::named("n")).build();
    let registry = registry.expect("no two tools share a name");
    assert_eq!(registry.names().collect::<Vec<_>>(), ["add", "counter_read"]);
}
