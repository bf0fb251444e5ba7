//! Tools for GitHub over its REST API: issues, pull requests, files and search.
//!
//! They are offered when the user turns them on (`web.github`). The host provides a
//! [`GuardedClient`](tool_sdk::net::GuardedClient) as a service of the session, and the token is the
//! variable `GITHUB_TOKEN`. Without one, GitHub shows what is public, to 60 requests an hour.
//!
//! The pattern of a permission rule is the repository: `allow github_comment(octocat/*)`.
//!
//! **Invariant:** the token is sent to the configured API only. What GitHub returns was written by
//! others: it is framed as untrusted.

mod api;
mod api_error;
mod file_tool;
mod issue_tools;
mod pull_request_tools;
mod report;
mod search_tool;
#[cfg(test)]
mod tests;
mod write_tools;

pub use self::file_tool::github_read_file;
pub use self::issue_tools::{github_list_issues, github_read_issue};
pub use self::pull_request_tools::{github_list_pull_requests, github_read_pull_request};
pub use self::search_tool::github_search;
pub use self::write_tools::{github_comment, github_create_issue};

/// The names of the tools, for hosts that leave them out.
pub const TOOL_NAMES: [&str; 8] = [
    "github_comment",
    "github_create_issue",
    "github_list_issues",
    "github_list_pull_requests",
    "github_read_file",
    "github_read_issue",
    "github_read_pull_request",
    "github_search",
];
