//! The registry as one audience sees it.
//!
//! What is not in a toolset cannot be called through it. Additions at run time belong to
//! the one toolset that they were made on.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use crate::context::Session;
use crate::effect::RiskClass;
use crate::name::{ToolName, matches};
use crate::permission::{Action, Mode, Rule, Ruleset};
use crate::registry::{Index, Registry, RegistryError, in_scope};
use crate::tool::{Definition, IntoTools, Tool};

/// The registry as one audience sees it.
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
}

/// What may change while a pipeline runs.
#[derive(Clone)]
struct State {
    filter: Filter,
    additions: Vec<Arc<dyn Tool>>,
    view: Arc<View>,
}

/// Who is looking.
#[derive(Clone, Debug, Default)]
struct Filter {
    scopes: Vec<String>,
    only: Option<Vec<String>>,
    without: Vec<String>,
    experimental: bool,
    session: Session,
    rules: Ruleset,
    mode: Mode,
}

impl Filter {
    fn admits(&self, definition: &Definition) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| names(definition, pattern));
        let scoped = definition.scopes.is_empty()
            || self.scopes.iter().any(|scope| in_scope(definition, scope));
        scoped
            && (self.experimental || !definition.flags.experimental)
            && self.only.as_deref().is_none_or(named)
            && !named(&self.without)
    }
}

/// Whether `pattern` names the tool: by its name or an alias, in any case.
fn names(definition: &Definition, pattern: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    std::iter::once(&definition.name)
        .chain(&definition.aliases)
        .any(|name| matches(&pattern, &name.as_str().to_ascii_lowercase()))
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Toolset").field(&self.view()).finish()
    }
}

/// A copy of its own: what is added to it later is not seen by the original.
impl Clone for Toolset {
    fn clone(&self) -> Self {
        Self {
            registry: self.registry.clone(),
            state: RwLock::new(self.read().clone()),
            changing: Mutex::default(),
        }
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
        let state = RwLock::new(State { filter, additions: Vec::new(), view });
        Self { registry, state, changing: Mutex::default() }
    }

    /// Lets those with `scope` in; tools for other scopes only stay out.
    #[must_use]
    pub fn with_scope(self, scope: impl Into<String>) -> Self {
        self.refiltered(|filter| filter.scopes.push(scope.into()))
    }

    /// Keeps only the named tools; a name may be a pattern such as `read_*`.
    #[must_use]
    pub fn only<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(Into::into);
        self.refiltered(|filter| filter.only.get_or_insert_default().extend(names))
    }

    /// Leaves the named tools out, whatever [`only`](Self::only) says.
    #[must_use]
    pub fn without<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(Into::into);
        self.refiltered(|filter| filter.without.extend(names))
    }

    /// Lets experimental tools in.
    #[must_use]
    pub fn with_experimental(self) -> Self {
        self.refiltered(|filter| filter.experimental = true)
    }

    /// Lets tools adapt their definitions to `session`: its model, agent and user.
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

    /// What this audience sees now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.read().view)
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
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        answer
    }
}

/// What an audience sees at one moment: it never changes.
pub struct View {
    tools: Vec<Arc<dyn Tool>>,
    refined: Vec<Option<Definition>>,
    policies: Vec<Policy>,
    rules: Ruleset,
    mode: Mode,
    index: Index,
    texts: [OnceLock<Arc<str>>; View::TEXTS],
}

/// What is known of the calls of one tool before there is any.
pub(crate) struct Policy {
    /// The rules that speak of the tool.
    pub(crate) rules: Ruleset,
    /// What holds for every call that has nothing to add: no subjects, no wish to be asked.
    pub(crate) settled: Option<Action>,
    /// Whether every call is denied, so that there is no use in telling models of the tool.
    hidden: bool,
}

impl Policy {
    fn new(definition: &Definition, rules: &Ruleset, mode: Mode) -> Self {
        let names = names_of(definition);
        let own = rules.about(&names);
        let class = definition.risk.class;
        let settled = own.settled(mode, class);
        // What may execute anything may also only read, so the mode alone does not hide it.
        let banned = mode.forbids(class) && class == RiskClass::Write;
        Self { hidden: banned || own.hides(&names), rules: own, settled }
    }
}

