//! Keyword search over tools, for models that do not see all of them.
//!
//! The ranking depends only on the definitions and the query, so that a repeated search has the
//! same result.

use std::cmp::Reverse;

use crate::name::ToolName;
use crate::tool::Definition;

/// Returns the definitions that match `query`, the best first and equal ones by name.
pub(super) fn search_definitions<'a>(
    definitions: impl Iterator<Item = &'a Definition>,
    query: &str,
    limit: usize,
) -> Vec<&'a Definition> {
    let words: Vec<String> = split_words(query).collect();
    if words.is_empty() {
        return definitions.take(limit).collect();
    }
    let mut found: Vec<(SearchRank, &Definition)> = definitions
        .map(|definition| (SearchRank::from_definition(definition, &words), definition))
        .filter(|(rank, _)| rank.words > 0)
        .collect();
    found.sort_by_key(|(rank, definition)| (Reverse(*rank), &definition.name));
    found.into_iter().take(limit).map(|(_, definition)| definition).collect()
}

/// The rank of a tool; earlier fields count more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SearchRank {
    name: NameMatch,
    /// The number of words of the query that were found.
    words: usize,
    /// The sum of the weights of the fields where they were found.
    places: usize,
}

/// How the whole query matches a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameMatch {
    NoMatch,
    Prefix,
    Exact,
}

impl SearchRank {
    fn from_definition(definition: &Definition, query: &[String]) -> Self {
        let places: Vec<usize> = {
            let texts = SearchTexts::from_definition(definition);
            query.iter().map(|word| texts.field_weight(word)).filter(|&place| place > 0).collect()
        };
        let name = all_names(definition).map(|name| match_name(name, query)).max();
        Self {
            name: name.unwrap_or(NameMatch::NoMatch),
            words: places.len(),
            places: places.iter().sum(),
        }
    }
}

fn match_name(name: &ToolName, query: &[String]) -> NameMatch {
    let name = split_words(name.as_str()).collect::<Vec<_>>().join(" ");
    match name.strip_prefix(&query.join(" ")) {
        Some("") => NameMatch::Exact,
        Some(_) => NameMatch::Prefix,
        None => NameMatch::NoMatch,
    }
}

/// The words of a definition, by field.
struct SearchTexts {
    name: Vec<String>,
    title: Vec<String>,
    category: Vec<String>,
    description: Vec<String>,
}

impl SearchTexts {
    fn from_definition(definition: &Definition) -> Self {
        let optional = |text: Option<&str>| split_words(text.unwrap_or_default()).collect();
        Self {
            name: all_names(definition).flat_map(|name| split_words(name.as_str())).collect(),
            title: optional(definition.title.as_deref()),
            category: optional(definition.category.as_deref()),
            description: split_words(&definition.description).collect(),
        }
    }

    /// Returns the weight of the best field with a word that starts with `word`; 0 for none.
    fn field_weight(&self, word: &str) -> usize {
        [&self.description, &self.category, &self.title, &self.name]
            .iter()
            .rposition(|texts| texts.iter().any(|text| text.starts_with(word)))
            .map_or(0, |at| at + 1)
    }
}

fn all_names(definition: &Definition) -> impl Iterator<Item = &ToolName> {
    std::iter::once(&definition.name).chain(&definition.aliases)
}

/// Splits a text into lower-case words.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    fn definition(name: &'static str, description: &'static str) -> Definition {
        Definition::new(ToolName::from_static(name), description, Schema::default())
    }

    fn sample_definitions() -> Vec<Definition> {
        let mut bind = definition("bind", "Puts pages between covers.");
        bind.title = Some("Binding Books".into());
        let mut dust = definition("dust", "Cleans a shelf.");
        dust.category = Some("books".into());
        let mut lend = definition("lend", "Gives something away for a while.");
        lend.aliases = vec![ToolName::from_static("bookLoan")];
        vec![
            bind,
            definition("book", "Names one."),
            definition("book_order", "Orders one from a shop."),
            dust,
            lend,
            definition("read_page", "Reads a page of a book."),
            definition("uber", "Öffnet ALLES."),
        ]
    }

    #[track_caller]
    fn check(query: &str, expected: &[&str]) {
        let shelf = sample_definitions();
        let found: Vec<&str> = search_definitions(shelf.iter(), query, 9)
            .iter()
            .map(|found| found.name.as_str())
            .collect();
        assert_eq!(found, expected, "{query}");
    }

    // F107
    #[test]
    fn ranks_exact_names_before_prefixes() {
        check("book", &["book", "book_order", "lend", "bind", "dust", "read_page"]);
        check("BOOK order", &["book_order", "book", "lend", "bind", "dust", "read_page"]);
        check("bookloan", &["lend"]);
        check("read-page", &["read_page", "bind"]);
    }

    // F107
    #[test]
    fn ranks_all_words_before_some() {
        check("page between", &["bind", "read_page"]);
        check("shop book", &["book_order", "book", "lend", "bind", "dust", "read_page"]);
        check("shop nowhere", &["book_order"]);
    }

    #[test]
    fn lists_the_first_tools_without_a_query() {
        for query in ["", "  ", "?!"] {
            let shelf = sample_definitions();
            let found = search_definitions(shelf.iter(), query, 2);
            assert_eq!(
                found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
                ["bind", "book"]
            );
        }
        check("nothing like it", &[]);
        check("öffnet alles", &["uber"]);
        assert!(search_definitions(sample_definitions().iter(), "book", 0).is_empty());
    }
}
