//! What a call touches, as rules and people see it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::effect::RiskClass;

/// The proof that a call went through every gate; only a pipeline has it.
#[derive(Debug)]
pub struct Approved(());

impl Approved {
    pub(crate) const fn by_pipeline() -> Self {
        Self(())
    }
}

/// One thing that a call touches: a path, a command, an address.
///
/// Every subject of a call is judged on its own, and the strictest answer holds.
///
/// # Examples
///
/// ```
/// use tool_sdk::Subject;
///
/// let plain = Subject::new("git status");
/// assert_eq!(plain.text(), "git status");
///
/// let file = Subject::path("src/main.rs", "/home/ada/project/src/main.rs");
/// assert!(file.spellings().eq(["src/main.rs", "/home/ada/project/src/main.rs"]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    text: Cow<'static, str>,
    path: Option<PathBuf>,
    permission: Option<Cow<'static, str>>,
    class: Option<RiskClass>,
    opaque: bool,
}

impl Subject {
    /// The subject that rules match.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self::of(Cow::Owned(text.into()))
    }

    /// What a call is about that does not say: `*`.
    pub(crate) const ANY: Self = Self::of(Cow::Borrowed("*"));

    const fn of(text: Cow<'static, str>) -> Self {
        Self { text, path: None, permission: None, class: None, opaque: false }
    }

    /// A file or folder: as it was asked for, and where it is.
    ///
    /// Rules may speak of either spelling. What a link leads to is a subject of its own.
    #[must_use]
    pub fn path(asked: impl Into<String>, absolute: impl Into<PathBuf>) -> Self {
        Self { path: Some(absolute.into()), ..Self::new(asked) }
    }

    /// Judges it under another permission than the tool's.
    #[must_use]
    pub fn under(mut self, permission: impl Into<Cow<'static, str>>) -> Self {
        self.permission = Some(permission.into());
        self
    }

    /// Says what the call can do to it, where that is not what the tool can do at worst.
    #[must_use]
    pub fn class(mut self, class: RiskClass) -> Self {
        self.class = Some(class);
        self
    }

    /// Marks it as something that was not understood: only a rule for everything allows
    /// it, and no "always" is offered.
    #[must_use]
    pub fn opaque(mut self) -> Self {
        self.opaque = true;
        self
    }

    /// The text that rules match and people read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every text that rules may match.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        let absolute = self.path.as_deref().and_then(Path::to_str);
        std::iter::once(&*self.text).chain(absolute.filter(|&path| path != self.text))
    }

    /// Where it is, for a file or folder.
    #[must_use]
    pub fn absolute(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The permission under which it is judged, where that is not the tool's.
    #[must_use]
    pub fn permission(&self) -> Option<&str> {
        self.permission.as_deref()
    }

    /// What the call can do to it, where the tool says.
    #[must_use]
    pub fn risk_class(&self) -> Option<RiskClass> {
        self.class
    }

    /// Whether it was not understood.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        self.opaque
    }
}

/// A subject as people read it.
impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<T: Into<String>> From<T> for Subject {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}
