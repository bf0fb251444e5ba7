//! Why a call failed, for its two readers.
//!
//! Message and hint are for the model: what is wrong with this call and what to send
//! instead. The source is for the host. They are different fields, so that one cannot be
//! sent in place of the other.

use std::error::Error as StdError;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::content::Output;

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments break the tool's contract.
    InvalidArgs,
    /// What was named does not exist: a tool, a file, a record.
    NotFound,
    /// A rule or a person said no.
    Denied,
    /// The caller lacks a permission, or is not known.
    Unauthorized,
    /// The time was up.
    Timeout,
    /// The call was cancelled.
    Aborted,
    /// The world changed since the model looked at it.
    Conflict,
    /// Something outside does not answer at the moment.
    Unavailable,
    /// The host is not set up for this tool.
    Config,
    /// The tool tried, and failed.
    Failed,
    /// A defect: a panic or a broken invariant.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of their declaration.
    pub const ALL: [Self; 11] = [
        Self::InvalidArgs,
        Self::NotFound,
        Self::Denied,
        Self::Unauthorized,
        Self::Timeout,
        Self::Aborted,
        Self::Conflict,
        Self::Unavailable,
        Self::Config,
        Self::Failed,
        Self::Internal,
    ];

    /// The kind's name on every surface, such as `not_found`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgs => "invalid_args",
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Unauthorized => "unauthorized",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::Conflict => "conflict",
            Self::Unavailable => "unavailable",
            Self::Config => "config",
            Self::Failed => "failed",
            Self::Internal => "internal",
        }
    }

    /// Whether the model can do better with another call.
    #[must_use]
    pub const fn is_recoverable(self) -> bool {
        matches!(
            self,
            Self::InvalidArgs
                | Self::NotFound
                | Self::Timeout
                | Self::Conflict
                | Self::Unavailable
                | Self::Failed
        )
    }

    /// The HTTP status that says the same.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidArgs => 400,
            Self::NotFound => 404,
            Self::Denied => 403,
            Self::Unauthorized => 401,
            Self::Timeout => 504,
            Self::Aborted => 499,
            Self::Conflict => 409,
            Self::Unavailable => 503,
            Self::Config | Self::Failed | Self::Internal => 500,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed call.
///
/// `Display` is what the model reads: the message, then the hint on a line of its own.
/// [`source`](StdError::source) is for the host's log.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ErrorKind, ToolError};
///
/// let error = ToolError::not_found("no file `src/mian.rs`").hint("did you mean `src/main.rs`?");
///
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert_eq!(error.to_string(), "no file `src/mian.rs`\nhint: did you mean `src/main.rs`?");
/// ```
pub struct ToolError(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    output: Option<Box<Output>>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(message: impl fmt::Display) -> Self {
            Self::new(ErrorKind::$kind, message)
        }
    )*};
}

