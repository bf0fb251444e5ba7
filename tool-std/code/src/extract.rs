//! Parses a text and extracts its symbols, with one pass of the language's query.
//!
//! **Invariant:** an extraction that was cancelled returns no symbols.

use std::collections::HashMap;
use std::fmt;
use std::ops::{ControlFlow, Range};

use tree_sitter::{
    Node, ParseOptions, ParseState, Parser, Point, Query, QueryCapture, QueryCursor,
    QueryCursorOptions, QueryCursorState, StreamingIterator as _, Tree,
};

use crate::language::{LanguageGrammar, SourceLanguage};
use crate::nesting::{CapturedScope, nest_scopes};
use crate::quoted_types::quoted_names;
use crate::symbol::{FileSymbols, ReferenceRole, SymbolKind, SymbolReference};

/// The maximum number of characters of a signature.
const MAX_SIGNATURE: usize = 200;

/// Extracts symbols from texts. Keep one for many texts: a parser keeps its memory.
pub struct SymbolExtractor {
    pub(crate) parser: Parser,
    pub(crate) cursor: QueryCursor,
}

/// Why a text has no symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtractError {
    /// The feature of the language is off.
    LanguageUnavailable(SourceLanguage),
    /// The caller's check told to stop.
    Cancelled,
}

impl fmt::Display for ExtractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LanguageUnavailable(language) => {
                write!(f, "the program was built without the language `{}`", language.name())
            }
            Self::Cancelled => f.write_str("the extraction was cancelled"),
        }
    }
}

impl std::error::Error for ExtractError {}

impl Default for SymbolExtractor {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SymbolExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolExtractor").finish_non_exhaustive()
    }
}

impl SymbolExtractor {
    /// Creates an extractor for any language.
    #[must_use]
    pub fn new() -> Self {
        let mut cursor = QueryCursor::new();
        // Bounds the work of a structure query; the symbol queries never have as many.
        cursor.set_match_limit(4096);
        Self { parser: Parser::new(), cursor }
    }

