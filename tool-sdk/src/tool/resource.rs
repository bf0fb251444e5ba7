//! What a call touches, as rules and people see it.
//!
//! A tool makes subjects of its arguments, and each of them is judged on its own.
//!
//! **Invariant:** nothing here decides. A subject says what it is, and knows no rule.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::error::{ErrorKind, ToolError};
use crate::redact::Redactor;
use crate::risk::RiskClass;

/// One thing that a call touches: a path, a command, an address.
///
/// Every subject of a call is judged on its own, and the strictest answer holds.
///
/// # Examples
///
/// ```
/// use tool_sdk::Resource;
///
/// let plain = Resource::new("git status");
/// assert_eq!(plain.text(), "git status");
///
/// let file = Resource::path("src/main.rs", "/home/ada/project/src/main.rs");
/// assert!(file.spellings().eq(["src/main.rs", "/home/ada/project/src/main.rs"]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    text: Cow<'static, str>,
    path: Option<PathBuf>,
    sent_spelling: SentSpelling,
    alias_paths: Vec<String>,
    permission: Option<Cow<'static, str>>,
    class: Option<RiskClass>,
    opaque: bool,
    needs_exact_rule: bool,
    asks_by_default: bool,
    requires_approval: bool,
    known_safe: bool,
    deny_rules_only: bool,
    has_unknown_effect: bool,
    dangerous: bool,
    is_context_dependent: bool,
    known_prefixes: Vec<String>,
    reason: Option<Cow<'static, str>>,
    suggestions: Vec<String>,
    forbidden_spelling: Option<Cow<'static, str>>,
    refusal: Option<Arc<ResourceRefusal>>,
    writable_folders: Option<Arc<[PathBuf]>>,
}

/// A folder or file that has another name: a root, in which relative paths start, or the end of a
/// link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathAlias {
    /// Where it is, without links.
    pub(crate) target: PathBuf,
    /// What it is called; nothing for a root.
    pub(crate) alias: PathBuf,
}

impl PathAlias {
    /// What `path` is called on this way.
    fn apply(&self, path: &Path) -> Option<String> {
        let rest = path.strip_prefix(&self.target).ok()?;
        let is_end = rest.as_os_str().is_empty();
        let name = if is_end { self.alias.clone() } else { self.alias.join(rest) };
        name.into_os_string().into_string().ok()
    }
}

/// How a path was sent, where that is not its text. It is the same subject, however that was.
#[derive(Clone, Debug, Default, Eq)]
struct SentSpelling(Option<Box<str>>);

impl PartialEq for SentSpelling {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Why a tool would not do what the call asks for.
#[derive(Debug, PartialEq, Eq)]
struct ResourceRefusal {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl Resource {
    /// The subject that rules match.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self::from_text(Cow::Owned(text.into()))
    }

    /// The permission under which paths outside of the workspace are judged.
    pub(crate) const OUTSIDE: &str = "external_directory";

    /// The permission under which files are judged that something executes or obeys later.
    pub(crate) const PROTECTED: &str = "protected_path";

    /// The permissions under which a path of any tool may be judged.
    pub(crate) const PERMISSIONS: [&str; 2] = [Self::OUTSIDE, Self::PROTECTED];

    /// What a call is about that does not say: `*`.
    pub(crate) const ANY: Self = Self::from_text(Cow::Borrowed("*"));

    const fn from_text(text: Cow<'static, str>) -> Self {
        Self {
            text,
            path: None,
            sent_spelling: SentSpelling(None),
            alias_paths: Vec::new(),
            permission: None,
            class: None,
            opaque: false,
            needs_exact_rule: false,
            asks_by_default: false,
            requires_approval: false,
            known_safe: false,
            deny_rules_only: false,
            has_unknown_effect: false,
            dangerous: false,
            is_context_dependent: false,
            known_prefixes: Vec::new(),
            reason: None,
            suggestions: Vec::new(),
            forbidden_spelling: None,
            refusal: None,
            writable_folders: None,
        }
    }

