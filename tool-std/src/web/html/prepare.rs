//! Prepares a parsed page: removes what is not content, and rewrites what the serializer does not know.
//!
//! **Invariant:** text that a reader of the page cannot see is removed, because it could be written for
//! models alone. What a reader can open, such as the panel of a tab, stays.

use dom_query::{Document, NodeRef};
use tool_sdk::net::Url;

use super::tables::rewrite_tables;

/// What no reader of a page sees, and controls that mean nothing without it.
const INVISIBLE: &str = "script, style, noscript, template, svg, object, embed, [aria-hidden=true], \
                         [hidden]:not([role=tabpanel]), select, datalist, textarea, amp-ad, amp-embed, \
                         amp-sidebar, amp-consent, amp-analytics";

/// What a page has besides its content.
const SURROUNDINGS: &str = "nav, body > footer, div.footer, main ~ aside, article ~ aside, [role=navigation], \
                            [role=search], [role=banner], [role=contentinfo], [role=dialog], \
                            [aria-modal=true], #cookie-consent, #onetrust-consent-sdk, .cookie-banner, \
                            .cookie-consent, .ad-slot, .adsbygoogle, .advertisement, .share-buttons, \
                            .related-posts";

/// Links of headings to themselves, and of notes back to their place.
const SELF_LINKS: &str = "a.headerlink, a.anchor, a.anchorjs-link, a.hash-link, a.header-anchor, \
                          a.footnote-backref, .mw-editsection";

/// The numbers of lines beside code.
const LINE_NUMBERS: &str = ".linenos, .lineno, .linenodiv, .lnt, .line-numbers-rows, .hljs-ln-numbers, \
                            td.gutter, td.blob-num, td.rouge-gutter";

/// Where pages keep the address of an image that is loaded later.
const LAZY_SOURCES: [&str; 4] = ["data-src", "data-original", "data-lazy-src", "data-srcset"];

/// Stands before and after deleted text until the page is serialized, which would escape `~`. It is no
/// character of any text.
pub(super) const DELETION: char = '\u{fdd0}';

/// Makes the content of declarative shadow roots part of the page, as browsers show it.
pub(super) fn open_shadow_roots(html: &str) -> String {
    const START: &str = "<template";
    const END: &str = "</template";
    let lower = html.to_ascii_lowercase();
    if !lower.contains("shadowroot") {
        return html.to_owned();
    }
    let (mut opened, mut copied, mut at) = (String::with_capacity(html.len()), 0, 0);
    let mut are_shadow_roots = Vec::new();
    while let Some(found) = lower[at..].find("template") {
        let (name, after) = (at + found, at + found + "template".len());
        at = after;
        if lower[..after].ends_with(END) {
            if are_shadow_roots.pop() == Some(true) {
                opened.push_str(&html[copied..name]);
                opened.push_str("div");
                copied = after;
            }
        } else if lower[..after].ends_with(START) {
            let tag = lower[after..].split('>').next().unwrap_or_default();
            let is_shadow_root = tag.contains("shadowroot");
            are_shadow_roots.push(is_shadow_root);
            if is_shadow_root {
                opened.push_str(&html[copied..name]);
                opened.push_str("div");
                copied = after;
            }
        }
    }
    opened.push_str(&html[copied..]);
    opened
}

/// Removes what is not content, and rewrites what the serializer does not know. Addresses become
/// absolute.
pub(super) fn prepare_document(document: &Document, url: &str) {
    // Formulas stand in scripts, too.
    rewrite_formulas(document);
    document.select(INVISIBLE).remove();
    document.select(SURROUNDINGS).remove();
    document.select(SELF_LINKS).remove();
    remove_controls(document);
    let base = base_url(document, url);
    rewrite_frames(document, base.as_ref());
    rewrite_images(document, base.as_ref());
    rewrite_links(document, base.as_ref());
    rewrite_code(document);
    rewrite_definitions(document);
    rewrite_tables(document);
    rewrite_small_elements(document);
}

/// Rewrites elements in a line, and parts of others.
fn rewrite_small_elements(document: &Document) {
    for node in document.select("sup").nodes() {
        mark_exponent(node);
    }
    for deleted in document.select("del, s, strike").nodes() {
        deleted.prepend_html(DELETION.to_string());
        deleted.append_html(DELETION.to_string());
    }
    document.select("blockquote footer, blockquote > cite:first-child").rename("p");
    // The search for the main content leaves hidden elements out.
    document.select("[role=tabpanel]").remove_attr("hidden");
}

