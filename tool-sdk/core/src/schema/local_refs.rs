//! Replaces references by name (anchors and `$id`s in the same document) by JSON pointers.
//!
//! Every reader can follow `#/...`. A name that is not defined in the document is kept, for the
//! reference check.
//!
//! **Invariant:** nothing is fetched; a URI is a name like any other.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::walk;

/// The maximum depth; the validation rejects deeper schemas.
const MAX_DEPTH: usize = 128;

/// Returns the schema with all references as JSON pointers.
pub fn with_local_refs(root: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    if !has_anchors_or_ids(root, 0) {
        return Cow::Borrowed(root);
    }
    let renamed =
        walk::has_any_keyword(root, &["$defs"]) && !walk::has_any_keyword(root, &["definitions"]);
    let mut names = AnchorTable { renamed, ..AnchorTable::default() };
    names.collect_names(root, "", String::new(), 0);
    let mut told = root.clone();
    names.rewrite_refs(&mut told, "", 0);
    Cow::Owned(told)
}

/// Whether `schema` or a subschema defines or uses an anchor or an `$id`.
fn has_anchors_or_ids(schema: &Map<String, Value>, depth: usize) -> bool {
    let is_place = |value: &Value| {
        value.as_str().is_some_and(|reference| reference == "#" || reference.starts_with("#/"))
    };
    let mut found = walk::has_any_keyword(schema, &["$dynamicRef", "$recursiveRef"])
        || walk::get_keyword(schema, "$ref").is_some_and(|reference| !is_place(reference))
        || depth > 0 && walk::has_any_keyword(schema, &["$id"]);
    walk::for_each_subschema(schema, &mut |_, _, inner| {
        if let Value::Object(inner) = inner
            && !found
            && depth < MAX_DEPTH
        {
            found = has_anchors_or_ids(inner, depth + 1);
        }
    });
    found
}

/// Adds a `$ref`, in an `allOf` when there is one already.
fn add_ref(schema: &mut Map<String, Value>, place: String) {
    if !schema.contains_key("$ref") {
        schema.insert("$ref".to_owned(), place.into());
    } else if let Value::Array(all) =
        schema.entry("allOf").or_insert_with(|| Value::Array(Vec::new()))
    {
        all.push(json!({ "$ref": place }));
    }
}

/// The locations of anchors and `$id`s, as JSON pointers.
#[derive(Default)]
struct AnchorTable {
    /// By base URI, without a fragment.
    resources: BTreeMap<String, String>,
    /// By base URI and anchor.
    anchors: BTreeMap<(String, String), String>,
    /// Whether `definitions` was renamed to `$defs`.
    renamed: bool,
    /// The number of schemas with the same dynamic anchor.
    dynamic: BTreeMap<String, usize>,
}

impl AnchorTable {
    fn collect_names(
        &mut self,
        schema: &Map<String, Value>,
        base: &str,
        pointer: String,
        depth: usize,
    ) {
        let base = base_uri_of(schema, base);
        if depth == 0 || walk::has_any_keyword(schema, &["$id"]) {
            self.resources.entry(base.clone()).or_insert_with(|| pointer.clone());
        }
        let text = |keyword| walk::get_keyword(schema, keyword).and_then(Value::as_str);
        // Before draft 2019-09, an `$id` could be an anchor.
        let old = text("$id").and_then(|id| id.strip_prefix('#')).filter(|name| !name.is_empty());
        for name in [text("$anchor"), text("$dynamicAnchor"), old].into_iter().flatten() {
            let name = (base.clone(), name.to_owned());
            self.anchors.entry(name).or_insert_with(|| pointer.clone());
        }
        if let Some(name) = text("$dynamicAnchor") {
            *self.dynamic.entry(name.to_owned()).or_default() += 1;
        }
        walk::for_each_subschema(schema, &mut |_, step, inner| {
            if let Value::Object(inner) = inner
                && depth < MAX_DEPTH
            {
                self.collect_names(inner, &base, format!("{pointer}{step}"), depth + 1);
            }
        });
    }

