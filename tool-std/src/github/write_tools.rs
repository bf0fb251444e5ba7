//! The tools `github_create_issue` and `github_comment`, which write in the name of the user.

use serde_json::json;
use tool_sdk::net::GuardedClient;
use tool_sdk::{Context, Output, Resource, State, ToolError, tool};

use super::api::{GithubApi, TokenNeed};
use super::issue_tools::issue_path;
use super::report::text_of;

/// Create an issue in a repository on GitHub, in the name of the user.
///
/// Search for the same issue first. Everyone who sees the repository can read it.
#[tool(
    write,
    open_world,
    category = "github",
    approval(resources = |args, _| vec![Resource::new(&args.repo)]),
    display(name = "New issue", primary = title, show(repo, title, body, labels), summary = "Creating an issue in {repo}"),
    timeout = "60s",
    example = r#"{"repo": "octocat/hello", "title": "The build fails on 1.91", "body": "Since 1.91 ..."}"#
)]
pub async fn github_create_issue(
    /// The repository, as `OWNER/NAME`.
    #[arg(length = ..=140, pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    repo: &str,
    /// The title.
    #[arg(length = 1..=256)]
    title: &str,
    /// The text, as Markdown.
    #[arg(default = "", length = ..=65_000)]
    body: &str,
    /// Its labels, which must exist.
    #[arg(default = Vec::new(), length = ..=20)]
    labels: Vec<String>,
    client: State<GuardedClient>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let api = GithubApi::open(&client, TokenNeed::Required, cx).await?;
    let issue = json!({ "title": title, "body": body, "labels": labels });
    let made = api.post(&issue_path(repo, &[]), &issue).await?;
    let url = text_of(&made, "/html_url");
    let data =
        json!({ "type": "github_issue", "repo": repo, "number": made["number"], "url": url });
    Ok(Output::text(format!("Created issue #{}: {url}", made["number"])).display(data))
}

/// Comment on an issue or a pull request on GitHub, in the name of the user.
///
/// Everyone who sees the repository can read it, and some get it by mail.
#[tool(
    write,
    open_world,
    category = "github",
    approval(resources = |args, _| vec![Resource::new(&args.repo)]),
    display(name = "Comment", primary = number, show(repo, number, body), summary = "Commenting on {repo}#{number}"),
    timeout = "60s",
    example = r#"{"repo": "octocat/hello", "number": 7, "body": "Fixed by #8."}"#
)]
pub async fn github_comment(
    /// The repository, as `OWNER/NAME`.
    #[arg(length = ..=140, pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    repo: &str,
    /// The number of the issue or pull request.
    #[arg(range = 1..)]
    number: u32,
    /// The text, as Markdown.
    #[arg(length = 1..=65_000)]
    body: &str,
    client: State<GuardedClient>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let api = GithubApi::open(&client, TokenNeed::Required, cx).await?;
    let path_number = number.to_string();
    let path = issue_path(repo, &[&path_number, "comments"]);
    let made = api.post(&path, &json!({ "body": body })).await?;
    let url = text_of(&made, "/html_url");
    let data = json!({ "type": "github_comment", "repo": repo, "number": number, "url": url });
    Ok(Output::text(format!("Commented: {url}")).display(data))
}
