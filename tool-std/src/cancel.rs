//! Checks for cancellation in work on a blocking thread.

use tool_sdk::{ToolError, WorkStop};

/// Returns an error when the call was cancelled or timed out.
pub(crate) fn check_cancelled(stop: &WorkStop) -> Result<(), ToolError> {
    if stop.is_stopped() {
        return Err(ToolError::aborted("the call ended before the tool was done"));
    }
    Ok(())
}
