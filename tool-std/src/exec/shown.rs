//! Which commands show lines of files that no word of theirs names: searches below a folder, and
//! those of git that compare.
//!
//! **Invariant:** an option that is not known may show more.

/// Letters of options of `grep` and `rg` that take no value.
const FLAGS: &str = "EFGHILPRSTUVZabchilnopqrsvwxyz";

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
    "--no-decorate",
    "--no-ext-diff",
    "--no-merges",
    "--no-renames",
    "--oneline",
    "--pretty",
    "--remotes",
    "--reverse",
    "--since",
    "--skip",
    "--staged",
    "--tags",
    "--topo-order",
    "--until",
    "-M",
    "-i",
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

/// Whether a command of git shows lines of files that it was not told.
pub(super) fn by_git(rest: &[String]) -> bool {
    let mut words = rest.iter().map(String::as_str).skip_while(|word| *word == "--no-pager");
    let Some(command) = words.next() else { return false };
    let words: Vec<&str> = words.collect();
    let ends = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let options = || words[..ends].iter().copied().filter(|word| word.starts_with('-'));
    let operands = || words.iter().copied().filter(|word| !word.starts_with('-'));
    let are_told = operands().next().is_some() && operands().all(is_file_of_revision);
    let are_quiet = options().all(|it| is_summary(it) || is_neutral(it));
    match command {
        "grep" => true,
        "log" => !are_quiet,
        "diff" => !(are_quiet && options().any(is_summary)),
        "show" => !(are_told || are_quiet && options().any(is_summary)),
        "cat-file" => !(are_told || options().any(|it| matches!(it, "-e" | "-s" | "-t"))),
        // The file may be one of long ago.
        "blame" => operands().count() > 1,
        "status" => options().any(|it| match it.strip_prefix("--") {
            Some(long) => long.starts_with('v'),
            None => it.contains('v'),
        }),
        _ => false,
    }
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
