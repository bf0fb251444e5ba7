//! Collects mistakes, so that one compile shows all of them.
//!
//! `lower` reports here and continues; the driver of each attribute checks for mistakes at its
//! end.
//!
//! **Invariant:** every mistake has a token to underline and a suggestion.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// Mistakes in the order they were found.
#[derive(Default)]
pub(crate) struct Diagnostics {
    errors: Vec<syn::Error>,
    is_left_to_rustc: bool,
}

impl Diagnostics {
    /// Reports a mistake at the tokens of `at`, with what to type instead.
    pub(crate) fn error(&mut self, at: impl ToTokens, what: impl Display, help: impl Display) {
        self.errors.push(spanned_error(at, what, help));
    }

    /// Reports an error of syn.
    pub(crate) fn syntax(&mut self, error: syn::Error) {
        self.errors.push(error);
    }

    /// Records a mistake that rustc reports itself, at the same token.
    pub(crate) fn left_to_rustc(&mut self) {
        self.is_left_to_rustc = true;
    }

    /// Whether there are no mistakes.
    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty() && !self.is_left_to_rustc
    }

    /// Returns the mistakes as compile errors, in the order of the source.
    pub(crate) fn to_tokens(&self) -> TokenStream {
        let mut errors: Vec<_> = self.errors.iter().collect();
        errors.sort_by_key(|error| source_position(error));
        errors.into_iter().map(syn::Error::to_compile_error).collect()
    }

    /// The mistakes as texts, in order.
    #[cfg(test)]
    pub(crate) fn messages(&self) -> Vec<String> {
        self.errors.iter().map(ToString::to_string).collect()
    }
}

/// Returns the line and column of a mistake; only the compiler knows them.
fn source_position(error: &syn::Error) -> (usize, usize) {
    if !proc_macro::is_available() {
        return (0, 0);
    }
    let at = error.span().unwrap();
    (at.line(), at.column())
}

/// Formats a mistake and its help as one message; rustc aligns `help` with `error`.
pub(crate) fn spanned_error(
    at: impl ToTokens,
    what: impl Display,
    help: impl Display,
) -> syn::Error {
    syn::Error::new_spanned(at, format_args!("{what}\nhelp: {help}"))
}

/// The minimum similarity of two words for a suggestion.
const ALIKE: f64 = 0.75;

/// Returns the one of `words` that was probably meant by `written`.
fn did_you_mean<'w>(written: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let written = written.to_lowercase();
    words
        .into_iter()
        .map(|word| (strsim::jaro(&written, &word.to_lowercase()), word))
        .filter(|(alike, _)| *alike > ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, word)| word)
}

/// Returns the help for a word that is none of `words`.
pub(crate) fn expected_one_of<'w>(
    written: &str,
    words: impl IntoIterator<Item = &'w str> + Clone,
) -> String {
    if let Some(word) = did_you_mean(written, words.clone()) {
        return format!("did you mean `{word}`?");
    }
    match words.clone().into_iter().count() {
        0 => "remove it".to_owned(),
        1 => format!("write {}", list_words(words)),
        _ => format!("write one of {}", list_words(words)),
    }
}

/// Words for a message: `` `a`, `b`, `c` ``.
fn list_words<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let words = ["path", "offset", "limit"];
        assert_eq!(did_you_mean("paht", words), Some("path"));
        assert_eq!(did_you_mean("Limt", words), Some("limit"));
        assert_eq!(did_you_mean("query", words), None);
    }

    #[test]
    fn help_lists_the_words_when_none_is_close() {
        assert_eq!(expected_one_of("query", ["a", "b"]), "write one of `a`, `b`");
        assert_eq!(expected_one_of("query", ["a"]), "write `a`");
        assert_eq!(expected_one_of("query", []), "remove it");
    }
}
