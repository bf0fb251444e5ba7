//! Failed responses of the API, as errors for the model.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use tool_sdk::ToolError;
use tool_sdk::net::WebResponse;

/// The most characters of a message of GitHub that are shown.
const MAX_MESSAGE_CHARS: usize = 500;

/// Returns the error with what the model can do.
pub(super) fn to_api_error(response: &WebResponse, has_token: bool) -> ToolError {
    let status = response.status();
    if let Some(wait) = rate_limit_wait(response) {
        return rate_limit_error(wait, has_token);
    }
    let message = format!("GitHub answers with HTTP {status}: {}", message_of(response));
    match status {
        401 => ToolError::unauthorized(message)
            .hint("the user can set another token in the variable `GITHUB_TOKEN`"),
        403 => ToolError::failed(message).hint("the token of the user may lack the permission"),
        404 if has_token => ToolError::not_found(message)
            .hint("check the repository, the number and the path; the token may not see it"),
        404 => ToolError::not_found(message).hint(
            "check the repository, the number and the path; a private one needs the variable \
             `GITHUB_TOKEN`",
        ),
        409 | 410 => ToolError::conflict(message).hint("the repository does not offer this"),
        400 | 422 => ToolError::invalid_args(message).hint("correct the arguments"),
        500.. => ToolError::unavailable(message).hint("try again later"),
        _ => ToolError::failed(message),
    }
}

/// Returns the message of GitHub, with the errors of single fields.
fn message_of(response: &WebResponse) -> String {
    let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let mut message = body["message"].as_str().unwrap_or("no message").to_owned();
    for error in body["errors"].as_array().into_iter().flatten() {
        let text = error["message"].as_str().or_else(|| error.as_str());
        let told = match (text, error["field"].as_str(), error["code"].as_str()) {
            (Some(text), ..) => text.to_owned(),
            (None, Some(field), Some(code)) => format!("`{field}` is {code}"),
            _ => continue,
        };
        message.push_str("; ");
        message.push_str(&told);
    }
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Returns how long the rate limit holds, if the answer is about it.
fn rate_limit_wait(response: &WebResponse) -> Option<Duration> {
    if !matches!(response.status(), 403 | 429) {
        return None;
    }
    let number = |name: &str| response.header(name).and_then(|text| text.trim().parse().ok());
    if let Some(seconds) = number("retry-after") {
        return Some(Duration::from_secs(seconds));
    }
    let is_used_up = response.header("x-ratelimit-remaining").is_some_and(|it| it.trim() == "0");
    if is_used_up && let Some(reset) = number("x-ratelimit-reset") {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        return Some(Duration::from_secs(reset).saturating_sub(now));
    }
    // GitHub says nothing else of a limit on requests at once.
    (is_used_up || response.status() == 429).then_some(Duration::from_mins(1))
}

fn rate_limit_error(wait: Duration, has_token: bool) -> ToolError {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let (seconds, reset) = (wait.as_secs(), (now + wait).as_secs());
    let (hours, minutes) = (reset / 3600 % 24, reset / 60 % 60);
    let message = format!(
        "the rate limit of GitHub is used up; it ends at {hours:02}:{minutes:02}:{:02} UTC, in \
         {seconds} s",
        reset % 60
    );
    ToolError::unavailable(message).hint(match has_token {
        true => "go on with something else until then; do not try again before",
        false => {
            "go on with something else until then; with the variable `GITHUB_TOKEN` the user would \
             have more requests"
        }
    })
}
