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
    sent: Sent,
    below: Vec<String>,
    permission: Option<Cow<'static, str>>,
    class: Option<RiskClass>,
    opaque: bool,
    unless_exact: bool,
    asks: bool,
    mandatory: bool,
    known_safe: bool,
    only_forbidden: bool,
    nameless: bool,
    dangerous: bool,
    means_more: bool,
    beginnings: Vec<String>,
    because: Option<Cow<'static, str>>,
    offers: Vec<String>,
    forbidden_as: Option<Cow<'static, str>>,
    refusal: Option<Arc<Refusal>>,
    written_below: Option<Arc<[PathBuf]>>,
}

/// A folder or file that has another name: a root, in which relative paths start, or the end of a
/// link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Where it is, without links.
    pub(crate) place: PathBuf,
    /// What it is called; nothing for a root.
    pub(crate) name: PathBuf,
}

impl Way {
    /// What `path` is called on this way.
    fn to(&self, path: &Path) -> Option<String> {
        let rest = path.strip_prefix(&self.place).ok()?;
        let is_end = rest.as_os_str().is_empty();
        let name = if is_end { self.name.clone() } else { self.name.join(rest) };
        name.into_os_string().into_string().ok()
    }
}

/// How a path was sent, where that is not its text. It is the same subject, however that was.
#[derive(Clone, Debug, Default, Eq)]
struct Sent(Option<Box<str>>);

impl PartialEq for Sent {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Why a tool would not do what the call asks for.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl Subject {
    /// The subject that rules match.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self::of(Cow::Owned(text.into()))
    }

    /// The permission under which paths outside of the workspace are judged.
    pub(crate) const OUTSIDE: &str = "external_directory";

    /// The permission under which files are judged that something executes or obeys later.
    pub(crate) const PROTECTED: &str = "protected_path";

    /// The permissions under which a path of any tool may be judged.
    pub(crate) const PERMISSIONS: [&str; 2] = [Self::OUTSIDE, Self::PROTECTED];

    /// What a call is about that does not say: `*`.
    pub(crate) const ANY: Self = Self::of(Cow::Borrowed("*"));

