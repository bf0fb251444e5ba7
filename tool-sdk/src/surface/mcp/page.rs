//! Pages that some clients show with what a tool gives, and what each kind of client is told
//! of them.
//!
//! A tool names its page by a URI, see [`Display::ui`](crate::Display::ui); the host lends the
//! page. Clients of the extension MCP Apps say that they show pages. ChatGPT does not need to:
//! it is known by its name, and reads keys of its own beside those of the extension.
//!
//! **Invariant:** a client that shows no pages is told nothing of them.

use rmcp::model::{ClientCapabilities, ExtensionCapabilities, MetaObject};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::offer::Resource;
use crate::tool::Definition;

/// The extension by which clients show pages.
const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// What a page is for clients of the extension, and for ChatGPT.
const APP: &str = "text/html;profile=mcp-app";
const WIDGET: &str = "text/html+skybridge";
/// What the URI of a page begins with.
const SCHEME: &str = "ui://";
/// The longest text that ChatGPT shows beside a call.
const STATUS: usize = 64;

/// What a client shows beside text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Shows {
    /// Nothing.
    #[default]
    Text,
    /// Pages of the extension MCP Apps.
    Apps,
    /// The same, as ChatGPT has it.
    ChatGpt,
}

impl Shows {
    /// What a client of this name shows that can do this.
    pub(super) fn of(name: &str, can: Option<&ClientCapabilities>) -> Self {
        let name = name.to_ascii_lowercase();
        if name.starts_with("openai-mcp") || name.contains("chatgpt") {
            return Self::ChatGpt;
        }
        let extensions = can.and_then(|can| can.extensions.as_ref());
        let formats = extensions.and_then(|known| known.get(EXTENSION)?.get("mimeTypes"));
        let formats = formats.and_then(Value::as_array).into_iter().flatten();
        if formats.into_iter().any(|format| format == APP) { Self::Apps } else { Self::Text }
    }

    /// Whether the client is told of the tool. One that models are not told of may be there
    /// for a page.
    pub(super) fn lists(self, definition: &Definition) -> bool {
        !definition.flags.hidden || (self != Self::Text && definition.display.ui.is_some())
    }

    /// What stands beside a tool in the list.
    pub(super) fn of_tool(self, definition: &Definition) -> Option<MetaObject> {
        let uri = definition.display.ui.as_deref().filter(|_| self != Self::Text)?;
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
            add_status(&mut meta, definition);
        }
        object(meta)
    }

    /// What stands beside the result of a call that went well.
    pub(super) fn of_result(self, definition: &Definition) -> Option<MetaObject> {
        let uri = definition.display.ui.as_deref().filter(|_| self == Self::ChatGpt)?;
        let mut meta = json!({ "openai/outputTemplate": uri });
        meta["openai/resultCanProduceWidget"] = true.into();
        add_status(&mut meta, definition);
        object(meta)
    }

    /// Whether the client may see the resource.
    pub(super) fn sees(self, uri: &str) -> bool {
        self != Self::Text || !uri.starts_with(SCHEME)
    }

    /// The media type of pages.
    pub(super) const fn format(self) -> &'static str {
        match self {
            Self::ChatGpt => WIDGET,
            Self::Text | Self::Apps => APP,
        }
    }

    /// What a server with pages says that it can do.
    pub(super) fn extension(self) -> Option<ExtensionCapabilities> {
        let said = json!({ EXTENSION: { "mimeTypes": [APP] } });
        (self != Self::Text).then(|| ExtensionCapabilities::deserialize(&said).unwrap_or_default())
    }
}

/// What ChatGPT's user reads while a call runs, and when it is over.
fn add_status(meta: &mut Value, definition: &Definition) {
    let name = definition.display.name.as_deref().or(definition.title.as_deref());
    let name = name.unwrap_or(definition.name.as_str());
    for (key, what) in [("invoking", "is running"), ("invoked", "has run")] {
        let room = STATUS - what.len() - 1;
        let name: String = name.chars().take(room).collect();
        meta[format!("openai/toolInvocation/{key}")] = format!("{name} {what}").into();
    }
}

fn object(meta: Value) -> Option<MetaObject> {
    match meta {
        Value::Object(members) => Some(MetaObject(members)),
        _ => None,
    }
}

/// A page that the host lends.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) html: String,
}

impl Page {
    /// The page among other resources.
    pub(super) fn listed(&self, shows: Shows) -> Resource {
        Resource::new(self.uri.clone(), self.name.clone()).mime(shows.format())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::ToolName;
    use crate::schema::Schema;
    use crate::tool::Display;

    fn shows(name: &str, extensions: Value) -> Shows {
        let can = serde_json::from_value(json!({ "extensions": extensions })).unwrap();
        Shows::of(name, Some(&can))
    }

    // F135
    #[test]
    fn a_client_is_known_by_what_it_says() {
        let apps = json!({ EXTENSION: { "mimeTypes": ["text/plain", APP] } });
        assert_eq!(shows("editor", apps.clone()), Shows::Apps);
        assert_eq!(shows("openai-mcp", json!({})), Shows::ChatGpt);
        assert_eq!(shows("ChatGPT", apps), Shows::ChatGpt);
        assert_eq!(shows("editor", json!({ EXTENSION: {} })), Shows::Text);
        assert_eq!(
            shows("editor", json!({ EXTENSION: { "mimeTypes": ["text/html"] } })),
            Shows::Text
        );
        assert_eq!(Shows::of("", None), Shows::Text);
    }

    #[test]
    fn what_chatgpt_shows_beside_a_call_is_short() {
        let mut tool = Definition::new(ToolName::from_static("t"), "T.", Schema::default());
        tool = tool.display(Display {
            ui: Some("ui://t".to_owned()),
            name: Some("ä".repeat(100)),
            ..Display::default()
        });
        let meta = Shows::ChatGpt.of_result(&tool).unwrap().0;
        for key in ["openai/toolInvocation/invoking", "openai/toolInvocation/invoked"] {
            assert_eq!(meta[key].as_str().unwrap().chars().count(), STATUS, "{key}");
        }
    }
}
