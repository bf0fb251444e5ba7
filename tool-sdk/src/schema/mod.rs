//! One normal form of JSON Schema, for everything that is said or checked about arguments.
//!
//! Schemas come from Rust types ([`Schema::of`]) or from elsewhere ([`Schema::from_json`]).
//! What the normal form settles, nothing after it has to think about: no `$schema`, no
//! `title`, only standard formats, bounds on every sized integer, optional means "not
//! required" and never "or null", unknown properties are refused.
//!
//! **Invariant:** nothing here knows a provider; what they refuse is the surface's business.

mod assemble;
mod check;
mod normal;
pub(crate) mod walk;
mod words;

use std::fmt;

use schemars::SchemaGenerator;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub(crate) use self::assemble::{Property, object};
pub(crate) use self::check::faults;
pub(crate) use self::normal::{FORMATS, order};
pub(crate) use self::words::{is_widest, type_words};

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Schema(Map<String, Value>);

impl Schema {
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
        check::parameters(schema).map(Self)
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

    /// The schema as a JSON object.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The schema as a JSON value of its own.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// The properties of the root, in the order of their declaration.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Value)> {
        let properties = self.0.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// The schema of the property `name` of the root.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.0.get("properties")?.get(name)
    }

    /// The names of the properties that must be there.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        walk::required(&self.0)
    }

    /// Whether the property `name` must be there.
    #[must_use]
    pub fn is_required(&self, name: &str) -> bool {
        self.required().any(|required| required == name)
    }

    /// Replaces the description of the property `name`, when there is one of that name.
    pub fn describe(&mut self, name: &str, text: &str) {
        if let Some(property) = self.property_mut(name) {
            property.insert("description".to_owned(), text.into());
            order(property);
        }
    }

    /// Leaves the property `name` out, unless it is required.
    pub fn hide_optional(&mut self, name: &str) {
        if !self.is_required(name)
            && let Some(Value::Object(properties)) = self.0.get_mut("properties")
        {
            properties.shift_remove(name);
        }
    }

    /// The default of the property `name`.
    pub(crate) fn default_of(&self, name: &str) -> Option<&Value> {
        self.0.get("properties")?.get(name)?.get("default")
    }

    /// The schema in one line for messages and lists, cut where it gets long.
    ///
    /// A `?` marks what may be left out, `=` what it is then.
    #[must_use]
    pub fn signature(&self) -> String {
        words::signature(&self.0)
    }

    fn property_mut(&mut self, name: &str) -> Option<&mut Map<String, Value>> {
        self.0.get_mut("properties")?.get_mut(name)?.as_object_mut()
    }
}

/// The schema of no arguments.
impl Default for Schema {
    fn default() -> Self {
        let mut root = Map::new();
        root.insert("type".to_owned(), "object".into());
        root.insert("properties".to_owned(), json!({}));
        root.insert("additionalProperties".to_owned(), false.into());
        Self(root)
    }
}

/// The schema as compact JSON.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        serde_json::to_string(&self.0).map_err(|_| fmt::Error)?.fmt(f)
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
