//! Detects subcommands of git and cargo that are not built in and may be aliases.
//!
//! `git p` may be `git push`, depending on the settings of the user, of the repository or of the
//! command line. A rule that allows git subcommands accepts that; a deny rule cannot match a name
//! that it does not know.
//!
//! **Invariant:** nothing here reads settings.

use super::program_names::canonical_name;
use super::word::{ShellWord, list_contains};

/// The built-in subcommands of git, which an alias cannot replace.
const GIT_COMMANDS: &str = "\
    add am annotate apply archimport archive bisect blame branch bugreport bundle cat-file \
    check-attr check-ignore check-mailmap check-ref-format checkout checkout-index cherry \
    cherry-pick citool clean clone column commit commit-graph commit-tree config count-objects \
    credential credential-cache credential-store cvsexportcommit cvsimport cvsserver daemon \
    describe diagnose diff diff-files diff-index diff-tree difftool fast-export fast-import \
    fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck \
    fsck-objects gc get-tar-commit-id grep gui hash-object help hook http-backend http-fetch \
    http-push imap-send index-pack init init-db instaweb interpret-trailers log ls-files \
    ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index \
    merge-octopus merge-one-file merge-ours merge-recursive merge-resolve merge-subtree \
    merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes p4 pack-objects \
    pack-redundant pack-refs patch-id prune prune-packed pull push quiltimport range-diff \
    read-tree rebase receive-pack reflog remote remote-ext remote-fd repack replace request-pull \
    rerere reset restore rev-list rev-parse revert rm send-email send-pack sh-i18n sh-setup \
    shell shortlog show show-branch show-index show-ref sparse-checkout stage stash status \
    stripspace submodule submodule--helper switch symbolic-ref tag unpack-file unpack-objects \
    update-index update-ref update-server-info upload-archive upload-pack var verify-commit \
    verify-pack verify-tag version web--browse whatchanged worktree write-tree";

/// Global options of git that take the next word as value.
const GIT_VALUED_OPTIONS: &str =
    "-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree";

/// The built-in subcommands of cargo, and those of well-known extensions.
const CARGO_COMMANDS: &str = "\
    add audit b bench binstall bloat build c careful check clean clippy component config criterion cross d \
    deny dist doc edit expand fetch fix flamegraph fmt fuzz generate generate-lockfile git-checkout \
    hack help info init insta install lambda leptos llvm-cov locate-project login logout machete make \
    metadata miri msrv mutants new nextest outdated owner package pgrx pkgid public-api publish r \
    read-manifest release remove report rm run rustc rustdoc script search semver-checks sort sqlx t \
    tarpaulin tauri test tree udeps uninstall update upgrade vendor verify-project version vet watch yank \
    zigbuild";

/// Global options of cargo that take the next word as value.
const CARGO_VALUED_OPTIONS: &str = "--color --config --manifest-path -C -Z";

/// Whether git has a built-in subcommand of this name.
pub(super) fn is_git_builtin(command: &str) -> bool {
    list_contains(GIT_COMMANDS, command)
}

/// Whether the subcommand may be an alias from the settings.
pub(super) fn may_be_alias(words: &[ShellWord]) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    let rest = rest.iter().map(|word| word.value.as_str());
    match &*canonical_name(&head.value) {
        "git" => find_subcommand(rest, GIT_VALUED_OPTIONS)
            .is_some_and(|it| !list_contains(GIT_COMMANDS, it)),
        "cargo" => find_subcommand(rest, CARGO_VALUED_OPTIONS)
            .is_some_and(|it| !list_contains(CARGO_COMMANDS, it)),
        _ => false,
    }
}

/// Returns the external program (`git-NAME`) that git prefers to an alias, if it is installed.
pub fn external_git_program(argv: &[String]) -> Option<String> {
    let (head, rest) = argv.split_first()?;
    let command = find_subcommand(rest.iter().map(String::as_str), GIT_VALUED_OPTIONS)?;
    let is_name = command.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    (canonical_name(head) == "git" && is_name).then(|| format!("git-{command}"))
}

/// Returns the subcommand among the words; `valued` lists the global options that take the next
/// word.
fn find_subcommand<'w>(mut words: impl Iterator<Item = &'w str>, valued: &str) -> Option<&'w str> {
    while let Some(word) = words.next() {
        // `cargo +nightly` chooses a toolchain.
        if !word.starts_with(['-', '+']) {
            return Some(word);
        }
        if list_contains(valued, word) {
            words.next();
        }
    }
    None
}

/// Whether a setting defines an alias or includes another settings file.
pub(super) fn defines_alias(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    ["alias.", "alias_", "[alias", "include.", "includeif."].iter().any(|it| setting.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    // SH10: a line break in the middle of a name would create two names that do not exist.
    #[test]
    fn lists_have_whole_names() {
        for list in [GIT_COMMANDS, CARGO_COMMANDS] {
            let names: Vec<&str> = list.split(' ').collect();
            for name in &names {
                let is_whole = |part: &str| !part.is_empty() || name.contains("--");
                assert!(!name.is_empty() && name.split('-').all(is_whole), "{name:?}");
            }
        }
    }

    // SH7, SH10
    #[test]
    fn a_command_that_git_does_not_have_may_be_any() {
        for (text, expected) in [
            ("git push", false),
            ("git --no-pager -C a -c b=c status", false),
            ("git check-attr a b", false),
            ("git send-pack a", false),
            ("git pack a", true),
            ("git attr a", true),
            ("git lfs pull", true),
            ("git absorb x", true),
            ("cargo p", true),
            ("cargo +nightly p", true),
            ("cargo --config a p", true),
            ("cargo +nightly run", false),
            ("cargo nextest run", false),
            ("cargo --version", false),
            ("git --version", false),
            ("git", false),
            ("git p", true),
            ("/usr/bin/git -c alias.p=push p", true),
            ("git -C push p", true),
            ("git --git-dir=a p push", true),
            ("git --exec-path p", true),
            ("npm p", false),
        ] {
            let words: Vec<_> = text.split(' ').map(ShellWord::from_literal).collect();
            assert_eq!(may_be_alias(&words), expected, "{text}");
        }
    }
}
