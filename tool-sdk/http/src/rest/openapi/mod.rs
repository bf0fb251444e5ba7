//! OpenAPI 3.1 documents.
//!
//! Clients such as Open WebUI make every operation a tool of the model, so one document holds the
//! tools only, and another one the whole API with approvals. What is the same for all tools stands in
//! `base.json`; [`tool_operations`] adds the tools.
//!
//! **Invariant:** a schema here accepts what the server accepts.

mod tool_operations;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use tool_sdk_core::Definition;

use self::tool_operations::{document_tags, tool_operation};
use super::caller::ToolCaller;
use super::service::RestService;

/// Everything but the operations of tools.
const BASE_DOCUMENT: &str = include_str!("base.json");

/// What an OpenAPI document holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenApiContent {
    /// One operation for each tool, for clients that make every operation a tool of a model.
    Tools,
    /// Also sessions, history, events, approvals and metrics.
    Everything,
}

/// `GET /openapi.json`
pub(super) async fn get_tools_document(
    State(service): State<Arc<RestService>>,
    caller: ToolCaller,
) -> Json<Value> {
    service.document(&caller, OpenApiContent::Tools)
}

/// `GET /v1/openapi.json`
pub(super) async fn get_full_document(
    State(service): State<Arc<RestService>>,
    caller: ToolCaller,
) -> Json<Value> {
    service.document(&caller, OpenApiContent::Everything)
}

impl RestService {
    fn document(&self, ToolCaller(caller): &ToolCaller, content: OpenApiContent) -> Json<Value> {
        let (view, options) = (self.view_for(caller), &self.options);
        let api = (&*options.title, &*options.version);
        Json(openapi_document(view.definitions(), api, content))
    }
}

/// Returns an OpenAPI 3.1 document for tools. `api` is its title and version. The same definitions
/// give the same document.
///
/// # Examples
///
/// ```
/// use tool_sdk::http::{OpenApiContent, openapi_document};
/// use tool_sdk::{Registry, Toolset, tool, tools};
///
/// /// Say hello.
/// #[tool(read)]
/// fn hello() -> &'static str {
///     "hello"
/// }
///
/// let tools = Toolset::new(Registry::builder().add(tools![hello]).build()?);
/// let document =
///     openapi_document(tools.view().definitions(), ("Greetings", "1.0.0"), OpenApiContent::Tools);
/// assert_eq!(document["paths"]["/v1/tools/hello"]["post"]["operationId"], "hello");
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[must_use]
pub fn openapi_document<'d>(
    definitions: impl IntoIterator<Item = &'d Definition>,
    (title, version): (&str, &str),
    content: OpenApiContent,
) -> Value {
    // The text is tested to be JSON.
    let mut document: Value = serde_json::from_str(BASE_DOCUMENT).unwrap_or_default();
    document["info"]["title"] = json!(title);
    document["info"]["version"] = json!(version);
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for definition in definitions {
        let path = format!("/v1/tools/{}", definition.name);
        let call = tool_operation(definition, content, &mut schemas);
        let mut item = json!({ "post": call });
        if content == OpenApiContent::Everything {
            item["get"] = definition_operation(definition, &document);
        }
        paths.insert(path, item);
    }
    if let Value::Object(shared) = &mut document["components"]["schemas"] {
        shared.extend(schemas);
    }
    match (content, &mut document["paths"]) {
        (OpenApiContent::Everything, Value::Object(others)) => others.extend(paths),
        (_, place) => *place = paths.into(),
    }
    document["tags"] = document_tags(&document);
    remove_unused_components(&mut document);
    document
}

/// Returns the operation that shows a definition.
fn definition_operation(definition: &Definition, document: &Value) -> Value {
    let name = definition.name.as_str();
    let mut operation = document["paths"]["/v1/approvals/{id}"]["get"].clone();
    operation["operationId"] = format!("get_tool_{name}").into();
    operation["tags"] = json!(["tools"]);
    operation["summary"] = format!("The definition of {name}").into();
    operation["description"] = "Returns the complete definition of the tool.".into();
    let schema = json!({ "$ref": "#/components/schemas/ToolDefinition" });
    operation["responses"]["200"]["content"]["application/json"]["schema"] = schema;
    operation
}

/// Removes the components that no operation refers to, directly or through others.
fn remove_unused_components(document: &mut Value) {
    let mut used = BTreeSet::new();
    let mut open = references(&document["paths"]);
    while let Some(reference) = open.pop() {
        let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
        let further = target.map(references).unwrap_or_default();
        if used.insert(reference) {
            open.extend(further);
        }
    }
    for kind in ["schemas", "responses", "parameters"] {
        if let Value::Object(components) = &mut document["components"][kind] {
            components.retain(|name, _| used.contains(&format!("#/components/{kind}/{name}")));
        }
    }
}

/// Returns all references in a part of the document.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_a_document() {
        let base: Value = serde_json::from_str(BASE_DOCUMENT).unwrap();
        assert_eq!(base["openapi"], "3.1.0");
        for reference in references(&base) {
            assert!(base.pointer(&reference[1..]).is_some(), "{reference}");
        }
    }

    #[test]
    fn components_in_a_cycle_are_kept_and_others_removed() {
        let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        let mut document = json!({
            "paths": { "/a": to("a") },
            "components": { "schemas": { "a": to("b"), "b": { "items": to("a") }, "c": to("a") } },
        });
        remove_unused_components(&mut document);
        let kept = document["components"]["schemas"].as_object().unwrap();
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["a", "b"]);
    }
}
