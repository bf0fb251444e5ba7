//! The words of a search, and how notes are matched by them.
//!
//! **Invariant:** text of a model becomes quoted words, never syntax of a query language.

use std::collections::BTreeSet;

/// The most words of a search that are looked for.
const MAX_WORDS: usize = 32;

/// The words of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "for the crates of the SDK only")]
pub struct SearchTerms {
    /// The words as they were written, at most 32, none twice; each has a letter or a digit.
    pub words: Vec<String>,
}

impl SearchTerms {
    /// Splits a text at white space. What has no letter and no digit is left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut seen = BTreeSet::new();
        let words = text
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|word| word.chars().any(char::is_alphanumeric))
            .filter(|word| seen.insert(word.to_lowercase()))
            .take(MAX_WORDS)
            .map(str::to_owned)
            .collect();
        Self { words }
    }

    /// Returns whether there is nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the tokens of each word: `C++/CLI` has `c` and `cli`.
    pub(super) fn tokens(&self) -> Vec<Vec<String>> {
        self.words.iter().map(|word| split_tokens(word)).collect()
    }

    /// Returns whether the last word may be the start of one: it has at least three characters and
    /// ends with a letter or a digit, so that `C++` does not match `city`.
    #[must_use]
    pub fn is_last_prefix(&self) -> bool {
        let last = self.words.last().map_or("", String::as_str);
        last.chars().count() >= 3 && last.ends_with(char::is_alphanumeric)
    }

    /// Returns the words for a search in parts of a text, in lower case.
    #[must_use]
    pub fn lowercase_words(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_lowercase()).collect()
    }
}

/// Splits a text into tokens: runs of letters and digits, in lower case.
pub(super) fn split_tokens(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|token| !token.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_as_written_and_once() {
        let words = SearchTerms::parse("C++  foo-bar -- \"OR\" * NEAR( a/b \u{0}x foo-BAR").words;
        assert_eq!(words, ["C++", "foo-bar", "\"OR\"", "NEAR(", "a/b", "x"]);
        assert!(SearchTerms::parse(" -- ** \n").is_empty());
        assert_eq!(SearchTerms::parse(&"w ".repeat(3)).words, ["w"]);
        let many: String = (0..100).map(|n| format!("w{n} ")).collect();
        assert_eq!(SearchTerms::parse(&many).words.len(), MAX_WORDS);
    }

    #[test]
    fn a_word_has_the_tokens_between_its_punctuation() {
        assert_eq!(SearchTerms::parse("C++/CLI x").tokens(), [vec!["c", "cli"], vec!["x"]]);
    }
}
