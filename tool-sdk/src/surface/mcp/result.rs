//! What became of a call, in the protocol's words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::{Value, json};

use super::listing::Era;
use super::page::Shows;
use crate::call::Outcome;
use crate::content::{Attachment, Data, Output};
use crate::surface::provider;
use crate::tool::{Definition, Source};

/// The result of a call of a tool that there is. A failure is a result too: its words are
/// for the model.
pub(super) fn result(
    outcome: Outcome,
    definition: &Definition,
    era: Era,
    shows: Shows,
) -> CallToolResult {
    let shortened = outcome.truncated().is_some();
    match outcome.result {
        Ok(output) => {
            let mut result = CallToolResult::success(content(&output));
            result.structured_content = structured(&output, shortened, definition, era);
            result.meta = shows.of_result(definition);
            result
        }
        Err(error) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(error.to_string())]);
            if let Some(output) = error.output() {
                result.content.extend(attachments(output));
                // Some clients hold what comes with an error against the schema of results, and
                // then nobody reads the error. What comes from another server was held against it.
                let is_judged = matches!(definition.source, Source::Mcp { .. });
                if definition.output.is_none() || is_judged {
                    result.structured_content = structured(output, shortened, definition, era);
                }
            }
            result
        }
    }
}

fn content(output: &Output) -> Vec<ContentBlock> {
    let text = output.as_text();
    // An empty text beside an image says nothing; alone it says that there is nothing.
    let text = (!text.is_empty() || output.attachments().is_empty()).then_some(text);
    text.map(ContentBlock::text).into_iter().chain(attachments(output)).collect()
}

fn attachments(output: &Output) -> impl Iterator<Item = ContentBlock> {
    output.attachments().iter().enumerate().map(attachment)
}

fn attachment((at, attachment): (usize, &Attachment)) -> ContentBlock {
    let mime = &attachment.mime;
    // A type that says no more than that there are bytes is left out, as where nobody said one.
    let is_known = mime != "application/octet-stream";
    let name = attachment.name.clone().unwrap_or_else(|| format!("attachment-{}", at + 1));
    match &attachment.data {
        // Only a resource has room for its address.
        Data::Bytes(bytes) if mime.starts_with("image/") && attachment.origin.is_none() => {
            ContentBlock::image(STANDARD.encode(bytes), mime)
        }
        Data::Bytes(bytes) if mime.starts_with("audio/") && attachment.origin.is_none() => {
            ContentBlock::audio(STANDARD.encode(bytes), mime)
        }
        Data::Bytes(bytes) => {
            let own = || format!("attachment:{}", percent_encoded(&name));
            let uri = attachment.origin.clone().unwrap_or_else(own);
            let blob = ResourceContents::blob(STANDARD.encode(bytes), uri);
            ContentBlock::resource(if is_known { blob.with_mime_type(mime) } else { blob })
        }
        Data::Uri(uri) => {
            let mut link = Resource::new(uri, name);
            link.mime_type = is_known.then(|| mime.clone());
            (link.title, link.description) =
                (attachment.title.clone(), attachment.description.clone());
            link.size = attachment.size;
            ContentBlock::resource_link(link)
        }
    }
}

/// A name as a part of a URI.
fn percent_encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// The structured value. One that was promised by a schema always comes; any other stays
/// away where the text had to be cut, because peers show it to the model as well.
fn structured(
    output: &Output,
    shortened: bool,
    definition: &Definition,
    era: Era,
) -> Option<Value> {
    if shortened && definition.output.is_none() {
        return None;
    }
    let value = output.to_structured()?;
    let wrapped = provider::wraps_result(definition) || !value.is_object();
    Some(if era == Era::Legacy && wrapped { json!({ "result": value }) } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::CallId;
    use crate::error::ToolError;
    use crate::name::ToolName;
    use crate::schema::Schema;

    // F132
    #[test]
    fn attachments_become_blocks() {
        let output = Output::text("see")
            .attach(Attachment::bytes("image/png", vec![1]))
            .attach(Attachment::bytes("audio/wav", vec![2]))
            .attach(Attachment::bytes("application/pdf", vec![3]).named("a b.pdf"))
            .attach(Attachment::uri("text/html", "https://example.com/"))
            .attach(Attachment::bytes("font/ttf", vec![4]).copied_from("mem://b").named("b"));
        assert_eq!(
            json!(content(&output)),
            json!([
                { "type": "text", "text": "see" },
                { "type": "image", "data": "AQ==", "mimeType": "image/png" },
                { "type": "audio", "data": "Ag==", "mimeType": "audio/wav" },
                { "type": "resource", "resource": {
                    "uri": "attachment:a%20b.pdf", "mimeType": "application/pdf", "blob": "Aw==",
                } },
                { "type": "resource_link", "uri": "https://example.com/",
                  "name": "attachment-4", "mimeType": "text/html" },
                { "type": "resource", "resource": {
                    "uri": "mem://b", "mimeType": "font/ttf", "blob": "BA==",
                } },
            ])
        );
        let unknown = "application/octet-stream";
        let output = Output::default()
            .attach(Attachment::bytes(unknown, vec![1]).named("b"))
            .attach(Attachment::uri(unknown, "mem://c").named("c"));
        assert_eq!(
            json!(content(&output)),
            json!([
                { "type": "resource", "resource": { "uri": "attachment:b", "blob": "AQ==" } },
                { "type": "resource_link", "uri": "mem://c", "name": "c" },
            ])
        );
        assert_eq!(json!(content(&Output::default())), json!([{ "type": "text", "text": "" }]));
    }

    // What a tool gave although it failed is there in every era.
    #[test]
    fn a_failure_keeps_what_it_gave() {
        let given = Output::default().structured(json!({ "n": 1 }));
        let given = given.attach(Attachment::bytes("image/png", vec![1]));
        let tool = Definition::new(ToolName::from_static("t"), "T.", Schema::default());
        for era in [Era::Legacy, Era::Modern] {
            let failed = ToolError::failed("no luck").giving(given.clone());
            let outcome = Outcome { call: CallId::next(), result: Err(failed), aside: None };
            let told = json!(result(outcome, &tool, era, Shows::Text));
            assert_eq!(told["content"][0]["text"], "no luck");
            assert_eq!(told["content"][1]["mimeType"], "image/png");
            assert_eq!(
                (&told["structuredContent"], &told["isError"]),
                (&json!({ "n": 1 }), &json!(true))
            );
        }
    }

    // A value that comes with an error need not be what the schema promises of results.
    #[test]
    fn a_failure_is_not_held_against_the_schema_of_results() {
        let mut tool = Definition::new(ToolName::from_static("t"), "T.", Schema::default());
        tool.output = Some(Schema::default());
        let given = Output::default().structured(json!({ "n": 1 }));
        let failed = Err(ToolError::failed("no luck").giving(given));
        let outcome = Outcome { call: CallId::next(), result: failed, aside: None };
        let told = json!(result(outcome, &tool, Era::Legacy, Shows::Text));
        assert_eq!(told.get("structuredContent"), None, "{told}");
    }

    #[test]
    fn only_old_peers_get_their_lists_wrapped() {
        let list = Output::json(&[1, 2]).unwrap();
        let tool = Definition::new(ToolName::from_static("t"), "T.", Schema::default());
        let structured = |cut, era| structured(&list, cut, &tool, era);
        assert_eq!(structured(false, Era::Legacy), Some(json!({ "result": [1, 2] })));
        assert_eq!(structured(false, Era::Modern), Some(json!([1, 2])));
        assert_eq!(structured(true, Era::Modern), None);
    }
}
