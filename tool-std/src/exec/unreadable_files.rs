//! Finds the files that deny rules keep from being read, so that the sandbox covers them.
//!
//! A rule that names one place outside of the workspace needs no search. For all others one walk
//! over the roots judges each file; patterns with wildcards are not searched for outside of them.
//!
//! **Invariant:** what was not searched is a gap of the policy, with the reason.

use std::collections::VecDeque;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

use tool_sdk::environment::DeniedFiles;
use tool_sdk::process::sandbox::SandboxPolicy;
use tool_sdk::{Context, FolderEntry, ResolvedPath, Workspace, WorkspaceErrorKind};

/// How many files and folders of the workspace are judged.
const MAX_ENTRIES: usize = 100_000;

/// A name that no rule means.
const UNLIKELY_NAME: &str = "\u{f8ff}\u{f8ff}\u{f8ff}";

/// Adds the files that commands of this session must not read and that exist now.
pub(super) fn add_unreadable_files(policy: SandboxPolicy, cx: &Context) -> SandboxPolicy {
    let denied = cx.denied_files("read");
    let Ok(workspace) = cx.state::<Workspace>() else { return policy };
    if policy.is_off() || denied.is_empty() {
        return policy;
    }
    let policy = policy.with_unreadable(iter::empty::<PathBuf>());
    if !policy.support().namespaces {
        return policy.with_unreadable_gap("there are no mounts to cover files with");
    }
    FileSearch::new(&denied, &workspace, MAX_ENTRIES).add_to(policy)
}

/// A search for denied files.
struct FileSearch<'a> {
    denied: &'a DeniedFiles,
    workspace: &'a Workspace,
    roots: Vec<&'a Path>,
    /// The folders that are still to be searched.
    folders: VecDeque<ResolvedPath>,
    entries_left: usize,
    found: Vec<PathBuf>,
    gaps: Vec<String>,
}

impl<'a> FileSearch<'a> {
    fn new(denied: &'a DeniedFiles, workspace: &'a Workspace, entries_left: usize) -> Self {
        let roots = workspace.roots().collect();
        let (folders, found, gaps) = Default::default();
        Self { denied, workspace, roots, folders, entries_left, found, gaps }
    }

    fn add_to(mut self, policy: SandboxPolicy) -> SandboxPolicy {
        self.run();
        let policy = policy.with_unreadable(self.found);
        self.gaps.into_iter().fold(policy, SandboxPolicy::with_unreadable_gap)
    }

    fn run(&mut self) {
        let mut is_about_roots = false;
        for pattern in self.denied.patterns() {
            let pattern = pattern.replace('\\', "/");
            if pattern.starts_with('/') {
                is_about_roots |= self.visit_pattern(&pattern);
            } else if pattern.starts_with("../") {
                for root in self.roots.clone() {
                    is_about_roots |= self.visit_pattern(&format!("{}/{pattern}", root.display()));
                }
            } else {
                is_about_roots = true;
            }
        }
        if is_about_roots {
            self.search_roots();
        }
    }

    /// Finds the place that an absolute pattern names outside of the roots; returns whether the
    /// roots have to be searched for it.
    fn visit_pattern(&mut self, pattern: &str) -> bool {
        let place = strip_any_name(pattern);
        if let Some(at) = place.find(['*', '?']) {
            let folder = &place[..place[..at].rfind('/').unwrap_or_default() + 1];
            return self.visit_wildcards(pattern, Path::new(folder));
        }
        let Some(path) = canonicalize(Path::new(place)) else { return false };
        if self.roots.iter().any(|root| path.starts_with(root)) {
            return true;
        }
        if self.holds_root(&path) {
            self.gaps.push(format!(
                "of `{pattern}`, which is around the workspace, only files in the workspace are \
                 covered"
            ));
            return true;
        }
        self.visit_outside(pattern, place.len() < pattern.len(), path);
        false
    }

