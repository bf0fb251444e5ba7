//! The tools that one audience has.
//!
//! A tool that is not in a toolset cannot be called through it. Tools that are added at run time
//! belong to one toolset. The host selects tools by patterns and profiles; nothing here depends on
//! the name of a tool or a model.

mod addition;
mod agent;
mod filter;
mod model_profile;
mod name_prefix;
mod plugins;
mod rules;
mod search;
mod select;
#[cfg(test)]
mod tests;
mod unknown_tool;
mod variants;
mod view;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::watch;

pub use self::addition::ToolAudience;
use self::addition::{SessionViews, ToolAddition};
pub use self::agent::AgentProfile;
use self::filter::AudienceFilter;
pub use self::model_profile::ModelProfile;
use self::name_prefix::ReservedPrefixes;
pub use self::name_prefix::{PrefixReservation, ReservedPrefix};
pub(crate) use self::rules::is_about_files;
pub use self::rules::{has_useless_pattern, nearly_names_argument, tools_without_argument};
pub use self::select::any_forbids_tool;
pub use self::unknown_tool::printable_name;
pub use self::variants::{UnknownVariant, VariantGroup};
pub use self::view::ToolsetView;
use crate::context::Session;
use crate::hook::{Hook, HookPriority, RegisteredHook};
use crate::permission::{Mode, Rule, Ruleset};
use crate::plugin::PluginScope;
use crate::registry::{Registry, RegistryError};
use crate::tool::{IntoTools, Tool, ToolDisplay};

/// The tools that one audience has.
///
/// The audience is a session with its agent and its model. The tools are filtered by the audience's
/// scopes and by the agent's profile, then adapted to the model; denied tools are hidden last.
///
/// # Patterns
///
/// A pattern names tools: a name or an alias, in any case, in which `*` matches any text and `?`
/// one character; or `category:NAME` or `permission:NAME`, for all tools that share one.
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
    state: RwLock<ToolsetState>,
    /// Locked during an update, so that readers wait only for its last step.
    update_lock: Mutex<()>,
    /// The prefixes of names that sources of tools have here.
    prefixes: ReservedPrefixes,
    changed: watch::Sender<()>,
}

/// The part that may change while a pipeline runs.
#[derive(Clone)]
struct ToolsetState {
    filter: AudienceFilter,
    additions: Vec<ToolAddition>,
    plugins: Vec<Arc<PluginScope>>,
    view: Arc<ToolsetView>,
    session_views: SessionViews,
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Toolset").field(&self.view()).finish()
    }
}

/// An independent copy: later additions are not visible to the original.
impl Clone for Toolset {
    fn clone(&self) -> Self {
        Self::from_state(self.registry.clone(), self.read_state().clone())
    }
}

impl From<Registry> for Toolset {
    fn from(registry: Registry) -> Self {
        Self::new(registry)
    }
}

