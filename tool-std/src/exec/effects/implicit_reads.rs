//! Detects commands that print lines of files that no word names: recursive searches, and git
//! commands that compare revisions.
//!
//! **Invariant:** an unknown option may print more.

/// Short options of `grep` and `rg` without value.
const FLAGS: &str = "EFGHILPRSTUVZabchilnopqrsvwxyz";

/// Global options of git that take the next word.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--git-dir",
    "--namespace",
    "--super-prefix",
    "--work-tree",
];

/// Options of `git diff`, `git log` and `git show` that print only names and numbers of files,
/// and options that do not change which contents are printed.
const SUMMARIES: &[&str] = &[
    "--dirstat",
    "--name-only",
    "--name-status",
    "--no-patch",
    "--numstat",
    "--quiet",
    "--shortstat",
    "--stat",
    "--summary",
    "-q",
    "-s",
];
const NEUTRAL: &[&str] = &[
    "--",
    "--abbrev-commit",
    "--after",
    "--all",
    "--author",
    "--before",
    "--branches",
    "--cached",
    "--committer",
    "--date",
    "--decorate",
    "--exit-code",
    "--find-renames",
    "--first-parent",
    "--follow",
    "--format",
    "--graph",
    "--grep",
    "--max-count",
    "--merge-base",
    "--merges",
    "--no-color",
    "--no-commit-id",
    "--no-decorate",
    "--no-ext-diff",
    "--no-merges",
    "--no-renames",
    "--oneline",
    "--pretty",
    "--remotes",
    "--reverse",
    "--root",
    "--since",
    "--skip",
    "--staged",
    "--tags",
    "--topo-order",
    "--until",
    "-M",
    "-i",
    "-r",
    "-z",
];

/// Whether a search is recursive.
pub(super) fn searches_subtree(name: &str, rest: &[String]) -> bool {
    let goes_down = |word: &String| word.starts_with('-') && word.contains(['r', 'R', 'd']);
    name == "rg" || name == "grep" && rest.iter().any(goes_down)
}

/// Whether a search certainly has a path operand besides the pattern, and no operand can be the
/// value of an option.
pub(super) fn names_search_path(name: &str, rest: &[String]) -> bool {
    let ends = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let (options, operands): (Vec<_>, Vec<_>) =
        rest[..ends].iter().partition(|word| word.starts_with('-'));
    let is_flag = |word: &&String| {
        // For `rg`, these letters take a value.
        let is_valued = |letter| !FLAGS.contains(letter) || name == "rg" && "ErT".contains(letter);
        word.starts_with("--") && word.contains('=') || !word[1..].contains(is_valued)
    };
    let behind = rest.len().saturating_sub(ends + 1);
    options.iter().all(is_flag) && operands.len() + behind > 1
}

/// Whether a program prints lines of files that its words do not name.
pub(super) fn shows_unnamed_lines(name: &str, rest: &[String]) -> bool {
    let words = || rest.iter().map(String::as_str);
    match name.strip_prefix("git-") {
        Some(command) => git_command_shows_lines(command, &words().collect::<Vec<_>>()),
        None => name == "git" && git_shows_unnamed_lines(rest),
    }
}

/// Whether git prints lines of files that its words do not name.
pub(super) fn git_shows_unnamed_lines(rest: &[String]) -> bool {
    let mut words = rest.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return git_command_shows_lines(word, &words.collect::<Vec<_>>());
        }
        if VALUED.contains(&word) {
            words.next();
        }
    }
    false
}

fn git_command_shows_lines(command: &str, words: &[&str]) -> bool {
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
fn is_one_of(options: &[&str], option: &str) -> bool {
    options.contains(&option.split('=').next().unwrap_or_default())
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
            assert_eq!(git_shows_unnamed_lines(&words(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_search_is_told_where_to_look_when_nothing_else_can_be_meant() {
        for (name, text, expected) in [
            ("rg", "x", false),
            ("rg", "x a", true),
            ("rg", "-ni x a", true),
            ("rg", "-t rust x", false),
            ("rg", "--type rust x", false),
            ("rg", "--type=rust x a", true),
            ("rg", "-T rust x", false),
            ("rg", "-E utf8 x", false),
            ("rg", "-- x a", true),
            ("rg", "-- x", false),
            ("rg", "-e x a", false),
            ("grep", "-rn x a", true),
            ("grep", "-rE x a", true),
            ("grep", "-A 3 -r x", false),
            ("grep", "-r x", false),
        ] {
            assert_eq!(names_search_path(name, &words(text)), expected, "{name} {text}");
        }
    }
}
