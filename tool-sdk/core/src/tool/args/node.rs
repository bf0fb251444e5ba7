//! A compiled schema.
//!
//! Keywords that are not compiled here are external (see [`find_external_keyword`]) or unknown;
//! [`unsupported`] reports those that are not checked at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::json::JsonValue;
#[cfg(feature = "external-schemas")]
use crate::schema::ExternalValidator;
use crate::schema::{
    describe_map, find_external_keyword, find_faults, is_secret, walk, with_local_refs,
};

/// A compiled schema.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword of its own")]
pub(crate) struct SchemaNode {
    pub(super) types: u8,
    pub(super) type_words: String,
    /// The description with its article.
    pub(super) words_with_article: String,
    pub(super) is_sensitive: bool,
    /// Whether the property may be absent from its object.
    pub(super) is_optional: bool,
    pub(super) enumeration: Option<Vec<Value>>,
    pub(super) constant: Option<Value>,
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) exclusive_minimum: Option<Number>,
    pub(super) exclusive_maximum: Option<Number>,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<Regex>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) prefix_items: Vec<SchemaNode>,
    pub(super) items: Option<Box<SchemaNode>>,
    pub(super) no_more_items: bool,
    pub(super) properties: Vec<(String, bool, SchemaNode)>,
    descriptions: Vec<String>,
    pub(super) required_only: Vec<String>,
    pub(super) is_closed: bool,
    pub(super) additional: Option<Box<SchemaNode>>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) any_of: Vec<SchemaNode>,
    pub(super) one_of: Vec<SchemaNode>,
    pub(super) all_of: Vec<SchemaNode>,
    pub(super) rejects_all: bool,
    /// The name of one of the [`ReferenceTargets`].
    pub(super) reference: Option<String>,
    pub(super) not: Option<Box<SchemaNode>>,
    pub(super) pattern_properties: Vec<(Regex, SchemaNode)>,
    pub(super) property_names: Option<Box<SchemaNode>>,
}

impl fmt::Debug for SchemaNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.type_words)
    }
}

pub(super) mod types {
    pub(crate) const NULL: u8 = 1;
    pub(crate) const BOOL: u8 = 2;
    pub(crate) const INTEGER: u8 = 4;
    pub(crate) const FRACTION: u8 = 8;
    pub(crate) const STRING: u8 = 16;
    pub(crate) const ARRAY: u8 = 32;
    pub(crate) const OBJECT: u8 = 64;
    pub(crate) const ANY: u8 = 127;

