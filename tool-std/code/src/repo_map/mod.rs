//! A map of a repository: its most referenced definitions, within a budget of tokens.
//!
//! | file | what it does |
//! |---|---|
//! | `reference_graph` | which file refers to which name in which file, with weights |
//! | `page_rank` | ranks files by those references |
//! | `map_text` | writes the first definitions |
//!
//! **Invariant:** the same files and focus give the same map; ties are decided by path and line.

mod map_text;
mod page_rank;
mod reference_graph;

use std::sync::Arc;

use self::reference_graph::ReferenceGraph;
use crate::symbol::{FileSymbols, SymbolDefinition, SymbolKind};

pub use self::map_text::RepoMapText;

/// A file of a repository, for a [`RepoMap`].
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a caller writes it")]
pub struct MappedFile {
    /// The path, as the map shows it.
    pub path: String,
    /// The symbols of the file.
    pub symbols: Arc<FileSymbols>,
}

/// The definitions of a repository, the most referenced ones first.
///
/// A file gets rank from the files that refer, by name, to what it defines (PageRank), and passes it
/// on to what it refers to. Fields, variants and modules are not ranked, and a name that more than
/// 50 files define says nothing.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tool_std_code::{MappedFile, RepoMap, SourceLanguage, SymbolExtractor};
///
/// let mut extractor = SymbolExtractor::new();
/// let mut file = |path: &str, text: &str| MappedFile {
///     path: path.to_owned(),
///     symbols: Arc::new(extractor.extract_symbols(SourceLanguage::Python, text, &|| false).unwrap()),
/// };
/// let files = vec![
///     file("app.py", "def run():\n    load_settings()\n"),
///     file("settings.py", "def load_settings():\n    pass\n\ndef unused():\n    pass\n"),
/// ];
/// let map = RepoMap::new(files, &[]).text(20);
/// assert!(map.text.starts_with("settings.py:\n  1: def load_settings()\n"), "{}", map.text);
/// ```
#[derive(Debug)]
pub struct RepoMap {
    files: Vec<MappedFile>,
    /// The ranked definitions: the index of the file, and of the definition in it.
    order: Vec<(usize, usize)>,
}

impl RepoMap {
    /// Ranks the definitions of `files`. `focus` has names of symbols, and paths or parts of paths:
    /// they rank higher, and so does what they refer to.
    #[must_use]
    pub fn new(mut files: Vec<MappedFile>, focus: &[String]) -> Self {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let order = ReferenceGraph::new(&files, focus).ranked_definitions();
        Self { files, order }
    }

    /// Returns how many definitions are ranked.
    #[must_use]
    pub fn definition_count(&self) -> usize {
        self.order.len()
    }

    fn definition_at(
        &self,
        (file, definition): (usize, usize),
    ) -> (&MappedFile, &SymbolDefinition) {
        let file = &self.files[file];
        (file, &file.symbols.definitions[definition])
    }
}

/// Whether definitions of a kind are in maps.
fn is_mapped(kind: SymbolKind) -> bool {
    !matches!(kind, SymbolKind::Field | SymbolKind::Module | SymbolKind::Variant)
}
