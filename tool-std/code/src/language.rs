//! The languages, the names of their files, and their grammars with the queries for symbols.

use std::path::Path;
use std::sync::OnceLock;

use tree_sitter::{Language, Query};

/// A language whose symbols can be found, when the feature of its name is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SourceLanguage {
    /// Shell scripts.
    Bash,
    /// C, with its headers.
    C,
    /// Go.
    Go,
    /// Java.
    Java,
    /// JavaScript, with JSX.
    JavaScript,
    /// Python.
    Python,
    /// Rust.
    Rust,
    /// TypeScript.
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
}

/// The grammar of a language, and the query for its symbols.
pub(crate) struct LanguageGrammar {
    pub(crate) language: Language,
    pub(crate) symbols: Query,
}

impl SourceLanguage {
    /// Every language, with or without its feature.
    pub const ALL: [Self; 9] = [
        Self::Bash,
        Self::C,
        Self::Go,
        Self::Java,
        Self::JavaScript,
        Self::Python,
        Self::Rust,
        Self::TypeScript,
        Self::Tsx,
    ];

    /// Returns the language of a file by the ending of its name; `None` for other files.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std_code::SourceLanguage;
    ///
    /// assert_eq!(SourceLanguage::of_path("src/lib.rs".as_ref()), Some(SourceLanguage::Rust));
    /// assert_eq!(SourceLanguage::of_path("README.md".as_ref()), None);
    /// ```
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "bash" | "sh" => Some(Self::Bash),
            "c" | "h" => Some(Self::C),
            "go" => Some(Self::Go),
            "java" => Some(Self::Java),
            "cjs" | "js" | "jsx" | "mjs" => Some(Self::JavaScript),
            "py" | "pyi" => Some(Self::Python),
            "rs" => Some(Self::Rust),
            "cts" | "mts" | "ts" => Some(Self::TypeScript),
            "tsx" => Some(Self::Tsx),
            _ => None,
        }
    }

    /// Returns the language of a name such as `rust`; `None` for other names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.name() == name)
    }

    /// Returns the name in lower case, which is that of the feature, except for `tsx`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::C => "c",
            Self::Go => "go",
            Self::Java => "java",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::Rust => "rust",
            Self::TypeScript => "typescript",
            Self::Tsx => "tsx",
        }
    }

    /// Whether the feature of the language is on.
    #[must_use]
    pub fn is_available(self) -> bool {
        self.grammar().is_some()
    }

    /// What stands between the names of a container and of a symbol in it.
    #[must_use]
    pub fn separator(self) -> &'static str {
        match self {
            Self::Rust => "::",
            _ => ".",
        }
    }

    /// Returns the grammar, compiled on first use; `None` without the feature of the language.
    pub(crate) fn grammar(self) -> Option<&'static LanguageGrammar> {
        static GRAMMARS: [OnceLock<Option<LanguageGrammar>>; SourceLanguage::ALL.len()] =
            [const { OnceLock::new() }; SourceLanguage::ALL.len()];
        GRAMMARS[self as usize].get_or_init(|| self.load_grammar()).as_ref()
    }

    /// Returns `None` as well for a query that does not fit its grammar; a test holds that all do.
    fn load_grammar(self) -> Option<LanguageGrammar> {
        let (language, query) = self.grammar_sources()?;
        let symbols = Query::new(&language, &query).ok()?;
        Some(LanguageGrammar { language, symbols })
    }

    /// Returns the grammar and the text of the query.
    fn grammar_sources(self) -> Option<(Language, String)> {
        match self {
            #[cfg(feature = "bash")]
            Self::Bash => Some((
                tree_sitter_bash::LANGUAGE.into(),
                include_str!("queries/bash.scm").to_owned(),
            )),
            #[cfg(feature = "c")]
            Self::C => {
                Some((tree_sitter_c::LANGUAGE.into(), include_str!("queries/c.scm").to_owned()))
            }
            #[cfg(feature = "go")]
            Self::Go => {
                Some((tree_sitter_go::LANGUAGE.into(), include_str!("queries/go.scm").to_owned()))
            }
            #[cfg(feature = "java")]
            Self::Java => Some((
                tree_sitter_java::LANGUAGE.into(),
                include_str!("queries/java.scm").to_owned(),
            )),
            #[cfg(feature = "javascript")]
            Self::JavaScript => Some((
                tree_sitter_javascript::LANGUAGE.into(),
                include_str!("queries/javascript.scm").to_owned(),
            )),
            #[cfg(feature = "python")]
            Self::Python => Some((
                tree_sitter_python::LANGUAGE.into(),
                include_str!("queries/python.scm").to_owned(),
            )),
            #[cfg(feature = "rust")]
            Self::Rust => Some((
                tree_sitter_rust::LANGUAGE.into(),
                include_str!("queries/rust.scm").to_owned(),
            )),
            #[cfg(feature = "typescript")]
            Self::TypeScript => Some((
                tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
                include_str!("queries/typescript.scm").to_owned(),
            )),
            #[cfg(feature = "typescript")]
            Self::Tsx => Some((
                tree_sitter_typescript::LANGUAGE_TSX.into(),
                [include_str!("queries/typescript.scm"), include_str!("queries/tsx.scm")].concat(),
            )),
            #[cfg(not(feature = "all-languages"))]
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_fits_its_grammar() {
        for language in SourceLanguage::ALL {
            let Some((grammar, query)) = language.grammar_sources() else { continue };
            if let Err(error) = Query::new(&grammar, &query) {
                panic!("{}: {error}", language.name());
            }
        }
    }

    #[test]
    fn finds_each_language_by_its_name() {
        for language in SourceLanguage::ALL {
            assert_eq!(SourceLanguage::from_name(language.name()), Some(language));
        }
        assert_eq!(SourceLanguage::from_name("Rust"), None);
    }
}
