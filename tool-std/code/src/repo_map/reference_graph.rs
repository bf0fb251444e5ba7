//! Which file refers to which name in which file, and how much each reference weighs.
//!
//! **Invariant:** a name refers only to definitions of its own family of languages, and only to those
//! that its file can see by the rules of the language.

use std::collections::{BTreeMap, HashMap};

use super::page_rank::{RankedEdge, page_rank};
use super::{MappedFile, is_mapped};
use crate::language::SourceLanguage;
use crate::symbol::{SymbolDefinition, SymbolKind};

/// A name that more files define says nothing about any of them.
const MAX_DEFINING_FILES: usize = 50;

/// A name that more files define weighs a tenth.
const MANY_DEFINING_FILES: usize = 5;

/// The weight of a reference of a file to itself.
const OWN_FILE: f64 = 0.1;

pub(super) struct ReferenceGraph<'f> {
    files: &'f [MappedFile],
    names: DefinedNames<'f>,
    /// How much the focus is on each file.
    focus: Vec<f64>,
    edges: Vec<NamedEdge>,
}

struct NamedEdge {
    from: usize,
    to: usize,
    /// The index of the name in the order of first use.
    name: usize,
    weight: f64,
}

impl<'f> ReferenceGraph<'f> {
    pub(super) fn new(files: &'f [MappedFile], focus: &[String]) -> Self {
        let names = DefinedNames::new(files);
        let is_focused =
            |path: &str| focus.iter().any(|word| !word.is_empty() && path.contains(&**word));
        let focus_of: Vec<bool> = files.iter().map(|file| is_focused(&file.path)).collect();
        let weights: Vec<f64> = names.list.iter().map(|name| name_weight(name, focus)).collect();
        let mut edges = Vec::new();
        for (from, file) in files.iter().enumerate() {
            let family = language_family(file.symbols.language);
            for (name, count) in file.symbols.reference_counts() {
                let Some(&index) = names.by_name.get(&(family, name)) else { continue };
                let weight = weights[index] * f64::from(count).sqrt();
                let weight = if focus_of[from] { 50.0 * weight } else { weight };
                let visible = names.list[index]
                    .files
                    .iter()
                    .filter(|(to, reach)| reach.includes_file(&files[*to].path, &file.path));
                edges.extend(visible.map(|&(to, _)| {
                    let weight = if to == from { OWN_FILE * weight } else { weight };
                    NamedEdge { from, to, name: index, weight }
                }));
            }
        }
        let focus = focus_of.iter().map(|&is| f64::from(u8::from(is))).collect();
        Self { files, names, focus, edges }
    }

    /// Returns the mapped definitions, the most referenced ones first.
    pub(super) fn ranked_definitions(&self) -> Vec<(usize, usize)> {
        let Self { files, names, .. } = self;
        let edge = |it: &NamedEdge| RankedEdge { from: it.from, to: it.to, weight: it.weight };
        let edges: Vec<RankedEdge> = self.edges.iter().map(edge).collect();
        let ranks = page_rank(files.len(), &edges, &self.focus);
        let mut leaving = vec![0.0; files.len()];
        for edge in &self.edges {
            leaving[edge.from] += edge.weight;
        }
        // What each name of each file gets of the rank of the files that refer to it.
        let mut scores: HashMap<(usize, usize), f64> = HashMap::new();
        for edge in &self.edges {
            let share = ranks[edge.from] * edge.weight / leaving[edge.from];
            *scores.entry((edge.to, edge.name)).or_default() += share;
        }
        let mut ordered = Vec::new();
        for (at, file) in files.iter().enumerate() {
            let family = language_family(file.symbols.language);
            for (index, definition) in file.symbols.definitions.iter().enumerate() {
                if is_mapped(definition.kind) {
                    let name = names.by_name.get(&(family, &*definition.name));
                    let score = name.and_then(|&name| scores.get(&(at, name))).copied();
                    ordered.push((score.unwrap_or(0.0), ranks[at], at, index));
                }
            }
        }
        ordered.sort_by(|one, other| {
            let by_score = other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1));
            by_score.then(one.2.cmp(&other.2)).then(one.3.cmp(&other.3))
        });
        ordered.into_iter().map(|(_, _, file, definition)| (file, definition)).collect()
    }
}

/// The names that files define.
struct DefinedNames<'f> {
    by_name: HashMap<(SourceLanguage, &'f str), usize>,
    list: Vec<DefinedName<'f>>,
}

struct DefinedName<'f> {
    name: &'f str,
    /// The files that define it, each once, and from where each is seen.
    files: Vec<(usize, NameReach)>,
    /// Whether only methods have the name. Which method a call means, only types tell.
    is_method: bool,
}

