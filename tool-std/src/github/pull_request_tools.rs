//! The tools `github_list_pull_requests` and `github_read_pull_request`.

use serde_json::{Value, json};
use tool_sdk::net::GuardedClient;
use tool_sdk::{Context, Output, Resource, State, ToolError, tool};

use super::api::{GithubApi, JSON, TokenNeed};
use super::issue_tools::repository_path;
use super::report::{GithubReport, issue_line, one_line, text_of};

/// List the pull requests of a repository on GitHub, the newest first.
#[tool(
    read,
    open_world,
    category = "github",
    approval(resources = |args, _| vec![Resource::new(&args.repo)]),
    display(name = "Pull requests", primary = repo, show(repo, state), summary = "Listing pull requests of {repo}"),
    timeout = "60s",
    example = r#"{"repo": "tokio-rs/tokio"}"#
)]
pub async fn github_list_pull_requests(
    /// The repository, as `OWNER/NAME`.
    #[arg(length = ..=140, pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    repo: &str,
    /// Which pull requests.
    #[arg(default = "open", choices("open", "closed", "all"))]
    state: &str,
    /// Which page of 30.
    #[arg(default = 1, range = 1..=1000)]
    page: u32,
    client: State<GuardedClient>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let api = GithubApi::open(&client, TokenNeed::Optional, cx).await?;
    let page = page.to_string();
    let query = [("state", state), ("page", &*page), ("per_page", "30")];
    let answer = api.get(&repository_path(repo, &["pulls"]), &query, JSON).await?;
    let pulls = answer.value.as_array().cloned().unwrap_or_default();
    let mut report = GithubReport::default();
    for pull in &pulls {
        let (head, base) = (text_of(pull, "/head/label"), text_of(pull, "/base/ref"));
        report.push_line(&format!("{}, {head} into {base}", issue_line(pull)));
    }
    if pulls.is_empty() {
        report.push_line("(no pull requests on this page)");
    }
    let head = format!("Pull requests of {repo} ({state}):");
    let data = json!({ "type": "github_pull_requests", "repo": repo, "count": pulls.len() });
    Ok(report.finish(&head, answer.next_page, data))
}

/// Read a pull request on GitHub: its text, and the changed files with their differences.
#[tool(
    read,
    open_world,
    category = "github",
    approval(resources = |args, _| vec![Resource::new(&args.repo)]),
    display(name = "Pull request", primary = number, show(repo, number), summary = "Reading {repo}#{number}"),
    timeout = "60s",
    example = r#"{"repo": "tokio-rs/tokio", "number": 7000}"#
)]
pub async fn github_read_pull_request(
    /// The repository, as `OWNER/NAME`.
    #[arg(length = ..=140, pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    repo: &str,
    /// The number of the pull request.
    #[arg(range = 1..)]
    number: u32,
    /// Whether the differences are shown, or only the names of the files.
    #[arg(default = true)]
    diff: bool,
    /// Which page of 30 files.
    #[arg(default = 1, range = 1..=100)]
    page: u32,
    client: State<GuardedClient>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let api = GithubApi::open(&client, TokenNeed::Optional, cx).await?;
    let (number, page) = (number.to_string(), page.to_string());
    let pull = api.get(&repository_path(repo, &["pulls", &number]), &[], JSON).await?.value;
    let query = [("page", &*page), ("per_page", "30")];
    let path = repository_path(repo, &["pulls", &number, "files"]);
    let files = api.get(&path, &query, JSON).await?;
    let mut report = GithubReport::default();
    describe_pull_request(&mut report, &pull);
    let list = files.value.as_array().cloned().unwrap_or_default();
    for file in &list {
        describe_file(&mut report, file, diff);
    }
    let head = format!("Pull request {repo}#{number}:");
    let data = json!({
        "type": "github_pull_request",
        "repo": repo,
        "number": pull["number"],
        "title": pull["title"],
        "url": pull["html_url"],
        "files": list.len(),
    });
    Ok(report.finish(&head, files.next_page, data))
}

fn describe_pull_request(report: &mut GithubReport, pull: &Value) {
    report.push_line(&format!("Title: {}", one_line(text_of(pull, "/title"))));
    let state = match (pull["merged"].as_bool(), pull["draft"].as_bool()) {
        (Some(true), _) => "merged",
        (_, Some(true)) => "draft",
        _ => text_of(pull, "/state"),
    };
    report.push_line(&format!(
        "State: {state}, by {}, {}, {} into {}",
        text_of(pull, "/user/login"),
        text_of(pull, "/created_at"),
        text_of(pull, "/head/label"),
        text_of(pull, "/base/ref")
    ));
    report.push_line(&format!(
        "Changes: {} files, +{} -{} lines, {} commits",
        pull["changed_files"], pull["additions"], pull["deletions"], pull["commits"]
    ));
    report.push_line("");
    report.push_text(text_of(pull, "/body"));
}

fn describe_file(report: &mut GithubReport, file: &Value, has_diff: bool) {
    let before = match text_of(file, "/previous_filename") {
        "" => String::new(),
        before => format!(" (was {before})"),
    };
    report.push_line(&format!(
        "\n--- {} {}{before}, +{} -{}",
        text_of(file, "/status"),
        text_of(file, "/filename"),
        file["additions"],
        file["deletions"]
    ));
    if !has_diff {
        return;
    }
    match file["patch"].as_str() {
        Some(patch) => report.push_text(patch),
        // Binary files, and files with too many changes.
        None => report.push_line("(GitHub shows no difference of this file)"),
    }
}
