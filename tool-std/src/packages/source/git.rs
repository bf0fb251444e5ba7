//! Finds the commit of a folder that is a git repository or lies in one.
//!
//! The files of the repository are read; the program `git` does not run, because the configuration
//! of a foreign repository names commands.

use std::path::Path;

use crate::packages::host_files::read_text_file;

/// How many folders above are searched for the repository.
const MAX_ANCESTORS: usize = 8;

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Returns the commit that is checked out, without changes that are not committed.
pub(super) fn find_commit(folder: &Path) -> Option<String> {
    let folders = folder.ancestors().take(MAX_ANCESTORS).map(|folder| folder.join(".git"));
    let git = folders.into_iter().find(|git| git.is_dir())?;
    let head = read_text(&git.join("HEAD"))?;
    let commit = match head.trim().strip_prefix("ref: ") {
        Some(name) if name.starts_with("refs/") && !name.contains("..") => {
            read_text(&git.join(name)).or_else(|| find_packed_ref(&git, name))?
        }
        Some(_) => return None,
        None => head,
    };
    let commit = commit.trim();
    let is_hash = matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash.then(|| commit.to_owned())
}

fn find_packed_ref(git: &Path, name: &str) -> Option<String> {
    let text = read_text(&git.join("packed-refs"))?;
    let commit = text.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '))?;
    Some(commit.to_owned())
}

fn read_text(path: &Path) -> Option<String> {
    read_text_file(path, MAX_FILE_BYTES).ok()
}
