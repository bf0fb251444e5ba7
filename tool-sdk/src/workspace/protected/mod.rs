//! Files that something executes or obeys later: who may write them may do anything.
//!
//! A rule that allows changes of the project does not mean these. They are told by name
//! only, so that it does not matter whether they exist yet.

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
    &[".bashrc.d"],
    &[".buildkite"],
    &[".builds"],
    &[".bundle", "config"],
    &[".cargo"],
    &[".circleci"],
    &[".claude"],
    &[".clinerules"],
    &[".codex"],
    &[".config", "autostart"],
    &[".config", "bash"],
    &[".config", "direnv"],
    &[".config", "environment.d"],
    &[".config", "fish"],
    &[".config", "git"],
    &[".config", "goose"],
    &[".config", "mise"],
    &[".config", "nvim"],
    &[".config", "systemd", "user"],
    &[".config", "tmux"],
    &[".config", "vim"],
    &[".config", "zsh"],
    &[".continue"],
    &[".crush"],
    &[".cursor"],
    &[".devcontainer"],
    &[".emacs.d"],
    &[".fleet"],
    &[".forgejo", "workflows"],
    &[".gemini"],
    &[".git"],
    &[".gitea", "workflows"],
    &[".github", "actions"],
    &[".github", "agents"],
    &[".github", "chatmodes"],
    &[".github", "copilot-instructions.md"],
    &[".github", "hooks"],
    &[".github", "instructions"],
    &[".github", "prompts"],
    &[".github", "workflows"],
    &[".gradle", "gradle.properties"],
    &[".gradle", "init.d"],
    &[".gradle", "init.gradle"],
    &[".gradle", "init.gradle.kts"],
    &[".hg", "hgrc"],
    &[".husky"],
    &[".idea"],
    &[".jj", "repo", "config"],
    &[".jj", "repo", "config.toml"],
    &[".junie"],
    &[".kiro"],
    &[".m2", "settings.xml"],
    &[".mise"],
    &[".mvn"],
    &[".opencode"],
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
];

/// What the command line obeys: its configuration, and what was approved for always. These
/// are told by where they are, also when a root lies within them.
const OWN: &[&[&str]] = &[
    &[".config", "tool-sdk"],
    &[".local", "state", "tool-sdk"],
    &["tool-sdk", "approvals"],
    &["tool-sdk", "config.toml"],
];

/// Files in any folder, in order.
const FILES: &[&str] = &[
    ".aider.conf.yaml",
    ".aider.conf.yml",
    ".appveyor.yml",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cirrus.yml",
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
    ".kshrc",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".lldbinit",
    ".login",
    ".mcp.json",
    ".mise.toml",
    ".mkshrc",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".pam_environment",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    ".pre-commit-config.yaml",
    ".profile",
    ".pryrc",
    ".pypirc",
    ".rprofile",
    ".rules",
    ".screenrc",
    ".tcshrc",
    ".tmux.conf",
    ".travis.yml",
    ".vimrc",
    ".windsurfrules",
    ".woodpecker.yaml",
    ".woodpecker.yml",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".yarnrc",
    ".yarnrc.yaml",
    ".yarnrc.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "agents.md",
    "agents.override.md",
    "appveyor.yaml",
    "appveyor.yml",
    "azure-pipelines.yaml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "bunfig.toml",
    "claude.local.md",
    "claude.md",
    "crush.json",
    "crush.md",
    "gemini.md",
    "jenkinsfile",
    "lefthook.yaml",
    "lefthook.yml",
    "mcp.json",
    "mise.toml",
    "opencode.json",
    "opencode.jsonc",
    "pip.conf",
    "pip.ini",
    "qwen.md",
    "uv.toml",
];

/// How such files end in any folder: what an editor opens as a project.
const ENDS: &[&str] = &[".code-workspace"];

/// How many of a root's own last names count. A checkout deeper below such a place, as agents
/// make them, is a project like any other.
const OF_ROOT: usize = 2;