impl ToolError {
    /// An error of `kind`, with what the model should read.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self::worded(kind, message.to_string())
    }

    /// An error of `kind` whose message is made already.
    pub(crate) fn worded(kind: ErrorKind, message: String) -> Self {
        Self(Box::new(Inner { kind, message, hint: None, source: None, output: None }))
    }

    constructors! {
        /// What was named does not exist.
        not_found => NotFound;
        /// A rule or a person said no.
        denied => Denied;
        /// The caller lacks a permission.
        unauthorized => Unauthorized;
        /// The time was up.
        timeout => Timeout;
        /// The call was cancelled.
        aborted => Aborted;
        /// The world changed since the model looked at it.
        conflict => Conflict;
        /// Something outside does not answer.
        unavailable => Unavailable;
        /// The host is not set up for this tool.
        config => Config;
        /// The tool tried, and failed.
        failed => Failed;
        /// A defect in the host.
        internal => Internal;
        /// The arguments as a whole break the tool's contract.
        invalid_args => InvalidArgs;
    }

    /// The argument `name` breaks the tool's contract in a way its schema cannot tell.
    #[must_use]
    pub fn invalid(name: &str, message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::InvalidArgs, format_args!("`{name}`: {message}"))
    }

    /// Adds what the model should do instead.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.hint = Some(hint.to_string());
        self
    }

    /// Adds the cause, for the host only.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds what the tool gave although it failed: attachments, and a structured value. Its
    /// text is not shown; that is the message.
    #[must_use]
    pub fn giving(mut self, output: Output) -> Self {
        self.0.output = Some(Box::new(output));
        self
    }

    /// Adds something that the model reads below the message.
    pub(crate) fn append(&mut self, text: &str) {
        self.0.message.push_str("\n\n");
        self.0.message.push_str(text);
    }

    /// Cuts what the model reads to `max` bytes in all; the starts of message and hint are
    /// kept, and the hint has a quarter of the room at least.
    pub(crate) fn shorten(&mut self, max: usize) {
        let room = self.shorten_hint(max);
        cut(&mut self.0.message, room);
    }

    /// Cuts the hint as [`shorten`](Self::shorten) does; gives the room that is left for the
    /// message.
    pub(crate) fn shorten_hint(&mut self, max: usize) -> usize {
        let Inner { message, hint, .. } = &mut *self.0;
        let Some(hint) = hint else { return max };
        let room = max.saturating_sub(HINT.len());
        cut(hint, room.saturating_sub(message.len()).max(room / 4));
        room.saturating_sub(hint.len())
    }

    /// Whether what the model reads has at most `max` bytes.
    #[inline]
    pub(crate) fn is_within(&self, max: usize) -> bool {
        let hint = self.0.hint.as_ref().map_or(0, |hint| HINT.len() + hint.len());
        self.0.message.len() + hint <= max
    }

    /// Puts another message in the place of this one.
    pub(crate) fn replace_message(&mut self, message: String) {
        self.0.message = message;
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong, for the model.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do instead, for the model.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// What the tool gave although it failed.
    #[must_use]
    pub fn output(&self) -> Option<&Output> {
        self.0.output.as_deref()
    }
}

/// What stands between message and hint.
const HINT: &str = "\nhint: ";

/// Cuts a text to `max` bytes, with a note of how much is missing.
fn cut(text: &mut String, max: usize) {
    const NOTE: usize = " [18446744073709551615 more bytes left out]".len();
    if text.len() > max {
        let kept = text.floor_char_boundary(max.saturating_sub(NOTE));
        let left_out = text.len() - kept;
        text.truncate(kept);
        text.push_str(&format!(" [{left_out} more bytes left out]"));
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.hint {
            Some(hint) => write!(f, "{HINT}{hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("hint", &self.0.hint)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for ToolError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // F42: every failure has a category out of the fixed set.
    #[test]
    fn every_kind_has_a_name_and_a_status() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert!((400..600).contains(&kind.http_status()));
        }
    }

    #[test]
    fn message_and_hint_share_their_room() {
        let both = |message: usize, hint: usize| {
            let mut error = ToolError::failed("é".repeat(message)).hint("h".repeat(hint));
            error.shorten(4096);
            (error.to_string().len(), error.message().len(), error.suggestion().unwrap().len())
        };
        assert_eq!(both(10, 10), (37, 20, 10));
        assert_eq!(both(1000, 2089), (4096, 2000, 2089));
        for (message, hint) in [(3000, 10), (10, 9000), (3000, 9000), (1000, 3000)] {
            let (all, of_message, of_hint) = both(message, hint);
            assert!((3900..=4096).contains(&all), "{message} {hint}: {all}");
            assert!(of_message >= (message * 2).min(2900) && of_hint >= hint.min(900));
        }
        let mut plain = ToolError::failed("m".repeat(5000));
        plain.shorten(4096);
        let text = plain.to_string();
        assert!(text.len() <= 4096 && text.ends_with(" more bytes left out]"), "{text}");
    }

    #[test]
    fn the_model_never_reads_the_source() {
        let cause = std::io::Error::other("token abc123");
        let error = ToolError::failed("upload failed").source(cause);
        assert!(!error.to_string().contains("abc123"));
        assert!(StdError::source(&error).unwrap().to_string().contains("abc123"));
    }
}
