//! The tool `search_code`: finds code by symbols, by text or by structure.

use tool_sdk::{Context, Output, State, ToolError, Workspace, WorkspacePath, tool};
use tool_std_code::{
    ExtractError, FileSymbols, SourceLanguage, StructureMatch, StructureQuery, SymbolKind,
    SymbolPattern,
};

use super::source_scan::{ScannedFile, SourceScan, session_cache};
use super::symbol_report::{
    CodeLine, CodeReport, LineBudget, definition_line, has_kind, source_line,
};
use crate::read_task;

/// The maximum number of matches of a structure query in one file.
const MAX_MATCHES: usize = 2000;

/// Search source code by symbol, by text or by structure.
///
/// `symbol` finds definitions whose name has `query` in it, the best match first; `*` stands for any
/// characters, so `*` with a `kind` lists all symbols of the kind. `text` finds lines that have
/// `query` as it is, and tells the function around each. `structure` runs `query` as a tree-sitter
/// query, needs `language`, and shows what the query captures with `@name`. Searches Rust, Python,
/// TypeScript, JavaScript, Go, Java, C and Bash; use `grep_files` for other files and for regular
/// expressions.
#[tool(
    read,
    category = "code",
    permission = "read",
    approval(resources = |args, cx| args.path.read_resources(cx)),
    display(
        name = "Search code",
        primary = query,
        show(query, mode, path, include),
        summary = "Searching code for {query} in {path}"
    ),
    timeout = "30s",
    truncate = none,
    example = r#"{"query": "parse"}"#,
    example = r#"{"query": "*", "kind": "struct", "path": "src"}"#,
    example = r#"{"query": "(function_item name: (identifier) @name)", "mode": "structure", "language": "rust"}"#
)]
#[expect(clippy::too_many_arguments, reason = "they are the tool's parameters")]
pub async fn search_code(
    /// Part of a name, a name with `*`, a text, or a tree-sitter query; see `mode`.
    #[arg(length = 1..=4096)]
    query: String,
    /// How to search.
    #[arg(default = "symbol", choices("symbol", "text", "structure"))]
    mode: String,
    /// Only symbols of this kind; with `text` and `structure`, only what is inside of one.
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
    /// Only files in this language.
    #[arg(choices(
        "bash",
        "c",
        "go",
        "java",
        "javascript",
        "python",
        "rust",
        "typescript",
        "tsx"
    ))]
    language: Option<String>,
    /// Folder or file to search, relative to the workspace or absolute inside it.
    #[arg(default = ".")]
    path: WorkspacePath,
    /// Glob of the files to search, such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`.
    #[arg(length = 1..=1024)]
    include: Option<String>,
    /// How many results to show at most.
    #[arg(default = 50, range = 1..=1000)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let cache = session_cache(cx);
    read_task::run_blocking(path, workspace, cx, move |task| {
        let kind = kind.as_deref().and_then(SymbolKind::from_name);
        let scan = SourceScan::new(task, include.as_deref(), language.as_deref(), cache)?;
        let search = CodeQuery::parse(&query, &mode, language.as_deref())?;
        let budget = LineBudget::new();
        let found = scan.run(|file| {
            let lines = search.matching_lines(file, kind, &budget)?;
            Ok((!lines.is_empty()).then_some(lines))
        })?;
        let (noun, summary, advice) = search.wording(&query);
        let report = CodeReport {
            pattern: &query,
            noun,
            summary,
            advice,
            lines: found.items.into_iter().flatten().collect(),
            is_partial: budget.is_exceeded(),
            limit: limit as usize,
        };
        Ok(report.format(&found.counts))
    })
    .await
}

/// What is searched.
enum CodeQuery {
    Symbol(SymbolPattern),
    Text(String),
    Structure(StructureQuery),
}

impl CodeQuery {
    fn parse(query: &str, mode: &str, language: Option<&str>) -> Result<Self, ToolError> {
        match mode {
            "symbol" => Ok(Self::Symbol(SymbolPattern::new(query))),
            "text" => Ok(Self::Text(query.to_owned())),
            _ => {
                let Some(language) = language.and_then(SourceLanguage::from_name) else {
                    let message = "a query for `structure` is written for one language";
                    return Err(ToolError::invalid("language", message)
                        .hint("add `language`, such as `\"language\": \"rust\"`"));
                };
                let parsed = StructureQuery::parse(language, query).map_err(|error| {
                    let example =
                        r#"(call_expression function: (identifier) @name (#eq? @name "f"))"#;
                    ToolError::invalid("query", &error)
                        .hint(format_args!("write a tree-sitter query such as `{example}`"))
                        .source(error)
                })?;
                Ok(Self::Structure(parsed))
            }
        }
    }