    /// Records that a pattern is not searched for outside of the roots.
    fn visit_wildcards(&mut self, pattern: &str, folder: &Path) -> bool {
        let Some(folder) = canonicalize(folder) else { return false };
        if self.roots.iter().any(|root| folder.starts_with(root)) {
            return true;
        }
        self.gaps.push(format!("`{pattern}` is not searched for outside of the workspace"));
        self.holds_root(&folder)
    }

    /// Adds a place outside of the roots, as far as no later rule allows it.
    fn visit_outside(&mut self, pattern: &str, is_about_content: bool, path: PathBuf) {
        let Some(text) = path.to_str() else { return self.found.push(path) };
        if is_about_content && path.is_dir() {
            if self.denied.denies_all_in(text, &path) {
                self.found.push(path);
            } else if self
                .denied
                .denies(&format!("{text}/{UNLIKELY_NAME}"), &path.join(UNLIKELY_NAME))
            {
                self.gaps.push(format!("`{pattern}` has exceptions by other rules"));
            }
        } else if self.denied.denies(text, &path) {
            self.found.push(path);
        }
    }

    fn search_roots(&mut self) {
        for root in self.roots.clone() {
            match root.to_str().and_then(|root| self.workspace.resolve(root).ok()) {
                Some(folder) => self.folders.push_back(folder),
                None => self.gaps.push(format!("`{}` cannot be searched", root.display())),
            }
        }
        while let Some(folder) = self.folders.pop_front() {
            for entry in self.read_folder(&folder) {
                let Some(left) = self.entries_left.checked_sub(1) else {
                    self.gaps.push(format!(
                        "the workspace has more than {MAX_ENTRIES} files and folders"
                    ));
                    return;
                };
                self.entries_left = left;
                self.visit_entry(&folder.join(entry.name()), &entry);
            }
        }
    }

    fn read_folder(&mut self, folder: &ResolvedPath) -> Vec<FolderEntry> {
        let opened = folder.open_folder();
        if opened.as_ref().is_err_and(|error| error.kind() == WorkspaceErrorKind::NotFound) {
            return Vec::new();
        }
        opened.ok().and_then(|folder| folder.entries().ok()).unwrap_or_else(|| {
            self.gaps.push(format!("`{}` cannot be searched", folder.display()));
            Vec::new()
        })
    }

    fn visit_entry(&mut self, there: &ResolvedPath, entry: &FolderEntry) {
        let (asked, absolute) = (there.rule_path(), there.absolute_path());
        if entry.kind().is_symlink() {
            self.visit_link(&asked, &absolute);
        } else if !entry.kind().is_dir() {
            if self.denied.denies(&asked, &absolute) {
                self.found.push(absolute);
            }
        } else if self.denied.denies_all_in(&asked, &absolute) && !self.holds_root(&absolute) {
            self.found.push(absolute);
        } else {
            self.folders.push_back(there.clone());
        }
    }

    /// Adds the target of a link that is denied.
    fn visit_link(&mut self, asked: &str, link: &Path) {
        let is_denied = self.denied.denies(asked, link);
        let is_content_denied = self.denied.denies_all_in(asked, link);
        if !is_denied && !is_content_denied {
            return;
        }
        let Some(target) = canonicalize(link) else { return };
        let is_denied = if target.is_dir() { is_content_denied } else { is_denied };
        match is_denied {
            true if self.holds_root(&target) => {
                self.gaps.push(format!("`{asked}` leads to a folder around the workspace"));
            }
            true => self.found.push(target),
            false => {}
        }
    }

    /// Whether a root is the folder, or in it: a command could then not start.
    fn holds_root(&self, folder: &Path) -> bool {
        self.roots.iter().any(|root| root.starts_with(folder))
    }
}

