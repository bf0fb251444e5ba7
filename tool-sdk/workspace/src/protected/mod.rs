//! Protected files: files that other programs execute or read as configuration, such as git
//! hooks, shell start-up files and agent settings. Writing them can lead to code execution.
//!
//! A permission rule that allows changes of the project does not cover them. They are recognized
//! by name only, so it does not matter whether they exist yet.
//!
//! **Invariant:** the lists are sorted and case-folded, because they are searched by binary search.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

static INVISIBLE_CHARS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\p{Default_Ignorable_Code_Point}").expect("the pattern is fixed")
});

/// Protected paths below any folder, with everything below them. Sorted for the binary search.
const PROTECTED_PATHS: &[&[&str]] = &[
    &[".agents"],
    &[".amazonq"],
    &[".augment"],
    &[".azure-pipelines"],
    &[".azuredevops"],
    &[".bashrc.d"],
    &[".buildkite"],
    &[".builds"],
    &[".bundle", "config"],
    &[".cargo"],
    &[".circleci"],
    &[".claude"],
    &[".clinerules"],
    &[".codeium"],
    &[".codex"],
    &[".config", "autostart"],
    &[".config", "bash"],
    &[".config", "code", "user"],
    &[".config", "code-oss", "user"],
    &[".config", "crush"],
    &[".config", "cursor", "user"],
    &[".config", "direnv"],
    &[".config", "doom"],
    &[".config", "elvish"],
    &[".config", "emacs"],
    &[".config", "environment.d"],
    &[".config", "fish"],
    &[".config", "git"],
    &[".config", "goose"],
    &[".config", "helix"],
    &[".config", "kak"],
    &[".config", "mise"],
    &[".config", "nushell"],
    &[".config", "nvim"],
    &[".config", "opencode"],
    &[".config", "powershell"],
    &[".config", "systemd", "user"],
    &[".config", "tmux"],
    &[".config", "vim"],
    &[".config", "vscodium", "user"],
    &[".config", "xonsh"],
    &[".config", "zed"],
    &[".config", "zsh"],
    &[".continue"],
    &[".copilot"],
    &[".crush"],
    &[".cursor"],
    &[".devcontainer"],
    &[".doom.d"],
    &[".emacs.d"],
    &[".factory"],
    &[".fleet"],
    &[".forgejo", "actions"],
    &[".forgejo", "workflows"],
    &[".gemini"],
    &[".git"],
    &[".git-hooks"],
    &[".gitea", "actions"],
    &[".gitea", "workflows"],
    &[".githooks"],
    &[".github", "actions"],
    &[".github", "agents"],
    &[".github", "chatmodes"],
    &[".github", "copilot-instructions.md"],
    &[".github", "hooks"],
    &[".github", "instructions"],
    &[".github", "prompts"],
    &[".github", "workflows"],
    &[".gitlab", "ci"],
    &[".gradle", "gradle.properties"],
    &[".gradle", "init.d"],
    &[".gradle", "init.gradle"],
    &[".gradle", "init.gradle.kts"],
    &[".helix"],
    &[".hg", "hgrc"],
    &[".husky"],
    &[".idea"],
    &[".jj", "repo", "config"],
    &[".jj", "repo", "config.toml"],
    &[".junie"],
    &[".kilocode"],
    &[".kiro"],
    &[".lefthook"],
    &[".lefthook-local"],
    &[".m2", "extensions.xml"],
    &[".m2", "settings.xml"],
    &[".mise"],
    &[".mvn"],
    &[".nvim"],
    &[".oh-my-bash"],
    &[".oh-my-zsh"],
    &[".opencode"],
    &[".openhands"],
    &[".qwen"],
    &[".roo"],
    &[".semaphore"],
    &[".ssh"],
    &[".svn", "hooks"],
    &[".teamcity"],
    &[".tekton"],
    &[".trae"],
    &[".vim"],
    &[".vscode"],
    &[".windsurf"],
    &[".woodpecker"],
    &[".yarn", "plugins"],
    &[".yarn", "releases"],
    &[".zed"],
    &[".zprezto"],
    &["gradle", "wrapper"],
];

