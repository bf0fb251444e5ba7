//! A tool's schema, compiled.
//!
//! Keywords that are not compiled here are external (see [`find_external_keyword`]) or unknown;
//! [`unsupported`] reports those that nothing checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::json::Json;
#[cfg(feature = "external-schemas")]
use crate::schema::ExternalValidator;
use crate::schema::{
    describe_map, faults, find_external_keyword, is_secret, walk, with_local_refs,
};

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
    /// The name of one of the [`Targets`].
    pub(super) reference: Option<String>,
    pub(super) not: Option<Box<Node>>,
    pub(super) pattern_properties: Vec<(Regex, Node)>,
    pub(super) property_names: Option<Box<Node>>,
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

/// What the references of a schema stand for, each compiled once.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    plain: BTreeMap<String, Node>,
    /// The same for values that must not be repeated.
    hidden: BTreeMap<String, Node>,
}

impl Targets {
    /// Compiles `root`, and everything that it refers to; `sensitive` are the names of arguments
    /// that must not be repeated.
    pub(super) fn compile(root: &Map<String, Value>, sensitive: &[String]) -> (Node, Self) {
        let root = with_local_refs(root);
        let mut builder = Builder::default();
        let mut node = builder.map(&root);
        let plain = builder.targets(&root);
        let mut hidden = BTreeMap::new();
        let mut hides = builder.hides;
        for (name, _, property) in &mut node.properties {
            if sensitive.contains(name) {
                property.hide();
                hides = true;
            }
        }
        if hides && !plain.is_empty() {
            hidden = Builder { wanted: plain.keys().cloned().collect(), ..Builder::default() }
                .targets(&root);
            hidden.values_mut().for_each(Node::hide);
        }
        (node, Self { plain, hidden })
    }

    /// What `node` refers to.
    pub(super) fn of(&self, node: &Node) -> Option<&Node> {
        let targets = if node.sensitive { &self.hidden } else { &self.plain };
        targets.get(node.reference.as_ref()?)
    }
}

/// More schemas than a document of any sensible size has; one that refers to itself in ever new
/// ways has more.
const MAX_NODES: usize = 1 << 17;

/// Compiles schemas, and remembers to what they refer.
#[derive(Debug, Default)]
pub(super) struct Builder {
    wanted: BTreeSet<String>,
    built: usize,
    /// Whether something of it must not be repeated.
    hides: bool,
}

impl Builder {
    /// Compiles what is referred to, and what that refers to.
    fn targets(&mut self, root: &Map<String, Value>) -> BTreeMap<String, Node> {
        let mut targets = BTreeMap::new();
        while let Some(reference) = self.wanted.pop_first() {
            if targets.contains_key(&reference) {
                continue;
            }
            let Some(target) = walk::resolve_ref(root, &reference) else { continue };
            let node = self.map(&target);
            targets.insert(reference, node);
        }
        targets
    }

    pub(super) fn build(&mut self, schema: &Value) -> Node {
        match schema {
            Value::Object(map) => self.map(map),
            Value::Bool(false) => Node { never: true, ..Node::anything() },
            _ => Node::anything(),
        }
    }

    pub(super) fn boxed(&mut self, schema: Option<&Value>) -> Option<Box<Node>> {
        schema.map(|schema| Box::new(self.build(schema)))
    }

    /// The schemas in the list or the map under `keyword`.
    fn list(&mut self, map: &Map<String, Value>, keyword: &str) -> Vec<Node> {
        let schemas = map.get(keyword).and_then(Value::as_array).into_iter().flatten();
        schemas.map(|schema| self.build(schema)).collect()
    }

    pub(super) fn map(&mut self, map: &Map<String, Value>) -> Node {
        self.built += 1;
        if self.built > MAX_NODES {
            return Node { never: true, ..Node::anything() };
        }
        let words = describe_map(map);
        let mut node = Node { worded: with_article(&words), words, ..Node::anything() };
        if let Some(name) = map.get("$ref").and_then(Value::as_str) {
            self.wanted.insert(name.to_owned());
            node.reference = Some(name.to_owned());
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
        node.never = map.get("not").is_some_and(is_everything);
        node.number_keywords(map);
        node.text_keywords(map);
        node.array_keywords(map, self);
        node.object_keywords(map, self);
        node.any_of = self.list(map, "anyOf");
        node.one_of = self.list(map, "oneOf");
        node.all_of = self.list(map, "allOf");
        node.not = self.boxed(map.get("not").filter(|not| !is_everything(not)));
        if is_secret(map) {
            node.hide();
            self.hides = true;
        }
        node
    }
}

/// Whether a schema accepts every value.
pub(super) fn is_everything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

impl Node {
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

    fn array_keywords(&mut self, map: &Map<String, Value>, builder: &mut Builder) {
        self.min_items = count(map, "minItems");
        self.max_items = count(map, "maxItems");
        self.unique = map.get("uniqueItems") == Some(&Value::Bool(true));
        self.prefix = builder.list(map, "prefixItems");
        match map.get("items") {
            Some(Value::Bool(false)) => self.no_more_items = true,
            Some(items) => self.items = Some(Box::new(builder.build(items))),
            None => {}
        }
    }

