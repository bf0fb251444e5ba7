//! Finds names that are similar to a misspelt one.

use unicode_normalization::UnicodeNormalization as _;

/// The minimum similarity, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.6;

/// The maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 3;

/// Returns the names that are most similar to `wanted`, the closest first.
pub(crate) fn closest_names(wanted: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let wanted = normalize_name(wanted);
    let mut scored: Vec<(f64, String)> = names
        .into_iter()
        .map(|name| (name_similarity(&wanted, &normalize_name(&name)), name))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
}

/// Normalizes case and Unicode composition, in which names of the same look may differ.
fn normalize_name(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).collect()
}

/// Returns the normalized edit distance; at least 0.8 when one name continues the other, as in
/// `lib` and `lib.rs`.
fn name_similarity(wanted: &str, name: &str) -> f64 {
    let distance = strsim::normalized_damerau_levenshtein(wanted, name);
    let shorter = wanted.len().min(name.len());
    let continues = shorter >= 3 && (wanted.starts_with(name) || name.starts_with(wanted));
    if continues { distance.max(0.8) } else { distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, names: &[&str], expected: &[&str]) {
        assert_eq!(closest_names(wanted, names.iter().map(|name| (*name).to_owned())), expected);
    }

    #[test]
    fn recognizes_typos() {
        check("mian.rs", &["main.rs", "lib.rs", "mod.rs"], &["main.rs"]);
        check("Readme.md", &["README.md", "build.rs"], &["README.md"]);
        check("config", &["config.toml", "x"], &["config.toml"]);
        check("u\u{308}n\u{131}", &["x", "\u{fc}n\u{131}"], &["\u{fc}n\u{131}"]);
        check("o\u{308}", &["\u{f6}"], &["\u{f6}"]);
    }

    #[test]
    fn suggests_at_most_three_names() {
        check("a1.rs", &["a2.rs", "a4.rs", "a3.rs", "a5.rs"], &["a2.rs", "a3.rs", "a4.rs"]);
    }

    #[test]
    fn skips_dissimilar_names() {
        check("main.rs", &["Cargo.toml", "x", ""], &[]);
    }
}
