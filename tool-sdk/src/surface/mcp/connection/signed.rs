//! Who a result is of. Modern peers never heard a greeting, and are told with each.
//!
//! **Invariant:** legacy peers, who were told once, are not told again.

use rmcp::model::{
    CallToolResponse, CallToolResult, CompleteResult, GetPromptResponse, GetPromptResult,
    Implementation, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, MetaObject, ReadResourceResult,
};
use serde_json::json;

use super::super::listing::Era;
use super::Connection;

/// The key under which a result says who it is of.
const KEY: &str = "io.modelcontextprotocol/serverInfo";

/// A result that has room for it.
pub(super) trait Signable {
    fn meta(&mut self) -> Option<&mut Option<MetaObject>>;
}

macro_rules! signable {
    ($($result:ty),*) => {
        $(impl Signable for $result {
            fn meta(&mut self) -> Option<&mut Option<MetaObject>> {
                Some(&mut self.meta)
            }
        })*
    };
}

signable!(
    CallToolResult,
    CompleteResult,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourceTemplatesResult,
    ListResourcesResult,
    ListToolsResult,
    ReadResourceResult
);

impl Signable for CallToolResponse {
    fn meta(&mut self) -> Option<&mut Option<MetaObject>> {
        match self {
            Self::Complete(result) => result.meta(),
            Self::InputRequired(more) => more.meta(),
            _ => None,
        }
    }
}

impl Signable for GetPromptResponse {
    fn meta(&mut self) -> Option<&mut Option<MetaObject>> {
        match self {
            Self::Complete(result) => result.meta(),
            Self::InputRequired(more) => more.meta(),
            _ => None,
        }
    }
}

impl Connection {
    /// What peers are told that they talk to.
    pub(super) fn identity(&self) -> Implementation {
        Implementation::new(self.server.name.clone(), self.server.version.clone())
    }

    /// The result as one of this server, where the peer does not know that.
    pub(super) fn signed<T: Signable>(&self, era: Era, mut result: T) -> T {
        if era == Era::Modern
            && let Some(meta) = result.meta()
        {
            meta.get_or_insert_default().insert(KEY.to_owned(), json!(self.identity()));
        }
        result
    }
}