    fn object_keywords(&mut self, map: &Map<String, Value>, builder: &mut Builder) {
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
                let node = Self { optional: !required, ..builder.build(schema) };
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
            Some(schema @ Value::Object(_)) => {
                self.additional = Some(Box::new(builder.build(schema)));
            }
            _ => {}
        }
        let patterns = map.get("patternProperties").and_then(Value::as_object);
        self.pattern_properties = patterns
            .into_iter()
            .flatten()
            .filter_map(|(text, schema)| Some((pattern(text).ok()?, builder.build(schema))))
            .collect();
        self.property_names = builder.boxed(map.get("propertyNames"));
    }

    /// Marks the values here, and all that they hold, as not to be repeated.
    pub(super) fn hide(&mut self) {
        self.sensitive = true;
        let parts = [&mut self.prefix, &mut self.any_of, &mut self.one_of, &mut self.all_of];
        parts.into_iter().flatten().for_each(Self::hide);
        self.properties.iter_mut().for_each(|(_, _, node)| node.hide());
        self.pattern_properties.iter_mut().for_each(|(_, node)| node.hide());
        let single =
            [&mut self.items, &mut self.additional, &mut self.not, &mut self.property_names];
        single.into_iter().flatten().for_each(|node| node.hide());
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

    pub(super) fn names(&self) -> Vec<&str> {
        self.properties.iter().map(|(name, ..)| name.as_str()).collect()
    }

    /// The names that must be there.
    pub(super) fn required(&self) -> Vec<&str> {
        let named = self.properties.iter().filter(|(_, required, _)| *required);
        let named = named.map(|(name, ..)| name.as_str());
        named.chain(self.required_only.iter().map(String::as_str)).collect()
    }

    /// Whether its words say more than that there is something.
    pub(super) fn is_told(&self) -> bool {
        !self.words.is_empty() && self.words.split(" or ").all(|words| words != "any value")
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
pub(super) fn count(map: &Map<String, Value>, key: &str) -> Option<u64> {
    let value = map.get(key)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked")]
    let whole = |value: f64| (value >= 0.0 && value.fract() == 0.0).then_some(value as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

/// What a schema asks for that is not checked here, with the place where it does.
///
/// Behind a function stands a type that has the last word; behind a schema from elsewhere
/// stands nothing, and what is advertised must be enforced.
pub(crate) fn unsupported(root: &Map<String, Value>) -> Option<String> {
    let root = with_local_refs(root);
    if let Some(fault) = faults(&root).first() {
        let place = if fault.path().is_empty() { "root" } else { fault.path() };
        return Some(format!("{place} cannot be checked: {}", fault.problem()));
    }
    let mut builder = Builder::default();
    builder.map(&root);
    builder.targets(&root);
    if builder.built > MAX_NODES {
        return Some("references stand for too much".to_owned());
    }
    unchecked(&root, "").or_else(|| unchecked_external_keyword(&root))
}

/// Reports an external keyword that `jsonschema` cannot check either.
#[cfg(feature = "external-schemas")]
fn unchecked_external_keyword(root: &Map<String, Value>) -> Option<String> {
    let pointer = find_external_keyword(root)?;
    let error = ExternalValidator::new(root).err()?;
    Some(format!("{pointer} cannot be checked: {error}"))
}

/// Reports an external keyword, since nothing in this build checks it.
#[cfg(not(feature = "external-schemas"))]
fn unchecked_external_keyword(root: &Map<String, Value>) -> Option<String> {
    let pointer = find_external_keyword(root)?;
    Some(format!("{pointer} needs the feature `external-schemas` of tool-sdk"))
}

fn unchecked(map: &Map<String, Value>, pointer: &str) -> Option<String> {
    const UNKNOWN: [&str; 4] = ["$dynamicRef", "$recursiveRef", "additionalItems", "dependencies"];
    if let Some(keyword) = UNKNOWN.into_iter().find(|keyword| map.contains_key(*keyword)) {
        return Some(format!("{pointer}/{keyword} is not supported"));
    }
    let named = map.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    let named = named.map(|(name, _)| ("patternProperties", name.as_str()));
    let own = map.get("pattern").and_then(Value::as_str).map(|text| ("pattern", text));
    for (keyword, text) in named.chain(own) {
        if let Err(error) = pattern(text) {
            return Some(format!("{pointer}/{keyword} cannot be checked: {error}"));
        }
    }
    let mut found = None;
    walk::for_each_subschema(map, &mut |_, step, inner| {
        if let (None, Value::Object(inner)) = (&found, inner) {
            found = unchecked(inner, &format!("{pointer}{step}"));
        }
    });
    found
}

/// "a string", "an integer", but "one of ..".
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
