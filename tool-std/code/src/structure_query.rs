//! Structure queries: syntax found by its structure, in the query language of tree-sitter.
//!
//! **Invariant:** the work of a query is bounded, and what was cut is told.

use std::fmt;

use tree_sitter::{
    Node, Query, QueryCursorOptions, QueryCursorState, QueryErrorKind, StreamingIterator as _,
};

use crate::extract::{ExtractError, SymbolExtractor, last_row, stop_when};
use crate::language::SourceLanguage;

/// The maximum number of bytes of the text of a captured node.
const MAX_CAPTURED: usize = 4096;

/// A query for syntax of one language.
///
/// # Examples
///
/// ```
/// use tool_std_code::{SourceLanguage, StructureQuery, SymbolExtractor};
///
/// let text = "(macro_invocation macro: (identifier) @name (#eq? @name \"println\"))";
/// let query = StructureQuery::parse(SourceLanguage::Rust, text).unwrap();
/// let source = "fn f() {\n    println!()\n}\n";
/// let found = SymbolExtractor::new().find_structure(&query, source, 10, &|| false).unwrap();
/// assert!(!found.is_truncated);
/// assert_eq!(found.matches[0].captures[0].first_line, 2);
///
/// let error = StructureQuery::parse(SourceLanguage::Rust, "(no_such_node)").unwrap_err();
/// assert_eq!(error.to_string(), "line 1, column 2: Rust's grammar has no node `no_such_node`");
/// ```
#[derive(Debug)]
pub struct StructureQuery {
    query: Query,
    language: SourceLanguage,
}

/// The matches of a structure query in one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StructureMatches {
    /// The matches, in the order of the text.
    pub matches: Vec<StructureMatch>,
    /// Whether there are more matches, or may be because the query exceeded its limit of work.
    pub is_truncated: bool,
}

/// One match of a structure query.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StructureMatch {
    /// What the query captured, in the order of the text.
    pub captures: Vec<CapturedNode>,
}

/// A node that a query captured. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapturedNode {
    /// The name of the capture, without `@`.
    pub capture: String,
    /// The kind of the node in the grammar.
    pub kind: String,
    /// The text of the node, at most 4 KiB.
    pub text: String,
    /// Whether the text of the node is longer.
    pub is_truncated: bool,
    /// The first line.
    pub first_line: u32,
    /// The last line.
    pub last_line: u32,
}

/// A mistake in a structure query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructureQueryError(String);

impl fmt::Display for StructureQueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StructureQueryError {}

impl StructureQuery {
    /// Parses a query, which must capture at least one node.
    ///
    /// # Errors
    ///
    /// Fails with the place for a query that the grammar of the language does not fit, for one
    /// without captures, and when the feature of the language is off.
    pub fn parse(language: SourceLanguage, text: &str) -> Result<Self, StructureQueryError> {
        let Some(grammar) = language.grammar() else {
            let missing = ExtractError::LanguageUnavailable(language);
            return Err(StructureQueryError(missing.to_string()));
        };
        let query = Query::new(&grammar.language, text).map_err(|error| {
            let place = format_args!("line {}, column {}", error.row + 1, error.column + 1);
            let what = error.message.trim_matches('"');
            StructureQueryError(match error.kind {
                QueryErrorKind::NodeType => {
                    format!("{place}: {}'s grammar has no node `{what}`", display_name(language))
                }
                QueryErrorKind::Field => {
                    format!("{place}: {}'s grammar has no field `{what}`", display_name(language))
                }
                QueryErrorKind::Capture => format!("{place}: nothing is captured as `@{what}`"),
                QueryErrorKind::Structure => {
                    format!("{place}: the grammar never nests nodes like this: {what}")
                }
                _ => format!("{place}: {what}"),
            })
        })?;
        if query.capture_names().is_empty() {
            let message = "the query captures nothing; write `@name` behind the node to show";
            return Err(StructureQueryError(message.to_owned()));
        }
        Ok(Self { query, language })
    }

    /// Returns the language of the query.
    #[must_use]
    pub fn language(&self) -> SourceLanguage {
        self.language
    }
}

fn display_name(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::Bash => "Bash",
        SourceLanguage::C => "C",
        SourceLanguage::Go => "Go",
        SourceLanguage::Java => "Java",
        SourceLanguage::JavaScript => "JavaScript",
        SourceLanguage::Python => "Python",
        SourceLanguage::Rust => "Rust",
        SourceLanguage::TypeScript | SourceLanguage::Tsx => "TypeScript",
    }
}

impl SymbolExtractor {
    /// Finds at most `limit` matches of `query` in `text`, in the order of the text.
    ///
    /// # Errors
    ///
    /// Fails when `is_cancelled` returned `true`.
    pub fn find_structure(
        &mut self,
        query: &StructureQuery,
        text: &str,
        limit: usize,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<StructureMatches, ExtractError> {
        let language = query.language;
        let grammar = language.grammar().ok_or(ExtractError::LanguageUnavailable(language))?;
        let tree = self.parse(grammar, text, is_cancelled)?;
        let mut progress = |_: &QueryCursorState| stop_when(is_cancelled());
        let options = QueryCursorOptions::new().progress_callback(&mut progress);
        let bytes = text.as_bytes();
        let mut matches =
            self.cursor.matches_with_options(&query.query, tree.root_node(), bytes, options);
        let mut found = StructureMatches::default();
        while let Some(matched) = matches.next() {
            // A predicate may be all that a pattern captures for.
            let captures: Vec<CapturedNode> = matched
                .captures()
                .iter()
                .map(|it| {
                    captured_node(query.query.capture_names()[it.index as usize], it.node, text)
                })
                .collect();
            if captures.is_empty() {
                continue;
            }
            if found.matches.len() == limit {
                found.is_truncated = true;
                break;
            }
            found.matches.push(StructureMatch { captures });
        }
        drop(matches);
        found.is_truncated |= self.cursor.did_exceed_match_limit();
        if is_cancelled() { Err(ExtractError::Cancelled) } else { Ok(found) }
    }
}

fn captured_node(capture: &str, node: Node<'_>, text: &str) -> CapturedNode {
    let text = text.get(node.byte_range()).unwrap_or_default();
    let end = text.floor_char_boundary(MAX_CAPTURED);
    let line = |row: usize| u32::try_from(row).unwrap_or(u32::MAX).saturating_add(1);
    CapturedNode {
        capture: capture.to_owned(),
        kind: node.kind().to_owned(),
        text: text[..end].to_owned(),
        is_truncated: end < text.len(),
        first_line: line(node.start_position().row),
        last_line: line(last_row(node)),
    }
}
