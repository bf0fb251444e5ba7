//! What becomes of a result that a hook failed to look at: nothing that the hook left half done
//! is shown.

use super::broke;
use crate::content::Output;
use crate::error::ToolError;
use crate::hook::Registered;

/// What is shown where the hook that looks at the result now fails.
pub(super) enum Before {
    /// Nothing.
    Withheld,
    /// The result as it was before the hook.
    Stands(Box<Result<Output, ToolError>>),
}

impl Before {
    #[inline(never)]
    pub(super) fn copied(result: &Result<Output, ToolError>) -> Self {
        Self::Stands(Box::new(copied(result)))
    }

    #[cold]
    pub(super) fn instead(self, hook: &Registered, error: ToolError) -> Result<Output, ToolError> {
        match self {
            Self::Stands(result) => *result,
            Self::Withheld => {
                let what = broke(hook, &error);
                Err(ToolError::failed(format_args!("{what}, so the result is not shown"))
                    .hint("the tool has run; its effect is not undone")
                    .source(error))
            }
        }
    }
}

/// The result once more; of an error, what the model reads.
fn copied(result: &Result<Output, ToolError>) -> Result<Output, ToolError> {
    match result {
        Ok(output) => Ok(output.clone()),
        Err(error) => {
            let copy = ToolError::new(error.kind(), error.message());
            Err(match error.suggestion() {
                Some(hint) => copy.hint(hint),
                None => copy,
            })
        }
    }
}