    /// A file or folder: as it was asked for, and where it is.
    ///
    /// Rules may speak of either spelling. What a link leads to is a subject of its own.
    #[must_use]
    pub fn path(asked: impl Into<String>, absolute: impl Into<PathBuf>) -> Self {
        Self { path: Some(absolute.into()), ..Self::new(asked) }
    }

    /// Says how the path was sent: rules that forbid mean it by that name, too, and a rule on the
    /// argument that held it is about this.
    #[cfg_attr(not(feature = "workspace"), expect(dead_code, reason = "no path is resolved"))]
    pub(in crate::tool) fn with_sent_path(mut self, sent: &str) -> Self {
        // Most are sent as they are told.
        self.sent_spelling = SentSpelling((sent != self.text).then(|| sent.into()));
        self
    }

    /// Says what else it is called, when there are these ways to where it is: a rule that forbids
    /// it means it by any of the names.
    pub(crate) fn set_path_aliases(&mut self, ways: &[PathAlias]) {
        let Some(path) = &self.path else { return };
        self.alias_paths = ways.iter().filter_map(|way| way.apply(path)).collect();
    }

    /// Judges it under another permission than the tool's.
    #[must_use]
    pub fn with_permission(mut self, permission: impl Into<Cow<'static, str>>) -> Self {
        self.permission = Some(permission.into());
        self
    }

    /// Says what the call can do to it, where that is not what the tool can do at worst.
    #[must_use]
    pub fn with_class(mut self, class: RiskClass) -> Self {
        self.class = Some(class);
        self
    }

    /// Says that what it does writes nowhere but below `folders`, and where temporary files are
    /// kept, because something such as a sandbox holds it there.
    ///
    /// Where [writing is limited](crate::Pipeline::writable_roots), somebody is asked about
    /// everything that may write and neither names a file nor says this.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// let test = Resource::new("cargo test").with_writable_folders(["/home/ada/project"]);
    /// assert_eq!(test.written_below().unwrap().len(), 1);
    /// ```
    #[must_use]
    pub fn with_writable_folders(
        mut self,
        folders: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> Self {
        self.writable_folders = Some(folders.into_iter().map(Into::into).collect());
        self
    }

    /// Marks it as something that was not understood: only a rule for everything allows
    /// it, and no "always" is offered.
    #[must_use]
    pub fn opaque(mut self) -> Self {
        self.opaque = true;
        self
    }

    /// Has somebody asked about it where no rule speaks of it, also when the call only reads
    /// it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{RiskClass, Resource};
    ///
    /// let elsewhere = Resource::new("/etc/hosts").with_class(RiskClass::Read).asks_by_default();
    /// assert!(elsewhere.is_asked_about());
    /// ```
    #[must_use]
    pub fn asks_by_default(mut self) -> Self {
        self.asks_by_default = true;
        self
    }

    /// Has somebody asked about it in every mode and whatever a hook says, where no rule speaks of
    /// it: it is no part of what a tool may do without its user, such as writing what is run later.
    /// A rule that allows it names its permission; `allow *` does not.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// let hook = Resource::new(".git/hooks/pre-push").requires_approval();
    /// assert!(hook.is_mandatory() && hook.is_asked_about());
    /// ```
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.requires_approval = true;
        self.asks_by_default()
    }

    /// Marks it as something that is on a list of what does nothing but read.
    ///
    /// It counts as reading, until a person sets
    /// [`safe_commands`](crate::Settings::safe_commands) to no.
    #[must_use]
    pub fn known_safe(mut self) -> Self {
        self.known_safe = true;
        self
    }

    /// Adds a spelling that only rules that forbid or ask look at.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // A rule against `rm *` means this one too; a rule that allows it does not.
    /// let hidden = Resource::new("/tmp/rm -r notes").with_forbidden_spelling("rm -r notes");
    /// assert!(hidden.spellings().eq(["/tmp/rm -r notes"]));
    /// ```
    #[must_use]
    pub fn with_forbidden_spelling(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.forbidden_spelling = Some(text.into());
        self
    }