    fn rewrite_refs(&self, schema: &mut Map<String, Value>, base: &str, depth: usize) {
        let base = base_uri_of(schema, base);
        if let Some(Value::String(reference)) = schema.get_mut("$ref")
            && let Some(place) = self.resolve_uri(&base, reference)
        {
            *reference = place;
        }
        let mut places = Vec::new();
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if let Some(Value::String(reference)) = schema.get(keyword)
                && self.is_static_target(keyword, reference)
                && let Some(place) = self.resolve_uri(&base, reference)
            {
                schema.shift_remove(keyword);
                places.push(place);
            }
        }
        for keyword in ["$anchor", "$id"] {
            schema.shift_remove(keyword);
        }
        // A dynamic anchor with several targets is still needed by other references.
        if let Some(Value::String(name)) = schema.get("$dynamicAnchor")
            && self.is_unique_anchor(name)
        {
            schema.shift_remove("$dynamicAnchor");
        }
        if self.resources.len() == 1 {
            schema.shift_remove("$recursiveAnchor");
        }
        walk::for_each_subschema_mut(schema, &mut |_, inner| {
            if let Value::Object(inner) = inner
                && depth < MAX_DEPTH
            {
                self.rewrite_refs(inner, &base, depth + 1);
            }
        });
        places.into_iter().for_each(|place| add_ref(schema, place));
    }

    /// Whether a dynamic reference has the same target on every evaluation path.
    fn is_static_target(&self, keyword: &str, reference: &str) -> bool {
        match (keyword, reference.split_once('#')) {
            ("$recursiveRef", _) => self.resources.len() == 1,
            (_, Some((_, name))) => self.is_unique_anchor(name),
            _ => true,
        }
    }

    /// Whether only one schema has this anchor.
    fn is_unique_anchor(&self, name: &str) -> bool {
        self.dynamic.get(name).is_none_or(|count| *count == 1)
    }

    /// Resolves `reference` from a schema with the base URI `base`.
    fn resolve_uri(&self, base: &str, reference: &str) -> Option<String> {
        let (address, fragment) = match reference.split_once('#') {
            Some((address, fragment)) => (address, fragment),
            None => (reference, ""),
        };
        let address = match address {
            "" => base.to_owned(),
            address => join_uri(base, address),
        };
        let pointer = match fragment {
            "" => self.resources.get(&address)?.clone(),
            pointer if pointer.starts_with('/') => {
                let before = self.resources.get(&address)?;
                let pointer = match pointer.strip_prefix("/definitions/") {
                    Some(name) if self.renamed && before.is_empty() => format!("/$defs/{name}"),
                    _ => pointer.to_owned(),
                };
                return Some(format!("#{}{pointer}", before.replace('%', "%25")));
            }
            name => self.anchors.get(&(address, name.to_owned()))?.clone(),
        };
        Some(format!("#{}", pointer.replace('%', "%25")))
    }
}

/// Returns the base URI of `schema` inside a schema with the base URI `base`.
fn base_uri_of(schema: &Map<String, Value>, base: &str) -> String {
    let id = walk::get_keyword(schema, "$id").and_then(Value::as_str).unwrap_or_default();
    match id.split_once('#').map_or(id, |(address, _)| address) {
        "" => base.to_owned(),
        address => join_uri(base, address),
    }
}

