//! The output of a tool: text or JSON for the model, with attachments, metadata and a title.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The result of a tool.
///
/// The model reads the text. Everything else accompanies it: a structured value for programs,
/// attachments, and a title and metadata for user interfaces.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Attachment, Output};
///
/// let output = Output::text("3 matches")
///     .title("grep TODO")
///     .metadata("matches", 3)
///     .attach(Attachment::bytes("image/png", vec![0x89, b'P', b'N', b'G']));
///
/// assert_eq!(output.as_text(), "3 matches");
/// assert_eq!(output.attachments().len(), 1);
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Output {
    text: String,
    format: TextFormat,
    extras: Option<Box<OutputExtras>>,
}

/// Whether the text is plain text or a structured value as JSON.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum TextFormat {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
struct OutputExtras {
    title: Option<String>,
    structured: Option<Value>,
    metadata: Map<String, Value>,
    attachments: Vec<Attachment>,
    display: Option<Value>,
    dropped: Option<DroppedOutput>,
    /// The size in bytes of the original data, including dropped bytes.
    original_bytes: Option<usize>,
    /// The number of bytes at the start of the text that are a heading.
    heading: usize,
    /// The number of bytes at the end of the text that are a footing.
    footing: usize,
    /// The limit in bytes of the text after the heading.
    limit: Option<usize>,
    /// Whether compaction of the conversation leaves the result as it is.
    is_exempt_from_compaction: bool,
}

/// Output that a tool lost before there was a text; it is in no file either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DroppedOutput {
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
    /// The marker in the text at its position.
    pub(crate) marker: String,
}

