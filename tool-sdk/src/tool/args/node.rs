//! A tool's schema, compiled.
//!
//! Only the normal form of [`crate::schema`] and its usual neighbours are understood; a
//! keyword that is not leaves the matter to the type.

use std::fmt;
use std::sync::{Arc, OnceLock};

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::json::Json;
use crate::schema::type_words;

/// One schema, compiled.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword of its own")]
pub(crate) struct Node {
    pub(super) types: u8,
    pub(super) words: String,
    /// The same with its article.
    pub(super) worded: String,
    pub(super) sensitive: bool,
    /// Whether the object that it belongs to may do without it.
    pub(super) optional: bool,
    pub(super) enumeration: Option<Vec<Value>>,
    pub(super) constant: Option<Value>,
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) above: Option<Number>,
    pub(super) below: Option<Number>,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<Regex>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique: bool,
    pub(super) prefix: Vec<Node>,
    pub(super) items: Option<Box<Node>>,
    pub(super) no_more_items: bool,
    pub(super) properties: Vec<(String, bool, Node)>,
    descriptions: Vec<String>,
    pub(super) required_only: Vec<String>,
    pub(super) closed: bool,
    pub(super) additional: Option<Box<Node>>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) all_of: Vec<Node>,
    pub(super) never: bool,
    /// Recursive schemas are compiled again when they are reached.
    pub(super) reference: Option<(Arc<Map<String, Value>>, String)>,
    resolved: OnceLock<Box<Node>>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.words)
    }
}

pub(super) mod types {
    pub(in super::super) const NULL: u8 = 1;
    pub(in super::super) const BOOL: u8 = 2;
    pub(in super::super) const INTEGER: u8 = 4;
    pub(in super::super) const FRACTION: u8 = 8;
    pub(in super::super) const STRING: u8 = 16;
    pub(in super::super) const ARRAY: u8 = 32;
    pub(in super::super) const OBJECT: u8 = 64;
    pub(in super::super) const ANY: u8 = 127;

    pub(super) fn named(name: &str) -> u8 {
        match name {
            "null" => NULL,
            "boolean" => BOOL,
            "integer" => INTEGER,
            "number" => INTEGER | FRACTION,
            "string" => STRING,
            "array" => ARRAY,
            "object" => OBJECT,
            _ => ANY,
        }
    }
}

impl Node {
    /// Compiles `schema`; `root` holds the definitions it may refer to.
    pub(super) fn compile(schema: &Value, root: &Map<String, Value>) -> Self {
        let defs = Arc::new(match root.get("$defs") {
            Some(Value::Object(defs)) => defs.clone(),
            _ => Map::new(),
        });
        Self::build(schema, &defs)
    }

