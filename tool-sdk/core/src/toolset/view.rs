//! An immutable snapshot of the tools that an audience has.
//!
//! A view is built in this order: the tools of the audience, their definitions as the model sees
//! them, preferences among tools, and the permission rules, which hide tools that they deny as a
//! whole. Hidden tools stay in the view, so that a call is denied and not unknown.
//!
//! **Invariant:** a view never changes, and the same tools and audience make the same view.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::filter::AudienceFilter;
use super::model_profile::ModelProfile;
use super::rules::{PermissionSynonyms, find_unmatched_rules, tools_without_argument};
use super::search;
use crate::name::ToolName;
use crate::permission::{Mode, Rule, RuleNames, Ruleset};
use crate::registry::NameIndex;
use crate::risk::RiskClass;
use crate::tool::{Definition, Flags, Tool, ToolDisplay, ToolLabel};

/// An immutable snapshot of the tools that an audience has.
pub struct ToolsetView {
    entries: Vec<ViewEntry>,
    rules: Ruleset,
    /// The names under which permissions are denied.
    synonyms: PermissionSynonyms,
    /// The rules that match nothing.
    unmatched_rules: Vec<Rule>,
    mode: Mode,
    index: NameIndex,
    texts: [OnceLock<Arc<str>>; ToolsetView::CACHED_TEXTS],
}

/// The permission policy of one tool, computed before any call.
pub(crate) struct ToolPolicy {
    /// The rules that match the tool.
    pub(crate) rules: Ruleset,
    /// Whether every call is denied, so that models need not see the tool.
    hidden: bool,
    /// The display metadata that the host set.
    display: Option<Arc<ToolDisplay>>,
    /// The label for events, created on first use.
    label: OnceLock<Arc<ToolLabel>>,
}

impl ToolPolicy {
    fn new(definition: &Definition, names: &RuleNames<'_>, rules: &Ruleset, mode: Mode) -> Self {
        let own = rules.for_names(names.clone());
        let class = definition.risk.class;
        // A tool that may execute anything may also only read, so the mode alone does not hide it.
        let banned = mode.forbids(class) && class == RiskClass::Write;
        let hidden = banned || own.hides_names(names);
        Self { hidden, rules: own, display: None, label: OnceLock::new() }
    }

    /// Returns the label for events.
    #[inline]
    pub(crate) fn label(&self, definition: &Definition) -> &Arc<ToolLabel> {
        self.label.get_or_init(|| Arc::new(ToolLabel::new(definition, self.display.as_deref())))
    }
}

/// A tool as an audience sees it.
pub(super) struct ViewEntry {
    pub(super) tool: Arc<dyn Tool>,
    policy: ToolPolicy,
    /// The definition for models, where it differs from the tool's own.
    refined: Option<Box<Definition>>,
}

impl ViewEntry {
    /// Creates the entry; `None` when a hook removes the tool.
    fn new(
        tool: &Arc<dyn Tool>,
        filter: &AudienceFilter,
        profile: Option<&ModelProfile>,
        synonyms: &PermissionSynonyms,
        (rules, mode): (&Ruleset, Mode),
    ) -> Option<Self> {
        let refined = match apply_definition_hooks(
            adapt_definition(tool.as_ref(), filter, profile),
            tool.definition(),
            filter,
        )? {
            Cow::Borrowed(_) => None,
            Cow::Owned(definition) => Some(Box::new(definition)),
        };
        let names = synonyms.tool_names(tool.definition());
        let policy = ToolPolicy {
            display: filter.host_display(&tool.definition().name).cloned(),
            ..ToolPolicy::new(tool.definition(), &names, rules, mode)
        };
        Some(Self { tool: Arc::clone(tool), policy, refined })
    }

    /// Returns the definition for models.
    fn visible_definition(&self) -> &Definition {
        self.refined.as_deref().unwrap_or_else(|| self.tool.definition())
    }

    /// Whether models see the tool.
    pub(super) fn is_visible(&self) -> bool {
        !self.policy.hidden && !self.visible_definition().flags.hidden
    }
}

/// Returns the definition as the tool adapts it to the session, and the profile to the model.
fn adapt_definition<'a>(
    tool: &'a dyn Tool,
    filter: &AudienceFilter,
    profile: Option<&ModelProfile>,
) -> Cow<'a, Definition> {
    let mut told = Cow::Borrowed(tool.definition());
    let refinement = tool.refine(&filter.session);
    if !refinement.is_empty() {
        told = Cow::Owned(refinement.apply(&told));
    }
    if let Some(profile) = profile {
        profile.hide_parameters(&mut told);
    }
    if let Some(display) = filter.host_display(&tool.definition().name) {
        told.to_mut().display = told.display.with_override(display).into();
    }
    told
}