    /// Marks it as a part of another subject, which is judged: only rules that forbid or ask
    /// are about it, and only those that name more than everything.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // What code of another language may run is not what a rule allows.
    /// let inside = Resource::new("rm -r notes").deny_rules_only();
    /// assert!(inside.is_only_forbidden());
    /// ```
    #[must_use]
    pub fn deny_rules_only(mut self) -> Self {
        self.deny_rules_only = true;
        self
    }

    /// Says that what it does is only known when it happens, so that no rule that forbids
    /// something can be held against it.
    ///
    /// Where any rule of the tool denies something, somebody is asked about it, whatever other
    /// rules and the mode allow.
    #[must_use]
    pub fn with_unknown_effect(mut self) -> Self {
        self.has_unknown_effect = true;
        self.opaque()
    }

    /// Says that of what is not understood well enough for other rules, one that has exactly its
    /// text allows it: whoever wrote that has looked at it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // `allow run(sed -i s/a/b/ notes)` is about it, and `allow run(sed *)` is not.
    /// let writes = Resource::new("sed -i s/a/b/ notes").opaque().requires_exact_rule();
    /// assert!(writes.is_opaque() && writes.is_unless_exact());
    /// ```
    #[must_use]
    pub fn requires_exact_rule(mut self) -> Self {
        self.needs_exact_rule = true;
        self
    }

    /// Says that the call will fail on it with this error, whoever allows it: nobody is asked,
    /// and what would be decided is a denial.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Resource, ToolError};
    ///
    /// let gone = ToolError::not_found("there is no `shed`");
    /// let subject = Resource::new("shed").with_refusal(&gone);
    /// assert_eq!(subject.refusal().unwrap().message(), "there is no `shed`");
    /// ```
    #[must_use]
    pub fn with_refusal(mut self, error: &ToolError) -> Self {
        let (message, hint) = (error.message().to_owned(), error.suggestion().map(str::to_owned));
        self.refusal = Some(Arc::new(ResourceRefusal { kind: error.kind(), message, hint }));
        self
    }

    /// Says why somebody has to look at it: of what was not understood, why not, and of
    /// anything else what is special about it. Whoever is asked reads it, and whoever is
    /// refused.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// let unknown = Resource::new("make `target`").opaque().with_reason("backticks are not understood");
    /// assert_eq!(unknown.reason(), Some("backticks are not understood"));
    /// ```
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Says what "always" may stand for, from specific to general, where nothing else that the
    /// call touches is asked about and the tool has no suggestions for the call as a whole.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// let push = Resource::new("git push origin").with_suggestions(["git push *"]);
    /// assert_eq!(push.offers(), ["git push *"]);
    /// ```
    #[must_use]
    pub fn with_suggestions(
        mut self,
        patterns: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.suggestions = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Marks it as something that cannot be brought back: somebody is asked about it in every
    /// mode, and only a rule with exactly its text allows it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// assert!(Resource::new("rm -rf notes").dangerous().is_dangerous());
    /// ```
    #[must_use]
    pub fn dangerous(mut self) -> Self {
        self.dangerous = true;
        self
    }

    /// Says that what it does depends on more than its text, such as where it happens: no rule is
    /// exactly about it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // `allow run(rm -rf notes)` speaks of the folder in which commands usually run.
    /// let elsewhere = Resource::new("rm -rf notes").dangerous().context_dependent();
    /// assert!(elsewhere.is_dangerous());
    /// ```
    #[must_use]
    pub fn context_dependent(mut self) -> Self {
        self.is_context_dependent = true;
        self
    }

    /// Says that only the beginning of it is known, in each of these spellings. Where a rule denies
    /// something that may begin so, somebody is asked, whatever other rules and the mode allow.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // `deny run(git push *)` may be about it, and `deny run(curl *)` is not.
    /// let begun = Resource::new("git p*").with_known_prefixes(["git p"]);
    /// assert_eq!(begun.text(), "git p*");
    /// ```
    #[must_use]
    pub fn with_known_prefixes(
        mut self,
        with: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.known_prefixes = with.into_iter().map(Into::into).collect();
        self
    }

    /// The subject without what `redactor` finds, for those who only read of it.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        let is_clean = |text: &str| redactor.redact(text) == text;
        if !self.forbidden_spellings().chain(self.reason()).all(is_clean) {
            (self.path, self.sent_spelling, self.forbidden_spelling, self.refusal) =
                Default::default();
            (self.reason, self.suggestions, self.alias_paths) = Default::default();
            redactor.redact_in_place(self.text.to_mut());
        }
        self
    }

