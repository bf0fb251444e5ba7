//! A pattern that spells a path in another way than paths are spelled.
//!
//! `./secrets//*`, `a/../secrets/` and `/work/./secrets/*` mean what they would mean to the
//! system: without what says nothing, and a folder with everything below it. `**` as a name of
//! its own stands for any folders, also for none. Nothing here
//! looks at a file, and what stands before `..` is only taken away where it is one name.

use std::path::{Component, Path};

use super::{matches_optional_end, normalize_slash};

/// The same pattern in the spelling of paths.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct PathPattern {
    /// Any of them matches.
    parts: Box<[Box<[u8]>]>,
    /// Whether it is about what is below the folder that one works in.
    is_relative: bool,
    /// Whether it is a name and no way to it.
    is_bare_name: bool,
}

impl PathPattern {
    /// Nothing for a pattern that is spelled as paths are.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.replace('\\', "/");
        let names: Vec<&str> = text.split('/').collect();
        let is_folder = matches!(names.as_slice(), [_, .., "" | "."]);
        let rest = names.strip_prefix(&[""]).unwrap_or(&names);
        if !rest.iter().any(|name| matches!(*name, "" | "." | ".." | ANY_FOLDERS)) {
            return None;
        }
        let is_absolute = text.starts_with('/') || Path::new(&text).is_absolute();
        let root = if text.starts_with('/') { "/" } else { "" };
        let spelled = |names: Vec<&str>| {
            let (itself, below) = match names.join("/").as_str() {
                "" if is_absolute => ("/".to_owned(), "/*".to_owned()),
                "" => (".".to_owned(), "*".to_owned()),
                kept => (format!("{root}{kept}"), format!("{root}{kept}/*")),
            };
            std::iter::once(itself).chain(is_folder.then_some(below))
        };
        let all = expand_any_folders(&normalize_components(&names, is_absolute));
        let parts = all.into_iter().flat_map(spelled);
        Some(Self {
            parts: parts.map(|part| part.into_bytes().into()).collect(),
            is_relative: !is_absolute && !text.starts_with(['*', '?']),
            is_bare_name: names.iter().filter(|name| !name.is_empty()).count() == 1 && !is_absolute,
        })
    }

    /// Whether the whole of `path` matches; with `at_any_depth`, a name also does below other
    /// folders.
    pub(super) fn matches(&self, path: &str, at_any_depth: bool) -> bool {
        if self.is_relative && leads_outside(path) && !(at_any_depth && self.is_bare_name) {
            return false;
        }
        let whole = |path: &[u8]| {
            self.parts.iter().any(|part| matches_optional_end(part, path, normalize_slash))
        };
        let below = |(at, byte): (usize, u8)| {
            normalize_slash(byte) == b'/' && path.as_bytes().get(at + 1..).is_some_and(whole)
        };
        whole(path.as_bytes())
            || (at_any_depth && self.is_bare_name && path.bytes().enumerate().any(below))
    }
}

/// The names without those that say nothing and those that `..` takes back.
fn normalize_components<'a>(names: &[&'a str], is_absolute: bool) -> Vec<&'a str> {
    let mut kept: Vec<&str> = Vec::new();
    for &name in names {
        match (name, kept.last()) {
            ("" | ".", _) => {}
            // Above the root there is nothing.
            ("..", None) if is_absolute => {}
            // A name with a wildcard may stand for several.
            ("..", Some(last)) if *last != ".." && !last.contains(['*', '?']) => {
                kept.pop();
            }
            _ => kept.push(name),
        }
    }
    kept
}

/// What stands for any number of folders.
const ANY_FOLDERS: &str = "**";

/// How many ways there are at most to leave out what stands for folders; beyond, they are some.
const MAX_EXPANSIONS: usize = 16;

/// The names, with each [`ANY_FOLDERS`] there and left out: it may stand for no folder at all.
fn expand_any_folders<'a>(names: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut ways = vec![Vec::new()];
    for (at, &name) in names.iter().enumerate() {
        let without = ways.clone();
        ways.iter_mut().for_each(|way| way.push(name));
        // At the end it stands for everything below, and that is not the folder itself.
        if name == ANY_FOLDERS && at + 1 < names.len() && without.len() < MAX_EXPANSIONS {
            ways.extend(without);
        }
    }
    ways
}

/// Whether a path leads out of the folder that one works in.
fn leads_outside(path: &str) -> bool {
    let path = Path::new(path);
    path.has_root() || path.components().next() == Some(Component::ParentDir)
}
