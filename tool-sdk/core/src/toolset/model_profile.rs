//! Adapts a toolset to a family of models.
//!
//! A profile removes tools, selects one of several tools for the same work, and hides optional
//! parameters. A call may still send hidden parameters.
//!
//! **Invariant:** a tool is removed only where the profile names it, or while a preferred tool is
//! visible.

use std::borrow::Cow;

use super::select::{any_selects_tool, selects_tool};
use super::view::ViewEntry;
use crate::name::matches_glob;
use crate::tool::{Definition, Refinement};

/// Removed and preferred tools, and hidden parameters, for a family of models.
///
/// One profile applies to a session: the one whose pattern has the most characters besides `*` and
/// `?`, and of equal ones the first. A session without a model has all tools unchanged.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ModelProfile, Registry, Session, Toolset, tool, tools};
///
/// /// Draw with a pen.
/// #[tool(write)]
/// fn draw(
///     /// What.
///     what: String,
///     /// How thick the lines are.
///     #[arg(default = 2)]
///     width: u8,
/// ) {}
///
/// /// Carve in stone.
/// #[tool(write)]
/// fn carve() {}
///
/// let registry = Registry::builder().add(tools![draw, carve]).build()?;
/// let toolset = Toolset::new(registry)
///     .with_profile(ModelProfile::new(["mason-*"]).prefer("carve", ["draw"]))
///     .with_profile(ModelProfile::new(["*-mini"]).without(["carve"]).without_optional("draw"));
///
/// let mason = toolset.clone().for_session(&Session::new("a").with_model("mason-2"));
/// assert!(mason.get("draw").is_none());
///
/// let mini = toolset.for_session(&Session::new("b").with_model("maker/painter-mini")).view();
/// let draw = mini.definition("draw").expect("it draws");
/// assert!(draw.parameters.property("width").is_none());
/// assert!(mini.definition("carve").is_none());
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelProfile {
    models: Vec<String>,
    removed: Vec<String>,
    preferences: Vec<ToolPreference>,
    hidden: Vec<HiddenParameters>,
}

/// Tools that replace others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ToolPreference {
    tools: String,
    over: Vec<String>,
}

/// A parameter, or all optional ones, that the model does not see.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HiddenParameters {
    tools: String,
    parameter: Option<String>,
}

impl ModelProfile {
    /// Creates a profile for the models whose names match one of these patterns, in any case.
    ///
    /// `*` matches any text and `?` one character. Of a name such as `maker/model` the part after
    /// the last `/` is matched as well.
    #[must_use]
    pub fn new<S: Into<String>>(models: impl IntoIterator<Item = S>) -> Self {
        let models = models.into_iter().map(|model| model.into().to_ascii_lowercase()).collect();
        Self { models, removed: Vec::new(), preferences: Vec::new(), hidden: Vec::new() }
    }

