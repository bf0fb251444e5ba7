//! OpenAPI documents.

use serde_json::{Value, json};

use crate::server::TestServer;

/// Returns every reference of a document.
fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

// Clients make every operation a tool of the model, so approvals must not stand there.
#[tokio::test]
async fn the_short_document_holds_the_tools_only() {
    let server = TestServer::start().await;
    let document = server.get("/openapi.json").send().await.expect(200).json();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.keys().all(|path| path.starts_with("/v1/tools/")), "{paths:?}");
    let add = &paths["/v1/tools/add"]["post"];
    assert_eq!((&add["operationId"], &add["x-read-only"]), (&json!("add"), &json!(true)));
    let body = &add["requestBody"]["content"]["application/json"];
    assert_eq!(body["examples"]["example1"]["value"], json!({ "a": 1, "b": 2 }));
    // `null` for an optional argument is accepted, so the schema says so.
    let optional = &document["components"]["schemas"]["add_arguments"]["properties"]["b"];
    assert_eq!(
        (&optional["default"], &optional["description"]),
        (&json!(1), &json!("The second."))
    );
    assert_eq!(
        (&optional["anyOf"][0]["maximum"], &optional["anyOf"][1]),
        (&json!(100), &json!({ "type": "null" }))
    );
    // Nothing of approvals stands there, and no header that a client would show to a model.
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.keys().all(|name| !name.contains("Approval")), "{schemas:?}");
    assert_eq!((add.get("parameters"), &document["tags"][0]["name"]), (None, &json!("math")));
}

#[tokio::test]
async fn every_reference_leads_to_a_schema_and_every_path_exists() {
    let server = TestServer::start_with_approvals().await;
    let document = server.get("/v1/openapi.json").send().await.expect(200).json();
    for reference in references(&document) {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.contains_key("/v1/approvals/{id}"));
    for (path, item) in paths {
        for method in ["get", "post", "delete"].into_iter().filter(|it| item.get(it).is_some()) {
            let method = if method == "get" { "GET" } else { "POST" };
            let path = path.replace("{id}", "none");
            // An event stream has no end, so its head says enough.
            let answer = server.request(method, path.clone()).events().await;
            let responses = &item[method.to_ascii_lowercase()]["responses"];
            let status = answer.status.as_u16().to_string();
            assert!(
                responses.get(&status).is_some() || status == "405",
                "{method} {path}: {status}"
            );
        }
    }
}