/// Runs the definition hooks; returns `None` when one of them removes the tool or fails.
fn apply_definition_hooks<'a>(
    told: Cow<'a, Definition>,
    own: &Definition,
    filter: &AudienceFilter,
) -> Option<Cow<'a, Definition>> {
    let mut hooks = filter.hooks.iter().filter(|hook| hook.applies_to(own)).peekable();
    if hooks.peek().is_none() {
        return Some(told);
    }
    let told =
        hooks.try_fold(told.into_owned(), |told, hook| hook.edit_definition(told, &filter.session));
    told.map(|told| Cow::Owned(with_fixed_fields_of(own, told)))
}

/// Restores the fields that hooks must not change, because calls depend on them.
fn with_fixed_fields_of(own: &Definition, said: Definition) -> Definition {
    Definition {
        title: said.title,
        description: said.description,
        category: said.category,
        parameters: said.parameters,
        output: said.output,
        display: said.display,
        examples: said.examples,
        flags: Flags { hidden: said.flags.hidden, ..own.flags },
        ..own.clone()
    }
}

impl fmt::Debug for ToolsetView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools().map(|tool| &tool.definition().name)).finish()
    }
}

impl ToolsetView {
    /// The number of cached renderings of the whole list.
    pub(crate) const CACHED_TEXTS: usize = 8;

