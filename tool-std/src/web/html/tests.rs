//! Pages of the structures that are met most: what is kept of each, and what is not.

use super::*;
use crate::web::charset::decode_text;

/// The pages of `tests/fixtures/web-pages`: the name, the page, and what its Markdown has and has not.
macro_rules! pages {
    ($($name:ident)*) => {
        [$((
            stringify!($name),
            include_bytes!(concat!("../../../tests/fixtures/web-pages/", stringify!($name), ".html"))
                .as_slice(),
            include_str!(concat!("../../../tests/fixtures/web-pages/", stringify!($name), ".txt")),
        )),*]
    };
}

const PAGES: [(&str, &[u8], &str); 49] = pages! {
    amp api_docs app_shell article base_href blog_index code_languages complex_table cyrillic
    docs_sidebar faq_details footnotes forum_thread frameset glossary hidden iframe_video index
    inline_markup interview issue_thread japanese_ruby latin_charset layout_table lazy_images
    lists live_blog mail_archive malformed math nested_lists news_consent noscript_images poem
    product question recipe release_notes rest_reference right_to_left search_results shadow_dom
    shift_jis sphinx statute tables tutorial wiki xhtml
};

const URL: &str = "https://valley.example/news/a.html";

/// Returns the text of a line of expectations, in which `\n`, `\t` and `\\` are escaped.
fn unescape(line: &str) -> String {
    line.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace('\0', "\\")
}

/// Returns the lines of expectations that a page does not meet.
fn unmet_expectations<'e>(page: &HtmlText, expected: &'e str) -> Vec<&'e str> {
    let is_met = |line: &str| match line.split_once(' ') {
        Some(("title:", title)) => page.title.as_deref() == Some(&unescape(title)),
        Some(("+", text)) => page.text.contains(&unescape(text)),
        Some(("-", text)) => !page.text.contains(&unescape(text)),
        _ => false,
    };
    expected.lines().filter(|line| !is_met(line)).collect()
}

// F147
#[test]
fn pages_become_markdown() {
    let mut problems = String::new();
    for (name, bytes, expected) in PAGES {
        let page = convert_html(&decode_text(bytes, "text/html"), URL, HtmlTextStyle::Markdown);
        let unmet = unmet_expectations(&page, expected);
        if page.is_flat || !unmet.is_empty() {
            problems += &format!("{name}: {unmet:#?} of {:?}:\n{}\n\n", page.title, page.text);
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

/// A table that says that its cells span more than there is.
#[test]
fn spans_add_a_bounded_number_of_cells() {
    let row = "<tr><td rowspan=65534 colspan=1000>a</td></tr>";
    let html = format!("<p>before</p><table>{}</table><p>after</p>", row.repeat(2_000));
    let page = convert_html(&html, URL, HtmlTextStyle::Markdown);
    assert!(page.text.len() < 100_000, "{}", page.text.len());
    assert!(page.text.starts_with("before") && page.text.ends_with("after"));
}

#[test]
fn plain_text_has_no_markup() {
    let tutorial = include_str!("../../../tests/fixtures/web-pages/tutorial.html");
    let page = convert_html(tutorial, "https://a.example/", HtmlTextStyle::Plain);
    assert!(page.text.contains("Use garden check to see mistakes"), "{}", page.text);
    assert!(!page.text.contains('`') && !page.text.contains('<'), "{}", page.text);
}

/// Documents that would take minutes, or the stack, as trees.
#[test]
fn deep_documents_become_flat_text() {
    for tag in ["div", "b", "blockquote", "ul><li", "table><tr><td", "a href=x", "em><p", "x-y"] {
        let html =
            format!("<title>T</title>{}deep &lt;here&gt;", format!("<{tag}>").repeat(20_000));
        let page = convert_html(&html, "https://a.example/", HtmlTextStyle::Markdown);
        assert!(page.is_flat, "{tag}");
        assert!(page.text.ends_with("deep <here>"), "{tag}: {:.100}", page.text);
    }
    let long = format!("<p>{}</p><script>hidden</script>end", "word ".repeat(500_000));
    let page = convert_html(&long, "https://a.example/", HtmlTextStyle::Markdown);
    assert!(page.is_flat && page.text.ends_with("word\nend") && !page.text.contains("hidden"));
}

#[test]
fn the_depth_counts_open_elements() {
    for (html, depth) in [
        ("", 0),
        ("<div><p>a<p>b<br><img></div><div></div>", 1),
        ("<ul><li><ul><li></ul></ul>", 2),
        ("<svg><path/><g/></svg></div>", 1),
        ("a < b <!-- <div> --> <!doctype html>", 1),
    ] {
        assert_eq!(estimated_depth(html), depth, "{html}");
    }
}
