//! The operations of tools: their schemas move to the components of the document.

use serde_json::{Map, Value, json};
use tool_sdk_core::{Definition, RiskClass, Schema};

use super::OpenApiContent;

const SCHEMAS: &str = "#/components/schemas/";
/// The tag of tools without a category.
const DEFAULT_TAG: &str = "tools";

/// The problems of a call: the statuses, and the names of their responses.
const TOOL_PROBLEMS: [(&str, &str); 15] = [
    ("400", "BadRequest"),
    ("401", "Unauthorized"),
    ("403", "Forbidden"),
    ("404", "NotFound"),
    ("405", "MethodNotAllowed"),
    ("408", "RequestTimeout"),
    ("409", "Conflict"),
    ("413", "PayloadTooLarge"),
    ("415", "UnsupportedMediaType"),
    ("422", "KeyReused"),
    ("431", "HeadTooLong"),
    ("499", "Cancelled"),
    ("500", "ToolFailed"),
    ("503", "Unavailable"),
    ("504", "TimedOut"),
];

/// Returns the operation that calls a tool.
pub(super) fn tool_operation(
    definition: &Definition,
    content: OpenApiContent,
    schemas: &mut Map<String, Value>,
) -> Value {
    let name = definition.name.as_str();
    let title = definition.title.as_deref().or(definition.display.name.as_deref());
    let mut responses = json!({ "200": result_response(definition, schemas) });
    for (status, response) in TOOL_PROBLEMS {
        responses[status] = json!({ "$ref": format!("#/components/responses/{response}") });
    }
    let mut call = json!({
        "operationId": name,
        "tags": [definition.category.as_deref().unwrap_or(DEFAULT_TAG)],
        "summary": title.unwrap_or(name),
        "description": definition.description,
        "requestBody": arguments_body(definition, schemas),
        "responses": responses,
        "x-risk": definition.risk,
        "x-display": definition.display,
        "x-source": definition.source,
        "x-read-only": definition.risk.class == RiskClass::Read,
    });
    // Clients that make tools of operations would show headers to the model.
    if content == OpenApiContent::Everything {
        add_protocol(&mut call);
    }
    call
}

/// Adds the headers with which a call is made in other ways, and what they lead to.
fn add_protocol(call: &mut Value) {
    let parameter = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
    let names = ["SessionId", "ProjectId", "IdempotencyKey", "Prefer"];
    call["parameters"] = names.map(parameter).to_vec().into();
    let accepted = json!({ "$ref": format!("{SCHEMAS}AcceptedCall") });
    let by_id = |id: &str| json!({ "operationId": id, "parameters": { "path.id": "$response.body#/call" } });
    call["responses"]["202"] = json!({
        "description": "The call runs on",
        "headers": { "Location": {
            "description": "The place of the call.", "schema": { "type": "string" },
        } },
        "content": { "application/json": { "schema": accepted } },
        "links": { "GetCall": by_id("get_call"), "CancelCall": by_id("cancel_call") },
    });
}

fn result_response(definition: &Definition, schemas: &mut Map<String, Value>) -> Value {
    let mut result = json!({ "$ref": format!("{SCHEMAS}CallResult") });
    if let Some(output) = &definition.output {
        let name = format!("{}_output", definition.name);
        let structured = hoist_schema(&name, output, SchemaUse::Output, schemas);
        let typed = json!({ "type": "object", "properties": { "structured": structured } });
        result = json!({ "allOf": [result, typed] });
    }
    json!({ "description": "Done", "content": { "application/json": { "schema": result } } })
}

