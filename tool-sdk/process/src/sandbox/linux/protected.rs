//! Searches a writable root for protected files.
//!
//! The files found before a child starts are made read-only. Files found after its exit that did
//! not exist before are reported as created during the run.
//!
//! **Invariant:** the search is bounded by [`MAX_FOLDERS`] and [`MAX_NAMES`], so a large tree does
//! not slow down every command.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat2};
use tool_sdk_workspace::internal::is_protected;

use crate::sandbox::helper_protocol::ProtectedPaths;

/// How many folders are read, and how many names.
const MAX_FOLDERS: usize = 256;
const MAX_NAMES: usize = 4_096;

/// How many path components a protected name has at most.
const MAX_NAME_PARTS: usize = 3;

/// Large folders of generated or third-party files, which are not searched.
const SKIPPED_FOLDERS: &[&str] = &["node_modules", "target"];

/// Returns the protected paths in `root`, within the limits of the search.
pub(crate) fn find_protected(root: &Path) -> io::Result<ProtectedPaths> {
    let mut found = ProtectedPaths::default();
    if is_protected(Path::new(""), root) {
        found.near.insert(root.to_owned());
        return Ok(found);
    }
    let mut left = MAX_NAMES;
    // Breadth first.
    let mut folders = VecDeque::from([PathBuf::new()]);
    for _ in 0..MAX_FOLDERS {
        let Some(folder) = folders.pop_front() else { break };
        let names = match list_names(&root.join(&folder), left) {
            Ok(names) => names,
            Err(error) if folder.as_os_str().is_empty() => return Err(error),
            // Not a folder, or not readable for this user.
            Err(_) => continue,
        };
        left -= names.len();
        for (name, kind) in names {
            let below_root = folder.join(name);
            let path = root.join(&below_root);
            if is_protected(path_suffix(&below_root), path_suffix(&path)) {
                if is_near(&folder) {
                    found.near.insert(path)
                } else {
                    found.deep.insert(path)
                };
            } else if may_be_folder(kind) && !is_skipped(&below_root) {
                folders.push_back(below_root);
            }
        }
    }
    Ok(found)
}

/// Returns the last components of a path, which decide whether it is protected if the folders
/// around it are not.
fn path_suffix(path: &Path) -> &Path {
    let text = path.as_os_str().as_bytes();
    let slashes = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    let start = slashes.map(|(at, _)| at + 1).nth(MAX_NAME_PARTS - 1).unwrap_or_default();
    Path::new(OsStr::from_bytes(&text[start..]))
}

/// Returns whether a folder is the root, or a hidden folder directly in it: some protected names
/// have two components, such as `.github/workflows`.
fn is_near(folder: &Path) -> bool {
    let is_hidden = folder.as_os_str().as_bytes().starts_with(b".");
    folder.as_os_str().is_empty() || (is_hidden && folder.iter().count() == 1)
}

fn may_be_folder(kind: FileType) -> bool {
    // Some file systems do not return the type.
    matches!(kind, FileType::Directory | FileType::Unknown)
}

fn is_skipped(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped))
}

fn list_names(folder: &Path, most: usize) -> io::Result<Vec<(PathBuf, FileType)>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if names.len() == most {
            break;
        }
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push((name.into(), entry.file_type()));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // SB3
    #[test]
    fn names_are_found_near_and_deep() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in [".git/hooks", ".github/workflows", "a/b/.git", "a/.vscode", "target/.git", "x"]
        {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["AGENTS.md", "a/b/.envrc", "a/b/src.rs", "node_modules"] {
            fs::write(root.join(path), "").unwrap();
        }
        std::os::unix::fs::symlink(root.join("a"), root.join("link")).unwrap();
        let found = find_protected(&root).unwrap();
        let paths = |paths: &[&str]| paths.iter().map(|path| root.join(path)).collect();
        assert_eq!(found.near, paths(&[".git", ".github/workflows", "AGENTS.md"]));
        assert_eq!(found.deep, paths(&["a/.vscode", "a/b/.envrc", "a/b/.git"]));
        assert!(find_protected(&root.join("none")).is_err());
    }

    #[test]
    fn the_end_of_a_path_tells() {
        for (path, expected) in [("a", "a"), ("a/b/c", "a/b/c"), ("/a/b/c/d", "b/c/d"), ("", "")] {
            assert_eq!(path_suffix(Path::new(path)), Path::new(expected));
        }
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join(".config/tool-sdk/inner");
        fs::create_dir_all(root.join("a")).unwrap();
        assert_eq!(find_protected(&root).unwrap().near, [root].into());
    }

    #[test]
    fn the_search_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for number in 0..MAX_FOLDERS + 10 {
            fs::create_dir_all(root.join(format!("{number}/sub"))).unwrap();
        }
        fs::create_dir(root.join("0/sub/.git")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        let found = find_protected(&root).unwrap();
        assert_eq!(
            found,
            ProtectedPaths { near: [root.join(".git")].into(), ..ProtectedPaths::default() }
        );
    }
}
