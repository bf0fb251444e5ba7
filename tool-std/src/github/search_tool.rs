//! The tool `github_search`: code, issues and pull requests.

use serde_json::{Value, json};
use tool_sdk::net::GuardedClient;
use tool_sdk::{Context, Output, Resource, State, ToolError, tool};

use super::api::{GithubApi, TEXT_MATCHES, TokenNeed};
use super::report::{GithubReport, issue_line, one_line, text_of};

/// The most places of one file that are shown.
const MAX_PLACES: usize = 3;

/// Search GitHub for code, or for issues and pull requests.
///
/// `query` has the qualifiers of GitHub's search, such as `repo:OWNER/NAME`, `language:rust`,
/// `path:src`, `is:issue`, `is:pr`, `is:open`, `label:bug`. Searching code needs the user's token.
#[tool(
    read,
    open_world,
    category = "github",
    approval(resources = |args, _| vec![Resource::new(&args.query)]),
    display(name = "GitHub search", primary = query, show(query, kind), summary = "Searching GitHub for {query}"),
    timeout = "60s",
    example = r#"{"query": "JoinSet repo:tokio-rs/tokio language:rust", "kind": "code"}"#,
    example = r#"{"query": "panic is:issue is:open repo:tokio-rs/tokio"}"#
)]
pub async fn github_search(
    /// The words, with qualifiers.
    #[arg(length = 1..=256)]
    query: &str,
    /// What to search.
    #[arg(default = "issues", choices("code", "issues"))]
    kind: &str,
    /// Which page of 20.
    #[arg(default = 1, range = 1..=50)]
    page: u32,
    client: State<GuardedClient>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let is_code = kind == "code";
    let need = if is_code { TokenNeed::Required } else { TokenNeed::Optional };
    let api = GithubApi::open(&client, need, cx).await?;
    let page = page.to_string();
    let parameters = [("q", query), ("page", &*page), ("per_page", "20")];
    let answer = api.get(&["search", kind], &parameters, TEXT_MATCHES).await?;
    let items = answer.value["items"].as_array().cloned().unwrap_or_default();
    let mut report = GithubReport::default();
    for item in &items {
        match is_code {
            true => describe_code(&mut report, item),
            false => describe_issue(&mut report, item),
        }
    }
    if items.is_empty() {
        report.push_line("(no results; try other words, or fewer qualifiers)");
    }
    let incomplete = match answer.value["incomplete_results"].as_bool() {
        Some(true) => ", and GitHub ended the search early",
        _ => "",
    };
    let head = format!("{} results for `{query}`{incomplete}:", answer.value["total_count"]);
    let data =
        json!({ "type": "github_search", "query": query, "kind": kind, "count": items.len() });
    Ok(report.finish(&head, answer.next_page, data))
}

fn describe_code(report: &mut GithubReport, item: &Value) {
    let repository = text_of(item, "/repository/full_name");
    report.push_line(&format!("{repository}: {}", text_of(item, "/path")));
    for place in item["text_matches"].as_array().into_iter().flatten().take(MAX_PLACES) {
        for line in text_of(place, "/fragment").lines() {
            report.push_line(&format!("    {line}"));
        }
    }
}

fn describe_issue(report: &mut GithubReport, item: &Value) {
    let kind = if item.get("pull_request").is_some() { "pull request" } else { "issue" };
    let url = text_of(item, "/repository_url");
    // The last two parts are owner and name.
    let mut parts: Vec<&str> = url.rsplit('/').take(2).collect();
    parts.reverse();
    let repository = parts.join("/");
    report.push_line(&format!("{kind} {repository}{}", issue_line(item)));
    for place in item["text_matches"].as_array().into_iter().flatten().take(1) {
        report.push_line(&format!("    {}", one_line(text_of(place, "/fragment"))));
    }
}
