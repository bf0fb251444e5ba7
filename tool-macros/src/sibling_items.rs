//! Looks for other items of the same name in the user's file, where rustc would report one
//! mistake several times.
//!
//! A macro sees only its own item. If a name is taken, rustc reports it once for each namespace,
//! and again for each use in generated code. So where a name may be taken, the file is parsed
//! again and its items are examined.
//!
//! **Invariant:** everything that is refused here is refused by rustc, too. In uncertain cases,
//! such as conditional items and items made by macros, nothing is reported here, and rustc
//! reports it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;

/// The identity of an item: its keyword, and the attribute that makes tools of it.
#[derive(Clone, Copy)]
pub(crate) enum ItemAnchor {
    Function,
    Block,
}

impl ItemAnchor {
    /// The keyword and the attribute.
    fn written(self) -> (&'static str, &'static str) {
        match self {
            Self::Function => ("fn", "tool"),
            Self::Block => ("impl", "toolset"),
        }
    }
}

/// A line and a column.
type SourcePosition = (usize, usize);

/// The first location of each name in each file. It is only used to decide when to parse the
/// file.
static SEEN: Mutex<BTreeMap<(PathBuf, String), SourcePosition>> = Mutex::new(BTreeMap::new());

/// Returns the line of the first item of this `name`, if another one is in the same scope.
pub(crate) fn first_line_of_repeated(anchor: ItemAnchor, name: &Ident) -> Option<usize> {
    let (file, at) = source_place(name)?;
    let (keyword, _) = anchor.written();
    let key = (file.clone(), format!("{keyword} {}", name.unraw()));
    let first = *SEEN.lock().ok()?.entry(key).or_insert(at);
    if first == at {
        return None;
    }
    let items = parse_items(&std::fs::read_to_string(file).ok()?)?;
    are_in_one_scope(&items, anchor, name).then_some(first.0)
}

/// The first function with each name of a tool, by crate and name: its location, its own name, and
/// the location as text.
static TOOLS: Mutex<BTreeMap<String, (PathBuf, SourcePosition, String, String)>> =
    Mutex::new(BTreeMap::new());

/// Returns the file and line of another function of the crate that is a tool of this `name`.
///
/// The compiler expands the functions of one crate in one process.
pub(crate) fn tool_of_name(name: &str, function: &Ident) -> Option<String> {
    let (file, at) = source_place(function)?;
    let key = format!("{} {name}", std::env::var("CARGO_CRATE_NAME").unwrap_or_default());
    let shown = format!("{}:{}", function.span().unwrap().file(), at.0);
    let here = (file, at, function.unraw().to_string(), shown);
    let first = TOOLS.lock().ok()?.entry(key).or_insert_with(|| here.clone()).clone();
    if first == here {
        return None;
    }
    // An editor expands a file again after each change, and the first function may have moved.
    let (file, _, first, shown) = first;
    let items = parse_items(&std::fs::read_to_string(&file).ok()?)?;
    let own = usize::from(file == here.0 && first == here.2);
    let is_there = find_anchors(&items, ItemAnchor::Function, &first).len() > own;
    is_there.then_some(shown)
}

/// Whether a type called `ty` is in the scope of the item called `name`.
pub(crate) fn has_type(anchor: ItemAnchor, name: &Ident, ty: &str) -> bool {
    let Some((file, _)) = source_place(name) else { return false };
    // Most files do not contain the name, and are not parsed.
    let Ok(text) = std::fs::read_to_string(file) else { return false };
    let is_there = TYPES.iter().any(|keyword| text.contains(&format!("{keyword} {ty}")));
    is_there && parse_items(&text).is_some_and(|items| stands_beside(&items, anchor, name, ty))
}

/// The keywords that declare a type.
const TYPES: [&str; 5] = ["struct", "enum", "union", "type", "trait"];

/// Returns the file and location of a name; only the compiler knows them.
fn source_place(name: &Ident) -> Option<(PathBuf, SourcePosition)> {
    if !proc_macro::is_available() {
        return None;
    }
    let span = name.span().unwrap();
    Some((span.local_file()?, (span.line(), span.column())))
}

fn parse_items(text: &str) -> Option<Vec<NamedItem>> {
    let mut items = Vec::new();
    collect_items(text.parse().ok()?, &mut 0, &mut items);
    Some(items)
}

fn are_in_one_scope(items: &[NamedItem], anchor: ItemAnchor, name: &Ident) -> bool {
    let found = find_anchors(items, anchor, &name.unraw().to_string());
    let one = shared_scope(&found).is_some();
    one && found.len() > 1 && !found.iter().any(|item| item.is_conditional)
}

fn stands_beside(items: &[NamedItem], anchor: ItemAnchor, name: &Ident, ty: &str) -> bool {
    let Some(scope) = shared_scope(&find_anchors(items, anchor, &name.unraw().to_string())) else {
        return false;
    };
    items.iter().any(|item| {
        let is_it = TYPES.contains(&item.keyword.as_str()) && item.name == ty;
        is_it && item.scope == scope && !item.is_conditional
    })
}

