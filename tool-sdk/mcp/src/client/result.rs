//! Converts the result of a call from the protocol's form into an [`Output`].
//!
//! Texts become the text for the model, images and links become attachments, and the structured
//! value stays beside them. An attachment before a text is named in the text at its position.
//!
//! **Invariant:** invisible characters in text are escaped, and everything is bounded. Long text is
//! truncated later like any other output; what else exceeds a limit is dropped with a note.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};
use tool_sdk_core::{Attachment, Output, internal::spell_hidden};

use super::remote::RemoteResult;

/// The longest structured value, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// The most attachments of a result.
const MAX_ATTACHMENTS: usize = 1000;

/// Base64 that tolerates missing padding and trailing bits.
const fn base64_engine(alphabet: &Alphabet) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config)
}

const BASE64: GeneralPurpose = base64_engine(&STANDARD);
const BASE64_URL_SAFE: GeneralPurpose = base64_engine(&URL_SAFE);

/// The MIME type of bytes without a declared type (RFC 2046, 4.5.1).
const UNKNOWN_MIME: &str = "application/octet-stream";

/// Members of a block that are passed to programs beside the attachments.
const BLOCK_METADATA_KEYS: [&str; 3] = ["annotations", "icons", "_meta"];

/// The metadata key for them.
pub(crate) const BLOCKS_KEY: &str = "blocks";

/// Converts a result, whether the tool failed or not. A `promised` structured value, which the
/// output schema announces, is kept even if it is too long.
pub(super) fn convert_result(result: RemoteResult, promised: bool) -> Output {
    let mut texts = JoinedTexts::default();
    let mut attachments = Vec::new();
    let mut left_out = 0_usize;
    let mut blocks = Vec::new();
    // Markers of attachments that the text has not named yet.
    let mut unnamed = Vec::new();
    for (at, block) in result.content.iter().enumerate() {
        let mut said = block_metadata(block);
        match parse_attachment(block) {
            Some(_) if attachments.len() == MAX_ATTACHMENTS => left_out += 1,
            Some(attachment) => {
                match block_description(block) {
                    Some(words) => {
                        unnamed.drain(..).for_each(|name| texts.push(name));
                        texts.push(words);
                    }
                    None => unnamed.push(attachment_marker(attachments.len(), &attachment)),
                }
                if attachment.mime == UNKNOWN_MIME && !has_mime_type(block) {
                    said.insert("mimeType".to_owned(), Value::Null);
                }
                if !said.is_empty() {
                    said.insert("attachment".to_owned(), attachments.len().into());
                }
                attachments.push(attachment);
            }
            None => {
                unnamed.drain(..).for_each(|name| texts.push(name));
                let words = block_text(block);
                if !said.is_empty() {
                    let place = json!([texts.next_offset(), clean_text(&words)]);
                    said.insert("text".to_owned(), place);
                }
                texts.push(words);
            }
        }
        if !said.is_empty() {
            said.insert("block".to_owned(), at.into());
            blocks.push(Value::Object(said));
        }
    }
    if left_out > 0 {
        texts.push(format!("[{left_out} more attachments left out]"));
    }
    let structured = result.structured_content;
    let bytes = structured.as_ref().map_or(0, encoded_len);
    let fits = promised || bytes <= MAX_BYTES;
    if texts.is_empty() && attachments.is_empty() {
        // A structured value without text is what the model reads.
        structured.iter().for_each(|value| texts.push(value.to_string()));
    } else if !fits {
        texts.push(format!("[a structured value of {bytes} bytes left out]"));
    }
    let mut output = Output::text(texts.0.unwrap_or_default());
    if let Some(value) = structured.filter(|_| fits) {
        output = output.structured(value);
    }
    let meta = result.meta.filter(|meta| !meta.is_empty()).map(Value::Object);
    if let Some(meta) = meta.filter(|meta| encoded_len(meta) <= MAX_BYTES) {
        output = output.metadata("_meta", meta);
    }
    let blocks = (!blocks.is_empty()).then(|| Value::Array(blocks));
    if let Some(blocks) = blocks.filter(|it| encoded_len(it) <= MAX_BYTES) {
        output = output.metadata(BLOCKS_KEY, blocks);
    }
    attachments.into_iter().fold(output, Output::attach)
}

/// The texts of a result, joined by newlines.
#[derive(Default)]
struct JoinedTexts(Option<String>);

impl JoinedTexts {
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The offset at which the next text will start.
    fn next_offset(&self) -> usize {
        self.0.as_ref().map_or(0, |text| text.len() + "\n".len())
    }

    fn push(&mut self, next: impl AsRef<str>) {
        let next = clean_text(next.as_ref());
        match &mut self.0 {
            Some(text) => {
                text.push('\n');
                text.push_str(&next);
            }
            None => self.0 = Some(next),
        }
    }
}

