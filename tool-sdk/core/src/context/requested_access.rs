//! What a running tool requests a permission for, and what is decided about it.
//!
//! **Invariant:** a description; the pipeline makes a resource of it and decides.

/// Something that a running tool wants to reach: a text for rules to match, and the names of the
/// groups that it belongs to.
///
/// # Examples
///
/// ```
/// use tool_sdk::RequestedAccess;
///
/// let page = RequestedAccess::new("https://docs.rs/tokio").with_name("domain:docs.rs").read_only();
/// assert_eq!(page.text(), "https://docs.rs/tokio");
///
/// // A text alone is a request, too.
/// let host: RequestedAccess = "example.com".into();
/// assert!(host.names().is_empty() && !host.is_read_only());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedAccess {
    text: String,
    names: Vec<String>,
    is_read_only: bool,
    denied_under: Option<String>,
}

impl RequestedAccess {
    /// Creates a request for what rules know by this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), names: Vec::new(), is_read_only: false, denied_under: None }
    }

    /// Adds the name of a group that it belongs to, such as `domain:docs.rs`. Rules match it as
    /// they match the text, ignoring ASCII case, and an approval "always" is about the names.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Declares that the tool only reads it, so that modes that allow only reading do not forbid
    /// it. Where no rule matches, it needs approval all the same.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Lets rules that deny or ask also match it under this permission.
    #[doc(hidden)]
    #[must_use]
    pub fn denied_under(mut self, permission: impl Into<String>) -> Self {
        self.denied_under = Some(permission.into());
        self
    }

    /// Returns the text that rules match.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names of the groups that it belongs to.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether the tool only reads it.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Returns the permission under which only rules that deny or ask match it.
    pub(crate) fn denying_permission(&self) -> Option<&str> {
        self.denied_under.as_deref()
    }

    pub(crate) fn text_mut(&mut self) -> &mut String {
        &mut self.text
    }
}

impl<T: Into<String>> From<T> for RequestedAccess {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// What rules, grants and the mode decide about a request, without a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other decisions")]
pub enum AccessDecision {
    /// It is allowed.
    Allowed,
    /// It needs an approval, because no rule, no grant and no mode decides about it.
    NeedsApproval,
    /// It needs an approval, because a rule asks.
    AskedByRule,
    /// It is denied.
    Denied,
}
