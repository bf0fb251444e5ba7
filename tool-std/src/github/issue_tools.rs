//! The tools `github_list_issues` and `github_read_issue`.

use serde_json::{Value, json};
use tool_sdk::net::GuardedClient;
use tool_sdk::{Context, Output, Resource, State, ToolError, tool};

use super::api::{GithubApi, JSON, TokenNeed};
use super::report::{GithubReport, issue_line, labels_of, one_line, text_of};

/// List the issues of a repository on GitHub, the newest first. Pull requests are left out.
#[tool(
    read,
    open_world,
    category = "github",
    approval(resources = |args, _| vec![Resource::new(&args.repo)]),
    display(name = "Issues", primary = repo, show(repo, state, labels), summary = "Listing issues of {repo}"),
    timeout = "60s",
    example = r#"{"repo": "tokio-rs/tokio", "labels": ["C-bug"]}"#
)]
pub async fn github_list_issues(
    /// The repository, as `OWNER/NAME`.
    #[arg(length = ..=140, pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    repo: &str,
    /// Which issues.
    #[arg(default = "open", choices("open", "closed", "all"))]
    state: &str,
    /// Only issues with all of these labels.
    #[arg(default = Vec::new(), length = ..=10)]
    labels: Vec<String>,
    /// Which page of 30.
    #[arg(default = 1, range = 1..=1000)]
    page: u32,
    client: State<GuardedClient>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let api = GithubApi::open(&client, TokenNeed::Optional, cx).await?;
    let (page, labels) = (page.to_string(), labels.join(","));
    let mut query = vec![("state", state), ("page", &*page), ("per_page", "30")];
    if !labels.is_empty() {
        query.push(("labels", &labels));
    }
    let answer = api.get(&issue_path(repo, &[]), &query, JSON).await?;
    let all = answer.value.as_array().cloned().unwrap_or_default();
    let issues: Vec<Value> =
        all.into_iter().filter(|issue| issue.get("pull_request").is_none()).collect();
    let mut report = GithubReport::default();
    for issue in &issues {
        report.push_line(&issue_line(issue));
    }
    if issues.is_empty() {
        report.push_line("(no issues on this page)");
    }
    let head = format!("Issues of {repo} ({state}):");
    let data = json!({ "type": "github_issues", "repo": repo, "count": issues.len() });
    Ok(report.finish(&head, answer.next_page, data))
}

/// Read an issue on GitHub with its comments. For a pull request, `github_read_pull_request` has the
/// changes, and this tool the comments.
#[tool(
    read,
    open_world,
    category = "github",
    approval(resources = |args, _| vec![Resource::new(&args.repo)]),
    display(name = "Issue", primary = number, show(repo, number), summary = "Reading {repo}#{number}"),
    timeout = "60s",
    example = r#"{"repo": "tokio-rs/tokio", "number": 1879}"#
)]
pub async fn github_read_issue(
    /// The repository, as `OWNER/NAME`.
    #[arg(length = ..=140, pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    repo: &str,
    /// The number of the issue.
    #[arg(range = 1..)]
    number: u32,
    /// Which page of 30 comments.
    #[arg(default = 1, range = 1..=1000)]
    page: u32,
    client: State<GuardedClient>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let api = GithubApi::open(&client, TokenNeed::Optional, cx).await?;
    let number = number.to_string();
    let issue = api.get(&issue_path(repo, &[&number]), &[], JSON).await?.value;
    let page = page.to_string();
    let query = [("page", &*page), ("per_page", "30")];
    let comments = api.get(&issue_path(repo, &[&number, "comments"]), &query, JSON).await?;
    let mut report = GithubReport::default();
    report.push_line(&format!("Title: {}", one_line(text_of(&issue, "/title"))));
    report.push_line(&format!(
        "State: {}, by {}, {}{}",
        text_of(&issue, "/state"),
        text_of(&issue, "/user/login"),
        text_of(&issue, "/created_at"),
        labels_of(&issue)
    ));
    report.push_line("");
    report.push_text(text_of(&issue, "/body"));
    let list = comments.value.as_array().cloned().unwrap_or_default();
    for comment in &list {
        let (author, time) = (text_of(comment, "/user/login"), text_of(comment, "/created_at"));
        report.push_line(&format!("\n--- {author}, {time}:"));
        report.push_text(text_of(comment, "/body"));
    }
    let head = format!("Issue {repo}#{number}:");
    let data = json!({
        "type": "github_issue",
        "repo": repo,
        "number": issue["number"],
        "title": issue["title"],
        "url": issue["html_url"],
        "comments": list.len(),
    });
    Ok(report.finish(&head, comments.next_page, data))
}

/// Returns the path of the issues of a repository, and what is below it.
pub(super) fn issue_path<'p>(repo: &'p str, below: &[&'p str]) -> Vec<&'p str> {
    repository_path(repo, &[&["issues"], below].concat())
}

/// Returns the path of a repository, and what is below it.
pub(super) fn repository_path<'p>(repo: &'p str, below: &[&'p str]) -> Vec<&'p str> {
    let (owner, name) = repo.split_once('/').unwrap_or((repo, ""));
    [&["repos", owner, name], below].concat()
}
