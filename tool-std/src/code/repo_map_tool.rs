//! The tool `get_repo_map`: the most referenced definitions of a repository.

use serde_json::json;
use tool_sdk::{
    Context, Output, State, ToolError, Workspace, WorkspacePath, escape_for_display, tool,
};
use tool_std_code::{MappedFile, RepoMap};

use super::source_scan::{SourceScan, session_cache};
use crate::cancel;
use crate::read_task;
use crate::search::report::count_noun;

/// The tokens that are kept for the line above the map.
const HEADER_TOKENS: usize = 40;

/// Get a map of a repository: the definitions that the rest of it refers to most.
///
/// Parses the source files below `path` in Rust, Python, TypeScript, JavaScript, Go, Java, C and
/// Bash, ranks their definitions by references between files (PageRank), and shows the first ones
/// with line and signature, grouped by file, within `max_tokens`. References are counted by name.
/// Use it to learn where things are in a repository that you do not know; name what the task is about as
/// `focus`.
#[tool(
    read,
    category = "code",
    permission = "read",
    approval(resources = |args, cx| args.path.read_resources(cx)),
    display(
        name = "Repo map",
        primary = path,
        show(path, focus),
        summary = "Mapping the code of {path}"
    ),
    timeout = "60s",
    truncate = none,
    example = r#"{}"#,
    example = r#"{"path": "src", "focus": ["parser", "read_config"], "max_tokens": 2048}"#
)]
pub async fn get_repo_map(
    /// Folder to map, relative to the workspace or absolute inside it.
    #[arg(default = ".")]
    path: WorkspacePath,
    /// Glob of the files to map, such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`.
    #[arg(length = 1..=1024)]
    include: Option<String>,
    /// Names of symbols, and parts of paths, that the task is about: they and what they refer to
    /// come first.
    #[arg(default = vec![], length = 0..=50)]
    focus: Vec<String>,
    /// How long the map may be, in tokens of about four characters.
    #[arg(default = 1024, range = 128..=12000)]
    max_tokens: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let cache = session_cache(cx);
    read_task::run_blocking(path, workspace, cx, move |task| {
        let stop = task.stop;
        let scan = SourceScan::new(task, include.as_deref(), None, cache)?;
        let found = scan.run(|file| {
            let symbols = file.symbols()?;
            let path = escape_for_display(&file.path).into_owned();
            Ok(Some(MappedFile { path, symbols }))
        })?;
        let files = count_noun(found.counts.files, "source file", "source files");
        let map = RepoMap::new(found.items, &focus);
        cancel::check_cancelled(stop)?;
        let shown = map.text(max_tokens as usize - HEADER_TOKENS);
        let all = map.definition_count();
        let mut text = format!(
            "{} of {} in {} of {files}, the most referenced first, by name.\n{}",
            shown.definitions,
            count_noun(all as u64, "definition", "definitions"),
            shown.files,
            shown.text
        );
        text.push_str(&found.counts.notes());
        text.pop();
        Ok(Output::text(text)
            .metadata("shown", shown.definitions)
            .metadata("truncated", shown.definitions < all)
            .display(json!({
                "type": "repo_map",
                "text": shown.text,
                "definitions": shown.definitions,
                "total_definitions": all,
            })))
    })
    .await
}
