//! What is wrong with arguments, in words that help a model to send better ones.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::Serialize;

use super::MAX_BYTES;
use super::check::Checks;
use crate::error::{ErrorKind, ToolError};

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 4096;

/// One fault of the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// Where it is, as a JSON pointer; empty for the arguments as a whole. A name that came with
    /// a sensitive argument is `..` in it.
    pub pointer: String,
    /// What is wrong, in words.
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
    /// An argument that the tool does not have.
    Unknown,
    /// The same argument twice.
    Duplicate,
    /// A value of the wrong type.
    Type,
    /// A value of the right type that breaks a constraint.
    Constraint,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, pointer: String, message: String) -> Self {
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

    /// An argument `name` that the tool does not have.
    #[cfg(feature = "cli")]
    pub(crate) fn unknown_argument(name: &str, known: &[&str]) -> Self {
        let root = Place::root();
        Self::unknown(&Place::key_of(&root, name), name, known)
    }

    fn unknown(place: &Place<'_>, name: &str, known: &[&str]) -> Self {
        let mut message = format!("unknown argument `{}`", Escaped(name));
        if place.is_nested() {
            let _ = write!(message, " in {}", place.parent());
        }
        match closest(name, known) {
            Some(close) => {
                let _ = write!(message, "; did you mean `{close}`?");
            }
            None if known.is_empty() => message.push_str("; there are none"),
            None => {}
        }
        Self::new(FaultKind::Unknown, place.pointer(), message)
    }

    pub(super) fn not_an_object(kind: &str) -> Self {
        Self::new(
            FaultKind::Malformed,
            String::new(),
            format!("the arguments must be a JSON object, not {kind}"),
        )
    }
}

/// Arguments that break a tool's contract: every fault at once.
///
/// `Display` is the message for the model, at most 4 KiB. Long values are cut, values of
/// sensitive arguments are not repeated.
// Boxed: what every call hands on has no room for what few calls have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidArgs(Box<Found>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    tool: Cow<'static, str>,
    faults: Vec<Fault>,
    /// How many more there were.
    beyond: usize,
    expected: Arc<str>,
}

impl InvalidArgs {
    /// Arguments that a tool of its own kind refuses, for the reason `message`.
    #[must_use]
    pub fn new(tool: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        let fault = Fault::new(FaultKind::Constraint, String::new(), message.to_string());
        Self::of(tool.into(), vec![fault], "".into())
    }

    /// Faults that something beside `checks` found, told like any other.
    #[cfg(feature = "mcp")]
    pub(crate) fn found(tool: String, faults: Vec<Fault>, checks: &Checks) -> Self {
        Self::of(tool.into(), faults, checks.expected())
    }

    /// Faults that were found before the tool was asked, and its own, told as one.
    #[cfg(feature = "cli")]
    pub(crate) fn told(tool: &crate::tool::Definition, faults: Vec<Fault>) -> Self {
        let expected = tool.parameters.signature().into();
        Self::of(tool.name.as_str().to_owned().into(), faults, expected)
    }

    /// The faults.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.0.faults
    }

    fn of(tool: Cow<'static, str>, faults: Vec<Fault>, expected: Arc<str>) -> Self {
        Self(Box::new(Found { tool, faults, beyond: 0, expected }))
    }
}

