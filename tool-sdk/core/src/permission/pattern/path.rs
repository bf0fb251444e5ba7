//! Patterns for paths that need normalization.
//!
//! `./secrets//*`, `a/../secrets/` and `/work/./secrets/*` mean what they mean to the operating
//! system: empty components and `.` are ignored, and a trailing `/` covers everything below the
//! folder. `**` as a whole component stands for any number of folders, including none. No file is
//! accessed. A component before `..` is only removed when it has no wildcard.

use std::path::{Component, Path};

use super::{matches_optional_end, normalize_slash};

/// A normalized path pattern.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct PathPattern {
    /// The alternatives; any of them may match.
    parts: Box<[Box<[u8]>]>,
    /// Whether the pattern is about files below the working folder.
    is_relative: bool,
    /// Whether it is a single name, without a folder.
    is_bare_name: bool,
}

impl PathPattern {
    /// Returns `None` for a pattern that needs no normalization.
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

    /// Whether the whole of `path` matches; with `at_any_depth`, a bare name also matches below
    /// other folders.
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

/// Removes empty components, `.`, and components that `..` undoes.
fn normalize_components<'a>(names: &[&'a str], is_absolute: bool) -> Vec<&'a str> {
    let mut kept: Vec<&str> = Vec::new();
    for &name in names {
        match (name, kept.last()) {
            ("" | ".", _) => {}
            // The root has no parent.
            ("..", None) if is_absolute => {}
            // A component with a wildcard may stand for several components.
            ("..", Some(last)) if *last != ".." && !last.contains(['*', '?']) => {
                kept.pop();
            }
            _ => kept.push(name),
        }
    }
    kept
}

/// The component that stands for any number of folders.
const ANY_FOLDERS: &str = "**";

/// The most alternatives for leaving out [`ANY_FOLDERS`]; beyond, it stands for at least one
/// folder.
const MAX_EXPANSIONS: usize = 16;

/// Returns the components with and without each [`ANY_FOLDERS`], which may stand for no folder.
fn expand_any_folders<'a>(names: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut ways = vec![Vec::new()];
    for (at, &name) in names.iter().enumerate() {
        let without = ways.clone();
        ways.iter_mut().for_each(|way| way.push(name));
        // At the end it stands for everything below the folder, but not for the folder itself.
        if name == ANY_FOLDERS && at + 1 < names.len() && without.len() < MAX_EXPANSIONS {
            ways.extend(without);
        }
    }
    ways
}

/// Whether a path leads out of the working folder.
fn leads_outside(path: &str) -> bool {
    let path = Path::new(path);
    path.has_root() || path.components().next() == Some(Component::ParentDir)
}