    /// Removes these tools, as [patterns](super::Toolset#patterns).
    #[must_use]
    pub fn without<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.removed.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Replaces the tools of `over` by `tools`, both as [patterns](super::Toolset#patterns).
    ///
    /// If no such tool is visible to models, the others stay. Preferences are applied in the order
    /// in which they are given.
    #[must_use]
    pub fn prefer<S: Into<String>>(
        mut self,
        tools: impl Into<String>,
        over: impl IntoIterator<Item = S>,
    ) -> Self {
        let over = over.into_iter().map(Into::into).collect();
        self.preferences.push(ToolPreference { tools: tools.into(), over });
        self
    }

    /// Hides an optional parameter of these tools.
    #[must_use]
    pub fn without_parameter(
        mut self,
        tools: impl Into<String>,
        parameter: impl Into<String>,
    ) -> Self {
        let parameter = Some(parameter.into());
        self.hidden.push(HiddenParameters { tools: tools.into(), parameter });
        self
    }

    /// Hides all optional parameters of these tools.
    #[must_use]
    pub fn without_optional(mut self, tools: impl Into<String>) -> Self {
        self.hidden.push(HiddenParameters { tools: tools.into(), parameter: None });
        self
    }

    /// Returns how specifically the profile matches a model.
    fn match_score(&self, model: &str) -> Option<usize> {
        let model = model.to_ascii_lowercase();
        let short = model.rsplit('/').next().unwrap_or_default();
        self.models
            .iter()
            .filter(|pattern| matches_glob(pattern, &model) || matches_glob(pattern, short))
            .map(|pattern| pattern.chars().filter(|c| !matches!(c, '*' | '?')).count())
            .max()
    }

    /// Removes the hidden parameters from a definition.
    pub(super) fn hide_parameters(&self, told: &mut Cow<'_, Definition>) {
        let parameters = &told.parameters;
        let untold: Vec<String> = parameters
            .properties()
            .map(|(name, _)| name)
            .filter(|name| !parameters.is_required(name))
            .filter(|name| self.hidden.iter().any(|untold| untold.is_about(told, name)))
            .map(str::to_owned)
            .collect();
        if untold.is_empty() {
            return;
        }
        let refinement = untold.iter().cloned().fold(Refinement::default(), Refinement::without);
        let mut simple = refinement.apply(told);
        simple.examples.retain(|example| !uses_any_argument(example, &untold));
        *told = Cow::Owned(simple);
    }

    /// Removes the tools that the profile names, and those that preferred ones replace.
    pub(super) fn remove_tools(&self, entries: &mut Vec<ViewEntry>) {
        entries.retain(|entry| !any_selects_tool(&self.removed, entry.tool.definition()));
        for ToolPreference { tools, over } in &self.preferences {
            let preferred = |entry: &ViewEntry| selects_tool(tools, entry.tool.definition());
            if entries.iter().any(|entry| entry.is_visible() && preferred(entry)) {
                entries.retain(|entry| {
                    preferred(entry) || !any_selects_tool(over, entry.tool.definition())
                });
            }
        }
    }
}

impl HiddenParameters {
    fn is_about(&self, definition: &Definition, name: &str) -> bool {
        self.parameter.as_deref().is_none_or(|parameter| parameter == name)
            && selects_tool(&self.tools, definition)
    }
}

/// Whether an example uses one of these arguments.
fn uses_any_argument(example: &str, arguments: &[String]) -> bool {
    serde_json::from_str::<serde_json::Value>(example)
        .is_ok_and(|example| arguments.iter().any(|name| example.get(name).is_some()))
}

/// Selects the profile for `model`.
pub(super) fn select_profile<'a>(
    profiles: &'a [ModelProfile],
    model: &str,
) -> Option<&'a ModelProfile> {
    // `max_by_key` returns the last of equal ones, and the first given one should win.
    profiles
        .iter()
        .rev()
        .filter_map(|profile| profile.match_score(model).map(|fit| (fit, profile)))
        .max_by_key(|(fit, _)| *fit)
        .map(|(_, profile)| profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(model: &str, expected: Option<usize>) {
        let profiles = [
            ModelProfile::new(["big-*", "*large*"]),
            ModelProfile::new(["big-old-*"]),
            ModelProfile::new(["BIG-?"]),
            ModelProfile::new(["*-mini"]),
            ModelProfile::new(["tiny-*"]),
        ];
        let found = select_profile(&profiles, model);
        let at = found.map(|found| profiles.iter().position(|it| std::ptr::eq(it, found)).unwrap());
        assert_eq!(at, expected, "{model}");
    }

    // F101
    #[test]
    fn the_most_specific_pattern_selects_the_profile() {
        check("big-7", Some(0));
        check("big-old-7", Some(1));
        check("maker/Big-Old-7", Some(1));
        check("a/b/extra-large", Some(0));
        // With equally specific patterns, the first profile wins.
        check("tiny-mini", Some(3));
        check("tiny-large", Some(0));
        check("small", None);
        check("", None);
    }
}
