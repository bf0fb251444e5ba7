//! What git prints of files that no word names, the paths in its words, and where it is installed.
//!
//! **Invariant:** an unknown option may print more.

use std::path::{Path, PathBuf};

use tool_sdk::process::ChildEnv;
use tool_shell_analysis::SimpleCommand;

use tool_shell_analysis as shell;

/// Global options of git that take the next word.
const VALUED: &str =
    "-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree";

/// The directories with git's own programs.
const GIT_EXEC_PATHS: &[&str] = &[
    "/usr/lib/git-core",
    "/usr/libexec/git-core",
    "/usr/local/libexec/git-core",
    "/opt/homebrew/opt/git/libexec/git-core",
];

/// Options of `git diff`, `git log` and `git show` that print only names and numbers of files.
const SUMMARIES: &str = "--dirstat --name-only --name-status --no-patch --numstat --quiet \
    --shortstat --stat --summary -q -s";

/// Options that do not change which contents are printed.
const NEUTRAL: &str = "-- --abbrev-commit --after --all --author --before --branches --cached \
    --committer --date --decorate --exit-code --find-renames --first-parent --follow --format \
    --graph --grep --max-count --merge-base --merges --no-color --no-commit-id --no-decorate \
    --no-ext-diff --no-merges --no-renames --oneline --pretty --remotes --reverse --root --since \
    --skip --staged --tags --topo-order --until -M -i -r -z";

/// Whether a program prints lines of files that its words do not name.
pub(super) fn shows_unnamed_lines(name: &str, rest: &[String]) -> bool {
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    match name.strip_prefix("git-") {
        Some(command) => command_shows_lines(command, &words),
        None => {
            name == "git"
                && subcommand(&words).is_some_and(|(it, rest)| command_shows_lines(it, rest))
        }
    }
}

/// Returns the subcommand of git and the words after it.
fn subcommand<'w, 't>(words: &'w [&'t str]) -> Option<(&'t str, &'w [&'t str])> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return Some((word, words.as_slice()));
        }
        if VALUED.split(' ').any(|it| it == *word) {
            words.next();
        }
    }
    None
}

/// Whether a git subcommand is an installed program, which takes precedence over an alias.
pub(crate) fn is_external_git_command(command: &SimpleCommand) -> bool {
    let Some(program) = shell::internal::external_git_program(&command.argv) else { return false };
    GIT_EXEC_PATHS.iter().any(|folder| Path::new(folder).join(&program).is_file())
        || ChildEnv::path_only().find_program(&program).is_some()
}

/// Returns the top of the work tree that contains a directory.
pub(super) fn work_tree_top(folder: &Path) -> Option<PathBuf> {
    let is_top = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    folder.ancestors().find(is_top).map(Path::to_owned)
}

/// Returns the path in `revision:path`, `lines:path` or `:(words)path`.
pub(super) fn tracked_path(word: &str) -> Option<&str> {
    let (_, path) = word.rsplit_once(':')?;
    let path = path.rsplit(')').next()?.trim_start_matches('/');
    // Exclusion patterns name no files.
    (!path.is_empty() && !path.starts_with(['!', '^'])).then_some(path)
}

fn command_shows_lines(command: &str, words: &[&str]) -> bool {
    let ends = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let options = || words[..ends].iter().copied().filter(|word| word.starts_with('-'));
    let operands = || words.iter().copied().filter(|word| !word.starts_with('-'));
    let names_all_files = operands().next().is_some() && operands().all(is_file_of_revision);
    let are_quiet = options().all(|it| is_summary(it) || is_neutral(it));
    let is_summed = || are_quiet && options().any(is_summary);
    let is_first = |names: &[&str]| operands().next().is_some_and(|it| names.contains(&it));
    match command {
        "grep" | "difftool" | "fast-export" | "format-patch" | "pack-objects" | "unpack-file"
        | "upload-archive" | "upload-pack" => true,
        "archive" => !options().any(|it| matches!(it, "-l" | "--list")),
        "bundle" => is_first(&["create"]),
        "rerere" => is_first(&["diff"]),
        "checkout-index" => {
            options().any(|it| is_long_option(it, "--temp") || is_long_option(it, "--prefix"))
        }
        "log" | "whatchanged" | "diff-tree" | "diff-index" | "diff-files" => !are_quiet,
        "reflog" => !are_quiet && !is_first(&["delete", "drop", "exists", "expire"]),
        "diff" | "range-diff" => !is_summed(),
        "show" => !(names_all_files || is_summed()),
        "cat-file" => !(names_all_files || options().any(|it| matches!(it, "-e" | "-s" | "-t"))),
        // The file may be from an earlier revision.
        "annotate" | "blame" => operands().count() > 1,
        // With two operands it prints only names of files.
        "merge-tree" => {
            operands().count() > 2 || options().any(|it| is_long_option(it, "--trivial-merge"))
        }
        "request-pull" => options().any(|it| it == "-p"),
        "am" | "rebase" => options().any(|it| is_long_option(it, "--show-current-patch")),
        "stash" if is_first(&["list", "show"]) => !are_quiet,
        // Interactive selection prints the changes.
        "add" => options().any(|it| selects_interactively(it, "eip")),
        "checkout" | "reset" | "restore" | "stash" => {
            options().any(|it| selects_interactively(it, "p"))
        }
        // The diff is shown below the commit message.
        "commit" => {
            options().any(|it| selects_interactively(it, "pv") || is_long_option(it, "--verbose"))
        }
        "status" => options().any(|it| match it.strip_prefix("--") {
            Some(long) => long.starts_with('v'),
            None => it.contains('v'),
        }),
        _ => false,
    }
}