/// The configuration and stored approvals of the command line. They are matched against the
/// whole absolute path, because a root may lie inside of them.
const SDK_PATHS: &[&[&str]] = &[
    &[".config", "tool-sdk"],
    &[".local", "state", "tool-sdk"],
    &["tool-sdk", "approvals"],
    &["tool-sdk", "config.toml"],
];

/// A component of each of these paths, and the index of its dash.
const SDK_NAME: &str = "tool-sdk";
const SDK_NAME_DASH: usize = 4;

/// Protected file names in any folder. Sorted for the binary search.
const PROTECTED_FILES: &[&str] = &[
    ".aider.conf.yaml",
    ".aider.conf.yml",
    ".appveyor.yml",
    ".bash_aliases",
    ".bash_completion",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cirrus.star",
    ".cirrus.yml",
    ".claude.json",
    ".condarc",
    ".crush.json",
    ".cshrc",
    ".cursorrules",
    ".devcontainer.json",
    ".drone.yaml",
    ".drone.yml",
    ".emacs",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".gemrc",
    ".gitattributes",
    ".gitconfig",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".goosehints",
    ".gvimrc",
    ".hgrc",
    ".inputrc",
    ".irbrc",
    ".kilocodemodes",
    ".kshrc",
    ".lefthook-local.json",
    ".lefthook-local.toml",
    ".lefthook-local.yaml",
    ".lefthook-local.yml",
    ".lefthook.json",
    ".lefthook.toml",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".lldbinit",
    ".login",
    ".mcp.json",
    ".mise.local.toml",
    ".mise.toml",
    ".mkshrc",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".overcommit.yml",
    ".p10k.zsh",
    ".pam_environment",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    ".pnpmfile.js",
    ".pnpmfile.mjs",
    ".pre-commit-config.yaml",
    ".profile",
    ".pryrc",
    ".pypirc",
    ".roomodes",
    ".rprofile",
    ".rules",
    ".screenrc",
    ".spacemacs",
    ".tcshrc",
    ".tmux.conf",
    ".travis.yml",
    ".vimrc",
    ".windsurfrules",
    ".woodpecker.yaml",
    ".woodpecker.yml",
    ".xinitrc",
    ".xonshrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".yarnrc",
    ".yarnrc.yaml",
    ".yarnrc.yml",
    ".zimrc",
    ".zlogin",
    ".zlogout",
    ".zpreztorc",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "agent.md",
    "agents.md",
    "agents.override.md",
    "appveyor.yaml",
    "appveyor.yml",
    "azure-pipelines.yaml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "buildspec.yaml",
    "buildspec.yml",
    "bunfig.toml",
    "claude.local.md",
    "claude.md",
    "cloudbuild.yaml",
    "cloudbuild.yml",
    "crush.json",
    "crush.md",
    "gemini.md",
    "jenkinsfile",
    "lefthook-local.json",
    "lefthook-local.toml",
    "lefthook-local.yaml",
    "lefthook-local.yml",
    "lefthook.json",
    "lefthook.toml",
    "lefthook.yaml",
    "lefthook.yml",
    "mcp.json",
    "microsoft.powershell_profile.ps1",
    "mise.local.toml",
    "mise.toml",
    "opencode.json",
    "opencode.jsonc",
    "pip.conf",
    "pip.ini",
    "pnpmfile.js",
    "qwen.md",
    "uv.toml",
    "warp.md",
];

/// The configuration and hooks of a bare git repository, a folder like `project.git`. The rest is
/// not protected, because working trees are often placed there.
const BARE_REPOSITORY_FILES: &[&str] = &["config", "config.worktree", "hooks"];

/// Suffixes of protected file names: project files of editors.
const PROTECTED_SUFFIXES: &[&str] = &[".code-workspace"];

