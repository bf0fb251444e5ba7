//! What became of a call, from the protocol's form into an [`Output`].
//!
//! Everything arrives: texts as the text for the model, images and links as attachments, the
//! structured value beside them. An attachment that stood before a text is named in the text
//! where it stood.
//!
//! **Invariant:** nothing hides in what is read, and nothing is endless. A text that is too
//! long is cut where all texts are; what is too much beside it is left out, and that is told.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::remote::RemoteResult;
use crate::content::{Attachment, Output};
use crate::permission::spelt;

/// How many bytes a value for programs may have.
const MOST_BYTES: usize = 4 << 20;

/// How many attachments a result may have.
const MOST_ATTACHMENTS: usize = 1000;

/// Base64 as it is written in the wild, with padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The result as an output, whether the tool failed or not. A structured value that is
/// `promised` to programs is there however long it is.
pub(super) fn output(result: RemoteResult, promised: bool) -> Output {
    let mut texts: Vec<String> = Vec::new();
    let mut attachments = Vec::new();
    let mut left_out = 0_usize;
    // The attachments that nothing in the text speaks of yet.
    let mut unnamed = Vec::new();
    for block in &result.content {
        match attachment(block) {
            Some(_) if attachments.len() == MOST_ATTACHMENTS => left_out += 1,
            Some(attachment) => {
                match description(block) {
                    Some(words) => {
                        texts.append(&mut unnamed);
                        texts.push(words);
                    }
                    None => unnamed.push(place(attachments.len(), &attachment)),
                }
                attachments.push(attachment);
            }
            None => {
                texts.append(&mut unnamed);
                texts.push(text(block));
            }
        }
    }
    if left_out > 0 {
        texts.push(format!("[{left_out} more attachments left out]"));
    }
    let structured = result.structured_content;
    let bytes = structured.as_ref().map_or(0, length);
    let fits = promised || bytes <= MOST_BYTES;
    if texts.is_empty() && attachments.is_empty() {
        // A structured value without words is what the model reads.
        texts.extend(structured.as_ref().map(Value::to_string));
    } else if !fits {
        texts.push(format!("[a structured value of {bytes} bytes left out]"));
    }
    let mut output = Output::text(readable(&texts.join("\n")));
    if let Some(value) = structured.filter(|_| fits) {
        output = output.structured(value);
    }
    let meta = result.meta.filter(|meta| !meta.is_empty()).map(Value::Object);
    if let Some(meta) = meta.filter(|meta| length(meta) <= MOST_BYTES) {
        output = output.metadata("_meta", meta);
    }
    attachments.into_iter().fold(output, Output::attach)
}

/// Where an attachment stood.
fn place(before: usize, attachment: &Attachment) -> String {
    let name = attachment.title.as_ref().or(attachment.name.as_ref()).unwrap_or(&attachment.mime);
    format!("[attachment {}: {name}]", before + 1)
}

/// How many bytes a value is long where it is written.
fn length(value: &Value) -> usize {
    value.to_string().len()
}

/// Words of a server with what hides in them spelt out.
fn readable(text: &str) -> String {
    spelt(&text.replace("\r\n", "\n")).into_owned()
}

