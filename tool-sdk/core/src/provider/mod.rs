//! Tools, calls and results in the JSON formats of model providers and other programs. All functions
//! here are pure.
//!
//! A [`Dialect`] names a format. [`encode_tool`] and [`encode_tools`] write tool definitions in it,
//! and [`lint`] reports what it cannot express. A message of a model is a [`ModelMessage`], decoded
//! from a response or put together from a stream by a [`MessageAccumulator`]; [`encode_answers`]
//! writes the results of its calls. The output is deterministic: the same definitions in the same
//! order give the same bytes.
//!
//! **Invariant:** nothing here widens what a tool accepts. Where a format expresses less than the
//! schema, the description states the rest in words, and the tool still validates it.

mod anthropic;
mod common_subset;
mod content;
mod gemini;
mod keyword_descriptions;
mod lint;
mod mcp;
mod messages;
mod openai;
mod rewrite;
mod text_tool_calls;
mod tools_json;
mod unions;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

pub use self::content::content_parts;
pub use self::lint::{LintFinding, lint, lint_all};
pub use self::messages::{
    CallAnswer, MessageAccumulator, MessageDelta, ModelApi, ModelMessage, StopReason,
    StreamFailure, TokenUsage, UnknownModelApi, UnreadableResponse, encode_answers, encode_error,
    encode_user_message,
};
pub use self::text_tool_calls::parse_text_calls;
pub use self::tools_json::encode_legacy_tools;
use crate::tool::Definition;
use crate::toolset::ToolsetView;

/// A format for tool definitions.
///
/// # Examples
///
/// ```
/// use tool_sdk::provider::Dialect;
///
/// let dialect: Dialect = "openai-strict".parse()?;
/// assert_eq!(dialect, Dialect::OpenAiStrict);
/// assert_eq!(dialect.as_str(), "openai-strict");
/// # Ok::<(), tool_sdk::provider::UnknownDialect>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a program that writes all formats wants to know")]
pub enum Dialect {
    /// `tools/list` of the Model Context Protocol.
    Mcp,
    /// OpenAI functions, for chat completions.
    OpenAi,
    /// OpenAI functions, for the Responses API.
    OpenAiResponses,
    /// OpenAI functions in strict mode: the model can only send valid arguments.
    ///
    /// Optional parameters are nullable there, and types that strict mode does not support are sent
    /// as JSON text. So calls are decoded with
    /// [`Leniency::null_is_absent`](crate::Leniency::null_is_absent) and
    /// [`Leniency::stringified`](crate::Leniency::stringified).
    OpenAiStrict,
    /// OpenRouter functions.
    OpenRouter,
    /// Anthropic tools.
    Anthropic,
    /// Gemini functions, for the Interactions API.
    Gemini,
    /// Gemini function declarations, for `generateContent`.
    GeminiGenerate,
    /// The subset that every provider accepts.
    Portable,
    /// Complete definitions, to be loaded again.
    ToolsJson,
}

impl Dialect {
    /// All dialects, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::Mcp,
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::OpenAiStrict,
        Self::OpenRouter,
        Self::Anthropic,
        Self::Gemini,
        Self::GeminiGenerate,
        Self::Portable,
        Self::ToolsJson,
    ];

    /// Returns the name, as on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::OpenAiStrict => "openai-strict",
            Self::OpenRouter => "openrouter",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::GeminiGenerate => "gemini-generate",
            Self::Portable => "portable",
            Self::ToolsJson => "tools-json",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.as_str() == name);
        found.ok_or_else(|| UnknownDialect { name: name.chars().take(80).collect() })
    }
}

/// The error for an unknown dialect name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{name}`; expected one of {}", Dialect::ALL.map(Dialect::as_str).join(", "))]
pub struct UnknownDialect {
    name: String,
}

