//! Which commands show lines of files that no word of theirs names: searches below a folder, and
//! those of git that compare.
//!
//! **Invariant:** an option that is not known may show more.

/// Letters of options of `grep` and `rg` that take no value.
const FLAGS: &str = "EFGHILPRSTUVZabchilnopqrsvwxyz";

/// Options of git that stand before its command and take the next word.
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

/// Options of `git diff`, `git log` and `git show` with which they say of files only their names
/// and numbers, and those that do not change what is shown of a file.
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

/// Whether a search looks into whatever lies below a folder.
pub(super) fn searches_below(name: &str, rest: &[String]) -> bool {
    let goes_down = |word: &String| word.starts_with('-') && word.contains(['r', 'R', 'd']);
    name == "rg" || name == "grep" && rest.iter().any(goes_down)
}

/// Whether it is sure that a search is told where to look: there is more than what to look for,
/// and none of it can be the value of an option.
pub(super) fn names_place(name: &str, rest: &[String]) -> bool {
    let ends = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let (options, operands): (Vec<_>, Vec<_>) =
        rest[..ends].iter().partition(|word| word.starts_with('-'));
    let is_flag = |word: &&String| {
        // To `rg`, this one takes a value.
        let is_valued = |letter| !FLAGS.contains(letter) || name == "rg" && "ErT".contains(letter);
        word.starts_with("--") && word.contains('=') || !word[1..].contains(is_valued)
    };
    let behind = rest.len().saturating_sub(ends + 1);
    options.iter().all(is_flag) && operands.len() + behind > 1
}

/// Whether a program shows lines of files that it was not told.
pub(super) fn by(name: &str, rest: &[String]) -> bool {
    let words = || rest.iter().map(String::as_str);
    match name.strip_prefix("git-") {
        Some(command) => by_command(command, &words().collect::<Vec<_>>()),
        None => name == "git" && by_git(rest),
    }
}

/// Whether a command of git shows lines of files that it was not told.
pub(super) fn by_git(rest: &[String]) -> bool {
    let mut words = rest.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return by_command(word, &words.collect::<Vec<_>>());
        }
        if VALUED.contains(&word) {
            words.next();
        }
    }
    false
}

fn by_command(command: &str, words: &[&str]) -> bool {
    let ends = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let options = || words[..ends].iter().copied().filter(|word| word.starts_with('-'));
    let operands = || words.iter().copied().filter(|word| !word.starts_with('-'));
    let are_told = operands().next().is_some() && operands().all(is_file_of_revision);
    let are_quiet = options().all(|it| is_summary(it) || is_neutral(it));
    let is_summed = || are_quiet && options().any(is_summary);
    let is_first = |names: &[&str]| operands().next().is_some_and(|it| names.contains(&it));
    match command {
        "grep" | "difftool" | "fast-export" | "format-patch" | "pack-objects" | "unpack-file"
        | "upload-archive" | "upload-pack" => true,
        "archive" => !options().any(|it| matches!(it, "-l" | "--list")),
        "bundle" => is_first(&["create"]),
        "rerere" => is_first(&["diff"]),
        "checkout-index" => options().any(|it| long(it, "--temp") || long(it, "--prefix")),
        "log" | "whatchanged" | "diff-tree" | "diff-index" | "diff-files" => !are_quiet,
        "reflog" => !are_quiet && !is_first(&["delete", "drop", "exists", "expire"]),
        "diff" | "range-diff" => !is_summed(),
        "show" => !(are_told || is_summed()),
        "cat-file" => !(are_told || options().any(|it| matches!(it, "-e" | "-s" | "-t"))),
        // The file may be one of long ago.
        "annotate" | "blame" => operands().count() > 1,
        // With fewer of them it says of files only their names.
        "merge-tree" => operands().count() > 2 || options().any(|it| long(it, "--trivial-merge")),
        "request-pull" => options().any(|it| it == "-p"),
        "am" | "rebase" => options().any(|it| long(it, "--show-current-patch")),
        "stash" if is_first(&["list", "show"]) => !are_quiet,
        // What is to be chosen from is shown before.
        "add" => options().any(|it| chooses(it, "eip")),
        "checkout" | "reset" | "restore" | "stash" => options().any(|it| chooses(it, "p")),
        // What it is about stands below the message.
        "commit" => options().any(|it| chooses(it, "pv") || long(it, "--verbose")),
        "status" => options().any(|it| match it.strip_prefix("--") {
            Some(long) => long.starts_with('v'),
            None => it.contains('v'),
        }),
        _ => false,
    }
}

/// Whether it is a long option, which may be cut short.
fn long(option: &str, name: &str) -> bool {
    let option = option.split('=').next().unwrap_or_default();
    option.len() > 2 && name.starts_with(option)
}

/// Whether an option lets somebody choose among changes; `letters` do.
fn chooses(option: &str, letters: &str) -> bool {
    if option.starts_with("--") {
        let edits = letters.contains('e') && long(option, "--edit");
        return edits || long(option, "--patch") || long(option, "--interactive");
    }
    // What stands behind one of these is its value.
    let mut cluster = option.chars().skip(1).take_while(|c| !"bBcCFmS".contains(*c));
    cluster.any(|c| letters.contains(c))
}

/// Whether it is `revision:path`, and can be nothing else.
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

/// Whether it is one of these, alone or with a value.
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
    fn what_shows_lines_is_not_taken_for_what_shows_names() {
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
            assert_eq!(by_git(&words(text)), expected, "{text}");
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
            assert_eq!(names_place(name, &words(text)), expected, "{name} {text}");
        }
    }
}
