//! The tool `grep_files`: searches files with a regular expression.
//!
//! This module converts the arguments into a [`GrepQuery`]; `content_search` runs it and `report`
//! formats the results.

#[cfg(test)]
mod tests;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::SearcherBuilder;
use tool_sdk::{Context, Output, State, ToolError, Workspace, WorkspacePath, tool};

use super::content_search::{ContentSearch, GrepQuery};
use super::path_glob::PathGlob;
use super::report::{OutputMode, format_results};
use crate::{cancel, read_task};

/// The maximum length of a line that is searched.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// The maximum size of a file in a multiline search. The file is searched in one piece, without a
/// check for cancellation or timeout.
const MAX_MULTILINE: usize = 4 * 1024 * 1024;

/// The maximum nesting of groups and repetitions in a pattern.
const MAX_NESTING: u32 = 64;

/// The maximum length of a pattern in bytes; a character takes up to four.
const MAX_PATTERN: usize = 4096;

/// Search the contents of files with a regular expression.
///
/// The syntax is that of Rust's `regex` crate: no look-around, no backreferences; escape
/// `(`, `[`, `{`, `.` to find them as they are. Hidden files are searched; files that
/// `.gitignore` and `.ignore` exclude, `.git` and binary files are not, and links are not
/// followed. The file that was changed last comes first. In a very large folder the search
/// stops at `limit`, and then which results are shown may differ from call to call.
#[tool(
    read,
    category = "search",
    permission = "read",
    approval(resources = |args, cx| args.path.read_resources(cx)),
    display(
        name = "Grep",
        primary = pattern,
        show(pattern, path, include),
        summary = "Searching {pattern} in {path}"
    ),
    aliases("grep", "grep_content"),
    timeout = "30s",
    truncate = none,
    example = r#"{"pattern": "fn main", "include": "*.rs"}"#,
    example = r#"{"pattern": "TODO|FIXME", "path": "src", "output_mode": "files"}"#
)]
#[expect(clippy::too_many_arguments, reason = "they are the tool's parameters")]
pub async fn grep_files(
    /// The regular expression to search for.
    #[arg(length = 1..=4096)]
    pattern: String,
    /// Folder or file to search, relative to the workspace or absolute inside it.
    #[arg(default = ".")]
    path: WorkspacePath,
    /// Glob of the files to search, such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`; without
    /// a `/` it is compared with file names, else with paths relative to `path`.
    #[arg(length = 1..=1024)]
    include: Option<String>,
    /// `content` shows matching lines, `files` only the paths of files that match, `count`
    /// how many matches each file has, where a line counts once.
    #[arg(default = "content", choices("content", "files", "count"))]
    output_mode: String,
    /// How many lines to show before and after each match.
    #[arg(default = 0, range = 0..=20)]
    context: u32,
    /// Whether upper and lower case are the same.
    #[arg(default = false)]
    case_insensitive: bool,
    /// Whether a match may span lines; `.` then matches line ends too, and files above 4 MiB are
    /// left out.
    #[arg(default = false)]
    multiline: bool,
    /// How many matches to show at most; with `files` and `count`, how many files.
    #[arg(default = 100, range = 1..=2000)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    read_task::run_blocking(path, workspace, cx, move |look| {
        let mode = OutputMode::from_name(&output_mode)?;
        let include = include.map(|glob| PathGlob::new("include", &glob, &look));
        let query = GrepQuery {
            matcher: build_matcher(&pattern, case_insensitive, multiline)?,
            searcher: build_searcher(mode, context, multiline),
            include: include.transpose()?,
            mode,
            multiline,
            limit: limit.into(),
            context: context.into(),
        };
        let stop = look.stop;
        let results = ContentSearch::new(query, look).run_search()?;
        cancel::check_cancelled(stop)?;
        Ok(format_results(&pattern, &results))
    })
    .await
}

fn build_matcher(
    pattern: &str,
    case_insensitive: bool,
    multiline: bool,
) -> Result<RegexMatcher, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError::invalid("pattern", "it is empty and would match every line"));
    }
    if pattern.len() > MAX_PATTERN {
        let message = format_args!("it has {} bytes, more than {MAX_PATTERN}", pattern.len());
        return Err(ToolError::invalid("pattern", message));
    }
    // The matcher puts the pattern into a group, which `a)(b` would close, and its errors would
    // show the group.
    let mut parser = regex_syntax::ParserBuilder::new();
    parser.nest_limit(MAX_NESTING).utf8(false);
    parser.build().parse(pattern).map_err(pattern_error)?;
    let mut builder = RegexMatcherBuilder::new();
    // Patterns come from a model, so the cost of compiling and running them is limited.
    builder.size_limit(1 << 20).dfa_size_limit(8 << 20).nest_limit(MAX_NESTING);
    builder.case_insensitive(case_insensitive).multi_line(true);
    // Only `$` depends on a carriage return, and looking for it takes time. This option comes
    // first, because it also sets the line terminator.
    builder.crlf(pattern.contains('$'));
    builder.dot_matches_new_line(multiline);
    builder.line_terminator(if multiline { None } else { Some(b'\n') });
    builder.build(pattern).map_err(pattern_error)
}

/// Returns the error for an invalid pattern.
fn pattern_error(error: impl std::error::Error + Send + Sync + 'static) -> ToolError {
    let message = error.to_string();
    let hint = pattern_hint(&message);
    ToolError::invalid("pattern", message).hint(hint).source(error)
}

/// Returns the hint for an error of the regex parser.
fn pattern_hint(message: &str) -> &'static str {
    // The lines above the last one may quote the expression.
    let last = message.lines().last().unwrap_or_default();
    let is_about = |words: &[&str]| words.iter().any(|word| last.contains(word));
    if is_about(&["not allowed in a regex"]) {
        "set `multiline` to search across line ends"
    } else if is_about(&["size limit", "maximum number of nested"]) {
        "use `*` or `+` instead of large numbers of repetitions, and fewer groups"
    } else if is_about(&["look-around", "backreferences"]) {
        "search for more with a simpler pattern, and choose from what is found"
    } else {
        "to search for a character such as `(`, `[`, `{`, `*` or `.` itself, put `\\` before it"
    }
}

fn build_searcher(mode: OutputMode, context: u32, multiline: bool) -> SearcherBuilder {
    let context = if mode == OutputMode::Content { context as usize } else { 0 };
    let mut builder = SearcherBuilder::new();
    builder
        .line_number(mode == OutputMode::Content)
        .before_context(context)
        .after_context(context)
        .multi_line(multiline)
        .heap_limit(Some(if multiline { MAX_MULTILINE } else { MAX_LINE }));
    builder
}
