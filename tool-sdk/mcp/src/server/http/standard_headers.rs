//! Compares the `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` headers of a request with its body
//! (SEP-2243): proxies route by the headers, so both must say the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName};
use rmcp::model::ProtocolVersion;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::request_head::{HeaderField, RequestHead};
use crate::server::message::MessageParams;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM_PREFIX: &str = "mcp-param-";

/// Fails if a header contradicts the message or is missing. `schema` is that of the called tool's
/// parameters.
pub(super) fn check_headers<'s>(
    head: &RequestHead<'_>,
    method: &str,
    params: &MessageParams,
    schema: impl FnOnce(&str) -> Option<&'s Map<String, Value>>,
) -> Result<(), String> {
    let required = ProtocolVersion::STANDARD_HEADERS.as_str();
    if head.version().is_none_or(|version| version < required) {
        return Ok(());
    }
    let headers = head.headers();
    match HeaderField::new(headers, &METHOD) {
        // Clients send the headers once the version is negotiated.
        HeaderField::Missing if method == "initialize" => return Ok(()),
        HeaderField::Missing => return Err("the header `Mcp-Method` is missing".to_owned()),
        HeaderField::Text(value) if value == method => {}
        _ => return Err(format!("`Mcp-Method` does not match the method `{method}`")),
    }
    let name = match method {
        "tools/call" | "prompts/get" => params.member::<String>("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            params.member::<String>("uri")
        }
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.member::<String>("taskId"),
        _ => return Ok(()),
    };
    // The handler refuses a message without a valid name.
    let Ok(Some(name)) = name else { return Ok(()) };
    match read_header(headers, &NAME)? {
        None => return Err(format!("the header `Mcp-Name` is missing for `{method}`")),
        Some(value) if value == name => {}
        Some(_) => return Err(format!("`Mcp-Name` does not match `{name}`")),
    }
    match method {
        "tools/call" => match schema(&name) {
            Some(schema) => check_param_headers(headers, params, schema),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Compares the arguments that the tool's schema promotes to headers.
fn check_param_headers(
    headers: &HeaderMap,
    params: &MessageParams,
    schema: &Map<String, Value>,
) -> Result<(), String> {
    let mut promoted = Vec::new();
    collect_promoted(schema.get("properties"), &mut Vec::new(), &mut promoted);
    if promoted.is_empty() {
        return Ok(());
    }
    let arguments = params.get("arguments").map_or("{}", RawValue::get);
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    for (path, header) in promoted {
        let field = path.join(".");
        let Ok(name) = HeaderName::try_from(format!("{PARAM_PREFIX}{header}")) else { continue };
        let argument = path.iter().try_fold(&arguments, |value, key| value.get(key));
        let argument = argument.and_then(primitive_text);
        match (read_header(headers, &name)?, argument) {
            (None, None) => {}
            (Some(value), Some(argument)) if value == argument => {}
            (None, Some(_)) => return Err(format!("the header `{name}` is missing for `{field}`")),
            (Some(_), _) => return Err(format!("`{name}` does not match `{field}`")),
        }
    }
    Ok(())
}

/// Collects the properties with an `x-mcp-header`: their path, and the name of the header.
fn collect_promoted<'a>(
    properties: Option<&'a Value>,
    path: &mut Vec<&'a str>,
    promoted: &mut Vec<(Vec<&'a str>, &'a str)>,
) {
    for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
        path.push(name);
        let header = schema.get("x-mcp-header").and_then(Value::as_str);
        if let Some(header) = header.filter(|header| !header.is_empty()) {
            promoted.push((path.clone(), header));
        }
        collect_promoted(schema.get("properties"), path, promoted);
        path.pop();
    }
}

fn primitive_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the value of a header. Text that a header cannot hold is encoded in base64.
fn read_header(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, String> {
    let value = match HeaderField::new(headers, name) {
        HeaderField::Missing => return Ok(None),
        HeaderField::Text(value) => value,
        HeaderField::Invalid => return Err(format!("the header `{name}` must have one value")),
    };
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else { return Ok(Some(value.to_owned())) };
    let decoded = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(Some).ok_or_else(|| format!("the header `{name}` is not valid base64"))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use serde_json::json;

    use super::*;
    use crate::server::message::{ClientMessage, parse_message};

    /// Checks headers, given as `name: value`, against a request.
    fn check(headers: &[&str], method: &str, params: &Value) -> Result<(), String> {
        let mut map = HeaderMap::new();
        map.insert("mcp-protocol-version", HeaderValue::from_static("2026-07-28"));
        for header in headers {
            let (name, value) = header.split_once(": ").unwrap();
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            map.append(HeaderName::try_from(name).unwrap(), value);
        }
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let Ok(ClientMessage::Request(request)) = parse_message(request.to_string().as_bytes())
        else {
            panic!("a request");
        };
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
        } });
        let schema = |name: &str| schema.as_object().filter(|_| name == "t");
        check_headers(&RequestHead::new(&map), method, &request.params, schema)
    }

    #[test]
    fn compares_method_and_name() {
        let call = json!({ "name": "t", "arguments": {} });
        let method = "Mcp-Method: tools/call";
        for (headers, is_valid) in [
            (&[method, "Mcp-Name: t"][..], true),
            (&[method, "Mcp-Name: =?base64?dA==?="], true),
            (&[], false),
            (&["Mcp-Name: t"], false),
            (&[method], false),
            (&[method, "Mcp-Name: u"], false),
            (&[method, "Mcp-Name: t", "Mcp-Name: t"], false),
            (&[method, "Mcp-Name: =?base64?!?="], false),
            (&["Mcp-Method: tools/list", "Mcp-Name: t"], false),
            (&[method, method, "Mcp-Name: t"], false),
        ] {
            assert_eq!(check(headers, "tools/call", &call).is_ok(), is_valid, "{headers:?}");
        }
        let uri = json!({ "uri": "a:b" });
        let read = ["Mcp-Method: resources/read", "Mcp-Name: a:b"];
        assert_eq!(check(&read, "resources/read", &uri), Ok(()));
        assert_eq!(check(&["Mcp-Method: tools/list"], "tools/list", &json!({})), Ok(()));
    }

    #[test]
    fn initialize_may_omit_the_headers_but_not_contradict_them() {
        let check = |headers: &[&str]| check(headers, "initialize", &json!({})).is_ok();
        assert!(check(&[]) && check(&["Mcp-Method: initialize"]));
        assert!(!check(&["Mcp-Method: tools/list"]));
        assert!(!check(&["Mcp-Method: initialize", "Mcp-Method: initialize"]));
    }

    #[test]
    fn compares_promoted_arguments() {
        let call = |more: &[&str], arguments: Value| {
            let headers = [&["Mcp-Method: tools/call", "Mcp-Name: t"], more].concat();
            check(&headers, "tools/call", &json!({ "name": "t", "arguments": arguments })).is_ok()
        };
        assert!(call(&[], json!({})) && call(&[], json!({ "region": null })));
        assert!(call(&["Mcp-Param-Region: eu"], json!({ "region": "eu" })));
        assert!(call(&["Mcp-Param-N: 5"], json!({ "deep": { "n": 5 } })));
        assert!(!call(&[], json!({ "region": "eu" })));
        assert!(!call(&["Mcp-Param-Region: us"], json!({ "region": "eu" })));
        assert!(!call(&["Mcp-Param-Region: eu"], json!({})));
    }
}