/// Returns the metadata of a block and of the resource in it, for programs.
fn block_metadata(block: &Value) -> Map<String, Value> {
    let said = |of: &Value| -> Map<String, Value> {
        let said = BLOCK_METADATA_KEYS
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), of.get(key)?.clone())));
        said.collect()
    };
    let mut all = said(block);
    let resource = block.get("resource").map(said).filter(|said| !said.is_empty());
    all.extend(resource.map(|said| ("resource".to_owned(), Value::Object(said))));
    all
}

/// Whether a block declares a MIME type.
fn has_mime_type(block: &Value) -> bool {
    let mut said = ["/mimeType", "/resource/mimeType"].into_iter();
    said.any(|path| block.pointer(path).and_then(Value::as_str).is_some_and(|it| !it.is_empty()))
}

/// Returns the marker that stands in the text for an attachment.
fn attachment_marker(before: usize, attachment: &Attachment) -> String {
    let name = attachment.title.as_ref().or(attachment.name.as_ref()).unwrap_or(&attachment.mime);
    format!("[attachment {}: {name}]", before + 1)
}

/// The length of a value as JSON, in bytes.
fn encoded_len(value: &Value) -> usize {
    value.to_string().len()
}

/// Normalizes line ends and escapes invisible characters.
fn clean_text(text: &str) -> String {
    spell_hidden(&text.replace("\r\n", "\n")).into_owned()
}

/// Returns the text of a block; a block of an unknown type is shown as JSON.
fn block_text(block: &Value) -> String {
    let field = |path: &str| block.pointer(path).and_then(Value::as_str);
    let words = match field("/type") {
        Some("text") => field("/text").map(str::to_owned),
        Some("resource") => field("/resource/text").map(|text| match field("/resource/uri") {
            Some(uri) => {
                let kind = field("/resource/mimeType").map(|kind| format!(" ({kind})"));
                format!("{uri}{}:\n{text}", kind.unwrap_or_default())
            }
            None => text.to_owned(),
        }),
        _ => None,
    };
    words.unwrap_or_else(|| block.to_string())
}

/// Returns the server's description of an attachment, for the model.
fn block_description(block: &Value) -> Option<String> {
    let words = block.get("description").and_then(Value::as_str)?;
    Some(format!("{}: {words}", block_name(block)?))
}

/// Returns the title, name or URI of a block.
fn block_name(block: &Value) -> Option<&str> {
    ["/title", "/name", "/uri"].into_iter().find_map(|path| block.pointer(path)?.as_str())
}

/// Returns the attachment in a block; data that is not valid base64 is none.
fn parse_attachment(block: &Value) -> Option<Attachment> {
    let field = |path: &str| block.pointer(path).and_then(Value::as_str);
    let kind_at = |path: &str| field(path).filter(|mime| !mime.is_empty());
    match field("/type")? {
        kind @ ("image" | "audio") => {
            let (said, bytes) = decode_base64(field("/data")?)?;
            let mime = kind_at("/mimeType").or(said).or_else(|| detect_mime(&bytes));
            let mime = mime.map_or_else(|| format!("{kind}/*"), str::to_owned);
            Some(Attachment::bytes(mime, bytes))
        }
        "resource" => {
            let (said, bytes) = decode_base64(field("/resource/blob")?)?;
            let mime = kind_at("/resource/mimeType").or(said).unwrap_or(UNKNOWN_MIME);
            let copy = Attachment::bytes(mime, bytes);
            Some(match field("/resource/uri") {
                Some(uri) => copy.with_origin(uri).with_name(clean_text(uri)),
                None => copy,
            })
        }
        "resource_link" => {
            let mime = kind_at("/mimeType").unwrap_or(UNKNOWN_MIME);
            let mut link = Attachment::uri(mime, field("/uri")?);
            link.name = field("/name").map(clean_text);
            link.title = field("/title").map(clean_text);
            link.description = field("/description").map(clean_text);
            link.size = block.get("size").and_then(as_whole_number);
            Some(link)
        }
        _ => None,
    }
}

/// Decodes base64, also in a `data:` URL, whose MIME type is returned.
fn decode_base64(text: &str) -> Option<(Option<&str>, Vec<u8>)> {
    let (said, text) = match text.strip_prefix("data:").and_then(|it| it.split_once(";base64,")) {
        Some((said, text)) => (said.split(';').next().filter(|said| !said.is_empty()), text),
        None => (None, text),
    };
    // Some servers break it into lines.
    let text: Cow<'_, str> = match text.contains(|c: char| c.is_ascii_whitespace()) {
        true => text.split_ascii_whitespace().collect::<String>().into(),
        false => text.into(),
    };
    let is_of_urls = text.contains(['-', '_']);
    let engine = if is_of_urls { BASE64_URL_SAFE } else { BASE64 };
    Some((said, engine.decode(text.as_bytes()).ok()?))
}

