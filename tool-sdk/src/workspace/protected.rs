//! Files that something executes or obeys later: who may write them may do anything.
//!
//! A rule that allows changes of the project does not mean these. They are told by name
//! only, so that it does not matter whether they exist yet.

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
    &[".tool-sdk"],
    &[".vscode"],
    &[".zed"],
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
    "tool-sdk.toml",
];

/// Whether a path below a root names such a file, or something below such a folder.
pub(super) fn is_protected(path: &Path) -> bool {
    // Some systems take names in either case for the same file.
    let path = path.to_string_lossy().to_ascii_lowercase();
    let names: Vec<&str> = Path::new(&path).iter().filter_map(|name| name.to_str()).collect();
    let is_file = names.last().is_some_and(|name| FILES.contains(name));
    let is_below = |folder: &&[&str]| names.windows(folder.len()).any(|part| part == *folder);
    is_file || FOLDERS.iter().any(is_below)
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
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn the_rest_is_not() {
        for path in
            ["src/main.rs", ".gitignore", ".github/README.md", "git/hooks/x", "envrc", ".", ""]
        {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }
}