    fn build(schema: &Value, defs: &Arc<Map<String, Value>>) -> Self {
        let map = match schema {
            Value::Object(map) => map,
            Value::Bool(false) => return Self { never: true, ..Self::anything() },
            _ => return Self::anything(),
        };
        let words = type_words(schema);
        let mut node = Self { worded: with_article(&words), words, ..Self::anything() };
        if let Some(name) = map.get("$ref").and_then(Value::as_str) {
            node.reference = Some((Arc::clone(defs), name.to_owned()));
        }
        node.types = match map.get("type") {
            Some(Value::String(name)) => types::named(name),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).fold(0, |all, name| all | types::named(name))
            }
            _ => types::ANY,
        };
        node.constant = map.get("const").cloned();
        node.enumeration = map.get("enum").and_then(Value::as_array).cloned();
        node.never = map.get("not").is_some_and(|not| not == &Value::Object(Map::new()));
        node.number_keywords(map);
        node.text_keywords(map);
        node.array_keywords(map, defs);
        node.object_keywords(map, defs);
        let list = |key: &str| -> Vec<Node> {
            map.get(key)
                .and_then(Value::as_array)
                .map(|all| all.iter().map(|schema| Self::build(schema, defs)).collect())
                .unwrap_or_default()
        };
        node.any_of = list("anyOf");
        node.one_of = list("oneOf");
        node.all_of = list("allOf");
        node
    }

    pub(super) fn anything() -> Self {
        Self { types: types::ANY, ..Self::default() }
    }

    fn number_keywords(&mut self, map: &Map<String, Value>) {
        let number = |key: &str| map.get(key).and_then(|value| value.as_number().cloned());
        self.minimum = number("minimum");
        self.maximum = number("maximum");
        self.above = number("exclusiveMinimum");
        self.below = number("exclusiveMaximum");
        self.multiple_of = map.get("multipleOf").and_then(Value::as_f64);
    }

    fn text_keywords(&mut self, map: &Map<String, Value>) {
        self.min_length = count(map, "minLength");
        self.max_length = count(map, "maxLength");
        self.pattern =
            map.get("pattern").and_then(Value::as_str).and_then(|text| pattern(text).ok());
    }

    fn array_keywords(&mut self, map: &Map<String, Value>, defs: &Arc<Map<String, Value>>) {
        self.min_items = count(map, "minItems");
        self.max_items = count(map, "maxItems");
        self.unique = map.get("uniqueItems") == Some(&Value::Bool(true));
        if let Some(Value::Array(prefix)) = map.get("prefixItems") {
            self.prefix = prefix.iter().map(|schema| Self::build(schema, defs)).collect();
        }
        match map.get("items") {
            Some(Value::Bool(false)) => self.no_more_items = true,
            Some(items) => self.items = Some(Box::new(Self::build(items, defs))),
            None => {}
        }
    }

    fn object_keywords(&mut self, map: &Map<String, Value>, defs: &Arc<Map<String, Value>>) {
        self.min_properties = count(map, "minProperties");
        self.max_properties = count(map, "maxProperties");
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, schema) in properties {
                let required = required.contains(&name.as_str());
                let node = Self { optional: !required, ..Self::build(schema, defs) };
                self.properties.push((name.clone(), required, node));
                let description = schema.get("description").and_then(Value::as_str);
                self.descriptions.push(first_line(description.unwrap_or_default()));
            }
        }
        self.required_only = required
            .into_iter()
            .filter(|name| self.property(name).is_none())
            .map(str::to_owned)
            .collect();
        match map.get("additionalProperties") {
            Some(Value::Bool(false)) => self.closed = true,
            Some(Value::Object(_)) => {
                let schema = map.get("additionalProperties").unwrap_or(&Value::Null);
                self.additional = Some(Box::new(Self::build(schema, defs)));
            }
            _ => {}
        }
    }

    /// Marks the values here, and all that they hold, as not to be repeated.
    pub(super) fn hide(&mut self) {
        self.sensitive = true;
        let parts = [&mut self.prefix, &mut self.any_of, &mut self.one_of, &mut self.all_of];
        parts.into_iter().flatten().for_each(Self::hide);
        self.properties.iter_mut().for_each(|(_, _, node)| node.hide());
        self.items.iter_mut().chain(&mut self.additional).for_each(|node| node.hide());
    }

    pub(super) fn property(&self, name: &str) -> Option<&Node> {
        self.properties.iter().find(|(key, ..)| key == name).map(|(_, _, node)| node)
    }

    pub(super) fn requires(&self, name: &str) -> bool {
        self.properties.iter().any(|(key, required, _)| key == name && *required)
    }

    pub(super) fn description(&self, name: &str) -> &str {
        let at = self.properties.iter().position(|(key, ..)| key == name);
        at.and_then(|at| self.descriptions.get(at)).map_or("", String::as_str)
    }

    pub(super) fn is_sensitive(&self) -> bool {
        self.sensitive
    }

    /// Whether only an object or a list will do.
    pub(super) fn wants_container(&self) -> bool {
        self.types & (types::STRING) == 0 && self.types & (types::ARRAY | types::OBJECT) != 0
    }

    /// What a reference stands for.
    pub(super) fn target(&self) -> Option<&Node> {
        let (defs, name) = self.reference.as_ref()?;
        let key = name.strip_prefix("#/$defs/")?;
        let schema = defs.get(key)?;
        Some(self.resolved.get_or_init(|| {
            let mut target = Self::build(schema, defs);
            if self.sensitive {
                target.hide();
            }
            Box::new(target)
        }))
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.properties.iter().map(|(name, ..)| name.as_str()).collect()
    }

    /// The one value that this schema takes.
    pub(super) fn tag(&self) -> Option<&Value> {
        match (&self.constant, self.enumeration.as_deref()) {
            (Some(tag), _) | (None, Some([tag])) => Some(tag),
            _ => None,
        }
    }
}