/// Detects the MIME type of an image or sound by its first bytes.
fn detect_mime(bytes: &[u8]) -> Option<&'static str> {
    const BEGINNINGS: [(usize, &[u8], &str); 15] = [
        (0, b"\x89PNG\r\n\x1a\n", "image/png"),
        (0, b"\xff\xd8\xff", "image/jpeg"),
        (0, b"GIF87a", "image/gif"),
        (0, b"GIF89a", "image/gif"),
        (8, b"WEBP", "image/webp"),
        (4, b"ftypavif", "image/avif"),
        (4, b"ftypheic", "image/heic"),
        (0, b"II*\0", "image/tiff"),
        (0, b"MM\0*", "image/tiff"),
        (8, b"WAVE", "audio/wav"),
        (0, b"OggS", "audio/ogg"),
        (0, b"fLaC", "audio/flac"),
        (0, b"ID3", "audio/mpeg"),
        (4, b"ftypM4A", "audio/mp4"),
        (0, b"BM", "image/bmp"),
    ];
    let begins = |(at, beginning, _): &&(usize, &[u8], _)| {
        bytes.get(*at..).is_some_and(|it| it.starts_with(beginning))
    };
    BEGINNINGS.iter().find(begins).map(|(_, _, mime)| *mime)
}

/// Returns a whole number, also where it is written as `7.0`.
fn as_whole_number(value: &Value) -> Option<u64> {
    /// 2^53: above it doubles skip whole numbers.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let written = || value.as_f64().filter(|it| it.fract() == 0.0 && (0.0..MOST).contains(it));
    value.as_u64().or_else(|| written().map(|it| it as u64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_sdk_core::AttachmentData;

    use super::*;

    fn read(result: Value) -> Output {
        convert_result(serde_json::from_value(result).unwrap(), false)
    }

    // F8
    #[test]
    fn converts_all_kinds_of_blocks() {
        let output = read(json!({
            "content": [
                { "type": "text", "text": "one" },
                { "type": "image", "data": "AQ==", "mimeType": "image/png" },
                { "type": "resource_link", "uri": "https://a/", "name": "a", "mimeType": "text/html" },
                { "type": "resource_link", "uri": "https://b/", "name": "b", "description": "B." },
                { "type": "resource", "resource": {
                    "uri": "file:///n", "mimeType": "text/plain", "text": "two",
                } },
                { "type": "resource", "resource": { "text": "three" } },
                { "type": "resource", "resource": { "uri": "file:///b", "blob": "Ag==" } },
            ],
            "structuredContent": { "n": 1 },
            "_meta": { "cost": 2 },
        }));
        assert_eq!(
            output.as_text(),
            "one\n[attachment 1: image/png]\n[attachment 2: a]\nb: B.\n\
             file:///n (text/plain):\ntwo\nthree"
        );
        assert_eq!(output.to_structured(), Some(json!({ "n": 1 })));
        assert_eq!(output.metadata_map().unwrap()["_meta"]["cost"], 2);
        let data: Vec<&AttachmentData> = output.attachments().iter().map(|one| &one.data).collect();
        let [a, b] = ["https://a/", "https://b/"].map(|uri| AttachmentData::Uri(uri.to_owned()));
        assert_eq!(
            data,
            [&AttachmentData::Bytes(vec![1]), &a, &b, &AttachmentData::Bytes(vec![2])]
        );
        let origins: Vec<_> =
            output.attachments().iter().map(|one| one.origin.as_deref()).collect();
        assert_eq!(origins, [None, None, None, Some("file:///b")]);
    }

    // MC4
    #[test]
    fn escapes_invisible_characters() {
        let output = read(json!({ "content": [
            { "type": "text", "text": "a\u{202e}b\u{1b}[2J\tc\r\nd" },
            { "type": "resource_link", "uri": "https://a/", "name": "x\u{200b}y" },
        ] }));
        assert_eq!(output.as_text(), "a\\u{202e}b\\x1b[2J\tc\nd");
        assert_eq!(output.attachments()[0].name.as_deref(), Some("x\\u{200b}y"));
    }

    #[test]
    fn drops_oversized_values_and_attachments() {
        let text = json!({ "type": "text", "text": "hi" });
        let long = json!({ "x": "y".repeat(MAX_BYTES) });
        let output = read(json!({ "content": [text], "structuredContent": long, "_meta": long }));
        let told = format!("hi\n[a structured value of {} bytes left out]", MAX_BYTES + 8);
        assert_eq!(output.as_text(), told);
        assert!(output.to_structured().is_none() && output.metadata_map().is_none());
        let promised = json!({ "content": [text], "structuredContent": long });
        let promised = convert_result(serde_json::from_value(promised).unwrap(), true);
        assert_eq!((promised.as_text(), promised.to_structured()), ("hi", Some(long.clone())));
        // Without other text the model reads it; the pipeline truncates it.
        let output = read(json!({ "content": [], "structuredContent": long }));
        assert_eq!((output.as_text(), output.to_structured()), (&*long.to_string(), None));

        let link = json!({ "type": "resource_link", "uri": "https://a/", "name": "a" });
        let output = read(json!({ "content": vec![link; 4000] }));
        assert_eq!(output.attachments().len(), MAX_ATTACHMENTS);
        assert_eq!(output.as_text(), "[3000 more attachments left out]");
    }

    #[test]
    fn decodes_lenient_base64() {
        for (data, expected) in
            [("AQID", 3), ("AQI=", 2), ("AQI", 2), ("AQ\r\nID\n", 3), ("AQJ", 2), ("-_8=", 2)]
        {
            let image = json!({ "type": "image", "data": data, "mimeType": "image/png" });
            let output = read(json!({ "content": [image] }));
            let AttachmentData::Bytes(bytes) = &output.attachments()[0].data else {
                panic!("{data}")
            };
            assert_eq!(bytes.len(), expected, "{data}");
        }
    }

    // F8
    #[test]
    fn detects_mime_types() {
        for (block, expected) in [
            (json!({ "type": "image", "data": "data:image/webp;q=1;base64,AQ==" }), "image/webp"),
            (json!({ "type": "image", "data": "data:;base64,AQ==" }), "image/*"),
            (json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "" }), "image/png"),
            (json!({ "type": "image", "data": "AAAAGGZ0eXBoZWlj" }), "image/heic"),
            (json!({ "type": "audio", "data": "T2dnUw==" }), "audio/ogg"),
            (json!({ "type": "audio", "data": "AQ==" }), "audio/*"),
            (json!({ "type": "resource", "resource": { "blob": "AQ==" } }), UNKNOWN_MIME),
            (
                json!({ "type": "resource", "resource": { "mimeType": "a/b", "blob": "AQ==" } }),
                "a/b",
            ),
        ] {
            let output = read(json!({ "content": [block] }));
            let [one] = output.attachments() else { panic!("{block}") };
            assert!(matches!(&one.data, AttachmentData::Bytes(_)), "{block}");
            assert_eq!((one.mime.as_str(), output.as_text()), (expected, ""), "{block}");
            assert_eq!(one.origin, None);
        }
    }

    // F8
    #[test]
    fn block_metadata_is_kept_for_programs() {
        let output = read(json!({ "content": [
            { "type": "text", "text": "plain" },
            { "type": "text", "text": "hi", "annotations": { "audience": ["user"] } },
            { "type": "resource_link", "uri": "a:b", "name": "n", "icons": [{ "src": "a:c" }] },
            { "type": "resource", "resource": { "uri": "a:b", "text": "x", "_meta": { "k": 1 } } },
        ] }));
        assert_eq!(
            output.metadata_map().unwrap()["blocks"],
            json!([
                { "block": 1, "annotations": { "audience": ["user"] }, "text": [6, "hi"] },
                { "block": 2, "icons": [{ "src": "a:c" }], "mimeType": null, "attachment": 0 },
                { "block": 3, "resource": { "_meta": { "k": 1 } }, "text": [27, "a:b:\nx"] },
            ])
        );
        let long = json!({ "type": "text", "text": "", "_meta": { "x": "y".repeat(MAX_BYTES) } });
        assert_eq!(read(json!({ "content": [long] })).metadata_map(), None);
    }

    #[test]
    fn keeps_all_fields_of_a_resource_link() {
        let link = json!({ "type": "resource_link", "uri": "a:b", "name": "n", "title": "T",
            "description": "D.", "size": 7 });
        let output = read(json!({ "content": [link] }));
        let one = &output.attachments()[0];
        assert_eq!(
            (one.name.as_deref(), one.title.as_deref(), one.description.as_deref(), one.size),
            (Some("n"), Some("T"), Some("D."), Some(7))
        );
        assert_eq!(output.as_text(), "T: D.");
        for (size, expected) in [
            (json!(7.0), Some(7)),
            (json!(u64::MAX), Some(u64::MAX)),
            (json!(7.5), None),
            (json!(-1.0), None),
            (json!(1e300), None),
        ] {
            let link = json!({ "type": "resource_link", "uri": "a:b", "name": "n", "size": size });
            assert_eq!(read(json!({ "content": [link] })).attachments()[0].size, expected);
        }
    }

    #[test]
    fn shows_unknown_blocks_as_json() {
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
