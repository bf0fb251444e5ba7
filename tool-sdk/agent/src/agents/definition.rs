//! One agent.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tool_sdk_core::{AgentProfile, IntoTools, RegistryError, Tool, ToolAudience, Toolset};

use crate::model::ReasoningEffort;
use crate::spending::SpendingLimits;

/// An agent: its name, what it is told, and what it may do.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::AgentDefinition;
/// use tool_sdk::{AgentProfile, Mode};
///
/// let profile = AgentProfile::new("reviewer").only(["read*", "grep"]).mode(Mode::Plan);
/// let reviewer = AgentDefinition::new(profile, "Reviews changes")
///     .with_prompt("Look for bugs. Name the file and the line of each.");
/// assert_eq!(reviewer.name(), "reviewer");
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentDefinition {
    /// The name, and the tools, rules and mode.
    pub profile: AgentProfile,
    /// When to use the agent, for models and users; one line.
    pub description: String,
    /// What the agent is told, behind the program's system prompt; may be empty.
    pub prompt: String,
    /// The model, as `PROVIDER/NAME` or as the program names it; that of the program without it.
    pub model: Option<String>,
    /// How much the model thinks.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Whether users or other agents start it.
    pub usage: AgentUsage,
    /// The turns of one run.
    pub max_turns: Option<u32>,
    /// What one run may spend.
    pub limits: SpendingLimits,
    /// Where the definition comes from.
    pub origin: AgentOrigin,
    /// What of the file has no effect, for the user.
    pub notes: Vec<String>,
    tools: Vec<Arc<dyn Tool>>,
}

/// Which callers may start an agent: users, other agents, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentUsage {
    /// Users and other agents.
    #[default]
    Any,
    /// Users.
    Primary,
    /// Other agents.
    Subagent,
}

impl AgentUsage {
    /// Returns `any`, `primary` or `subagent`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Primary => "primary",
            Self::Subagent => "subagent",
        }
    }
}

/// Where an agent comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentOrigin {
    /// The SDK.
    BuiltIn,
    /// The program.
    Program,
    /// A file of the user.
    User(PathBuf),
    /// A file of a trusted project.
    Project(PathBuf),
    /// A file of a plugin that the user enabled.
    Plugin(PathBuf),
}

impl AgentOrigin {
    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::User(path) | Self::Project(path) | Self::Plugin(path) => Some(path),
            _ => None,
        }
    }

    /// Returns `built-in`, `program`, `user`, `project` or `plugin`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Program => "program",
            Self::User(_) => "user",
            Self::Project(_) => "project",
            Self::Plugin(_) => "plugin",
        }
    }
}

impl fmt::Debug for AgentDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentDefinition")
            .field("name", &self.name())
            .field("origin", &self.origin)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

impl AgentDefinition {
    /// Creates an agent of the program.
    #[must_use]
    pub fn new(profile: AgentProfile, description: impl Into<String>) -> Self {
        Self {
            profile,
            description: description.into(),
            prompt: String::new(),
            model: None,
            reasoning_effort: None,
            usage: AgentUsage::default(),
            max_turns: None,
            limits: SpendingLimits::default(),
            origin: AgentOrigin::Program,
            notes: Vec::new(),
            tools: Vec::new(),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.profile.name
    }

    /// Sets what the agent is told.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets who starts the agent.
    #[must_use]
    pub fn with_usage(mut self, usage: AgentUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets what one run may spend.
    #[must_use]
    pub fn with_limits(mut self, limits: SpendingLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the turns of one run.
    #[must_use]
    pub fn with_max_turns(mut self, turns: u32) -> Self {
        self.max_turns = Some(turns);
        self
    }

    /// Adds tools that only this agent has.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::agent::{AgentCatalog, AgentDefinition};
    /// use tool_sdk::{AgentProfile, Registry, Session, Toolset, tool, tools};
    ///
    /// /// Tell the score of the game.
    /// #[tool(read)]
    /// fn score() -> String {
    ///     "2:1".to_owned()
    /// }
    ///
    /// let referee = AgentDefinition::new(AgentProfile::new("referee"), "Knows the rules")
    ///     .with_tools(tools![score]);
    /// let catalog = AgentCatalog::built_in().with_agent(referee);
    /// let toolset = catalog.add_to(Toolset::new(Registry::default()))?;
    ///
    /// let referee = Session::new("s").with_agent("referee");
    /// assert!(toolset.view_for(&referee).get("score").is_some());
    /// assert!(toolset.view_for(&Session::new("s")).get("score").is_none());
    /// # Ok::<(), tool_sdk::RegistryError>(())
    /// ```
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoTools) -> Self {
        self.tools.extend(tools.into_tools());
        self
    }

    /// Makes the limits at least as strict as those of the agent that this one replaces, and keeps the
    /// model that was chosen for it.
    pub(super) fn keep_limits_of(&mut self, replaced: &Self) {
        let (own, other) = (&mut self.limits, &replaced.limits);
        own.max_tokens = stricter_limit(own.max_tokens, other.max_tokens, u64::min);
        own.max_cost = stricter_limit(own.max_cost, other.max_cost, f64::min);
        own.max_calls = stricter_limit(own.max_calls, other.max_calls, u64::min);
        own.max_duration = stricter_limit(own.max_duration, other.max_duration, Duration::min);
        self.max_turns = stricter_limit(self.max_turns, replaced.max_turns, u32::min);
        if let Some(model) = &replaced.model {
            if self.model.as_ref().is_some_and(|own| own != model) {
                self.notes.push(format!("the agent that it replaces has the model `{model}`"));
            }
            self.model = Some(model.clone());
        }
    }

    /// Adds the profile and the tools of the agent to a toolset.
    pub(super) fn add_to(&self, toolset: Toolset) -> Result<Toolset, RegistryError> {
        let toolset = toolset.with_agent(self.profile.clone());
        if !self.tools.is_empty() {
            toolset.add_for(ToolAudience::agent(self.name()), self.tools.clone())?;
        }
        Ok(toolset)
    }
}

/// Returns the stricter of two limits, of which one or both may be missing.
fn stricter_limit<T>(one: Option<T>, other: Option<T>, min: fn(T, T) -> T) -> Option<T> {
    one.into_iter().chain(other).reduce(min)
}
