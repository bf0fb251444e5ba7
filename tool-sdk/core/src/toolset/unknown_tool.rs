//! Error messages for unknown tools, for models and for users of the command line.

use super::ToolsetView;
use crate::error::ToolError;
use crate::name::ToolName;

impl ToolsetView {
    /// Returns the error for an unknown tool, with similar names as a hint, or else the hint of
    /// `otherwise`.
    #[doc(hidden)]
    pub fn unknown_tool_error(&self, name: &str, otherwise: impl FnOnce() -> String) -> ToolError {
        ToolError::not_found(format_args!("there is no tool `{}`", printable_name(name)))
            .hint(self.suggest_names(name).unwrap_or_else(otherwise))
    }

    /// Returns a hint with the names that are similar to `name`, if there are any.
    #[doc(hidden)]
    pub fn suggest_names(&self, name: &str) -> Option<String> {
        let close = self.close_names(name);
        (!close.is_empty()).then(|| format!("did you mean `{}`?", close.join("` or `")))
    }
}

/// Returns the name on one line, truncated to the maximum length of a tool name.
pub fn printable_name(name: &str) -> String {
    let short: String = name.chars().take(ToolName::MAX).collect();
    short.escape_debug().to_string()
}
