//! The faults of arguments, with messages that help a model to send better ones.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::Serialize;

use super::MAX_BYTES;
use super::checks::ArgChecks;
use crate::error::{ErrorKind, ToolError};
use crate::name::ToolName;

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 4096;

/// One fault of the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// The location as a JSON pointer; empty for the arguments as a whole. Member names in a
    /// sensitive argument are replaced by `..`.
    pub pointer: String,
    /// The message.
    pub message: String,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// The text is not JSON, or not an object.
    Malformed,
    /// A required argument is absent.
    Missing,
    /// The tool does not have the argument.
    Unknown,
    /// The argument was sent twice.
    Duplicate,
    /// The value has the wrong type.
    Type,
    /// The value has the right type, and violates a constraint.
    Constraint,
}

impl Fault {
    #[doc(hidden)]
    pub fn new(kind: FaultKind, pointer: String, message: String) -> Self {
        Self { kind, pointer, message }
    }

    fn line_length(&self) -> usize {
        self.message.len() + 3
    }

    fn write_line(&self, text: &mut String) {
        text.push_str("\n- ");
        text.push_str(&self.message);
    }

    pub(super) fn too_long(len: usize) -> Self {
        Self::new(
            FaultKind::Malformed,
            String::new(),
            format!("the arguments are {len} bytes long, but must be at most {MAX_BYTES}"),
        )
    }

    /// Creates the fault of an argument `name` that the tool does not have.
    #[doc(hidden)]
    pub fn unknown_argument(name: &str, known: &[&str]) -> Self {
        let root = ArgPath::root();
        Self::unknown_at(&ArgPath::member(&root, name), name, known)
    }

    fn unknown_at(place: &ArgPath<'_>, name: &str, known: &[&str]) -> Self {
        let mut message = format!("unknown argument `{}`", EscapedName(name));
        if place.is_nested() {
            let _ = write!(message, " in {}", place.parent());
        }
        match closest_name(name, known) {
            Some(close) => {
                let _ = write!(message, "; did you mean `{close}`?");
            }
            None if known.is_empty() => message.push_str("; there are none"),
            None => {}
        }
        Self::new(FaultKind::Unknown, place.to_pointer(), message)
    }

    pub(super) fn not_an_object(kind: &str) -> Self {
        Self::new(
            FaultKind::Malformed,
            String::new(),
            format!("the arguments must be a JSON object, not {kind}"),
        )
    }
}

/// Arguments that violate a tool's schema, with all faults.
///
/// `Display` is the message for the model, at most 4 KiB. Long values are truncated, and values
/// of sensitive arguments are not repeated.
// Boxed, because most calls have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidArgs(Box<FaultReport>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FaultReport {
    tool: Cow<'static, str>,
    faults: Vec<Fault>,
    /// The number of further faults.
    omitted: usize,
    expected: Arc<str>,
}

impl InvalidArgs {
    /// Creates the error of a tool with its own validation, with the reason `message`.
    #[must_use]
    pub fn new(tool: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        let fault = Fault::new(FaultKind::Constraint, String::new(), message.to_string());
        Self::build(tool.into(), vec![fault], "".into())
    }

