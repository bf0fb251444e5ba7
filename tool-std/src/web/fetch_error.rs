//! Errors of the client, for the model.

use tool_sdk::ToolError;
use tool_sdk::net::FetchError;

/// Returns the error with what the model can do.
pub(crate) fn to_tool_error(error: FetchError) -> ToolError {
    let message = error.to_string();
    let told = match &error {
        FetchError::Refused(refused) => ToolError::invalid_args(message).hint(refused.hint()),
        FetchError::PrivateAddress { .. } => ToolError::invalid_args(message).hint(
            "only hosts of the internet are reached; the user may name others with `--web-hosts`",
        ),
        FetchError::UnknownHost { .. } => {
            ToolError::not_found(message).hint("check the host's name")
        }
        FetchError::Connect { .. } => ToolError::unavailable(message)
            .hint("the host may be down, or have no `https`; use another page, or try again later"),
        FetchError::Timeout(_) => {
            ToolError::timeout(message).hint("use another page, or try again later")
        }
        FetchError::BodyTooLarge(_) => {
            ToolError::failed(message).hint("use a smaller page, or download it with a command")
        }
        _ => ToolError::failed(message).hint("use another page"),
    };
    told.source(error)
}

/// Returns the error for a response that is not a success.
pub(crate) fn status_error(status: u16, url: &str) -> ToolError {
    let message = format!("`{url}` answers with HTTP {status}");
    match status {
        404 | 410 => ToolError::not_found(message).hint("check the URL, or search for the page"),
        401 | 402 | 403 | 407 | 451 => {
            ToolError::failed(message).hint("the page is not open to everyone; use another one")
        }
        408 | 425 | 429 | 500.. => {
            ToolError::unavailable(message).hint("try again later, or use another page")
        }
        _ => ToolError::failed(message).hint("use another page"),
    }
}
