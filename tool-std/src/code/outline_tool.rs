//! The tool `list_symbols`: the outline of a source file.

use serde_json::json;
use tool_sdk::{
    Context, Output, State, ToolError, Workspace, WorkspacePath, escape_for_display, tool,
};
use tool_std_code::SymbolKind;

use super::source_scan::{SourceScan, session_cache};
use super::symbol_report::{has_kind, line_range};
use crate::read_task;
use crate::search::report::count_noun;
use crate::text::MAX_BYTES;

/// List the symbols of a source file: an outline with lines and signatures.
///
/// Shows functions, methods, types, constants, macros, fields and modules, indented below what they
/// are in, for Rust, Python, TypeScript, JavaScript, Go, Java, C and Bash. Then read only the lines
/// that you need.
#[tool(
    read,
    category = "code",
    permission = "read",
    approval(resources = |args, cx| args.path.read_resources(cx)),
    display(name = "Outline", primary = path, show(path), summary = "Listing symbols of {path}"),
    timeout = "30s",
    truncate = none,
    example = r#"{"path": "src/main.rs"}"#,
    example = r#"{"path": "src/main.rs", "kind": "function"}"#
)]
pub async fn list_symbols(
    /// The source file, relative to the workspace or absolute inside it.
    path: WorkspacePath,
    /// Only symbols of this kind.
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
    /// How many symbols to show at most.
    #[arg(default = 500, range = 1..=5000)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let cache = session_cache(cx);
    read_task::run_blocking(path, workspace, cx, move |task| {
        let kind = kind.as_deref().and_then(SymbolKind::from_name);
        let metadata = task.place.metadata().map_err(|error| task.with_suggestions(error))?;
        let path = task.place.rule_path();
        if metadata.kind.is_dir() {
            let message = format_args!("`{}` is a folder", escape_for_display(&path));
            return Err(ToolError::failed(message)
                .hint("name a file, or use `get_repo_map` for the outline of a folder"));
        }
        let scan = SourceScan::new(task, None, None, cache)?;
        let found = scan.run(|file| file.symbols().map(Some))?;
        let Some(symbols) = found.items.into_iter().next() else {
            return Err(ToolError::failed("the file has no symbols"));
        };
        let listed: Vec<_> = symbols.definitions.iter().filter(|it| has_kind(it, kind)).collect();
        let mut text = format!(
            "{} ({}): {}.\n",
            escape_for_display(&path),
            symbols.language.name(),
            count_noun(listed.len() as u64, "symbol", "symbols")
        );
        let mut shown = Vec::new();
        for symbol in listed.iter().take(limit as usize) {
            let indent = "  ".repeat(symbol.depth.min(16) as usize + 1);
            let lines = line_range((symbol.first_line, symbol.last_line));
            let line = format!("{indent}{lines}: {}\n", symbol.signature);
            if text.len() + line.len() > MAX_BYTES {
                break;
            }
            text.push_str(&line);
            shown.push(json!({
                "name": symbol.qualified_name(),
                "kind": symbol.kind.name(),
                "line": symbol.first_line,
                "last_line": symbol.last_line,
            }));
        }
        let truncated = shown.len() < listed.len();
        if truncated {
            text.push_str(&format!(
                "(Showing {} of {}. Select a `kind` or raise `limit`.)\n",
                shown.len(),
                listed.len()
            ));
        }
        if symbols.has_errors {
            text.push_str(
                "(The file has syntax that the parser does not know; symbols may be missing.)\n",
            );
        }
        text.pop();
        Ok(Output::text(text)
            .metadata("shown", shown.len())
            .metadata("truncated", truncated)
            .display(json!({ "type": "outline", "file": path, "symbols": shown })))
    })
    .await
}