    /// The text that rules match and people read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every text that any rule may match.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        let absolute = self.path.as_deref().and_then(Path::to_str);
        std::iter::once(&*self.text).chain(absolute.filter(|&path| path != self.text))
    }

    /// Whether it is the path that an argument with this text means.
    pub(crate) fn is_sent_as(&self, text: &str) -> bool {
        match &self.sent_spelling.0 {
            Some(sent) if **sent == *text => true,
            _ => self.path.is_some() && self.spellings().any(|spelling| spelling == text),
        }
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

    /// What the call can do to it, when `trusting` lists of what does nothing but read.
    pub(crate) fn effective_class(&self, trusting: bool) -> Option<RiskClass> {
        if self.known_safe && trusting { Some(RiskClass::Read) } else { self.class }
    }

    /// Every text that a rule may match that forbids or asks.
    pub(crate) fn forbidden_spellings(&self) -> impl Iterator<Item = &str> {
        let sent = self.sent_spelling.0.as_deref();
        let below = self.alias_paths.iter().map(String::as_str);
        self.spellings().chain(self.forbidden_spelling.as_deref()).chain(sent).chain(below)
    }

    /// The error with which the call will fail on it.
    #[must_use]
    pub fn refusal(&self) -> Option<ToolError> {
        let refusal = self.refusal.as_ref()?;
        let error = ToolError::new(refusal.kind, &refusal.message);
        Some(match &refusal.hint {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }

    /// The only folders that it can write below, where something holds it there.
    #[must_use]
    pub fn writable_folders(&self) -> Option<&[PathBuf]> {
        self.writable_folders.as_deref()
    }

    /// Whether somebody is asked about it where no rule speaks of it.
    #[must_use]
    pub fn is_asked_by_default(&self) -> bool {
        self.asks_by_default
    }

    /// Whether somebody is asked about it in every mode, where no rule speaks of it.
    #[must_use]
    pub fn is_approval_mandatory(&self) -> bool {
        self.requires_approval
    }

    /// Whether it is a part of another subject, which is judged.
    #[must_use]
    pub fn has_deny_rules_only(&self) -> bool {
        self.deny_rules_only
    }

    /// Whether no rule that forbids something can be held against it.
    #[must_use]
    pub fn has_unknown_effect(&self) -> bool {
        self.has_unknown_effect
    }

    /// Why somebody has to look at it, where the tool says.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// What "always" may stand for.
    #[must_use]
    pub fn suggestions(&self) -> &[String] {
        &self.suggestions
    }

    /// Whether it cannot be brought back.
    #[must_use]
    pub fn is_dangerous(&self) -> bool {
        self.dangerous
    }

    /// Whether a rule that has exactly its text is about it, though it is not understood.
    #[must_use]
    pub fn needs_exact_rule(&self) -> bool {
        self.needs_exact_rule && !self.is_context_dependent
    }

    /// Whether what it does depends on more than its text.
    pub(crate) fn is_context_dependent(&self) -> bool {
        self.is_context_dependent
    }

    /// Its beginning in every spelling, where no more of it is known.
    pub(crate) fn known_prefixes(&self) -> &[String] {
        &self.known_prefixes
    }

    /// Whether it was not understood.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        self.opaque
    }
}

/// A subject as people read it.
impl Serialize for Resource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<T: Into<String>> From<T> for Resource {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}