    const fn of(text: Cow<'static, str>) -> Self {
        Self {
            text,
            path: None,
            sent: Sent(None),
            below: Vec::new(),
            permission: None,
            class: None,
            opaque: false,
            unless_exact: false,
            asks: false,
            mandatory: false,
            known_safe: false,
            only_forbidden: false,
            nameless: false,
            dangerous: false,
            means_more: false,
            beginnings: Vec::new(),
            because: None,
            offers: Vec::new(),
            forbidden_as: None,
            refusal: None,
            written_below: None,
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
    pub(in crate::tool) fn sent_as(mut self, sent: &str) -> Self {
        // Most are sent as they are told.
        self.sent = Sent((sent != self.text).then(|| sent.into()));
        self
    }

    /// Says what else it is called, when there are these ways to where it is: a rule that forbids
    /// it means it by any of the names.
    pub(crate) fn seen_from(&mut self, ways: &[Way]) {
        let Some(path) = &self.path else { return };
        self.below = ways.iter().filter_map(|way| way.to(path)).collect();
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

    /// Says that what it does writes nowhere but below `folders`, and where temporary files are
    /// kept, because something such as a sandbox holds it there.
    ///
    /// Where [writing is limited](crate::Pipeline::writable_roots), somebody is asked about
    /// everything that may write and neither names a file nor says this.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Subject;
    ///
    /// let test = Subject::new("cargo test").writes_only_below(["/home/ada/project"]);
    /// assert_eq!(test.written_below().unwrap().len(), 1);
    /// ```
    #[must_use]
    pub fn writes_only_below(
        mut self,
        folders: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> Self {
        self.written_below = Some(folders.into_iter().map(Into::into).collect());
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
    /// use tool_sdk::{RiskClass, Subject};
    ///
    /// let elsewhere = Subject::new("/etc/hosts").class(RiskClass::Read).always_asks();
    /// assert!(elsewhere.is_asked_about());
    /// ```
    #[must_use]
    pub fn always_asks(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Has somebody asked about it in every mode and whatever a hook says, where no rule speaks of
    /// it: it is no part of what a tool may do without its user, such as writing what is run later.
    /// A rule that allows it names its permission; `allow *` does not.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Subject;
    ///
    /// let hook = Subject::new(".git/hooks/pre-push").mandatory();
    /// assert!(hook.is_mandatory() && hook.is_asked_about());
    /// ```
    #[must_use]
    pub fn mandatory(mut self) -> Self {
        self.mandatory = true;
        self.always_asks()
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
    /// use tool_sdk::Subject;
    ///
    /// // A rule against `rm *` means this one too; a rule that allows it does not.
    /// let hidden = Subject::new("/tmp/rm -r notes").also_forbidden_as("rm -r notes");
    /// assert!(hidden.spellings().eq(["/tmp/rm -r notes"]));
    /// ```
    #[must_use]
    pub fn also_forbidden_as(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.forbidden_as = Some(text.into());
        self
    }

    /// Marks it as a part of another subject, which is judged: only rules that forbid or ask
    /// are about it, and only those that name more than everything.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Subject;
    ///
    /// // What code of another language may run is not what a rule allows.
    /// let inside = Subject::new("rm -r notes").only_forbidden();
    /// assert!(inside.is_only_forbidden());
    /// ```
    #[must_use]
    pub fn only_forbidden(mut self) -> Self {
        self.only_forbidden = true;
        self
    }

    /// Says that what it does is only known when it happens, so that no rule that forbids
    /// something can be held against it.
    ///
    /// Where any rule of the tool denies something, somebody is asked about it, whatever other
    /// rules and the mode allow.
    #[must_use]
    pub fn nameless(mut self) -> Self {
        self.nameless = true;
        self.opaque()
    }

    /// Says that of what is not understood well enough for other rules, one that has exactly its
    /// text allows it: whoever wrote that has looked at it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Subject;
    ///
    /// // `allow run(sed -i s/a/b/ notes)` is about it, and `allow run(sed *)` is not.
    /// let writes = Subject::new("sed -i s/a/b/ notes").opaque().unless_exact();
    /// assert!(writes.is_opaque() && writes.is_unless_exact());
    /// ```
    #[must_use]
    pub fn unless_exact(mut self) -> Self {
        self.unless_exact = true;
        self
    }

    /// Says that the call will fail on it with this error, whoever allows it: nobody is asked,
    /// and what would be decided is a denial.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Subject, ToolError};
    ///
    /// let gone = ToolError::not_found("there is no `shed`");
    /// let subject = Subject::new("shed").refused(&gone);
    /// assert_eq!(subject.refusal().unwrap().message(), "there is no `shed`");
    /// ```
    #[must_use]
    pub fn refused(mut self, error: &ToolError) -> Self {
        let (message, hint) = (error.message().to_owned(), error.suggestion().map(str::to_owned));
        self.refusal = Some(Arc::new(Refusal { kind: error.kind(), message, hint }));
        self
    }

    /// Says why somebody has to look at it: of what was not understood, why not, and of
    /// anything else what is special about it. Whoever is asked reads it, and whoever is
    /// refused.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Subject;
    ///
    /// let unknown = Subject::new("make `target`").opaque().because("backticks are not understood");
    /// assert_eq!(unknown.reason(), Some("backticks are not understood"));
    /// ```
    #[must_use]
    pub fn because(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.because = Some(reason.into());
        self
    }

    /// Says what "always" may stand for, from specific to general, where nothing else that the
    /// call touches is asked about and the tool has no suggestions for the call as a whole.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Subject;
    ///
    /// let push = Subject::new("git push origin").offering(["git push *"]);
    /// assert_eq!(push.offers(), ["git push *"]);
    /// ```
    #[must_use]
    pub fn offering(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.offers = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Marks it as something that cannot be brought back: somebody is asked about it in every
    /// mode, and only a rule with exactly its text allows it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Subject;
    ///
    /// assert!(Subject::new("rm -rf notes").dangerous().is_dangerous());
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
    /// use tool_sdk::Subject;
    ///
    /// // `allow run(rm -rf notes)` speaks of the folder in which commands usually run.
    /// let elsewhere = Subject::new("rm -rf notes").dangerous().means_more();
    /// assert!(elsewhere.is_dangerous());
    /// ```
    #[must_use]
    pub fn means_more(mut self) -> Self {
        self.means_more = true;
        self
    }

    /// Says that only the beginning of it is known, in each of these spellings. Where a rule denies
    /// something that may begin so, somebody is asked, whatever other rules and the mode allow.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Subject;
    ///
    /// // `deny run(git push *)` may be about it, and `deny run(curl *)` is not.
    /// let begun = Subject::new("git p*").known_to_begin(["git p"]);
    /// assert_eq!(begun.text(), "git p*");
    /// ```
    #[must_use]
    pub fn known_to_begin(mut self, with: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.beginnings = with.into_iter().map(Into::into).collect();
        self
    }

    /// The subject without what `redactor` finds, for those who only read of it.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        let is_clean = |text: &str| redactor.redact(text) == text;
        if !self.forbidden_spellings().chain(self.reason()).all(is_clean) {
            (self.path, self.sent, self.forbidden_as, self.refusal) = Default::default();
            (self.because, self.offers, self.below) = Default::default();
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
        match &self.sent.0 {
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
    pub(crate) fn class_when(&self, trusting: bool) -> Option<RiskClass> {
        if self.known_safe && trusting { Some(RiskClass::Read) } else { self.class }
    }

    /// Every text that a rule may match that forbids or asks.
    pub(crate) fn forbidden_spellings(&self) -> impl Iterator<Item = &str> {
        let sent = self.sent.0.as_deref();
        let below = self.below.iter().map(String::as_str);
        self.spellings().chain(self.forbidden_as.as_deref()).chain(sent).chain(below)
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
    pub fn written_below(&self) -> Option<&[PathBuf]> {
        self.written_below.as_deref()
    }

    /// Whether somebody is asked about it where no rule speaks of it.
    #[must_use]
    pub fn is_asked_about(&self) -> bool {
        self.asks
    }

    /// Whether somebody is asked about it in every mode, where no rule speaks of it.
    #[must_use]
    pub fn is_mandatory(&self) -> bool {
        self.mandatory
    }

    /// Whether it is a part of another subject, which is judged.
    #[must_use]
    pub fn is_only_forbidden(&self) -> bool {
        self.only_forbidden
    }

    /// Whether no rule that forbids something can be held against it.
    #[must_use]
    pub fn is_nameless(&self) -> bool {
        self.nameless
    }

    /// Why somebody has to look at it, where the tool says.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.because.as_deref()
    }

    /// What "always" may stand for.
    #[must_use]
    pub fn offers(&self) -> &[String] {
        &self.offers
    }

    /// Whether it cannot be brought back.
    #[must_use]
    pub fn is_dangerous(&self) -> bool {
        self.dangerous
    }

    /// Whether a rule that has exactly its text is about it, though it is not understood.
    #[must_use]
    pub fn is_unless_exact(&self) -> bool {
        self.unless_exact && !self.means_more
    }

    /// Whether what it does depends on more than its text.
    pub(crate) fn does_mean_more(&self) -> bool {
        self.means_more
    }

    /// Its beginning in every spelling, where no more of it is known.
    pub(crate) fn beginnings(&self) -> &[String] {
        &self.beginnings
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
