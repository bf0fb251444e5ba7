//! The tool `vault_search`: finds notes by words and tags.

use serde_json::json;
use tool_sdk::{Context, Output, State, ToolError, Workspace, tool};

use crate::notes::{VaultNote, read_notes, vault_resources};

/// The maximum number of lines that are shown of a note.
const MAX_LINES: usize = 3;

/// The maximum number of characters of a line.
const MAX_LINE: usize = 200;

/// Search the notes of the vault. All words of the query must be in a note, in any case; a word such
/// as `#tea` is a tag. Notes with the words in their title come first, then those with most of them.
#[tool(
    read,
    category = "vault",
    permission = "read",
    approval(resources = |_, cx| vault_resources(cx)),
    display(name = "Search notes", primary = query, show(query), summary = "Searching notes for {query}"),
    example = r#"{"query": "green tea"}"#,
    example = r##"{"query": "#recipe cake", "limit": 5}"##
)]
pub async fn vault_search(
    /// Words and tags.
    #[arg(length = 1..=500)]
    query: String,
    /// How many notes to show at most.
    #[arg(default = 20, range = 1..=200)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let visible = cx.visible_files("read");
    cx.run_blocking(move |stop| {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        if words.is_empty() {
            return Err(ToolError::invalid("query", "it has no word"));
        }
        let vault = read_notes(&workspace, &visible, stop)?;
        let mut found: Vec<(usize, &VaultNote)> = vault
            .notes
            .values()
            .filter_map(|note| Some((rank_note(note, &words)?, note)))
            .collect();
        found.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.path.cmp(&other.1.path)));
        let mut text = match found.len() {
            0 => "No notes found. Try fewer words.\n".to_owned(),
            1 => "Found 1 note.\n".to_owned(),
            all => format!("Found {all} notes.\n"),
        };
        for (_, note) in found.iter().take(limit as usize) {
            text.push_str(&format!("{}: {}\n", note.path, note.title));
            for (number, line) in matching_lines(note, &words) {
                let line: String = line.trim().chars().take(MAX_LINE).collect();
                text.push_str(&format!("  {number}: {line}\n"));
            }
        }
        text.pop();
        let paths: Vec<&str> = found.iter().map(|(_, note)| note.path.as_str()).collect();
        Ok(Output::text(text)
            .metadata("found", paths.len())
            .display(json!({ "type": "notes", "notes": paths })))
    })
    .await
}

/// Returns how well a note matches; `None` when a word is missing.
fn rank_note(note: &VaultNote, words: &[String]) -> Option<usize> {
    let (title, text) = (note.title.to_lowercase(), note.text.to_lowercase());
    let mut rank = 0;
    for word in words {
        rank += match word.strip_prefix('#') {
            Some(tag) => usize::from(note.tags.contains(tag)),
            None => 1000 * usize::from(title.contains(word)) + text.matches(word).count().min(99),
        }
        .checked_sub(1)?
            + 1;
    }
    Some(rank)
}

fn matching_lines<'n>(
    note: &'n VaultNote,
    words: &'n [String],
) -> impl Iterator<Item = (usize, &'n str)> {
    let matching = (1..).zip(note.text.lines()).filter(|(_, line)| {
        let line = line.to_lowercase();
        words.iter().any(|word| line.contains(word))
    });
    matching.take(MAX_LINES)
}
