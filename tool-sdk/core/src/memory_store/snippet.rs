//! The part of a note that is shown with a match.
//!
//! **Invariant:** a snippet is at most [`MAX_CHARS`] characters and two ellipses long, on one line.

use super::SearchTerms;

/// The characters of a snippet.
const MAX_CHARS: usize = 240;

/// How many characters stand before the first match.
const CHARS_BEFORE: usize = 60;

/// Returns the part of `content` around the first of the words, on one line; its start if none
/// occurs.
#[must_use]
pub fn make_snippet(content: &str, terms: &SearchTerms) -> String {
    let line: Vec<char> =
        content.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    if line.len() <= MAX_CHARS {
        return line.into_iter().collect();
    }
    let found = first_match(&line, terms).unwrap_or_default();
    let start = found.saturating_sub(CHARS_BEFORE).min(line.len() - MAX_CHARS);
    let end = start + MAX_CHARS;
    let shown: String = line[start..end].iter().collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{shown}{after}")
}

/// Returns where the first word begins, in characters, ignoring case.
fn first_match(line: &[char], terms: &SearchTerms) -> Option<usize> {
    // One character each, so that places stay comparable.
    let fold = |c: &char| c.to_lowercase().next().unwrap_or(*c);
    let line: Vec<char> = line.iter().map(fold).collect();
    let tokens = terms.tokens().concat();
    let words: Vec<Vec<char>> = tokens.iter().map(|token| token.chars().collect()).collect();
    let starts = |at: &usize| words.iter().any(|word| line[*at..].starts_with(word));
    (0..line.len()).find(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_shown_whole() {
        assert_eq!(make_snippet("a\n b", &SearchTerms::parse("b")), "a b");
    }

    #[test]
    fn a_long_text_is_shown_around_the_first_match() {
        let text = format!("{}Ärger {}", "x ".repeat(300), "y ".repeat(300));
        let snippet = make_snippet(&text, &SearchTerms::parse("ärger"));
        assert!(snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
        assert!(snippet.contains("x Ärger y"), "{snippet}");
        assert_eq!(snippet.chars().count(), MAX_CHARS + 2);
        let start = make_snippet(&text, &SearchTerms::parse("absent"));
        assert!(start.starts_with("x x") && start.ends_with('…'), "{start}");
        let end = make_snippet(&format!("{}end", "x ".repeat(300)), &SearchTerms::parse("end"));
        assert!(end.starts_with('…') && end.ends_with("x end"), "{end}");
    }
}
