//! The tool `github_read_file`: a file or a folder of a repository.

use serde_json::{Value, json};
use tool_sdk::net::GuardedClient;
use tool_sdk::{Context, InvalidArgs, Output, Resource, State, ToolError, tool};

use super::api::{GithubApi, RAW, TokenNeed};
use super::issue_tools::repository_path;
use super::report::{GithubReport, text_of};

/// The longest line that is shown, in characters.
const MAX_LINE_CHARS: usize = 2_000;

/// Read a file of a repository on GitHub, or list a folder of it.
#[tool(
    read,
    open_world,
    category = "github",
    approval(resources = |args, _| vec![Resource::new(&args.repo)]),
    validate = check_path,
    display(name = "GitHub file", primary = path, show(repo, path, git_ref), summary = "Reading {path} of {repo}"),
    timeout = "60s",
    example = r#"{"repo": "tokio-rs/tokio", "path": "tokio/Cargo.toml"}"#,
    example = r#"{"repo": "tokio-rs/tokio", "path": "", "ref": "tokio-1.0.0"}"#
)]
pub async fn github_read_file(
    /// The repository, as `OWNER/NAME`.
    #[arg(length = ..=140, pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    repo: &str,
    /// The path in the repository; empty for its root.
    #[arg(default = "", length = ..=1000)]
    path: &str,
    /// The branch, tag or commit; the default branch without one.
    #[arg(rename = "ref", length = 1..=250)]
    git_ref: Option<&str>,
    /// The first line to show, counting from 1.
    #[arg(default = 1, range = 1..)]
    offset: u32,
    /// How many lines to show at most.
    #[arg(default = 1000, range = 1..=5000)]
    limit: u32,
    client: State<GuardedClient>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let api = GithubApi::open(&client, TokenNeed::Optional, cx).await?;
    let mut parts = vec!["contents"];
    parts.extend(path_parts(path));
    let query: Vec<(&str, &str)> = git_ref.map(|name| ("ref", name)).into_iter().collect();
    let response = api.get_response(&repository_path(repo, &parts), &query, RAW).await?;
    let is_raw = response.header("content-type").is_some_and(|kind| kind.contains(".raw"));
    if !is_raw && let Ok(Value::Array(entries)) = serde_json::from_slice(response.body()) {
        return Ok(folder_output(repo, path, &entries));
    }
    let is_binary = |text: &str| text.contains('\0');
    let text = std::str::from_utf8(response.body()).ok().filter(|text| !is_binary(text));
    let text = text.ok_or_else(|| {
        ToolError::failed(format_args!("`{path}` is not a text file"))
            .hint("read a text file, or download this one with a command")
    })?;
    file_output(repo, path, text, offset as usize, limit as usize)
}

fn folder_output(repo: &str, path: &str, entries: &[Value]) -> Output {
    let mut report = GithubReport::default();
    for entry in entries {
        let name = text_of(entry, "/name");
        report.push_line(&match text_of(entry, "/type") {
            "dir" => format!("{name}/"),
            "file" => format!("{name} ({} bytes)", entry["size"]),
            other => format!("{name} ({other})"),
        });
    }
    let data =
        json!({ "type": "github_folder", "repo": repo, "path": path, "entries": entries.len() });
    report.finish(&format!("Folder `{path}` of {repo}:"), None, data)
}

fn file_output(
    repo: &str,
    path: &str,
    text: &str,
    offset: usize,
    limit: usize,
) -> Result<Output, ToolError> {
    let total = text.lines().count();
    if offset > total.max(1) {
        return Err(InvalidArgs::for_argument(
            "offset",
            format_args!("is {offset}, but the file has {total} lines"),
        )
        .into());
    }
    let mut report = GithubReport::default();
    let mut last = offset - 1;
    for (line, number) in text.lines().zip(1..).skip(offset - 1).take(limit) {
        let shown: String = line.chars().take(MAX_LINE_CHARS).collect();
        report.push_line(&format!("{number:>6}  {shown}"));
        last = number;
    }
    let head = match last < total {
        true => format!(
            "`{path}` of {repo}, lines {offset} to {last} of {total}; read on with `offset` {}:",
            last + 1
        ),
        false => format!("`{path}` of {repo}, lines {offset} to {last} of {total}:"),
    };
    let data = json!({ "type": "github_file", "repo": repo, "path": path, "lines": total });
    Ok(report.finish(&head, None, data))
}

/// Returns the names of the folders and of the file in a path.
fn path_parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

fn check_path(args: &GithubReadFileArgs) -> Result<(), InvalidArgs> {
    match path_parts(&args.path).any(|part| matches!(part, "." | "..")) {
        true => Err(InvalidArgs::for_argument("path", "must have no `.` and `..`")),
        false => Ok(()),
    }
}
