//! HTML as Markdown: the title and the main content, with links, tables and code.
//!
//! **Invariant:** the work is bounded: a document that is large or deeply nested is not built as a
//! tree, because the time and the stack of what walks over trees grow with their depth.

mod prepare;
mod tables;

use std::borrow::Cow;

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};

use self::prepare::{DELETION, frameset_links, open_shadow_roots, prepare_document};

/// Larger documents become text without structure.
const MAX_TREE_BYTES: usize = 2 << 20;

/// Deeper documents become text without structure. Pages made by people and frameworks have about
/// 40 levels.
const MAX_DEPTH: usize = 120;

/// Main content of fewer bytes may be one part of several, such as the question without its answers.
const SHORT_ARTICLE: usize = 2_000;

/// Longer titles are none, in bytes.
const MAX_TITLE: usize = 300;

/// A page as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HtmlText {
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// Whether the document was too large or too deep for its structure.
    pub(super) is_flat: bool,
}

/// How a page is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtmlTextStyle {
    Markdown,
    Plain,
}

/// Converts a document from `url`.
pub(super) fn convert_html(html: &str, url: &str, style: HtmlTextStyle) -> HtmlText {
    if html.len() > MAX_TREE_BYTES || estimated_depth(html) > MAX_DEPTH {
        return HtmlText { title: None, text: strip_tags(html), is_flat: true };
    }
    let html = open_shadow_roots(html).replace(DELETION, "");
    let document = Document::from(html);
    if let Some(links) = frameset_links(&document, url) {
        let title = Some(document.select("title").text().trim().to_owned());
        let beside = strip_tags(&document.select("noframes").text());
        let text = tidy_text(&format!("{links}\n\n{beside}"));
        return HtmlText { title, text, is_flat: false };
    }
    let named_title = document.select("title").text().trim().to_owned();
    let named_title = Some(named_title).filter(|title| !title.is_empty());
    prepare_document(&document, url);
    let whole = render_body(&document, style);
    let text_mode = match style {
        HtmlTextStyle::Markdown => TextMode::Markdown,
        HtmlTextStyle::Plain => TextMode::Formatted,
    };
    let config = Config { keep_classes: true, text_mode, ..Config::default() };
    let article = Readability::with_document(document, Some(url), Some(config))
        .ok()
        .map(|mut reader| (reader.get_article_title().to_string(), reader.parse().ok()));
    let (title, article) = article.map_or((None, None), |(title, article)| (Some(title), article));
    let text = article.map(|article| article.text_content.to_string()).unwrap_or_default();
    let text = if is_incomplete(&text, &whole) { whole } else { text };
    let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
    // A heading without an end has the whole page.
    let title = title.filter(|title| title.len() <= MAX_TITLE).or(named_title);
    let deletion = match style {
        HtmlTextStyle::Markdown => "~~",
        HtmlTextStyle::Plain => "",
    };
    HtmlText { title, text: tidy_text(&text.replace(DELETION, deletion)), is_flat: false }
}

/// Whether the main content that was found is likely to be a part of it: for a model, missing content
/// is worse than some that does not matter.
fn is_incomplete(article: &str, whole: &str) -> bool {
    let least = if article.len() < SHORT_ARTICLE { whole.len() / 5 * 4 } else { whole.len() / 5 };
    article.len() < least
}

/// Renders the whole body.
fn render_body(document: &Document, style: HtmlTextStyle) -> String {
    let Some(body) = document.body() else { return String::new() };
    match style {
        HtmlTextStyle::Markdown => body.md(None).to_string(),
        HtmlTextStyle::Plain => body.formatted_text().to_string(),
    }
}

/// Removes blanks at the ends of lines, all but one of several empty lines, and invisible characters,
/// outside of code.
fn tidy_text(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let (mut is_code, mut empty_lines) = (false, 1);
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let line = if is_code { line.into() } else { tidy_line(line) };
        empty_lines = if line.is_empty() && !is_code { empty_lines + 1 } else { 0 };
        if empty_lines < 2 {
            tidy.push_str(&line);
            tidy.push('\n');
        }
    }
    tidy.truncate(tidy.trim_end().len());
    tidy
}

