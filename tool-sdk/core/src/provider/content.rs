//! Converts the output of a call into message parts of a provider.
//!
//! **Invariant:** nothing is dropped silently. Content that a format does not support is named in a
//! text part.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Dialect;
use crate::content::{Attachment, AttachmentData, Output};

/// The image types that every provider with image support accepts.
const IMAGE_MIME_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const PDF_MIME_TYPE: &str = "application/pdf";

/// Returns the output as message parts in `dialect`: its text first, then its attachments.
///
/// Content that the format does not support is named in a text part. In the formats of OpenAI the
/// parts belong to a user message, because a tool message only takes text.
///
/// # Examples
///
/// ```
/// use tool_sdk::provider::{self, Dialect};
/// use tool_sdk::{Attachment, Output};
///
/// let output = Output::text("a dot").attach(Attachment::bytes("image/png", vec![1, 2, 3]));
/// let parts = provider::content_parts(&output, Dialect::Anthropic);
/// assert_eq!(parts[0]["text"], "a dot");
/// assert_eq!(parts[1]["source"]["data"], "AQID");
/// ```
#[must_use]
pub fn content_parts(output: &Output, dialect: Dialect) -> Vec<Value> {
    let attachments = output.attachments();
    let text = output.as_text();
    // An empty text part is only sent if there is nothing else.
    let text = (!text.is_empty() || attachments.is_empty()).then(|| text_part(text, dialect));
    text.into_iter().chain(attachment_parts(attachments, dialect)).collect()
}

/// Returns the attachments as message parts in `dialect`; what the format does not support is named
/// in a text part.
pub(super) fn attachment_parts(
    attachments: &[Attachment],
    dialect: Dialect,
) -> impl Iterator<Item = Value> {
    attachments.iter().map(move |it| {
        attachment_part(it, dialect).unwrap_or_else(|| text_part(&describe_attachment(it), dialect))
    })
}

fn text_part(text: &str, dialect: Dialect) -> Value {
    match dialect {
        Dialect::GeminiGenerate => json!({ "text": text }),
        Dialect::OpenAiResponses => json!({ "type": "input_text", "text": text }),
        _ => json!({ "type": "text", "text": text }),
    }
}

/// Describes an attachment in words.
fn describe_attachment(attachment: &Attachment) -> String {
    let name = attachment.name.as_deref().unwrap_or("without a name");
    let mime = &attachment.mime;
    match &attachment.data {
        AttachmentData::Bytes(bytes) => {
            format!("[attachment {name}, {mime}, {} bytes: it cannot be shown here]", bytes.len())
        }
        AttachmentData::Uri(uri) => format!("[attachment {name}, {mime}: {uri}]"),
    }
}

fn attachment_part(attachment: &Attachment, dialect: Dialect) -> Option<Value> {
    match dialect {
        Dialect::OpenAi | Dialect::OpenAiStrict | Dialect::OpenRouter => openai_part(attachment),
        Dialect::Anthropic => anthropic_part(attachment),
        Dialect::OpenAiResponses => responses_part(attachment),
        Dialect::Gemini => interactions_part(attachment),
        Dialect::GeminiGenerate => Some(generate_part(attachment)),
        Dialect::Mcp | Dialect::ToolsJson => Some(mcp_part(attachment)),
        Dialect::Portable => None,
    }
}

fn openai_part(attachment: &Attachment) -> Option<Value> {
    let mime = attachment.mime.as_str();
    let is_image = IMAGE_MIME_TYPES.contains(&mime);
    match &attachment.data {
        AttachmentData::Uri(uri) if is_image => Some(json!({
            "type": "image_url", "image_url": { "url": uri },
        })),
        AttachmentData::Bytes(bytes) if is_image => Some(json!({
            "type": "image_url", "image_url": { "url": data_url(mime, bytes) },
        })),
        AttachmentData::Bytes(bytes) if mime == PDF_MIME_TYPE => Some(json!({
            "type": "file",
            "file": { "filename": attachment.name, "file_data": data_url(mime, bytes) },
        })),
        AttachmentData::Bytes(bytes) => {
            let format = match mime {
                "audio/wav" => "wav",
                "audio/mpeg" | "audio/mp3" => "mp3",
                _ => return None,
            };
            let data = STANDARD.encode(bytes);
            Some(
                json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } }),
            )
        }
        AttachmentData::Uri(_) => None,
    }
}

fn anthropic_part(attachment: &Attachment) -> Option<Value> {
    let mime = attachment.mime.as_str();
    let kind = match mime {
        PDF_MIME_TYPE => "document",
        mime if IMAGE_MIME_TYPES.contains(&mime) => "image",
        _ => return None,
    };
    let source = match &attachment.data {
        AttachmentData::Uri(uri) => json!({ "type": "url", "url": uri }),
        AttachmentData::Bytes(bytes) => {
            json!({ "type": "base64", "media_type": mime, "data": STANDARD.encode(bytes) })
        }
    };
    Some(json!({ "type": kind, "source": source }))
}

fn responses_part(attachment: &Attachment) -> Option<Value> {
    let mime = attachment.mime.as_str();
    let is_image = IMAGE_MIME_TYPES.contains(&mime);
    match &attachment.data {
        AttachmentData::Uri(uri) if is_image => {
            Some(json!({ "type": "input_image", "image_url": uri, "detail": "auto" }))
        }
        AttachmentData::Bytes(bytes) if is_image => {
            let url = data_url(mime, bytes);
            Some(json!({ "type": "input_image", "image_url": url, "detail": "auto" }))
        }
        AttachmentData::Uri(uri) if mime == PDF_MIME_TYPE => {
            Some(json!({ "type": "input_file", "file_url": uri }))
        }
        AttachmentData::Bytes(bytes) if mime == PDF_MIME_TYPE => Some(json!({
            "type": "input_file",
            "filename": attachment.name.as_deref().unwrap_or("document.pdf"),
            "file_data": data_url(mime, bytes),
        })),
        _ => None,
    }
}

