//! Commands of git and cargo that are none of their own: the settings may say that they are
//! others.
//!
//! `git p` may be `git push`, by what the user, a repository or the command line says. A rule
//! that allows commands of git has allowed what the settings make of them; a rule that forbids
//! one cannot be held against a name that nobody knows.
//!
//! **Invariant:** nothing here reads settings.

use super::program::known_name;
use super::word::{Word, is_listed};

/// Commands that every git has, and which no setting makes into others.
const GIT: &str = "\
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

/// Options of git that stand before its command and take the next word.
const VALUED: &str =
    "-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree";

/// Commands of cargo, and well-known additions, which people do not name theirs like.
const CARGO: &str = "\
    add audit b bench binstall bloat build c careful check clean clippy component config criterion cross d \
    deny dist doc edit expand fetch fix flamegraph fmt fuzz generate generate-lockfile git-checkout \
    hack help info init insta install lambda leptos llvm-cov locate-project login logout machete make \
    metadata miri msrv mutants new nextest outdated owner package pgrx pkgid public-api publish r \
    read-manifest release remove report rm run rustc rustdoc script search semver-checks sort sqlx t \
    tarpaulin tauri test tree udeps uninstall update upgrade vendor verify-project version vet watch yank \
    zigbuild";

/// Options of cargo in the same place.
const CARGO_VALUED: &str = "--color --config --manifest-path -C -Z";

/// Whether every git has a command of this name.
pub(super) fn is_of_git(command: &str) -> bool {
    is_listed(GIT, command)
}

/// Whether the settings may say which command of a program this is.
pub(super) fn may_be(words: &[Word]) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    let rest = rest.iter().map(|word| word.value.as_str());
    match &*known_name(&head.value) {
        "git" => command(rest, VALUED).is_some_and(|it| !is_listed(GIT, it)),
        "cargo" => command(rest, CARGO_VALUED).is_some_and(|it| !is_listed(CARGO, it)),
        _ => false,
    }
}

/// The program that git would rather run than an alias, if there is one.
#[cfg(all(feature = "exec", unix))]
pub(crate) fn program_instead(argv: &[String]) -> Option<String> {
    let (head, rest) = argv.split_first()?;
    let command = command(rest.iter().map(String::as_str), VALUED)?;
    let is_name = command.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    (known_name(head) == "git" && is_name).then(|| format!("git-{command}"))
}

/// The command of a program among its words; `valued` are its options before that which take
/// the next one.
fn command<'w>(mut words: impl Iterator<Item = &'w str>, valued: &str) -> Option<&'w str> {
    while let Some(word) = words.next() {
        // `cargo +nightly` chooses a toolchain.
        if !word.starts_with(['-', '+']) {
            return Some(word);
        }
        if is_listed(valued, word) {
            words.next();
        }
    }
    None
}

/// Whether a setting in a text makes an alias, or lets another file make some.
pub(super) fn is_made(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    ["alias.", "alias_", "[alias", "include.", "includeif."].iter().any(|it| setting.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    // SH10: a list that is broken in the midst of a name has two names that nobody has.
    #[test]
    fn lists_have_whole_names() {
        for list in [GIT, CARGO] {
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
            let words: Vec<_> = text.split(' ').map(Word::literal).collect();
            assert_eq!(may_be(&words), expected, "{text}");
        }
    }
}
