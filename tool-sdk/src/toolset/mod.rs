//! The registry as one audience sees it.
//!
//! What is not in a toolset cannot be called through it. Additions at run time belong to
//! the one toolset that they were made on. Which tools there are is said by the host, in
//! patterns and profiles; nothing here knows a tool or a model by its name.

mod agent;
mod filter;
mod model;
mod rules;
mod search;
mod select;
#[cfg(test)]
mod tests;
mod unknown;
mod variant;
mod view;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::watch;

pub use self::agent::AgentProfile;
use self::filter::Filter;
pub use self::model::ModelProfile;
pub(crate) use self::rules::is_about_files;
#[cfg(feature = "cli")]
pub(crate) use self::rules::{nearly_names, passed_over};
#[cfg(feature = "cli")]
pub(crate) use self::select::any_forbids;
#[cfg(feature = "cli")]
pub(crate) use self::unknown::shown;
pub use self::variant::{UnknownVariant, Variants};
pub use self::view::View;
use crate::context::Session;
use crate::hook::{Hook, Priority, Registered};
use crate::permission::{Mode, Rule, Ruleset};
use crate::registry::{Registry, RegistryError};
use crate::tool::{IntoTools, Tool};

/// The registry as one audience sees it.
///
/// The audience is a session: an agent, and a model. The tools that it has are narrowed by
/// who it is and by its agent, then adapted to its model, and last go those that are
/// disabled.
///
/// # Patterns
///
/// Tools are named by patterns: a name or an alias, in any case, in which `*` stands for
/// any text and `?` for one character; or `category:NAME` or `permission:NAME`, for all
/// tools that share one.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Registry, Toolset, tool, tools};
///
/// /// Look into the archive.
/// #[tool(read, scopes("librarian"))]
/// fn archive() -> String {
///     "dust".to_owned()
/// }
///
/// let registry = Registry::builder().add(tools![archive]).build()?;
/// assert!(Toolset::new(registry.clone()).with_scope("librarian").get("archive").is_some());
/// assert!(Toolset::new(registry).with_scope("oracle").get("archive").is_none());
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
pub struct Toolset {
    registry: Registry,
    state: RwLock<State>,
    /// Held while a change is made, so that readers wait only for its last step.
    changing: Mutex<()>,
    changed: watch::Sender<()>,
}

/// What may change while a pipeline runs.
#[derive(Clone)]
struct State {
    filter: Filter,
    additions: Vec<Arc<dyn Tool>>,
    view: Arc<View>,
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Toolset").field(&self.view()).finish()
    }
}

/// A copy of its own: what is added to it later is not seen by the original.
impl Clone for Toolset {
    fn clone(&self) -> Self {
        Self::of(self.registry.clone(), self.read().clone())
    }
}

impl From<Registry> for Toolset {
    fn from(registry: Registry) -> Self {
        Self::new(registry)
    }
}

