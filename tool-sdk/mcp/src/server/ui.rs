//! UI pages that some clients show beside the result of a tool, and the metadata for them.
//!
//! A tool names its page by a URI, see [`Display::ui`](tool_sdk_core::ToolDisplay::ui); the host supplies the
//! page. Clients announce the extension MCP Apps if they show pages. ChatGPT does not announce it:
//! it is recognized by its name, and reads keys of its own beside those of the extension.
//!
//! **Invariant:** a client that shows no pages gets no metadata about them.

use rmcp::model::{ClientCapabilities, ExtensionCapabilities, MetaObject};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tool_sdk_core::Definition;

use super::resources::ResourceDefinition;

/// The extension with which clients announce that they show pages.
const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The MIME type of a page for clients of the extension, and for ChatGPT.
const MCP_APP_MIME_TYPE: &str = "text/html;profile=mcp-app";
const CHATGPT_MIME_TYPE: &str = "text/html+skybridge";
/// The scheme of page URIs.
const UI_SCHEME: &str = "ui://";
/// The longest status text that ChatGPT shows beside a call.
const MAX_STATUS_CHARS: usize = 64;

/// Which UI pages a client shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum UiSupport {
    /// None.
    #[default]
    TextOnly,
    /// Pages of the extension MCP Apps.
    McpApps,
    /// Pages of the extension, with ChatGPT's own keys.
    ChatGpt,
}

impl UiSupport {
    /// Determines the UI support of a client from its name and its capabilities.
    pub(super) fn detect(name: &str, can: Option<&ClientCapabilities>) -> Self {
        if is_chatgpt(name) {
            return Self::ChatGpt;
        }
        let extensions = can.and_then(|can| can.extensions.as_ref());
        let formats = extensions.and_then(|known| known.get(UI_EXTENSION)?.get("mimeTypes"));
        let formats = formats.and_then(Value::as_array).into_iter().flatten();
        if formats.into_iter().any(|format| format == MCP_APP_MIME_TYPE) {
            Self::McpApps
        } else {
            Self::TextOnly
        }
    }

    /// Returns true if the client's tool list shows the tool. A tool that is hidden from models may
    /// still be called by a page.
    pub(super) fn lists_tool(self, definition: &Definition) -> bool {
        !definition.flags.hidden || (self != Self::TextOnly && definition.display.ui.is_some())
    }

    /// Returns the `_meta` of a tool in the list.
    pub(super) fn tool_meta(self, definition: &Definition) -> Option<MetaObject> {
        let uri = definition.display.ui.as_deref().filter(|_| self != Self::TextOnly)?;
        let mut ui = json!({ "resourceUri": uri });
        if definition.flags.hidden {
            ui["visibility"] = json!(["app"]);
        }
        let mut meta = json!({ "ui": ui, "ui/resourceUri": uri });
        if self == Self::ChatGpt {
            meta["openai/outputTemplate"] = uri.into();
            meta["openai/widgetAccessible"] = true.into();
            meta["openai/resultCanProduceWidget"] = true.into();
            if definition.flags.hidden {
                meta["openai/visibility"] = "private".into();
            }
            add_chatgpt_status(&mut meta, definition);
        }
        into_meta(meta)
    }

    /// Returns the `_meta` of a successful result.
    pub(super) fn result_meta(self, definition: &Definition) -> Option<MetaObject> {
        let uri = definition.display.ui.as_deref().filter(|_| self == Self::ChatGpt)?;
        let mut meta = json!({ "openai/outputTemplate": uri });
        meta["openai/resultCanProduceWidget"] = true.into();
        add_chatgpt_status(&mut meta, definition);
        into_meta(meta)
    }

    /// Returns true if the client may read the resource.
    pub(super) fn can_read(self, uri: &str) -> bool {
        self != Self::TextOnly || !uri.starts_with(UI_SCHEME)
    }

