//! OpenAPI 3.1 documents.
//!
//! Clients such as Open WebUI make every operation a tool of the model, so one document holds the
//! tools only, and another one the whole API with approvals.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use tool_sdk_core::{Definition, RiskClass, Schema};

use super::caller::ToolCaller;
use super::service::RestService;

const SCHEMAS: &str = "#/components/schemas/";

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
    let (mut paths, mut schemas) = (Map::new(), shared_schemas());
    for definition in definitions {
        let path = format!("/v1/tools/{}", definition.name);
        let mut item = json!({ "post": tool_operation(definition, &mut schemas) });
        if content == OpenApiContent::Everything {
            let summary = format!("The definition of {}", definition.name);
            let id = format!("get_tool_{}", definition.name);
            item["get"] = operation(&id, &summary, "200", json!({ "type": "object" }), &[]);
        }
        paths.insert(path, item);
    }
    if content == OpenApiContent::Everything {
        add_other_paths(&mut paths);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": version,
            "description": "Tools over HTTP. Every failure is a problem document (RFC 9457).",
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

/// Returns the operation that calls a tool.
fn tool_operation(definition: &Definition, schemas: &mut Map<String, Value>) -> Value {
    let name = definition.name.as_str();
    let arguments = hoist_schema(&format!("{name}_arguments"), &definition.parameters, schemas);
    let mut result = json!({ "$ref": format!("{SCHEMAS}CallResult") });
    if let Some(output) = &definition.output {
        let structured = hoist_schema(&format!("{name}_output"), output, schemas);
        let typed = json!({ "type": "object", "properties": { "structured": structured } });
        result = json!({ "allOf": [result, typed] });
    }
    let is_required = definition.parameters.to_value()["required"]
        .as_array()
        .is_some_and(|required| !required.is_empty());
    let summary = definition.title.as_deref().or(definition.display.name.as_deref());
    let mut call = operation(name, summary.unwrap_or(name), "200", result, &TOOL_PROBLEMS);
    call["description"] = json!(definition.description);
    call["requestBody"] = json!({
        "required": is_required,
        "content": { "application/json": { "schema": arguments } },
    });
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
        call["requestBody"]["content"]["application/json"]["examples"] = examples.into();
    }
    if let Some(category) = &definition.category {
        call["tags"] = json!([category]);
    }
    call["x-risk"] = json!(definition.risk);
    call["x-display"] = json!(definition.display);
    call["x-source"] = json!(definition.source);
    call["x-read-only"] = json!(definition.risk.class == RiskClass::Read);
    call
}

/// The statuses of the problems of a call, with what each means.
const TOOL_PROBLEMS: [(&str, &str); 15] = [
    ("400", "The arguments or headers are invalid"),
    ("401", "The token is missing or unknown"),
    ("403", "The call was denied"),
    ("404", "Something that the request names does not exist"),
    ("408", "The body did not arrive in time"),
    ("409", "The state changed, or a first request with the key is starting"),
    ("413", "The body is longer than 1 MiB"),
    ("415", "The body is not JSON"),
    ("422", "The idempotency key was used for another request"),
    ("499", "The call was cancelled"),
    ("500", "The tool failed"),
    ("503", "The server or a service of the tool is busy"),
    ("504", "The call took too long"),
    ("405", "The method does not fit"),
    ("431", "The head is too long"),
];

/// The statuses of the problems of other requests.
const OTHER_PROBLEMS: [(&str, &str); 4] = [
    ("400", "The request is invalid"),
    ("401", "The token is missing or unknown"),
    ("403", "The token does not allow the request"),
    ("404", "Something that the request names does not exist"),
];

/// Returns an operation whose success has `status` and a body of `schema`.
fn operation(
    id: &str,
    summary: &str,
    status: &str,
    schema: Value,
    problems: &[(&str, &str)],
) -> Value {
    let problems = if problems.is_empty() { &OTHER_PROBLEMS } else { problems };
    let problem = json!({ "$ref": format!("{SCHEMAS}Problem") });
    let mut responses = Map::new();
    let body = json!({ "application/json": { "schema": schema } });
    responses.insert(status.to_owned(), json!({ "description": "Done", "content": body }));
    for (status, description) in problems {
        // A refusal before the handler is plain text.
        let content = match *status {
            "401" | "403" | "431" => json!({
                "application/problem+json": { "schema": problem },
                "text/plain": { "schema": { "type": "string" } },
            }),
            _ => json!({ "application/problem+json": { "schema": problem } }),
        };
        let response = json!({ "description": description, "content": content });
        responses.insert((*status).to_owned(), response);
    }
    json!({ "operationId": id, "summary": summary, "responses": responses })
}

/// Moves a schema and its definitions to the components, and returns a reference to it.
fn hoist_schema(name: &str, schema: &Schema, schemas: &mut Map<String, Value>) -> Value {
    let mut root = schema.to_value();
    let definitions = root.as_object_mut().and_then(|root| root.remove("$defs"));
    if let Some(root) = root.as_object_mut() {
        root.remove("$schema");
    }
    rename_refs(&mut root, name);
    schemas.insert(name.to_owned(), root);
    for (key, mut definition) in
        definitions.iter().filter_map(Value::as_object).flatten().map(|(key, it)| (key, it.clone()))
    {
        rename_refs(&mut definition, name);
        schemas.insert(format!("{name}.{key}"), definition);
    }
    json!({ "$ref": format!("{SCHEMAS}{name}") })
}