fn arguments_body(definition: &Definition, schemas: &mut Map<String, Value>) -> Value {
    let parameters = &definition.parameters;
    let name = format!("{}_arguments", definition.name);
    let arguments = hoist_schema(&name, parameters, SchemaUse::Arguments, schemas);
    let is_required =
        parameters.to_value()["required"].as_array().is_some_and(|required| !required.is_empty());
    let mut content = json!({ "schema": arguments });
    let examples: Map<String, Value> = definition
        .examples
        .iter()
        .enumerate()
        .filter_map(|(at, text)| {
            let value: Value = serde_json::from_str(text).ok()?;
            Some((format!("example{}", at + 1), json!({ "value": value })))
        })
        .collect();
    if !examples.is_empty() {
        content["examples"] = examples.into();
    }
    json!({ "required": is_required, "content": { "application/json": content } })
}

/// Returns the tags of the document: those of the base that operations have, and the categories.
pub(super) fn document_tags(document: &Value) -> Value {
    let operations = document["paths"].as_object().into_iter().flatten().flat_map(|(_, item)| {
        item.as_object().into_iter().flatten().filter_map(|(_, operation)| operation.get("tags"))
    });
    let mut names: Vec<&str> = operations.filter_map(|tags| tags[0].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let described = document["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tag = |name: &str| {
        let known = described.iter().find(|tag| tag["name"] == name).cloned();
        known.unwrap_or_else(|| json!({ "name": name, "description": format!("Tools: {name}.") }))
    };
    names.into_iter().map(tag).collect()
}

/// What a schema describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaUse {
    /// Arguments, in which `null` for an optional member means that it is absent.
    Arguments,
    Output,
}

/// Moves a schema and its definitions to the components, and returns a reference to it.
fn hoist_schema(
    name: &str,
    schema: &Schema,
    what: SchemaUse,
    schemas: &mut Map<String, Value>,
) -> Value {
    let mut root = schema.to_value();
    let definitions = root.as_object_mut().and_then(|root| root.remove("$defs"));
    if let Some(root) = root.as_object_mut() {
        root.remove("$schema");
    }
    let definitions = definitions.as_ref().and_then(Value::as_object).into_iter().flatten();
    let named = definitions.map(|(key, it)| (format!("{name}.{key}"), it.clone()));
    for (key, mut definition) in named.chain([(name.to_owned(), root)]) {
        adapt_schema(&mut definition, name, what);
        schemas.insert(key, definition);
    }
    json!({ "$ref": format!("{SCHEMAS}{name}") })
}

/// Points local references at the components of the document, and lets optional arguments be
/// `null`.
fn adapt_schema(schema: &mut Value, name: &str, what: SchemaUse) {
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members.iter_mut() {
                match (keyword.as_str(), value) {
                    // The names of these are not keywords, and their values are schemas.
                    ("properties" | "patternProperties", Value::Object(named)) => {
                        named.values_mut().for_each(|it| adapt_schema(it, name, what));
                    }
                    // These are not schemas.
                    ("const" | "default" | "enum" | "examples", _) => {}
                    (_, value) => adapt_schema(value, name, what),
                }
            }
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                if let Some(definition) = reference.strip_prefix("#/$defs/") {
                    *reference = format!("{SCHEMAS}{name}.{definition}");
                } else if reference == "#" {
                    *reference = format!("{SCHEMAS}{name}");
                }
            }
            if members.contains_key("prefixItems") && !members.contains_key("items") {
                // Some linters read an array without `items` as a mistake.
                members.insert("items".to_owned(), json!({}));
            }
            if what == SchemaUse::Arguments {
                allow_null_for_optional(members);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|it| adapt_schema(it, name, what)),
        _ => {}
    }
}

/// Lets the optional members of an object be `null`.
fn allow_null_for_optional(object: &mut Map<String, Value>) {
    let required = object.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|all| all.iter().any(|it| it == name));
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
        let Value::Object(members) = property else { continue };
        // What is said about the argument stays where clients look for it.
        let mut outer = Map::new();
        for annotation in ["title", "description", "default"] {
            outer.extend(members.remove_entry(annotation));
        }
        outer.insert("anyOf".to_owned(), json!([property, { "type": "null" }]));
        *property = outer.into();
    }
}