impl Toolset {
    /// Everything of `registry` that is open to everybody.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        let filter = Filter::default();
        let view = Arc::new(View::new(registry.iter(), &filter));
        Self::of(registry, State { filter, additions: Vec::new(), view })
    }

    fn of(registry: Registry, state: State) -> Self {
        let state = RwLock::new(state);
        Self { registry, state, changing: Mutex::default(), changed: watch::Sender::default() }
    }

    /// Lets those with `scope` in; tools for other scopes only stay out.
    #[must_use]
    pub fn with_scope(self, scope: impl Into<String>) -> Self {
        self.refiltered(|filter| filter.scopes.push(scope.into()))
    }

    /// Keeps only these tools, as [patterns](Self#patterns).
    #[must_use]
    pub fn only<S: Into<String>>(self, tools: impl IntoIterator<Item = S>) -> Self {
        let tools = tools.into_iter().map(Into::into);
        self.refiltered(|filter| filter.only.get_or_insert_default().extend(tools))
    }

    /// Leaves these tools out, whatever [`only`](Self::only) says.
    #[must_use]
    pub fn without<S: Into<String>>(self, tools: impl IntoIterator<Item = S>) -> Self {
        let tools = tools.into_iter().map(Into::into);
        self.refiltered(|filter| filter.without.extend(tools))
    }

    /// Lets every experimental tool in.
    #[must_use]
    pub fn with_experimental(self) -> Self {
        self.with_experimental_named(["*"])
    }

    /// Lets these experimental tools in, as [patterns](Self#patterns).
    #[must_use]
    pub fn with_experimental_named<S: Into<String>>(
        self,
        tools: impl IntoIterator<Item = S>,
    ) -> Self {
        let tools = tools.into_iter().map(Into::into);
        self.refiltered(|filter| filter.experimental.extend(tools))
    }

    /// Declares a group of which this audience has one variant. A group of the same name
    /// is replaced.
    #[must_use]
    pub fn with_variants(self, variants: Variants) -> Self {
        self.refiltered(|filter| {
            filter.variants.retain(|known| known.group != variants.group);
            filter.variants.push(variants);
        })
    }

    /// Chooses a variant of a group that was declared before.
    ///
    /// # Errors
    ///
    /// Fails when there is no such group or variant.
    pub fn choose(self, group: &str, variant: &str) -> Result<Self, UnknownVariant> {
        self.update(|_, state| {
            let found = state.filter.variants.iter_mut().find(|known| known.group == group);
            found.ok_or_else(|| UnknownVariant::no_group(group, variant))?.choose(variant)
        })?;
        Ok(self)
    }

    /// Registers what the agents of one name have. An agent of the same name is replaced.
    ///
    /// Which agent looks is said by [`for_session`](Self::for_session). One of which the
    /// toolset does not know has what the toolset has, unless there are
    /// [only known agents](Self::only_known_agents).
    #[must_use]
    pub fn with_agent(self, agent: AgentProfile) -> Self {
        self.refiltered(|filter| {
            filter.agents.retain(|known| known.name != agent.name);
            filter.agents.push(agent);
        })
    }

    /// Leaves nothing to an agent that was not registered, or has no name.
    #[must_use]
    pub fn only_known_agents(self) -> Self {
        self.refiltered(|filter| filter.only_known_agents = true)
    }

    /// Adapts the tools to a family of models.
    #[must_use]
    pub fn with_profile(self, profile: ModelProfile) -> Self {
        self.with_profiles([profile])
    }

    /// Adapts the tools to families of models.
    #[must_use]
    pub fn with_profiles(self, profiles: impl IntoIterator<Item = ModelProfile>) -> Self {
        self.refiltered(|filter| filter.profiles.extend(profiles))
    }

    /// Lets `hook` change what is said of the tools whose names match `pattern`, or take
    /// them out.
    ///
    /// Hooks come after the tools' own refinements and the model's profile. A tool that
    /// one of them takes out cannot be called. Names, aliases, risk, permission, scopes
    /// and limits stay as they are, whatever a hook writes there.
    #[must_use]
    pub fn with_definition_hook(self, pattern: impl Into<String>, hook: Arc<impl Hook>) -> Self {
        self.with_definition_hook_at(Priority::DEFAULT, pattern, hook)
    }

    /// The same at another place among the hooks: lower priorities first.
    #[must_use]
    pub fn with_definition_hook_at(
        self,
        priority: Priority,
        pattern: impl Into<String>,
        hook: Arc<impl Hook>,
    ) -> Self {
        self.with_registered(Registered::new(pattern, priority, hook))
    }

    /// The same for a hook that may be there already.
    pub(crate) fn with_registered(self, hook: Registered) -> Self {
        self.refiltered(|filter| {
            if !filter.hooks.iter().any(|known| known.is_same(&hook)) {
                filter.hooks.push(hook);
                filter.hooks.sort_by_key(|hook| hook.priority);
            }
        })
    }

    /// Says who looks: the agent, whose profile then holds, the model, and the user. Tools
    /// may adapt their definitions to them.
    #[must_use]
    pub fn for_session(self, session: &Session) -> Self {
        self.refiltered(|filter| filter.session = session.clone())
    }

    /// Judges calls by these rules too, and hides what they deny as a whole.
    #[must_use]
    pub fn with_rules(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        let rules = Ruleset::new(rules);
        self.refiltered(|filter| filter.rules = filter.rules.with(&rules))
    }

    /// Sets how much is done without asking.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        self.refiltered(|filter| filter.mode = mode)
    }

    /// Changes how much is done without asking, for the calls that come now.
    pub fn set_mode(&self, mode: Mode) {
        self.update(|_, state| state.filter.mode = mode);
    }

    /// Replaces the rules, for the calls that come now.
    pub fn set_rules(&self, rules: Ruleset) {
        self.update(|_, state| state.filter.rules = rules);
    }

    fn refiltered(self, change: impl FnOnce(&mut Filter)) -> Self {
        self.update(|_, state| change(&mut state.filter));
        self
    }

    /// Adds tools that only this toolset has.
    ///
    /// # Errors
    ///
    /// Fails when a name is taken already, also by a tool that this audience does not see.
    pub fn add(&self, tools: impl IntoTools) -> Result<(), RegistryError> {
        let added = tools.into_tools();
        self.update(|registry, state| {
            let all: Vec<_> =
                registry.iter().chain(&state.additions).chain(&added).cloned().collect();
            Registry::builder().add(all).build()?;
            state.additions.extend(added);
            Ok(())
        })
    }

    /// Puts tools in the place of others that were added before, in one step.
    ///
    /// # Errors
    ///
    /// Fails when a name is taken already; nothing has changed then.
    #[cfg(feature = "mcp")]
    pub(crate) fn exchange(
        &self,
        leaving: &[Arc<dyn Tool>],
        coming: Vec<Arc<dyn Tool>>,
    ) -> Result<(), RegistryError> {
        self.update(|registry, state| {
            let leaves = |tool: &Arc<dyn Tool>| leaving.iter().any(|it| Arc::ptr_eq(it, tool));
            let mut additions = state.additions.clone();
            additions.retain(|tool| !leaves(tool));
            additions.extend(coming);
            Registry::builder()
                .add(registry.iter().chain(&additions).cloned().collect::<Vec<_>>())
                .build()?;
            state.additions = additions;
            Ok(())
        })
    }

    /// Takes a tool away from this toolset; says whether it had it.
    pub fn remove(&self, name: &str) -> bool {
        self.update(|_, state| {
            let Some(tool) = state.view.get(name).cloned() else { return false };
            let before = state.additions.len();
            state.additions.retain(|added| !Arc::ptr_eq(added, &tool));
            if state.additions.len() == before {
                state.filter.without.push(tool.definition().name.to_string());
            }
            true
        })
    }

    /// Whether an agent of this name was registered.
    #[cfg(feature = "cli")]
    pub(crate) fn has_agent(&self, name: &str) -> bool {
        self.read().filter.agents.iter().any(|agent| agent.name == name)
    }

    /// Whether there is no tool at all, for this audience or any other.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registry.is_empty() && self.read().additions.is_empty()
    }

    /// Every tool, also those that this audience does not have.
    pub(crate) fn everything(&self) -> Vec<Arc<dyn Tool>> {
        self.registry.iter().chain(&self.read().additions).cloned().collect()
    }

    /// The same for an audience that sees every tool.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only a command line looks"))]
    pub(crate) fn unfiltered(self) -> Self {
        let all = vec!["*".to_owned()];
        self.refiltered(|filter| {
            let hooks = std::mem::take(&mut filter.hooks);
            *filter = Filter { experimental: all, hooks, ..Filter::default() };
        })
    }

    /// What this audience sees now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.read().view)
    }

    /// What the session's agent sees now, also when the toolset was not made for it.
    #[inline]
    pub(crate) fn view_for(&self, session: &Session) -> Arc<View> {
        let state = self.read();
        let filter = &state.filter;
        if filter.agents.is_empty() || filter.session.agent() == session.agent() {
            return Arc::clone(&state.view);
        }
        drop(state);
        self.clone().for_session(session).view()
    }

    /// What this audience sees now, and what each agent that was registered does, with its name.
    #[cfg(feature = "cli")]
    pub(crate) fn views(&self) -> Vec<(Option<String>, Arc<View>)> {
        let names: Vec<_> = self.read().filter.agents.iter().map(|it| it.name.clone()).collect();
        let of_agent = |name: String| {
            let session = Session::new("").with_agent(&*name);
            (Some(name), self.view_for(&session))
        };
        std::iter::once((None, self.view())).chain(names.into_iter().map(of_agent)).collect()
    }

    /// Tells whenever this audience may see something else than before.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers want to know"))]
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The tool called `name`, when this audience has it.
    #[must_use]
    #[inline]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.read().view.get(name).cloned()
    }

    #[inline]
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a copy of the state, and puts it in place when it is whole.
    fn update<T>(&self, change: impl FnOnce(&Registry, &mut State) -> T) -> T {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.read().clone();
        let answer = change(&self.registry, &mut state);
        let tools = self.registry.iter().chain(&state.additions);
        state.view = Arc::new(View::new(tools, &state.filter));
        let mut place = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *place = state;
        drop(place);
        self.changed.send_replace(());
        answer
    }
}