/// The names under which rules may speak of a tool.
pub(crate) fn names_of(definition: &Definition) -> Vec<&str> {
    std::iter::once(definition.permission())
        .chain(std::iter::once(definition.name.as_str()))
        .chain(definition.aliases.iter().map(ToolName::as_str))
        .collect()
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools.iter().map(|tool| &tool.definition().name)).finish()
    }
}

impl View {
    /// How many renderings of the whole list a view can keep.
    pub(crate) const TEXTS: usize = 8;

    fn new<'a>(all: impl Iterator<Item = &'a Arc<dyn Tool>>, filter: &Filter) -> Self {
        let mut tools: Vec<_> =
            all.filter(|tool| filter.admits(tool.definition())).cloned().collect();
        tools.sort_by(|a, b| a.definition().name.cmp(&b.definition().name));
        let refined = tools
            .iter()
            .map(|tool| {
                let refinement = tool.refine(&filter.session);
                (!refinement.is_empty()).then(|| refinement.apply(tool.definition()))
            })
            .collect();
        let policies = tools
            .iter()
            .map(|tool| Policy::new(tool.definition(), &filter.rules, filter.mode))
            .collect();
        let index = Index::new(&tools);
        let (rules, mode) = (filter.rules.clone(), filter.mode);
        Self { tools, refined, policies, rules, mode, index, texts: Default::default() }
    }

    /// Where the tool called `name` stands.
    #[inline]
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.index.find(name)
    }

    /// The tool at a place that [`find`](Self::find) gave, and what is known of its calls.
    #[inline]
    pub(crate) fn at(&self, at: usize) -> Option<(&Arc<dyn Tool>, &Policy)> {
        self.tools.get(at).zip(self.policies.get(at))
    }

    /// The rules by which calls are judged.
    #[must_use]
    pub fn rules(&self) -> &Ruleset {
        &self.rules
    }

    /// How much is done without asking.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The tool called `name`: by its name, or by an alias in any case.
    #[must_use]
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.index.find(name).and_then(|at| self.tools.get(at))
    }

    /// Every tool that may be called, by name.
    pub fn tools(&self) -> std::slice::Iter<'_, Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// What models are told: the definitions of all tools that are not hidden, by
    /// themselves or by rules that deny them as a whole, as this session sees them.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.tools
            .iter()
            .zip(&self.refined)
            .zip(&self.policies)
            .filter(|(_, policy)| !policy.hidden)
            .map(|((tool, refined), _)| refined.as_ref().unwrap_or_else(|| tool.definition()))
            .filter(|definition| !definition.flags.hidden)
    }

    /// The definition of the tool called `name`, as this session sees it.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        let at = self.index.find(name)?;
        match self.refined.get(at)? {
            Some(refined) => Some(refined),
            None => self.tools.get(at).map(|tool| tool.definition()),
        }
    }

    /// The names closest to `name`, the closest first.
    #[must_use]
    pub fn close_names(&self, name: &str) -> Vec<String> {
        const MOST: usize = 3;
        let lower = name.to_ascii_lowercase();
        let mut close: Vec<(usize, &str)> = self
            .definitions()
            .flat_map(|definition| std::iter::once(&definition.name).chain(&definition.aliases))
            .map(|known| (distance(&lower, known.as_str()), known.as_str()))
            .filter(|(distance, known)| *distance <= known.len().max(name.len()) / 2)
            .collect();
        close.sort_unstable();
        close.dedup();
        close.into_iter().take(MOST).map(|(_, known)| known.to_owned()).collect()
    }

    /// A text about the whole list, made once per view.
    pub(crate) fn text(&self, slot: usize, make: impl FnOnce(&Self) -> String) -> Arc<str> {
        match self.texts.get(slot) {
            Some(text) => Arc::clone(text.get_or_init(|| make(self).into())),
            None => make(self).into(),
        }
    }
}

/// How far apart two names are; a part of the other is close.
fn distance(lower: &str, known: &str) -> usize {
    let known = known.to_ascii_lowercase();
    let longest = lower.char_indices().nth(ToolName::MAX).map_or(lower.len(), |(at, _)| at);
    let lower = &lower[..longest];
    if !lower.is_empty() && (known.contains(lower) || lower.contains(&known)) {
        return 1;
    }
    strsim::damerau_levenshtein(lower, &known)
}