impl Toolset {
    /// Creates a toolset of all tools in `registry` without scopes.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        let filter = AudienceFilter::default();
        let view = Arc::new(ToolsetView::new(registry.iter(), &filter));
        let (additions, plugins, session_views) = Default::default();
        let state = ToolsetState { filter, additions, plugins, view, session_views };
        Self::from_state(registry, state)
    }

    fn from_state(registry: Registry, state: ToolsetState) -> Self {
        let state = RwLock::new(state);
        let (update_lock, prefixes, changed) = Default::default();
        Self { registry, state, update_lock, prefixes, changed }
    }

    /// Adds tools with `scope`; tools with only other scopes stay hidden.
    #[must_use]
    pub fn with_scope(self, scope: impl Into<String>) -> Self {
        self.with_filter_change(|filter| filter.scopes.push(scope.into()))
    }

    /// Keeps only these tools, as [patterns](Self#patterns).
    #[must_use]
    pub fn only<S: Into<String>>(self, tools: impl IntoIterator<Item = S>) -> Self {
        let tools = tools.into_iter().map(Into::into);
        self.with_filter_change(|filter| filter.only.get_or_insert_default().extend(tools))
    }

    /// Removes these tools; wins over [`only`](Self::only).
    #[must_use]
    pub fn without<S: Into<String>>(self, tools: impl IntoIterator<Item = S>) -> Self {
        let tools = tools.into_iter().map(Into::into);
        self.with_filter_change(|filter| filter.without.extend(tools))
    }

    /// Enables all experimental tools.
    #[must_use]
    pub fn with_experimental(self) -> Self {
        self.with_experimental_named(["*"])
    }

    /// Enables these experimental tools, as [patterns](Self#patterns).
    #[must_use]
    pub fn with_experimental_named<S: Into<String>>(
        self,
        tools: impl IntoIterator<Item = S>,
    ) -> Self {
        let tools = tools.into_iter().map(Into::into);
        self.with_filter_change(|filter| filter.experimental.extend(tools))
    }

    /// Counts these tools as experimental, as [patterns](Self#patterns): they are hidden until they
    /// are enabled. For tools that a program offers only to users who ask for them.
    #[must_use]
    pub fn mark_experimental<S: Into<String>>(self, tools: impl IntoIterator<Item = S>) -> Self {
        let tools = tools.into_iter().map(Into::into);
        self.with_filter_change(|filter| filter.marked_experimental.extend(tools))
    }

    /// Sets how calls of one tool are shown: each field that is set in `display` replaces that of
    /// the tool, in events, approval requests and lists. Sensitive arguments stay masked.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Registry, ToolDisplay, Toolset, tool, tools};
    ///
    /// /// Delete a page.
    /// #[tool(write)]
    /// fn delete_page(
    ///     /// The name of the page.
    ///     page: String,
    /// ) -> String {
    ///     format!("deleted {page}")
    /// }
    ///
    /// let mut display = ToolDisplay::default();
    /// display.name = Some("Remove".to_owned());
    /// display.summary = Some("Removing {page}".to_owned());
    /// let registry = Registry::builder().add(tools![delete_page]).build()?;
    /// let toolset = Toolset::new(registry).with_display("delete_page", display);
    /// # let view = toolset.view();
    /// # let shown = &view.definition("delete_page").expect("it is there").display;
    /// # assert_eq!(shown.name.as_deref(), Some("Remove"));
    /// # Ok::<(), tool_sdk::RegistryError>(())
    /// ```
    #[must_use]
    pub fn with_display(self, tool: impl Into<String>, display: ToolDisplay) -> Self {
        let tool = tool.into();
        self.with_filter_change(|filter| {
            filter.displays.retain(|(known, _)| *known != tool);
            filter.displays.push((tool, display.into()));
        })
    }

    /// Declares a group of variants, of which the audience has one. Replaces a group of the same
    /// name.
    #[must_use]
    pub fn with_variants(self, variants: VariantGroup) -> Self {
        self.with_filter_change(|filter| {
            filter.variants.retain(|known| known.group != variants.group);
            filter.variants.push(variants);
        })
    }

    /// Chooses a variant of a declared group.
    ///
    /// # Errors
    ///
    /// Fails when there is no such group or variant.
    pub fn choose_variant(self, group: &str, variant: &str) -> Result<Self, UnknownVariant> {
        self.update_state(|_, state| {
            let found = state.filter.variants.iter_mut().find(|known| known.group == group);
            found
                .ok_or_else(|| UnknownVariant::unknown_group(group, variant))?
                .choose_variant(variant)
        })?;
        Ok(self)
    }

    /// Adds the profile of an agent. Replaces a profile of the same name.
    ///
    /// [`for_session`](Self::for_session) selects the agent. An agent without a profile has all
    /// tools of the toolset, unless there are [only known agents](Self::only_known_agents).
    #[must_use]
    pub fn with_agent(self, agent: AgentProfile) -> Self {
        self.with_filter_change(|filter| {
            filter.agents.retain(|known| known.name != agent.name);
            filter.agents.push(agent);
        })
    }

    /// Adds the profile of an agent while calls run. Replaces a profile of the same name.
    pub fn set_agent(&self, agent: AgentProfile) {
        self.update_state(|_, state| {
            state.filter.agents.retain(|known| known.name != agent.name);
            state.filter.agents.push(agent);
        });
    }

    /// Removes all tools for agents without a profile or a name.
    #[must_use]
    pub fn only_known_agents(self) -> Self {
        self.with_filter_change(|filter| filter.only_known_agents = true)
    }

    /// Adapts the tools to a family of models.
    #[must_use]
    pub fn with_profile(self, profile: ModelProfile) -> Self {
        self.with_profiles([profile])
    }

    /// Adapts the tools to families of models.
    #[must_use]
    pub fn with_profiles(self, profiles: impl IntoIterator<Item = ModelProfile>) -> Self {
        self.with_filter_change(|filter| filter.profiles.extend(profiles))
    }

    /// Adds a hook that may change the definitions of the tools whose names match `pattern`, or
    /// remove the tools.
    ///
    /// Hooks run after the tools' own refinements and the model's profile. A removed tool cannot be
    /// called. A hook cannot change names, aliases, risk, permission, scopes and limits.
    #[must_use]
    pub fn with_definition_hook(self, pattern: impl Into<String>, hook: Arc<impl Hook>) -> Self {
        self.with_definition_hook_at(HookPriority::DEFAULT, pattern, hook)
    }

    /// Like [`with_definition_hook`](Self::with_definition_hook), with a priority: lower ones run
    /// first.
    #[must_use]
    pub fn with_definition_hook_at(
        self,
        priority: HookPriority,
        pattern: impl Into<String>,
        hook: Arc<impl Hook>,
    ) -> Self {
        self.with_registered_hook(RegisteredHook::new(pattern, priority, hook))
    }

    /// Adds a registered hook, unless it is there already.
    pub(crate) fn with_registered_hook(self, hook: RegisteredHook) -> Self {
        self.with_filter_change(|filter| {
            if !filter.hooks.iter().any(|known| known.is_same_hook(&hook)) {
                filter.hooks.push(hook);
                filter.hooks.sort_by_key(|hook| hook.priority);
            }
        })
    }

    /// Sets the audience: its agent, whose profile applies, its model, and its user. Tools may
    /// adapt their definitions to them.
    #[must_use]
    pub fn for_session(self, session: &Session) -> Self {
        self.with_filter_change(|filter| filter.session = session.clone())
    }

    /// Adds permission rules, and hides the tools that they deny as a whole.
    #[must_use]
    pub fn with_rules(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        let rules = Ruleset::new(rules);
        self.with_filter_change(|filter| filter.rules = filter.rules.merged_with(&rules))
    }

    /// Sets the permission mode.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        self.with_filter_change(|filter| filter.mode = mode)
    }

    /// Changes the permission mode for subsequent calls.
    pub fn set_mode(&self, mode: Mode) {
        self.update_state(|_, state| state.filter.mode = mode);
    }

    /// Replaces the permission rules for subsequent calls.
    pub fn set_rules(&self, rules: Ruleset) {
        self.update_state(|_, state| state.filter.rules = rules);
    }

    /// Builds the view again, for [definition hooks](Self::with_definition_hook) that answer otherwise by
    /// now. Servers tell their clients that the list of tools has changed.
    pub fn refresh(&self) {
        self.update_state(|_, _| ());
    }

    fn with_filter_change(self, change: impl FnOnce(&mut AudienceFilter)) -> Self {
        self.update_state(|_, state| change(&mut state.filter));
        self
    }

    /// Adds tools to this toolset only.
    ///
    /// # Errors
    ///
    /// Fails when a name is in use, even by a tool that this audience does not have.
    pub fn add(&self, tools: impl IntoTools) -> Result<(), RegistryError> {
        self.add_for(ToolAudience::everyone(), tools)
    }

    /// Adds tools for an agent or a session only: no other one sees or calls them. An agent's
    /// [profile](Self::with_agent) and the lists of the toolset apply to them as well.
    ///
    /// # Errors
    ///
    /// Fails when a name is in use by a tool that a session of this audience may have.
    pub fn add_for(
        &self,
        audience: ToolAudience,
        tools: impl IntoTools,
    ) -> Result<(), RegistryError> {
        self.replace_added_for(&audience, &[], tools.into_tools())
    }

    /// Adds the tools that an agent defines itself.
    ///
    /// # Errors
    ///
    /// Fails when a name is in use by a tool that the agent may have.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{AgentProfile, Registry, Session, Toolset, tool, tools};
    ///
    /// /// Rate a draft.
    /// #[tool(read)]
    /// fn rate_draft() -> String {
    ///     "good".to_owned()
    /// }
    ///
    /// let toolset = Toolset::new(Registry::default())
    ///     .with_agent(AgentProfile::new("critic"))
    ///     .with_agent_tools("critic", tools![rate_draft])?;
    /// let critic = Session::new("s").with_agent("critic");
    /// assert!(toolset.view_for(&critic).get("rate_draft").is_some());
    /// assert!(toolset.get("rate_draft").is_none());
    /// # Ok::<(), tool_sdk::RegistryError>(())
    /// ```
    pub fn with_agent_tools(
        self,
        agent: &str,
        tools: impl IntoTools,
    ) -> Result<Self, RegistryError> {
        self.add_for(ToolAudience::agent(agent), tools)?;
        Ok(self)
    }

    /// Replaces tools that were added before, in one step.
    ///
    /// # Errors
    ///
    /// Fails when a name is in use; nothing has changed then.
    #[doc(hidden)]
    pub fn replace_added(
        &self,
        leaving: &[Arc<dyn Tool>],
        coming: Vec<Arc<dyn Tool>>,
    ) -> Result<(), RegistryError> {
        self.replace_added_for(&ToolAudience::everyone(), leaving, coming)
    }

    /// Replaces tools that were added before by tools for `audience`, in one step.
    ///
    /// # Errors
    ///
    /// Fails when a name is in use; nothing has changed then.
    #[doc(hidden)]
    pub fn replace_added_for(
        &self,
        audience: &ToolAudience,
        leaving: &[Arc<dyn Tool>],
        coming: Vec<Arc<dyn Tool>>,
    ) -> Result<(), RegistryError> {
        self.try_update_state(|registry, state| {
            let leaves = |tool: &Arc<dyn Tool>| leaving.iter().any(|it| Arc::ptr_eq(it, tool));
            let mut additions = state.additions.clone();
            ToolAddition::drop_ended(&mut additions);
            additions.retain(|added| !leaves(&added.tool));
            for beside in ToolAddition::groups_beside(&additions, audience) {
                let all: Vec<_> = registry.iter().chain(&beside).chain(&coming).cloned().collect();
                Registry::builder().add(all).build()?;
            }
            let added = |tool| ToolAddition { tool, audience: audience.clone() };
            additions.extend(coming.into_iter().map(added));
            state.additions = additions;
            Ok(())
        })
    }

    /// Removes a tool that was [added](Self::add_for) for an audience; returns whether there was
    /// one of this name.
    pub fn remove_for(&self, audience: &ToolAudience, name: &str) -> bool {
        self.update_state(|_, state| {
            let before = state.additions.len();
            state.additions.retain(|added| {
                added.audience != *audience || added.tool.definition().name.as_str() != name
            });
            state.additions.len() < before
        })
    }

    /// Removes a tool from this toolset; returns whether it had the tool.
    pub fn remove(&self, name: &str) -> bool {
        self.update_state(|_, state| {
            let Some(tool) = state.view.get(name).cloned() else { return false };
            let before = state.additions.len();
            state.additions.retain(|added| !Arc::ptr_eq(&added.tool, &tool));
            if state.additions.len() == before {
                state.filter.without.push(tool.definition().name.to_string());
            }
            true
        })
    }

    /// Whether an agent of this name has a profile.
    #[doc(hidden)]
    pub fn has_agent(&self, name: &str) -> bool {
        self.read_state().filter.agents.iter().any(|agent| agent.name == name)
    }

    /// Whether there is no tool at all, for any audience.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registry.is_empty() && self.read_state().additions.is_empty()
    }

    /// Returns all tools, including those that this audience does not have.
    #[doc(hidden)]
    pub fn all_tools(&self) -> Vec<Arc<dyn Tool>> {
        let state = self.read_state();
        self.registry
            .iter()
            .chain(state.additions.iter().map(|added| &added.tool))
            .cloned()
            .collect()
    }

    /// Returns a toolset for an audience that has all tools.
    #[doc(hidden)]
    pub fn unfiltered(self) -> Self {
        let all = vec!["*".to_owned()];
        self.with_filter_change(|filter| {
            let hooks = std::mem::take(&mut filter.hooks);
            *filter = AudienceFilter { experimental: all, hooks, ..AudienceFilter::default() };
        })
    }

    /// Returns the current view.
    #[must_use]
    pub fn view(&self) -> Arc<ToolsetView> {
        Arc::clone(&self.read_state().view)
    }

    /// Returns the current view of a session: that of its agent and its model, with the tools that were
    /// [added](Self::add_for) for the agent or the session, even if the toolset is for another
    /// session. A session without a model sees what that of the toolset sees.
    #[inline]
    pub fn view_for(&self, session: &Session) -> Arc<ToolsetView> {
        let state = self.read_state();
        let filter = &state.filter;
        let is_other_model =
            session.model().is_some_and(|model| filter.session.model() != Some(model));
        if ToolAddition::is_limited_to(&state.additions, session)
            || (is_other_model && !filter.profiles.is_empty())
        {
            let views = state.session_views.clone();
            drop(state);
            return views.get_or_make(session, || self.clone().for_session(session).view());
        }
        if filter.agents.is_empty() || filter.session.agent() == session.agent() {
            return Arc::clone(&state.view);
        }
        drop(state);
        self.clone().for_session(session).view()
    }

    /// Whether the tool was [added](Self::add_for) for some sessions only.
    pub(crate) fn has_limited_audience(&self, tool: &Arc<dyn Tool>) -> bool {
        self.read_state().additions.iter().any(|added| added.is_limited_tool(tool))
    }

    /// Returns the session by which calls of `session` are decided as well: for an agent whose rules
    /// only tighten, the same without that agent or with the one in whose place it stands; else the
    /// one that limits it.
    pub(crate) fn next_deciding_session(&self, session: &Session) -> Option<Session> {
        if let Some(agent) = session.agent()
            && let Some(profile) = self.read_state().filter.tightening_profile(agent)
        {
            let replaced = profile.replaced_agent.clone().filter(|replaced| replaced != agent);
            return Some(session.clone().for_agent(replaced));
        }
        session.limiting_session()
    }

    /// Returns the current view, and that of each agent with a profile, with its name.
    #[doc(hidden)]
    pub fn agent_views(&self) -> Vec<(Option<String>, Arc<ToolsetView>)> {
        let names: Vec<_> =
            self.read_state().filter.agents.iter().map(|it| it.name.clone()).collect();
        let of_agent = |name: String| {
            let session = Session::new("").with_agent(&*name);
            (Some(name), self.view_for(&session))
        };
        std::iter::once((None, self.view())).chain(names.into_iter().map(of_agent)).collect()
    }

    /// Subscribes to changes of the view.
    #[doc(hidden)]
    pub fn subscribe_changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns the tool called `name`, if this audience has it.
    #[must_use]
    #[inline]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.read_state().view.get(name).cloned()
    }

    #[inline]
    fn read_state(&self) -> RwLockReadGuard<'_, ToolsetState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a copy of the state, then swaps it in.
    fn update_state<T>(&self, change: impl FnOnce(&Registry, &mut ToolsetState) -> T) -> T {
        let change = |registry: &Registry, state: &mut ToolsetState| {
            Ok::<_, Infallible>(change(registry, state))
        };
        match self.try_update_state(change) {
            Ok(answer) => answer,
        }
    }

    /// Like [`update_state`](Self::update_state), but after an error the state stays as it is, and no
    /// subscriber hears of a change.
    fn try_update_state<T, E>(
        &self,
        change: impl FnOnce(&Registry, &mut ToolsetState) -> Result<T, E>,
    ) -> Result<T, E> {
        let _changing = self.update_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.read_state().clone();
        let answer = change(&self.registry, &mut state)?;
        let additions = ToolAddition::tools_of(&state.additions, &state.filter.session);
        let tools = self.registry.iter().chain(additions);
        state.view = Arc::new(ToolsetView::new(tools, &state.filter));
        state.session_views = SessionViews::default();
        let mut place = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *place = state;
        drop(place);
        self.changed.send_replace(());
        Ok(answer)
    }
}