impl Output {
    /// Creates an output of text for the model.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates an output of a structured value, serialized as JSON text.
    ///
    /// # Errors
    ///
    /// Fails when `value` cannot be serialized.
    #[inline]
    pub fn json(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self { text: serde_json::to_string(value)?, format: TextFormat::Json, extras: None })
    }

    /// Sets a short title for the user interface.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.extras_mut().title = Some(title.into());
        self
    }

    /// Sets a structured value in addition to a text with the same content.
    #[must_use]
    pub fn structured(mut self, value: Value) -> Self {
        self.extras_mut().structured = Some(value);
        self
    }

    /// Adds metadata for programs; the model does not read it.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extras_mut().metadata.insert(key.into(), value.into());
        self
    }

    /// Adds an attachment.
    #[must_use]
    pub fn attach(mut self, attachment: Attachment) -> Self {
        self.extras_mut().attachments.push(attachment);
        self
    }

    /// Sets data from which a user interface can render the result; the model does not read it.
    #[must_use]
    pub fn display(mut self, display: Value) -> Self {
        self.extras_mut().display = Some(display);
        self
    }

    /// Reports how much output was lost before there was a text, for instance because the buffer
    /// for the output of a process was full.
    ///
    /// It counts as omitted, and the model is told so. Zero lines and zero bytes are ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Output;
    ///
    /// let output = Output::text("first\nlast\n").report_dropped(3, 42);
    /// assert_eq!(output.as_text(), "first\nlast\n");
    /// ```
    #[must_use]
    pub fn report_dropped(mut self, lines: usize, bytes: usize) -> Self {
        if (lines, bytes) != (0, 0) {
            self.extras_mut().dropped = Some(DroppedOutput { lines, bytes, marker: String::new() });
        }
        self
    }

    /// Sets the marker that stands in the text at the position of the
    /// [dropped output](Self::report_dropped). The marker does not count as output.
    #[must_use]
    pub fn dropped_marker(mut self, mark: impl Into<String>) -> Self {
        let dropped = self.extras.as_mut().and_then(|extras| extras.dropped.as_mut());
        if let Some(dropped) = dropped {
            dropped.marker = mark.into();
        }
        self
    }

    /// Sets the size in bytes of the original data, if the text differs from it: programs write
    /// control sequences and invalid UTF-8. [Dropped output](Self::report_dropped) is included.
    ///
    /// When the text is truncated, these bytes are counted. Each character of the text counts as
    /// in UTF-8, except `\u{fffd}`, which replaces invalid bytes.
    #[must_use]
    pub fn original_bytes(mut self, bytes: usize) -> Self {
        self.extras_mut().original_bytes = Some(bytes);
        self
    }

    /// Declares the first `bytes` of the text as a heading, such as the duration of a command.
    ///
    /// A heading is kept when the text is truncated, and is ignored when the loop guard compares
    /// two results; it compares the rest of the text and the [metadata](Self::metadata).
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Output;
    ///
    /// let heading = "took 12 ms\n";
    /// let output = Output::text(format!("{heading}all is well\n")).heading(heading.len());
    /// assert_eq!(output.as_text(), "took 12 ms\nall is well\n");
    /// ```
    #[must_use]
    pub fn heading(mut self, bytes: usize) -> Self {
        self.extras_mut().heading = bytes;
        self
    }

    /// Declares the last `bytes` of the text as a footing: a note about the text before it, which
    /// is kept when the text is truncated and is not counted.
    #[must_use]
    pub fn footing(mut self, bytes: usize) -> Self {
        self.extras_mut().footing = bytes;
        self
    }

    /// Limits the text after the [heading](Self::heading) to `bytes`, if the budget of the host
    /// allows more.
    ///
    /// The whole text is saved as for any truncated result, so a tool can pass on how much its
    /// caller wants to read without losing output.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.extras_mut().limit = Some(bytes);
        self
    }

    /// Keeps the result in the conversation when an agent removes older results to save space, such
    /// as instructions that hold until the end of the work.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Output;
    ///
    /// let output = Output::text("Run the tests before each commit.").exempt_from_compaction();
    /// assert!(output.is_exempt_from_compaction());
    /// ```
    #[must_use]
    pub fn exempt_from_compaction(mut self) -> Self {
        self.extras_mut().is_exempt_from_compaction = true;
        self
    }

    /// Returns whether the result [stays in the conversation](Self::exempt_from_compaction).
    #[must_use]
    pub fn is_exempt_from_compaction(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.is_exempt_from_compaction)
    }

    /// Returns whether the output has only text.
    #[inline]
    pub(crate) fn is_text_only(&self) -> bool {
        self.extras.is_none()
    }

    /// Splits the text into the heading and the rest.
    pub(crate) fn split_heading(&self) -> (&str, &str) {
        let heading = self.extras.as_ref().map_or(0, |extras| extras.heading);
        self.text.split_at_checked(heading).unwrap_or(("", &self.text))
    }

    /// Splits the text into heading, body and footing. Only the body is counted and truncated.
    pub(crate) fn sections(&self) -> (&str, &str, &str) {
        let (heading, rest) = self.split_heading();
        let footing = self.extras.as_ref().map_or(0, |extras| extras.footing);
        let end = rest.len().checked_sub(footing);
        match end.and_then(|end| rest.split_at_checked(end)) {
            Some((body, footing)) => (heading, body, footing),
            None => (heading, rest, ""),
        }
    }

    /// Returns the size of the original data, if the text differs from it.
    pub(crate) fn original_byte_count(&self) -> Option<usize> {
        self.extras.as_ref()?.original_bytes
    }

    /// Returns the limit that the tool requested for the text after the heading.
    pub(crate) fn requested_limit(&self) -> Option<usize> {
        self.extras.as_ref()?.limit
    }

    /// Returns the dropped output that the tool reported.
    pub(crate) fn dropped_counts(&self) -> Option<DroppedOutput> {
        self.extras.as_ref()?.dropped.clone()
    }

    /// Returns the text that the model reads.
    #[must_use]
    pub fn as_text(&self) -> &str {
        &self.text
    }

    /// Returns the text by value.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// Returns the structured value, if there is one.
    #[must_use]
    pub fn to_structured(&self) -> Option<Value> {
        match self.format {
            TextFormat::Json => serde_json::from_str(&self.text).ok(),
            TextFormat::Text => self.extras.as_ref()?.structured.clone(),
        }
    }

    /// Returns whether the text is a structured value as JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.format == TextFormat::Json
    }

    /// Returns the result as JSON text: the structured value, or the text as a string.
    #[must_use]
    #[inline]
    pub fn into_json(mut self) -> String {
        if self.format == TextFormat::Json {
            return self.text;
        }
        match self.extras.take().and_then(|extras| extras.structured) {
            Some(structured) => structured.to_string(),
            // `Display` of a JSON string writes a long text in small pieces.
            None => serde_json::to_string(&self.text).unwrap_or_default(),
        }
    }

    /// Returns the title.
    #[must_use]
    pub fn title_text(&self) -> Option<&str> {
        self.extras.as_ref()?.title.as_deref()
    }

    /// Returns the metadata for programs.
    #[must_use]
    pub fn metadata_map(&self) -> Option<&Map<String, Value>> {
        self.extras.as_ref().map(|extras| &extras.metadata).filter(|map| !map.is_empty())
    }

    /// Returns the attachments.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        self.extras.as_ref().map_or(&[], |extras| &extras.attachments)
    }

    /// Returns the data for rendering.
    #[must_use]
    pub fn display_data(&self) -> Option<&Value> {
        self.extras.as_ref()?.display.as_ref()
    }

    /// Replaces the text, for instance by a shorter one.
    ///
    /// A replaced JSON text stays available to programs as the structured value, so truncation
    /// for the model does not affect programs.
    pub fn replace_text(&mut self, text: String) {
        if self.format == TextFormat::Json {
            let structured = self.to_structured();
            self.extras_mut().structured = structured;
            self.format = TextFormat::Text;
        }
        let (heading, _, footing) = self.sections();
        let keeps = (text.starts_with(heading), text.ends_with(footing));
        if let Some(extras) = &mut self.extras {
            extras.heading *= usize::from(keeps.0);
            extras.footing *= usize::from(keeps.1);
            // The size belongs to the replaced text.
            extras.original_bytes = None;
        }
        self.text = text;
    }

    fn extras_mut(&mut self) -> &mut OutputExtras {
        self.extras.get_or_insert_default()
    }
}

