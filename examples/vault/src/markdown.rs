//! Reads what the tools need from the text of a note: title, tags, and links with their places.
//!
//! **Invariant:** nothing in code blocks and code spans is a link or a tag.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Deserialize;
use tool_sdk::Frontmatter;

/// How a link is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkStyle {
    /// `[[name]]`, by the name of the note or its path from the root of the vault.
    Wiki,
    /// `[text](path.md)`, by the path from the folder of the note.
    Markdown,
}

/// A link to a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoteLink {
    pub(crate) style: LinkStyle,
    /// Where the target stands in the text.
    pub(crate) place: Range<usize>,
    pub(crate) target: String,
}

/// Tags in the frontmatter, as a list or as one text.
#[derive(Deserialize)]
struct VaultNoteFields {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    tags: TagList,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum TagList {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

/// Returns the title: that of the frontmatter, else the first heading.
pub(crate) fn find_title(text: &str) -> Option<String> {
    let fields = note_fields(text).and_then(|fields| fields.title);
    fields.or_else(|| {
        let mut lines = code_free_lines(text);
        lines.find_map(|(_, line)| line.strip_prefix("# ").map(|title| title.trim().to_owned()))
    })
}

/// Returns the tags of the frontmatter and those in the text, in lower case.
pub(crate) fn find_tags(text: &str) -> BTreeSet<String> {
    let mut tags = BTreeSet::new();
    match note_fields(text).map(|fields| fields.tags) {
        Some(TagList::Many(list)) => tags.extend(list),
        Some(TagList::One(list)) => {
            tags.extend(list.split([',', ' ']).filter(|tag| !tag.is_empty()).map(str::to_owned));
        }
        Some(TagList::None) | None => {}
    }
    for (_, line) in code_free_lines(text) {
        for (at, _) in line.match_indices('#') {
            let starts = line[..at].chars().next_back().is_none_or(char::is_whitespace);
            let rest = &line[at + 1..];
            let is_tag = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/');
            let tag = &rest[..rest.find(|c| !is_tag(c)).unwrap_or(rest.len())];
            if starts && tag.starts_with(char::is_alphabetic) {
                tags.insert(tag.to_owned());
            }
        }
    }
    tags.into_iter().map(|tag| tag.trim_start_matches('#').to_lowercase()).collect()
}

/// Frontmatter that is broken has no fields; the note itself is still a note.
fn note_fields(text: &str) -> Option<VaultNoteFields> {
    Frontmatter::<VaultNoteFields>::parse(text).ok().flatten().map(|parsed| parsed.fields)
}

/// Returns the links to notes, in the order of the text.
pub(crate) fn find_links(text: &str) -> Vec<NoteLink> {
    let mut links = Vec::new();
    for (start, line) in code_free_lines(text) {
        let mut at = 0;
        while let Some(found) = line[at..].find('[') {
            at += found;
            if let Some(link) = wiki_link(&line, at).or_else(|| markdown_link(&line, at)) {
                let place = start + link.place.start..start + link.place.end;
                at = link.place.end;
                links.push(NoteLink { place, ..link });
            } else {
                at += 1;
            }
        }
    }
    links
}

/// `[[target#heading|text]]`
fn wiki_link(line: &str, at: usize) -> Option<NoteLink> {
    let inner = line[at..].strip_prefix("[[")?;
    let inner = &inner[..inner.find("]]")?];
    let target = &inner[..inner.find(['#', '|', '^']).unwrap_or(inner.len())];
    if target.contains(['[', ']']) {
        return None;
    }
    link(LinkStyle::Wiki, at + 2, target)
}

/// `[text](target.md#heading "title")`, where `at` is the bracket
fn markdown_link(line: &str, at: usize) -> Option<NoteLink> {
    let close = at + line[at..].find(']')?;
    let inner = line[close..].strip_prefix("](")?;
    let inner = &inner[..inner.find(')')?];
    let target = &inner[..inner.find(['#', ' ']).unwrap_or(inner.len())];
    let is_note = target.ends_with(".md") && !target.contains("://") && !target.starts_with('/');
    is_note.then(|| link(LinkStyle::Markdown, close + 2, target)).flatten()
}

fn link(style: LinkStyle, start: usize, target: &str) -> Option<NoteLink> {
    let place = start..start + target.len();
    let target = target.trim().to_owned();
    (!target.is_empty()).then_some(NoteLink { style, place, target })
}

/// Returns the lines outside of code blocks with the place of each, and with spaces in place of code
/// spans and of the frontmatter.
fn code_free_lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut start = 0;
    let mut fence: Option<&str> = None;
    let mut in_frontmatter = text.starts_with("---\n") || text.starts_with("---\r\n");
    text.split_inclusive('\n').enumerate().filter_map(move |(number, line)| {
        let place = start;
        start += line.len();
        let trimmed = line.trim_start();
        if in_frontmatter {
            in_frontmatter = number == 0 || line.trim_end() != "---";
            return None;
        }
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, None) => return Some((place, blank_code_spans(line.trim_end()))),
            (Some(_), _) => {}
        }
        None
    })
}

/// Replaces each byte of a code span by a space, so that places stay the same.
fn blank_code_spans(line: &str) -> String {
    let mut parts = line.split('`');
    let mut blanked = parts.next().unwrap_or_default().to_owned();
    let rest: Vec<&str> = parts.collect();
    for (index, part) in rest.iter().enumerate() {
        blanked.push(' ');
        // An opening backtick without a closing one is text.
        let is_code = index % 2 == 0 && index + 1 < rest.len();
        match is_code {
            true => blanked.push_str(&" ".repeat(part.len())),
            false => blanked.push_str(part),
        }
    }
    blanked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<String> {
        let links = find_links(text);
        for link in &links {
            assert_eq!(text[link.place.clone()].trim(), link.target, "{text}");
        }
        links.into_iter().map(|link| link.target).collect()
    }

    #[test]
    fn finds_links_outside_of_code() {
        let cases: [(&str, &[&str]); 9] = [
            ("see [[Tea]] and [[ideas/Pot#top|the pot]]", &["Tea", "ideas/Pot"]),
            ("[a](tea.md) [b](../pot.md#top) ![c](x.png)", &["tea.md", "../pot.md"]),
            ("[a](https://a.example/x.md) [b](/x.md)", &[]),
            ("`[[Tea]]` [[Pot]]", &["Pot"]),
            ("a ` b [[Pot]]", &["Pot"]),
            ("```\n[[Tea]]\n```\n[[Pot]]\n", &["Pot"]),
            ("---\ntags: [[x]]\n---\n[[Pot]]", &["Pot"]),
            ("[[]] [[#top]] [[a] [b]]", &[]),
            ("ä [[ä]]", &["ä"]),
        ];
        for (text, expected) in cases {
            assert_eq!(targets(text), expected, "{text}");
        }
    }

    #[test]
    fn finds_titles_and_tags() {
        let text =
            "---\ntags: [Plan, home/tea]\n---\n# A title\n\n#Green `#code` a#b #1 (#no)\n## Two";
        assert_eq!(find_title(text).as_deref(), Some("A title"));
        let tags: Vec<String> = find_tags(text).into_iter().collect();
        assert_eq!(tags, ["green", "home/tea", "plan"]);
        assert_eq!(find_title("---\ntitle: Mine\n---\n# Other").as_deref(), Some("Mine"));
        assert_eq!(find_title("no heading"), None);
        assert!(find_tags("---\ntags: one, two\n---\n").contains("two"));
    }
}
