//! What a tool gives back: text or JSON for the model, and what goes beside it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::seldom::Seldom;

/// The result of a tool.
///
/// The text is what the model reads. Everything else goes beside it: a structured value
/// for programs, attachments, a title and metadata for people's screens.
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
#[derive(Clone, Default, PartialEq)]
pub struct Output {
    text: String,
    form: Form,
    beside: Seldom<Option<Box<Beside>>>,
}

/// Whether the text is prose or the JSON text of a structured value.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Default, PartialEq)]
struct Beside {
    title: Option<String>,
    structured: Option<Value>,
    metadata: Map<String, Value>,
    attachments: Vec<Attachment>,
    display: Option<Value>,
    dropped: Option<Dropped>,
    /// How many bytes the text was made of, what was dropped among them.
    made_of: Option<usize>,
    /// How many bytes of the text are a heading, and how many a footing.
    heading: usize,
    footing: usize,
    /// The most bytes of the text after the heading.
    limit: Option<usize>,
}

/// What a tool could not take in: it is not in the text and in no file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
    /// What stands in the text in its place.
    pub(crate) mark: String,
}

impl Output {
    /// Text for the model.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A structured value, given as JSON text.
    ///
    /// # Errors
    ///
    /// Fails when `value` cannot be written as JSON.
    #[inline]
    pub fn json(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self {
            text: serde_json::to_string(value)?,
            form: Form::Json,
            beside: Seldom::default(),
        })
    }

    /// Sets a short title for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.beside_mut().title = Some(title.into());
        self
    }

    /// Sets a structured value beside a text that says the same in words.
    #[must_use]
    pub fn structured(mut self, value: Value) -> Self {
        self.beside_mut().structured = Some(value);
        self
    }

    /// Adds a fact for programs; the model does not read it.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.beside_mut().metadata.insert(key.into(), value.into());
        self
    }

    /// Adds an attachment.
    #[must_use]
    pub fn attach(mut self, attachment: Attachment) -> Self {
        self.beside_mut().attachments.push(attachment);
        self
    }

    /// Sets typed data from which a screen can draw the result; the model does not read it.
    #[must_use]
    pub fn display(mut self, display: Value) -> Self {
        self.beside_mut().display = Some(display);
        self
    }

    /// Says how much was lost before there was a text, for instance when the buffer for a
    /// process' output was full.
    ///
    /// It counts as left out, and the model is told; nothing lost is nothing to tell.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Output;
    ///
    /// let output = Output::text("first\nlast\n").dropped(3, 42);
    /// assert_eq!(output.as_text(), "first\nlast\n");
    /// ```
    #[must_use]
    pub fn dropped(mut self, lines: usize, bytes: usize) -> Self {
        if (lines, bytes) != (0, 0) {
            self.beside_mut().dropped = Some(Dropped { lines, bytes, mark: String::new() });
        }
        self
    }

    /// Says what stands in the text where [something was lost](Self::dropped); it counts for none
    /// of what there was.
    #[must_use]
    pub fn marked(mut self, mark: impl Into<String>) -> Self {
        let dropped = self.beside.as_mut().and_then(|beside| beside.dropped.as_mut());
        if let Some(dropped) = dropped {
            dropped.mark = mark.into();
        }
        self
    }

    /// Says how many bytes the text was made of, where it is not these bytes themselves: programs
    /// write control sequences, and what is no UTF-8. What was [dropped](Self::dropped) is among
    /// them.
    ///
    /// When the text is cut, the counts are of these bytes. Each character of the text takes the
    /// same room there, but for `\u{fffd}`, which stands for what is no text.
    #[must_use]
    pub fn made_of(mut self, bytes: usize) -> Self {
        self.beside_mut().made_of = Some(bytes);
        self
    }

    /// Says that the first `bytes` of the text are a heading, such as how long a command took.
    ///
    /// A heading stays when the text is cut, and tells nothing of whether two results are the
    /// same; [metadata](Self::metadata) then does, beside the rest of the text.
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
        self.beside_mut().heading = bytes;
        self
    }

    /// Says that the last `bytes` of the text are a footing: said of what stands before it, kept
    /// when that is cut, and not counted.
    #[must_use]
    pub fn footing(mut self, bytes: usize) -> Self {
        self.beside_mut().footing = bytes;
        self
    }

    /// Asks that the text after the [heading](Self::heading) is cut to so many bytes, where the
    /// host would allow more.
    ///
    /// The whole text is kept like that of any result that is cut, so a tool that is told how
    /// much its caller wants to read loses nothing by it.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.beside_mut().limit = Some(bytes);
        self
    }

    /// Whether it is its text and nothing else.
    #[inline]
    pub(crate) fn is_bare(&self) -> bool {
        self.beside.is_none()
    }

    /// The heading, and the text after it.
    pub(crate) fn parts(&self) -> (&str, &str) {
        let heading = self.beside.as_ref().map_or(0, |beside| beside.heading);
        self.text.split_at_checked(heading).unwrap_or(("", &self.text))
    }

    /// The heading, what is counted and may be cut, and the footing.
    pub(crate) fn sections(&self) -> (&str, &str, &str) {
        let (heading, rest) = self.parts();
        let footing = self.beside.as_ref().map_or(0, |beside| beside.footing);
        let end = rest.len().checked_sub(footing);
        match end.and_then(|end| rest.split_at_checked(end)) {
            Some((body, footing)) => (heading, body, footing),
            None => (heading, rest, ""),
        }
    }

    /// How many bytes the text was made of, where it is not these bytes themselves.
    pub(crate) fn source_bytes(&self) -> Option<usize> {
        self.beside.as_ref()?.made_of
    }

    /// The most bytes of the text after the heading, where the tool wants less than it may.
    pub(crate) fn own_limit(&self) -> Option<usize> {
        self.beside.as_ref()?.limit
    }

    /// What the tool said that it lost.
    pub(crate) fn dropped_counts(&self) -> Option<Dropped> {
        self.beside.as_ref()?.dropped.clone()
    }

    /// What the model reads.
    #[must_use]
    pub fn as_text(&self) -> &str {
        &self.text
    }

    /// Takes the text out.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// The structured value, where there is one.
    #[must_use]
    pub fn to_structured(&self) -> Option<Value> {
        match self.form {
            Form::Json => serde_json::from_str(&self.text).ok(),
            Form::Text => self.beside.as_ref()?.structured.clone(),
        }
    }

    /// Whether the text is the JSON text of a structured value.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// The whole result as one JSON text: the structured value, or the text as a string.
    #[must_use]
    #[inline]
    pub fn into_json(mut self) -> String {
        if self.form == Form::Json {
            return self.text;
        }
        match self.beside.take().and_then(|beside| beside.structured) {
            Some(structured) => structured.to_string(),
            // Not by `Display`, which takes a long text in small pieces.
            None => serde_json::to_string(&self.text).unwrap_or_default(),
        }
    }

    /// The short title.
    #[must_use]
    pub fn title_text(&self) -> Option<&str> {
        self.beside.as_ref()?.title.as_deref()
    }

    /// The facts for programs.
    #[must_use]
    pub fn metadata_map(&self) -> Option<&Map<String, Value>> {
        self.beside.as_ref().map(|beside| &beside.metadata).filter(|map| !map.is_empty())
    }

    /// The attachments.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        self.beside.as_ref().map_or(&[], |beside| &beside.attachments)
    }

    /// The typed data for a screen.
    #[must_use]
    pub fn display_data(&self) -> Option<&Value> {
        self.beside.as_ref()?.display.as_ref()
    }

    /// Replaces the text, for instance by a shorter one.
    ///
    /// A JSON text that is replaced stays available to programs as the structured value:
    /// what a model cannot afford to read is still whole for a machine.
    pub fn replace_text(&mut self, text: String) {
        if self.form == Form::Json {
            let structured = self.to_structured();
            self.beside_mut().structured = structured;
            self.form = Form::Text;
        }
        let (heading, _, footing) = self.sections();
        let keeps = (text.starts_with(heading), text.ends_with(footing));
        if let Some(beside) = &mut *self.beside {
            beside.heading *= usize::from(keeps.0);
            beside.footing *= usize::from(keeps.1);
            // It is another text.
            beside.made_of = None;
        }
        self.text = text;
    }

    fn beside_mut(&mut self) -> &mut Beside {
        self.beside.get_or_insert_default()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Output");
        out.field("text", &self.text);
        if let Some(beside) = &*self.beside {
            out.field("title", &beside.title)
                .field("structured", &beside.structured)
                .field("metadata", &beside.metadata)
                .field("attachments", &beside.attachments)
                .field("display", &beside.display)
                .field("dropped", &beside.dropped)
                .field("made_of", &beside.made_of)
                .field("heading", &beside.heading)
                .field("footing", &beside.footing)
                .field("limit", &beside.limit);
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

/// Something that comes with a result: an image, a document, a link.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attachment {
    /// The media type, such as `image/png`.
    pub mime: String,
    /// A name for people, such as the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A title for people, where it has one beside its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many bytes there are behind an address, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The address of what the bytes are a copy of, where they are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Where it is.
    pub data: Data,
}

/// Where an attachment is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Data {
    /// The bytes themselves.
    Bytes(Vec<u8>),
    /// A place to fetch it from.
    Uri(String),
}

impl Attachment {
    /// An attachment that carries its bytes.
    #[must_use]
    pub fn bytes(mime: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self::new(mime.into(), Data::Bytes(bytes))
    }

    /// An attachment that says where it is.
    #[must_use]
    pub fn uri(mime: impl Into<String>, uri: impl Into<String>) -> Self {
        Self::new(mime.into(), Data::Uri(uri.into()))
    }

    fn new(mime: String, data: Data) -> Self {
        let (name, title, description, size, origin) = Default::default();
        Self { mime, name, title, description, size, origin, data }
    }

    /// Names it.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Says of what the bytes are a copy: the address of a resource.
    #[must_use]
    pub fn copied_from(mut self, uri: impl Into<String>) -> Self {
        self.origin = Some(uri.into());
        self
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = match &self.data {
            Data::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Data::Uri(uri) => uri.clone(),
        };
        write!(f, "Attachment({}, {:?}, {size})", self.mime, self.name)
    }
}