    pub(super) fn from_name(name: &str) -> u8 {
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

/// The targets of a schema's references, each compiled once.
#[derive(Debug, Default)]
pub(crate) struct ReferenceTargets {
    plain: BTreeMap<String, SchemaNode>,
    /// The targets for sensitive values.
    hidden: BTreeMap<String, SchemaNode>,
}

impl ReferenceTargets {
    /// Compiles `root` and the targets of its references; `sensitive` are the names of sensitive
    /// arguments.
    pub(super) fn compile(root: &Map<String, Value>, sensitive: &[String]) -> (SchemaNode, Self) {
        let root = with_local_refs(root);
        let mut builder = Builder::default();
        let mut node = builder.build_map(&root);
        let plain = builder.build_targets(&root);
        let mut hidden = BTreeMap::new();
        let mut hides = builder.hides_values;
        for (name, _, property) in &mut node.properties {
            if sensitive.contains(name) {
                property.mark_sensitive();
                hides = true;
            }
        }
        if hides && !plain.is_empty() {
            hidden = Builder {
                pending_references: plain.keys().cloned().collect(),
                ..Builder::default()
            }
            .build_targets(&root);
            hidden.values_mut().for_each(SchemaNode::mark_sensitive);
        }
        (node, Self { plain, hidden })
    }

    /// Returns the target of the reference in `node`.
    pub(super) fn resolve(&self, node: &SchemaNode) -> Option<&SchemaNode> {
        let targets = if node.is_sensitive { &self.hidden } else { &self.plain };
        targets.get(node.reference.as_ref()?)
    }
}

/// The maximum number of nodes: more than a sensible schema has. A schema that refers to itself
/// in ever new ways exceeds it.
const MAX_NODES: usize = 1 << 17;

/// Compiles schemas, and records their references.
#[derive(Debug, Default)]
pub(super) struct Builder {
    pending_references: BTreeSet<String>,
    built_nodes: usize,
    /// Whether a part of it is sensitive.
    hides_values: bool,
}

impl Builder {
    /// Compiles the targets of references, and the targets of their references.
    fn build_targets(&mut self, root: &Map<String, Value>) -> BTreeMap<String, SchemaNode> {
        let mut targets = BTreeMap::new();
        while let Some(reference) = self.pending_references.pop_first() {
            if targets.contains_key(&reference) {
                continue;
            }
            let Some(target) = walk::resolve_ref(root, &reference) else { continue };
            let node = self.build_map(&target);
            targets.insert(reference, node);
        }
        targets
    }

    pub(super) fn build(&mut self, schema: &Value) -> SchemaNode {
        match schema {
            Value::Object(map) => self.build_map(map),
            Value::Bool(false) => SchemaNode { rejects_all: true, ..SchemaNode::accept_all() },
            _ => SchemaNode::accept_all(),
        }
    }

    pub(super) fn build_boxed(&mut self, schema: Option<&Value>) -> Option<Box<SchemaNode>> {
        schema.map(|schema| Box::new(self.build(schema)))
    }

    /// Compiles the schemas in the list or map under `keyword`.
    fn build_list(&mut self, map: &Map<String, Value>, keyword: &str) -> Vec<SchemaNode> {
        let schemas = map.get(keyword).and_then(Value::as_array).into_iter().flatten();
        schemas.map(|schema| self.build(schema)).collect()
    }

    pub(super) fn build_map(&mut self, map: &Map<String, Value>) -> SchemaNode {
        self.built_nodes += 1;
        if self.built_nodes > MAX_NODES {
            return SchemaNode { rejects_all: true, ..SchemaNode::accept_all() };
        }
        let words = describe_map(map);
        let mut node = SchemaNode {
            words_with_article: with_article(&words),
            type_words: words,
            ..SchemaNode::accept_all()
        };
        if let Some(name) = map.get("$ref").and_then(Value::as_str) {
            self.pending_references.insert(name.to_owned());
            node.reference = Some(name.to_owned());
        }
        node.types = match map.get("type") {
            Some(Value::String(name)) => types::from_name(name),
            Some(Value::Array(names)) => names
                .iter()
                .filter_map(Value::as_str)
                .fold(0, |all, name| all | types::from_name(name)),
            _ => types::ANY,
        };
        node.constant = map.get("const").cloned();
        node.enumeration = map.get("enum").and_then(Value::as_array).cloned();
        node.rejects_all = map.get("not").is_some_and(accepts_everything);
        node.read_number_keywords(map);
        node.read_text_keywords(map);
        node.read_array_keywords(map, self);
        node.read_object_keywords(map, self);
        node.any_of = self.build_list(map, "anyOf");
        node.one_of = self.build_list(map, "oneOf");
        node.all_of = self.build_list(map, "allOf");
        node.not = self.build_boxed(map.get("not").filter(|not| !accepts_everything(not)));
        if is_secret(map) {
            node.mark_sensitive();
            self.hides_values = true;
        }
        node
    }
}

/// Whether a schema accepts every value.
pub(super) fn accepts_everything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

impl SchemaNode {
    pub(super) fn accept_all() -> Self {
        Self { types: types::ANY, ..Self::default() }
    }

    fn read_number_keywords(&mut self, map: &Map<String, Value>) {
        let number = |key: &str| map.get(key).and_then(|value| value.as_number().cloned());
        self.minimum = number("minimum");
        self.maximum = number("maximum");
        self.exclusive_minimum = number("exclusiveMinimum");
        self.exclusive_maximum = number("exclusiveMaximum");
        self.multiple_of = map.get("multipleOf").and_then(Value::as_f64);
    }

    fn read_text_keywords(&mut self, map: &Map<String, Value>) {
        self.min_length = read_count(map, "minLength");
        self.max_length = read_count(map, "maxLength");
        self.pattern =
            map.get("pattern").and_then(Value::as_str).and_then(|text| compile_pattern(text).ok());
    }

    fn read_array_keywords(&mut self, map: &Map<String, Value>, builder: &mut Builder) {
        self.min_items = read_count(map, "minItems");
        self.max_items = read_count(map, "maxItems");
        self.unique_items = map.get("uniqueItems") == Some(&Value::Bool(true));
        self.prefix_items = builder.build_list(map, "prefixItems");
        match map.get("items") {
            Some(Value::Bool(false)) => self.no_more_items = true,
            Some(items) => self.items = Some(Box::new(builder.build(items))),
            None => {}
        }
    }

    fn read_object_keywords(&mut self, map: &Map<String, Value>, builder: &mut Builder) {
        self.min_properties = read_count(map, "minProperties");
        self.max_properties = read_count(map, "maxProperties");
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, schema) in properties {
                let required = required.contains(&name.as_str());
                let node = Self { is_optional: !required, ..builder.build(schema) };
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
            Some(Value::Bool(false)) => self.is_closed = true,
            Some(schema @ Value::Object(_)) => {
                self.additional = Some(Box::new(builder.build(schema)));
            }
            _ => {}
        }
        let patterns = map.get("patternProperties").and_then(Value::as_object);
        self.pattern_properties = patterns
            .into_iter()
            .flatten()
            .filter_map(|(text, schema)| Some((compile_pattern(text).ok()?, builder.build(schema))))
            .collect();
        self.property_names = builder.build_boxed(map.get("propertyNames"));
    }

    /// Marks the values of this schema, and all their parts, as sensitive.
    pub(super) fn mark_sensitive(&mut self) {
        self.is_sensitive = true;
        let parts = [&mut self.prefix_items, &mut self.any_of, &mut self.one_of, &mut self.all_of];
        parts.into_iter().flatten().for_each(Self::mark_sensitive);
        self.properties.iter_mut().for_each(|(_, _, node)| node.mark_sensitive());
        self.pattern_properties.iter_mut().for_each(|(_, node)| node.mark_sensitive());
        let single =
            [&mut self.items, &mut self.additional, &mut self.not, &mut self.property_names];
        single.into_iter().flatten().for_each(|node| node.mark_sensitive());
    }

    pub(super) fn property(&self, name: &str) -> Option<&SchemaNode> {
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
        self.is_sensitive
    }

    /// Whether only an object or a list is accepted.
    pub(super) fn wants_container(&self) -> bool {
        self.types & (types::STRING) == 0 && self.types & (types::ARRAY | types::OBJECT) != 0
    }

    pub(super) fn known_names(&self) -> Vec<&str> {
        self.properties.iter().map(|(name, ..)| name.as_str()).collect()
    }

    /// Returns the required names.
    pub(super) fn required_names(&self) -> Vec<&str> {
        let named = self.properties.iter().filter(|(_, required, _)| *required);
        let named = named.map(|(name, ..)| name.as_str());
        named.chain(self.required_only.iter().map(String::as_str)).collect()
    }

    /// Whether the description says more than that there is a value.
    pub(super) fn is_described(&self) -> bool {
        !self.type_words.is_empty()
            && self.type_words.split(" or ").all(|words| words != "any value")
    }

    /// Returns the one value that this schema accepts.
    pub(super) fn constant_tag(&self) -> Option<&Value> {
        match (&self.constant, self.enumeration.as_deref()) {
            (Some(tag), _) | (None, Some([tag])) => Some(tag),
            _ => None,
        }
    }
}

/// Compiles a pattern from a schema, within size limits (RX1).
pub(super) fn compile_pattern(text: &str) -> Result<Regex, String> {
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

/// Reads a count, which JSON Schema allows to be written as `5.0`.
pub(super) fn read_count(map: &Map<String, Value>, key: &str) -> Option<u64> {
    let value = map.get(key)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked")]
    let whole = |value: f64| (value >= 0.0 && value.fract() == 0.0).then_some(value as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

/// Returns a requirement of a schema that is not checked here, with its location.
///
/// For a function, the parameter's type makes the final check. For a schema from outside there is
/// no type, and the published schema must be enforced.
pub(crate) fn unsupported(root: &Map<String, Value>) -> Option<String> {
    let root = with_local_refs(root);
    if let Some(fault) = find_faults(&root).first() {
        let place = if fault.path().is_empty() { "root" } else { fault.path() };
        return Some(format!("{place} cannot be checked: {}", fault.problem()));
    }
    let mut builder = Builder::default();
    builder.build_map(&root);
    builder.build_targets(&root);
    if builder.built_nodes > MAX_NODES {
        return Some("its references expand to too many schemas".to_owned());
    }
    find_unchecked_keyword(&root, "").or_else(|| unchecked_external_keyword(&root))
}

/// Reports an external keyword that `jsonschema` cannot check either.
#[cfg(feature = "external-schemas")]
fn unchecked_external_keyword(root: &Map<String, Value>) -> Option<String> {
    let pointer = find_external_keyword(root)?;
    let error = ExternalValidator::new(root).err()?;
    Some(format!("{pointer} cannot be checked: {error}"))
}

/// Reports an external keyword, since this build cannot check it.
#[cfg(not(feature = "external-schemas"))]
fn unchecked_external_keyword(root: &Map<String, Value>) -> Option<String> {
    let pointer = find_external_keyword(root)?;
    Some(format!("{pointer} needs the feature `external-schemas` of tool-sdk"))
}

fn find_unchecked_keyword(map: &Map<String, Value>, pointer: &str) -> Option<String> {
    const UNKNOWN: [&str; 4] = ["$dynamicRef", "$recursiveRef", "additionalItems", "dependencies"];
    if let Some(keyword) = UNKNOWN.into_iter().find(|keyword| map.contains_key(*keyword)) {
        return Some(format!("{pointer}/{keyword} is not supported"));
    }
    let named = map.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    let named = named.map(|(name, _)| ("patternProperties", name.as_str()));
    let own = map.get("pattern").and_then(Value::as_str).map(|text| ("pattern", text));
    for (keyword, text) in named.chain(own) {
        if let Err(error) = compile_pattern(text) {
            return Some(format!("{pointer}/{keyword} cannot be checked: {error}"));
        }
    }
    let mut found = None;
    walk::for_each_subschema(map, &mut |_, step, inner| {
        if let (None, Value::Object(inner)) = (&found, inner) {
            found = find_unchecked_keyword(inner, &format!("{pointer}{step}"));
        }
    });
    found
}

/// Returns the description with an article: "a string", "an integer", but "one of ..".
pub(super) fn with_article(words: &str) -> String {
    match words.split([' ', ',']).next() {
        Some("integer" | "object") => format!("an {words}"),
        Some("string" | "number" | "boolean" | "list" | "map") => format!("a {words}"),
        _ => words.to_owned(),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

pub(super) fn kind_bits(value: &JsonValue<'_>) -> u8 {
    match value {
        JsonValue::Null => types::NULL,
        JsonValue::Bool(_) => types::BOOL,
        JsonValue::Number(number) if number.is_whole() => types::INTEGER,
        JsonValue::Number(_) => types::FRACTION,
        JsonValue::String(_) => types::STRING,
        JsonValue::Array(_) => types::ARRAY,
        JsonValue::Object(_) => types::OBJECT,
    }
}
