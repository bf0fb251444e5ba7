//! Builds a registry, and reports all conflicts with their source locations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Registry;
use crate::name::ToolName;
use crate::tool::{Definition, IntoTools, RedefinedTool, Tool};

/// A builder for a registry.
#[derive(Clone, Default)]
#[must_use = "nothing happens before `build`"]
pub struct RegistryBuilder {
    tools: Vec<Arc<dyn Tool>>,
    overrides: Vec<Arc<dyn Tool>>,
    expected: Vec<String>,
    conflicts: Vec<RegistryConflict>,
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools.iter().map(|tool| &tool.definition().name)).finish()
    }
}

impl RegistryBuilder {
    /// Adds a tool, a list of tools, or a value with a `#[toolset]`.
    #[expect(
        clippy::should_implement_trait,
        reason = "a builder adds tools; registries are not summed"
    )]
    pub fn add(mut self, tools: impl IntoTools) -> Self {
        self.tools.extend(tools.into_tools());
        self
    }

    /// Adds tools that replace others with the same names.
    pub fn override_with(mut self, tools: impl IntoTools) -> Self {
        self.overrides.extend(tools.into_tools());
        self
    }

    /// Gives other names to tools that were added so far, such as two of one name from different
    /// crates: `rename` returns the new name of a tool, or `None` for a tool that keeps its own.
    ///
    /// Rules, hooks and models use the new name; a rule that denies the old one still applies. A
    /// `permission` of its own and the aliases stay.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Registry, tool, tools};
    ///
    /// /// Search the shop.
    /// #[tool(read)]
    /// fn search() -> String {
    ///     "tea".to_owned()
    /// }
    ///
    /// let registry = Registry::builder()
    ///     .add(tools![search])
    ///     .rename_tools(|tool| {
    ///         let place = tool.place.as_ref()?;
    ///         (place.package == env!("CARGO_PKG_NAME")).then(|| format!("shop_{}", tool.name))
    ///     })
    ///     .build()?;
    /// assert!(registry.contains("shop_search"));
    /// assert!(!registry.contains("search"));
    /// # Ok::<(), tool_sdk::RegistryError>(())
    /// ```
    pub fn rename_tools(mut self, rename: impl Fn(&Definition) -> Option<String>) -> Self {
        for tool in &mut self.tools {
            let Some(name) = rename(tool.definition()) else { continue };
            match ToolName::new(name.clone()) {
                Ok(name) => *tool = rename_tool(Arc::clone(tool), name),
                Err(why) => self.conflicts.push(RegistryConflict::Unusable {
                    name,
                    place: tool.definition().describe_location(),
                    why: why.to_string(),
                }),
            }
        }
        self
    }

    /// Makes `build` fail when one of `names` is missing.
    pub fn expect_tools<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.expected.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Builds the registry.
    ///
    /// # Errors
    ///
    /// Fails when two tools have the same name or alias, when an override has nothing to override,
    /// when a tool could never be called, or when an expected tool is missing. All reasons are
    /// listed.
    pub fn build(self) -> Result<Registry, RegistryError> {
        let mut conflicts = self.conflicts;
        let mut tools = self.tools;
        find_duplicate_overrides(&self.overrides, &mut conflicts);
        for tool in self.overrides {
            apply_override(&mut tools, tool, &mut conflicts);
        }
        find_conflicts(&tools, &mut conflicts);
        let registry = Registry::from_checked(tools);
        if let Err(missing) = registry.expect_tools(self.expected.iter().map(String::as_str)) {
            conflicts.extend(missing.conflicts);
        }
        if conflicts.is_empty() { Ok(registry) } else { Err(RegistryError { conflicts }) }
    }
}

fn apply_override(
    tools: &mut Vec<Arc<dyn Tool>>,
    tool: Arc<dyn Tool>,
    conflicts: &mut Vec<RegistryConflict>,
) {
    let name = &tool.definition().name;
    let before = tools.len();
    tools.retain(|other| other.definition().name != *name);
    if tools.len() == before {
        conflicts.push(RegistryConflict::NothingToOverride {
            name: name.to_string(),
            place: tool.definition().describe_location(),
        });
        return;
    }
    tools.push(tool);
}

fn rename_tool(tool: Arc<dyn Tool>, name: ToolName) -> Arc<dyn Tool> {
    Arc::new(RedefinedTool::new(tool, |definition| {
        let old = std::mem::replace(&mut definition.name, name);
        definition.also.push(old);
    }))
}

