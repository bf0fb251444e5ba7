//! Pages of the structures that are met most: what is kept of each, and what is not.

use super::*;

/// A page of `tests/fixtures/web-pages`, its title, and texts that its Markdown has and has not.
struct PageCase {
    html: &'static str,
    title: &'static str,
    kept: &'static [&'static str],
    left_out: &'static [&'static str],
}

macro_rules! page {
    ($name:literal) => {
        include_str!(concat!("../../../tests/fixtures/web-pages/", $name, ".html"))
    };
}

const PAGES: [PageCase; 12] = [
    PageCase {
        html: page!("article"),
        title: "A garden in spring | The Valley Post",
        kept: &[
            "The garden lies behind the house",
            "[the next part](https://valley.example/news/summer.html)",
            "*longer*",
            "**pictures**",
            "![A bed of beans](https://valley.example/img/bed.jpg)",
        ],
        left_out: &["Shop", "Ten tricks", "imprint", "track(", "color"],
    },
    PageCase {
        html: page!("api_docs"),
        title: "spawn in garden::task - Rust",
        kept: &[
            "pub fn spawn<F>(future: F) -> JoinHandle<F::Output>",
            "[JoinHandle](https://valley.example/news/struct.JoinHandle.html)",
            "## ",
            "```rust\nlet handle = spawn(async {\n    \"done\"\n});",
        ],
        left_out: &["index.html"],
    },
    PageCase {
        html: page!("sphinx"),
        title: "garden — Beds and rows",
        kept: &[
            "**garden.plant(*seed*, *depth=2*)**",
            "> Plant a *seed* at the given depth",
            "`ValueError`",
            "garden.water",
        ],
        left_out: &["¶", "genindex", "Created using"],
    },
    PageCase {
        html: page!("question"),
        title: "How to water beans? - Garden Exchange",
        kept: &[
            "My beans get brown leaves",
            "water(beans, Evening)",
            "Water in the morning",
            "2. Only the soil, **never** the leaves",
            "Also check for rust",
        ],
        left_out: &["Shop", "imprint"],
    },
    PageCase {
        html: page!("tables"),
        title: "Limits",
        kept: &["| Name | Free | Paid |", "| Requests | 100 | 10,000 |", "a\\|b", "/big)", "429"],
        left_out: &[],
    },
    PageCase {
        html: page!("tutorial"),
        title: "Getting started",
        kept: &[
            "```bash\ncargo install garden\ngarden --version\n```",
            "```toml\n[bed.north]\nplant = \"beans\"\n\nrows = 3\n```",
            "`garden check`",
        ],
        left_out: &[],
    },
    PageCase {
        html: page!("lists"),
        title: "Changelog",
        kept: &[
            "## 2.0.0",
            "- Added `water`",
            "    - by hand",
            "[#7](https://valley.example/issues/7)",
        ],
        left_out: &[],
    },
    PageCase {
        html: page!("layout_table"),
        title: "Old garden page",
        kept: &["The garden lies behind the house", "Watering is done"],
        left_out: &["|", "<"],
    },
    PageCase {
        html: page!("app_shell"),
        title: "Garden App",
        kept: &[],
        left_out: &["previous instructions", "JavaScript"],
    },
    PageCase {
        html: page!("hidden"),
        title: "Beans",
        kept: &["Beans climb up to three metres"],
        left_out: &["Hidden words", "Decoration", "Template", "Drawing", "Comment"],
    },
    PageCase {
        html: page!("cyrillic"),
        title: "Сад весной",
        kept: &["Поливают утром", "[следующей части](https://valley.example/"],
        left_out: &[],
    },
    PageCase {
        html: page!("index"),
        title: "All beds",
        kept: &["Bed 1]", "Bed 24]"],
        left_out: &[],
    },
];

// F147
#[test]
fn pages_become_markdown() {
    for PageCase { html, title, kept, left_out } in PAGES {
        let page =
            convert_html(html, "https://valley.example/news/a.html", HtmlTextStyle::Markdown);
        assert_eq!(page.title.as_deref(), Some(title));
        for text in kept {
            assert!(page.text.contains(text), "{title}: no {text} in:\n{}", page.text);
        }
        for text in left_out {
            assert!(!page.text.contains(text), "{title}: {text} in:\n{}", page.text);
        }
        assert!(!page.is_flat);
    }
}

#[test]
fn plain_text_has_no_markup() {
    let page = convert_html(page!("tutorial"), "https://a.example/", HtmlTextStyle::Plain);
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
