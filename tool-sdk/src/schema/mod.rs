//! One normal form of JSON Schema, for everything that is said or checked about arguments.
//!
//! Schemas come from Rust types ([`Schema::of`]) or from elsewhere ([`Schema::from_json`]).
//! What the normal form settles, nothing after it has to think about: no `$schema`, no
//! `title`, only standard formats, bounds on every sized number, optional means "not
//! required" and never "or null", unknown properties are refused.
//!
//! **Invariant:** nothing here knows a provider; what they refuse is the surface's business.

mod assemble;
mod basic;
mod check;
mod contradiction;
#[cfg(feature = "external-schemas")]
mod external;
mod external_keywords;
#[cfg(feature = "mcp")]
mod foreign;
mod moved;
mod normal;
mod order;
mod references;
mod secret;
pub(crate) mod walk;
mod words;

use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::SchemaGenerator;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

pub(crate) use self::assemble::{Property, object};
#[cfg(feature = "mcp")]
pub(crate) use self::check::{expected, followed_draft};
pub(crate) use self::check::{faults, misspelt};
pub(crate) use self::contradiction::contradictions;
#[cfg(feature = "external-schemas")]
pub(crate) use self::external::{ExternalValidator, PathSegment, SchemaViolation, ViolationKind};
pub(crate) use self::external_keywords::find_external_keyword;
#[cfg(feature = "mcp")]
pub(crate) use self::foreign::{encoded, followable, is_standard};
#[cfg(feature = "mcp")]
pub(crate) use self::moved::redirect;
pub(crate) use self::normal::FORMATS;
pub(crate) use self::order::order;
pub(crate) use self::references::localized;
pub(crate) use self::secret::is_secret;
pub(crate) use self::words::{is_widest, map_words, type_words};

/// A schema by its type, as a function pointer.
pub(crate) type SchemaFn = fn(&mut SchemaGenerator) -> schemars::Schema;

/// A JSON Schema (2020-12) in normal form.
///
/// Properties keep the order of their declaration, because it steers models, and the same
/// schema is the same bytes every time.
///
/// # Examples
///
/// ```
/// use tool_sdk::Schema;
///
/// let schema = Schema::from_json(r#"{
///     "type": "object",
///     "properties": {
///         "path": { "type": "string" },
///         "limit": { "type": "integer", "minimum": 1, "maximum": 5000, "default": 2000 }
///     },
///     "required": ["path"]
/// }"#)?;
///
/// assert!(schema.is_required("path"));
/// assert_eq!(
///     schema.signature(),
///     r#"{"path": string, "limit"?: integer 1..5000 = 2000}"#
/// );
/// # Ok::<(), tool_sdk::SchemaError>(())
/// ```
///
/// It is kept as text, which is what nearly everybody wants of it and a tenth of the memory
/// of a tree; the tree is made for the first who asks for it.
#[derive(Clone, Debug)]
pub struct Schema {
    text: Arc<RawValue>,
    tree: OnceLock<Arc<Map<String, Value>>>,
    is_basic: bool,
}

impl Schema {
    /// What is in normal form already.
    fn new(root: &impl Serialize) -> Self {
        let text = to_raw_value(root).expect("an object in memory can be written");
        Self { text: text.into(), tree: OnceLock::new(), is_basic: false }
    }

    /// A generated schema, which is looked at while it is a tree.
    fn generated(root: &Map<String, Value>) -> Self {
        Self { is_basic: basic::is_basic(root), ..Self::new(root) }
    }

    /// Whether it is known to use only keywords that every check has, in ways that some value
    /// satisfies. Any other schema must be looked at whole.
    pub(crate) fn is_basic(&self) -> bool {
        self.is_basic
    }

    /// Takes a schema from elsewhere as the schema of a tool's parameters.
    ///
    /// The declared order stays, `$schema` and the root's `title` go, and words of earlier
    /// drafts become those of 2020-12.
    ///
    /// # Errors
    ///
    /// Fails when the root is not an object schema, a keyword has a value of the wrong
    /// kind, or a `$ref` leads nowhere or out of the schema.
    pub fn from_value(schema: Value) -> Result<Self, SchemaError> {
        check::parameters(schema).map(|root| Self::new(&root))
    }

    /// Takes a schema from elsewhere as the schema of what a tool gives back, which need not be
    /// an object.
    ///
    /// # Errors
    ///
    /// Fails as [`from_value`](Self::from_value) does, but for the kind of the root.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use tool_sdk::Schema;
    ///
    /// let names = Schema::result_from_value(json!({ "type": "array", "items": { "type": "string" } }))?;
    /// assert_eq!(names.as_str(), r#"{"type":"array","items":{"type":"string"}}"#);
    /// # Ok::<(), tool_sdk::SchemaError>(())
    /// ```
    pub fn result_from_value(schema: Value) -> Result<Self, SchemaError> {
        check::result(schema).map(|root| Self::new(&root))
    }

