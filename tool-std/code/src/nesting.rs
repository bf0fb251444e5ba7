//! From what a query captured to definitions with their containers.
//!
//! **Invariant:** the order of the matches changes nothing; where several patterns match one name,
//! the first pattern of the query counts.

use std::ops::Range;

use crate::language::SourceLanguage;
use crate::symbol::{SymbolDefinition, SymbolKind};

/// A captured definition, or a container that defines nothing, such as an `impl` block.
pub(crate) struct CapturedScope {
    /// `None` for a container.
    pub(crate) kind: Option<SymbolKind>,
    pub(crate) name: Box<str>,
    pub(crate) name_start: usize,
    pub(crate) name_line: u32,
    /// The name of the container, where the definition itself has it.
    pub(crate) owner: Option<Box<str>>,
    pub(crate) bytes: Range<usize>,
    pub(crate) lines: Range<u32>,
    pub(crate) signature: Box<str>,
    pub(crate) pattern: usize,
}

/// Returns the definitions in the order of their names.
pub(crate) fn nest_scopes(
    mut scopes: Vec<CapturedScope>,
    language: SourceLanguage,
) -> Vec<SymbolDefinition> {
    scopes.sort_by_key(|scope| (scope.name_start, scope.pattern));
    scopes.dedup_by_key(|scope| scope.name_start);
    // An outer scope comes before the scopes inside; a scope of the same extent stays beside it.
    scopes.sort_by_key(|it| (it.bytes.start, usize::MAX - it.bytes.end, it.name_start));

    let mut open: Vec<OpenScope> = Vec::new();
    let mut definitions = Vec::with_capacity(scopes.len());
    for scope in scopes {
        let is_around = |it: &OpenScope| {
            it.bytes.start <= scope.bytes.start
                && scope.bytes.end <= it.bytes.end
                && it.bytes != scope.bytes
        };
        while open.last().is_some_and(|it| !is_around(it)) {
            open.pop();
        }
        // `typedef struct tag { .. } Name;` defines `tag` beside `Name`, not in it.
        let is_tag = language == SourceLanguage::C
            && matches!(scope.kind, Some(SymbolKind::Enum | SymbolKind::Struct));
        let parent = open.iter().rev().find(|it| !(is_tag && it.kind == Some(SymbolKind::Type)));
        let container = scope_container(parent, scope.owner.as_deref(), language);
        let opened = OpenScope {
            path: join_names(&container, &scope.name, language),
            kind: scope.kind,
            depth: parent.map_or(0, |it| it.depth + u32::from(it.kind.is_some())),
            bytes: scope.bytes,
        };
        if let Some(kind) = scope.kind {
            let is_method =
                kind == SymbolKind::Function && parent.is_some_and(OpenScope::has_methods);
            definitions.push((
                scope.name_start,
                SymbolDefinition {
                    name: scope.name,
                    kind: if is_method { SymbolKind::Method } else { kind },
                    container: container.into(),
                    signature: scope.signature,
                    depth: opened.depth,
                    line: scope.name_line,
                    first_line: scope.lines.start,
                    last_line: scope.lines.end,
                    language,
                },
            ));
        }
        open.push(opened);
    }
    definitions.sort_by_key(|(name_start, _)| *name_start);
    definitions.into_iter().map(|(_, definition)| definition).collect()
}

/// A scope whose end was not reached.
struct OpenScope {
    /// The names around it and its own.
    path: String,
    kind: Option<SymbolKind>,
    depth: u32,
    bytes: Range<usize>,
}

impl OpenScope {
    fn has_methods(&self) -> bool {
        self.kind.is_none_or(SymbolKind::has_methods)
    }
}

fn scope_container(
    parent: Option<&OpenScope>,
    owner: Option<&str>,
    language: SourceLanguage,
) -> String {
    let around = parent.map_or("", |it| &it.path);
    owner.map_or_else(|| around.to_owned(), |owner| join_names(around, owner, language))
}

fn join_names(container: &str, name: &str, language: SourceLanguage) -> String {
    match container {
        "" => name.to_owned(),
        _ => [container, language.separator(), name].concat(),
    }
}