/// How many of the last components of a root's own path are checked. A checkout deeper below a
/// protected folder, as agents create them, is an ordinary project.
const ROOT_COMPONENTS: usize = 2;

/// Returns whether a path is a protected file, or lies at or below a protected path. Everything
/// in a root that lies in a protected folder is protected.
pub fn is_protected(below_root: &Path, absolute: &Path) -> bool {
    let near = below_root.iter().count() + ROOT_COMPONENTS;
    let mut near: Vec<_> = absolute.iter().rev().take(near).map(fold_name).collect();
    near.reverse();
    below_root.file_name().map(fold_name).is_some_and(|name| is_protected_name(&name))
        || passes_through(&near, PROTECTED_PATHS)
        || passes_through_bare_repository(&near)
        || is_sdk_path(absolute)
}

/// Returns whether the path is part of the configuration of the command line.
fn is_sdk_path(absolute: &Path) -> bool {
    // Fast path: a byte search rules out most paths without folding their components.
    let path = absolute.as_os_str().as_encoded_bytes();
    let names_it = |dash: usize| {
        let start = dash.checked_sub(SDK_NAME_DASH);
        start
            .and_then(|start| path.get(start..start + SDK_NAME.len()))
            .is_some_and(|name| name.eq_ignore_ascii_case(SDK_NAME.as_bytes()))
    };
    let may_be = !path.is_ascii() || memchr::memchr_iter(b'-', path).any(names_it);
    may_be && passes_through(&absolute.iter().map(fold_name).collect::<Vec<_>>(), SDK_PATHS)
}

/// Returns whether files of this name are protected in any folder.
fn is_protected_name(name: &str) -> bool {
    PROTECTED_FILES.binary_search(&name).is_ok()
        || PROTECTED_SUFFIXES.iter().any(|end| name.ends_with(end))
}

/// Returns whether `path` is one of `places` or lies below one, ignoring ASCII case.
pub(super) fn is_at_or_below_any(path: &Path, places: &[PathBuf]) -> bool {
    let is_around = |place: &PathBuf| {
        let (mut names, mut expected) = (path.iter(), place.iter());
        expected.all(|expected| names.next().is_some_and(|it| it.eq_ignore_ascii_case(expected)))
    };
    places.iter().any(is_around)
}

/// Returns whether the path contains the components of one of `places` in sequence.
fn passes_through(path: &[Cow<'_, str>], places: &[&[&str]]) -> bool {
    let begins = |rest: &[Cow<'_, str>], place: &[&str]| {
        rest.len() >= place.len() && rest.iter().zip(place).all(|(name, part)| name == part)
    };
    (0..path.len()).any(|at| {
        let rest = &path[at..];
        let first = places.partition_point(|place| *place[0] < *rest[0]);
        let alike = places[first..].iter().take_while(|place| *place[0] == *rest[0]);
        alike.into_iter().any(|place| begins(rest, place))
    })
}

/// Returns whether the path leads to the configuration or hooks of a bare git repository.
fn passes_through_bare_repository(path: &[Cow<'_, str>]) -> bool {
    let obeyed = |pair: &[Cow<'_, str>]| {
        pair[0].ends_with(".git") && BARE_REPOSITORY_FILES.contains(&&*pair[1])
    };
    path.windows(2).any(obeyed)
}

/// Folds a name to the form of the lists: Unicode case folding without invisible characters.
/// Some file systems ignore case, also for compatibility letters, and default-ignorable
/// characters.
fn fold_name(name: &OsStr) -> Cow<'_, str> {
    // A name that is not UTF-8 is in no list.
    let Some(name) = name.to_str() else { return Cow::Borrowed("") };
    match name.is_ascii() {
        true if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Cow::Owned(name.to_ascii_lowercase())
        }
        true => Cow::Borrowed(name),
        // Some compatibility letters map to ASCII by their upper case only, others by their lower.
        false => Cow::Owned(INVISIBLE_CHARS.replace_all(name, "").to_uppercase().to_lowercase()),
    }
}