    pub(super) fn new<'a>(
        all: impl Iterator<Item = &'a Arc<dyn Tool>> + Clone,
        filter: &AudienceFilter,
    ) -> Self {
        let (rules, mode) = filter.effective_rules();
        let synonyms = PermissionSynonyms::from_tools(all.clone());
        let mut unmatched_rules = find_unmatched_rules(&rules, all.clone());
        let profile = filter.model_profile();
        let mut entries: Vec<ViewEntry> = all
            .filter(|tool| filter.admits_tool(tool.definition()))
            .filter_map(|tool| ViewEntry::new(tool, filter, profile, &synonyms, (&rules, mode)))
            .collect();
        entries.sort_by(|a, b| a.tool.definition().name.cmp(&b.tool.definition().name));
        if let Some(profile) = profile {
            profile.remove_tools(&mut entries);
        }
        let tools = entries.iter().map(|entry| &entry.tool);
        let is_more = |rule: &&Rule| {
            !unmatched_rules.contains(rule)
                && !tools_without_argument(rule, tools.clone()).is_empty()
        };
        let more: Vec<Rule> = rules.rules().iter().filter(is_more).cloned().collect();
        unmatched_rules.extend(more);
        Self { unmatched_rules, synonyms, ..Self::from_entries(entries, rules, mode) }
    }

    fn from_entries(entries: Vec<ViewEntry>, rules: Ruleset, mode: Mode) -> Self {
        let index = NameIndex::new(entries.iter().map(|entry| entry.tool.definition()));
        let (synonyms, unmatched_rules, texts) = Default::default();
        Self { entries, rules, synonyms, unmatched_rules, mode, index, texts }
    }

    /// Returns the position of the tool called `name`.
    #[inline]
    #[doc(hidden)]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.index.find(name)
    }

    /// Returns the tool and its policy at a position from [`find`](Self::find).
    #[inline]
    pub(crate) fn entry_at(&self, at: usize) -> Option<(&Arc<dyn Tool>, &ToolPolicy)> {
        self.entries.get(at).map(|entry| (&entry.tool, &entry.policy))
    }

    /// Returns the definition for this session at a position.
    #[doc(hidden)]
    pub fn definition_at(&self, at: usize) -> Option<&Definition> {
        self.entries.get(at).map(ViewEntry::visible_definition)
    }

    /// Returns the permission rules.
    #[must_use]
    pub fn rules(&self) -> &Ruleset {
        &self.rules
    }

    /// Returns the rules that match no tool and no permission of any audience. Most likely they
    /// have a misspelt name, or lack the blank after the name of an argument, as in
    /// `edit(path:secrets/*)`. Also returns rules that deny or ask about an argument and name
    /// several tools of which some lack the argument, such as `deny edit(content: x)` beside a tool
    /// for patches: they have no effect on calls of those tools. A rule on an argument that holds
    /// paths is not among them, because it applies to files in all tools.
    ///
    /// A permission that tools only request while they run is not known here.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Registry, Rule, Toolset, tool, tools};
    ///
    /// /// Water the plants.
    /// #[tool(write)]
    /// fn water() {}
    ///
    /// let registry = Registry::builder().add(tools![water]).build()?;
    /// let rules: Vec<Rule> = vec!["ask water".parse()?, "deny watre".parse()?];
    /// let view = Toolset::new(registry).with_rules(rules).view();
    /// assert_eq!(view.unmatched_rules()[0].to_string(), "deny watre");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn unmatched_rules(&self) -> &[Rule] {
        &self.unmatched_rules
    }

    /// Returns the names under which rules match a tool.
    pub(crate) fn tool_names<'n>(&'n self, tool: &'n Definition) -> RuleNames<'n> {
        self.synonyms.tool_names(tool)
    }

    /// Returns the names under which rules match a permission.
    pub(crate) fn permission_names<'n>(&'n self, permission: &'n str) -> RuleNames<'n> {
        self.synonyms.permission_names(permission)
    }

    /// Returns the names of the tool that the permission of `tool` is named after, if that is
    /// another tool. They do the same work, so hooks that deny one of them deny the other, too.
    pub(crate) fn namesakes(&self, tool: &Definition) -> Vec<ToolName> {
        self.synonyms.namesakes(tool).cloned().collect()
    }

    /// Returns the permission mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the tool called `name`: by its name, or by an alias in any case.
    #[must_use]
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.index.find(name).and_then(|at| self.entries.get(at)).map(|entry| &entry.tool)
    }

    /// Returns all tools that may be called, sorted by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Arc<dyn Tool>> + Clone {
        self.entries.iter().map(|entry| &entry.tool)
    }

    /// Returns the definitions that models see: of all tools that are hidden neither by themselves
    /// nor by rules that deny them as a whole, as this session sees them.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.permitted_definitions().filter(|definition| !definition.flags.hidden)
    }

    /// Returns the definitions of all tools that no rule denies as a whole, including those that
    /// models do not see.
    #[doc(hidden)]
    pub fn permitted_definitions(&self) -> impl Iterator<Item = &Definition> {
        self.entries.iter().filter(|entry| !entry.policy.hidden).map(ViewEntry::visible_definition)
    }

    /// Returns the definition of the tool called `name`, as this session sees it.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.find(name).and_then(|at| self.definition_at(at))
    }

    /// Returns the names closest to `name`, the closest first.
    #[must_use]
    pub fn close_names(&self, name: &str) -> Vec<String> {
        const MOST: usize = 3;
        let lower = name.to_ascii_lowercase();
        let mut close: Vec<(usize, &str)> =
            self.definitions().filter_map(|tool| closest_name(&lower, tool)).collect();
        close.sort_unstable();
        close.into_iter().take(MOST).map(|(_, known)| known.to_owned()).collect()
    }

    /// Searches the tools that models see; returns at most `limit`, the best first.
    ///
    /// Tools that are named like the query come first, then those whose names start with it, then
    /// those that contain its words: all words before some, and names before titles, categories and
    /// descriptions. A query without words returns the first tools by name.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Registry, Toolset, tool, tools};
    ///
    /// /// Water the plants.
    /// #[tool(write)]
    /// fn water() {}
    ///
    /// /// Tell whether plants need water or light.
    /// #[tool(read)]
    /// fn inspect() {}
    ///
    /// let registry = Registry::builder().add(tools![water, inspect]).build()?;
    /// let view = Toolset::new(registry).view();
    /// let names = |query| -> Vec<&str> {
    ///     view.search(query, 10).into_iter().map(|found| found.name.as_str()).collect()
    /// };
    /// assert_eq!(names("water"), ["water", "inspect"]);
    /// assert_eq!(names("light for plants"), ["inspect", "water"]);
    /// # Ok::<(), tool_sdk::RegistryError>(())
    /// ```
    #[must_use]
    pub fn search(&self, query: &str, limit: usize) -> Vec<&Definition> {
        search::search_definitions(self.definitions(), query, limit)
    }

    /// Returns a cached rendering of the whole list.
    pub(crate) fn cached_text(&self, slot: usize, make: impl FnOnce(&Self) -> String) -> Arc<str> {
        match self.texts.get(slot) {
            Some(text) => Arc::clone(text.get_or_init(|| make(self).into())),
            None => make(self).into(),
        }
    }
}

/// Returns the name of a tool that is closest to `lower` with its distance, if it is close.
fn closest_name<'t>(lower: &str, tool: &'t Definition) -> Option<(usize, &'t str)> {
    tool.names()
        .map(|known| (name_distance(lower, known), known))
        .filter(|(distance, known)| *distance <= known.len().max(lower.len()) / 2)
        .min_by_key(|(distance, _)| *distance)
}

/// Returns the edit distance of two names; a part of a name is close.
fn name_distance(lower: &str, known: &str) -> usize {
    const SHORTEST_PART: usize = 3;
    let known = known.to_ascii_lowercase();
    let longest = lower.char_indices().nth(ToolName::MAX).map_or(lower.len(), |(at, _)| at);
    let lower = &lower[..longest];
    let apart = strsim::damerau_levenshtein(lower, &known);
    let is_part = lower.len().min(known.len()) >= SHORTEST_PART
        && (known.contains(lower) || lower.contains(&known));
    if is_part { apart.min(2) } else { apart }
}