/// A pattern from a schema, within limits (RX1).
pub(super) fn pattern(text: &str) -> Result<Regex, String> {
    const MAX: usize = 4096;
    if text.len() > MAX {
        return Err(format!("the pattern is longer than {MAX} bytes"));
    }
    regex::RegexBuilder::new(text)
        .size_limit(1 << 20)
        .dfa_size_limit(8 << 20)
        .nest_limit(64)
        .build()
        .map_err(|error| error.to_string())
}

/// A count, which JSON Schema lets one write as `5.0` too.
fn count(map: &Map<String, Value>, key: &str) -> Option<u64> {
    let value = map.get(key)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked")]
    let whole = |value: f64| (value >= 0.0 && value.fract() == 0.0).then_some(value as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

/// What a schema asks for that is not checked here, with the place where it does.
///
/// Behind a function stands a type that has the last word; behind a schema from elsewhere
/// stands nothing, and what is advertised must be enforced.
pub(crate) fn unsupported(schema: &Value, pointer: &str) -> Option<String> {
    const UNKNOWN: [&str; 13] = [
        "contains",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "else",
        "if",
        "maxContains",
        "minContains",
        "patternProperties",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    ];
    let map = schema.as_object()?;
    if let Some(keyword) = UNKNOWN.into_iter().find(|keyword| map.contains_key(*keyword)) {
        return Some(format!("{pointer}/{keyword} is not supported"));
    }
    if map.get("not").is_some_and(|not| not != &Value::Object(Map::new())) {
        return Some(format!("{pointer}/not is not supported"));
    }
    if let Some(Err(error)) = map.get("pattern").and_then(Value::as_str).map(pattern) {
        return Some(format!("{pointer}/pattern cannot be checked: {error}"));
    }
    let named = ["properties", "$defs"].into_iter().flat_map(|key| {
        let members = map.get(key).and_then(Value::as_object).into_iter().flatten();
        members.map(move |(name, schema)| (format!("{pointer}/{key}/{name}"), schema))
    });
    let listed = ["allOf", "anyOf", "oneOf", "prefixItems"].into_iter().flat_map(|key| {
        let schemas = map.get(key).and_then(Value::as_array).into_iter().flatten();
        schemas.enumerate().map(move |(at, schema)| (format!("{pointer}/{key}/{at}"), schema))
    });
    let single = ["additionalProperties", "items"]
        .into_iter()
        .filter_map(|key| Some((format!("{pointer}/{key}"), map.get(key)?)));
    named.chain(listed).chain(single).find_map(|(pointer, schema)| unsupported(schema, &pointer))
}

/// "a string", "an integer", but "one of ..".
fn with_article(words: &str) -> String {
    match words.split([' ', ',']).next() {
        Some("integer" | "object") => format!("an {words}"),
        Some("string" | "number" | "boolean" | "list" | "map") => format!("a {words}"),
        _ => words.to_owned(),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

pub(super) fn kind_of(value: &Json<'_>) -> u8 {
    match value {
        Json::Null => types::NULL,
        Json::Bool(_) => types::BOOL,
        Json::Number(number) if number.is_whole() => types::INTEGER,
        Json::Number(_) => types::FRACTION,
        Json::String(_) => types::STRING,
        Json::Array(_) => types::ARRAY,
        Json::Object(_) => types::OBJECT,
    }
}
