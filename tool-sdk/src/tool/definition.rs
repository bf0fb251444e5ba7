//! Everything that is known about a tool before it is called: plain data.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ToolDisplay;
use crate::name::ToolName;
use crate::risk::Risk;
use crate::schema::Schema;

/// What the model, the host and people are told about a tool.
///
/// Written as JSON it is the same bytes every time.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Definition, Risk, RiskClass, Schema, ToolName};
///
/// let schema = Schema::from_json(r#"{
///     "type": "object",
///     "properties": { "text": { "type": "string", "description": "What to say." } },
///     "required": ["text"]
/// }"#)?;
/// let definition = Definition::new(ToolName::new("say")?, "Says something aloud.", schema)
///     .risk(Risk::new(RiskClass::Write));
///
/// assert_eq!(definition.permission(), "say");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Definition {
    /// The name by which it is called.
    pub name: ToolName,
    /// Other names for it, compared without case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<ToolName>,
    /// Names that it does not have, but would have with other tools beside it. What is forbidden
    /// under one of them is forbidden; it is never found by them, nor allowed.
    #[serde(skip)]
    pub(crate) also: Vec<ToolName>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'static, str>>,
    /// What it does and when to use it; the model's prompt.
    pub description: Cow<'static, str>,
    /// A group of tools, such as `filesystem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Cow<'static, str>>,
    /// The schema of the arguments.
    pub parameters: Schema,
    /// The schema of a structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Schema>,
    /// What running it can do.
    #[serde(default)]
    pub risk: Risk,
    /// The name under which rules speak of it, when that is not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Cow<'static, str>>,
    /// How it is shown to people.
    #[serde(default)]
    pub display: Arc<ToolDisplay>,
    /// Who may see it; everybody when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Cow<'static, str>>,
    /// How long a call may take, in milliseconds.
    #[serde(
        default,
        rename = "timeout_ms",
        skip_serializing_if = "Option::is_none",
        with = "millis"
    )]
    pub timeout: Option<Duration>,
    /// The most bytes of text that a call gives back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
    /// Which part of a text that is too long is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate: Option<Truncate>,
    /// Which calls may run beside it, when that does not follow from the risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
    /// What else is true of it.
    #[serde(default)]
    pub flags: Flags,
    /// Arguments that show how it is called, as JSON texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Cow<'static, str>>,
    /// What tells it from what it was before, where the rest of its definition does not: when
    /// it changes, approvals of a tool of somebody else are void.
    #[serde(skip)]
    pub revision: Option<String>,
    /// Where it comes from.
    #[serde(default)]
    pub source: ToolSource,
    /// Where it is written.
    #[serde(default, skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub place: Option<SourceLocation>,
}

/// Which part of a text that is too long is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Truncate {
    /// The first lines.
    Head,
    /// The last lines.
    Tail,
    /// Both ends.
    Middle,
    /// Everything: the tool keeps itself short.
    None,
}

/// Which calls may run at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Parallel {
    /// Any other shared call.
    Shared,
    /// None.
    Exclusive,
    /// Calls with another value of this argument.
    By(Cow<'static, str>),
}

/// Simple facts about a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Flags {
    /// Only a known user may call it.
    #[serde(skip_serializing_if = "is_false")]
    pub requires_auth: bool,
    /// Not listed for models; the host may call it.
    #[serde(skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Listed only where experiments are switched on.
    #[serde(skip_serializing_if = "is_false")]
    pub experimental: bool,
    /// Sends its output in parts while it runs.
    #[serde(skip_serializing_if = "is_false")]
    pub streaming: bool,
    /// Its function is an `async fn`: it waits without holding up what runs beside it. A fact
    /// about this program's code, so it is not written down.
    #[serde(skip)]
    pub is_async: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Where a tool comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolSource {
    /// This program.
    #[default]
    Native,
    /// A server of the Model Context Protocol.
    Mcp {
        /// Its name in the host's configuration.
        server: String,
    },
    /// A plugin.
    Plugin {
        /// Its id.
        id: String,
    },
    /// Somewhere else.
    Remote,
}

/// Where a tool is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "generated code writes it out")]
pub struct SourceLocation {
    /// The package.
    pub package: &'static str,
    /// The package's version.
    pub version: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line in it.
    pub line: u32,
}

