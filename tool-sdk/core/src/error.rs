//! The error of a failed call, for two readers: the model and the host.
//!
//! Message and hint are for the model: what is wrong with this call and what to send instead. The
//! source is for the host.
//!
//! **Invariant:** the source is a separate field and is never shown to the model.

use std::error::Error as StdError;
use std::fmt;

use serde::{Deserialize, Serialize};
#[cfg(feature = "workspace")]
use tool_sdk_workspace::{WorkspaceError, WorkspaceErrorKind};

use crate::content::Output;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "each crate of the SDK handles every variant")]
pub enum ErrorKind {
    /// The arguments violate the tool's contract.
    InvalidArgs,
    /// A named object does not exist: a tool, a file, a record.
    NotFound,
    /// Denied by a permission rule or by the user.
    Denied,
    /// The caller is not authenticated or lacks a permission.
    Unauthorized,
    /// The time limit was exceeded.
    Timeout,
    /// The call was cancelled.
    Aborted,
    /// The state changed after the model read it.
    Conflict,
    /// An external service does not respond at the moment.
    Unavailable,
    /// The host is not configured for this tool.
    Config,
    /// The tool ran and failed.
    Failed,
    /// A bug: a panic or a violated invariant.
    Internal,
}

impl ErrorKind {
    /// All kinds, in declaration order.
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

    /// Returns the name that every adapter uses, such as `not_found`.
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

    /// Returns whether the model may succeed with another call.
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

    /// Returns the corresponding HTTP status.
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
/// `Display` prints what the model reads: the message, then the hint on its own line.
/// [`source`](StdError::source) is for the log of the host.
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
    /// Creates an error of `kind`; the model reads `message`.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self::from_message(kind, message.to_string())
    }

    /// Creates an error of `kind` from an owned message.
    pub(crate) fn from_message(kind: ErrorKind, message: String) -> Self {
        Self(Box::new(Inner { kind, message, hint: None, source: None, output: None }))
    }

    constructors! {
        /// Creates an error for a named object that does not exist.
        not_found => NotFound;
        /// Creates an error for a call that a rule or the user denied.
        denied => Denied;
        /// Creates an error for a caller that lacks a permission.
        unauthorized => Unauthorized;
        /// Creates an error for an exceeded time limit.
        timeout => Timeout;
        /// Creates an error for a cancelled call.
        aborted => Aborted;
        /// Creates an error for a state that changed after the model read it.
        conflict => Conflict;
        /// Creates an error for an external service that does not respond.
        unavailable => Unavailable;
        /// Creates an error for a host that is not configured for this tool.
        config => Config;
        /// Creates an error for a tool that ran and failed.
        failed => Failed;
        /// Creates an error for a bug in the host.
        internal => Internal;
        /// Creates an error for arguments that violate the tool's contract as a whole.
        invalid_args => InvalidArgs;
    }

    /// Creates an error for the argument `name`, for a rule that the schema cannot express.
    #[must_use]
    pub fn invalid(name: &str, message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::InvalidArgs, format_args!("`{name}`: {message}"))
    }

    /// Creates an error of kind `failed` from any error: the model reads its `Display`, and the
    /// host gets the error itself, with its sources, as the source.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::error::Error;
    /// use tool_sdk::{ErrorKind, ToolError};
    ///
    /// let error = "12a".parse::<u32>().map_err(ToolError::from_error).expect_err("no number");
    ///
    /// assert_eq!(error.kind(), ErrorKind::Failed);
    /// assert_eq!(error.message(), "invalid digit found in string");
    /// assert!(Error::source(&error).is_some_and(|it| it.is::<std::num::ParseIntError>()));
    /// ```
    #[must_use]
    pub fn from_error(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let error = error.into();
        Self::failed(&error).source(error)
    }

    /// Sets the hint: what the model should do instead.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.hint = Some(hint.to_string());
        self
    }

    /// Sets the cause, for the host only.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds output of the failed tool: attachments and a structured value. Its text is not shown,
    /// because the model reads the message.
    #[must_use]
    pub fn with_output(mut self, output: Output) -> Self {
        self.0.output = Some(Box::new(output));
        self
    }

    /// Appends a paragraph to the message.
    #[doc(hidden)]
    pub fn append(&mut self, text: &str) {
        self.0.message.push_str("\n\n");
        self.0.message.push_str(text);
    }

    /// Truncates message and hint to `max` bytes in total. The start of each is kept, and at least
    /// a quarter of the limit is reserved for the hint.
    pub(crate) fn truncate_to(&mut self, max: usize) {
        let room = self.truncate_hint(max);
        truncate_text(&mut self.0.message, room);
    }

    /// Truncates the hint like [`truncate_to`](Self::truncate_to), and returns the number of bytes
    /// that remain for the message.
    pub(crate) fn truncate_hint(&mut self, max: usize) -> usize {
        let Inner { message, hint, .. } = &mut *self.0;
        let Some(hint) = hint else { return max };
        let room = max.saturating_sub(HINT_SEPARATOR.len());
        truncate_text(hint, room.saturating_sub(message.len()).max(room / 4));
        room.saturating_sub(hint.len())
    }

    /// Returns whether message and hint have at most `max` bytes in total.
    #[inline]
    pub(crate) fn is_within(&self, max: usize) -> bool {
        let hint = self.0.hint.as_ref().map_or(0, |hint| HINT_SEPARATOR.len() + hint.len());
        self.0.message.len() + hint <= max
    }

    /// Changes message and hint.
    pub(crate) fn map_texts(&mut self, change: &dyn Fn(&mut String)) {
        change(&mut self.0.message);
        if let Some(hint) = &mut self.0.hint {
            change(hint);
        }
    }

    /// Returns the output of the failed tool, to change it.
    pub(crate) fn output_mut(&mut self) -> Option<&mut Output> {
        self.0.output.as_deref_mut()
    }

    /// Replaces the cause.
    pub(crate) fn replace_source(&mut self, source: &'static str) {
        self.0.source = Some(source.into());
    }

    /// Replaces the message.
    pub(crate) fn replace_message(&mut self, message: String) {
        self.0.message = message;
    }

    /// Returns the kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message for the model.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the hint for the model.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns the output of the failed tool.
    #[must_use]
    pub fn output(&self) -> Option<&Output> {
        self.0.output.as_deref()
    }
}

