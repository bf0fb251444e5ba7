//! The definition of a tool: plain data, known before any call.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ToolDisplay;
use crate::name::ToolName;
use crate::risk::Risk;
use crate::schema::Schema;

/// The definition of a tool, for the model, the host and people.
///
/// Its JSON is deterministic.
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
    /// The name of the tool.
    pub name: ToolName,
    /// Other names of the tool, compared without case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<ToolName>,
    /// Names that the tool would have if other tools were registered. Denials of these names
    /// apply to the tool; lookups and permissions do not use them.
    #[serde(skip)]
    pub also: Vec<ToolName>,
    /// A title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'static, str>>,
    /// What the tool does and when to use it; part of the model's prompt.
    pub description: Cow<'static, str>,
    /// A group of tools, such as `filesystem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Cow<'static, str>>,
    /// The schema of the arguments.
    pub parameters: Schema,
    /// The schema of a structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Schema>,
    /// What the tool can do at worst.
    #[serde(default)]
    pub risk: Risk,
    /// The permission name for rules, if it differs from the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Cow<'static, str>>,
    /// How calls are shown to people.
    #[serde(default)]
    pub display: Arc<ToolDisplay>,
    /// The scopes in which the tool is visible; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Cow<'static, str>>,
    /// The time limit of a call, in milliseconds.
    #[serde(
        default,
        rename = "timeout_ms",
        skip_serializing_if = "Option::is_none",
        with = "millis"
    )]
    pub timeout: Option<Duration>,
    /// The maximum bytes of text in a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
    /// Which part of a truncated text is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate: Option<Truncate>,
    /// Which calls may run at the same time, if that does not follow from the risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
    /// Whether MCP clients may run its calls as tasks.
    #[serde(default, skip_serializing_if = "TaskSupport::is_forbidden")]
    pub task_support: TaskSupport,
    /// Other facts about the tool.
    #[serde(default)]
    pub flags: Flags,
    /// Example arguments, as JSON texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Cow<'static, str>>,
    /// A revision that changes whenever the behaviour of the tool changes without a change of the
    /// other fields. A new revision voids the grants of a tool from another server.
    #[serde(skip)]
    pub revision: Option<String>,
    /// Where the tool comes from.
    #[serde(default)]
    pub source: ToolSource,
    /// The source location of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub place: Option<SourceLocation>,
}

/// Which part of a truncated text is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "each crate of the SDK handles every variant")]
pub enum Truncate {
    /// The first lines.
    Head,
    /// The last lines.
    Tail,
    /// Both ends.
    Middle,
    /// Everything: the tool limits its output itself.
    None,
}

/// Which calls may run at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "each crate of the SDK handles every variant")]
pub enum Parallel {
    /// All other shared calls.
    Shared,
    /// No other call.
    Exclusive,
    /// Calls with a different value of this argument.
    By(Cow<'static, str>),
}

/// Whether MCP clients may run the calls of a tool as tasks: the call runs on while its client
/// disconnects, and the client collects the result later. Other callers wait for the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these three")]
pub enum TaskSupport {
    /// Every client waits for the result.
    #[default]
    Forbidden,
    /// A client may run a call as a task or wait for the result.
    Optional,
    /// Clients that do not support tasks cannot call the tool.
    Required,
}

impl TaskSupport {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_forbidden(&self) -> bool {
        *self == Self::Forbidden
    }
}

/// Facts about a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Flags {
    /// Only calls with a known user are allowed.
    #[serde(skip_serializing_if = "is_false")]
    pub requires_auth: bool,
    /// Not visible to models; the host may call it.
    #[serde(skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Visible only where experimental tools are enabled.
    #[serde(skip_serializing_if = "is_false")]
    pub experimental: bool,
    /// Emits its output in parts while it runs.
    #[serde(skip_serializing_if = "is_false")]
    pub streaming: bool,
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
        /// The plugin's id.
        id: String,
    },
    /// The workers of a namespace, on other machines.
    Remote {
        /// The namespace, as the host's configuration names it.
        namespace: String,
    },
}

/// The source location of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "generated code constructs it")]
pub struct SourceLocation {
    /// The package.
    pub package: &'static str,
    /// The package's version.
    pub version: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line in the file.
    pub line: u32,
}

impl Definition {
    /// Creates a definition with defaults for everything else.
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
            task_support: TaskSupport::default(),
            flags: Flags::default(),
            examples: Vec::new(),
            revision: None,
            source: ToolSource::default(),
            place: None,
        }
    }

    /// Sets the risk.
    #[must_use]
    pub fn risk(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }

    /// Sets the display metadata.
    #[must_use]
    pub fn display(mut self, display: ToolDisplay) -> Self {
        self.display = Arc::new(display);
        self
    }

    /// Sets the time limit of a call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets whether MCP clients may run its calls as tasks.
    #[must_use]
    pub fn task_support(mut self, task_support: TaskSupport) -> Self {
        self.task_support = task_support;
        self
    }

    /// Returns the name and the aliases.
    #[doc(hidden)]
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        std::iter::once(&self.name).chain(&self.aliases).map(ToolName::as_str)
    }

    /// Returns all names under which the tool may be denied.
    pub(crate) fn forbidden_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names().chain(self.also.iter().map(ToolName::as_str))
    }

    /// Returns the permission name for rules.
    #[must_use]
    pub fn permission(&self) -> &str {
        self.permission.as_deref().unwrap_or(self.name.as_str())
    }

    /// Returns which calls may run at the same time: read tools are shared, others exclusive,
    /// unless the tool declares otherwise.
    #[must_use]
    pub fn parallel(&self) -> Parallel {
        match &self.parallel {
            Some(parallel) => parallel.clone(),
            None if self.risk.is_read_only() => Parallel::Shared,
            None => Parallel::Exclusive,
        }
    }

    /// Returns whether the tool works on files: its category is `filesystem`.
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

    /// Returns whether the tool belongs to `category`, such as `filesystem`.
    #[must_use]
    pub fn is_in_category(&self, category: &str) -> bool {
        self.category.as_deref() == Some(category)
    }

    /// Returns the source location for messages: `tool-std 0.1.0, src/fs/read.rs:12`.
    #[must_use]
    pub fn describe_location(&self) -> String {
        match (&self.place, &self.source) {
            (Some(place), _) => {
                format!("{} {}, {}:{}", place.package, place.version, place.file, place.line)
            }
            (None, ToolSource::Native) => "added by the host".to_owned(),
            (None, ToolSource::Mcp { server }) => format!("MCP server `{server}`"),
            (None, ToolSource::Plugin { id }) => format!("plugin `{id}`"),
            (None, ToolSource::Remote { namespace }) => format!("workers of `{namespace}`"),
        }
    }
}

/// How a definition differs in one session.
///
/// It changes what the model sees, never what is accepted: a removed parameter may still be sent.
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

    /// Removes an optional parameter from the visible schema.
    #[must_use]
    pub fn without(mut self, name: impl Into<String>) -> Self {
        self.without.push(name.into());
        self
    }

    /// Returns whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Returns the definition as the session sees it.
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

/// Serializes durations as whole milliseconds.
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
