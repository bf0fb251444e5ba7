//! The names of all notes, and which note a link means.
//!
//! **Invariant:** a link that [`NoteNames::link_to`] writes leads to the note for which it was written.

use std::collections::{BTreeMap, BTreeSet};

use crate::markdown::{LinkStyle, NoteLink};

/// The paths of all notes, relative to the vault, with `/` between folders and `.md` at the end.
pub(crate) struct NoteNames {
    paths: BTreeSet<String>,
    /// The paths by the name of the file, without `.md` and in lower case.
    by_stem: BTreeMap<String, Vec<String>>,
}

impl NoteNames {
    pub(crate) fn new(paths: impl IntoIterator<Item = String>) -> Self {
        let paths: BTreeSet<String> = paths.into_iter().collect();
        let mut by_stem: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in &paths {
            by_stem.entry(stem(path).to_lowercase()).or_default().push(path.clone());
        }
        Self { paths, by_stem }
    }

    /// Returns the note to which a link in the note `from` leads; `None` when there is no such note.
    ///
    /// A name without a folder means the note of that name in the folder of `from`, else the first
    /// one by path.
    pub(crate) fn resolve(&self, from: &str, link: &NoteLink) -> Option<&str> {
        self.resolve_target(from, link.style, &link.target)
    }

    fn resolve_target(&self, from: &str, style: LinkStyle, target: &str) -> Option<&str> {
        let path = match style {
            LinkStyle::Markdown => join_path(folder(from), &decode_percent(target))?,
            LinkStyle::Wiki => {
                let name = target.strip_suffix(".md").unwrap_or(target);
                if !name.contains('/') {
                    let named = self.by_stem.get(&name.to_lowercase())?;
                    let beside = named.iter().find(|path| folder(path) == folder(from));
                    return beside.or_else(|| named.first()).map(String::as_str);
                }
                format!("{}.md", name.trim_start_matches('/'))
            }
        };
        self.paths.get(&path).map(String::as_str)
    }

    /// Returns the target of a link in the note `from` that leads to the note `to`; `None` when no
    /// link of the style can, such as a name in the root that another note hides.
    pub(crate) fn link_to(&self, from: &str, style: LinkStyle, to: &str) -> Option<String> {
        let name = to.strip_suffix(".md").unwrap_or(to);
        let candidates = match style {
            LinkStyle::Wiki => vec![stem(to).to_owned(), name.to_owned(), format!("/{name}")],
            LinkStyle::Markdown => vec![encode_percent(&relative_path(folder(from), to))],
        };
        candidates.into_iter().find(|target| self.resolve_target(from, style, target) == Some(to))
    }
}

/// Returns the folder of a path, with the `/` at its end; empty for the vault itself.
pub(crate) fn folder(path: &str) -> &str {
    path.rfind('/').map_or("", |end| &path[..=end])
}

/// Returns the name of a file without its folder and `.md`.
pub(crate) fn stem(path: &str) -> &str {
    let name = &path[folder(path).len()..];
    name.strip_suffix(".md").unwrap_or(name)
}

/// Resolves `..` in a path below a folder; `None` when the path leads out of the vault.
fn join_path(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn relative_path(folder: &str, to: &str) -> String {
    let mut from = folder.split('/').filter(|part| !part.is_empty()).peekable();
    let mut to = to.split('/').peekable();
    while let (Some(one), Some(other)) = (from.peek(), to.peek())
        && one == other
    {
        from.next();
        to.next();
    }
    from.map(|_| "..").chain(to).collect::<Vec<_>>().join("/")
}

/// Encodes what ends the target of a Markdown link.
fn encode_percent(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            ' ' | '#' | '%' | '(' | ')' => encoded.push_str(&format!("%{:02X}", u32::from(c))),
            c => encoded.push(c),
        }
    }
    encoded
}

fn decode_percent(target: &str) -> String {
    let mut decoded = Vec::with_capacity(target.len());
    let mut rest = target.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = &after[2..];
            }
            None => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(from: &str, style: LinkStyle, target: &str) -> Option<String> {
        let paths = ["Tea.md", "ideas/Pot.md", "ideas/My notes.md", "a/Dup.md", "b/Dup.md"];
        let names = NoteNames::new(paths.map(str::to_owned));
        names.resolve_target(from, style, target).map(str::to_owned)
    }

    #[test]
    fn resolves_links() {
        use LinkStyle::{Markdown, Wiki};
        let cases = [
            ("x.md", Wiki, "tea", Some("Tea.md")),
            ("x.md", Wiki, "Pot", Some("ideas/Pot.md")),
            ("x.md", Wiki, "ideas/Pot", Some("ideas/Pot.md")),
            ("x.md", Wiki, "Pot.md", Some("ideas/Pot.md")),
            ("x.md", Wiki, "Dup", Some("a/Dup.md")),
            ("b/x.md", Wiki, "Dup", Some("b/Dup.md")),
            ("x.md", Wiki, "None", None),
            ("a/x.md", Markdown, "../ideas/Pot.md", Some("ideas/Pot.md")),
            ("ideas/x.md", Markdown, "My%20notes.md", Some("ideas/My notes.md")),
            ("x.md", Markdown, "../Tea.md", None),
            ("x.md", Markdown, "Pot.md", None),
        ];
        for (from, style, target, expected) in cases {
            assert_eq!(resolve(from, style, target).as_deref(), expected, "{from} {target}");
        }
    }

    #[test]
    fn relative_paths_lead_back() {
        for (folder, to) in [("", "a.md"), ("a/", "b/c.md"), ("a/b/", "a/c.md"), ("a/", "a/b.md")] {
            let relative = relative_path(folder, to);
            assert_eq!(join_path(folder, &relative).as_deref(), Some(to), "{relative}");
        }
    }
}
