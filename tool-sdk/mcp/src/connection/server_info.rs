//! Adds the server's name and version to results for modern clients, which never see the response
//! of `initialize`.
//!
//! **Invariant:** results for legacy clients are unchanged.

use rmcp::model::{
    CallToolResponse, CallToolResult, CompleteResult, GetPromptResponse, GetPromptResult,
    Implementation, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, MetaObject, ReadResourceResult,
};
use serde_json::json;

use super::Connection;
use crate::listing::ProtocolEra;

/// The key of the server info in `_meta`.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// A result with `_meta`.
pub(super) trait ResultMeta {
    fn meta_mut(&mut self) -> Option<&mut Option<MetaObject>>;
}

macro_rules! impl_result_meta {
    ($($result:ty),*) => {
        $(impl ResultMeta for $result {
            fn meta_mut(&mut self) -> Option<&mut Option<MetaObject>> {
                Some(&mut self.meta)
            }
        })*
    };
}

impl_result_meta!(
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

impl ResultMeta for CallToolResponse {
    fn meta_mut(&mut self) -> Option<&mut Option<MetaObject>> {
        match self {
            Self::Complete(result) => result.meta_mut(),
            Self::InputRequired(more) => more.meta_mut(),
            _ => None,
        }
    }
}

impl ResultMeta for GetPromptResponse {
    fn meta_mut(&mut self) -> Option<&mut Option<MetaObject>> {
        match self {
            Self::Complete(result) => result.meta_mut(),
            Self::InputRequired(more) => more.meta_mut(),
            _ => None,
        }
    }
}

impl Connection {
    /// Returns the name and version that clients see.
    pub(super) fn server_info(&self) -> Implementation {
        Implementation::new(self.server.name.clone(), self.server.version.clone())
    }

    /// Adds the server info if the client is modern.
    pub(super) fn with_server_info<T: ResultMeta>(&self, era: ProtocolEra, mut result: T) -> T {
        if era == ProtocolEra::Modern
            && let Some(meta) = result.meta_mut()
        {
            meta.get_or_insert_default()
                .insert(SERVER_INFO_KEY.to_owned(), json!(self.server_info()));
        }
        result
    }
}
