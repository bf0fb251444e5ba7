//! What goes into the pipeline and what comes out: a call and its outcome.

mod cancel;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(crate) use self::cancel::LazyCancelToken;
use crate::content::Output;
use crate::error::ToolError;

/// The id of one call: the provider's, or one of our own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallId(CallIdKind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallIdKind {
    External(Arc<str>),
    Generated(u64),
}

impl CallId {
    /// The id that a provider or client gave.
    #[must_use]
    pub fn from_external(id: &str) -> Self {
        Self(CallIdKind::External(id.into()))
    }

    /// A new id, unique in this process.
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

/// The arguments of a call, as the JSON text that came in.
///
/// The text is decoded exactly once, by the tool. What is accepted beyond the tool's own
/// contract is said here by the surface that knows its client, and every use of it is
/// recorded in the outcome.
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
    /// What is accepted beyond the contract.
    pub lenient: Leniency,
}

/// What is accepted beyond a tool's own contract; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leniency {
    /// `null` for what is optional means that it is absent, as strict function calling writes
    /// it: for an argument, and for a field of an object at any depth.
    pub null_is_absent: bool,
    /// An object or array that came as a string is read as JSON once more.
    pub stringified: bool,
    /// Parameters that models are not told of may be sent, for a host that does so itself.
    pub hidden: bool,
}

impl Leniency {
    /// Takes `null` for an optional argument as absent.
    #[must_use]
    pub const fn null_is_absent(mut self) -> Self {
        self.null_is_absent = true;
        self
    }

    /// Reads an object or array that came as a string.
    #[must_use]
    pub const fn stringified(mut self) -> Self {
        self.stringified = true;
        self
    }

    /// Takes arguments that models are not told of: for calls of a host, never for those of a
    /// model.
    #[must_use]
    pub const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }
}

impl<'a> RawArgs<'a> {
    /// The same, for as long as somebody wants them.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only other threads keep them"))]
    pub(crate) fn to_static(&self) -> RawArgs<'static> {
        RawArgs { text: self.text.to_string().into(), lenient: self.lenient }
    }

    /// Arguments as JSON text.
    #[must_use]
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), lenient: Leniency::default() }
    }

    /// Says what is accepted beyond the contract.
    #[must_use]
    pub fn lenient(mut self, lenient: Leniency) -> Self {
        self.lenient = lenient;
        self
    }

    /// The JSON text.
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

/// A wish to run a tool.
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
    /// The provider's id; one is made when there is none.
    pub id: Option<CallId>,
    /// The message that holds the call.
    pub message: Option<Arc<str>>,
    /// A time limit for this call, instead of the tool's own.
    pub timeout: Option<Duration>,
    /// The most bytes of text that come back, instead of the tool's own limit.
    pub max_output: Option<usize>,
    /// What cancels this call, where anything does.
    pub(crate) cancel: Option<LazyCancelToken>,
}

impl<'a> Call<'a> {
    /// A call of `name` with `arguments`.
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
        }
    }

    /// Sets the provider's id of this call; an empty one is none.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = (!id.is_empty()).then(|| CallId::from_external(id));
        self
    }

    /// The id by which everybody knows this run of the call.
    #[inline]
    pub(crate) fn id_or_generate(&self) -> CallId {
        self.id.clone().unwrap_or_else(CallId::generate)
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

    /// Limits the bytes of text that come back.
    #[must_use]
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = Some(bytes);
        self
    }
}

/// Something that was accepted although the contract does not say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ArgumentNote {
    /// The argument.
    pub argument: String,
    /// What was done with it.
    pub what: Coercion,
}

impl ArgumentNote {
    pub(crate) fn new(argument: &str, what: Coercion) -> Self {
        Self { argument: argument.to_owned(), what }
    }
}

/// How an argument was taken that breaks the letter of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Coercion {
    /// It came under a declared alias.
    Alias,
    /// It was `null` and taken as absent.
    NullAsAbsent,
    /// It was a string that holds JSON.
    Stringified,
}

/// What became of a call: exactly one per call.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The call's id.
    pub call: CallId,
    /// The result for the model.
    pub result: Result<Output, ToolError>,
    pub(crate) metadata: Option<Box<OutcomeMetadata>>,
}

/// What only few calls leave beside their result.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OutcomeMetadata {
    pub(crate) truncation: Option<Truncation>,
    pub(crate) notes: Vec<ArgumentNote>,
    pub(crate) halt_reason: Option<String>,
}

impl Outcome {
    /// What was cut from the text, where something was.
    #[must_use]
    pub fn truncation(&self) -> Option<&Truncation> {
        self.metadata.as_ref()?.truncation.as_ref()
    }

    /// What was accepted beyond the contract.
    #[must_use]
    pub fn notes(&self) -> &[ArgumentNote] {
        self.metadata.as_ref().map_or(&[], |aside| &aside.notes)
    }

    /// Why the model's turn ends with this call, where a hook wants that.
    #[must_use]
    pub fn halt_reason(&self) -> Option<&str> {
        self.metadata.as_ref()?.halt_reason.as_deref()
    }

    /// The text for the model, whether the call succeeded or not.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.result {
            Ok(output) => Cow::Borrowed(output.as_text()),
            Err(error) => Cow::Owned(error.to_string()),
        }
    }
}

/// How much of a text was left out, in exact numbers.
///
/// What the tool lost before there was a text counts as left out, and is in no file. The heading
/// and the footing of an [`Output`](crate::Output) are never left out: the file has them, and the
/// numbers are of what stands between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Truncation {
    /// Lines of the whole text.
    pub original_lines: usize,
    /// Bytes of the whole text.
    pub original_bytes: usize,
    /// Lines left out.
    pub omitted_lines: usize,
    /// Bytes left out.
    pub omitted_bytes: usize,
    /// Those of the lines left out that the tool lost.
    pub dropped_lines: usize,
    /// Those of the bytes left out that the tool lost.
    pub dropped_bytes: usize,
    /// Those of the bytes left out that were captured and are no text: control sequences, and
    /// what `\u{fffd}` stands for.
    pub unprintable_bytes: usize,
    /// Where the text is that was cut, when it could be kept.
    pub full_output_path: Option<std::path::PathBuf>,
}
