//! The resources that a call touches, as rules and people see them.
//!
//! A tool derives resources from its arguments; each of them is authorized separately.
//!
//! **Invariant:** nothing here decides. A resource describes itself, and knows no rule.

use std::borrow::Cow;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::error::{ErrorKind, ToolError};
use crate::redact::Redactor;
use crate::risk::RiskClass;

/// One thing that a call touches: a path, a command, a URL.
///
/// Every resource of a call is authorized separately, and the strictest decision applies to the
/// call.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Resource {
    text: Cow<'static, str>,
    path: Option<PathBuf>,
    sent_spelling: SentSpelling,
    permission: Option<Cow<'static, str>>,
    class: Option<RiskClass>,
    certainty: Certainty,
    approval: ApprovalDefault,
    role: ResourceRole,
    is_dangerous: bool,
    is_confined: bool,
    is_context_dependent: bool,
    /// What most resources have none of.
    details: Option<Box<ResourceDetails>>,
}

/// How well the tool understands what the call does to the resource, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Certainty {
    /// Known to be read-only.
    ReadOnly,
    /// Understood: every rule applies.
    Understood,
    /// Not understood; a rule for everything allows it, or one with exactly its text.
    ExactText,
    /// Not understood; only a rule for everything allows it.
    Opaque,
    /// Known only at run time, so that rules that deny cannot be matched against it either.
    AtRunTime,
}

/// What happens to the resource where no rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum ApprovalDefault {
    /// The tool or the mode decides.
    ByMode,
    /// It needs approval.
    Ask,
    /// It needs approval in every mode, and a rule for everything does not replace it.
    Mandatory,
}

/// Whether rules of every action apply to the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ResourceRole {
    /// It is authorized by itself.
    Whole,
    /// It is a part of another resource that is authorized itself; rules only deny or ask about it.
    Part,
}

/// The parts of a resource that few resources have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ResourceDetails {
    alias_paths: Vec<String>,
    names: Vec<String>,
    known_prefixes: Vec<String>,
    reason: Option<Cow<'static, str>>,
    suggestions: Vec<String>,
    forbidden_spelling: Option<Cow<'static, str>>,
    refusal: Option<Arc<ResourceRefusal>>,
    writable_folders: Option<Arc<[PathBuf]>>,
}

/// Another name of a folder or file: a workspace root, against which relative paths are resolved,
/// or the target of a symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathAlias {
    /// The real path, without links.
    pub(crate) target: PathBuf,
    /// The other name; empty for a root.
    pub(crate) alias: PathBuf,
}

impl PathAlias {
    /// Returns the name of `path` under this alias.
    fn apply(&self, path: &Path) -> Option<String> {
        let rest = path.strip_prefix(&self.target).ok()?;
        let is_end = rest.as_os_str().is_empty();
        let name = if is_end { self.alias.clone() } else { self.alias.join(rest) };
        name.into_os_string().into_string().ok()
    }
}

/// How a path was sent, if that differs from its text. Ignored when resources are compared.
#[derive(Clone, Debug, Default, Eq, Serialize, Deserialize)]
struct SentSpelling(Option<Box<str>>);

impl PartialEq for SentSpelling {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Why the tool would refuse the call.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ResourceRefusal {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl Resource {
    /// Creates a resource with a text for rules to match.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self::from_text(Cow::Owned(text.into()))
    }

    /// The permission for paths outside the workspace.
    pub(crate) const OUTSIDE: &str = "external_directory";

    /// The permission for files that are executed or read as configuration later.
    pub(crate) const PROTECTED: &str = "protected_path";

    /// The permissions that may apply to a path of any tool.
    pub(crate) const PERMISSIONS: [&str; 2] = [Self::OUTSIDE, Self::PROTECTED];

    /// The resource of a call whose tool names none: `*`.
    pub(crate) const ANY: Self = Self::from_text(Cow::Borrowed("*"));

    const fn from_text(text: Cow<'static, str>) -> Self {
        Self {
            text,
            path: None,
            sent_spelling: SentSpelling(None),
            permission: None,
            class: None,
            certainty: Certainty::Understood,
            approval: ApprovalDefault::ByMode,
            role: ResourceRole::Whole,
            is_dangerous: false,
            is_confined: false,
            is_context_dependent: false,
            details: None,
        }
    }

    /// Creates the resource of a file or folder, by its requested path and its absolute path.
    ///
    /// Rules may match either spelling. The target of a link is a separate resource.
    #[must_use]
    pub fn path(asked: impl Into<String>, absolute: impl Into<PathBuf>) -> Self {
        Self { path: Some(absolute.into()), ..Self::new(asked) }
    }

