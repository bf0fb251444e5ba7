//! Methods of one value as tools.
//!
//! `#[toolset]` on an `impl` block turns every method with `#[tool]` into a tool; the others stay as
//! they are. A toolset is not registered at link time, because it needs a value: the host adds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tool_sdk::{Call, Pipeline, Registry, Session, ToolError, toolset};

/// A counter with a limit.
#[derive(Debug)]
struct Counter {
    value: AtomicI64,
    most: i64,
}

#[toolset]
impl Counter {
    /// Add to the counter.
    #[tool(write)]
    async fn add(
        &self,
        /// How much to add.
        #[arg(default = 1, range = 1..=100)]
        amount: i64,
    ) -> Result<String, ToolError> {
        let fits = |value| Some(value + amount).filter(|sum| *sum <= self.most);
        match self.value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(before) => Ok((before + amount).to_string()),
            Err(value) => {
                Err(ToolError::conflict(format_args!("{value} + {amount} is over {}", self.most))
                    .hint("add less"))
            }
        }
    }

    /// Read the counter.
    #[tool(read, name = "value")]
    fn read(&self) -> String {
        self.shown()
    }

    fn shown(&self) -> String {
        self.value.load(Ordering::Relaxed).to_string()
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counter = Arc::new(Counter { value: AtomicI64::new(0), most: 5 });
    let registry = Registry::builder().add(Arc::clone(&counter)).build()?;
    // A tool that writes asks, unless a rule allows it.
    let pipeline = Pipeline::new(registry).rules(["allow add".parse()?]);
    for (name, arguments) in
        [("add", "{}"), ("add", r#"{"amount": 3}"#), ("add", r#"{"amount": 3}"#), ("value", "{}")]
    {
        let outcome = pipeline.call(&Session::new("example"), Call::new(name, arguments)).await;
        println!("{name} {arguments}: {}", outcome.text());
    }
    println!("the host sees {}", counter.shown());
    Ok(())
}

#[cfg(test)]
mod tests {
    use tool_sdk::ErrorKind;
    use tool_sdk::testing::Harness;

    use super::*;

    #[tokio::test]
    async fn all_methods_share_the_value() {
        let counter = Arc::new(Counter { value: AtomicI64::new(4), most: 5 });
        let harness = Harness::new(Arc::clone(&counter));
        assert_eq!(harness.ok("add", "{}").await.as_text(), "5");
        assert_eq!(harness.ok("value", "{}").await.as_text(), "5");
        assert_eq!(harness.error("add", "{}").await.kind(), ErrorKind::Conflict);
        assert_eq!(counter.shown(), "5");
    }
}