    /// Takes a schema from elsewhere, as JSON text; see [`from_value`](Self::from_value).
    ///
    /// # Errors
    ///
    /// Fails when the text is not JSON, and as [`from_value`](Self::from_value) does.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        let schema = serde_json::from_str(text)
            .map_err(|error| SchemaError::new("", format_args!("is not JSON: {error}")))?;
        Self::from_value(schema)
    }

    /// The schema as compact JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.text.get()
    }

    /// The schema as text that need not be read to be written.
    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.text
    }

    /// The schema as a JSON object.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        self.tree.get_or_init(|| {
            Arc::new(serde_json::from_str(self.as_str()).expect("the text was written from a tree"))
        })
    }

    /// The schema as a JSON value of its own.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(self.as_map().clone())
    }

    /// Whether what it describes is an object; in normal form the type mostly stands first.
    pub(crate) fn is_of_an_object(&self) -> bool {
        self.as_str().starts_with(r#"{"type":"object""#)
            || self.as_map().get("type").is_some_and(|ty| ty == "object")
    }

    /// The properties of the root, in the order of their declaration.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Value)> {
        let properties = self.as_map().get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// The schema of the property `name` of the root.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.as_map().get("properties")?.get(name)
    }

    /// Whether it takes properties of other names than those that it tells.
    #[cfg(feature = "cli")]
    pub(crate) fn takes_free_names(&self) -> bool {
        let rest = self.as_map().get("additionalProperties");
        let is_open = rest.is_some_and(|rest| rest.is_object() || *rest == Value::Bool(true));
        is_open || self.as_map().contains_key("patternProperties")
    }

    /// The names of the properties that must be there.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        walk::required(self.as_map())
    }

    /// Whether the property `name` must be there.
    #[must_use]
    pub fn is_required(&self, name: &str) -> bool {
        self.required().any(|required| required == name)
    }

    /// Replaces the description of the property `name`, when there is one of that name.
    pub fn describe(&mut self, name: &str, text: &str) {
        self.change(|properties| {
            if let Some(Value::Object(property)) = properties.get_mut(name) {
                property.insert("description".to_owned(), text.into());
                order(property);
            }
        });
    }

    /// Leaves the property `name` out, unless it is required.
    pub fn hide_optional(&mut self, name: &str) {
        if !self.is_required(name) {
            self.change(|properties| _ = properties.shift_remove(name));
        }
    }

    /// The default of the property `name`.
    pub(crate) fn default_of(&self, name: &str) -> Option<&Value> {
        self.as_map().get("properties")?.get(name)?.get("default")
    }

    /// The schema in one line for messages and lists, cut where it gets long.
    ///
    /// A `?` marks what may be left out, `=` what it is then.
    #[must_use]
    pub fn signature(&self) -> String {
        words::signature(self.as_map())
    }

    fn change(&mut self, change: impl FnOnce(&mut Map<String, Value>)) {
        let mut root = self.as_map().clone();
        if let Some(Value::Object(properties)) = root.get_mut("properties") {
            change(properties);
        }
        *self = Self::new(&root);
    }
}

/// The schema of no arguments.
impl Default for Schema {
    fn default() -> Self {
        let mut root = Map::new();
        root.insert("type".to_owned(), "object".into());
        root.insert("properties".to_owned(), json!({}));
        root.insert("additionalProperties".to_owned(), false.into());
        Self::new(&root)
    }
}

/// Two schemas are the same when they say the same, in whatever order.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || self.as_map() == other.as_map()
    }
}

/// The schema as compact JSON.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The schema as a JSON object.
impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_map().serialize(serializer)
    }
}

/// Takes the object as it is.
impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(|root| Self::new(&root))
    }
}

/// Why something cannot be the schema of a tool's parameters.
///
/// # Examples
///
/// ```
/// use tool_sdk::Schema;
///
/// let error = Schema::from_json(r##"{
///     "type": "object",
///     "properties": { "x": { "$ref": "#/$defs/X" } }
/// }"##)
/// .unwrap_err();
///
/// assert_eq!(error.to_string(), "at /properties/x: `$ref` \"#/$defs/X\" leads nowhere");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {}: {problem}", if .path.is_empty() { "the root" } else { .path })]
pub struct SchemaError {
    path: String,
    problem: String,
}

impl SchemaError {
    fn new(path: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self { path: path.into(), problem: problem.to_string() }
    }

    /// Where, as a JSON pointer; empty for the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong there.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

#[cfg(test)]
#[expect(dead_code, reason = "the types are there for their schemas")]
mod tests;
