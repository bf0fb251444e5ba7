//! Converts the outcome of a call into a `CallToolResult`.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    Annotations, AudioContent, CallToolResult, ContentBlock, EmbeddedResource, ImageContent,
    ProtocolVersion, Resource, ResourceContents, TextContent,
};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tool_sdk_core::{
    Attachment, AttachmentData, Definition, Outcome, Output, ToolSource, provider,
};

use super::listing::ProtocolEra;
use super::ui::UiSupport;
use crate::client::BLOCKS_KEY;

/// Which content blocks a client supports. Clients reject a result with a block of unknown type,
/// but ignore unknown members of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ContentSupport {
    /// Text, images and embedded resources.
    Basic,
    /// Also audio.
    WithAudio,
    /// Also resource links, which is every type.
    #[default]
    All,
}

impl ContentSupport {
    /// Returns the blocks of a protocol version.
    pub(super) fn from_version(version: &ProtocolVersion) -> Self {
        if *version < ProtocolVersion::V_2025_03_26 {
            Self::Basic
        } else if *version < ProtocolVersion::V_2025_06_18 {
            Self::WithAudio
        } else {
            Self::All
        }
    }
}

/// Returns the result of a call of a known tool. A failure is a result too: its text is for the
/// model.
pub(super) fn to_call_result(
    outcome: Outcome,
    definition: &Definition,
    (era, blocks): (ProtocolEra, ContentSupport),
    ui: UiSupport,
) -> CallToolResult {
    let shortened = outcome.truncation().is_some();
    match outcome.result {
        Ok(output) => {
            let mut result =
                CallToolResult::success(content_blocks(&output, &definition.source, blocks));
            result.structured_content = structured_content(&output, shortened, definition, era);
            result.meta = ui.result_meta(definition);
            add_origin(&mut result, &output, &definition.source);
            result
        }
        Err(error) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(error.to_string())]);
            if let Some(output) = error.output() {
                let said = block_metadata(output, &definition.source);
                result.content.extend(attachment_blocks(output, &said, blocks));
                // Some clients validate the structured content of an error against the output
                // schema, and show a schema error in its place. Content from another server was
                // validated before.
                let is_validated = matches!(definition.source, ToolSource::Mcp { .. });
                if definition.output.is_none() || is_validated {
                    result.structured_content =
                        structured_content(output, shortened, definition, era);
                }
                add_origin(&mut result, output, &definition.source);
            }
            result
        }
    }
}

/// The key of `_meta` under which clients find where a result of another server comes from.
const ORIGIN_KEY: &str = "tool-sdk/origin";

/// The metadata of a result or an error of another server.
const ORIGIN_FACTS: [&str; 5] = ["server", "tool", "error_type", "original_error", "is_error"];

/// Adds title and metadata of a result or an error of another server for programs.
fn add_origin(result: &mut CallToolResult, output: &Output, source: &ToolSource) {
    let (ToolSource::Mcp { .. }, Some(facts)) = (source, output.metadata_map()) else { return };
    let known = |key: &str| Some((key.to_owned(), facts.get(key)?.clone()));
    let mut origin: serde_json::Map<String, Value> =
        ORIGIN_FACTS.iter().filter_map(|key| known(key)).collect();
    if origin.is_empty() {
        return;
    }
    origin.extend(output.title_text().map(|title| ("title".to_owned(), title.into())));
    let meta = result.meta.get_or_insert_default();
    meta.insert(ORIGIN_KEY.to_owned(), Value::Object(origin));
}

fn content_blocks(
    output: &Output,
    source: &ToolSource,
    blocks: ContentSupport,
) -> Vec<ContentBlock> {
    let said = block_metadata(output, source);
    // An empty text block is only sent if there is nothing else.
    let is_said = !output.as_text().is_empty() || output.attachments().is_empty();
    let texts = if is_said { text_blocks(output.as_text(), &said) } else { Vec::new() };
    texts.into_iter().chain(attachment_blocks(output, &said, blocks)).collect()
}

/// Returns true if another server sent metadata for its blocks.
pub(super) fn has_block_metadata(output: &Output, source: &ToolSource) -> bool {
    !block_metadata(output, source).is_empty()
}