/// Returns the frames of a page that consists of them, as links.
pub(super) fn frameset_links(document: &Document, url: &str) -> Option<String> {
    if document.select("frameset").is_empty() {
        return None;
    }
    let base = base_url(document, url);
    let frames = document.select("frame[src]");
    let links = frames.nodes().iter().map(|frame| {
        let name = frame.attr("title").or_else(|| frame.attr("name")).unwrap_or_default();
        let source = frame.attr("src").unwrap_or_default();
        format!("- [{}]({})", name.trim(), absolute_url(&source, base.as_ref()))
    });
    Some(links.collect::<Vec<_>>().join("\n"))
}

fn base_url(document: &Document, url: &str) -> Option<Url> {
    let page = Url::parse(url).ok()?;
    let named = document.select("base[href]").attr("href");
    Some(named.and_then(|base| page.join(&base).ok()).unwrap_or(page))
}

fn absolute_url(address: &str, base: Option<&Url>) -> String {
    let joined = base.and_then(|base| base.join(address.trim()).ok());
    joined.map_or_else(|| address.trim().to_owned(), String::from)
}

/// Removes buttons that do something, and forms to log in, search and subscribe. Buttons that open a
/// part of the page are its heading.
fn remove_controls(document: &Document) {
    const OPENING: &str =
        "[aria-expanded], [aria-controls], [role=tab], h1 *, h2 *, h3 *, h4 *, h5 *, h6 *, dt *";
    /// Some frameworks put the whole page into a form.
    const MAX_FORM_CHARS: usize = 400;
    for button in document.select("button").nodes() {
        if !button.is(OPENING) {
            button.remove_from_parent();
        }
    }
    for form in document.select("form").nodes() {
        let fields = "input[type=email], input[type=password], input[type=search]";
        let asks = form.descendants_it().any(|it| it.is_element() && it.is(fields));
        if asks && form.normalized_char_count() < MAX_FORM_CHARS {
            form.remove_from_parent();
        }
    }
    for input in document.select("input[type=checkbox]").nodes() {
        let mark = if input.attr("checked").is_some() { "☑" } else { "☐" };
        input.replace_with_html(format!("<span>{mark}</span>"));
    }
}

/// Makes a formula its source in TeX where the page has that, as code, so that nothing of it is escaped.
fn rewrite_formulas(document: &Document) {
    for script in document.select("script[type^='math/tex']").nodes() {
        let source = script.text();
        script.replace_with_html(formula_html(&source));
    }
    for math in document.select("math").nodes() {
        let annotation = math.descendants_it().find(|it| {
            it.is_element() && it.attr("encoding").is_some_and(|encoding| encoding.contains("tex"))
        });
        let source = annotation.map(|it| it.text()).or_else(|| math.attr("alttext"));
        let source = source.map_or_else(|| linear_formula(math), |source| source.to_string());
        math.replace_with_html(formula_html(&source));
    }
}

fn formula_html(source: &str) -> String {
    let source = source.trim().replace('&', "&amp;").replace('<', "&lt;");
    format!("<code>{source}</code>")
}

/// Writes a formula on one line. Documents are not deep, so neither is the recursion.
fn linear_formula(node: &NodeRef<'_>) -> String {
    if node.is_text() {
        return node.text().trim().to_owned();
    }
    let parts: Vec<String> = node
        .children_it(false)
        .filter(|it| it.is_element() || it.is_text())
        .map(|it| linear_formula(&it))
        .filter(|part| !part.is_empty())
        .collect();
    let group = |part: &str| match part.chars().count() {
        0 | 1 => part.to_owned(),
        _ => format!("({part})"),
    };
    match (&*node.node_name().unwrap_or_default(), &parts[..]) {
        ("msup", [base, exponent]) => format!("{}^{}", group(base), group(exponent)),
        ("msub", [base, index]) => format!("{}_{}", group(base), group(index)),
        ("msubsup", [base, index, exponent]) => {
            format!("{}_{}^{}", group(base), group(index), group(exponent))
        }
        ("mfrac", [above, below]) => format!("{}/{}", group(above), group(below)),
        ("msqrt", parts) => format!("√({})", parts.concat()),
        (_, parts) => parts.concat(),
    }
}

/// Marks what stands above the line as an exponent where it could be one: 10^6 is not 106.
fn mark_exponent(sup: &NodeRef<'_>) {
    let text = sup.text();
    let text = text.trim();
    let is_exponent = |c: char| c.is_ascii_digit() || "+-−–nxyk".contains(c);
    if text.is_empty()
        || !text.chars().all(is_exponent)
        || !sup.children_it(false).all(|it| it.is_text())
    {
        return;
    }
    let marked = if text.chars().count() == 1 { format!("^{text}") } else { format!("^({text})") };
    sup.set_text(marked);
}