/// Encodes one tool in `dialect`.
///
/// # Examples
///
/// ```
/// use tool_sdk::provider::{self, Dialect};
/// use tool_sdk::{Definition, Schema, ToolName};
///
/// let schema = Schema::from_json(
///     r#"{"type": "object", "properties": { "text": { "type": "string" } }}"#,
/// )?;
/// let say = Definition::new(ToolName::new("say")?, "Says something aloud.", schema);
///
/// let tool = provider::encode_tool(&say, Dialect::Anthropic);
/// assert_eq!(tool["input_schema"]["properties"]["text"]["type"], "string");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn encode_tool(definition: &Definition, dialect: Dialect) -> Value {
    match dialect {
        Dialect::Mcp => mcp_tool(definition),
        Dialect::OpenAi | Dialect::OpenRouter => openai::encode_tool(definition),
        Dialect::OpenAiResponses => openai::encode_responses_tool(definition),
        Dialect::OpenAiStrict => openai::encode_strict_tool(definition),
        Dialect::Anthropic => anthropic::encode_tool(definition),
        Dialect::Gemini => gemini::encode_interactions_tool(definition),
        Dialect::GeminiGenerate => gemini::encode_declaration(definition),
        Dialect::Portable => common_subset::encode_tool(definition),
        Dialect::ToolsJson => tools_json::encode_tool(definition),
    }
}

/// Encodes all tools in `dialect`, in the given order, as the document that the format expects.
#[must_use]
pub fn encode_tools<'a>(
    definitions: impl IntoIterator<Item = &'a Definition>,
    dialect: Dialect,
) -> Value {
    let list: Vec<Value> =
        definitions.into_iter().map(|definition| encode_tool(definition, dialect)).collect();
    match dialect {
        Dialect::Mcp => json!({ "tools": list }),
        Dialect::ToolsJson => json!({ "version": 1, "tools": list }),
        _ => Value::Array(list),
    }
}

/// Returns the document for a view as JSON text. The text is cached in the view.
///
/// # Examples
///
/// ```
/// use tool_sdk::provider::{self, Dialect};
/// use tool_sdk::{Registry, Toolset};
///
/// let toolset = Toolset::new(Registry::builder().build()?);
/// assert_eq!(&*provider::encode_listing(&toolset.view(), Dialect::Mcp), r#"{"tools":[]}"#);
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[must_use]
pub fn encode_listing(view: &ToolsetView, dialect: Dialect) -> Arc<str> {
    match dialect {
        Dialect::Mcp => mcp_listing(view),
        _ => view.cached_text(dialect as usize, |view| {
            to_json_text(&encode_tools(view.definitions(), dialect))
        }),
    }
}

/// [`encode_listing`] in one dialect, for a server that needs no code for the others.
pub fn mcp_listing(view: &ToolsetView) -> Arc<str> {
    view.cached_text(Dialect::Mcp as usize, |view| {
        to_json_text(&mcp::ListToolsResult::from_definitions(view.definitions()))
    })
}

/// [`encode_tool`] in the same dialect.
pub fn mcp_tool(definition: &Definition) -> Value {
    json!(mcp::ListedTool::from_definition(definition))
}

/// Serialization cannot fail here, because all keys are strings.
fn to_json_text(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

/// Returns true if MCP clients get the tool's structured result as `{"result": ..}`, because it is
/// not an object.
#[must_use]
pub fn wraps_result(definition: &Definition) -> bool {
    definition.output.as_ref().is_some_and(mcp::is_wrapped)
}

/// Describes the tools as text for a prompt: each with its signature and its description.
///
/// # Examples
///
/// ```
/// use tool_sdk::provider;
/// use tool_sdk::{Definition, Schema, ToolName};
///
/// let schema = Schema::from_json(
///     r#"{"type": "object", "properties": { "text": { "type": "string" } }}"#,
/// )?;
/// let say = Definition::new(ToolName::new("say")?, "Says something aloud.", schema);
///
/// assert_eq!(
///     provider::describe_tools([&say]),
///     "- say {\"text\"?: string}\n  Says something aloud.\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn describe_tools<'a>(definitions: impl IntoIterator<Item = &'a Definition>) -> String {
    let mut text = String::new();
    for definition in definitions {
        text.push_str(&format!("- {} {}\n", definition.name, definition.parameters.signature()));
        for line in definition.description.trim().lines() {
            let line = line.trim_end();
            text.push_str(if line.is_empty() { "" } else { "  " });
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests;
