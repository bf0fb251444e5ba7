//! Groups of tool families, of which an audience has one.
//!
//! **Invariant:** of the tools that a group names, exactly those of the chosen variant are
//! available.

use super::select::any_selects_tool;
use crate::tool::Definition;

/// A group of variants: tool families for the same work, of which a toolset has one.
///
/// The first variant is chosen by default.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Registry, Toolset, VariantGroup, tool, tools};
///
/// /// Write with a pen.
/// #[tool(write)]
/// fn pen() {}
///
/// /// Write with a typewriter.
/// #[tool(write)]
/// fn typewriter() {}
///
/// let writing = VariantGroup::new("writing").variant("ink", ["pen"]).variant("keys", ["type*"]);
/// let registry = Registry::builder().add(tools![pen, typewriter]).build()?;
/// let toolset = Toolset::new(registry).with_variants(writing);
///
/// assert!(toolset.get("pen").is_some() && toolset.get("typewriter").is_none());
/// let toolset = toolset.choose_variant("writing", "keys")?;
/// assert!(toolset.get("pen").is_none() && toolset.get("typewriter").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantGroup {
    pub(super) group: String,
    variants: Vec<ToolVariant>,
    chosen: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ToolVariant {
    name: String,
    tools: Vec<String>,
}

impl VariantGroup {
    /// Creates a group without variants.
    #[must_use]
    pub fn new(group: impl Into<String>) -> Self {
        Self { group: group.into(), variants: Vec::new(), chosen: 0 }
    }

    /// Adds a variant with its name and its tools, as [patterns](super::Toolset#patterns). A tool
    /// may belong to several variants.
    #[must_use]
    pub fn variant<S: Into<String>>(
        mut self,
        name: impl Into<String>,
        tools: impl IntoIterator<Item = S>,
    ) -> Self {
        let tools = tools.into_iter().map(Into::into).collect();
        self.variants.push(ToolVariant { name: name.into(), tools });
        self
    }

    pub(super) fn choose_variant(&mut self, name: &str) -> Result<(), UnknownVariant> {
        let found = self.variants.iter().position(|variant| variant.name == name);
        self.chosen = found.ok_or_else(|| UnknownVariant {
            group: self.group.clone(),
            variant: name.to_owned(),
            known: self.variants.iter().map(|variant| variant.name.clone()).collect(),
        })?;
        Ok(())
    }

    /// Whether the tool belongs to the chosen variant, or to none.
    pub(super) fn admits_tool(&self, definition: &Definition) -> bool {
        let holds = |variant: &ToolVariant| any_selects_tool(&variant.tools, definition);
        self.variants.get(self.chosen).is_some_and(holds) || !self.variants.iter().any(holds)
    }
}

/// The error of choosing an unknown variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no variant `{variant}` of `{group}`: {}", variant_advice(.known))]
pub struct UnknownVariant {
    group: String,
    variant: String,
    known: Vec<String>,
}

impl UnknownVariant {
    pub(super) fn unknown_group(group: &str, variant: &str) -> Self {
        Self { group: group.to_owned(), variant: variant.to_owned(), known: Vec::new() }
    }
}

fn variant_advice(names: &[String]) -> String {
    match names {
        [] => "the group has none".to_owned(),
        names => format!("choose `{}`", names.join("` or `")),
    }
}
