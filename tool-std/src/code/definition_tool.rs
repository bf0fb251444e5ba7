//! The tool `find_definition`: where a symbol is defined, by name.

use tool_sdk::{Context, Output, State, ToolError, Workspace, WorkspacePath, tool};
use tool_std_code::{SymbolKind, SymbolPattern};

use super::source_scan::{SourceScan, session_cache};
use super::symbol_report::{CodeReport, LineBudget, definition_line, has_kind};
use crate::read_task;

/// Find where a symbol is defined.
///
/// Finds functions, methods, types, constants, macros, fields and modules by their exact name, in
/// Rust, Python, TypeScript, JavaScript, Go, Java, C and Bash. Definitions are found by name, so
/// unrelated symbols of one name are all shown; write `Circle::area` or `Circle.area` for the one of
/// a container. Files that `.gitignore` excludes, and dependencies elsewhere, are not searched.
#[tool(
    read,
    category = "code",
    permission = "read",
    approval(resources = |args, cx| args.path.read_resources(cx)),
    display(
        name = "Definition",
        primary = name,
        show(name, path),
        summary = "Finding the definition of {name} in {path}"
    ),
    timeout = "30s",
    truncate = none,
    example = r#"{"name": "main"}"#,
    example = r#"{"name": "Circle::area", "path": "src"}"#
)]
pub async fn find_definition(
    /// The name of the symbol, alone or behind its container, such as `area` or `Circle::area`.
    #[arg(length = 1..=256)]
    name: String,
    /// Folder or file to search, relative to the workspace or absolute inside it.
    #[arg(default = ".")]
    path: WorkspacePath,
    /// Glob of the files to search, such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`.
    #[arg(length = 1..=1024)]
    include: Option<String>,
    /// What the symbol is.
    #[arg(choices(
        "class",
        "constant",
        "enum",
        "field",
        "function",
        "interface",
        "macro",
        "method",
        "module",
        "struct",
        "trait",
        "type",
        "variable",
        "variant"
    ))]
    kind: Option<String>,
    /// How many definitions to show at most.
    #[arg(default = 50, range = 1..=1000)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let cache = session_cache(cx);
    read_task::run_blocking(path, workspace, cx, move |task| {
        let kind = kind.as_deref().and_then(SymbolKind::from_name);
        let pattern = SymbolPattern::new(&name);
        let scan = SourceScan::new(task, include.as_deref(), None, cache)?;
        let budget = LineBudget::new();
        let found = scan.run(|file| {
            if !file.text.contains(pattern.name()) {
                return Ok(None);
            }
            let symbols = file.symbols()?;
            let matching = symbols
                .definitions
                .iter()
                .filter(|it| pattern.is_name_of(it) && has_kind(it, kind));
            let lines = budget.collect(matching.map(|it| definition_line(&file.path, it, 0)));
            Ok((!lines.is_empty()).then_some(lines))
        })?;
        let report = CodeReport {
            pattern: &name,
            noun: ("definition", "definitions"),
            summary: format!("of `{name}`, by name"),
            advice: "Use `search_code` to find similar names.",
            lines: found.items.into_iter().flatten().collect(),
            is_partial: budget.is_exceeded(),
            limit: limit as usize,
        };
        Ok(report.format(&found.counts))
    })
    .await
}
