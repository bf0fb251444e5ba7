//! A harness for tests of tools, and checks of all linked tools.
//!
//! ```
//! use serde_json::json;
//! use tool_sdk::testing::Harness;
//! use tool_sdk::{tool, tools};
//!
//! /// Add two numbers.
//! #[tool(read, example = r#"{"a": 1, "b": 2}"#)]
//! fn add(
//!     /// The first.
//!     a: i64,
//!     /// The second.
//!     b: i64,
//! ) -> String {
//!     (a + b).to_string()
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let harness = Harness::new(tools![add]);
//! assert_eq!(harness.ok("add", json!({"a": 2, "b": 3})).await.as_text(), "5");
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

mod checks;
mod conversation_stores;
#[cfg(feature = "workspace")]
mod example_folder;
#[cfg(not(feature = "workspace"))]
#[path = "example_folder_disabled.rs"]
mod example_folder;
mod examples;
mod harness;
mod memory_stores;
mod schemas;
mod session_stores;
mod stores;

pub use self::checks::{ToolChecks, check_all};
pub use self::conversation_stores::check_conversation_store;
pub use self::harness::{Harness, context};
pub use self::memory_stores::check_memory_store;
pub use self::schemas::check_schemas;
pub use self::session_stores::check_session_store;
pub use self::stores::check_plan_store;
