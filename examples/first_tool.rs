//! A tool is an annotated async function.
//!
//! The doc comments are what the model reads, the signature is the schema, and the
//! constraints hold before the body runs.

use tool_sdk::provider::{self, Dialect};
use tool_sdk::{Call, Pipeline, Registry, Session, tool};

/// Count the words of a text.
#[tool(read, display(primary = text, summary = "Counting words"))]
async fn count_words(
    /// The text to look at.
    text: String,
    /// Words with fewer letters do not count.
    #[arg(default = 1, range = 1..=50)]
    min_length: usize,
) -> String {
    text.split_whitespace().filter(|word| word.chars().count() >= min_length).count().to_string()
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Nothing registers the tool by hand: the attribute did.
    let registry = Registry::linked()?;

    // The definition in the format of a provider.
    println!("{:#}", provider::encode_tools(registry.definitions(), Dialect::OpenAi));

    // One call, through every stage of the pipeline.
    let pipeline = Pipeline::new(registry);
    let session = Session::new("example");
    let call = Call::new("count_words", r#"{"text": "to be or not to be", "min_length": 3}"#);
    println!("{}", pipeline.call(&session, call).await.text());

    // The error of a call that cannot run lists every mistake.
    let call = Call::new("count_words", r#"{"txt": "to be", "min_length": 0}"#);
    println!("{}", pipeline.call(&session, call).await.text());

    // The function can still be called directly.
    println!("{}", count_words("to be".to_owned(), 1).await);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_sdk::testing::Harness;
    use tool_sdk::{ErrorKind, tools};

    use super::*;

    #[tokio::test]
    async fn short_words_do_not_count() {
        let harness = Harness::new(tools![count_words]);
        let output =
            harness.ok("count_words", json!({"text": "to be or not", "min_length": 3})).await;
        assert_eq!(output.as_text(), "1");
    }

    #[tokio::test]
    async fn every_fault_is_named() {
        let harness = Harness::new(tools![count_words]);
        let error = harness.error("count_words", json!({"txt": "to be", "min_length": 0})).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        assert!(error.message().contains("`txt`"), "{error}");
        assert!(error.message().contains("`min_length`"), "{error}");
    }
}
