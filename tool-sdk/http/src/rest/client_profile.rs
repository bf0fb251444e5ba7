//! Kinds of clients, and what their results have beyond plain JSON.
//!
//! **Invariant:** a client that no profile is for gets plain JSON, and keys of one client never
//! reach another one.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, USER_AGENT};
use serde_json::{Map, Value};
use tool_sdk_core::Definition;
use tool_sdk_mcp::internal::{chatgpt_result_meta, is_chatgpt};

/// The header with which a client says what it is; without it, `User-Agent` counts.
const CLIENT_NAME: HeaderName = HeaderName::from_static("client-name");

/// A kind of client with its own rendering of results and events.
///
/// [`RestOptions::with_client_profile`](super::RestOptions::with_client_profile) adds one. Of
/// several that apply, the one that was added last counts.
///
/// # Examples
///
/// ```
/// use serde_json::{Map, Value};
/// use tool_sdk::Definition;
/// use tool_sdk::http::ClientProfile;
///
/// /// The chat of a company, which shows a line for each call.
/// struct CompanyChat;
///
/// impl ClientProfile for CompanyChat {
///     fn applies_to(&self, client: &str) -> bool {
///         client.starts_with("company-chat/")
///     }
///
///     fn render_result(&self, tool: &Definition, result: &mut Map<String, Value>) {
///         result.insert("status_line".to_owned(), format!("{} has run", tool.name).into());
///     }
/// }
/// ```
pub trait ClientProfile: Send + Sync + 'static {
    /// Whether the profile is for a client: `client` is its header `Client-Name`, or else
    /// `User-Agent`.
    fn applies_to(&self, client: &str) -> bool;

    /// Changes the JSON of a successful result of `tool`.
    fn render_result(&self, tool: &Definition, result: &mut Map<String, Value>);

    /// Changes the JSON of an event of a call of `tool`, in the answer to that call. Does nothing
    /// by default.
    fn render_event(&self, tool: &Definition, event: &mut Map<String, Value>) {
        let _ = (tool, event);
    }
}

/// ChatGPT, which reads keys of its own from the results of tools with a page. Every server has
/// this profile.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ChatGptProfile;

impl ClientProfile for ChatGptProfile {
    fn applies_to(&self, client: &str) -> bool {
        is_chatgpt(client)
    }

    fn render_result(&self, tool: &Definition, result: &mut Map<String, Value>) {
        if let Some(meta) = chatgpt_result_meta(tool) {
            result.insert("_meta".to_owned(), Value::Object(meta));
        }
    }
}

/// The profile of a client for calls of one tool.
#[derive(Clone)]
pub(super) struct ToolRendering {
    pub(super) profile: Arc<dyn ClientProfile>,
    pub(super) tool: Arc<Definition>,
}

impl ToolRendering {
    pub(super) fn render_result(&self, result: &mut Value) {
        if let Value::Object(members) = result {
            self.profile.render_result(&self.tool, members);
        }
    }

    pub(super) fn render_event(&self, event: &mut Value) {
        if let Value::Object(members) = event {
            self.profile.render_event(&self.tool, members);
        }
    }
}

/// Returns the profile for the client of a request.
pub(super) fn find_profile(
    profiles: &[Arc<dyn ClientProfile>],
    headers: &HeaderMap,
) -> Option<Arc<dyn ClientProfile>> {
    let name = headers.get(&CLIENT_NAME).or_else(|| headers.get(USER_AGENT))?.to_str().ok()?;
    profiles.iter().rev().find(|profile| profile.applies_to(name)).cloned()
}
