//! JSON Schema in one normal form, for everything that describes or validates arguments.
//!
//! Schemas come from Rust types ([`Schema::for_type`]) or from other sources
//! ([`Schema::from_json`]). The normal form has no `$schema` and no `title`, only standard formats
//! and bounds on every sized number. Optional means "not required", never "or null", and unknown
//! properties are refused.
//!
//! **Invariant:** nothing here depends on a provider; the surfaces handle what providers refuse.

mod basic;
mod check;
mod contradictions;
mod describe;
mod draft_refs;
#[cfg(feature = "external-schemas")]
mod external;
mod external_keywords;
mod generate;
mod keyword_order;
mod local_refs;
mod normalize;
mod remote_refs;
mod secrets;
pub(crate) mod walk;

use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::SchemaGenerator;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

pub use self::check::{expected_value, is_followed_draft};
pub(crate) use self::check::{find_faults, find_misspelt};
pub(crate) use self::contradictions::find_contradictions;
pub use self::describe::describe_type;
pub(crate) use self::describe::{describe_map, is_f32_limit, is_type_limit};
pub use self::draft_refs::redirect_refs;
#[cfg(feature = "external-schemas")]
pub(crate) use self::external::{ExternalValidator, PathSegment, SchemaViolation, ViolationKind};
pub(crate) use self::external_keywords::find_external_keyword;
pub(crate) use self::generate::{SchemaProperty, object_schema};
pub(crate) use self::keyword_order::sort_keywords;
pub use self::local_refs::with_local_refs;
pub(crate) use self::normalize::FORMATS;
pub use self::remote_refs::{is_meta_schema_ref, with_encoded_refs, without_remote_refs};
pub(crate) use self::secrets::is_secret;

/// The schema of a type, as a function pointer.
pub(crate) type SchemaFn = fn(&mut SchemaGenerator) -> schemars::Schema;

/// A JSON Schema (2020-12) in normal form.
///
/// Properties keep the order of their declaration, because the order influences models. Equal
/// schemas have equal bytes.
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
/// The schema is stored as text, which takes a tenth of the memory of a tree and is what most
/// callers need. The tree is parsed on first use and cached.
#[derive(Clone, Debug)]
pub struct Schema {
    text: Arc<RawValue>,
    tree: OnceLock<Arc<Map<String, Value>>>,
    is_basic: bool,
}

impl Schema {
    /// Creates a schema from a root in normal form.
    fn new(root: &impl Serialize) -> Self {
        let text = to_raw_value(root).expect("an object in memory can be written");
        Self { text: text.into(), tree: OnceLock::new(), is_basic: false }
    }

    /// Creates a generated schema.
    fn generated(root: &Map<String, Value>) -> Self {
        Self { is_basic: basic::is_basic(root), ..Self::new(root) }
    }

    /// Whether the schema is known to use only keywords that the validator has, without
    /// contradictions; `false` means unknown.
    pub(crate) fn is_basic(&self) -> bool {
        self.is_basic
    }

    /// Converts a schema from another source into the schema of a tool's parameters.
    ///
    /// The order of the properties is kept, `$schema` and the `title` of the root are removed, and
    /// keywords of earlier drafts are upgraded to 2020-12.
    ///
    /// # Errors
    ///
    /// Fails when the root is not an object schema, a keyword has a value of the wrong
    /// kind, or a `$ref` leads nowhere or out of the schema.
    pub fn from_value(schema: Value) -> Result<Self, SchemaError> {
        check::check_parameters(schema).map(|root| Self::new(&root))
    }

    /// Converts a schema from another source into the schema of a tool's result, which may have any
    /// type.
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
        check::check_result(schema).map(|root| Self::new(&root))
    }

    /// Parses a schema from JSON text; see [`from_value`](Self::from_value).
    ///
    /// # Errors
    ///
    /// Fails when the text is not JSON, and as [`from_value`](Self::from_value) does.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        let schema = serde_json::from_str(text)
            .map_err(|error| SchemaError::new("", format_args!("is not JSON: {error}")))?;
        Self::from_value(schema)
    }

    /// Returns the schema as compact JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.text.get()
    }

    /// Returns the schema as raw JSON, which serializes without parsing.
    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.text
    }

    /// Returns the schema as a JSON object.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        self.tree.get_or_init(|| {
            Arc::new(serde_json::from_str(self.as_str()).expect("the text was written from a tree"))
        })
    }

    /// Returns a copy of the schema as a JSON value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(self.as_map().clone())
    }

    /// Whether the schema describes an object. In normal form the type mostly comes first.
    pub(crate) fn is_object_schema(&self) -> bool {
        self.as_str().starts_with(r#"{"type":"object""#)
            || self.as_map().get("type").is_some_and(|ty| ty == "object")
    }

    /// Returns the properties of the root, in the order of their declaration.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Value)> {
        let properties = self.as_map().get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// Returns the schema of the property `name` of the root.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.as_map().get("properties")?.get(name)
    }

    /// Whether unknown properties are allowed.
    #[doc(hidden)]
    pub fn allows_unknown_properties(&self) -> bool {
        let rest = self.as_map().get("additionalProperties");
        let is_open = rest.is_some_and(|rest| rest.is_object() || *rest == Value::Bool(true));
        is_open || self.as_map().contains_key("patternProperties")
    }

    /// Returns the names of the required properties.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        walk::required_names(self.as_map())
    }

    /// Whether the property `name` is required.
    #[must_use]
    pub fn is_required(&self, name: &str) -> bool {
        self.required().any(|required| required == name)
    }

    /// Sets the description of the property `name`, if there is one of that name.
    pub fn set_description(&mut self, name: &str, text: &str) {
        self.update_properties(|properties| {
            if let Some(Value::Object(property)) = properties.get_mut(name) {
                property.insert("description".to_owned(), text.into());
                sort_keywords(property);
            }
        });
    }

    /// Removes the property `name`, unless it is required.
    pub fn hide_optional(&mut self, name: &str) {
        if !self.is_required(name) {
            self.update_properties(|properties| _ = properties.shift_remove(name));
        }
    }

    /// Returns the default value of the property `name`.
    pub(crate) fn property_default(&self, name: &str) -> Option<&Value> {
        self.as_map().get("properties")?.get(name)?.get("default")
    }

    /// Formats the schema in one line for messages and lists, truncated when it is long.
    ///
    /// `?` marks an optional property, `=` its default value.
    #[must_use]
    pub fn signature(&self) -> String {
        describe::format_signature(self.as_map())
    }

    fn update_properties(&mut self, change: impl FnOnce(&mut Map<String, Value>)) {
        let mut root = self.as_map().clone();
        if let Some(Value::Object(properties)) = root.get_mut("properties") {
            change(properties);
        }
        *self = Self::new(&root);
    }
}

/// The schema of a tool without parameters.
impl Default for Schema {
    fn default() -> Self {
        let mut root = Map::new();
        root.insert("type".to_owned(), "object".into());
        root.insert("properties".to_owned(), json!({}));
        root.insert("additionalProperties".to_owned(), false.into());
        Self::new(&root)
    }
}

/// Two schemas are equal when their keywords are, in any order.
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

/// Takes the object without validation.
impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(|root| Self::new(&root))
    }
}

/// The error of an invalid schema.
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

    /// Returns the location as a JSON pointer; empty for the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the description of the problem.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

#[cfg(test)]
#[expect(dead_code, reason = "the types are there for their schemas")]
mod tests;