    fn matching_lines(
        &self,
        file: &mut ScannedFile<'_>,
        kind: Option<SymbolKind>,
        budget: &LineBudget,
    ) -> Result<Vec<CodeLine>, ExtractError> {
        if budget.is_spent() {
            return Ok(Vec::new());
        }
        match self {
            Self::Symbol(pattern) => {
                let symbols = file.symbols()?;
                let matching = symbols.definitions.iter().filter(|it| has_kind(it, kind));
                let ranked = matching.filter_map(|it| Some((it, pattern.rank_definition(it)?)));
                let lines = ranked.map(|(it, rank)| definition_line(&file.path, it, rank));
                Ok(budget.collect(lines))
            }
            Self::Text(wanted) => find_text(wanted, file, kind, budget),
            Self::Structure(query) => {
                let found = file.find_structure(query, MAX_MATCHES)?;
                if found.is_truncated {
                    budget.set_exceeded();
                }
                if found.matches.is_empty() {
                    return Ok(Vec::new());
                }
                let symbols = file.symbols()?;
                let is_inside = |it: &StructureMatch| {
                    it.captures
                        .first()
                        .is_some_and(|first| is_inside_kind(&symbols, first.first_line, kind))
                };
                let found = found.matches.iter().filter(|it| is_inside(it));
                Ok(budget.collect(found.map(|it| structure_line(&file.path, it))))
            }
        }
    }

    /// Returns what a line is called, what is said of the lines, and what to do without any.
    fn wording(&self, query: &str) -> ((&'static str, &'static str), String, &'static str) {
        match self {
            Self::Symbol(_) => (
                ("symbol", "symbols"),
                format!("for `{query}`"),
                "Try a part of the name, or `\"mode\": \"text\"`.",
            ),
            Self::Text(_) => (
                ("line", "lines"),
                format!("with `{query}` in source files"),
                "Use `grep_files` for other files.",
            ),
            Self::Structure(_) => {
                (("match", "matches"), "of the query".to_owned(), "Try a simpler query.")
            }
        }
    }
}

fn find_text(
    wanted: &str,
    file: &mut ScannedFile<'_>,
    kind: Option<SymbolKind>,
    budget: &LineBudget,
) -> Result<Vec<CodeLine>, ExtractError> {
    if !file.text.contains(wanted) {
        return Ok(Vec::new());
    }
    let symbols = file.symbols()?;
    let lines: Vec<&str> = file.text.lines().collect();
    let numbered =
        (1..).zip(&lines).filter_map(|(number, line)| Some((number, line.find(wanted)?)));
    let inside = numbered.filter(|(number, _)| is_inside_kind(&symbols, *number, kind));
    Ok(budget.collect(inside.map(|(number, at)| {
        let text = source_line(&lines, number, u32::try_from(at).unwrap_or(0));
        let text = match symbols.enclosing_definition(number) {
            Some(it) if it.first_line < it.last_line => {
                format!("{text}  (in {} {})", it.kind, it.qualified_name())
            }
            _ => text,
        };
        CodeLine { path: file.path.clone(), lines: (number, number), text, rank: 0 }
    })))
}

/// Whether any definition of the kind is around a line.
fn is_inside_kind(symbols: &FileSymbols, line: u32, kind: Option<SymbolKind>) -> bool {
    let Some(kind) = kind else { return true };
    let mut of_kind = symbols.definitions.iter().filter(|it| it.kind == kind);
    of_kind.any(|it| (it.first_line..=it.last_line).contains(&line))
}

fn structure_line(path: &str, found: &StructureMatch) -> CodeLine {
    let captures: Vec<String> = found
        .captures
        .iter()
        .map(|it| {
            let text: Vec<&str> = it.text.lines().collect();
            let more = if text.len() > 1 { " …" } else { "" };
            format!("@{} {}{more}", it.capture, source_line(&text, 1, 0))
        })
        .collect();
    let first = found.captures.iter().map(|it| it.first_line).min().unwrap_or(1);
    let last = found.captures.iter().map(|it| it.last_line).max().unwrap_or(first);
    CodeLine { path: path.to_owned(), lines: (first, last), text: captures.join("  "), rank: 0 }
}