/// Returns the items that `name` may refer to.
fn find_anchors<'i>(items: &'i [NamedItem], anchor: ItemAnchor, name: &str) -> Vec<&'i NamedItem> {
    let (keyword, attribute) = anchor.written();
    let is = |item: &&NamedItem| {
        item.keyword == keyword
            && item.name == name
            && item.attributes.iter().any(|it| it == attribute)
    };
    items.iter().filter(is).collect()
}

/// The one scope of `items`.
fn shared_scope(items: &[&NamedItem]) -> Option<usize> {
    let first = items.first()?.scope;
    items.iter().all(|item| item.scope == first).then_some(first)
}

/// An item with a name.
struct NamedItem {
    /// The number of the braces around it.
    scope: usize,
    keyword: String,
    name: String,
    /// The last segments of the paths of its attributes.
    attributes: Vec<String>,
    is_conditional: bool,
}

/// Collects the named items in `tokens`, including those inside braces.
fn collect_items(tokens: TokenStream, scopes: &mut usize, items: &mut Vec<NamedItem>) {
    let scope = *scopes;
    *scopes += 1;
    let mut attributes = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                if let Some(TokenTree::Group(group)) = tokens.peek() {
                    attributes.extend(attribute_name(group.stream()));
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => attributes.clear(),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                attributes.clear();
                collect_items(group.stream(), scopes, items);
            }
            TokenTree::Ident(keyword) if is_of_an_item(&keyword) => {
                if let Some(TokenTree::Ident(name)) = tokens.peek() {
                    let is_cfg = |word: &String| word.starts_with("cfg");
                    items.push(NamedItem {
                        scope,
                        keyword: keyword.to_string(),
                        name: name.unraw().to_string(),
                        is_conditional: attributes.iter().any(is_cfg),
                        attributes: attributes.clone(),
                    });
                }
            }
            _ => {}
        }
    }
}

fn is_of_an_item(word: &Ident) -> bool {
    word == "fn" || word == "impl" || TYPES.iter().any(|keyword| word == keyword)
}

/// The last segment of the path at the start of an attribute.
fn attribute_name(attribute: TokenStream) -> Option<String> {
    let is_path = |token: &TokenTree| match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        _ => false,
    };
    let last = attribute.into_iter().take_while(is_path).last()?;
    Some(last.to_string())
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    fn name(name: &str) -> Ident {
        Ident::new(name, Span::call_site())
    }

    #[test]
    fn a_function_is_repeated_in_its_own_scope_only() {
        let tool = "/// D.\n#[tool(read)]\n/// E.\npub(crate) async fn read(/** P. */ p: u8) {}\n";
        let module = format!("mod inner {{ {tool} }}");
        let conditional = format!("#[cfg(unix)] {tool}");
        for (text, expected) in [
            (format!("{tool}{tool}"), true),
            (format!("mod inner {{ {tool} const N: u8 = 1; {tool} }}"), true),
            (format!("{tool} fn read() {{}}"), false),
            (format!("{tool}{module}"), false),
            (format!("{tool}{conditional}"), false),
            (format!("{tool} fn f() {{ {tool} }}"), false),
            (tool.replace("#[tool", "#[tool_sdk::tool").repeat(2), true),
        ] {
            let items = parse_items(&text).unwrap();
            let is_repeated = are_in_one_scope(&items, ItemAnchor::Function, &name("read"));
            assert_eq!(is_repeated, expected, "{text}");
        }
    }

    #[test]
    fn a_block_is_repeated_for_one_type() {
        let block = "#[toolset] impl Shelf { #[tool] fn f(&self) {} }\n";
        for (text, expected) in [
            (block.repeat(2), true),
            (format!("{block}{}", block.replace("Shelf", "Board")), false),
            (format!("{block} impl Shelf {{}}"), false),
        ] {
            let items = parse_items(&text).unwrap();
            let is_repeated = are_in_one_scope(&items, ItemAnchor::Block, &name("Shelf"));
            assert_eq!(is_repeated, expected, "{text}");
        }
    }

    #[test]
    fn a_type_is_beside_a_function_in_the_same_scope() {
        let tool = "#[tool] fn read() {}";
        for (text, expected) in [
            (format!("struct ReadArgs; {tool}"), true),
            (format!("{tool} #[derive(Debug)] pub enum ReadArgs {{ A }}"), true),
            (format!("mod m {{ struct ReadArgs; }} {tool}"), false),
            (format!("#[cfg(unix)] struct ReadArgs; {tool}"), false),
            (format!("fn f(_: &ReadArgs) {{}} {tool}"), false),
            (format!("struct ReadArgs; {tool} mod m {{ {tool} }}"), false),
        ] {
            let items = parse_items(&text).unwrap();
            let is_there = stands_beside(&items, ItemAnchor::Function, &name("read"), "ReadArgs");
            assert_eq!(is_there, expected, "{text}");
        }
    }
}