    /// Sets how the path was sent. Rules that deny match that spelling as well, and a rule on the
    /// argument that held the path matches this resource.
    #[cfg_attr(not(feature = "workspace"), expect(dead_code, reason = "no path is resolved"))]
    pub(crate) fn with_sent_path(mut self, sent: &str) -> Self {
        // Most paths are sent as they are shown.
        self.sent_spelling = SentSpelling((sent != self.text).then(|| sent.into()));
        self
    }

    /// Adds the other names of the path under these aliases; rules that deny match each of them.
    pub(crate) fn set_path_aliases(&mut self, ways: &[PathAlias]) {
        let Some(path) = &self.path else { return };
        let alias_paths: Vec<_> = ways.iter().filter_map(|way| way.apply(path)).collect();
        if !alias_paths.is_empty() {
            self.details_mut().alias_paths = alias_paths;
        }
    }

    /// Sets the permission, if it is not the tool's.
    #[must_use]
    pub fn with_permission(mut self, permission: impl Into<Cow<'static, str>>) -> Self {
        self.permission = Some(permission.into());
        self
    }

    /// Sets what the call can do to the resource, if that is less than the tool can do at worst.
    #[must_use]
    pub fn with_class(mut self, class: RiskClass) -> Self {
        self.class = Some(class);
        self
    }

    /// Declares that the call writes only below `folders` and in the folders for temporary files,
    /// because a mechanism such as a sandbox enforces that.
    ///
    /// With [limited writing](crate::Pipeline::writable_roots), every resource that may write
    /// needs approval unless it is a file or declares this.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// let test = Resource::new("cargo test").with_writable_folders(["/home/ada/project"]);
    /// assert_eq!(test.writable_folders().unwrap().len(), 1);
    /// ```
    #[must_use]
    pub fn with_writable_folders(
        mut self,
        folders: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> Self {
        self.details_mut().writable_folders = Some(folders.into_iter().map(Into::into).collect());
        self
    }

    /// Marks the resource as not understood: only a rule for everything allows it, and no
    /// "always" is offered.
    #[must_use]
    pub fn opaque(mut self) -> Self {
        self.certainty = self.certainty.max(Certainty::Opaque);
        self
    }

    /// Requires approval where no rule matches, even if the call only reads the resource.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{RiskClass, Resource};
    ///
    /// let elsewhere = Resource::new("/etc/hosts").with_class(RiskClass::Read).asks_by_default();
    /// assert!(elsewhere.is_asked_by_default());
    /// ```
    #[must_use]
    pub fn asks_by_default(mut self) -> Self {
        self.approval = self.approval.max(ApprovalDefault::Ask);
        self
    }

    /// Requires approval in every mode and regardless of hooks, where no rule matches. For
    /// effects beyond what a tool may do without its user, such as writing files that are
    /// executed later. Only a rule that names the permission allows it; `allow *` does not.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// let hook = Resource::new(".git/hooks/pre-push").requires_approval();
    /// assert!(hook.is_approval_mandatory() && hook.is_asked_by_default());
    /// ```
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.approval = ApprovalDefault::Mandatory;
        self
    }

    /// Marks the resource as known to be read-only, unless it is not understood.
    ///
    /// It counts as reading, unless the user sets
    /// [`safe_commands`](crate::ToolSettings::safe_commands) to `false`.
    #[must_use]
    pub fn known_safe(mut self) -> Self {
        if self.certainty == Certainty::Understood {
            self.certainty = Certainty::ReadOnly;
        }
        self
    }

    /// Adds a spelling that only rules that deny or ask match.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // A rule that denies `rm *` matches this one, too; a rule that allows it does not.
    /// let hidden = Resource::new("/tmp/rm -r notes").with_forbidden_spelling("rm -r notes");
    /// assert!(hidden.spellings().eq(["/tmp/rm -r notes"]));
    /// ```
    #[must_use]
    pub fn with_forbidden_spelling(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.details_mut().forbidden_spelling = Some(text.into());
        self
    }

    /// Adds a name of a group that the resource belongs to, such as `domain:docs.rs` for a URL. Rules
    /// of every action and grants match it as they match the text, ignoring ASCII case.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Action, Resource, Rule};
    ///
    /// // `allow fetch(domain:docs.rs)` allows every page of this host.
    /// let page = Resource::new("https://docs.rs/tokio").with_name("domain:docs.rs");
    /// assert!(page.names().eq(["domain:docs.rs"]));
    /// ```
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.details_mut().names.push(name.into());
        self
    }

    /// Marks it as a part of another resource, which is authorized itself: only rules that deny
    /// or ask match the part, and only those with a more specific pattern than `*`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // A rule that allows the script does not allow the commands inside it.
    /// let inside = Resource::new("rm -r notes").deny_rules_only();
    /// assert!(inside.has_deny_rules_only());
    /// ```
    #[must_use]
    pub fn deny_rules_only(mut self) -> Self {
        self.role = ResourceRole::Part;
        self
    }

