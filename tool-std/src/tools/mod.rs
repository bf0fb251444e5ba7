//! The tools about tools: `tool_search`.

// The macro defines a type named like the function, so the module needs another name.
mod search;

pub use self::search::tool_search;
