//! Files that something executes or obeys later: who may write them may do anything.
//!
//! A rule that allows changes of the project does not mean these. They are told by name
//! only, so that it does not matter whether they exist yet.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

static UNSEEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\p{Default_Ignorable_Code_Point}").expect("the pattern is fixed")
});

/// Places in any folder, with everything below them; in order, as they are looked up so.
const PLACES: &[&[&str]] = &[
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

/// What the command line obeys: its configuration, and what was approved for always. These
/// are told by where they are, also when a root lies within them.
const OWN: &[&[&str]] = &[
    &[".config", "tool-sdk"],
    &[".local", "state", "tool-sdk"],
    &["tool-sdk", "approvals"],
    &["tool-sdk", "config.toml"],
];

/// A name that each of them has, and where its dash stands.
const OWN_NAME: &str = "tool-sdk";
const OWN_DASH: usize = 4;

/// Files in any folder, in order.
const FILES: &[&str] = &[
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

/// What git obeys and runs of a repository without a working tree, whose folder has a name like
/// `project.git`. The rest of it is left out: it often is the home of working trees.
const OF_REPOSITORY: &[&str] = &["config", "config.worktree", "hooks"];

/// How such files end in any folder: what an editor opens as a project.
const ENDS: &[&str] = &[".code-workspace"];

/// How many of a root's own last names count. A checkout deeper below such a place, as agents
/// make them, is a project like any other.
const OF_ROOT: usize = 2;

/// Whether a path below a root names such a file, or something at or below such a place; a
/// root that lies in one protects everything.
pub(crate) fn is_protected(below_root: &Path, absolute: &Path) -> bool {
    let near = below_root.iter().count() + OF_ROOT;
    let mut near: Vec<_> = absolute.iter().rev().take(near).map(folded).collect();
    near.reverse();
    below_root.file_name().map(folded).is_some_and(|name| is_file(&name))
        || lead_through(&near, PLACES)
        || lead_through_repository(&near)
        || is_own(absolute)
}

/// Whether the path leads to what the command line obeys.
fn is_own(absolute: &Path) -> bool {
    // Most paths are nowhere near, which takes less to see than their names.
    let path = absolute.as_os_str().as_encoded_bytes();
    let names_it = |dash: usize| {
        let start = dash.checked_sub(OWN_DASH);
        start
            .and_then(|start| path.get(start..start + OWN_NAME.len()))
            .is_some_and(|name| name.eq_ignore_ascii_case(OWN_NAME.as_bytes()))
    };
    let may_be = !path.is_ascii() || memchr::memchr_iter(b'-', path).any(names_it);
    may_be && lead_through(&absolute.iter().map(folded).collect::<Vec<_>>(), OWN)
}

/// Whether a file of this name is one, in any folder.
fn is_file(name: &str) -> bool {
    FILES.binary_search(&name).is_ok() || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether `path` is one of `places`, or something below one.
pub(super) fn is_within(path: &Path, places: &[PathBuf]) -> bool {
    let is_around = |place: &PathBuf| {
        let (mut names, mut expected) = (path.iter(), place.iter());
        expected.all(|expected| names.next().is_some_and(|it| it.eq_ignore_ascii_case(expected)))
    };
    places.iter().any(is_around)
}

/// Whether the path leads through one of `places`, or to it.
fn lead_through(path: &[Cow<'_, str>], places: &[&[&str]]) -> bool {
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

/// Whether the path leads into a repository without a working tree, where git looks.
fn lead_through_repository(path: &[Cow<'_, str>]) -> bool {
    let obeyed =
        |pair: &[Cow<'_, str>]| pair[0].ends_with(".git") && OF_REPOSITORY.contains(&&*pair[1]);
    path.windows(2).any(obeyed)
}

/// A name as the lists have it. Some systems take either case for the same file, also of the
/// letters that other alphabets have for it, and do not see the characters that nobody else
/// sees.
fn folded(name: &OsStr) -> Cow<'_, str> {
    // What is no text is nothing that a list has.
    let Some(name) = name.to_str() else { return Cow::Borrowed("") };
    match name.is_ascii() {
        true if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Cow::Owned(name.to_ascii_lowercase())
        }
        true => Cow::Borrowed(name),
        // Some of these letters have an upper case only that is plain, and some a lower case.
        false => Cow::Owned(UNSEEN.replace_all(name, "").to_uppercase().to_lowercase()),
    }
}
