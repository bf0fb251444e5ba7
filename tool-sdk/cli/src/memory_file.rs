//! A note as a Markdown file with frontmatter, as it is exported and imported.
//!
//! The frontmatter is a small part of YAML: `key: value` with plain or quoted values, and lists in
//! brackets or line by line. Values are written with double quotes, which YAML and JSON share.
//! Unknown keys are skipped, so that notes of other programs can be imported.
//!
//! **Invariant:** a file that is read back gives the note that was written.

use std::collections::BTreeSet;

use tool_sdk_core::{MemoryNote, NoteDraft};

/// What encloses the frontmatter.
const FENCE: &str = "---";

/// Formats a note as a file.
pub(super) fn format_note(note: &MemoryNote) -> String {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let tags: Vec<String> = note.tags.iter().map(|tag| quoted(tag)).collect();
    format!(
        "{FENCE}\nid: {}\ntitle: {}\ncategory: {}\nscope: {}\ntags: [{}]\nversion: {}\n\
         created_at: {}\nupdated_at: {}\n{FENCE}\n\n{}\n",
        note.id,
        quoted(&note.title),
        note.category,
        note.scope,
        tags.join(", "),
        note.version,
        note.created_at(),
        note.updated_at(),
        note.content,
    )
}

/// Parses a file. The error names the line and what it must be.
pub(super) fn parse_note(text: &str) -> Result<NoteDraft, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let Some((head, body)) = split_frontmatter(&text)? else {
        return Ok(NoteDraft::new(text.trim_end().to_owned()));
    };
    let mut draft = NoteDraft::new(body.trim_start_matches('\n').trim_end().to_owned());
    let mut lines = head.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let wrong = |why: String| format!("line {}: {why}", number + 2);
        let is_nested = line.starts_with([' ', '\t', '-', '#']);
        let Some((key, value)) = line.split_once(':').filter(|_| !is_nested) else { continue };
        let value = value.trim();
        match key.trim() {
            "id" => draft.id = Some(parse_scalar(value).map_err(wrong)?),
            "title" => draft.title = parse_scalar(value).map_err(wrong)?,
            "category" => {
                draft.category = parse_scalar(value).and_then(|it| it.parse()).map_err(wrong)?
            }
            "scope" => {
                draft.scope = parse_scalar(value).and_then(|it| it.parse()).map_err(wrong)?
            }
            "tags" if value.is_empty() => {
                while let Some((_, item)) =
                    lines.next_if(|(_, line)| line.trim_start().starts_with("- "))
                {
                    let item = item.trim_start().trim_start_matches("- ").trim();
                    draft.tags.insert(parse_scalar(item).map_err(wrong)?);
                }
            }
            "tags" => draft.tags = parse_list(value).map_err(wrong)?,
            _ => {}
        }
    }
    Ok(draft)
}

/// Splits the text into frontmatter and body; `None` without frontmatter.
fn split_frontmatter(text: &str) -> Result<Option<(&str, &str)>, String> {
    let Some(rest) = text.strip_prefix("---\n") else { return Ok(None) };
    if let Some(body) = rest.strip_prefix("---\n") {
        return Ok(Some(("", body)));
    }
    let end = rest
        .find("\n---\n")
        .or_else(|| rest.ends_with("\n---").then(|| rest.len() - "\n---".len()));
    let Some(end) = end else {
        return Err("line 1: the frontmatter has no end; add `---`".to_owned());
    };
    Ok(Some((&rest[..end], rest[end + "\n---".len()..].trim_start_matches('\n'))))
}

/// Parses a plain or quoted value.
fn parse_scalar(value: &str) -> Result<String, String> {
    if value.starts_with('"') {
        return serde_json::from_str(value)
            .map_err(|_| format!("`{}` is not a text in double quotes", value.escape_debug()));
    }
    if let Some(rest) = value.strip_prefix('\'') {
        let inner = rest.strip_suffix('\'');
        let inner =
            inner.ok_or_else(|| format!("`{}` has no closing quote", value.escape_debug()))?;
        return Ok(inner.replace("''", "'"));
    }
    if value.starts_with(['|', '>', '&', '*', '{']) {
        return Err(format!("`{}` must be a text on one line", value.escape_debug()));
    }
    Ok(value.split(" #").next().unwrap_or_default().trim_end().to_owned())
}