/// Finds several overrides of one name.
fn find_duplicate_overrides(overrides: &[Arc<dyn Tool>], conflicts: &mut Vec<RegistryConflict>) {
    let mut claims: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for definition in overrides.iter().map(|tool| tool.definition()) {
        let claim = ("an override with".to_owned(), definition.describe_location());
        claims.entry(definition.name.as_str()).or_default().push(claim);
    }
    for (name, claims) in claims.into_iter().filter(|(_, claims)| claims.len() > 1) {
        let claims = claims.into_iter().map(|(what, place)| (format!("{what} `{name}`"), place));
        conflicts.push(RegistryConflict::DuplicateName {
            name: name.to_owned(),
            claims: claims.collect(),
        });
    }
}

fn find_conflicts(tools: &[Arc<dyn Tool>], conflicts: &mut Vec<RegistryConflict>) {
    // In lower case, because aliases are case-insensitive.
    let mut taken: BTreeMap<String, Vec<(&str, &Definition)>> = BTreeMap::new();
    for tool in tools {
        let definition = tool.definition();
        if !definition.parameters.is_object_schema() {
            let (name, place) = (definition.name.to_string(), definition.describe_location());
            conflicts.push(RegistryConflict::NotAnObject { name, place });
        }
        if let Some(why) = tool.unusable_reason() {
            let (name, place) = (definition.name.to_string(), definition.describe_location());
            conflicts.push(RegistryConflict::Unusable { name, place, why });
        }
        let mut claim = |name: &ToolName, as_what| {
            let claims = taken.entry(name.as_str().to_ascii_lowercase()).or_default();
            claims.push((as_what, definition));
        };
        claim(&definition.name, "the tool");
        for alias in &definition.aliases {
            claim(alias, "an alias of");
        }
    }
    for (name, claims) in taken.into_iter().filter(|(_, claims)| claims.len() > 1) {
        let claim = |(as_what, claimant): (&str, &Definition)| {
            (format!("{as_what} `{}`", claimant.name), claimant.describe_location())
        };
        let mut claims: Vec<_> = claims.into_iter().map(claim).collect();
        claims.sort();
        conflicts.push(RegistryConflict::DuplicateName { name, claims });
    }
}

/// A reason why a registry cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryConflict {
    /// Several tools have the same name or alias.
    DuplicateName {
        /// The name, in lower case.
        name: String,
        /// The tools, with their source locations.
        claims: Vec<(String, String)>,
    },
    /// An override without a tool to override.
    NothingToOverride {
        /// The tool's name.
        name: String,
        /// The source location of the override.
        place: String,
    },
    /// The parameters of a tool are not an object.
    NotAnObject {
        /// The tool's name.
        name: String,
        /// The tool's source location.
        place: String,
    },
    /// A tool that could never be called.
    Unusable {
        /// The tool's name.
        name: String,
        /// The tool's source location.
        place: String,
        /// The reason.
        why: String,
    },
    /// Expected tools are missing.
    MissingTools {
        /// Their names.
        names: Vec<String>,
        /// The packages with registered tools, and their number.
        found: Vec<(String, usize)>,
    },
}

impl fmt::Display for RegistryConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateName { name, claims } => {
                write!(f, "the name `{name}` is taken {} times:", claims.len())?;
                claims.iter().try_for_each(|(what, place)| write!(f, "\n  {what} ({place})"))?;
                write!(f, "\n  rename one with `rename_tools`, or replace one with `override_with`")
            }
            Self::NothingToOverride { name, place } => {
                write!(f, "`{name}` ({place}) overrides nothing; use `add`")
            }
            Self::NotAnObject { name, place } => {
                write!(
                    f,
                    "the arguments of `{name}` ({place}) are not an object; take a struct with named fields"
                )
            }
            Self::Unusable { name, place, why } => {
                write!(f, "`{name}` ({place}) could never be called: {why}")
            }
            Self::MissingTools { names, found } => {
                write!(f, "not found: `{}`", names.join("`, `"))?;
                write!(f, "\n  is the crate linked? write `tool_sdk::link!(the_crate);`")?;
                match found.as_slice() {
                    [] => write!(f, "\n  found: no tools at all"),
                    found => {
                        let list: Vec<String> = found
                            .iter()
                            .map(|(name, count)| format!("{count} of {name}"))
                            .collect();
                        write!(f, "\n  found: {}", list.join(", "))
                    }
                }
            }
        }
    }
}

/// All reasons why a registry cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryError {
    conflicts: Vec<RegistryConflict>,
}

impl RegistryError {
    pub(super) fn missing_tools(names: Vec<String>, registry: &Registry) -> Self {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for definition in registry.definitions() {
            let package = definition.place.map_or("the host", |place| place.package);
            *found.entry(package.to_owned()).or_default() += 1;
        }
        Self {
            conflicts: vec![RegistryConflict::MissingTools {
                names,
                found: found.into_iter().collect(),
            }],
        }
    }

    /// Returns the reasons.
    #[must_use]
    pub fn conflicts(&self) -> &[RegistryConflict] {
        &self.conflicts
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, conflict) in self.conflicts.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{conflict}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RegistryError {}
