//! Describes schemas in plain text: signatures and type names for messages and lists.

use serde_json::{Map, Value};

use super::walk;

/// The maximum length of a signature in bytes.
const MAX_SIGNATURE_LEN: usize = 1500;

/// The maximum number of `enum` values in a message.
const MAX_ENUM_VALUES: usize = 24;

/// Formats the schema in one line; nested objects are shown as far as the maximum length allows.
pub(super) fn format_signature(root: &Map<String, Value>) -> String {
    let mut text = String::new();
    for depth in [2, 1, 0] {
        text = SignatureFormatter { root, depth, open: Vec::new(), budget: MAX_SIGNATURE_LEN }
            .format_root();
        if text.len() <= MAX_SIGNATURE_LEN {
            return text;
        }
    }
    let cut =
        text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_SIGNATURE_LEN - 8).last();
    text.truncate(cut.unwrap_or_default());
    if let Some(whole) = text.rfind(", \"") {
        text.truncate(whole);
    }
    text + ", …}"
}

struct SignatureFormatter<'a> {
    root: &'a Map<String, Value>,
    depth: usize,
    /// The references that are being followed.
    open: Vec<String>,
    /// The number of types that may still be shown.
    budget: usize,
}

impl SignatureFormatter<'_> {
    /// Formats the root, which may be a union.
    fn format_root(&mut self) -> String {
        let format_root = self.root;
        let own = self.format_object(format_root, 0);
        let has_own = format_root
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|it| !it.is_empty());
        let union =
            ["oneOf", "anyOf"].iter().find_map(|keyword| format_root.get(*keyword)?.as_array());
        let mut forms: Vec<String> = Vec::new();
        for branch in union.into_iter().flatten() {
            let form = self.format_type(branch, 0, 1);
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        match (forms.is_empty() || forms.iter().any(|form| !form.starts_with('{')), has_own) {
            // Branches that only combine required names are explained when a call violates them.
            (true, _) => own,
            (false, true) => format!("{own} & ({})", forms.join(" | ")),
            (false, false) => forms.join(" | "),
        }
    }

    fn format_object(&mut self, schema: &Map<String, Value>, depth: usize) -> String {
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut parts = Vec::new();
        for (name, property) in properties.into_iter().flatten() {
            let mark = if walk::required_names(schema).any(|required| required == name) {
                ""
            } else {
                "?"
            };
            let ty = self.format_type(property, depth, 0);
            let default = property.get("default").map(|value| format!(" = {value}"));
            let name = Value::from(name.as_str());
            parts.push(format!("{name}{mark}: {ty}{}", default.unwrap_or_default()));
        }
        if let Some(Value::Object(forms)) = schema.get("patternProperties") {
            for (form, property) in forms {
                parts.push(format!("[/{form}/]: {}", self.format_type(property, depth, 0)));
            }
        }
        match schema.get("additionalProperties") {
            Some(rest @ Value::Object(_)) => {
                parts.push(format!("[name]: {}", self.format_type(rest, depth, 0)));
            }
            Some(Value::Bool(true)) => parts.push("…".to_owned()),
            None if parts.is_empty() && depth > 0 => parts.push("…".to_owned()),
            _ => {}
        }
        format!("{{{}}}", parts.join(", "))
    }

    /// `depth` counts nested objects, `steps` everything else between two of them.
    fn format_type(&mut self, schema: &Value, depth: usize, steps: usize) -> String {
        let Some(schema) = schema.as_object() else { return "any".to_owned() };
        if steps > 8 || self.budget == 0 {
            return "…".to_owned();
        }
        self.budget -= 1;
        if let Some(Value::String(reference)) = schema.get("$ref") {
            if self.open.contains(reference) {
                return "{…}".to_owned();
            }
            let Some(target) = walk::resolve_ref(self.root, reference) else {
                return "any".to_owned();
            };
            self.open.push(reference.clone());
            let ty = self.format_type(&Value::Object(target.into_owned()), depth, steps + 1);
            self.open.pop();
            return ty;
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return join_values(values, " | ");
        }
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(keyword) {
                let mut types: Vec<String> = Vec::new();
                for branch in branches {
                    let ty = self.format_type(branch, depth, steps + 1);
                    if !types.contains(&ty) {
                        types.push(ty);
                    }
                }
                return types.join(" | ");
            }
        }
        match schema.get("type") {
            Some(Value::String(ty)) => self.format_named_type(ty, schema, depth, steps),
            Some(Value::Array(types)) => {
                let types = types.iter().filter_map(Value::as_str);
                types
                    .map(|ty| self.format_named_type(ty, schema, depth, steps))
                    .collect::<Vec<_>>()
                    .join(" | ")
            }
            _ if schema.contains_key("properties") => {
                self.format_named_type("object", schema, depth, steps)
            }
            _ => "any".to_owned(),
        }
    }

    fn format_named_type(
        &mut self,
        ty: &str,
        schema: &Map<String, Value>,
        depth: usize,
        steps: usize,
    ) -> String {
        match ty {
            "object" if depth >= self.depth => "{…}".to_owned(),
            "object" => self.format_object(schema, depth + 1),
            "array" => {
                let first = schema.get("prefixItems").and_then(Value::as_array);
                let first = first.into_iter().flatten();
                let mut items: Vec<_> =
                    first.map(|it| self.format_type(it, depth, steps + 1)).collect();
                match schema.get("items") {
                    Some(Value::Bool(false)) => {}
                    Some(rest) if items.is_empty() => {
                        items.push(self.format_type(rest, depth, steps + 1))
                    }
                    Some(_) => items.push("…".to_owned()),
                    None if items.is_empty() => items.push("any".to_owned()),
                    None => {}
                }
                let count = |keyword| schema.get(keyword).and_then(Value::as_u64);
                match (count("minItems"), count("maxItems")) {
                    // A tuple has as many items as are written.
                    _ if items.len() != 1 => format!("[{}]", items.join(", ")),
                    (Some(least), Some(most)) if least == most => format!("[{}; {most}]", items[0]),
                    (Some(least @ 1..), Some(most)) => format!("[{}; {least}..{most}]", items[0]),
                    (Some(least @ 1..), None) => format!("[{}; ≥ {least}]", items[0]),
                    (_, Some(most)) => format!("[{}; ≤ {most}]", items[0]),
                    (_, None) => format!("[{}]", items[0]),
                }
            }
            "integer" | "number" => match number_bounds(schema) {
                Some(NumberBounds::Between(least, most)) => format!("{ty} {least}..{most}"),
                Some(NumberBounds::Least(sign, least)) => format!("{ty} {sign} {least}"),
                Some(NumberBounds::Most(sign, most)) => format!("{ty} {sign} {most}"),
                None => ty.to_owned(),
            },
            "string" => match schema.get("format").and_then(Value::as_str) {
                Some(format) => format!("string ({format})"),
                None => ty.to_owned(),
            },
            _ => ty.to_owned(),
        }
    }
}

