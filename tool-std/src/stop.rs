//! How work on a blocking thread ends when nobody waits for it any more.

use tool_sdk::{Stop, ToolError};

/// Ends the work with an error when its call is over.
pub(crate) fn check(stop: &Stop) -> Result<(), ToolError> {
    if stop.is_stopped() {
        return Err(ToolError::aborted("the call ended before the tool was done"));
    }
    Ok(())
}