/// Makes a frame with a title a link to what it shows. Others are mostly advertisements.
fn rewrite_frames(document: &Document, base: Option<&Url>) {
    for frame in document.select("iframe").nodes() {
        let title = frame.attr("title").map(|title| escape_html(title.trim())).unwrap_or_default();
        let source =
            frame.attr("src").map(|source| absolute_url(&source, base)).unwrap_or_default();
        let is_advertisement = title.to_ascii_lowercase().contains("advert");
        if title.is_empty() || is_advertisement || !source.starts_with("http") {
            frame.remove_from_parent();
        } else {
            frame.replace_with_html(format!(
                "<p><a href=\"{}\">{title}</a></p>",
                escape_html(&source)
            ));
        }
    }
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Gives images the addresses that they get later. Images within the page itself are left out.
fn rewrite_images(document: &Document, base: Option<&Url>) {
    document.select("amp-img").rename("img");
    for image in document.select("img").nodes() {
        let lazy = LAZY_SOURCES.iter().find_map(|name| image.attr(name));
        let source = lazy.or_else(|| image.attr("src")).or_else(|| image.attr("srcset"));
        let source = source.unwrap_or_default();
        let first = source.split_ascii_whitespace().next().unwrap_or_default();
        let first = if first.starts_with("data:") { "" } else { first.trim_end_matches(',') };
        image.remove_attrs(&["srcset", "data-src", "data-srcset"]);
        if first.is_empty() {
            image.remove_from_parent();
        } else {
            image.set_attr("src", &absolute_url(first, base));
        }
    }
}

/// Makes addresses of links absolute. What is a link for a script only becomes its text.
fn rewrite_links(document: &Document, base: Option<&Url>) {
    for link in document.select("a[href]").nodes() {
        let address = link.attr("href").unwrap_or_default();
        match address.trim_start().get(..11) {
            Some(start) if start.eq_ignore_ascii_case("javascript:") => {
                link.rename("span");
                link.remove_attr("href");
            }
            _ => link.set_attr("href", &absolute_url(&address, base)),
        }
    }
}

/// Brings blocks of code into the form that the serializer knows: a `pre` with its language and its
/// line breaks, without line numbers.
fn rewrite_code(document: &Document) {
    document.select(LINE_NUMBERS).remove();
    for line_break in document.select("pre br, code br").nodes() {
        line_break.replace_with_html("\n");
    }
    for line in document.select("pre div, code > div").nodes() {
        line.append_html("\n");
    }
    for block in document.select("pre").nodes() {
        let classes = block.children_it(false).filter(|it| it.is_element());
        let around = block.ancestors_it(Some(3));
        let language = block
            .attr("lang")
            .map(|name| name.to_string())
            .or_else(|| classes.chain([*block]).chain(around).find_map(|it| code_language(&it)));
        if let Some(language) = language {
            block.set_attr("data-lang", &language);
        }
    }
    // A table that held the line numbers.
    for table in document.select("table").nodes() {
        let is_code = |it: &NodeRef<'_>| it.is("pre") && !it.text().trim().is_empty();
        let blocks: Vec<NodeRef<'_>> = table.descendants_it().filter(is_code).collect();
        let [block] = &blocks[..] else { continue };
        if block.text().trim() == table.text().trim() {
            table.replace_with(block);
        }
    }
}

/// Returns the language that an element around or in a block of code names.
fn code_language(node: &NodeRef<'_>) -> Option<String> {
    if let Some(name) = node.attr("data-lang").or_else(|| node.attr("data-language")) {
        return Some(name.to_string());
    }
    let class = node.class()?;
    let named = class.split_ascii_whitespace().find_map(|class| {
        ["language-", "lang-", "highlight-source-", "highlight-text-", "highlight-"]
            .iter()
            .find_map(|prefix| class.strip_prefix(prefix))
    })?;
    let is_language = !matches!(named, "" | "default" | "none" | "plaintext" | "text" | "wrapper");
    is_language.then(|| named.to_owned())
}

/// Writes terms in bold and their definitions as quotes; summaries of details in bold.
fn rewrite_definitions(document: &Document) {
    for term in document.select("dt").nodes() {
        wrap_content(term, "strong");
        term.rename("p");
    }
    document.select("dd").rename("blockquote");
    document.select("dl").rename("div");
    for summary in document.select("summary").nodes() {
        let has_heading =
            summary.children_it(false).any(|it| it.is_element() && it.is("h1, h2, h3, h4, h5, h6"));
        if has_heading {
            summary.rename("div");
        } else {
            wrap_content(summary, "strong");
            summary.rename("p");
        }
    }
    document.select("details").rename("div");
}

fn wrap_content(node: &NodeRef<'_>, element: &str) {
    let content = node.inner_html();
    node.set_html(format!("<{element}>{content}</{element}>"));
}