/// Resolves the relative URI `address` against `base`, as in RFC 3986 for the forms that occur
/// here.
fn join_uri(base: &str, address: &str) -> String {
    let is_whole = address.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    if is_whole {
        return address.to_owned();
    }
    let path = base.find("://").map_or(0, |at| {
        let host = at + "://".len();
        host + base[host..].find('/').unwrap_or(base.len() - host)
    });
    let (host, folder) = base.split_at(path);
    if address.starts_with("//") {
        return format!("{}{address}", host.split_once("//").map_or("", |(scheme, _)| scheme));
    }
    let folder = match address.strip_prefix('/') {
        Some(_) => "",
        None => folder.rfind('/').map_or("", |end| &folder[..end]),
    };
    let mut steps: Vec<&str> = folder.split('/').filter(|step| !step.is_empty()).collect();
    for step in address.split('/').filter(|step| !step.is_empty()) {
        match step {
            "." => {}
            ".." => _ = steps.pop(),
            step => steps.push(step),
        }
    }
    let start = if host.is_empty() && !folder.starts_with('/') && !address.starts_with('/') {
        ""
    } else {
        "/"
    };
    format!("{host}{start}{}", steps.join("/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &Value) {
        let told = with_local_refs(schema.as_object().unwrap()).into_owned();
        assert_eq!(Value::Object(told), *expected);
    }

    #[test]
    fn replaces_anchors_and_ids_by_pointers() {
        check(
            &json!({
                "properties": { "a": { "$ref": "#pt" }, "b": { "$ref": "#q" } },
                "$defs": { "p/t": { "$anchor": "pt", "type": "integer" }, "q": { "$id": "#q" } },
            }),
            &json!({
                "properties": { "a": { "$ref": "#/$defs/p~1t" }, "b": { "$ref": "#/$defs/q" } },
                "$defs": { "p/t": { "type": "integer" }, "q": {} },
            }),
        );
        check(
            &json!({
                "$id": "https://e.com/s/root",
                "properties": {
                    "a": { "$ref": "https://e.com/s/root#/$defs/q" }, "b": { "$ref": "q" },
                    "c": { "$ref": "/s/q" }, "d": { "$ref": "q#/items" }, "e": { "$ref": "other" },
                    "f": { "$ref": "#" }, "g": { "$ref": "q#z" },
                },
                "$defs": { "q": { "$id": "q", "items": { "$ref": "#" }, "not": { "$anchor": "z" } } },
            }),
            &json!({
                "properties": {
                    "a": { "$ref": "#/$defs/q" }, "b": { "$ref": "#/$defs/q" },
                    "c": { "$ref": "#/$defs/q" }, "d": { "$ref": "#/$defs/q/items" },
                    "e": { "$ref": "other" }, "f": { "$ref": "#" }, "g": { "$ref": "#/$defs/q/not" },
                },
                // Inside of a schema with an id, that schema is the root.
                "$defs": { "q": { "items": { "$ref": "#/$defs/q" }, "not": {} } },
            }),
        );
        check(
            &json!({ "$dynamicAnchor": "n", "items": { "$dynamicRef": "#n" } }),
            &json!({ "items": { "$ref": "#" } }),
        );
        check(
            &json!({ "$recursiveAnchor": true, "items": { "$recursiveRef": "#" } }),
            &json!({ "items": { "$ref": "#" } }),
        );
    }

    #[test]
    fn keeps_dynamic_anchors_with_several_targets() {
        let tree = json!({
            "$id": "https://e.com/tree", "$dynamicAnchor": "n", "items": { "$dynamicRef": "#n" },
        });
        let strict = json!({
            "$dynamicAnchor": "n", "$ref": "https://e.com/tree", "$defs": { "tree": tree },
        });
        check(
            &strict,
            &json!({
                "$dynamicAnchor": "n", "$ref": "#/$defs/tree",
                "$defs": { "tree": { "$dynamicAnchor": "n", "items": { "$dynamicRef": "#n" } } },
            }),
        );
        check(
            &json!({
                "$defs": { "a": { "$id": "a", "$ref": "#/not", "$dynamicRef": "#b", "not": {
                    "$dynamicAnchor": "b",
                } } },
            }),
            &json!({
                "$defs": { "a": { "$ref": "#/$defs/a/not", "not": {}, "allOf": [
                    { "$ref": "#/$defs/a/not" },
                ] } },
            }),
        );
    }

    #[test]
    fn borrows_a_schema_without_anchors() {
        let schema = json!({ "$id": "https://e.com", "items": { "$ref": "#/$defs/a" } });
        assert!(matches!(with_local_refs(schema.as_object().unwrap()), Cow::Borrowed(_)));
    }

    #[test]
    fn joins_uris_as_in_rfc_3986() {
        for (base, address, expected) in [
            ("https://e.com/a/b", "c", "https://e.com/a/c"),
            ("https://e.com/a/b", "../c", "https://e.com/c"),
            ("https://e.com/a/b", "/c", "https://e.com/c"),
            ("https://e.com", "c", "https://e.com/c"),
            ("https://e.com/a", "//f.org/c", "https://f.org/c"),
            ("https://e.com/a", "urn:x:y", "urn:x:y"),
            ("", "c", "c"),
            ("a/b", "c", "a/c"),
        ] {
            assert_eq!(join_uri(base, address), expected, "{base} {address}");
        }
    }
}