    /// Creates the error of one argument, for the function in `validate = F`. The model reads
    /// `message` behind the name, as in "`end` must not be before `start`".
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{InvalidArgs, tool};
    ///
    /// /// List the days.
    /// #[tool(read, validate = check_days)]
    /// fn list_days(
    ///     /// The first day.
    ///     start: u32,
    ///     /// The last day.
    ///     end: u32,
    /// ) -> String {
    ///     (start..=end).map(|day| format!("{day}\n")).collect()
    /// }
    ///
    /// fn check_days(args: &ListDaysArgs) -> Result<(), InvalidArgs> {
    ///     if args.end < args.start {
    ///         return Err(InvalidArgs::for_argument("end", "must not be before `start`"));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn for_argument(name: &str, message: impl fmt::Display) -> Self {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let message = format!("`{}` {message}", EscapedName(name));
        let fault = Fault::new(FaultKind::Constraint, pointer, message);
        Self::build("".into(), vec![fault], "".into())
    }

    /// Adds the faults of `other`.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.0.faults.extend(other.0.faults);
        self.0.omitted += other.0.omitted;
        self
    }

    /// Returns the error in the words of the faults that `checks` finds in calls of `tool`.
    pub(crate) fn for_tool(mut self, tool: &'static str, checks: &ArgChecks) -> Self {
        self.0.tool = tool.into();
        self.0.expected = checks.expected();
        self
    }

    /// Returns the error as one of a tool with the name `tool`.
    pub(crate) fn in_calls_of(mut self, tool: &ToolName) -> Self {
        self.0.tool = tool.to_string().into();
        self
    }

    /// Creates an error from faults that were found outside of `checks`.
    #[doc(hidden)]
    pub fn from_faults(tool: String, faults: Vec<Fault>, checks: &ArgChecks) -> Self {
        Self::build(tool.into(), faults, checks.expected())
    }

    /// Creates an error from faults that were found before the tool was called, without the
    /// tool's checks.
    #[doc(hidden)]
    pub fn for_definition(tool: &crate::tool::Definition, faults: Vec<Fault>) -> Self {
        let expected = tool.parameters.signature().into();
        Self::build(tool.name.as_str().to_owned().into(), faults, expected)
    }

    /// Returns the faults.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.0.faults
    }

    fn build(tool: Cow<'static, str>, faults: Vec<Fault>, expected: Arc<str>) -> Self {
        Self(Box::new(FaultReport { tool, faults, omitted: 0, expected }))
    }
}

impl FaultReport {
    /// Returns the message for the model.
    fn to_message(&self) -> String {
        let mut text = String::with_capacity(256 + self.expected.len());
        text.push_str("invalid arguments for `");
        text.push_str(&self.tool);
        text.push_str("`:");
        let room = MAX_MESSAGE.saturating_sub(self.expected.len() + 64);
        let length: usize = self.faults.iter().map(Fault::line_length).sum();
        let mut left = self.omitted;
        if text.len() + length <= room {
            self.faults.iter().for_each(|fault| fault.write_line(&mut text));
        } else {
            left += self.write_within(&mut text, room);
        }
        if left > 0 {
            let _ = write!(text, "\n- and {left} more");
        }
        if !self.expected.is_empty() {
            text.push_str("\nexpected: ");
            text.push_str(&self.expected);
        }
        text
    }

    /// Writes the faults that fit into `room`: missing arguments first, unknown ones last.
    /// Returns the number of faults that did not fit.
    #[cold]
    fn write_within(&self, text: &mut String, room: usize) -> usize {
        let mut faults: Vec<&Fault> = self.faults.iter().collect();
        faults.sort_by_key(|fault| match fault.kind {
            FaultKind::Missing => 0,
            FaultKind::Unknown => 2,
            _ => 1,
        });
        let mut faults = faults.into_iter().peekable();
        while let Some(fault) = faults.next_if(|it| text.len() + it.line_length() <= room) {
            fault.write_line(text);
        }
        faults.len()
    }
}

impl fmt::Display for InvalidArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_message())
    }
}

impl std::error::Error for InvalidArgs {}

/// What a model should do about invalid arguments.
const REWRITE_HINT: &str = "rewrite the arguments so that they match, then call the tool again";

impl From<InvalidArgs> for ToolError {
    fn from(error: InvalidArgs) -> Self {
        Self::from_message(ErrorKind::InvalidArgs, error.0.to_message())
            .hint(REWRITE_HINT)
            .source(error)
    }
}

/// The faults found so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    list: Vec<Fault>,
    pub(super) omitted: usize,
}

impl Faults {
    /// Faults beyond this many are only counted.
    const MAX: usize = 256;

    /// So many more missing arguments are kept, so that other faults cannot hide them.
    const ROOM_FOR_MISSING: usize = 128;

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the first faults, at most `most`.
    pub(super) fn first_faults(&self, most: usize) -> Vec<Fault> {
        self.list.iter().take(most).cloned().collect()
    }

    pub(super) fn first_message(&self) -> Option<&str> {
        self.list.first().map(|fault| fault.message.as_str())
    }

