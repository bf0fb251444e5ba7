//! A note as a Markdown file with frontmatter, as it is exported and imported.
//!
//! Values are written with double quotes, which YAML and JSON share. Unknown fields are skipped, so
//! that notes of other programs can be imported.
//!
//! **Invariant:** a file that is read back gives the note that was written.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use tool_sdk_core::{Frontmatter, MemoryCategory, MemoryNote, MemoryScope, NoteDraft};

/// What encloses the frontmatter.
const FENCE: &str = "---";

/// Formats a note as a file.
pub(super) fn format_note(note: &MemoryNote) -> String {
    let tags: Vec<String> = note.tags.iter().map(|tag| quote_scalar(tag)).collect();
    format!(
        "{FENCE}\nid: {}\ntitle: {}\ncategory: {}\nscope: {}\ntags: [{}]\nversion: {}\n\
         created_at: {}\nupdated_at: {}\n{FENCE}\n\n{}\n",
        note.id,
        quote_scalar(&note.title),
        note.category,
        note.scope,
        tags.join(", "),
        note.version,
        note.created_at(),
        note.updated_at(),
        note.content,
    )
}

/// Writes a text in double quotes. Characters that JSON has raw and YAML forbids are escaped.
fn quote_scalar(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.chars().fold(String::with_capacity(quoted.len()), |mut escaped, c| {
        match u32::from(c) {
            code @ (0x7f..=0x9f | 0x2028 | 0x2029 | 0xfeff | 0xfffe | 0xffff) => {
                escaped.push_str(&format!("\\u{code:04x}"));
            }
            _ => escaped.push(c),
        }
        escaped
    })
}

/// The fields that a note is made of.
#[derive(Deserialize)]
#[serde(default)]
struct NoteFields {
    id: Option<String>,
    title: String,
    category: MemoryCategory,
    scope: MemoryScope,
    tags: BTreeSet<String>,
    /// Other programs may have anything here.
    version: Value,
}

/// A note that was read from a file.
#[derive(Debug, PartialEq)]
pub(super) struct NoteFile {
    pub(super) draft: NoteDraft,
    /// The version of the note that was exported.
    pub(super) version: Option<u64>,
}

impl Default for NoteFields {
    fn default() -> Self {
        let NoteDraft { id, title, category, scope, tags, .. } = NoteDraft::new("");
        Self { id, title, category, scope, tags, version: Value::Null }
    }
}

/// Parses a file. The error names the line and what it must be.
pub(super) fn parse_note(text: &str) -> Result<NoteFile, String> {
    let parsed = Frontmatter::<NoteFields>::parse(text).map_err(|error| error.to_string())?;
    let Some(Frontmatter { fields, body, .. }) = parsed else {
        let draft = NoteDraft::new(text.trim_start_matches('\u{feff}').trim_end());
        return Ok(NoteFile { draft, version: None });
    };
    let mut draft = NoteDraft::new(body.trim_end());
    // The version of a note without an id is that of another program.
    let version = fields.version.as_u64().filter(|_| fields.id.is_some());
    draft.id = fields.id;
    draft.title = fields.title;
    draft.category = fields.category;
    draft.scope = fields.scope;
    draft.tags = fields.tags;
    Ok(NoteFile { draft, version })
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
        let draft = parse_note(text).unwrap().draft;
        assert_eq!((&*draft.title, &*draft.content), ("Plain title", "Text"));
        assert_eq!(draft.id.as_deref(), Some("my-note"));
        assert_eq!(draft.tags.into_iter().collect::<Vec<_>>(), ["it's", "one"]);
        for (text, content) in
            [("only text\n", "only text"), ("---\n---\ntext", "text"), ("---\na: b\n---", "")]
        {
            let expected = NoteFile { draft: NoteDraft::new(content), version: None };
            assert_eq!(parse_note(text).unwrap(), expected);
        }
        for (text, version) in [
            ("---\nid: a\nversion: 3\n---\n", Some(3)),
            ("---\nversion: 3\n---\n", None),
            ("---\nid: a\nversion: 1.2.x\n---\n", None),
        ] {
            assert_eq!(parse_note(text).unwrap().version, version, "{text}");
        }
    }

    #[test]
    fn a_mistake_has_its_line() {
        for (text, wrong) in [
            ("---\ntitle: x\n", "the line `---` that ends the frontmatter is missing"),
            ("---\ntitle: x\ncategory: idea\n---\n", "line 3: unknown variant `idea`"),
            ("---\nscope: world\n---\n", "line 2: unknown variant `world`"),
            ("---\ntags: a, b\n---\n", "line 2: "),
            ("---\ntitle: [a]\n---\n", "line 2: "),
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
            let NoteFile { draft, version } = parse_note(&format_note(&note)).unwrap();
            prop_assert_eq!(version, Some(3));
            prop_assert_eq!(draft.title, title);
            prop_assert_eq!(&*draft.content, content);
            prop_assert_eq!(draft.tags, note.tags);
        }
    }
}