impl Found {
    /// The message for the model.
    fn message(&self) -> String {
        let mut text = String::with_capacity(256 + self.expected.len());
        text.push_str("invalid arguments for `");
        text.push_str(&self.tool);
        text.push_str("`:");
        let room = MAX_MESSAGE.saturating_sub(self.expected.len() + 64);
        let length: usize = self.faults.iter().map(Fault::line_length).sum();
        let mut left = self.beyond;
        if text.len() + length <= room {
            self.faults.iter().for_each(|fault| fault.write_line(&mut text));
        } else {
            left += self.write_some(&mut text, room);
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

    /// Writes the faults that fit into `room`: first what is absent, last what is too much.
    /// Gives the number of the others.
    #[cold]
    fn write_some(&self, text: &mut String, room: usize) -> usize {
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
        f.write_str(&self.0.message())
    }
}

impl std::error::Error for InvalidArgs {}

impl From<InvalidArgs> for ToolError {
    fn from(error: InvalidArgs) -> Self {
        Self::from_message(ErrorKind::InvalidArgs, error.0.message()).source(error)
    }
}

/// The faults found so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: Vec<Fault>,
    pub(super) beyond: usize,
}

impl Faults {
    /// Faults beyond this many are only counted.
    const MAX: usize = 256;

    /// So many more may be about what is absent: any number of others does not hide it.
    const ROOM_FOR_MISSING: usize = 128;

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// The first of them, so many at most.
    pub(super) fn first(&self, most: usize) -> Vec<Fault> {
        self.found.iter().take(most).cloned().collect()
    }

    pub(super) fn first_message(&self) -> Option<&str> {
        self.found.first().map(|fault| fault.message.as_str())
    }

    /// Whether the value at `here` is of another kind than is asked for.
    pub(super) fn is_about_kind(&self, here: &str) -> bool {
        self.found.iter().any(|fault| fault.kind == FaultKind::Type && fault.pointer == here)
    }

    /// The names that are absent from the object at `here`, where nothing else is wrong.
    pub(super) fn missing_names(&self, here: &str) -> Option<Vec<String>> {
        let name = |fault: &Fault| {
            let step = fault.pointer.strip_prefix(here)?.strip_prefix('/')?;
            let is_one = fault.kind == FaultKind::Missing && !step.contains('/');
            let name = step.replace("~1", "/").replace("~0", "~");
            is_one.then(|| Escaped(&name).to_string())
        };
        self.found.iter().map(name).collect()
    }

    /// How many there are, to come [back](Self::back_to) to.
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.found.len(), self.beyond)
    }

    /// Forgets what was added since the mark.
    pub(super) fn back_to(&mut self, (found, beyond): (usize, usize)) {
        self.found.truncate(found);
        self.beyond = beyond;
    }

    /// Adds others to these.
    pub(super) fn append(&mut self, other: Self) {
        self.beyond += other.beyond;
        other.found.into_iter().for_each(|fault| self.push(fault));
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Fault> {
        self.found.into_iter()
    }

    pub(super) fn push(&mut self, fault: Fault) {
        // What is wrong in the same way again and again is said once.
        if self.has_room(fault.kind) && self.found.last() != Some(&fault) {
            self.found.push(fault);
        }
    }

    /// Whether one more is kept; otherwise it is counted.
    fn has_room(&mut self, kind: FaultKind) -> bool {
        let more = if kind == FaultKind::Missing { Self::ROOM_FOR_MISSING } else { 0 };
        let has_room = self.found.len() < Self::MAX + more;
        self.beyond += usize::from(!has_room);
        has_room
    }

    pub(super) fn add(&mut self, kind: FaultKind, place: &Place<'_>, words: impl fmt::Display) {
        if self.has_room(kind) {
            let mut message = String::with_capacity(96);
            let _ = write!(message, "{place} ");
            let start = message.len();
            let _ = write!(message, "{words}");
            if place.is_root() {
                in_plural(&mut message, start);
            }
            self.push(Fault::new(kind, place.pointer(), message));
        }
    }

    pub(super) fn unknown(&mut self, place: &Place<'_>, known: &[&str]) {
        match place.key() {
            Some(name) if self.has_room(FaultKind::Unknown) => {
                self.push(Fault::unknown(place, name, known));
            }
            Some(_) => {}
            None => {
                let parent = place.parent();
                self.add(FaultKind::Unknown, &parent, "has a member of an unknown name");
            }
        }
    }

    /// A value that only its own type refuses.
    pub(super) fn decoding(&mut self, place: &Place<'_>, error: &serde_json::Error) {
        let words = without_position(&error.to_string());
        if place.is_root() {
            self.push(Fault::new(FaultKind::Type, String::new(), words));
        } else {
            self.add(FaultKind::Type, place, format_args!("is not acceptable: {words}"));
        }
    }

    pub(super) fn malformed(&mut self, error: &dyn fmt::Display) {
        self.push(Fault::new(
            FaultKind::Malformed,
            String::new(),
            format!("the arguments are not valid JSON: {error}"),
        ));
    }

    pub(super) fn finish(self, tool: Cow<'static, str>, checks: &Checks) -> InvalidArgs {
        let mut invalid = InvalidArgs::of(tool, self.found, checks.expected());
        invalid.0.beyond = self.beyond;
        invalid
    }
}