    /// Whether the value at `here` has the wrong type.
    pub(super) fn has_type_fault_at(&self, here: &str) -> bool {
        self.list.iter().any(|fault| fault.kind == FaultKind::Type && fault.pointer == here)
    }

    /// Returns the names that are missing from the object at `here`, if it has no other fault.
    pub(super) fn missing_names(&self, here: &str) -> Option<Vec<String>> {
        let name = |fault: &Fault| {
            let step = fault.pointer.strip_prefix(here)?.strip_prefix('/')?;
            let is_one = fault.kind == FaultKind::Missing && !step.contains('/');
            let name = step.replace("~1", "/").replace("~0", "~");
            is_one.then(|| EscapedName(&name).to_string())
        };
        self.list.iter().map(name).collect()
    }

    /// Returns the current numbers, for [`roll_back`](Self::roll_back).
    pub(super) fn checkpoint(&self) -> (usize, usize) {
        (self.list.len(), self.omitted)
    }

    /// Removes the faults that were added since the checkpoint.
    pub(super) fn roll_back(&mut self, (found, beyond): (usize, usize)) {
        self.list.truncate(found);
        self.omitted = beyond;
    }

    /// Appends the faults of `other`.
    pub(super) fn append(&mut self, other: Self) {
        self.omitted += other.omitted;
        other.list.into_iter().for_each(|fault| self.push(fault));
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Fault> {
        self.list.into_iter()
    }

    pub(super) fn push(&mut self, fault: Fault) {
        // Equal consecutive faults are reported once.
        if self.has_room(fault.kind) && self.list.last() != Some(&fault) {
            self.list.push(fault);
        }
    }

    /// Whether one more fault is kept; otherwise it is only counted.
    fn has_room(&mut self, kind: FaultKind) -> bool {
        let more = if kind == FaultKind::Missing { Self::ROOM_FOR_MISSING } else { 0 };
        let has_room = self.list.len() < Self::MAX + more;
        self.omitted += usize::from(!has_room);
        has_room
    }

    pub(super) fn push_at(
        &mut self,
        kind: FaultKind,
        place: &ArgPath<'_>,
        words: impl fmt::Display,
    ) {
        if self.has_room(kind) {
            let mut message = String::with_capacity(96);
            let _ = write!(message, "{place} ");
            let start = message.len();
            let _ = write!(message, "{words}");
            if place.is_root() {
                pluralize(&mut message, start);
            }
            self.push(Fault::new(kind, place.to_pointer(), message));
        }
    }

    pub(super) fn push_unknown(&mut self, place: &ArgPath<'_>, known: &[&str]) {
        match place.last_key() {
            Some(name) if self.has_room(FaultKind::Unknown) => {
                self.push(Fault::unknown_at(place, name, known));
            }
            Some(_) => {}
            None => {
                let parent = place.parent();
                self.push_at(FaultKind::Unknown, &parent, "has a member of an unknown name");
            }
        }
    }

    /// Reports a value that only its own type refuses.
    pub(super) fn push_decode_error(&mut self, place: &ArgPath<'_>, error: &serde_json::Error) {
        let words = without_position(&error.to_string());
        if place.is_root() {
            self.push(Fault::new(FaultKind::Type, String::new(), words));
        } else {
            self.push_at(FaultKind::Type, place, format_args!("is not acceptable: {words}"));
        }
    }

    pub(super) fn push_malformed(&mut self, error: &dyn fmt::Display) {
        self.push(Fault::new(
            FaultKind::Malformed,
            String::new(),
            format!("the arguments are not valid JSON: {error}"),
        ));
    }

    pub(super) fn into_error(self, tool: Cow<'static, str>, checks: &ArgChecks) -> InvalidArgs {
        let mut invalid = InvalidArgs::build(tool, self.list, checks.expected());
        invalid.0.omitted = self.omitted;
        invalid
    }
}

/// Puts the message into the plural for the arguments as a whole; the verb is searched from
/// `start`.
fn pluralize(message: &mut String, start: usize) {
    let several = [
        ("is ", "are "),
        ("has ", "have "),
        ("fits none of its ", "fit none of their "),
        ("fits more than one of its ", "fit more than one of their "),
    ];
    if let Some((one, several)) = several.iter().find(|(one, _)| message[start..].starts_with(one))
    {
        message.replace_range(start..start + one.len(), several);
    }
}

/// Returns serde_json's message without " at line 1 column 17", which does not help a model.
pub(super) fn without_position(words: &str) -> String {
    match words.rfind(" at line ") {
        Some(cut) => words[..cut].to_owned(),
        None => words.to_owned(),
    }
}

/// Returns the known name that is closest to `name`, if one is close.
pub fn closest_name<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // Longer names are not typing errors, and comparing them would not be linear.
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&lower, &known.to_ascii_lowercase()), *known))
        .filter(|(distance, known)| {
            let length = known.len().max(name.len());
            // Names without a common letter are not similar, however short they are.
            *distance <= (length / 3).max(1) && (*distance < length || length == 0)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// A name from outside for a message: short, and without invisible characters.
pub(super) struct EscapedName<'a>(pub(super) &'a str);

impl fmt::Display for EscapedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX: usize = 64;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if self.0.len() <= MAX && self.0.bytes().all(plain) {
            return f.write_str(self.0);
        }
        for (count, c) in self.0.chars().enumerate() {
            if count == MAX {
                return f.write_char('…');
            }
            if c == '`' || c == '\\' || !c.is_ascii_graphic() && !c.is_alphanumeric() {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

/// The location of a value in the arguments: a linked list on the stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArgPath<'a> {
    parent: Option<&'a ArgPath<'a>>,
    step: ArgPathStep<'a>,
}

#[derive(Clone, Copy, Debug)]
enum ArgPathStep<'a> {
    Root,
    Key(&'a str),
    /// A key that is part of a sensitive value.
    Hidden,
    Index(usize),
}

impl<'a> ArgPath<'a> {
    pub(super) fn root() -> Self {
        Self { parent: None, step: ArgPathStep::Root }
    }

    pub(super) fn member(parent: &'a ArgPath<'a>, key: &'a str) -> Self {
        Self { parent: Some(parent), step: ArgPathStep::Key(key) }
    }

    pub(super) fn hidden_member(parent: &'a ArgPath<'a>) -> Self {
        Self { parent: Some(parent), step: ArgPathStep::Hidden }
    }

    pub(super) fn item(parent: &'a ArgPath<'a>, index: usize) -> Self {
        Self { parent: Some(parent), step: ArgPathStep::Index(index) }
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self.step, ArgPathStep::Root)
    }

    fn last_key(&self) -> Option<&'a str> {
        match self.step {
            ArgPathStep::Key(key) => Some(key),
            _ => None,
        }
    }

    fn is_nested(&self) -> bool {
        self.parent.is_some_and(|parent| !parent.is_root())
    }

    fn parent(&self) -> ArgPath<'a> {
        self.parent.copied().unwrap_or_else(ArgPath::root)
    }

    /// Returns the JSON pointer (RFC 6901).
    pub(super) fn to_pointer(self) -> String {
        let mut pointer = match self.parent {
            Some(parent) => parent.to_pointer(),
            // Enough for most pointers without growing.
            None => String::with_capacity(32),
        };
        match self.step {
            ArgPathStep::Root => {}
            ArgPathStep::Key(key) => {
                pointer.push('/');
                if key.contains(['~', '/']) {
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                } else {
                    pointer.push_str(key);
                }
            }
            ArgPathStep::Hidden => pointer.push_str("/.."),
            ArgPathStep::Index(index) => {
                let _ = write!(pointer, "/{index}");
            }
        }
        pointer
    }

    fn write_path(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.write_path(f)?;
        }
        match self.step {
            ArgPathStep::Root => Ok(()),
            ArgPathStep::Key(key) => {
                if self.is_nested() {
                    f.write_char('.')?;
                }
                fmt::Display::fmt(&EscapedName(key), f)
            }
            ArgPathStep::Hidden => f.write_str("[..]"),
            ArgPathStep::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Writes the path as in JavaScript: `filters[2].name`.
impl fmt::Display for ArgPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str("the arguments");
        }
        f.write_char('`')?;
        self.write_path(f)?;
        f.write_char('`')
    }
}
