//! Strips the shell command that models write around a patch, such as a heredoc.
//!
//! **Invariant:** only a command that contains nothing but a patch is stripped.

/// The programs that models write before a patch.
const PROGRAMS: &[&str] = &["apply_patch", "applypatch", "cat"];

/// Strips the shell command around a patch.
pub(super) fn strip_shell_wrapper(text: &str) -> &str {
    let command = text.trim_start();
    let document = PROGRAMS.iter().find_map(|program| command.strip_prefix(program));
    heredoc_body(document.unwrap_or(command).trim_start_matches([' ', '\t'])).unwrap_or(text)
}

/// Returns the text of the heredoc `<<WORD`, if nothing follows it.
fn heredoc_body(text: &str) -> Option<&str> {
    let (head, body) = text.strip_prefix("<<")?.split_once('\n')?;
    let end = unquote_word(head.trim())?;
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        if line.trim_end() == end {
            let is_last = body[at + line.len()..].trim().is_empty();
            return is_last.then(|| body[..at].trim_end_matches(['\r', '\n']));
        }
        at += line.len();
    }
    None
}

/// Returns a literal shell word without its quotes.
fn unquote_word(text: &str) -> Option<&str> {
    let quoted = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    let word = quoted('\'').or_else(|| quoted('"')).unwrap_or(text);
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    (!word.is_empty() && word.chars().all(is_plain)).then_some(word)
}
