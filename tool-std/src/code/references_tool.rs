//! The tool `find_references`: where a name is used.

use tool_sdk::{Context, Output, State, ToolError, Workspace, WorkspacePath, tool};
use tool_std_code::{FileSymbols, SymbolPattern, SymbolReference};

use super::source_scan::{SourceScan, session_cache};
use super::symbol_report::{CodeLine, CodeReport, LineBudget, source_line};
use crate::read_task;
use crate::search::report::count_noun;

/// Find where a symbol is used.
///
/// Finds the identifiers of exactly that name in Rust, Python, TypeScript, JavaScript, Go, Java, C and
/// Bash, not those in comments and strings, apart from quoted types of Python. Each line tells the
/// function around it. References are found by name: when several symbols have the name, uses of all of
/// them are shown, and the result says how many definitions there are.
#[tool(
    read,
    category = "code",
    permission = "read",
    approval(resources = |args, cx| args.path.read_resources(cx)),
    display(
        name = "References",
        primary = name,
        show(name, path),
        summary = "Finding references to {name} in {path}"
    ),
    timeout = "30s",
    truncate = none,
    example = r#"{"name": "main"}"#,
    example = r#"{"name": "area", "path": "src", "role": "call"}"#
)]
pub async fn find_references(
    /// The name of the symbol without its container, such as `area`.
    #[arg(length = 1..=256)]
    name: String,
    /// Folder or file to search, relative to the workspace or absolute inside it.
    #[arg(default = ".")]
    path: WorkspacePath,
    /// Glob of the files to search, such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`.
    #[arg(length = 1..=1024)]
    include: Option<String>,
    /// `call` for what is called, `type` for names of types, `other` for the rest.
    #[arg(choices("call", "type", "other"))]
    role: Option<String>,
    /// How many references to show at most.
    #[arg(default = 100, range = 1..=2000)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let cache = session_cache(cx);
    read_task::run_blocking(path, workspace, cx, move |task| {
        let pattern = SymbolPattern::new(&name);
        let scan = SourceScan::new(task, include.as_deref(), None, cache)?;
        let budget = LineBudget::new();
        let found = scan.run(|file| {
            if !file.text.contains(pattern.name()) {
                return Ok(None);
            }
            let symbols = file.symbols()?;
            let defined =
                symbols.definitions.iter().filter(|it| *it.name == *pattern.name()).count();
            let all = symbols.references_to(pattern.name());
            let wanted = all.filter(|it| role.as_ref().is_none_or(|role| role == it.role.name()));
            let text: Vec<&str> = file.text.lines().collect();
            let lines = wanted.map(|it| reference_line(&file.path, it, &symbols, &text));
            let lines = budget.collect(lines);
            Ok(Some((lines, defined)))
        })?;
        let (lines, defined): (Vec<Vec<CodeLine>>, Vec<usize>) = found.items.into_iter().unzip();
        let defined = count_noun(defined.iter().sum::<usize>() as u64, "definition", "definitions");
        let report = CodeReport {
            pattern: &name,
            noun: ("reference", "references"),
            summary: format!("to `{}`, by name; {defined} of it found", pattern.name()),
            advice: "Use `search_code` to find similar names.",
            lines: lines.into_iter().flatten().collect(),
            is_partial: budget.is_exceeded(),
            limit: limit as usize,
        };
        Ok(report.format(&found.counts))
    })
    .await
}

fn reference_line(
    path: &str,
    reference: &SymbolReference,
    symbols: &FileSymbols,
    text: &[&str],
) -> CodeLine {
    let line = source_line(text, reference.line, reference.column);
    let around = symbols.enclosing_definition(reference.line);
    let text = match around.filter(|it| it.first_line < it.last_line) {
        Some(around) => format!("{line}  (in {} {})", around.kind, around.qualified_name()),
        None => line,
    };
    CodeLine { path: path.to_owned(), lines: (reference.line, reference.line), text, rank: 0 }
}
