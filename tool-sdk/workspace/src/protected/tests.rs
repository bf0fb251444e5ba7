//! Protected paths by group, and paths that are not protected.

use super::*;

// PA7: an entry that is not case-folded or not in order would never match.
#[test]
fn lists_are_folded_and_sorted() {
    let names = PROTECTED_PATHS
        .iter()
        .chain(SDK_PATHS)
        .copied()
        .flatten()
        .chain(PROTECTED_FILES)
        .chain(PROTECTED_SUFFIXES)
        .chain(BARE_REPOSITORY_FILES);
    for name in names {
        assert_eq!(fold_name(OsStr::new(name)), *name);
    }
    assert!(PROTECTED_PATHS.is_sorted() && SDK_PATHS.is_sorted() && PROTECTED_FILES.is_sorted());
    assert!(SDK_PATHS.iter().all(|place| place.contains(&SDK_NAME)));
    assert_eq!(SDK_NAME.find('-'), Some(SDK_NAME_DASH));
}

// PA7: files of each group are protected whether they exist or not.
#[test]
fn protects_executed_and_configuration_files() {
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
                ".githooks/pre-commit",
                "lefthook-local.yml",
                ".lefthook-local.yml",
                ".lefthook/pre-commit/a.sh",
                ".overcommit.yml",
                "repo.git/hooks/post-receive",
                "sub/repo.git/config",
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
                ".helix/languages.toml",
                ".config/helix/config.toml",
                ".nvim/init.lua",
                ".config/zed/settings.json",
                ".config/Code/User/settings.json",
                ".config/emacs/init.el",
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
                "mise.local.toml",
                ".mise.local.toml",
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
                ".gitea/actions/x/action.yml",
                ".forgejo/actions/x/action.yml",
                ".gitlab/ci/a.yml",
                ".azuredevops/x.yml",
                "buildspec.yml",
                "cloudbuild.yaml",
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
                "gradle/wrapper/gradle-wrapper.properties",
                ".m2/extensions.xml",
                ".pnp.cjs",
                ".pnpmfile.js",
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
                ".claude.json",
                ".roomodes",
                ".kilocode/rules/a.md",
                "AGENT.md",
                "WARP.md",
                ".copilot/mcp-config.json",
                ".openhands/setup.sh",
                ".config/opencode/opencode.json",
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
                ".config/powershell/Microsoft.PowerShell_profile.ps1",
                "Documents/PowerShell/Microsoft.PowerShell_profile.ps1",
                ".config/nushell/config.nu",
                ".config/elvish/rc.elv",
                ".xonshrc",
                ".config/xonsh/rc.xsh",
                ".bash_completion",
                ".oh-my-zsh/custom/a.zsh",
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
fn other_files_are_not_protected() {
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
        "project.git/main/src/config",
        "hooks/post-receive",
        "pnp.cjs",
        "",
    ] {
        assert!(!is_protected(Path::new(path), &Path::new("/work").join(path)), "{path}");
    }
}

// PA7: what a root is called counts as much as what stands below it.
#[test]
fn a_root_in_a_protected_folder_is_protected() {
    let at = |root: &str, path: &str| is_protected(Path::new(path), &Path::new(root).join(path));
    assert!(at("/work/.github", "workflows/ci.yml"));
    assert!(at("/work/.github/workflows", "ci.yml"));
    assert!(at("/work/.git", "hooks/pre-commit"));
    assert!(at("/work/.git/hooks", "pre-commit"));
    assert!(at("/work/.husky", "pre-push"));
    assert!(at("/home/ada/.config", "systemd/user/a.service"));
    assert!(at("/work/repo.git", "hooks/post-receive"));
    assert!(!at("/work/.github", "README.md"));
    assert!(!at("/work/repo.git/main", "config"));
    assert!(!at("/work/repo.git", "main/README.md"));
    assert!(!at("/home/ada/.config", "notes"));
}

#[test]
fn at_or_below_ignores_case() {
    let places = ["/work/my.toml".into(), "/state".into()];
    for (path, expected) in [
        ("/work/my.toml", true),
        ("/WORK/My.toml", true),
        ("/state/approvals/a.json", true),
        ("/work/my.tom", false),
        ("/work", false),
        ("/statement", false),
    ] {
        assert_eq!(is_at_or_below_any(Path::new(path), &places), expected, "{path}");
    }
}

#[test]
fn a_root_in_the_sdk_configuration_is_protected() {
    let at = |root: &str, path: &str| is_protected(Path::new(path), &Path::new(root).join(path));
    assert!(at("/home/ada/.config/tool-sdk", "config.toml"));
    assert!(at("/home/ada/.local", "state/tool-sdk/approvals"));
    // A checkout below a folder of an agent is a project like any other.
    assert!(!at("/home/ada/.claude/worktrees/x", "src/main.rs"));
}
