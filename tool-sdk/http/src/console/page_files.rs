//! The files of the page, and the headers with which browsers restrict it.

use axum::extract::Path;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// Only files of this server; no inline script or style, no frame, and no text that becomes markup.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'",
);

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// One file of the page.
struct PageFile {
    name: &'static str,
    mime: &'static str,
    text: &'static str,
}

/// Embeds a file of the folder `page`.
macro_rules! page_file {
    ($name:literal, $mime:expr) => {
        PageFile { name: $name, mime: $mime, text: include_str!(concat!("page/", $name)) }
    };
}

const INDEX: PageFile = page_file!("index.html", HTML);
/// The files that the page loads, by their names below `/console/`.
const FILES: [PageFile; 32] = [
    page_file!("ansi.js", SCRIPT),
    page_file!("api.js", SCRIPT),
    page_file!("approval_page.js", SCRIPT),
    page_file!("arguments_editor.js", SCRIPT),
    page_file!("call_panel.js", SCRIPT),
    page_file!("copy_as.js", SCRIPT),
    page_file!("diff.js", SCRIPT),
    page_file!("dom.js", SCRIPT),
    page_file!("event_stream.js", SCRIPT),
    page_file!("headline.js", SCRIPT),
    page_file!("icon.svg", IMAGE),
    page_file!("json_tree.js", SCRIPT),
    page_file!("keys.js", SCRIPT),
    page_file!("layout.css", STYLE),
    page_file!("main.js", SCRIPT),
    page_file!("notify.js", SCRIPT),
    page_file!("parts.css", STYLE),
    page_file!("question_page.js", SCRIPT),
    page_file!("result_view.js", SCRIPT),
    page_file!("rows.js", SCRIPT),
    page_file!("schema_check.js", SCRIPT),
    page_file!("schema_form.js", SCRIPT),
    page_file!("shell.js", SCRIPT),
    page_file!("store.js", SCRIPT),
    page_file!("theme.css", STYLE),
    page_file!("view_audit.js", SCRIPT),
    page_file!("view_calls.js", SCRIPT),
    page_file!("view_inbox.js", SCRIPT),
    page_file!("view_permissions.js", SCRIPT),
    page_file!("view_servers.js", SCRIPT),
    page_file!("view_tools.js", SCRIPT),
    page_file!("visible_text.js", SCRIPT),
];

/// `GET /`
pub(crate) async fn get_page() -> Response {
    INDEX.to_response()
}

/// `GET /console/{name}`
pub(crate) async fn get_page_file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|file| file.name == name) {
        Some(file) => file.to_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

impl PageFile {
    fn to_response(&self) -> Response {
        let fixed = HeaderValue::from_static;
        let headers = [
            (CONTENT_TYPE, fixed(self.mime)),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
            (REFERRER_POLICY, fixed("no-referrer")),
            (HeaderName::from_static("cross-origin-opener-policy"), fixed("same-origin")),
            (HeaderName::from_static("cross-origin-resource-policy"), fixed("same-origin")),
        ];
        (headers, self.text).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may call a function by its name in markup, or make markup from text.
    const UNSAFE_WORDS: [&str; 7] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "localStorage",
        "onclick=",
    ];

    // CN3
    #[test]
    fn the_page_is_small_and_makes_no_markup_from_text() {
        let total: usize = FILES.iter().chain([&INDEX]).map(|it| it.text.len()).sum();
        assert!(total < 300 * 1024, "{total} bytes");
        for file in FILES.iter().chain([&INDEX]) {
            for word in UNSAFE_WORDS {
                assert!(!file.text.contains(word), "{} has `{word}`", file.name);
            }
            assert!(!file.text.contains("https://"), "{} loads from elsewhere", file.name);
        }
    }

    #[test]
    fn every_imported_file_is_embedded() {
        for file in FILES.iter().chain([&INDEX]) {
            let names = file
                .text
                .split(['"', '\''])
                .filter_map(|it| it.strip_prefix("./").or_else(|| it.strip_prefix("/console/")));
            for name in names.filter(|it| it.ends_with(".js") || it.ends_with(".css")) {
                assert!(FILES.iter().any(|it| it.name == name), "{}: {name}", file.name);
            }
        }
    }
}
