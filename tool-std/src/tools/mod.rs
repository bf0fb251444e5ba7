//! Tools about the tools themselves.

// A tool is a type of its function's name, so the module must have another one.
mod search;

pub use self::search::tool_search;