impl Output {
    /// Changes every text of the output, and every structured value.
    pub(crate) fn map_texts(
        &mut self,
        change: &dyn Fn(&mut String),
        change_value: &dyn Fn(&mut Value),
    ) {
        let before = self.text.len();
        change(&mut self.text);
        let Some(extras) = self.extras.as_deref_mut() else { return };
        if self.text.len() != before {
            // The positions of heading and footing no longer hold.
            (extras.heading, extras.footing) = (0, 0);
        }
        extras.title.iter_mut().for_each(change);
        extras.structured.iter_mut().chain(&mut extras.display).for_each(change_value);
        extras.metadata.values_mut().for_each(change_value);
        for attachment in &mut extras.attachments {
            attachment.map_texts(change);
        }
    }
}

impl Attachment {
    fn map_texts(&mut self, change: &dyn Fn(&mut String)) {
        let names = [&mut self.name, &mut self.title, &mut self.description, &mut self.origin];
        names.into_iter().flatten().for_each(change);
        match &mut self.data {
            AttachmentData::Uri(uri) => change(uri),
            AttachmentData::Bytes(bytes) => {
                if let Ok(text) = str::from_utf8(bytes) {
                    let mut text = text.to_owned();
                    change(&mut text);
                    *bytes = text.into_bytes();
                }
            }
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Output");
        out.field("text", &self.text);
        if let Some(extras) = &self.extras {
            out.field("title", &extras.title)
                .field("structured", &extras.structured)
                .field("metadata", &extras.metadata)
                .field("attachments", &extras.attachments)
                .field("display", &extras.display)
                .field("dropped", &extras.dropped)
                .field("original_bytes", &extras.original_bytes)
                .field("heading", &extras.heading)
                .field("footing", &extras.footing)
                .field("limit", &extras.limit)
                .field("is_exempt_from_compaction", &extras.is_exempt_from_compaction);
        }
        out.finish()
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// An attachment of a result: an image, a document or a link.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attachment {
    /// The media type, such as `image/png`.
    pub mime: String,
    /// A name for users, such as the file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A title for users, in addition to the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The size in bytes of the resource behind a URI, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The URI of the resource of which the bytes are a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The content or its location.
    pub data: AttachmentData,
}

/// The content of an attachment, or its location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "each crate of the SDK handles every variant")]
pub enum AttachmentData {
    /// The content.
    Bytes(Vec<u8>),
    /// A URI from which the content can be fetched.
    Uri(String),
}

impl Attachment {
    /// Creates an attachment with content.
    #[must_use]
    pub fn bytes(mime: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self::new(mime.into(), AttachmentData::Bytes(bytes))
    }

    /// Creates an attachment that refers to a URI.
    #[must_use]
    pub fn uri(mime: impl Into<String>, uri: impl Into<String>) -> Self {
        Self::new(mime.into(), AttachmentData::Uri(uri.into()))
    }

    fn new(mime: String, data: AttachmentData) -> Self {
        let (name, title, description, size, origin) = Default::default();
        Self { mime, name, title, description, size, origin, data }
    }

    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the URI of the resource of which the bytes are a copy.
    #[must_use]
    pub fn with_origin(mut self, uri: impl Into<String>) -> Self {
        self.origin = Some(uri.into());
        self
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = match &self.data {
            AttachmentData::Bytes(bytes) => format!("{} bytes", bytes.len()),
            AttachmentData::Uri(uri) => uri.clone(),
        };
        write!(f, "Attachment({}, {:?}, {size})", self.mime, self.name)
    }
}
