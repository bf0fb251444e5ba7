//! Files that something executes or obeys later: who may write them may do anything.
//!
//! A rule that allows changes of the project does not mean these. They are told by name
//! only, so that it does not matter whether they exist yet.

use std::ffi::OsStr;
use std::path::Path;

/// Folders with everything below them.
const FOLDERS: &[&[&str]] = &[
    &[".cargo"],
    &[".circleci"],
    &[".claude"],
    &[".codex"],
    &[".config", "fish"],
    &[".config", "git"],
    &[".cursor"],
    &[".devcontainer"],
    &[".gemini"],
    &[".git"],
    &[".github", "actions"],
    &[".github", "workflows"],
    &[".husky"],
    &[".idea"],
    &[".ssh"],
    &[".vscode"],
    &[".zed"],
];

/// What the command line obeys: its configuration, and what was approved for always. These
/// are told by where they are, also when a root lies within them.
const OWN: &[&[&str]] = &[
    &[".config", "tool-sdk"],
    &[".local", "state", "tool-sdk"],
    &["tool-sdk", "approvals"],
    &["tool-sdk", "config.toml"],
];

/// Files in any folder.
const FILES: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".gitattributes",
    ".gitconfig",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".lldbinit",
    ".login",
    ".mcp.json",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".profile",
    ".pypirc",
    ".tcshrc",
    ".travis.yml",
    ".vimrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "agents.md",
    "azure-pipelines.yml",
    "claude.md",
    "gemini.md",
    "jenkinsfile",
];

/// Whether a path below a root names such a file, or something below such a folder.
pub(crate) fn is_protected(below_root: &Path, absolute: &Path) -> bool {
    let below_root = Names::of(below_root);
    below_root.0.last().is_some_and(|name| FILES.iter().any(|file| is_same(name, file)))
        || below_root.lead_through(FOLDERS)
        || Names::of(absolute).lead_through(OWN)
}

/// The names of a path.
struct Names<'a>(Vec<&'a [u8]>);

impl<'a> Names<'a> {
    fn of(path: &'a Path) -> Self {
        Self(path.iter().map(OsStr::as_encoded_bytes).collect())
    }

    /// Whether the path leads through one of `folders`, or to it.
    fn lead_through(&self, folders: &[&[&str]]) -> bool {
        let is = |part: &[&[u8]], folder: &[&str]| {
            part.iter().zip(folder).all(|(name, expected)| is_same(name, expected))
        };
        folders.iter().any(|folder| self.0.windows(folder.len()).any(|part| is(part, folder)))
    }
}

/// Some systems take either case for the same file.
fn is_same(name: &[u8], expected: &str) -> bool {
    name.eq_ignore_ascii_case(expected.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_later_is_protected() {
        for path in [
            ".git/hooks/pre-commit",
            "sub/.git/config",
            ".GIT/config",
            ".github/workflows/ci.yml",
            "a/.vscode/tasks.json",
            ".gitattributes",
            "deep/down/.envrc",
            ".cargo/config.toml",
            "AGENTS.md",
            "docs/CLAUDE.md",
            ".git",
            ".bashrc",
            ".config/tool-sdk/config.toml",
            ".local/state/tool-sdk/approvals/a.json",
            "settings/tool-sdk/config.toml",
        ] {
            assert!(is_protected(Path::new(path), &Path::new("/work").join(path)), "{path}");
        }
    }

    #[test]
    fn the_rest_is_not() {
        for path in [
            "src/main.rs",
            ".gitignore",
            ".github/README.md",
            "git/hooks/x",
            "envrc",
            "tool-sdk/src",
            "",
        ] {
            assert!(!is_protected(Path::new(path), &Path::new("/work").join(path)), "{path}");
        }
    }
    #[test]
    fn a_root_within_our_own_files_protects_them_too() {
        let at =
            |root: &str, path: &str| is_protected(Path::new(path), &Path::new(root).join(path));
        assert!(at("/home/ada/.config/tool-sdk", "config.toml"));
        assert!(at("/home/ada/.local", "state/tool-sdk/approvals"));
        // A checkout below a folder of an agent is a project like any other.
        assert!(!at("/home/ada/.claude/worktrees/x", "src/main.rs"));
    }
}