    /// Declares that the effect is known only at run time, so that rules that deny cannot be
    /// matched against it.
    ///
    /// If any rule of the tool denies something, this resource needs approval, regardless of
    /// other rules and the mode.
    #[must_use]
    pub fn with_unknown_effect(mut self) -> Self {
        self.certainty = Certainty::AtRunTime;
        self
    }

    /// Marks the resource as not understood, like [`opaque`](Self::opaque), except that a rule with
    /// exactly this text allows it as well, because the author of such a rule has seen the text.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // `allow run(sed -i s/a/b/ notes)` matches it, and `allow run(sed *)` does not.
    /// let writes = Resource::new("sed -i s/a/b/ notes").requires_exact_rule();
    /// assert!(writes.is_opaque() && writes.needs_exact_rule());
    /// ```
    #[must_use]
    pub fn requires_exact_rule(mut self) -> Self {
        self.certainty = self.certainty.max(Certainty::ExactText);
        self
    }

    /// Declares that the call will fail with this error even if it is allowed. It is not offered
    /// for approval, and the decision is a denial.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Resource, ToolError};
    ///
    /// let gone = ToolError::not_found("there is no `shed`");
    /// let shed = Resource::new("shed").with_refusal(&gone);
    /// assert_eq!(shed.refusal().unwrap().message(), "there is no `shed`");
    /// ```
    #[must_use]
    pub fn with_refusal(mut self, error: &ToolError) -> Self {
        let (message, hint) = (error.message().to_owned(), error.suggestion().map(str::to_owned));
        let refusal = ResourceRefusal { kind: error.kind(), message, hint };
        self.details_mut().refusal = Some(Arc::new(refusal));
        self
    }

