//! The tools that find code by its symbols: definitions, references, structure, outlines and maps.
//!
//! They know syntax and no types, so what they find is found by name, and their results say so. The
//! analysis is the crate `tool-std-code`; the files are read as `grep_files` reads them: through the
//! workspace, without what ignore files exclude and what the read rules hide.

mod definition_tool;
mod outline_tool;
mod references_tool;
mod repo_map_tool;
mod search_tool;
mod source_scan;
mod symbol_report;
#[cfg(test)]
mod tests;

pub use self::definition_tool::find_definition;
pub use self::outline_tool::list_symbols;
pub use self::references_tool::find_references;
pub use self::repo_map_tool::get_repo_map;
pub use self::search_tool::search_code;