/// Returns the path without links; `None` if it leads to nothing that a command could read.
fn canonicalize(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Returns the folder of a pattern for everything in a folder, and every other pattern as it is.
fn strip_any_name(pattern: &str) -> &str {
    let mut rest = pattern;
    while let Some(folder) = ["/**", "/*", "/"].iter().find_map(|end| rest.strip_suffix(end)) {
        rest = folder;
    }
    if rest.is_empty() { "/" } else { rest }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Searches a folder with `a.env`, `b/c.env`, `b/d` and a link to `outside/key.env` for the
    /// files that end in `.env`; returns what was found, below the parent of the folder, and the
    /// gaps.
    fn search(pattern: &str, max_entries: usize) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("it is there");
        for name in ["root/b", "outside"] {
            fs::create_dir_all(top.join(name)).expect("it is made");
        }
        for name in ["root/a.env", "root/b/c.env", "root/b/d", "outside/key.env", "outside/e"] {
            fs::write(top.join(name), "").expect("it is written");
        }
        symlink("../outside/key.env", top.join("root/link.env")).expect("it is made");
        symlink("loop.env", top.join("root/loop.env")).expect("it is made");
        let workspace = Workspace::open([top.join("root")]).expect("it is there");
        let pattern = pattern.replace("TOP", top.to_str().expect("a text"));
        let denied = DeniedFiles::from_fn([pattern], |asked, _| asked.ends_with(".env"));
        let mut search = FileSearch::new(&denied, &workspace, max_entries);
        search.run();
        let name = |path: &PathBuf| path.strip_prefix(&top).expect("below").display().to_string();
        let mut found: Vec<String> = search.found.iter().map(name).collect();
        found.sort();
        let gaps = search.gaps.iter().map(|gap| gap.replace(top.to_str().expect("a text"), "TOP"));
        (found, gaps.collect())
    }

    #[test]
    fn patterns_say_where_to_search() {
        let inside = ["outside/key.env", "root/a.env", "root/b/c.env"];
        let not_searched =
            |pattern| format!("`{pattern}` is not searched for outside of the workspace");
        for (pattern, found, gaps) in [
            ("*.env", &inside[..], Vec::new()),
            ("b/*", &inside, Vec::new()),
            ("TOP/root/*.env", &inside, Vec::new()),
            ("TOP/outside/key.env", &inside[..1], Vec::new()),
            ("../outside/key.env", &inside[..1], Vec::new()),
            ("..\\outside\\key.env", &inside[..1], Vec::new()),
            ("TOP/outside/./key.env", &inside[..1], Vec::new()),
            // Nothing is denied there.
            ("TOP/outside/e", &[], Vec::new()),
            ("TOP/outside/missing", &[], Vec::new()),
            ("TOP/missing/*.env", &[], Vec::new()),
            ("TOP/outside/*.env", &[], vec![not_searched("TOP/outside/*.env")]),
            ("TOP/*.env", &inside, vec![not_searched("TOP/*.env")]),
        ] {
            assert_eq!(
                search(pattern, 100),
                (found.iter().map(ToString::to_string).collect(), gaps),
                "{pattern}"
            );
        }
        let (found, gaps) = search("TOP/*", 100);
        assert_eq!((found, gaps.len()), (inside.map(ToOwned::to_owned).to_vec(), 1));
    }

    #[test]
    fn a_large_workspace_is_a_gap() {
        let (_, gaps) = search("*.env", 6);
        assert_eq!(gaps, Vec::<String>::new());
        let (found, gaps) = search("*.env", 5);
        assert!(found.contains(&"root/a.env".to_owned()), "{found:?}");
        assert_eq!(gaps, ["the workspace has more than 100000 files and folders"]);
    }

    #[test]
    fn a_pattern_for_everything_in_a_folder_names_the_folder() {
        for (pattern, expected) in [
            ("/a/b", "/a/b"),
            ("/a/b/", "/a/b"),
            ("/a/b/*", "/a/b"),
            ("/a/b/**", "/a/b"),
            ("/a/b/**/*", "/a/b"),
            ("/**", "/"),
            ("/", "/"),
            ("/a/*.env", "/a/*.env"),
        ] {
            assert_eq!(strip_any_name(pattern), expected, "{pattern}");
        }
    }
}
