//! Snapshot tests for schemas: a changed parameter type shows as a reviewed difference.

use std::path::Path;

use crate::provider::Dialect;
use crate::registry::Registry;
use crate::schema_files;
use crate::tool::Definition;

/// Compares the schemas of this package's linked tools with the files in `folder`.
///
/// `folder` is relative to the package. Each tool has a file `NAME.json`: what
/// `schema --format mcp --write` writes. With `TOOL_SDK_BLESS=1` in the environment the
/// files are written instead.
///
/// # Panics
///
/// Panics with every file that is missing, changed or stale, and with each place at which a
/// changed one differs.
#[track_caller]
pub fn check_schemas(folder: impl AsRef<Path>) {
    let folder = folder.as_ref();
    let registry = Registry::linked().unwrap_or_else(|error| panic!("{error}"));
    // In a test, cargo sets the package name; otherwise all linked tools count.
    let package = std::env::var("CARGO_PKG_NAME").ok();
    let own = |definition: &&Definition| {
        definition
            .place
            .is_some_and(|place| package.as_deref().is_none_or(|name| name == place.package))
    };
    let tools: Vec<Definition> = registry.definitions().filter(own).cloned().collect();
    let bless = std::env::var_os("TOOL_SDK_BLESS").is_some_and(|value| value == "1");
    let changes = schema_files::compare_schema_files(folder, &tools, Dialect::Mcp, true, bless)
        .unwrap_or_else(|error| panic!("`{}`: {error}", folder.display()));
    let drift: Vec<String> = changes
        .into_iter()
        .filter(|change| !change.is_settled(bless))
        .map(|change| change.to_string())
        .collect();
    assert!(
        drift.is_empty(),
        "schemas in `{}` differ:\n{}\nread the difference, then run the test with TOOL_SDK_BLESS=1; \
         delete files without a tool",
        folder.display(),
        drift.join("\n")
    );
}
