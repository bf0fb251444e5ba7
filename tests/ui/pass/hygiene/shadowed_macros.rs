//! Macros with the names of those that generated code needs.

use serde_json::json;
use tool_sdk::{tool, tools};

use crate::pass::{call, definition};

const MAX: u32 = 9;

mod inner {
    use super::{MAX, tool};

    macro_rules! shadows {
        ($dollar:tt: $($name:ident)*) => {$(
            #[expect(unused_macros, reason = "nobody may call it")]
            macro_rules! $name {
                ($dollar($dollar anything:tt)*) => { not::the::one::that::was::meant };
            }
        )*};
    }
    shadows!($: assert concat env file format include_bytes line matches unreachable);

    /// Adds.
    ///
    #[doc = "Numbers."]
    #[tool(read, display(summary = "Adding {a}"))]
    pub(super) fn shadowed_macros(
        /// The first.
        #[arg(range = 1..=MAX)]
        a: u32,
        /// The second.
        #[arg(default = MAX, range = ..=MAX)]
        b: u32,
    ) -> String {
        (a + b).to_string()
    }
}

#[test]
fn macros_are_called_by_their_paths() {
    assert_eq!(call(tools![inner::shadowed_macros], json!({"a": 1})), "10");
    assert_eq!(definition(tools![inner::shadowed_macros]).description, "Adds.\n\nNumbers.");
}