/// Points local references at the components of the document.
fn rename_refs(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                if let Some(definition) = reference.strip_prefix("#/$defs/") {
                    *reference = format!("{SCHEMAS}{name}.{definition}");
                } else if reference == "#" {
                    *reference = format!("{SCHEMAS}{name}");
                }
            }
            members.values_mut().for_each(|it| rename_refs(it, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| rename_refs(it, name)),
        _ => {}
    }
}

/// Returns the schemas that all operations share.
fn shared_schemas() -> Map<String, Value> {
    let string = json!({ "type": "string" });
    let attachment = json!({
        "type": "object",
        "required": ["mime"],
        "properties": {
            "mime": string, "name": string, "title": string, "description": string,
            "base64": string, "uri": string,
        },
    });
    let fault = json!({
        "type": "object",
        "required": ["kind", "pointer", "message"],
        "properties": { "kind": string, "pointer": string, "message": string },
    });
    let result = json!({
        "type": "object",
        "required": ["call", "text"],
        "properties": {
            "call": string,
            "text": { "type": "string", "description": "What a model reads." },
            "structured": { "description": "The result as a value." },
            "title": string,
            "metadata": { "type": "object" },
            "display": { "description": "Data for a user interface." },
            "attachments": { "type": "array", "items": attachment },
            "truncation": { "type": "object" },
            "notes": { "type": "array", "items": { "type": "object" } },
            "halt_reason": string,
        },
    });
    let problem = json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "error", "category"],
        "properties": {
            "type": string, "title": string, "status": { "type": "integer" }, "detail": string,
            "error": string, "category": string, "suggestion": string,
            "faults": { "type": "array", "items": fault },
            "call": string, "tool": string,
            "structured": {},
            "attachments": { "type": "array", "items": attachment },
        },
    });
    let answer = json!({
        "type": "object",
        "required": ["reply", "fingerprint"],
        "additionalProperties": false,
        "properties": {
            "reply": { "type": "string", "enum": ["once", "session", "always", "reject"] },
            "fingerprint": string,
            "arguments": { "type": "object", "description": "Other arguments, for `once`." },
            "patterns": { "type": "array", "items": string },
            "feedback": string,
        },
    });
    let batch = json!({
        "type": "object",
        "required": ["calls"],
        "additionalProperties": false,
        "properties": { "calls": { "type": "array", "minItems": 1, "maxItems": 64, "items": {
            "type": "object",
            "required": ["tool"],
            "additionalProperties": false,
            "properties": { "tool": string, "arguments": { "type": "object" } },
        } } },
    });
    let session = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "project": string, "conversation": string },
    });
    [
        ("CallResult", result),
        ("Problem", problem),
        ("ApprovalAnswer", answer),
        ("Batch", batch),
        ("NewSession", session),
    ]
    .into_iter()
    .map(|(name, schema)| (name.to_owned(), schema))
    .collect()
}

/// Adds the operations that are not tools.
fn add_other_paths(paths: &mut Map<String, Value>) {
    let object = || json!({ "type": "object" });
    let get = |id, summary| operation(id, summary, "200", object(), &[]);
    let with_body = |mut operation: Value, schema: &str| {
        let schema = json!({ "$ref": format!("{SCHEMAS}{schema}") });
        let content = json!({ "application/json": { "schema": schema } });
        operation["requestBody"] = json!({ "required": true, "content": content });
        operation
    };
    let without_content = |id, summary, status: &str| {
        let mut operation = operation(id, summary, status, object(), &[]);
        operation["responses"][status] = json!({ "description": "Done" });
        operation
    };
    let with_media = |id, summary, media: &str| {
        let mut operation = get(id, summary);
        let content = json!({ media: { "schema": { "type": "string" } } });
        operation["responses"]["200"]["content"] = content;
        operation
    };
    let by_id = |mut item: Value| {
        let id = json!({
            "name": "id", "in": "path", "required": true, "schema": { "type": "string" },
        });
        item["parameters"] = json!([id]);
        item
    };
    let batch = operation("call_batch", "Call several tools", "200", object(), &TOOL_PROBLEMS);
    let new_session = operation("create_session", "Make a session", "201", object(), &[]);
    let answer = without_content("answer_approval", "Answer an approval request, once", "204");
    let entries = [
        ("/v1/tools", json!({ "get": get("list_all_tools", "List the tools") })),
        ("/v1/batch", json!({ "post": with_body(batch, "Batch") })),
        ("/v1/sessions", json!({ "post": with_body(new_session, "NewSession") })),
        (
            "/v1/sessions/{id}",
            by_id(json!({
                "get": get("get_session", "Show a session"),
                "delete": without_content("end_session", "End a session", "204"),
            })),
        ),
        ("/v1/calls", json!({ "get": get("list_calls", "List the calls of a session") })),
        (
            "/v1/calls/{id}",
            by_id(json!({
                "get": get("get_call", "Show a call"),
                "delete": without_content("cancel_call", "Cancel a running call", "202"),
            })),
        ),
        (
            "/v1/events",
            json!({ "get": with_media("stream_events", "Follow events", "text/event-stream") }),
        ),
        ("/v1/approvals", json!({ "get": get("list_approvals", "List open approval requests") })),
        (
            "/v1/approvals/{id}",
            by_id(json!({
                "get": get("get_approval", "Show an approval request"),
                "post": with_body(answer, "ApprovalAnswer"),
            })),
        ),
        ("/metrics", json!({ "get": with_media("get_metrics", "Metrics", "text/plain") })),
    ];
    paths.extend(entries.map(|(path, item)| (path.to_owned(), item)));
}