impl Definition {
    /// A definition with everything else at its default.
    #[must_use]
    pub fn new(
        name: ToolName,
        description: impl Into<Cow<'static, str>>,
        parameters: Schema,
    ) -> Self {
        Self {
            name,
            aliases: Vec::new(),
            also: Vec::new(),
            title: None,
            description: description.into(),
            category: None,
            parameters,
            output: None,
            risk: Risk::default(),
            permission: None,
            display: Arc::default(),
            scopes: Vec::new(),
            timeout: None,
            max_output: None,
            truncate: None,
            parallel: None,
            flags: Flags::default(),
            examples: Vec::new(),
            revision: None,
            source: ToolSource::default(),
            place: None,
        }
    }

    /// Sets what running it can do.
    #[must_use]
    pub fn risk(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }

    /// Sets how it is shown to people.
    #[must_use]
    pub fn display(mut self, display: ToolDisplay) -> Self {
        self.display = Arc::new(display);
        self
    }

    /// Sets the time that a call may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Its name, and its aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        std::iter::once(&self.name).chain(&self.aliases).map(ToolName::as_str)
    }

    /// All names under which it may be forbidden.
    pub(crate) fn forbidden_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names().chain(self.also.iter().map(ToolName::as_str))
    }

    /// The name under which rules speak of the tool.
    #[must_use]
    pub fn permission(&self) -> &str {
        self.permission.as_deref().unwrap_or(self.name.as_str())
    }

    /// Which calls may run beside it: read tools are shared, others exclusive, unless the
    /// tool says otherwise.
    #[must_use]
    pub fn parallel(&self) -> Parallel {
        match &self.parallel {
            Some(parallel) => parallel.clone(),
            None if self.risk.is_read_only() => Parallel::Shared,
            None => Parallel::Exclusive,
        }
    }

    /// Whether it works on files, whatever it is called: its category is `filesystem`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Definition, Schema, ToolName};
    ///
    /// let mut shred = Definition::new(ToolName::new("shred")?, "Shreds.", Schema::default());
    /// assert!(!shred.is_file_operation());
    /// shred.category = Some("filesystem".into());
    /// assert!(shred.is_file_operation());
    /// # Ok::<(), tool_sdk::InvalidToolName>(())
    /// ```
    #[must_use]
    pub fn is_file_operation(&self) -> bool {
        self.is_in_category("filesystem")
    }

    /// Whether the tool belongs to `category`, such as `filesystem`.
    #[must_use]
    pub fn is_in_category(&self, category: &str) -> bool {
        self.category.as_deref() == Some(category)
    }

    /// Where the tool is written, for messages: `tool-std 0.1.0, src/fs/read.rs:12`.
    #[must_use]
    pub fn describe_location(&self) -> String {
        match (&self.place, &self.source) {
            (Some(place), _) => {
                format!("{} {}, {}:{}", place.package, place.version, place.file, place.line)
            }
            (None, ToolSource::Native) => "added by the host".to_owned(),
            (None, ToolSource::Mcp { server }) => format!("MCP server `{server}`"),
            (None, ToolSource::Plugin { id }) => format!("plugin `{id}`"),
            (None, ToolSource::Remote) => "a remote host".to_owned(),
        }
    }
}

/// How a definition differs in one session.
///
/// It changes what the model is told, never what is accepted: a parameter that is left
/// out of the list may still be sent.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Refinement, Session};
///
/// fn for_small_models(session: &Session) -> Refinement {
///     match session.model() {
///         Some("tiny") => Refinement::default().without("context"),
///         _ => Refinement::default(),
///     }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refinement {
    description: Option<String>,
    parameters: Vec<(String, String)>,
    without: Vec<String>,
}

impl Refinement {
    /// Replaces the description.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Replaces the description of a parameter.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.parameters.push((name.into(), text.into()));
        self
    }

    /// Leaves an optional parameter out of the list.
    #[must_use]
    pub fn without(mut self, name: impl Into<String>) -> Self {
        self.without.push(name.into());
        self
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// The definition as this session sees it.
    #[must_use]
    pub fn apply(&self, definition: &Definition) -> Definition {
        let mut refined = definition.clone();
        if let Some(description) = &self.description {
            refined.description = Cow::Owned(description.clone());
        }
        for (name, text) in &self.parameters {
            refined.parameters.set_description(name, text);
        }
        for name in &self.without {
            refined.parameters.hide_optional(name);
        }
        refined
    }
}

/// Durations as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it with a reference")]
    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