/// Returns the metadata that another server sent for its blocks.
fn block_metadata<'o>(output: &'o Output, source: &ToolSource) -> Vec<&'o Value> {
    let blocks = match source {
        ToolSource::Mcp { .. } => {
            output.metadata_map().and_then(|facts| facts.get(BLOCKS_KEY)?.as_array())
        }
        _ => None,
    };
    blocks.into_iter().flatten().collect()
}

/// Splits the text into blocks. A block that had annotations becomes a block of its own again if
/// its text is still at its place.
fn text_blocks(text: &str, said: &[&Value]) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    let mut told = 0;
    let plain = |from: usize, to: usize| text.get(from..to).map(ContentBlock::text);
    for one in said {
        let Some(annotations) = parse_annotations(one) else { continue };
        let place = one.pointer("/text/0").and_then(Value::as_u64).map(usize::try_from);
        let (Some(Ok(at)), Some(words)) = (place, one.pointer("/text/1").and_then(Value::as_str))
        else {
            continue;
        };
        let rest = text.get(at..).and_then(|rest| rest.strip_prefix(words));
        if at < told || !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n')) {
            continue;
        }
        if at > told {
            blocks.extend(plain(told, at - 1));
        }
        blocks.push(ContentBlock::Text(TextContent::new(words).with_annotations(annotations)));
        told = at + words.len() + 1;
    }
    if told <= text.len() {
        blocks.extend(plain(told, text.len()));
    }
    blocks
}

fn parse_annotations(said: &Value) -> Option<Annotations> {
    Annotations::deserialize(said.get("annotations")?).ok()
}

fn attachment_blocks<'o>(
    output: &'o Output,
    said: &[&'o Value],
    blocks: ContentSupport,
) -> impl Iterator<Item = ContentBlock> + use<'o> {
    let at = |one: &&'o Value| one.get("attachment")?.as_u64().map(|at| (at, *one));
    let said: HashMap<u64, &Value> = said.iter().filter_map(at).collect();
    let each = (0_u64..).zip(output.attachments());
    each.map(move |(at, one)| {
        attachment_block(at, one, said.get(&at).copied().unwrap_or(&Value::Null), blocks)
    })
}

fn attachment_block(
    at: u64,
    attachment: &Attachment,
    said: &Value,
    blocks: ContentSupport,
) -> ContentBlock {
    let mime = &attachment.mime;
    let is_known = said.get("mimeType").is_none_or(|said| !said.is_null());
    let name = attachment.name.clone().unwrap_or_else(|| format!("attachment-{}", at + 1));
    let annotations = parse_annotations(said);
    match &attachment.data {
        // Only an embedded resource has a URI.
        AttachmentData::Bytes(bytes)
            if mime.starts_with("image/") && attachment.origin.is_none() =>
        {
            let mut image = ImageContent::new(STANDARD.encode(bytes), mime);
            image.annotations = annotations;
            ContentBlock::Image(image)
        }
        AttachmentData::Bytes(bytes)
            if mime.starts_with("audio/")
                && attachment.origin.is_none()
                && blocks != ContentSupport::Basic =>
        {
            let mut audio = AudioContent::new(STANDARD.encode(bytes), mime);
            audio.annotations = annotations;
            ContentBlock::Audio(audio)
        }
        AttachmentData::Bytes(bytes) => {
            let own = || format!("attachment:{}", percent_encode(&name));
            let uri = attachment.origin.clone().unwrap_or_else(own);
            let blob = ResourceContents::blob(STANDARD.encode(bytes), uri);
            let blob = if is_known { blob.with_mime_type(mime) } else { blob };
            let mut resource = EmbeddedResource::new(blob);
            resource.annotations = annotations;
            ContentBlock::Resource(resource)
        }
        AttachmentData::Uri(uri) if blocks != ContentSupport::All => {
            let name = attachment.title.as_ref().unwrap_or(&name);
            let about = attachment.description.as_ref().map(|about| format!(" ({about})"));
            let link = format!("{name}: {uri}{}", about.unwrap_or_default());
            let mut text = TextContent::new(link);
            text.annotations = annotations;
            ContentBlock::Text(text)
        }
        AttachmentData::Uri(uri) => {
            let mut link = Resource::new(uri, name);
            link.mime_type = is_known.then(|| mime.clone());
            (link.title, link.description) =
                (attachment.title.clone(), attachment.description.clone());
            link.size = attachment.size;
            link.annotations = annotations;
            link.icons = said.get("icons").and_then(|icons| Vec::deserialize(icons).ok());
            ContentBlock::resource_link(link)
        }
    }
}