fn tidy_line(line: &str) -> Cow<'_, str> {
    /// Soft hyphens, and spaces without a width.
    const INVISIBLE_CHARACTERS: [char; 3] = ['\u{ad}', '\u{200b}', '\u{feff}'];
    let line = line.trim_end();
    if !line.contains(INVISIBLE_CHARACTERS) && !line.contains(['\u{a0}']) && !line.contains("&amp;")
    {
        return line.into();
    }
    unescape_addresses(&line.replace(INVISIBLE_CHARACTERS, "").replace('\u{a0}', " ")).into()
}

/// Undoes what the serializer does to `&` in addresses, which models use as they read them.
fn unescape_addresses(line: &str) -> String {
    let mut parts = line.split("](");
    let mut unescaped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([' ', ')']).unwrap_or(part.len());
        unescaped.push_str("](");
        unescaped.push_str(&part[..end].replace("&amp;", "&"));
        unescaped.push_str(&part[end..]);
    }
    unescaped
}

/// Elements without an end tag, or with one that is often left out.
const UNCOUNTED: [&str; 27] = [
    "area", "base", "br", "col", "colgroup", "dd", "dt", "embed", "hr", "img", "input", "li",
    "link", "meta", "option", "p", "param", "path", "source", "tbody", "td", "tfoot", "th",
    "thead", "tr", "track", "wbr",
];

/// Returns a bound of the nesting of a document, from its tags. It is too high for a document that
/// leaves out end tags, which then becomes plain text.
fn estimated_depth(html: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in tags(html) {
        match tag.strip_prefix('/') {
            Some(name) if !is_uncounted(name) => depth = depth.saturating_sub(1),
            None if !is_uncounted(tag) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            _ => {}
        }
    }
    deepest
}

fn is_uncounted(name: &str) -> bool {
    UNCOUNTED.iter().any(|uncounted| name.eq_ignore_ascii_case(uncounted))
}

/// Returns the names in the tags of a document, with `/` before those of end tags.
fn tags(html: &str) -> impl Iterator<Item = &str> {
    html.split('<').skip(1).filter_map(|rest| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let start = usize::from(rest.starts_with('/'));
        let end = rest[start..].find(|c| !is_name(c)).map_or(rest.len(), |at| start + at);
        let is_closed = rest[end..].split('>').next().is_some_and(|tag| tag.ends_with('/'));
        (end > start && !is_closed).then_some(&rest[..end])
    })
}

/// Returns the text between tags, in one pass: without scripts and styles, with a line per block.
fn strip_tags(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        push_text(&mut text, &rest[..at]);
        rest = &rest[at..];
        let lower = |end: &str| find_ignoring_case(rest, end);
        let after = if rest.starts_with("<!--") {
            rest.find("-->").map(|at| at + 3)
        } else if starts_with_tag(rest, "script") {
            lower("</script")
        } else if starts_with_tag(rest, "style") {
            lower("</style")
        } else {
            rest.find('>').map(|at| at + 1)
        };
        let Some(after) = after.filter(|after| *after > 0) else { break };
        if !text.ends_with(['\n', ' ']) {
            let is_inline = ["a", "b", "code", "em", "i", "span", "strong"].iter().any(|name| {
                starts_with_tag(rest, name) || starts_with_tag(rest, &format!("/{name}"))
            });
            if !is_inline {
                text.push('\n');
            }
        }
        rest = &rest[after..];
    }
    if !rest.starts_with('<') {
        push_text(&mut text, rest);
    }
    tidy_text(&text)
}

fn starts_with_tag(text: &str, name: &str) -> bool {
    let Some(rest) = text.get(1..1 + name.len()) else { return false };
    rest.eq_ignore_ascii_case(name)
        && text[1 + name.len()..].starts_with(|c: char| c == '>' || c == '/' || c.is_whitespace())
}

fn find_ignoring_case(text: &str, word: &str) -> Option<usize> {
    text.as_bytes().windows(word.len()).position(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

fn push_text(text: &mut String, raw: &str) {
    let raw = raw.replace("&nbsp;", " ").replace("&lt;", "<").replace("&gt;", ">");
    let raw = raw.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
    for word in raw.split_whitespace() {
        if !text.is_empty() && !text.ends_with(['\n', ' ']) {
            text.push(' ');
        }
        text.push_str(word);
    }
}

#[cfg(test)]
mod tests;
