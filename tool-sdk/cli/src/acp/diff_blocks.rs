//! Diffs of the protocol, from the unified diffs in previews and results of tools.
//!
//! **Invariant:** a diff that is not understood in full is sent as text and not as a diff.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::Diff;
use serde_json::Value;
use tool_sdk_core::internal::parse_hunk_header;

/// Returns the diffs in `data`, one for each hunk: a unified diff as the text itself, or in the
/// member `unified` or `diff` of an object. Paths are relative to `root`.
///
/// Empty when there is no diff, or one that is cut.
pub(super) fn find_diffs(data: &Value, root: &Path) -> Vec<Diff> {
    let text = match data {
        Value::String(text) => Some(text.as_str()),
        Value::Object(members) => {
            ["unified", "diff"].iter().find_map(|key| members.get(*key)?.as_str())
        }
        _ => None,
    };
    text.and_then(|text| parse_unified(text, root)).unwrap_or_default()
}

/// Parses a unified diff of one or more files.
fn parse_unified(text: &str, root: &Path) -> Option<Vec<Diff>> {
    let mut lines = text.lines().peekable();
    let mut diffs = Vec::new();
    while let Some(line) = lines.next() {
        let old = line.strip_prefix("--- ")?;
        let new = lines.next()?.strip_prefix("+++ ")?;
        let (is_created, is_removed) = (old == "/dev/null", new == "/dev/null");
        let path: PathBuf = root.join(if is_removed { old } else { new });
        let mut has_hunk = false;
        while let Some(header) = lines.next_if(|line| line.starts_with("@@ ")) {
            has_hunk = true;
            let (old_len, new_len) = parse_hunk_header(header)?;
            let hunk = read_hunk(&mut lines, old_len, new_len)?;
            diffs.push(Diff::new(&path, hunk.new).old_text((!is_created).then_some(hunk.old)));
        }
        if !has_hunk {
            // An empty file that is created or removed has only a header.
            diffs.push(Diff::new(&path, "").old_text((!is_created).then(String::new)));
        }
    }
    Some(diffs)
}

/// The two sides of a hunk.
#[derive(Default)]
struct HunkTexts {
    old: String,
    new: String,
}

/// Reads as many lines as the header says.
fn read_hunk<'t>(
    lines: &mut std::iter::Peekable<impl Iterator<Item = &'t str>>,
    mut old_left: usize,
    mut new_left: usize,
) -> Option<HunkTexts> {
    let mut texts = HunkTexts::default();
    while old_left > 0 || new_left > 0 {
        let line = lines.next()?;
        let sign = line.chars().next()?;
        let content = line.get(1..)?;
        let ends = lines.next_if(|next| next.starts_with('\\')).is_none();
        let end = if ends { "\n" } else { "" };
        if matches!(sign, ' ' | '-') {
            old_left = old_left.checked_sub(1)?;
            texts.old.push_str(content);
            texts.old.push_str(end);
        }
        if matches!(sign, ' ' | '+') {
            new_left = new_left.checked_sub(1)?;
            texts.new.push_str(content);
            texts.new.push_str(end);
        }
        if !matches!(sign, ' ' | '-' | '+') {
            return None;
        }
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn diffs(text: &str) -> Vec<(String, Option<String>, String)> {
        let found = find_diffs(&json!({ "unified": text, "path": "x" }), Path::new("/w"));
        let parts = |it: Diff| (it.path.display().to_string(), it.old_text, it.new_text);
        found.into_iter().map(parts).collect()
    }

    #[test]
    fn each_hunk_is_a_diff_with_both_texts() {
        let text = "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9,2 @@\n nine\n+ten\n\\ No newline at end of file\n";
        let path = "/w/a.txt".to_owned();
        assert_eq!(
            diffs(text),
            [
                (path.clone(), Some("one\ntwo\n".to_owned()), "one\n2\n".to_owned()),
                (path, Some("nine\n".to_owned()), "nine\nten".to_owned()),
            ]
        );
    }

    #[test]
    fn a_new_file_has_no_old_text() {
        let text = "--- /dev/null\n+++ b.txt\n@@ -0,0 +1 @@\n+hello\n--- c.txt\n+++ /dev/null\n";
        assert_eq!(
            diffs(text),
            [
                ("/w/b.txt".to_owned(), None, "hello\n".to_owned()),
                ("/w/c.txt".to_owned(), Some(String::new()), String::new()),
            ]
        );
    }

    #[test]
    fn what_is_cut_or_no_diff_is_none() {
        for text in [
            "[what changes in a.txt may not be shown]\n",
            "--- a\n+++ a\n@@ -1,9 +1,9 @@\n one\n[9 more lines]\n",
            "--- a\n+++ a\n@@ nonsense @@\n",
            "",
        ] {
            assert_eq!(diffs(text), [], "{text}");
        }
        assert!(find_diffs(&json!({ "stdout": "--- a" }), Path::new("/")).is_empty());
    }
}
