//! Tools in functions, in nested private modules, under other names of the macro.

use serde_json::json;
use tool_sdk::{Tool, tool as named, tools};

use crate::pass::call;

mod outer {
    mod inner {
        use schemars::JsonSchema;
        use serde::Deserialize;

        #[derive(Deserialize, JsonSchema)]
        pub(in super::super) struct Private {
            text: String,
        }

        /// Echoes.
        #[tool_sdk::tool(read)]
        pub(in super::super) fn places_nested(
            /// What.
            value: Private,
        ) -> String {
            value.text
        }

        /// Echoes.
        #[tool_sdk::tool(read)]
        fn places_private(
            /// What.
            value: Private,
        ) -> String {
            value.text
        }

        pub(super) fn private() -> Vec<std::sync::Arc<dyn tool_sdk::Tool>> {
            tool_sdk::tools![places_private]
        }
    }

    pub(super) use inner::places_nested;

    pub(super) fn private() -> Vec<std::sync::Arc<dyn tool_sdk::Tool>> {
        inner::private()
    }
}

fn local() -> Vec<std::sync::Arc<dyn Tool>> {
    /// Echoes.
    #[named(read)]
    fn places_local(
        /// What.
        text: &str,
    ) -> String {
        text.to_owned()
    }

    tools![places_local]
}

struct Holder;

#[::tool_sdk::toolset]
impl Holder {
    /// Echoes.
    #[::tool_sdk::tool(read, name = "places_method")]
    fn echo(
        &self,
        /// What.
        text: &str,
    ) -> String {
        text.to_owned()
    }
}

#[test]
fn a_tool_may_stand_where_a_function_may() {
    assert_eq!(call(tools![outer::places_nested], json!({"value": {"text": "a"}})), "a");
    assert_eq!(call(outer::private(), json!({"value": {"text": "a"}})), "a");
    assert_eq!(call(local(), json!({"text": "a"})), "a");
    assert_eq!(call(Holder, json!({"text": "a"})), "a");
}

#[test]
fn the_function_stays_a_function() {
    /// Echoes.
    #[named(read)]
    fn places_callable(
        /// What.
        text: &str,
    ) -> String {
        text.to_owned()
    }

    assert_eq!(places_callable("a"), "a");
    assert_eq!(["a", "b"].map(places_callable).concat(), "ab");
}
