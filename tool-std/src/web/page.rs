//! A response as what the model reads: text, an image, or a PDF.

use std::sync::Arc;

use tool_sdk::net::WebResponse;
use tool_sdk::{Attachment, Context, ToolError};

use super::charset::decode_text;
use super::html::{HtmlText, HtmlTextStyle, convert_html};
use super::pdf;

/// What the model reads of a response.
#[derive(Debug)]
pub(super) struct PageContent {
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// What the model should know about how the text was made.
    pub(super) note: Option<&'static str>,
    pub(super) attachment: Option<Attachment>,
}

/// The form that the model asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageFormat {
    Markdown,
    Text,
    /// As the server sent it.
    Raw,
}

/// Media types that are text without a `text/` in front.
const TEXT_TYPES: [&str; 12] = [
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/sql",
    "application/toml",
    "application/typescript",
    "application/x-javascript",
    "application/x-ndjson",
    "application/xml",
    "application/yaml",
];

impl PageContent {
    /// Reads a response.
    ///
    /// # Errors
    ///
    /// Fails for content that is neither text nor an image nor a PDF.
    pub(super) async fn read(
        response: &WebResponse,
        format: PageFormat,
        cx: &Context,
    ) -> Result<Self, ToolError> {
        let content_type = response.header("content-type").unwrap_or_default().to_owned();
        let media_type = media_type(&content_type, response.body());
        match &*media_type {
            "application/pdf" => Ok(read_pdf(response).await),
            "image/gif" | "image/jpeg" | "image/png" | "image/webp" => {
                Ok(attach(response, &media_type, "image", None))
            }
            "text/html" | "application/xhtml+xml" if format != PageFormat::Raw => {
                let (body, url) = (Arc::clone(response.body()), response.url().to_string());
                let style = match format {
                    PageFormat::Text => HtmlTextStyle::Plain,
                    _ => HtmlTextStyle::Markdown,
                };
                // A large document takes a while.
                let page = cx.run_blocking(move |_| {
                    Ok(convert_html(&decode_text(&body, &content_type), &url, style))
                });
                let HtmlText { title, text, is_flat } = page.await?;
                let note =
                    is_flat.then_some("The page is too large or too deep for its structure.");
                Ok(Self { title, text, note, attachment: None })
            }
            text if is_text(text) => Ok(Self::plain(decode_text(response.body(), &content_type))),
            other => Err(ToolError::failed(format_args!(
                "`{}` is {}, which cannot be read here",
                response.url(),
                if other.is_empty() {
                    "of an unknown type".into()
                } else {
                    other.escape_debug().to_string()
                }
            ))
            .hint("text, HTML, JSON, images and PDF can be; download others with a command")),
        }
    }

    fn plain(text: String) -> Self {
        Self { title: None, text, note: None, attachment: None }
    }
}

async fn read_pdf(response: &WebResponse) -> PageContent {
    match pdf::extract_text(response.body()).await {
        Some(text) => PageContent {
            note: Some("The text was extracted from a PDF."),
            ..PageContent::plain(text)
        },
        None => {
            let note = "No text could be extracted from it; the user may install `pdftotext`.";
            attach(response, "application/pdf", "PDF", Some(note))
        }
    }
}

fn attach(
    response: &WebResponse,
    media_type: &str,
    what: &str,
    note: Option<&'static str>,
) -> PageContent {
    let size = response.body().len();
    let text = format!("The {what} ({media_type}, {size} bytes) is attached.");
    let name = response.url().path_segments().and_then(|mut parts| parts.next_back());
    let attachment = Attachment::bytes(media_type, response.body().to_vec())
        .with_origin(response.url().as_str());
    let attachment = match name {
        Some(name) if !name.is_empty() => attachment.with_name(name),
        _ => attachment,
    };
    PageContent { title: None, text, note, attachment: Some(attachment) }
}

/// Returns the media type without parameters: of the header, or what the body looks like.
fn media_type(content_type: &str, body: &[u8]) -> String {
    let named = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_vague = matches!(&*named, "" | "application/octet-stream" | "binary/octet-stream");
    match body {
        // What a file is decides, where its server says nothing.
        [0x89, b'P', b'N', b'G', ..] if is_vague => "image/png".into(),
        [0xff, 0xd8, 0xff, ..] if is_vague => "image/jpeg".into(),
        [b'%', b'P', b'D', b'F', b'-', ..] if is_vague => "application/pdf".into(),
        body if is_vague => {
            let start = String::from_utf8_lossy(&body[..body.len().min(512)]).to_ascii_lowercase();
            match std::str::from_utf8(body) {
                Ok(_) if start.contains("<html") || start.contains("<!doctype html") => {
                    "text/html".into()
                }
                Ok(_) if !body.contains(&0) => "text/plain".into(),
                _ => named,
            }
        }
        _ => named,
    }
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || TEXT_TYPES.contains(&media_type)
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_decides_where_the_server_says_nothing() {
        for (body, expected) in [
            (&b"plain words"[..], "text/plain"),
            (b"<!DOCTYPE html><p>x", "text/html"),
            (b"\x89PNG", "image/png"),
            // A page of NUL characters would be blank.
            (b"\0\0\x01\0", "application/octet-stream"),
            (b"\xff\xfe\x00", "application/octet-stream"),
        ] {
            assert_eq!(media_type("application/octet-stream", body), expected);
        }
        assert_eq!(media_type("text/css; charset=utf-8", b"\0"), "text/css");
    }
}