/// The arguments are several; `start` is where it is said what they are.
fn in_plural(message: &mut String, start: usize) {
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

/// serde_json's words without " at line 1 column 17", which says nothing to a model.
pub(super) fn without_position(words: &str) -> String {
    match words.rfind(" at line ") {
        Some(cut) => words[..cut].to_owned(),
        None => words.to_owned(),
    }
}

/// The known name that is closest to `name`, when one is close.
pub(crate) fn closest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // Longer names are no slips of the pen, and comparing them would not be linear.
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&lower, &known.to_ascii_lowercase()), *known))
        .filter(|(distance, known)| {
            let length = known.len().max(name.len());
            // Two words that have no letter in common are not alike, however short they are.
            *distance <= (length / 3).max(1) && (*distance < length || length == 0)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// A name from outside, fit for a message: short, and nothing invisible.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
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

/// Where in the arguments a value is: a list of steps on the stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Key(&'a str),
    /// A key that is part of what must not be repeated.
    Secret,
    Index(usize),
}

impl<'a> Place<'a> {
    pub(super) fn root() -> Self {
        Self { parent: None, step: Step::Root }
    }

    pub(super) fn key_of(parent: &'a Place<'a>, key: &'a str) -> Self {
        Self { parent: Some(parent), step: Step::Key(key) }
    }

    pub(super) fn secret_of(parent: &'a Place<'a>) -> Self {
        Self { parent: Some(parent), step: Step::Secret }
    }

    pub(super) fn index_of(parent: &'a Place<'a>, index: usize) -> Self {
        Self { parent: Some(parent), step: Step::Index(index) }
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    fn key(&self) -> Option<&'a str> {
        match self.step {
            Step::Key(key) => Some(key),
            _ => None,
        }
    }

    fn is_nested(&self) -> bool {
        self.parent.is_some_and(|parent| !parent.is_root())
    }

    fn parent(&self) -> Place<'a> {
        self.parent.copied().unwrap_or_else(Place::root)
    }

    /// As RFC 6901 writes it.
    pub(super) fn pointer(&self) -> String {
        let mut pointer = match self.parent {
            Some(parent) => parent.pointer(),
            // Room for most, so that it does not grow step by step.
            None => String::with_capacity(32),
        };
        match self.step {
            Step::Root => {}
            Step::Key(key) => {
                pointer.push('/');
                if key.contains(['~', '/']) {
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                } else {
                    pointer.push_str(key);
                }
            }
            Step::Secret => pointer.push_str("/.."),
            Step::Index(index) => {
                let _ = write!(pointer, "/{index}");
            }
        }
        pointer
    }

    fn path(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.path(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Key(key) => {
                if self.is_nested() {
                    f.write_char('.')?;
                }
                fmt::Display::fmt(&Escaped(key), f)
            }
            Step::Secret => f.write_str("[..]"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// As a reader of the arguments would say it: `filters[2].name`.
impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str("the arguments");
        }
        f.write_char('`')?;
        self.path(f)?;
        f.write_char('`')
    }
}