fn interactions_part(attachment: &Attachment) -> Option<Value> {
    let mime = attachment.mime.as_str();
    let kind = match mime.split('/').next().unwrap_or_default() {
        "image" => "image",
        "audio" => "audio",
        "video" => "video",
        _ if mime == PDF_MIME_TYPE => "document",
        _ => return None,
    };
    Some(match &attachment.data {
        AttachmentData::Uri(uri) => json!({ "type": kind, "uri": uri, "mime_type": mime }),
        AttachmentData::Bytes(bytes) => {
            json!({ "type": kind, "data": STANDARD.encode(bytes), "mime_type": mime })
        }
    })
}

fn generate_part(attachment: &Attachment) -> Value {
    let mime = &attachment.mime;
    match &attachment.data {
        AttachmentData::Uri(uri) => json!({ "fileData": { "mimeType": mime, "fileUri": uri } }),
        AttachmentData::Bytes(bytes) => {
            json!({ "inlineData": { "mimeType": mime, "data": STANDARD.encode(bytes) } })
        }
    }
}

fn mcp_part(attachment: &Attachment) -> Value {
    let mime = &attachment.mime;
    let name = attachment.name.as_deref().unwrap_or("attachment");
    let kind = mime.split('/').next().unwrap_or_default();
    match &attachment.data {
        AttachmentData::Uri(uri) => {
            json!({ "type": "resource_link", "uri": uri, "name": name, "mimeType": mime })
        }
        AttachmentData::Bytes(bytes) if matches!(kind, "image" | "audio") => {
            json!({ "type": kind, "data": STANDARD.encode(bytes), "mimeType": mime })
        }
        AttachmentData::Bytes(bytes) => {
            let (uri, blob) = (format!("attachment:{name}"), STANDARD.encode(bytes));
            json!({ "type": "resource", "resource": { "uri": uri, "blob": blob, "mimeType": mime } })
        }
    }
}

/// Returns a `data:` URL.
fn data_url(mime: &str, bytes: &[u8]) -> String {
    format!("data:{mime};base64,{}", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image, a document, an image elsewhere, and something odd.
    fn output() -> Output {
        Output::text("see")
            .attach(Attachment::bytes("image/png", vec![1]))
            .attach(Attachment::bytes("application/pdf", vec![2]).with_name("a.pdf"))
            .attach(Attachment::uri("image/png", "https://example.com/b.png"))
            .attach(Attachment::bytes("application/zip", vec![3, 4]).with_name("c.zip"))
    }

    // F8: a result is serialised into the parts of each provider.
    #[test]
    fn attachments_become_parts() {
        let zip = "[attachment c.zip, application/zip, 2 bytes: it cannot be shown here]";
        let link = "https://example.com/b.png";
        let openai = json!([
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQ=="}},
            {"type": "file", "file": {
                "filename": "a.pdf", "file_data": "data:application/pdf;base64,Ag==",
            }},
            {"type": "image_url", "image_url": {"url": link}},
            {"type": "text", "text": zip},
        ]);
        let anthropic = json!([
            {"type": "text", "text": "see"},
            {"type": "image", "source": {
                "type": "base64", "media_type": "image/png", "data": "AQ==",
            }},
            {"type": "document", "source": {
                "type": "base64", "media_type": "application/pdf", "data": "Ag==",
            }},
            {"type": "image", "source": {"type": "url", "url": link}},
            {"type": "text", "text": zip},
        ]);
        let gemini = json!([
            {"text": "see"},
            {"inlineData": {"mimeType": "image/png", "data": "AQ=="}},
            {"inlineData": {"mimeType": "application/pdf", "data": "Ag=="}},
            {"fileData": {"mimeType": "image/png", "fileUri": link}},
            {"inlineData": {"mimeType": "application/zip", "data": "AwQ="}},
        ]);
        let mcp = json!([
            {"type": "text", "text": "see"},
            {"type": "image", "data": "AQ==", "mimeType": "image/png"},
            {"type": "resource", "resource": {
                "uri": "attachment:a.pdf", "blob": "Ag==", "mimeType": "application/pdf",
            }},
            {"type": "resource_link", "uri": link, "name": "attachment", "mimeType": "image/png"},
            {"type": "resource", "resource": {
                "uri": "attachment:c.zip", "blob": "AwQ=", "mimeType": "application/zip",
            }},
        ]);
        for (dialect, expected) in [
            (Dialect::OpenAi, &openai),
            (Dialect::OpenAiStrict, &openai),
            (Dialect::OpenRouter, &openai),
            (Dialect::Anthropic, &anthropic),
            (Dialect::GeminiGenerate, &gemini),
            (Dialect::Mcp, &mcp),
            (Dialect::ToolsJson, &mcp),
        ] {
            assert_eq!(json!(content_parts(&output(), dialect)), *expected, "{dialect}");
        }
        let portable = content_parts(&output(), Dialect::Portable);
        assert!(portable.iter().all(|part| part["type"] == "text"), "{portable:?}");
        assert_eq!(portable[3]["text"], format!("[attachment without a name, image/png: {link}]"));
    }

    #[test]
    fn there_is_a_part_even_when_there_is_nothing_to_say() {
        for dialect in Dialect::ALL {
            assert_eq!(content_parts(&Output::text(""), dialect).len(), 1, "{dialect}");
            let dot = Output::text("").attach(Attachment::bytes("image/png", vec![1]));
            assert_eq!(content_parts(&dot, dialect).len(), 1, "{dialect}");
        }
    }
}
