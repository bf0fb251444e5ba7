//! Writes the first definitions of a map within a budget of tokens.
//!
//! **Invariant:** the text has at most as many tokens as the budget, by the estimate of one token
//! for four bytes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use super::RepoMap;
use crate::symbol::SymbolDefinition;

/// About how many bytes a token has.
const BYTES_PER_TOKEN: usize = 4;

/// A map as text: the files by rank, each with its definitions by line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepoMapText {
    /// The text; empty when no definition fits.
    pub text: String,
    /// How many files it shows.
    pub files: usize,
    /// How many definitions it shows.
    pub definitions: usize,
}

impl RepoMap {
    /// Writes the definitions of the highest ranks, in at most `max_tokens` tokens of four bytes.
    #[must_use]
    pub fn text(&self, max_tokens: usize) -> RepoMapText {
        let budget = max_tokens.saturating_mul(BYTES_PER_TOKEN);
        let mut shown = ShownDefinitions::default();
        for &place in &self.order {
            let (file, definition) = self.definition_at(place);
            let cost = shown.cost_of(place.0, &file.path, definition);
            if shown.bytes + cost > budget {
                break;
            }
            shown.show_definition(place.0, definition, cost);
        }
        self.write_text(&shown)
    }

    fn write_text(&self, shown: &ShownDefinitions<'_>) -> RepoMapText {
        let mut text = String::with_capacity(shown.bytes);
        let mut definitions = 0;
        for &file in &shown.files {
            let _ = writeln!(text, "{}:", self.files[file].path);
            for (container, mut entries) in by_container(&shown.definitions[&file]) {
                if !container.is_empty() {
                    let _ = writeln!(text, "  {container}:");
                }
                let indent = if container.is_empty() { "  " } else { "    " };
                entries.sort_by_key(|entry| entry.line);
                definitions += entries.len();
                for entry in entries {
                    let _ = writeln!(text, "{indent}{}: {}", entry.line, entry.signature);
                }
            }
        }
        RepoMapText { text, files: shown.files.len(), definitions }
    }
}

/// Groups definitions by container, those at the top of the file first.
fn by_container<'a>(
    definitions: &[&'a SymbolDefinition],
) -> BTreeMap<&'a str, Vec<&'a SymbolDefinition>> {
    let mut groups: BTreeMap<&str, Vec<&SymbolDefinition>> = BTreeMap::new();
    for definition in definitions {
        groups.entry(&definition.container).or_default().push(definition);
    }
    groups
}

/// What fits so far.
#[derive(Default)]
struct ShownDefinitions<'a> {
    bytes: usize,
    /// The files by rank.
    files: Vec<usize>,
    definitions: HashMap<usize, Vec<&'a SymbolDefinition>>,
    containers: HashSet<(usize, &'a str)>,
}

impl<'a> ShownDefinitions<'a> {
    /// Returns how many bytes the lines of a further definition have.
    fn cost_of(&self, file: usize, path: &str, definition: &'a SymbolDefinition) -> usize {
        let digits = definition.line.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut cost = digits + 2 + definition.signature.len() + 1;
        if !self.definitions.contains_key(&file) {
            cost += path.len() + 2;
        }
        match &*definition.container {
            "" => cost + 2,
            container if self.containers.contains(&(file, container)) => cost + 4,
            container => cost + 4 + container.len() + 4,
        }
    }

    fn show_definition(&mut self, file: usize, definition: &'a SymbolDefinition, cost: usize) {
        self.bytes += cost;
        self.containers.insert((file, &definition.container));
        let entries = self.definitions.entry(file).or_default();
        if entries.is_empty() {
            self.files.push(file);
        }
        entries.push(definition);
    }
}
