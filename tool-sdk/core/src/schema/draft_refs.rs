//! Updates references when an earlier draft is upgraded: some keywords get other names, and JSON
//! pointers lead through them.
//!
//! **Invariant:** a property that is named like a keyword is not renamed.

use serde_json::{Map, Value};

use super::walk::{self, SubschemaKind};

/// Updates the references of a schema for the upgrade to 2020-12. With `renamed`, the definitions
/// move from `definitions` to `$defs`.
pub fn redirect_refs(root: &mut Map<String, Value>, renamed: bool) {
    let before = root.clone();
    redirect_within(root, &RefBase { schema: &before, renamed }, 0);
}

/// The base of a reference: the document, or a subschema with its own `$id`.
struct RefBase<'b> {
    schema: &'b Map<String, Value>,
    renamed: bool,
}

fn redirect_within(schema: &mut Map<String, Value>, before: &RefBase<'_>, depth: usize) {
    let has_address = walk::get_keyword(schema, "$id")
        .and_then(Value::as_str)
        .is_some_and(|id| depth > 0 && !id.starts_with('#'));
    if has_address {
        let own = schema.clone();
        return redirect_inside(schema, &RefBase { schema: &own, renamed: false }, depth);
    }
    redirect_inside(schema, before, depth);
}

fn redirect_inside(schema: &mut Map<String, Value>, before: &RefBase<'_>, depth: usize) {
    if let Some(Value::String(reference)) = walk::get_keyword_mut(schema, "$ref")
        && let Some(steps) = reference.strip_prefix("#/")
    {
        *reference = format!("#/{}", before.migrate_pointer(steps));
    }
    if depth <= super::check::MAX_DEPTH {
        walk::for_each_in_any_draft_mut(schema, &mut |inner| {
            if let Value::Object(inner) = inner {
                redirect_within(inner, before, depth + 1);
            }
        });
    }
}

impl RefBase<'_> {
    /// Returns the pointer with the new names of keywords. A pointer that leads nowhere is kept.
    fn migrate_pointer(&self, steps: &str) -> String {
        let mut moved: Vec<&str> = Vec::new();
        let mut rest = steps.split('/');
        let mut here = Some(self.schema);
        while let Some(schema) = here {
            let Some(step) = rest.next() else { break };
            let value = walk::get_keyword(schema, &walk::unescape_pointer_step(step));
            let held = value.and_then(|value| walk::subschema_kind_in_any_draft(step, value));
            let name = match held {
                Some(SubschemaKind::Map | SubschemaKind::List) => rest.next(),
                _ => None,
            };
            let inner = match (value, name.map(walk::unescape_pointer_step)) {
                (Some(Value::Object(named)), Some(name)) => named.get(name.as_ref()),
                (Some(Value::Array(list)), Some(at)) => {
                    at.parse::<usize>().ok().and_then(|at| list.get(at))
                }
                (value, _) => value,
            };
            moved.push(match step {
                "definitions" if self.renamed && moved.is_empty() => "$defs",
                "items" if held == Some(SubschemaKind::List) => "prefixItems",
                "additionalItems" if schema.get("items").is_some_and(Value::is_array) => "items",
                "dependencies" if inner.is_some_and(|it| !it.is_array()) => "dependentSchemas",
                step => step,
            });
            moved.extend(name);
            here = held.and(inner).and_then(Value::as_object);
        }
        moved.into_iter().chain(rest).collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(reference: &str, expected: &str) {
        let mut root = json!({
            "properties": {
                "here": { "$ref": reference },
                "pair": { "items": [{ "properties": { "items": {} } }], "additionalItems": {} },
                "items": { "items": { "items": [{}, {}] }, "additionalItems": {} },
                "a/b c": { "items": [{}] },
                "own": { "$id": "own", "$ref": reference, "definitions": {}, "items": [{}] },
            },
            "dependencies": { "a": { "items": [{}] }, "b": ["a"] },
            "definitions": { "definitions": { "definitions": { "a": {} } } },
        });
        redirect_refs(root.as_object_mut().unwrap(), true);
        assert_eq!(root["properties"]["here"]["$ref"], expected);
        let own = if reference == "#/items/0" { "#/prefixItems/0" } else { reference };
        assert_eq!(root["properties"]["own"]["$ref"], own);
    }

    // F117
    #[test]
    fn migrates_json_pointers_of_earlier_drafts() {
        check("#/properties/pair/items/0", "#/properties/pair/prefixItems/0");
        check(
            "#/properties/pair/items/0/properties/items",
            "#/properties/pair/prefixItems/0/properties/items",
        );
        check("#/properties/pair/additionalItems", "#/properties/pair/items");
        check("#/properties/items/items/items/1", "#/properties/items/items/prefixItems/1");
        check("#/properties/items/additionalItems", "#/properties/items/additionalItems");
        check("#/properties/a~1b%20c/items/0", "#/properties/a~1b%20c/prefixItems/0");
        check("#/dependencies/a/items/0", "#/dependentSchemas/a/prefixItems/0");
        check("#/dependencies/b", "#/dependencies/b");
        check("#/definitions/definitions", "#/$defs/definitions");
        check("#/definitions/definitions/definitions/a", "#/$defs/definitions/definitions/a");
        check("#/items/0", "#/items/0");
        check("#/nowhere/items/0", "#/nowhere/items/0");
        check("#", "#");
    }
}