/// Percent-encodes a name for use in a URI.
fn percent_encode(name: &str) -> String {
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

/// Returns the structured content. It is always sent if there is an output schema. Otherwise it is
/// omitted for truncated output, because clients show it to the model as well.
fn structured_content(
    output: &Output,
    shortened: bool,
    definition: &Definition,
    era: ProtocolEra,
) -> Option<Value> {
    if shortened && definition.output.is_none() {
        return None;
    }
    let value = output.to_structured()?;
    let wrapped = provider::wraps_result(definition) || !value.is_object();
    Some(if era == ProtocolEra::Legacy && wrapped { json!({ "result": value }) } else { value })
}

#[cfg(test)]
mod tests {
    use tool_sdk_core::{CallId, Schema, ToolError, ToolName};

    use super::*;

    // F132
    #[test]
    fn attachments_become_blocks() {
        let output = Output::text("see")
            .attach(Attachment::bytes("image/png", vec![1]))
            .attach(Attachment::bytes("audio/wav", vec![2]))
            .attach(Attachment::bytes("application/pdf", vec![3]).with_name("a b.pdf"))
            .attach(Attachment::uri("text/html", "https://example.com/"))
            .attach(Attachment::bytes("font/ttf", vec![4]).with_origin("mem://b").with_name("b"));
        assert_eq!(
            json!(content_blocks(&output, &ToolSource::Native, ContentSupport::All)),
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
        let said = "application/octet-stream";
        let output = Output::default()
            .attach(Attachment::bytes(said, vec![1]).with_name("b"))
            .attach(Attachment::uri(said, "mem://c").with_name("c"));
        assert_eq!(
            json!(content_blocks(&output, &ToolSource::Native, ContentSupport::All)),
            json!([
                { "type": "resource",
                  "resource": { "uri": "attachment:b", "mimeType": said, "blob": "AQ==" } },
                { "type": "resource_link", "uri": "mem://c", "name": "c", "mimeType": said },
            ])
        );
        let nothing = content_blocks(&Output::default(), &ToolSource::Native, ContentSupport::All);
        assert_eq!(json!(nothing), json!([{ "type": "text", "text": "" }]));
    }

    // Clients reject a result with an unknown block type.
    #[test]
    fn older_peers_get_the_blocks_that_they_know() {
        let link = Attachment::uri("text/html", "https://example.com/").with_name("home");
        let output = Output::text("see").attach(Attachment::bytes("audio/wav", vec![2]));
        let output = output.attach(link);
        let told = |version: &ProtocolVersion| {
            let told = json!(content_blocks(
                &output,
                &ToolSource::Native,
                ContentSupport::from_version(version)
            ));
            (told[1].clone(), told[2].clone())
        };
        let text = json!({ "type": "text", "text": "home: https://example.com/" });
        let blob = json!({ "type": "resource", "resource": {
            "uri": "attachment:attachment-1", "mimeType": "audio/wav", "blob": "Ag==",
        } });
        assert_eq!(told(&ProtocolVersion::V_2024_11_05), (blob, text.clone()));
        let (sound, link) = told(&ProtocolVersion::V_2025_03_26);
        assert_eq!((&sound["type"], link), (&json!("audio"), text));
        for version in [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2026_07_28] {
            assert_eq!(told(&version).1["type"], "resource_link", "{version}");
        }
    }

    // F8: metadata of blocks from another server is preserved.
    #[test]
    fn annotations_of_blocks_stay_with_them() {
        let user = json!({ "audience": ["user"], "priority": 0.5 });
        let blocks = json!([
            { "block": 1, "annotations": user, "text": [4, "two\nlines"] },
            { "block": 3, "annotations": { "lastModified": "2026-01-01T00:00:00Z" },
              "icons": [{ "src": "a:c" }], "mimeType": null, "attachment": 0 },
        ]);
        let output = |text: &str| {
            Output::text(text)
                .metadata(BLOCKS_KEY, blocks.clone())
                .attach(Attachment::uri("application/octet-stream", "a:b").with_name("n"))
        };
        let source = ToolSource::Mcp { server: "s".to_owned() };
        let text = |text: &str| json!({ "type": "text", "text": text });
        let link = json!({ "type": "resource_link", "uri": "a:b", "name": "n",
            "icons": [{ "src": "a:c" }],
            "annotations": { "lastModified": "2026-01-01T00:00:00Z" } });
        let mut two = text("two\nlines");
        two["annotations"] = user.clone();
        for (words, expected) in [
            ("one\ntwo\nlines\nthree", json!([text("one"), two, text("three"), link])),
            ("one\ntwo\nlines", json!([text("one"), two, link])),
            // Text that a hook or truncation changed loses its annotations.
            ("one\ntwo\nli", json!([text("one\ntwo\nli"), link])),
            ("one, two\nlines", json!([text("one, two\nlines"), link])),
            ("one\ntwo\nlines3", json!([text("one\ntwo\nlines3"), link])),
        ] {
            assert_eq!(
                json!(content_blocks(&output(words), &source, ContentSupport::All)),
                expected
            );
        }
        let native = json!(content_blocks(
            &output("one\ntwo\nlines"),
            &ToolSource::Native,
            ContentSupport::All
        ));
        assert_eq!(native[0], text("one\ntwo\nlines"));
        assert_eq!(native[1].get("annotations"), None);
    }

    // Output of a failed tool is sent in both eras.
    #[test]
    fn a_failure_keeps_what_it_gave() {
        let given = Output::default().structured(json!({ "n": 1 }));
        let given = given.attach(Attachment::bytes("image/png", vec![1]));
        let tool = Definition::new(ToolName::from_static("t"), "T.", Schema::default());
        for era in [ProtocolEra::Legacy, ProtocolEra::Modern] {
            let failed = ToolError::failed("no luck").with_output(given.clone());
            let outcome = Outcome::new(CallId::generate(), Err(failed));
            let told = json!(to_call_result(
                outcome,
                &tool,
                (era, ContentSupport::All),
                UiSupport::TextOnly
            ));
            assert_eq!(told["content"][0]["text"], "no luck");
            assert_eq!(told["content"][1]["mimeType"], "image/png");
            assert_eq!(
                (&told["structuredContent"], &told["isError"]),
                (&json!({ "n": 1 }), &json!(true))
            );
        }
    }

    // The value of an error need not match the output schema.
    #[test]
    fn a_failure_is_not_held_against_the_schema_of_results() {
        let mut tool = Definition::new(ToolName::from_static("t"), "T.", Schema::default());
        tool.output = Some(Schema::default());
        let given = Output::default().structured(json!({ "n": 1 }));
        let failed = Err(ToolError::failed("no luck").with_output(given));
        let outcome = Outcome::new(CallId::generate(), failed);
        let told = json!(to_call_result(
            outcome,
            &tool,
            (ProtocolEra::Legacy, ContentSupport::All),
            UiSupport::TextOnly
        ));
        assert_eq!(told.get("structuredContent"), None, "{told}");
    }

    #[test]
    fn only_old_peers_get_their_lists_wrapped() {
        let list = Output::json(&[1, 2]).unwrap();
        let tool = Definition::new(ToolName::from_static("t"), "T.", Schema::default());
        let structured = |cut, era| structured_content(&list, cut, &tool, era);
        assert_eq!(structured(false, ProtocolEra::Legacy), Some(json!({ "result": [1, 2] })));
        assert_eq!(structured(false, ProtocolEra::Modern), Some(json!([1, 2])));
        assert_eq!(structured(true, ProtocolEra::Modern), None);
    }

    // F190: clients find title and metadata of a result or an error of another server.
    #[test]
    fn results_of_other_servers_name_their_origin() {
        let output = Output::text("x")
            .title("s.echo")
            .metadata("server", "s")
            .metadata("error_type", "timeout")
            .metadata("_meta", json!({ "k": 1 }));
        let mut result = CallToolResult::success(Vec::new());
        add_origin(&mut result, &output, &ToolSource::default());
        assert!(result.meta.is_none());
        add_origin(&mut result, &output, &ToolSource::Mcp { server: "s".to_owned() });
        let expected = json!({ "server": "s", "error_type": "timeout", "title": "s.echo" });
        assert_eq!(json!(result.meta)[ORIGIN_KEY], expected);
    }
}
