//! What one approval grants, and to which tool.

use serde::{Deserialize, Serialize};

use crate::name::ToolName;
use crate::permission::Pattern;
use crate::tool::Resource;

/// What one approval grants to one tool: the resources that a pattern matches.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Grant, Grantee, Resource, ToolName};
///
/// let run = Grantee::new(ToolName::new("run")?, "run");
/// let grant = Grant::new(run.clone(), "git push *");
///
/// assert!(grant.covers(&run, &Resource::new("git push origin main")));
/// assert!(!grant.covers(&run, &Resource::new("git pull")));
/// # Ok::<(), tool_sdk::InvalidToolName>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
// A restriction that this version does not know must not be lost.
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Grant {
    /// The grantee.
    pub to: Grantee,
    /// The pattern, which must match the whole resource: unlike the pattern of a rule that denies,
    /// it never matches the end of a path alone.
    pub pattern: Pattern,
}

/// The grantee: a tool, as it was when the user approved it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Grantee {
    /// The tool's name.
    pub tool: ToolName,
    /// The permission that was granted.
    pub permission: String,
    /// The hash of a foreign tool's definition. When the definition changes, the grant is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
}

impl Grantee {
    /// Returns the grantee for a tool and a permission.
    #[must_use]
    pub fn new(tool: ToolName, permission: impl Into<String>) -> Self {
        Self { tool, permission: permission.into(), definition: None }
    }

    /// Binds the grant to one definition of a foreign tool.
    #[must_use]
    pub fn with_definition(mut self, hash: impl Into<String>) -> Self {
        self.definition = Some(hash.into());
        self
    }
}

impl Grant {
    /// Returns a grant of what `pattern` matches.
    #[must_use]
    pub fn new(to: Grantee, pattern: impl Into<Pattern>) -> Self {
        Self { to, pattern: pattern.into() }
    }

    /// Whether the grant lets `to` act on `resource`.
    ///
    /// A resource with a permission of its own needs a grant of that permission, and an opaque
    /// resource needs a grant of everything.
    #[must_use]
    pub fn covers(&self, to: &Grantee, resource: &Resource) -> bool {
        let permission = resource.permission().unwrap_or(&to.permission);
        let is_meant = self.to.tool == to.tool
            && self.to.permission == permission
            && self.to.definition == to.definition;
        is_meant && matches_resource(&self.pattern, resource)
    }
}

/// Whether `pattern`, granted for the permission of `resource`, covers it.
pub(super) fn matches_resource(pattern: &Pattern, resource: &Resource) -> bool {
    if resource.is_opaque() {
        return pattern.is_any();
    }
    if resource.names().any(|name| pattern.matches_any_case(name)) {
        return true;
    }
    match resource.absolute() {
        Some(_) => {
            resource.spellings().any(|path| pattern.matches(path) || pattern.matches_path(path))
        }
        None => pattern.matches_literally(resource.text()),
    }
}