/// Parses `[a, "b, c"]`.
fn parse_list(value: &str) -> Result<BTreeSet<String>, String> {
    let inner = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner =
        inner.ok_or_else(|| format!("`{}` must be a list such as [a, b]", value.escape_debug()))?;
    split_items(inner).into_iter().map(|item| parse_scalar(item.trim())).collect()
}

/// Splits at commas that are not in double quotes.
fn split_items(text: &str) -> Vec<&str> {
    let (mut items, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items.retain(|item| !item.trim().is_empty());
    items
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use proptest::prelude::*;
    use tool_sdk_core::{MemoryCategory, MemoryScope};

    use super::*;

    fn note(title: &str, content: &str, tags: &[&str]) -> MemoryNote {
        MemoryNote {
            id: "note-1".to_owned(),
            title: title.to_owned(),
            content: content.to_owned(),
            category: MemoryCategory::Decision,
            scope: MemoryScope::User,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            version: 3,
            created: SystemTime::UNIX_EPOCH,
            updated: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_note_is_markdown_with_frontmatter() {
        let text = format_note(&note("Say \"hi\": now", "Body\n---\nmore", &["a b", "c"]));
        assert_eq!(
            text,
            "---\nid: note-1\ntitle: \"Say \\\"hi\\\": now\"\ncategory: decision\nscope: user\n\
             tags: [\"a b\", \"c\"]\nversion: 3\ncreated_at: 1970-01-01T00:00:00.000Z\n\
             updated_at: 1970-01-01T00:00:00.000Z\n---\n\nBody\n---\nmore\n"
        );
    }

    #[test]
    fn notes_of_other_programs_are_read() {
        let text = "---\r\ntitle: Plain title # comment\r\ntags:\r\n  - one\r\n  - 'it''s'\r\n\
                    aliases:\r\n  - x: y\r\nid: my-note\r\n---\r\nText";
        let draft = parse_note(text).unwrap();
        assert_eq!((&*draft.title, &*draft.content), ("Plain title", "Text"));
        assert_eq!(draft.id.as_deref(), Some("my-note"));
        assert_eq!(draft.tags.into_iter().collect::<Vec<_>>(), ["it's", "one"]);
        assert_eq!(parse_note("only text\n").unwrap(), NoteDraft::new("only text"));
        assert_eq!(parse_note("---\n---\ntext").unwrap(), NoteDraft::new("text"));
        assert_eq!(parse_note("---\na: b\n---").unwrap(), NoteDraft::new(""));
    }

    #[test]
    fn a_mistake_has_its_line() {
        for (text, wrong) in [
            ("---\ntitle: x\n", "line 1: the frontmatter has no end; add `---`"),
            ("---\ntitle: x\ncategory: idea\n---\n", "line 3: `idea` is not a category; it must"),
            ("---\nscope: world\n---\n", "line 2: `world` is not a scope; it must"),
            ("---\ntags: a, b\n---\n", "line 2: `a, b` must be a list such as [a, b]"),
            ("---\ntitle: |\n  x\n---\n", "line 2: `|` must be a text on one line"),
            ("---\ntitle: \"x\n---\n", "line 2: `\\\"x` is not a text in double quotes"),
        ] {
            let error = parse_note(text).unwrap_err();
            assert!(error.starts_with(wrong), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            title in "[^\r\n]{0,20}",
            content in "[^\r]{0,40}",
            tags in proptest::collection::vec("[^\r\n]{1,8}", 0..4),
        ) {
            let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
            let content = content.trim_matches('\n').trim_end();
            let note = note(&title, content, &tags);
            let draft = parse_note(&format_note(&note)).unwrap();
            prop_assert_eq!(draft.title, title);
            prop_assert_eq!(&*draft.content, content);
            prop_assert_eq!(draft.tags, note.tags);
        }
    }
}
