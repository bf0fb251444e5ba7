//! Commands of git that are none of its own: the settings may say that they are others.
//!
//! `git p` may be `git push`, by what the user, a repository or the command line says. A rule
//! that allows commands of git has allowed what the settings make of them; a rule that forbids
//! one cannot be held against a name that nobody knows.
//!
//! **Invariant:** nothing here reads settings.

use super::program::known_name;
use super::word::{Word, is_listed};

/// Commands of git, which no setting makes into others, and well-known additions.
const GIT: &str = "\
    absorb add am annotate apply archimport archive backfill bisect blame branch branchless \
    bugreport bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout \
    checkout-index cherry cherry-pick citool clean clone column commit commit-graph commit-tree \
    config count-objects credential credential-cache credential-store crypt cvsexportcommit \
    cvsimport cvsserver daemon describe diagnose diff diff-files diff-index diff-pairs diff-tree \
    difftool fast-export fast-import fetch fetch-pack filter-branch filter-repo flow fmt-merge-msg \
    for-each-ref for-each-repo format-patch fsck fsck-objects gc get-tar-commit-id grep gui \
    hash-object help history hook http-backend http-fetch http-push imap-send index-pack init \
    init-db instaweb interpret-trailers last-modified lfs log ls-files ls-remote ls-tree mailinfo \
    mailsplit maintenance merge merge-base merge-file merge-index merge-octopus merge-one-file \
    merge-ours merge-recursive merge-resolve merge-subtree merge-tree mergetool mktag mktree \
    multi-pack-index mv name-rev notes p4 pack-objects pack-redundant pack-refs patch-id prune \
    prune-packed pull push quiltimport range-diff read-tree rebase receive-pack reflog refs \
    remote remote-ext remote-fd repack replace replay repo request-pull rerere reset restore \
    rev-list rev-parse revert rm send-email send-pack sh-i18n sh-setup shell shortlog show \
    show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule \
    submodule--helper subtree survey svn switch symbolic-ref tag town unpack-file unpack-objects \
    update-index update-ref update-server-info upload-archive upload-pack var verify-commit \
    verify-pack verify-tag version web--browse whatchanged worktree write-tree";

/// Options of git that stand before its command and take the next word.
const VALUED: &str =
    "-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree";

/// Whether the settings may say which command of a program this is.
pub(super) fn may_be(words: &[Word]) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    known_name(&head.value) == "git" && command(rest).is_some_and(|it| !is_listed(GIT, it))
}

/// The command of git among its words.
fn command(words: &[Word]) -> Option<&str> {
    let mut words = words.iter().map(|word| word.value.as_str());
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return Some(word);
        }
        if is_listed(VALUED, word) {
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

    // SH7, SH10
    #[test]
    fn a_command_that_git_does_not_have_may_be_any() {
        for (text, expected) in [
            ("git push", false),
            ("git --no-pager -C a -c b=c status", false),
            ("git lfs pull", false),
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
