//! The input and output of the pipeline: a call and its outcome.

mod cancel;
mod origin;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::cancel::LazyCancelToken;
pub(crate) use self::origin::CallOrigin;
use crate::content::Output;
use crate::error::ToolError;

/// The id of one call: given by the provider or generated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallId(CallIdKind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallIdKind {
    External(Arc<str>),
    Generated(u64),
}

impl CallId {
    /// Creates an id from that of a provider or client.
    #[must_use]
    pub fn from_external(id: &str) -> Self {
        Self(CallIdKind::External(id.into()))
    }

    /// Generates an id that is unique in this process.
    #[must_use]
    pub fn generate() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(CallIdKind::Generated(NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            CallIdKind::External(id) => f.write_str(id),
            CallIdKind::Generated(id) => write!(f, "call-{id}"),
        }
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer).map(|id| Self::from_external(&id))
    }
}

/// The arguments of a call, as the JSON text that the client sent.
///
/// The tool decodes the text exactly once. A surface that knows its client declares here which
/// deviations from the tool's schema are accepted; each deviation is recorded in the outcome.
///
/// # Examples
///
/// ```
/// use tool_sdk::RawArgs;
///
/// let args = RawArgs::new(r#"{"path": "src/main.rs"}"#);
/// assert_eq!(args.text(), r#"{"path": "src/main.rs"}"#);
/// ```
#[derive(Clone, Debug)]
pub struct RawArgs<'a> {
    text: Cow<'a, str>,
    /// Which deviations from the schema are accepted.
    pub lenient: Leniency,
}

/// Which deviations from a tool's schema are accepted; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Leniency {
    /// `null` for an optional argument, or for an optional field at any depth, means that it is
    /// absent. Strict function calling requires this.
    pub null_is_absent: bool,
    /// An object or array that was sent as a string is parsed as JSON again.
    pub stringified: bool,
    /// Parameters that are hidden from models may be sent; for hosts that set them.
    pub hidden: bool,
}

impl Leniency {
    /// Treats `null` for an optional argument as absent.
    #[must_use]
    pub const fn null_is_absent(mut self) -> Self {
        self.null_is_absent = true;
        self
    }

    /// Parses an object or array that was sent as a string.
    #[must_use]
    pub const fn stringified(mut self) -> Self {
        self.stringified = true;
        self
    }

    /// Accepts parameters that are hidden from models: for calls of a host, never for those of a
    /// model.
    #[must_use]
    pub const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }
}

impl<'a> RawArgs<'a> {
    /// Returns a copy that owns its text.
    #[doc(hidden)]
    pub fn to_static(&self) -> RawArgs<'static> {
        RawArgs { text: self.text.to_string().into(), lenient: self.lenient }
    }

    /// Creates arguments from JSON text.
    #[must_use]
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), lenient: Leniency::default() }
    }

    /// Sets which deviations from the schema are accepted.
    #[must_use]
    pub fn lenient(mut self, lenient: Leniency) -> Self {
        self.lenient = lenient;
        self
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<'a> From<&'a str> for RawArgs<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(text)
    }
}

impl From<String> for RawArgs<'_> {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<Value> for RawArgs<'_> {
    fn from(value: Value) -> Self {
        Self::new(value.to_string())
    }
}

/// A request to run a tool.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tool_sdk::Call;
///
/// let call = Call::new("read_page", r#"{"path": "README.md"}"#).timeout(Duration::from_secs(5));
/// assert_eq!(call.name, "read_page");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The tool's name or an alias of it.
    pub name: Cow<'a, str>,
    /// The arguments.
    pub arguments: RawArgs<'a>,
    /// The provider's id; generated when there is none.
    pub id: Option<CallId>,
    /// The message that holds the call.
    pub message: Option<Arc<str>>,
    /// A time limit for this call, instead of the tool's own.
    pub timeout: Option<Duration>,
    /// The maximum bytes of text in the result, instead of the tool's own limit.
    pub max_output: Option<usize>,
    /// The token that cancels this call, if there is one.
    pub cancel: Option<LazyCancelToken>,
    /// The running call that makes this one.
    pub(crate) parent: Option<Arc<CallOrigin>>,
    pub(crate) fingerprint: Option<String>,
}

impl<'a> Call<'a> {
    /// Creates a call of `name` with `arguments`.
    #[must_use]
    pub fn new(name: impl Into<Cow<'a, str>>, arguments: impl Into<RawArgs<'a>>) -> Self {
        Self {
            name: name.into(),
            arguments: arguments.into(),
            id: None,
            message: None,
            timeout: None,
            max_output: None,
            cancel: None,
            parent: None,
            fingerprint: None,
        }
    }

