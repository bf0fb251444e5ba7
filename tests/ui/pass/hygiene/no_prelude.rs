//! A module into which nothing is imported.

use serde_json::json;
use tool_sdk::tools;

use crate::pass::call;

mod bare {
    #![no_implicit_prelude]

    use ::std::string::String;
    use ::tool_sdk::{ToolError, tool, toolset};

    /// Joins.
    #[tool(read, display(summary = "Joining {first}"), parallel = by(first), aliases("glue"))]
    pub(super) async fn no_prelude(
        /// The first.
        #[arg(length = 1..)]
        first: &str,
        /// The second.
        #[arg(default = "b", pattern = "^[a-z]$")]
        second: String,
    ) -> ::core::result::Result<String, ToolError> {
        ::core::result::Result::Ok(::std::format!("{first}{second}"))
    }

    pub(super) struct Join;

    #[toolset]
    impl Join {
        /// Joins.
        #[tool(read, name = "no_prelude_method")]
        fn join(
            &self,
            /// The first.
            first: &str,
        ) -> String {
            ::std::format!("{first}!")
        }
    }
}

#[test]
fn nothing_is_expected_to_be_imported() {
    assert_eq!(call(tools![bare::no_prelude], json!({"first": "a"})), "ab");
    assert_eq!(call(bare::Join, json!({"first": "a"})), "a!");
}