/// The model reads what `Display` writes: the outermost context, without its causes.
impl From<Box<dyn StdError + Send + Sync>> for ToolError {
    fn from(error: Box<dyn StdError + Send + Sync>) -> Self {
        Self::from_error(error)
    }
}

/// The model reads what `Display` writes: the outermost context, without its causes.
#[cfg(feature = "anyhow")]
impl From<anyhow::Error> for ToolError {
    fn from(error: anyhow::Error) -> Self {
        Self::from_error(error)
    }
}

#[cfg(feature = "workspace")]
impl From<WorkspaceError> for ToolError {
    fn from(error: WorkspaceError) -> Self {
        let kind = match error.kind() {
            WorkspaceErrorKind::InvalidPath => ErrorKind::InvalidArgs,
            WorkspaceErrorKind::NotFound => ErrorKind::NotFound,
            WorkspaceErrorKind::Denied => ErrorKind::Denied,
            WorkspaceErrorKind::Conflict => ErrorKind::Conflict,
            WorkspaceErrorKind::Aborted => ErrorKind::Aborted,
            _ => ErrorKind::Failed,
        };
        let mut converted = Self::new(kind, error.message());
        converted.0.hint = error.suggestion().map(str::to_owned);
        converted.0.source = error.into_source();
        converted
    }
}

/// The separator between message and hint.
const HINT_SEPARATOR: &str = "\nhint: ";

/// Truncates a text to `max` bytes, including a note of how many bytes were left out.
fn truncate_text(text: &mut String, max: usize) {
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
            Some(hint) => write!(f, "{HINT_SEPARATOR}{hint}"),
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

    // F42: every failure has a kind of the fixed set.
    #[test]
    fn every_kind_has_a_name_and_a_status() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert!((400..600).contains(&kind.http_status()));
        }
    }

    #[test]
    fn message_and_hint_share_the_limit() {
        let both = |message: usize, hint: usize| {
            let mut error = ToolError::failed("é".repeat(message)).hint("h".repeat(hint));
            error.truncate_to(4096);
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
        plain.truncate_to(4096);
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