/// Whether a path below a root names such a file, or something at or below such a place; a
/// root that lies in one protects everything.
pub(crate) fn is_protected(below_root: &Path, absolute: &Path) -> bool {
    let all: Vec<_> = absolute.iter().map(folded).collect();
    let near = &all[all.len().saturating_sub(below_root.iter().count() + OF_ROOT)..];
    below_root.file_name().map(folded).is_some_and(|name| is_file(&name))
        || lead_through(near, PLACES)
        || lead_through(&all, OWN)
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

#[cfg(test)]
mod tests {
    use super::*;

    // PA7: an entry that is written otherwise would protect nothing.
    #[test]
    fn the_lists_hold_names_as_they_are_compared() {
        let names = PLACES.iter().chain(OWN).copied().flatten().chain(FILES).chain(ENDS);
        for name in names {
            assert_eq!(folded(OsStr::new(name)), *name);
        }
        assert!(PLACES.is_sorted() && OWN.is_sorted() && FILES.is_sorted());
    }

    // PA7: the groups of what is asked about, whether it exists or not.
    #[test]
    fn what_runs_or_is_obeyed_later_is_protected() {
        let groups: [(&str, &[&str]); 9] = [
            (
                "hooks and settings of version control",
                &[
                    ".git",
                    ".git/hooks/pre-commit",
                    "sub/.git/config",
                    ".GIT/config",
                    ".gitattributes",
                    ".gitmodules",
                    ".hg/hgrc",
                    ".husky/pre-push",
                    ".pre-commit-config.yaml",
                    ".svn/hooks/pre-commit",
                    "lefthook.yml",
                    ".jj/repo/config.toml",
                ],
            ),
            (
                "other letters that some systems take for these",
                &[
                    ".g\u{200d}it/config",
                    ".gitconﬁg",
                    ".HuS\u{212a}y/pre-push",
                    ".baſhrc",
                    ".ßh/config",
                    "clau\u{ad}de.md",
                ],
            ),
            (
                "editors",
                &[
                    "a/.vscode/tasks.json",
                    ".idea/workspace.xml",
                    ".zed/tasks.json",
                    ".devcontainer.json",
                    ".devcontainer/devcontainer.json",
                    ".config/nvim/init.lua",
                    ".emacs.d/init.el",
                    ".exrc",
                    ".vim/vimrc",
                    ".vim/plugin/a.vim",
                    ".gvimrc",
                    "my.code-workspace",
                    ".fleet/settings.json",
                ],
            ),
            (
                "servers and folders that are entered",
                &[
                    ".mcp.json",
                    "mcp.json",
                    "deep/down/.envrc",
                    ".config/direnv/direnvrc",
                    ".gdbinit",
                    "mise.toml",
                    ".mise.toml",
                    ".config/mise/config.toml",
                ],
            ),
            (
                "what builds the project elsewhere",
                &[
                    ".github/workflows/ci.yml",
                    ".github/actions/a/action.yml",
                    ".gitea/workflows/ci.yml",
                    ".forgejo/workflows/ci.yml",
                    ".gitlab-ci.yml",
                    ".buildkite/pipeline.yml",
                    ".circleci/config.yml",
                    ".woodpecker.yml",
                    ".woodpecker/test.yaml",
                    ".drone.yml",
                    ".travis.yml",
                    "Jenkinsfile",
                    "appveyor.yml",
                    "azure-pipelines.yml",
                    "bitbucket-pipelines.yml",
                    ".cirrus.yml",
                    ".semaphore/semaphore.yml",
                    ".tekton/push.yaml",
                    ".teamcity/settings.kts",
                    ".builds/a.yml",
                    "azure-pipelines.yaml",
                    ".azure-pipelines/a.yml",
                ],
            ),
            (
                "package managers",
                &[
                    ".cargo/config.toml",
                    ".npmrc",
                    ".yarnrc",
                    ".yarnrc.yml",
                    ".yarnrc.yaml",
                    ".yarn/releases/yarn.cjs",
                    ".pnpmfile.cjs",
                    ".pnpmfile.mjs",
                    "bunfig.toml",
                    ".config/pip/pip.conf",
                    ".pypirc",
                    ".gemrc",
                    ".bundle/config",
                    ".condarc",
                    "uv.toml",
                    ".gradle/init.gradle",
                    ".gradle/init.d/a.gradle",
                    ".m2/settings.xml",
                    ".mvn/jvm.config",
                    ".mvn/wrapper/maven-wrapper.properties",
                ],
            ),
            (
                "instructions and settings of agents",
                &[
                    "AGENTS.md",
                    "AGENTS.override.md",
                    "docs/CLAUDE.md",
                    "CLAUDE.local.md",
                    "GEMINI.md",
                    ".claude/settings.json",
                    ".clinerules",
                    ".clinerules/style.md",
                    ".codex/config.toml",
                    ".continue/config.yaml",
                    ".cursor/rules/a.mdc",
                    ".cursorrules",
                    ".gemini/settings.json",
                    ".github/copilot-instructions.md",
                    ".kiro/steering/a.md",
                    ".opencode/plugin/a.ts",
                    "opencode.json",
                    ".roo/rules/a.md",
                    ".windsurfrules",
                    ".agents/skills/x/SKILL.md",
                    ".github/instructions/a.md",
                    ".github/hooks/x.json",
                    ".github/agents/a.md",
                    ".github/prompts/a.prompt.md",
                    ".github/chatmodes/a.md",
                    ".goosehints",
                    "CRUSH.md",
                    "crush.json",
                    "QWEN.md",
                    ".qwen/settings.json",
                    ".junie/guidelines.md",
                    ".amazonq/rules/a.md",
                    ".aider.conf.yml",
                    ".rules",
                    ".trae/rules/a.md",
                    ".augment/rules/a.md",
                ],
            ),
            (
                "what is run at a start",
                &[
                    ".bashrc",
                    ".config/autostart/a.desktop",
                    ".config/fish/config.fish",
                    ".config/systemd/user/a.service",
                    ".inputrc",
                    ".kshrc",
                    ".profile",
                    ".ssh/config",
                    ".xprofile",
                    ".zshenv",
                    ".bashrc.d/a.sh",
                    ".config/environment.d/a.conf",
                    ".config/zsh/a.zsh",
                    ".irbrc",
                    ".pam_environment",
                    ".Rprofile",
                    ".tmux.conf",
                    ".config/tmux/tmux.conf",
                    ".xsessionrc",
                ],
            ),
            (
                "our own",
                &[
                    ".config/tool-sdk/config.toml",
                    ".local/state/tool-sdk/approvals/a.json",
                    "settings/tool-sdk/config.toml",
                ],
            ),
        ];
        for (group, paths) in groups {
            for path in paths {
                let absolute = Path::new("/work").join(path);
                assert!(is_protected(Path::new(path), &absolute), "{group}: {path}");
            }
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
            "workflows/ci.yml",
            ".config/systemd/system.conf",
            ".hg/store",
            "mcp.json/readme",
            ".gït/config",
            "",
        ] {
            assert!(!is_protected(Path::new(path), &Path::new("/work").join(path)), "{path}");
        }
    }

    // PA7: what a root is called counts as much as what stands below it.
    #[test]
    fn a_root_within_a_protected_place_protects_what_is_below() {
        let at =
            |root: &str, path: &str| is_protected(Path::new(path), &Path::new(root).join(path));
        assert!(at("/work/.github", "workflows/ci.yml"));
        assert!(at("/work/.github/workflows", "ci.yml"));
        assert!(at("/work/.git", "hooks/pre-commit"));
        assert!(at("/work/.git/hooks", "pre-commit"));
        assert!(at("/work/.husky", "pre-push"));
        assert!(at("/home/ada/.config", "systemd/user/a.service"));
        assert!(!at("/work/.github", "README.md"));
        assert!(!at("/home/ada/.config", "notes"));
    }

    #[test]
    fn a_place_is_within_itself_and_what_is_around_it() {
        let places = ["/work/my.toml".into(), "/state".into()];
        for (path, expected) in [
            ("/work/my.toml", true),
            ("/WORK/My.toml", true),
            ("/state/approvals/a.json", true),
            ("/work/my.tom", false),
            ("/work", false),
            ("/statement", false),
        ] {
            assert_eq!(is_within(Path::new(path), &places), expected, "{path}");
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