    /// The MIME type of pages.
    pub(super) const fn page_mime_type(self) -> &'static str {
        match self {
            Self::ChatGpt => CHATGPT_MIME_TYPE,
            Self::TextOnly | Self::McpApps => MCP_APP_MIME_TYPE,
        }
    }

    /// Returns the extension capability that a server with pages announces.
    pub(super) fn server_extension(self) -> Option<ExtensionCapabilities> {
        let said = json!({ UI_EXTENSION: { "mimeTypes": [MCP_APP_MIME_TYPE] } });
        (self != Self::TextOnly)
            .then(|| ExtensionCapabilities::deserialize(&said).unwrap_or_default())
    }
}

/// Returns true if a client with this name is ChatGPT.
pub fn is_chatgpt(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("openai-mcp") || name.contains("chatgpt")
}

/// Returns the keys of ChatGPT for a successful result of a tool with a page.
pub fn chatgpt_result_meta(definition: &Definition) -> Option<Map<String, Value>> {
    Some(UiSupport::ChatGpt.result_meta(definition)?.0)
}

/// Adds the status texts that ChatGPT shows while a call runs and afterwards.
fn add_chatgpt_status(meta: &mut Value, definition: &Definition) {
    let name = definition.display.name.as_deref().or(definition.title.as_deref());
    let name = name.unwrap_or(definition.name.as_str());
    for (key, what) in [("invoking", "is running"), ("invoked", "has run")] {
        let room = MAX_STATUS_CHARS - what.len() - 1;
        let name: String = name.chars().take(room).collect();
        meta[format!("openai/toolInvocation/{key}")] = format!("{name} {what}").into();
    }
}

fn into_meta(meta: Value) -> Option<MetaObject> {
    match meta {
        Value::Object(members) => Some(MetaObject(members)),
        _ => None,
    }
}

/// A page that the host supplies.
#[derive(Clone, Debug)]
pub(super) struct UiPage {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) html: String,
}

impl UiPage {
    /// Returns the page as an entry of the resource list.
    pub(super) fn to_resource(&self, shows: UiSupport) -> ResourceDefinition {
        ResourceDefinition::new(self.uri.clone(), self.name.clone())
            .with_mime_type(shows.page_mime_type())
    }
}

#[cfg(test)]
mod tests {
    use tool_sdk_core::{Schema, ToolDisplay, ToolName};

    use super::*;

    fn shows(name: &str, extensions: Value) -> UiSupport {
        let can = serde_json::from_value(json!({ "extensions": extensions })).unwrap();
        UiSupport::detect(name, Some(&can))
    }

    // F135
    #[test]
    fn a_client_is_known_by_what_it_says() {
        let apps = json!({ UI_EXTENSION: { "mimeTypes": ["text/plain", MCP_APP_MIME_TYPE] } });
        assert_eq!(shows("editor", apps.clone()), UiSupport::McpApps);
        assert_eq!(shows("openai-mcp", json!({})), UiSupport::ChatGpt);
        assert_eq!(shows("ChatGPT", apps), UiSupport::ChatGpt);
        assert_eq!(shows("editor", json!({ UI_EXTENSION: {} })), UiSupport::TextOnly);
        assert_eq!(
            shows("editor", json!({ UI_EXTENSION: { "mimeTypes": ["text/html"] } })),
            UiSupport::TextOnly
        );
        assert_eq!(UiSupport::detect("", None), UiSupport::TextOnly);
    }

    #[test]
    fn what_chatgpt_shows_beside_a_call_is_short() {
        let mut tool = Definition::new(ToolName::from_static("t"), "T.", Schema::default());
        let mut display = ToolDisplay::default();
        (display.ui, display.name) = (Some("ui://t".to_owned()), Some("ä".repeat(100)));
        tool = tool.display(display);
        let meta = UiSupport::ChatGpt.result_meta(&tool).unwrap().0;
        for key in ["openai/toolInvocation/invoking", "openai/toolInvocation/invoked"] {
            assert_eq!(meta[key].as_str().unwrap().chars().count(), MAX_STATUS_CHARS, "{key}");
        }
    }
}
