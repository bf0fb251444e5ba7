//! The error "URL elicitation required" of servers of 2025-11-25: the tool runs only after the user has
//! opened an address.
//!
//! The user is shown the addresses like those of a request during the call, and decides. The call is not
//! repeated here, because only the user knows when the work at the address is done.
//!
//! **Invariant:** the model never gets an address from the error, which could lead anywhere.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use crate::client::remote::{RemoteCall, RemoteError};

/// The code of the error; later revisions have no such error.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Shows the user the addresses that the error of a call names, and returns the error for the model. Any
/// other error is returned as it is.
pub(super) async fn show_required_urls(error: RemoteError, call: &RemoteCall<'_>) -> RemoteError {
    let Some(elicitations) = required_elicitations(&error) else { return error };
    for params in elicitations {
        let shown = call.request_handler.handle_request("elicitation/create", params).await;
        let why = match shown {
            Ok(answer) if answer["action"] == "accept" => continue,
            Ok(_) => "the user did not agree, or cannot be shown it",
            Err(_) => "the user's configuration does not let this server show addresses",
        };
        return with_cause(
            format!("the server needs the user to open an address first; {why}"),
            error,
        );
    }
    let words = "the server needs the user to open an address first, and the user has agreed to; call the \
                 tool again when the user says that it is done";
    with_cause(words.to_owned(), error)
}

/// Returns the elicitations of the error, if it is one that requires some.
fn required_elicitations(error: &RemoteError) -> Option<Vec<Value>> {
    let said = error.source.as_ref()?.downcast_ref::<ErrorData>()?;
    if said.code != URL_ELICITATION_REQUIRED {
        return None;
    }
    let elicitations = said.data.as_ref()?.get("elicitations")?.as_array()?.clone();
    let are_urls = elicitations.iter().all(|params| params["mode"] == "url");
    (are_urls && !elicitations.is_empty()).then_some(elicitations)
}

fn with_cause(words: String, error: RemoteError) -> RemoteError {
    let told = RemoteError::protocol(words).not_run();
    match error.source {
        Some(source) => told.with_source(source),
        None => told,
    }
}