    /// Extracts the symbols of `text`, and asks `is_cancelled` from time to time.
    ///
    /// A text with syntax errors has the symbols that could be found, and
    /// [`has_errors`](FileSymbols::has_errors).
    ///
    /// # Errors
    ///
    /// Fails when the feature of the language is off, and when `is_cancelled` returned `true`.
    pub fn extract_symbols(
        &mut self,
        language: SourceLanguage,
        text: &str,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<FileSymbols, ExtractError> {
        let grammar = language.grammar().ok_or(ExtractError::LanguageUnavailable(language))?;
        let tree = self.parse(grammar, text, is_cancelled)?;
        let mut collector = SymbolCollector::new(grammar, text);
        let mut progress = |_: &QueryCursorState| stop_when(is_cancelled());
        let options = QueryCursorOptions::new().progress_callback(&mut progress);
        let query = &grammar.symbols;
        let mut matches =
            self.cursor.matches_with_options(query, tree.root_node(), text.as_bytes(), options);
        while let Some(found) = matches.next() {
            collector.collect_match(found.pattern_index, found.captures());
        }
        drop(matches);
        if is_cancelled() {
            return Err(ExtractError::Cancelled);
        }
        Ok(collector.into_symbols(language, tree.root_node().has_error()))
    }

    /// Parses without looking for symbols, for measurements of what a parser alone takes.
    ///
    /// Returns whether the text has syntax errors.
    ///
    /// # Errors
    ///
    /// As [`extract_symbols`](Self::extract_symbols).
    pub fn check_syntax(
        &mut self,
        language: SourceLanguage,
        text: &str,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<bool, ExtractError> {
        let grammar = language.grammar().ok_or(ExtractError::LanguageUnavailable(language))?;
        Ok(self.parse(grammar, text, is_cancelled)?.root_node().has_error())
    }

    pub(crate) fn parse(
        &mut self,
        grammar: &LanguageGrammar,
        text: &str,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Tree, ExtractError> {
        // The versions of grammar and library are pinned, and a test parses each language.
        self.parser.set_language(&grammar.language).map_err(|_| ExtractError::Cancelled)?;
        let mut progress = |_: &ParseState| stop_when(is_cancelled());
        let options = ParseOptions::new().progress_callback(&mut progress);
        let bytes = text.as_bytes();
        let mut read = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
        let tree = self.parser.parse_with_options(&mut read, None, Some(options));
        // A parser that was stopped would go on where it was.
        self.parser.reset();
        tree.ok_or(ExtractError::Cancelled)
    }
}

pub(crate) fn stop_when(is_cancelled: bool) -> ControlFlow<()> {
    if is_cancelled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// What a capture of a symbol query means.
#[derive(Clone, Copy)]
enum CaptureMeaning {
    Name,
    Owner,
    Container,
    Definition(SymbolKind),
    Reference(ReferenceRole),
    /// A type, of which parts may be quoted.
    QuotedType,
    Nothing,
}

impl CaptureMeaning {
    fn from_name(name: &str) -> Self {
        match name.split_once('.') {
            None if name == "name" => Self::Name,
            None if name == "owner" => Self::Owner,
            None if name == "container" => Self::Container,
            Some(("definition", kind)) => {
                SymbolKind::from_name(kind).map_or(Self::Nothing, Self::Definition)
            }
            Some(("reference", "call")) => Self::Reference(ReferenceRole::Call),
            Some(("reference", "type")) => Self::Reference(ReferenceRole::Type),
            Some(("reference", "quoted")) => Self::QuotedType,
            Some(("reference", "other")) => Self::Reference(ReferenceRole::Other),
            _ => Self::Nothing,
        }
    }
}

/// Collects what the matches of one text captured.
struct SymbolCollector<'t> {
    text: &'t str,
    meanings: Vec<CaptureMeaning>,
    scopes: Vec<CapturedScope>,
    /// The start of each reference with the reference.
    references: Vec<(usize, SymbolReference)>,
    names: HashMap<&'t str, u32>,
    ordered_names: Vec<&'t str>,
}

impl<'t> SymbolCollector<'t> {
    fn new(grammar: &LanguageGrammar, text: &'t str) -> Self {
        Self {
            text,
            meanings: capture_meanings(&grammar.symbols),
            scopes: Vec::new(),
            references: Vec::new(),
            names: HashMap::new(),
            ordered_names: Vec::new(),
        }
    }

    fn collect_match(&mut self, pattern: usize, captures: &[QueryCapture<'_>]) {
        let (mut name, mut owner, mut scope) = (None, None, None);
        for capture in captures {
            match self.meanings[capture.index as usize] {
                CaptureMeaning::Name => name = Some(capture.node),
                CaptureMeaning::Owner => owner = Some(capture.node),
                CaptureMeaning::Container => scope = Some((capture.node, None)),
                CaptureMeaning::Definition(kind) => scope = Some((capture.node, Some(kind))),
                CaptureMeaning::Reference(role) => self.collect_reference(capture.node, role),
                CaptureMeaning::QuotedType => self.collect_quoted_types(capture.node),
                CaptureMeaning::Nothing => {}
            }
        }
        let (Some(name), Some((node, kind))) = (name, scope) else { return };
        self.scopes.push(CapturedScope {
            kind,
            name: self.text_of(name).into(),
            name_start: name.start_byte(),
            name_line: line_number(name.start_position().row),
            owner: owner.map(|owner| self.text_of(owner).into()),
            bytes: node.byte_range(),
            lines: line_number(node.start_position().row)..line_number(last_row(node)),
            signature: if kind.is_some() {
                read_signature(node, self.text).into()
            } else {
                "".into()
            },
            pattern,
        });
    }

    fn collect_quoted_types(&mut self, node: Node<'_>) {
        for (bytes, place) in quoted_names(node, self.text) {
            self.add_reference(bytes, place, ReferenceRole::Type);
        }
    }

    fn collect_reference(&mut self, node: Node<'_>, role: ReferenceRole) {
        self.add_reference(node.byte_range(), node.start_position(), role);
    }

    fn add_reference(&mut self, bytes: Range<usize>, place: Point, role: ReferenceRole) {
        let text = self.text.get(bytes.clone()).unwrap_or_default();
        let next = u32::try_from(self.ordered_names.len()).unwrap_or(u32::MAX);
        let name = *self.names.entry(text).or_insert(next);
        if name == next {
            self.ordered_names.push(text);
        }
        let (line, column) = (line_number(place.row), u32::try_from(place.column).unwrap_or(0));
        self.references.push((bytes.start, SymbolReference { role, line, column, name }));
    }

    fn text_of(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn into_symbols(mut self, language: SourceLanguage, has_errors: bool) -> FileSymbols {
        // An identifier may match several patterns; the most specific role counts.
        self.references.sort_by_key(|(start, reference)| (*start, reference.role));
        self.references.dedup_by_key(|(start, _)| *start);
        let mut defined: Vec<usize> =
            self.scopes.iter().filter(|it| it.kind.is_some()).map(|it| it.name_start).collect();
        defined.sort_unstable();
        self.references.retain(|(start, _)| defined.binary_search(start).is_err());
        FileSymbols {
            language,
            definitions: nest_scopes(self.scopes, language),
            references: self.references.into_iter().map(|(_, reference)| reference).collect(),
            has_errors,
            names: self.ordered_names.into_iter().map(Into::into).collect(),
        }
    }
}

fn capture_meanings(query: &Query) -> Vec<CaptureMeaning> {
    query.capture_names().iter().map(|name| CaptureMeaning::from_name(name)).collect()
}

fn line_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX).saturating_add(1)
}

/// Returns the row of the last character; a node that ends with a line end ends in its line.
pub(crate) fn last_row(node: Node<'_>) -> usize {
    let end = node.end_position();
    if end.column == 0 && end.row > node.start_position().row { end.row - 1 } else { end.row }
}

/// Returns the text of a definition up to its body, or its first line, without repeated spaces.
fn read_signature(node: Node<'_>, text: &str) -> String {
    let body = node.child_by_field_name("body").or_else(|| {
        node.child_by_field_name("value").and_then(|value| value.child_by_field_name("body"))
    });
    let text = match body {
        Some(body) => text.get(node.start_byte()..body.start_byte()).unwrap_or_default(),
        None => text.get(node.byte_range()).unwrap_or_default().lines().next().unwrap_or_default(),
    };
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * MAX_SIGNATURE {
            break;
        }
    }
    let line = line.trim_end_matches([' ', '{', ':', ';', ',']);
    match line.char_indices().nth(MAX_SIGNATURE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
