//! Symbols of source code, found by syntax with tree-sitter.
//!
//! * [`SymbolExtractor`] parses a text and returns its [`FileSymbols`]: definitions with their
//!   kinds, containers and signatures, and the identifiers that refer to names.
//! * [`StructureQuery`] finds syntax by its structure, in tree-sitter's query language.
//! * [`RepoMap`] ranks the definitions of many files by what refers to them (PageRank), and writes
//!   the first ones within a budget of tokens.
//! * [`SymbolCache`] keeps the symbols of texts by their content.
//! * [`SymbolPattern`] compares names of symbols with what was searched.
//!
//! Syntax knows names and no types: `a.len()` refers to every `len`. So what is found here is
//! found **by name**.
//!
//! # Examples
//!
//! ```
//! use tool_std_code::{SourceLanguage, SymbolExtractor};
//!
//! let text = "struct Circle;\nimpl Circle {\n    fn area(&self) -> f64 { scale(1.0) }\n}\n";
//! let symbols = SymbolExtractor::new().extract_symbols(SourceLanguage::Rust, text, &|| false).unwrap();
//! let names: Vec<_> = symbols.definitions.iter().map(|it| it.qualified_name()).collect();
//! assert_eq!(names, ["Circle", "Circle::area"]);
//! assert!(symbols.references.iter().any(|it| symbols.name_of(it) == "scale"));
//! ```
//!
//! **Invariant:** nothing here reads a file.

#![forbid(unsafe_code)]

mod extract;
mod language;
mod nesting;
mod quoted_types;
mod repo_map;
mod structure_query;
mod symbol;
mod symbol_cache;
mod symbol_pattern;

pub use self::extract::{ExtractError, SymbolExtractor};
pub use self::language::SourceLanguage;
pub use self::repo_map::{MappedFile, RepoMap, RepoMapText};
pub use self::structure_query::{
    CapturedNode, StructureMatch, StructureMatches, StructureQuery, StructureQueryError,
};
pub use self::symbol::{FileSymbols, ReferenceRole, SymbolDefinition, SymbolKind, SymbolReference};
pub use self::symbol_cache::SymbolCache;
pub use self::symbol_pattern::SymbolPattern;