/// The words of a block; one of a kind that nobody knows is shown as it came.
fn text(block: &Value) -> String {
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

/// What a server says of an attachment, for the model.
fn description(block: &Value) -> Option<String> {
    let words = block.get("description").and_then(Value::as_str)?;
    Some(format!("{}: {words}", name(block)?))
}

/// What an attachment is called.
fn name(block: &Value) -> Option<&str> {
    ["/title", "/name", "/uri"].into_iter().find_map(|path| block.pointer(path)?.as_str())
}

/// What goes beside the text. Bytes that are no base64 are no attachment.
fn attachment(block: &Value) -> Option<Attachment> {
    let field = |path: &str| block.pointer(path).and_then(Value::as_str);
    let bytes = |path| {
        let text = field(path)?;
        // Some break it into lines.
        match text.contains(|c: char| c.is_ascii_whitespace()) {
            true => BASE64.decode(text.split_ascii_whitespace().collect::<String>()).ok(),
            false => BASE64.decode(text).ok(),
        }
    };
    match field("/type")? {
        kind @ ("image" | "audio") => {
            let mime = field("/mimeType").map_or_else(|| format!("{kind}/*"), str::to_owned);
            Some(Attachment::bytes(mime, bytes("/data")?))
        }
        "resource" => {
            let mime = field("/resource/mimeType").unwrap_or("application/octet-stream");
            let uri = field("/resource/uri")?;
            let copy = Attachment::bytes(mime, bytes("/resource/blob")?);
            Some(copy.copied_from(uri).named(readable(uri)))
        }
        "resource_link" => {
            let mime = field("/mimeType").unwrap_or("application/octet-stream");
            let mut link = Attachment::uri(mime, field("/uri")?);
            link.name = field("/name").map(readable);
            link.title = field("/title").map(readable);
            link.description = field("/description").map(readable);
            link.size = block.get("size").and_then(Value::as_u64);
            Some(link)
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
        output(serde_json::from_value(result).unwrap(), false)
    }

    // F8
    #[test]
    fn everything_arrives() {
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
        let data: Vec<&Data> = output.attachments().iter().map(|one| &one.data).collect();
        let [a, b] = ["https://a/", "https://b/"].map(|uri| Data::Uri(uri.to_owned()));
        assert_eq!(data, [&Data::Bytes(vec![1]), &a, &b, &Data::Bytes(vec![2])]);
        let origins: Vec<_> =
            output.attachments().iter().map(|one| one.origin.as_deref()).collect();
        assert_eq!(origins, [None, None, None, Some("file:///b")]);
    }

    // MC4
    #[test]
    fn what_hides_in_a_result_is_spelt_out() {
        let output = read(json!({ "content": [
            { "type": "text", "text": "a\u{202e}b\u{1b}[2J\tc\r\nd" },
            { "type": "resource_link", "uri": "https://a/", "name": "x\u{200b}y" },
        ] }));
        assert_eq!(output.as_text(), "a\\u{202e}b\\x1b[2J\tc\nd");
        assert_eq!(output.attachments()[0].name.as_deref(), Some("x\\u{200b}y"));
    }

    #[test]
    fn nothing_beside_the_text_is_endless() {
        let text = json!({ "type": "text", "text": "hi" });
        let long = json!({ "x": "y".repeat(MOST_BYTES) });
        let output = read(json!({ "content": [text], "structuredContent": long, "_meta": long }));
        let told = format!("hi\n[a structured value of {} bytes left out]", MOST_BYTES + 8);
        assert_eq!(output.as_text(), told);
        assert!(output.to_structured().is_none() && output.metadata_map().is_none());
        let promised = json!({ "content": [text], "structuredContent": long });
        let promised = super::output(serde_json::from_value(promised).unwrap(), true);
        assert_eq!((promised.as_text(), promised.to_structured()), ("hi", Some(long.clone())));
        // The model reads it, as far as it reads any text.
        let output = read(json!({ "content": [], "structuredContent": long }));
        assert_eq!((output.as_text(), output.to_structured()), (&*long.to_string(), None));

        let link = json!({ "type": "resource_link", "uri": "https://a/", "name": "a" });
        let output = read(json!({ "content": vec![link; 4000] }));
        assert_eq!(output.attachments().len(), MOST_ATTACHMENTS);
        assert_eq!(output.as_text(), "[3000 more attachments left out]");
    }

    #[test]
    fn base64_is_read_as_it_is_written() {
        for (data, expected) in
            [("AQID", 3), ("AQI=", 2), ("AQI", 2), ("AQ\r\nID\n", 3), ("AQJ", 2)]
        {
            let image = json!({ "type": "image", "data": data, "mimeType": "image/png" });
            let output = read(json!({ "content": [image] }));
            let Data::Bytes(bytes) = &output.attachments()[0].data else { panic!("{data}") };
            assert_eq!(bytes.len(), expected, "{data}");
        }
    }

    #[test]
    fn all_that_is_said_of_a_link_stays() {
        let link = json!({ "type": "resource_link", "uri": "a:b", "name": "n", "title": "T",
            "description": "D.", "size": 7 });
        let output = read(json!({ "content": [link] }));
        let one = &output.attachments()[0];
        assert_eq!(
            (one.name.as_deref(), one.title.as_deref(), one.description.as_deref(), one.size),
            (Some("n"), Some("T"), Some("D."), Some(7))
        );
        assert_eq!(output.as_text(), "T: D.");
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