fn join_values(values: &[Value], between: &str) -> String {
    let mut parts: Vec<_> = values.iter().take(MAX_ENUM_VALUES).map(Value::to_string).collect();
    if values.len() > MAX_ENUM_VALUES {
        parts.push("…".to_owned());
    }
    parts.join(between)
}

enum NumberBounds<'a> {
    Between(&'a Value, &'a Value),
    Least(&'static str, &'a Value),
    Most(&'static str, &'a Value),
}

/// Returns the bounds of a number, without those of its integer type.
fn number_bounds(schema: &Map<String, Value>) -> Option<NumberBounds<'_>> {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let (above, below) = (number("exclusiveMinimum"), number("exclusiveMaximum"));
    let is_told = |bound: &&Value| bound.is_number() && !is_type_limit(bound);
    let least = schema.get("minimum").filter(is_told);
    let least = least.filter(|it| it.as_f64() > above || above.is_none());
    let most = schema.get("maximum").filter(is_told);
    let most = most.filter(|it| it.as_f64() < below || below.is_none());
    match (least, most) {
        (Some(least), Some(most)) => return Some(NumberBounds::Between(least, most)),
        (Some(least), None) => return Some(NumberBounds::Least("≥", least)),
        (None, Some(most)) => return Some(NumberBounds::Most("≤", most)),
        (None, None) => {}
    }
    if let Some(least) = schema.get("exclusiveMinimum") {
        return Some(NumberBounds::Least(">", least));
    }
    schema.get("exclusiveMaximum").map(|most| NumberBounds::Most("<", most))
}

