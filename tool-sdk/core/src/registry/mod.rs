//! The registry: all tools of a program, immutable and sorted by name.
//!
//! The pipeline runs the registered objects themselves, and the surfaces list them.
//!
//! **Invariant:** the order depends on the names, never on linking.

mod builder;
mod file;
#[cfg(feature = "linked")]
mod linked;

use std::sync::Arc;

use foldhash::HashMap;

pub use self::builder::{RegistryBuilder, RegistryConflict, RegistryError};
pub use self::file::{ToolsFile, ToolsFileError};
#[cfg(feature = "linked")]
pub use self::linked::Registration;
use crate::risk::RiskClass;
use crate::tool::{Definition, Tool};

/// All tools of a program.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Registry, tool, tools};
///
/// /// Add two numbers.
/// #[tool(read)]
/// fn add(
///     /// The first.
///     a: i64,
///     /// The second.
///     b: i64,
/// ) -> String {
///     (a + b).to_string()
/// }
///
/// let registry = Registry::builder().add(tools![add]).build()?;
/// assert_eq!(registry.names().collect::<Vec<_>>(), ["add"]);
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    tools: Arc<[Arc<dyn Tool>]>,
    index: Arc<NameIndex>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Registry {
    /// Returns a builder without tools.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// Creates a registry of tools that were checked for conflicts.
    fn from_checked(mut tools: Vec<Arc<dyn Tool>>) -> Self {
        tools.sort_by(|a, b| a.definition().name.cmp(&b.definition().name));
        let index = NameIndex::new(tools.iter().map(|tool| tool.definition()));
        Self { tools: tools.into(), index: Arc::new(index) }
    }

    /// Returns the tool called `name`: by its name, or by an alias in any case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.index.find(name).and_then(|at| self.tools.get(at))
    }

    /// Whether there is a tool called `name`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns all tools, sorted by name.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether the registry is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns all names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.definition().name.as_str())
    }

    /// Returns all definitions, sorted by name.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.tools.iter().map(|tool| tool.definition())
    }

    /// Returns the tools that are visible with `scope`.
    pub fn by_scope<'a>(&'a self, scope: &'a str) -> impl Iterator<Item = &'a Arc<dyn Tool>> {
        self.iter().filter(move |tool| is_in_scope(tool.definition(), scope))
    }

    /// Returns the tools of a category.
    pub fn by_category<'a>(&'a self, category: &'a str) -> impl Iterator<Item = &'a Arc<dyn Tool>> {
        self.iter().filter(move |tool| tool.definition().is_in_category(category))
    }

    /// Returns the tools of a risk class.
    pub fn by_risk(&self, class: RiskClass) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.iter().filter(move |tool| tool.definition().risk.class == class)
    }

    /// Returns the tools whose names match a pattern of `*` and `?`.
    pub fn by_name_pattern<'a>(
        &'a self,
        pattern: &'a str,
    ) -> impl Iterator<Item = &'a Arc<dyn Tool>> {
        self.iter()
            .filter(move |tool| crate::name::matches_glob(pattern, tool.definition().name.as_str()))
    }

    /// Returns each alias with the name of its tool, for texts that use other names.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.definitions().flat_map(|definition| {
            definition.aliases.iter().map(|alias| (alias.as_str(), definition.name.as_str()))
        })
    }

    /// Fails when one of `names` is missing, for example because its crate was not linked.
    ///
    /// # Errors
    ///
    /// Names all missing tools, the packages with tools, and how to link a crate.
    pub fn expect_tools<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<&Self, RegistryError> {
        let mut missing: Vec<String> = Vec::new();
        for name in names {
            if !self.contains(name) && !missing.iter().any(|known| known == name) {
                missing.push(name.to_owned());
            }
        }
        if missing.is_empty() { Ok(self) } else { Err(RegistryError::missing_tools(missing, self)) }
    }
}

impl<'a> IntoIterator for &'a Registry {
    type Item = &'a Arc<dyn Tool>;
    type IntoIter = std::slice::Iter<'a, Arc<dyn Tool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Whether a tool is visible with `scope`: a tool without scopes is visible to everyone.
pub(crate) fn is_in_scope(definition: &Definition, scope: &str) -> bool {
    definition.scopes.is_empty() || definition.scopes.iter().any(|name| name == scope)
}

/// Maps names and aliases to positions.
#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    names: HashMap<Box<str>, usize>,
    aliases: HashMap<Box<str>, usize>,
}

impl NameIndex {
    /// Indexes the tools; of several with one name the last is found.
    pub(crate) fn new<'a>(tools: impl Iterator<Item = &'a Definition>) -> Self {
        let mut index = Self::default();
        for (at, definition) in tools.enumerate() {
            index.names.insert(definition.name.as_str().into(), at);
            for alias in &definition.aliases {
                index.aliases.insert(alias.as_str().to_ascii_lowercase().into(), at);
            }
        }
        index
    }

    /// The position of the tool called `name`, by its name or by an alias in any case.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let position = self.names.get(name);
        position.or_else(|| self.aliases.get(name.to_ascii_lowercase().as_str())).copied()
    }
}
