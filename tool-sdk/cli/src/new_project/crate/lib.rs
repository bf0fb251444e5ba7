//! Tools for texts.
//!
//! Each function with `#[tool]` is a tool for the command line, for MCP clients and for agents. Its
//! documentation is what a model reads.

use tool_sdk::{ToolError, tool};

/// Count the words of a text.
#[tool(
    read,
    display(name = "Count words", primary = text, summary = "Counting words"),
    example = r#"{"text": "to be or not to be"}"#
)]
pub fn count_words(
    /// The text.
    text: String,
    /// Count only words with at least this many characters.
    #[arg(default = 1, range = 1..=100)]
    min_length: u32,
) -> Result<String, ToolError> {
    if text.trim().is_empty() {
        return Err(ToolError::invalid_args("`text` has no words").hint("pass a text with words"));
    }
    let is_long = |word: &&str| word.chars().count() >= min_length as usize;
    let words = text.split_whitespace().filter(is_long).count();
    Ok(words.to_string())
}

#[cfg(test)]
mod tests {
    use tool_sdk::testing::{Harness, check_schemas};
    use tool_sdk::{ErrorKind, tools};

    use super::*;

    #[tokio::test]
    async fn counts_long_words() {
        let harness = Harness::new(tools![count_words]);
        let output =
            harness.ok("count_words", r#"{"text": "to be or not", "min_length": 3}"#).await;
        assert_eq!(output.as_text(), "1");
    }

    #[tokio::test]
    async fn refuses_a_text_without_words() {
        let harness = Harness::new(tools![count_words]);
        let error = harness.error("count_words", r#"{"text": " "}"#).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        assert_eq!(error.suggestion(), Some("pass a text with words"));
    }

    // What models see changes only on purpose. `TOOL_SDK_BLESS=1 cargo test` writes the files.
    #[test]
    fn schemas_are_as_committed() {
        check_schemas("schemas");
    }
}