/// From where a definition can be seen; the greater, the farther.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameReach {
    File,
    /// The folder of the file and those below.
    Folder,
    Everywhere,
}

impl NameReach {
    /// Returns the reach of a definition by what its signature says. Where that needs more than the
    /// signature, the definition counts as seen everywhere.
    fn of_definition(definition: &SymbolDefinition) -> Self {
        let signature = &*definition.signature;
        match definition.language {
            SourceLanguage::Rust => match definition.kind {
                SymbolKind::Macro | SymbolKind::Method => Self::Everywhere,
                _ if signature.starts_with("pub") => Self::Everywhere,
                _ => Self::Folder,
            },
            SourceLanguage::Go if definition.name.starts_with(char::is_lowercase) => Self::Folder,
            SourceLanguage::C if signature.starts_with("static ") => Self::File,
            SourceLanguage::Java if signature.contains("private ") => Self::File,
            _ => Self::Everywhere,
        }
    }

    /// Whether a file sees what another one defines.
    fn includes_file(self, defining: &str, referring: &str) -> bool {
        match self {
            Self::File => defining == referring,
            Self::Folder => {
                let folder = defining.rfind('/').map_or("", |end| &defining[..=end]);
                referring.starts_with(folder)
            }
            Self::Everywhere => true,
        }
    }
}

impl<'f> DefinedNames<'f> {
    fn new(files: &'f [MappedFile]) -> Self {
        let mut all: BTreeMap<(SourceLanguage, &str), DefinedName<'f>> = BTreeMap::new();
        for (at, file) in files.iter().enumerate() {
            let family = language_family(file.symbols.language);
            for definition in file.symbols.definitions.iter().filter(|it| is_mapped(it.kind)) {
                let (name, reach) = (&*definition.name, NameReach::of_definition(definition));
                let new = DefinedName { name, files: Vec::new(), is_method: true };
                let defined = all.entry((family, name)).or_insert(new);
                defined.is_method &= definition.kind == SymbolKind::Method;
                match defined.files.last_mut() {
                    Some((last, known)) if *last == at => *known = (*known).max(reach),
                    _ => defined.files.push((at, reach)),
                }
            }
        }
        let (mut by_name, mut list) = (HashMap::new(), Vec::new());
        for (key, defined) in all {
            if defined.files.len() <= MAX_DEFINING_FILES {
                by_name.insert(key, list.len());
                list.push(defined);
            }
        }
        Self { by_name, list }
    }
}

/// Languages whose files use definitions of each other are one family.
fn language_family(language: SourceLanguage) -> SourceLanguage {
    match language {
        SourceLanguage::TypeScript | SourceLanguage::Tsx => SourceLanguage::JavaScript,
        other => other,
    }
}

/// Returns what a reference to a name weighs: a long name of several words says more than a short
/// one, and the name of a method, a private or a frequently defined name less.
fn name_weight(name: &DefinedName<'_>, focus: &[String]) -> f64 {
    let mut weight = 1.0;
    if focus.iter().any(|word| word == name.name) {
        weight *= 10.0;
    }
    if name.name.len() >= 8 && has_several_words(name.name) {
        weight *= 10.0;
    }
    if name.is_method {
        weight *= 0.1;
    }
    if name.name.starts_with('_') {
        weight *= 0.1;
    }
    if name.files.len() > MANY_DEFINING_FILES {
        weight *= 0.1;
    }
    weight
}

fn has_several_words(name: &str) -> bool {
    let inner = name.trim_matches('_');
    let is_camel =
        || inner.chars().any(char::is_lowercase) && inner.chars().skip(1).any(char::is_uppercase);
    inner.contains(['_', '-']) || is_camel()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_sees_its_own_definitions() {
        let cases = [
            (NameReach::File, "a/b.c", "a/b.c", true),
            (NameReach::File, "a/b.c", "a/c.c", false),
            (NameReach::Folder, "a/b.rs", "a/b/c.rs", true),
            (NameReach::Folder, "a/b.rs", "ab/c.rs", false),
            (NameReach::Folder, "b.rs", "ab/c.rs", true),
            (NameReach::Everywhere, "a/b.rs", "c.rs", true),
        ];
        for (reach, defining, referring, expected) in cases {
            assert_eq!(
                reach.includes_file(defining, referring),
                expected,
                "{defining} {referring}"
            );
        }
    }

    #[test]
    fn knows_names_of_several_words() {
        let cases =
            [("read_file", true), ("readFile", true), ("ReadFile", true), ("Circle", false)];
        for (name, expected) in cases.into_iter().chain([("_private", false), ("LIMIT", false)]) {
            assert_eq!(has_several_words(name), expected, "{name}");
        }
    }
}
