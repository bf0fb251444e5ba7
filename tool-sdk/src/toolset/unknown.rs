//! What is said of a name that no tool has: to models, and to people at a command line.

use super::View;
use crate::error::ToolError;
use crate::name::ToolName;

impl View {
    /// That there is no tool called `name`, with the names that are close, or what to do
    /// `otherwise`.
    pub(crate) fn unknown(&self, name: &str, otherwise: impl FnOnce() -> String) -> ToolError {
        ToolError::not_found(format_args!("there is no tool `{}`", shown(name)))
            .hint(self.meant(name).unwrap_or_else(otherwise))
    }

    /// Which tools `name` may have been meant to name; nothing where none is close.
    pub(crate) fn meant(&self, name: &str) -> Option<String> {
        let close = self.close_names(name);
        (!close.is_empty()).then(|| format!("did you mean `{}`?", close.join("` or `")))
    }
}

/// As much of a name as a tool could have, on one line.
pub(crate) fn shown(name: &str) -> String {
    let short: String = name.chars().take(ToolName::MAX).collect();
    short.escape_debug().to_string()
}
