//! What became of a call, from the protocol's form into an [`Output`].
//!
//! Everything arrives: texts as the text for the model, images and links as attachments, the
//! structured value beside them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::remote::RemoteResult;
use crate::content::{Attachment, Output};

/// The result as an output, whether the tool failed or not.
pub(super) fn output(result: RemoteResult) -> Output {
    let mut texts: Vec<String> = Vec::new();
    let mut attachments = Vec::new();
    for block in &result.content {
        match attachment(block) {
            Some(attachment) => attachments.push(attachment),
            None => texts.push(text(block)),
        }
    }
    let text = match (texts.as_slice(), &result.structured_content) {
        // A structured value without words is what the model reads.
        ([], Some(value)) if attachments.is_empty() => value.to_string(),
        _ => texts.join("\n"),
    };
    let mut output = Output::text(text);
    if let Some(value) = result.structured_content {
        output = output.structured(value);
    }
    if let Some(meta) = result.meta.filter(|meta| !meta.is_empty()) {
        output = output.metadata("_meta", meta);
    }
    attachments.into_iter().fold(output, Output::attach)
}

/// The words of a block; one of a kind that nobody knows is shown as it came.
fn text(block: &Value) -> String {
    let kind = block.get("type").and_then(Value::as_str);
    let words = match kind {
        Some("text") => block.get("text"),
        Some("resource") => block.pointer("/resource/text"),
        _ => None,
    };
    words.and_then(Value::as_str).map_or_else(|| block.to_string(), str::to_owned)
}

/// What goes beside the text. Bytes that are no base64 are no attachment.
fn attachment(block: &Value) -> Option<Attachment> {
    let field = |path: &str| block.pointer(path).and_then(Value::as_str);
    let bytes = |path| STANDARD.decode(field(path)?).ok();
    match field("/type")? {
        kind @ ("image" | "audio") => {
            let mime = field("/mimeType").map_or_else(|| format!("{kind}/*"), str::to_owned);
            Some(Attachment::bytes(mime, bytes("/data")?))
        }
        "resource" => {
            let mime = field("/resource/mimeType").unwrap_or("application/octet-stream");
            let named = Attachment::bytes(mime, bytes("/resource/blob")?);
            Some(named.named(field("/resource/uri")?))
        }
        "resource_link" => {
            let mime = field("/mimeType").unwrap_or("application/octet-stream");
            let link = Attachment::uri(mime, field("/uri")?);
            Some(match field("/title").or_else(|| field("/name")) {
                Some(name) => link.named(name),
                None => link,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::content::Data;

    fn read(result: Value) -> Output {
        output(serde_json::from_value(result).unwrap())
    }

    // F8
    #[test]
    fn everything_arrives() {
        let output = read(json!({
            "content": [
                { "type": "text", "text": "one" },
                { "type": "image", "data": "AQ==", "mimeType": "image/png" },
                { "type": "resource_link", "uri": "https://a/", "name": "a", "mimeType": "text/html" },
                { "type": "resource", "resource": { "uri": "file:///n", "text": "two" } },
                { "type": "resource", "resource": { "uri": "file:///b", "blob": "Ag==" } },
            ],
            "structuredContent": { "n": 1 },
            "_meta": { "cost": 2 },
        }));
        assert_eq!(output.as_text(), "one\ntwo");
        assert_eq!(output.to_structured(), Some(json!({ "n": 1 })));
        assert_eq!(output.metadata_map().unwrap()["_meta"]["cost"], 2);
        let data: Vec<&Data> = output.attachments().iter().map(|one| &one.data).collect();
        let link = Data::Uri("https://a/".to_owned());
        assert_eq!(data, [&Data::Bytes(vec![1]), &link, &Data::Bytes(vec![2])]);
    }

    #[test]
    fn what_is_not_understood_is_shown_and_not_lost() {
        for odd in [
            json!({ "type": "hologram", "depth": 3 }),
            json!({ "type": "image", "data": "not base64", "mimeType": "image/png" }),
            json!(7),
        ] {
            assert_eq!(read(json!({ "content": [odd] })).as_text(), odd.to_string());
        }
        assert_eq!(read(json!({ "structuredContent": [1, 2] })).as_text(), "[1,2]");
        assert_eq!(read(json!({ "content": [] })).as_text(), "");
    }
}
