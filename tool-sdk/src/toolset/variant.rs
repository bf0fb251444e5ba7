//! Families of tools of which an audience has one.
//!
//! **Invariant:** of the tools that a group names, those of the chosen variant are there
//! and no others.

use super::select::any_selects;
use crate::tool::Definition;

/// A group of variants: families of tools for the same work, of which a toolset has one.
///
/// The first variant is there until another one is chosen.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Registry, Toolset, Variants, tool, tools};
///
/// /// Write with a pen.
/// #[tool(write)]
/// fn pen() {}
///
/// /// Write with a typewriter.
/// #[tool(write)]
/// fn typewriter() {}
///
/// let writing = Variants::new("writing").variant("ink", ["pen"]).variant("keys", ["type*"]);
/// let registry = Registry::builder().add(tools![pen, typewriter]).build()?;
/// let toolset = Toolset::new(registry).with_variants(writing);
///
/// assert!(toolset.get("pen").is_some() && toolset.get("typewriter").is_none());
/// let toolset = toolset.choose("writing", "keys")?;
/// assert!(toolset.get("pen").is_none() && toolset.get("typewriter").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variants {
    pub(super) group: String,
    variants: Vec<Variant>,
    chosen: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Variant {
    name: String,
    tools: Vec<String>,
}

impl Variants {
    /// A group without variants.
    #[must_use]
    pub fn new(group: impl Into<String>) -> Self {
        Self { group: group.into(), variants: Vec::new(), chosen: 0 }
    }

    /// Adds a variant: its name, and its tools as [patterns](super::Toolset#patterns). A
    /// tool may belong to several.
    #[must_use]
    pub fn variant<S: Into<String>>(
        mut self,
        name: impl Into<String>,
        tools: impl IntoIterator<Item = S>,
    ) -> Self {
        let tools = tools.into_iter().map(Into::into).collect();
        self.variants.push(Variant { name: name.into(), tools });
        self
    }

    pub(super) fn choose(&mut self, name: &str) -> Result<(), UnknownVariant> {
        let found = self.variants.iter().position(|variant| variant.name == name);
        self.chosen = found.ok_or_else(|| UnknownVariant {
            group: self.group.clone(),
            variant: name.to_owned(),
            known: self.variants.iter().map(|variant| variant.name.clone()).collect(),
        })?;
        Ok(())
    }

    /// Whether the tool is of the chosen variant, or of none.
    pub(super) fn admits(&self, definition: &Definition) -> bool {
        let holds = |variant: &Variant| any_selects(&variant.tools, definition);
        self.variants.get(self.chosen).is_some_and(holds) || !self.variants.iter().any(holds)
    }
}

/// A choice of a variant that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no variant `{variant}` of `{group}`: {}", advice(.known))]
pub struct UnknownVariant {
    group: String,
    variant: String,
    known: Vec<String>,
}

impl UnknownVariant {
    pub(super) fn no_group(group: &str, variant: &str) -> Self {
        Self { group: group.to_owned(), variant: variant.to_owned(), known: Vec::new() }
    }
}

fn advice(names: &[String]) -> String {
    match names {
        [] => "the group has none".to_owned(),
        names => format!("choose `{}`", names.join("` or `")),
    }
}