/// Whether a bound is the limit of a 32-bit or 64-bit number type.
pub(crate) fn is_type_limit(bound: &Value) -> bool {
    match (bound.as_i64(), bound.as_u64()) {
        (Some(bound), _) => {
            [i64::MIN, i64::MAX, i32::MIN.into(), i32::MAX.into(), u32::MAX.into()].contains(&bound)
        }
        (None, Some(bound)) => bound == u64::MAX,
        (None, None) => bound.as_f64().is_some_and(is_f32_limit),
    }
}

/// Whether a bound is the limit of `f32`, also after a parser rounded it.
#[expect(clippy::cast_possible_truncation, reason = "compares what is left")]
pub(crate) fn is_f32_limit(bound: f64) -> bool {
    bound.abs() as f32 == f32::MAX
}

/// Describes a type for a message, such as "integer between 1 and 5000".
pub fn describe_type(schema: &Value) -> String {
    describe_type_at(schema, 0)
}

/// Describes the type of a schema that is an object.
pub(crate) fn describe_map(schema: &Map<String, Value>) -> String {
    describe_map_at(schema, 0)
}

fn describe_type_at(schema: &Value, depth: usize) -> String {
    schema.as_object().map_or_else(|| ANY_VALUE.to_owned(), |map| describe_map_at(map, depth))
}

fn describe_map_at(map: &Map<String, Value>, depth: usize) -> String {
    if depth > 4 {
        return "value".to_owned();
    }
    if let Some(Value::Array(values)) = map.get("enum") {
        return match values.as_slice() {
            [only] => only.to_string(),
            values => format!("one of {}", join_values(values, ", ")),
        };
    }
    if let Some(value) = map.get("const") {
        return value.to_string();
    }
    let told = |words: &str| words.split(" or ").all(|words| words != ANY_VALUE);
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = map.get(keyword) {
            let words = join_alternatives(
                branches.iter().map(|branch| describe_type_at(branch, depth + 1)),
            );
            // Branches without a type do not replace the type beside them.
            if told(&words) || !map.contains_key("type") {
                return words;
            }
        }
    }
    match map.get("type") {
        Some(Value::String(ty)) => describe_named_type(ty, map, depth),
        Some(Value::Array(types)) => join_alternatives(
            types.iter().filter_map(Value::as_str).map(|ty| describe_named_type(ty, map, depth)),
        ),
        _ if map.contains_key("properties") || map.contains_key("$ref") => "object".to_owned(),
        _ => ANY_VALUE.to_owned(),
    }
}

/// The description of a schema without a type.
const ANY_VALUE: &str = "any value";

fn join_alternatives(words: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for word in words {
        if !different.contains(&word) {
            different.push(word);
        }
    }
    different.join(" or ")
}

fn describe_named_type(ty: &str, schema: &Map<String, Value>, depth: usize) -> String {
    match ty {
        "integer" | "number" => match number_bounds(schema) {
            Some(NumberBounds::Between(least, most)) => format!("{ty} between {least} and {most}"),
            Some(NumberBounds::Least(">", least)) => format!("{ty} above {least}"),
            Some(NumberBounds::Least(_, least)) => format!("{ty} of at least {least}"),
            Some(NumberBounds::Most("<", most)) => format!("{ty} below {most}"),
            Some(NumberBounds::Most(_, most)) => format!("{ty} of at most {most}"),
            None => ty.to_owned(),
        },
        "array" => match schema.get("items") {
            Some(items) => format!("list of {}", pluralize(&describe_type_at(items, depth + 1))),
            None => "list".to_owned(),
        },
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some(format) => format!("string in the format {format}"),
            None => ty.to_owned(),
        },
        _ => ty.to_owned(),
    }
}

fn pluralize(words: &str) -> String {
    const NOUNS: [&str; 8] =
        ["string", "integer", "number", "boolean", "object", "list", "null", "value"];
    let (noun, rest) = words.split_once(' ').unwrap_or((words, ""));
    let one = !words.contains(" or ");
    match (noun, rest) {
        ("any", "value") => "any values".to_owned(),
        (noun, "") if one && NOUNS.contains(&noun) => format!("{noun}s"),
        (noun, rest) if one && NOUNS.contains(&noun) => format!("{noun}s {rest}"),
        _ => format!("values, each {words}"),
    }
}