    /// Runs the call only if this is its [fingerprint](crate::Fingerprint) when it is authorized, so
    /// that an approval that was given elsewhere counts for exactly one call.
    #[must_use]
    pub fn bound_to(mut self, fingerprint: impl Into<String>) -> Self {
        self.fingerprint = Some(fingerprint.into());
        self
    }

    /// Sets the provider's id of this call; an empty id is ignored.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = (!id.is_empty()).then(|| CallId::from_external(id));
        self
    }

    /// Returns the id of this run of the call, generated when there is none, and where the call
    /// comes from.
    #[inline]
    pub(crate) fn origin(&self) -> CallOrigin {
        let id = self.id.clone().unwrap_or_else(CallId::generate);
        CallOrigin { id, message: self.message.clone(), parent: self.parent.clone() }
    }

    /// Sets the id of the message that holds the call.
    #[must_use]
    pub fn message(mut self, message: impl Into<Arc<str>>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Limits the time of this call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Lets `token` cancel this call.
    #[must_use]
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token.into());
        self
    }

    /// Limits the bytes of text in the result.
    #[must_use]
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = Some(bytes);
        self
    }
}

/// A deviation from the schema that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ArgumentNote {
    /// The argument.
    pub argument: String,
    /// How it was interpreted.
    pub what: Coercion,
}

impl ArgumentNote {
    pub(crate) fn new(argument: &str, what: Coercion) -> Self {
        Self { argument: argument.to_owned(), what }
    }
}

/// How an argument that deviates from the schema was interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Coercion {
    /// It was sent under a declared alias.
    Alias,
    /// It was `null` and treated as absent.
    NullAsAbsent,
    /// It was a string that contains JSON.
    Stringified,
}

/// The outcome of a call: exactly one per call.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The call's id.
    pub call: CallId,
    /// The result for the model.
    pub result: Result<Output, ToolError>,
    pub(crate) metadata: Option<Box<OutcomeMetadata>>,
}

/// Parts of an outcome that only few calls have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OutcomeMetadata {
    pub(crate) truncation: Option<Truncation>,
    pub(crate) notes: Vec<ArgumentNote>,
    pub(crate) halt_reason: Option<String>,
}

impl Outcome {
    /// Creates the outcome of a call that no pipeline ran.
    #[doc(hidden)]
    #[must_use]
    pub fn new(call: CallId, result: Result<Output, ToolError>) -> Self {
        Self { call, result, metadata: None }
    }

    /// Returns what was truncated, if anything was.
    #[must_use]
    pub fn truncation(&self) -> Option<&Truncation> {
        self.metadata.as_ref()?.truncation.as_ref()
    }

    /// Returns the accepted deviations from the schema.
    #[must_use]
    pub fn notes(&self) -> &[ArgumentNote] {
        self.metadata.as_ref().map_or(&[], |aside| &aside.notes)
    }

    /// Returns why a hook ends the model's turn with this call.
    #[must_use]
    pub fn halt_reason(&self) -> Option<&str> {
        self.metadata.as_ref()?.halt_reason.as_deref()
    }

    /// Returns the text for the model, whether the call succeeded or failed.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.result {
            Ok(output) => Cow::Borrowed(output.as_text()),
            Err(error) => Cow::Owned(error.to_string()),
        }
    }
}

/// How much of a text was truncated, in exact numbers.
///
/// Text that the tool lost before truncation counts as omitted, and is in no file. The heading and
/// footing of an [`Output`](crate::Output) are never truncated: the file contains them, and the
/// numbers count only the text between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Truncation {
    /// Lines of the whole text.
    pub original_lines: usize,
    /// Bytes of the whole text.
    pub original_bytes: usize,
    /// Omitted lines.
    pub omitted_lines: usize,
    /// Omitted bytes.
    pub omitted_bytes: usize,
    /// Omitted lines that the tool itself lost.
    pub dropped_lines: usize,
    /// Omitted bytes that the tool itself lost.
    pub dropped_bytes: usize,
    /// Omitted bytes that were captured and are not text: control sequences, and bytes that
    /// `\u{fffd}` replaces.
    pub unprintable_bytes: usize,
    /// The file with the full text, if it could be stored.
    pub full_output_path: Option<std::path::PathBuf>,
}