    /// Sets why the resource needs attention: why it was not understood, or what is special about
    /// it. The reason is shown to the approver, and to the model after a denial.
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
        self.details_mut().reason = Some(reason.into());
        self
    }

    /// Sets the patterns for "always", from specific to general. They are used only where no
    /// other resource of the call needs approval and the tool has no suggestions for the whole
    /// call.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// let push = Resource::new("git push origin").with_suggestions(["git push *"]);
    /// assert_eq!(push.suggestions(), ["git push *"]);
    /// ```
    #[must_use]
    pub fn with_suggestions(
        mut self,
        patterns: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.details_mut().suggestions = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Marks the effect as irreversible: it needs approval in every mode, and only a rule with
    /// exactly its text allows it.
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
        self.is_dangerous = true;
        self
    }

    /// Declares that a sandbox, enforced in full, confines what the call does, and that the user
    /// wants no approvals for that. Where no rule matches, the mode `auto` then allows it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// let test = Resource::new("cargo test").confined_by_sandbox();
    /// assert!(test.is_confined_by_sandbox());
    /// ```
    #[must_use]
    pub fn confined_by_sandbox(mut self) -> Self {
        self.is_confined = true;
        self
    }

    /// Removes [`confined_by_sandbox`](Self::confined_by_sandbox): the sandbox is not one that the
    /// deciding program knows.
    pub(crate) fn without_confinement(mut self) -> Self {
        self.is_confined = false;
        self
    }

    /// Declares that the effect depends on more than the text, such as the working folder. No
    /// rule matches it exactly.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // `allow run(rm -rf notes)` applies to the folder in which commands usually run.
    /// let elsewhere = Resource::new("rm -rf notes").dangerous().context_dependent();
    /// assert!(elsewhere.is_dangerous());
    /// ```
    #[must_use]
    pub fn context_dependent(mut self) -> Self {
        self.is_context_dependent = true;
        self
    }

    /// Declares that only the beginning of the text is known, in each of these spellings. If a
    /// rule denies a text that may begin so, the resource needs approval, regardless of other
    /// rules and the mode.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Resource;
    ///
    /// // `deny run(git push *)` may match it, and `deny run(curl *)` does not.
    /// let begun = Resource::new("git p*").with_known_prefixes(["git p"]);
    /// assert_eq!(begun.text(), "git p*");
    /// ```
    #[must_use]
    pub fn with_known_prefixes(
        mut self,
        with: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let known_prefixes: Vec<_> = with.into_iter().map(Into::into).collect();
        if !known_prefixes.is_empty() {
            self.details_mut().known_prefixes = known_prefixes;
        }
        self
    }

    /// Returns the resource with secrets masked, for events and logs.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        let is_clean = |text: &str| redactor.redact(text) == text;
        if !self.forbidden_spellings().chain(self.names()).chain(self.reason()).all(is_clean) {
            (self.path, self.sent_spelling) = Default::default();
            if let Some(details) = &mut self.details {
                **details = ResourceDetails {
                    known_prefixes: mem::take(&mut details.known_prefixes),
                    writable_folders: details.writable_folders.take(),
                    ..ResourceDetails::default()
                };
            }
            redactor.redact_in_place(self.text.to_mut());
        }
        self
    }

    fn details_mut(&mut self) -> &mut ResourceDetails {
        self.details.get_or_insert_default()
    }

    /// Returns the text that rules match and people read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns every text that rules of any kind match.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        let absolute = self.path.as_deref().and_then(Path::to_str);
        std::iter::once(&*self.text).chain(absolute.filter(|&path| path != self.text))
    }

    /// Returns the names of the groups that the resource belongs to.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.details.iter().flat_map(|it| &it.names).map(String::as_str)
    }

    /// Returns whether this is the path that an argument with this text names.
    pub(crate) fn is_sent_as(&self, text: &str) -> bool {
        match &self.sent_spelling.0 {
            Some(sent) if **sent == *text => true,
            _ => self.path.is_some() && self.spellings().any(|spelling| spelling == text),
        }
    }

    /// Returns the absolute path of a file or folder.
    #[must_use]
    pub fn absolute(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the permission, if it is not the tool's.
    #[must_use]
    pub fn permission(&self) -> Option<&str> {
        self.permission.as_deref()
    }

    /// Returns what the call can do to the resource, if the tool declares it.
    #[must_use]
    pub fn risk_class(&self) -> Option<RiskClass> {
        self.class
    }

    /// Returns what the call can do to the resource; `trusting` says whether the marks of
    /// read-only commands count.
    pub(crate) fn effective_class(&self, trusting: bool) -> Option<RiskClass> {
        if self.certainty == Certainty::ReadOnly && trusting {
            Some(RiskClass::Read)
        } else {
            self.class
        }
    }

    /// Returns whether a sandbox confines what the call does, so that it needs no approval.
    #[must_use]
    pub fn is_confined_by_sandbox(&self) -> bool {
        self.is_confined
    }

    /// Returns every text that rules that deny or ask match.
    pub(crate) fn forbidden_spellings(&self) -> impl Iterator<Item = &str> {
        let sent = self.sent_spelling.0.as_deref();
        let details = self.details.as_deref();
        let forbidden = details.and_then(|it| it.forbidden_spelling.as_deref());
        let aliases = details.into_iter().flat_map(|it| &it.alias_paths).map(String::as_str);
        self.spellings().chain(forbidden).chain(sent).chain(aliases)
    }

    /// Returns the error with which the call will fail.
    #[must_use]
    pub fn refusal(&self) -> Option<ToolError> {
        let refusal = self.details.as_ref()?.refusal.as_ref()?;
        let error = ToolError::new(refusal.kind, &refusal.message);
        Some(match &refusal.hint {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }

    /// Returns the only folders below which the call can write, if that is enforced.
    #[must_use]
    pub fn writable_folders(&self) -> Option<&[PathBuf]> {
        self.details.as_ref()?.writable_folders.as_deref()
    }

    /// Returns whether it needs approval where no rule matches.
    #[must_use]
    pub fn is_asked_by_default(&self) -> bool {
        self.approval >= ApprovalDefault::Ask
    }

    /// Returns whether it needs approval in every mode, where no rule matches.
    #[must_use]
    pub fn is_approval_mandatory(&self) -> bool {
        self.approval == ApprovalDefault::Mandatory
    }

    /// Returns whether it is a part of another resource, which is authorized itself.
    #[must_use]
    pub fn has_deny_rules_only(&self) -> bool {
        self.role == ResourceRole::Part
    }

    /// Returns whether rules that deny cannot be matched against its effect.
    #[must_use]
    pub fn has_unknown_effect(&self) -> bool {
        self.certainty == Certainty::AtRunTime
    }

    /// Returns why it needs attention, if the tool declares a reason.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.details.as_ref()?.reason.as_deref()
    }

    /// Returns the patterns for "always".
    #[must_use]
    pub fn suggestions(&self) -> &[String] {
        self.details.as_ref().map_or(&[], |it| &it.suggestions)
    }

    /// Returns whether the effect is irreversible.
    #[must_use]
    pub fn is_dangerous(&self) -> bool {
        self.is_dangerous
    }

    /// Returns whether a rule with exactly its text allows it although it is not understood.
    #[must_use]
    pub fn needs_exact_rule(&self) -> bool {
        self.certainty == Certainty::ExactText && !self.is_context_dependent
    }

    /// Returns whether the effect depends on more than the text.
    pub(crate) fn is_context_dependent(&self) -> bool {
        self.is_context_dependent
    }

    /// Returns the known beginning in every spelling, if only the beginning is known.
    pub(crate) fn known_prefixes(&self) -> &[String] {
        self.details.as_ref().map_or(&[], |it| &it.known_prefixes)
    }

    /// Returns whether it was not understood.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        self.certainty >= Certainty::ExactText
    }
}

/// Serializes what people read of the resource.
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
