//! The titles of conversations.

/// Returns the first line of a prompt, shortened to a title.
pub(crate) fn conversation_title(prompt: &str) -> String {
    const MAX_CHARS: usize = 80;
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