/// Whether it is this long option, possibly abbreviated.
fn is_long_option(option: &str, name: &str) -> bool {
    let option = option.split('=').next().unwrap_or_default();
    option.len() > 2 && name.starts_with(option)
}

/// Whether an option starts interactive selection; `letters` are the short options that do.
fn selects_interactively(option: &str, letters: &str) -> bool {
    if option.starts_with("--") {
        let edits = letters.contains('e') && is_long_option(option, "--edit");
        return edits
            || is_long_option(option, "--patch")
            || is_long_option(option, "--interactive");
    }
    // These letters take the rest of the word as value.
    let mut cluster = option.chars().skip(1).take_while(|c| !"bBcCFmS".contains(*c));
    cluster.any(|c| letters.contains(c))
}

/// Whether it is certainly `revision:path`.
fn is_file_of_revision(word: &str) -> bool {
    word.find(':').is_some_and(|at| at > 0) && !word.contains(['{', '('])
}

fn is_summary(option: &str) -> bool {
    is_one_of(SUMMARIES, option)
}

fn is_neutral(option: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let count = option.strip_prefix("-n").or_else(|| option.strip_prefix('-'));
    option == "-n" || count.is_some_and(is_number) || is_one_of(NEUTRAL, option)
}

/// Whether it is one of the options, with or without a value.
fn is_one_of(options: &str, option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    options.split(' ').any(|it| it == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn distinguishes_printing_lines_from_names() {
        for (text, expected) in [
            ("status --short", false),
            ("status -sb", false),
            ("status -sv", true),
            ("status --verb", true),
            ("log --oneline -5", false),
            ("log -n 5 --format=%h -- src", false),
            ("log --stat -- -p", false),
            ("log -p", true),
            ("log --oneline -5 --pat", true),
            ("log -Sx", true),
            ("log -L1,2:a", true),
            ("diff", true),
            ("diff --cached", true),
            ("--no-pager diff --stat HEAD~1", false),
            ("diff --stat -p", true),
            ("diff --patch-with-stat", true),
            ("diff -- --stat", true),
            // Of folders, this shows what lies in them.
            ("diff HEAD~1:a HEAD:a", true),
            ("diff --name-only --cached", false),
            ("show", true),
            ("show HEAD:a", false),
            ("show HEAD:a HEAD", true),
            ("show :/fix", true),
            ("show HEAD@{10:20}", true),
            ("show -s --format=%h", false),
            ("show --stat HEAD", false),
            ("grep -n x", true),
            ("cat-file -t HEAD", false),
            ("cat-file -p HEAD:a", false),
            ("cat-file -p 4b825dc6", true),
            ("cat-file blob 4b825dc6", true),
            ("blame a", false),
            ("blame HEAD~1 -- a", true),
            ("annotate HEAD~1 a", true),
            ("-C a log -p", true),
            ("-c a=b --no-pager show", true),
            ("-C a log", false),
            ("diff-tree -p --root HEAD", true),
            ("diff-tree -c HEAD", true),
            ("diff-tree --no-commit-id --name-only -r HEAD", false),
            ("diff-index --cached HEAD", false),
            ("diff-index -u HEAD", true),
            ("diff-files -U1", true),
            ("whatchanged -p", true),
            ("whatchanged", false),
            ("reflog", false),
            ("reflog -p", true),
            ("reflog expire --expire=now --all", false),
            ("fast-export HEAD", true),
            ("archive HEAD", true),
            ("archive --list", false),
            ("format-patch --stdout -1", true),
            ("bundle create - HEAD", true),
            ("bundle list-heads a", false),
            ("stash show -p", true),
            ("stash show", false),
            ("stash list --patch", true),
            ("stash push -m a", false),
            ("stash -p", true),
            ("rerere diff", true),
            ("range-diff a..b a..c", true),
            ("range-diff -s a..b a..c", false),
            ("merge-tree a b", false),
            ("merge-tree a b c", true),
            ("am --show-c", true),
            ("rebase main", false),
            ("add -p", true),
            ("add -A .", false),
            ("checkout --pat", true),
            ("checkout -b p", false),
            ("commit -am p", false),
            ("commit -v", true),
            ("commit -sp", true),
            ("commit --interactive", true),
            ("commit --amend --no-edit", false),
            ("add -up", true),
            ("add --edit", true),
            ("rebase --edit-todo", false),
            ("cat-file --batch", true),
            ("ls-files", false),
            ("rev-parse HEAD", false),
        ] {
            assert_eq!(shows_unnamed_lines("git", &words(text)), expected, "{text}");
        }
    }
}
