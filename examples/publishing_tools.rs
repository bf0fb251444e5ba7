//! Tools in a crate of their own.
//!
//! The crate of tools depends on `tool-sdk` and nothing else of this project, and its tools
//! register themselves at link time:
//!
//! ```toml
//! [dependencies]
//! tool-sdk = "0.1"
//!
//! [dev-dependencies]
//! tool-sdk = { version = "0.1", features = ["testing"] }
//! ```
//!
//! The program names the crate once with `link!`, because the linker drops a crate that no code names,
//! and with `expect` the tools that it requires.

use tool_sdk::{Call, Pipeline, Registry, RegistryError, Session};

// The crate is in `tests/fixtures/weather-tools`.
tool_sdk::link!(weather_tools);

fn registry() -> Result<Registry, RegistryError> {
    Registry::builder().add_linked().expect_tools(["current_weather", "forecast"]).build()
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry()?;
    for definition in registry.definitions() {
        println!("{} ({})", definition.name, definition.describe_location());
    }

    // A missing tool is an error that says what to do.
    if let Err(error) = registry.expect_tools(["sunrise"]) {
        println!("{error}");
    }

    let pipeline = Pipeline::new(registry);
    let call = Call::new("forecast", r#"{"city": "Oslo", "days": 3}"#);
    println!("{}", pipeline.call(&Session::new("example"), call).await.text());
    Ok(())
}

#[cfg(test)]
mod tests {
    use tool_sdk::testing::{Harness, check_all};

    use super::*;

    #[test]
    fn the_linked_tools_are_well_made() {
        check_all(&registry().expect("the crate is linked"));
    }

    #[tokio::test]
    async fn their_examples_run() {
        Harness::from_registry(registry().expect("the crate is linked")).run_examples().await;
    }

    #[test]
    fn what_is_missing_is_named_with_the_remedy() {
        let registry = registry().expect("the crate is linked");
        let error =
            registry.expect_tools(["sunrise"]).expect_err("there is no such tool").to_string();
        assert!(error.contains("`sunrise`") && error.contains("tool_sdk::link!"), "{error}");
    }
}
