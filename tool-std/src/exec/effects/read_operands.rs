//! The file operands of read-only commands, from their words alone.
//!
//! Whether the files exist, and where, is not decided here.
//!
//! **Invariant:** a word that may name a file, or a file that lists names, is never omitted.

use super::base_folder::leaves_folder;
use super::implicit_reads;
use crate::shell::{self, SimpleCommand, WordCertainty};

/// Read-only commands that read no file operands.
const NO_FILES: &[&str] = &[
    "basename", "command", "date", "dirname", "echo", "expr", "false", "id", "nproc", "numfmt",
    "printf", "pwd", "seq", "sleep", "tr", "true", "type", "uname", "which", "whoami",
];

/// Wrappers, whose nested commands are checked themselves.
const WRAPPERS: &[&str] =
    &["bash", "env", "gstdbuf", "gtimeout", "nice", "nohup", "sh", "stdbuf", "time", "timeout"];

/// Commands for which `/` alone is a character or a directory that they do not read.
const SLASHES: &[&str] = &["[", "cut", "df", "nl", "paste", "readlink", "realpath", "sort", "test"];

/// Recursive programs, and the short and long options (which may be abbreviated) with which they
/// follow links.
const FOLLOWING: &[(&str, &str, &[&str])] = &[
    ("diff", "r", &["--recursive"]),
    ("du", "L", &["--dereference"]),
    ("find", "L", &["-follow"]),
    ("grep", "RS", &["--dereference-recursive"]),
    ("ls", "L", &["--dereference"]),
    ("rg", "L", &["--follow"]),
];

/// Something that a read-only command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOperand<'a> {
    /// A path.
    Path(&'a str),
    /// A path, if such a file exists.
    MaybePath(&'a str),
    /// A path in a repository, now or in an earlier revision.
    Tracked(&'a str),
    /// The entries of a directory and the targets of its links.
    Entries(&'a str),
    /// All files below a directory, whose lines may be printed.
    Subtree(&'a str),
    /// Files that no word names, whose lines may be printed.
    UnnamedContent(&'a str),
    /// The files that match a glob.
    Pattern(&'a str),
    /// Unknown files.
    Unknown(&'a str),
    /// The current directory.
    CurrentFolder,
}

/// Returns the file operands of a command.
pub(super) fn read_operands(command: &SimpleCommand) -> Vec<ReadOperand<'_>> {
    let Some((program, rest)) = command.argv.split_first() else { return Vec::new() };
    let name = &*shell::bare_name(program);
    if WRAPPERS.contains(&name) {
        return Vec::new();
    }
    if NO_FILES.contains(&name) {
        return pattern_folders(command);
    }
    let mut given = Vec::new();
    let mut options_end = false;
    let mut is_pattern = matches!(name, "grep" | "rg") && !rest.iter().any(|it| gives_pattern(it));
    for (word, known) in rest.iter().zip(command.word_certainty.iter().skip(1).copied()) {
        let is_option = word.starts_with('-') && !options_end;
        if is_option {
            options_end |= word == "--";
            add_option_values(name, word, &mut given);
        }
        if name == "git" && (!is_option || word.starts_with("-L")) {
            given.extend(tracked_path(word).map(ReadOperand::Tracked));
        }
        let is_file = !is_option
            && (!std::mem::take(&mut is_pattern)
                || matches!(known, WordCertainty::Pattern | WordCertainty::AnyWords));
        match known {
            // A closing bracket alone is literal.
            WordCertainty::Pattern if !word.contains(['*', '?', '[']) => {
                given.push(ReadOperand::Path(word))
            }
            WordCertainty::Literal if is_file && is_file_operand(name, word) => {
                given.push(match name {
                    // Most words of git are not paths, and git does not follow links.
                    "git" if !leaves_folder(word) => ReadOperand::MaybePath(word),
                    _ => ReadOperand::Path(word),
                })
            }
            WordCertainty::Pattern => given.push(ReadOperand::Pattern(word)),
            WordCertainty::SingleWord if is_file || is_option => {
                given.push(ReadOperand::Unknown(word))
            }
            WordCertainty::AnyWords => given.push(ReadOperand::Unknown(word)),
            WordCertainty::Literal | WordCertainty::SingleWord | WordCertainty::Pipe => {}
        }
    }
    if name == "diff" {
        add_compared_entries(&mut given);
    }
    if name == "git" && implicit_reads::git_shows_unnamed_lines(rest) {
        given.push(ReadOperand::UnnamedContent(&command.text));
    }
    if implicit_reads::searches_subtree(name, rest) {
        add_searched_folders(&mut given);
        if !implicit_reads::names_search_path(name, rest) {
            given.push(ReadOperand::Subtree("."));
        }
    }
    if command.has_open_end {
        given.push(ReadOperand::Unknown(&command.text));
    }
    if reads_current_folder(name, rest) {
        given.push(ReadOperand::CurrentFolder);
    }
    // The targets of the links are unknown.
    if follows_links(name, rest) {
        given.push(ReadOperand::Unknown(&command.text));
    }
    given
}

/// Returns the directories whose names a glob passes to a command that reads no files.
fn pattern_folders(command: &SimpleCommand) -> Vec<ReadOperand<'_>> {
    let listed = command.argv.iter().zip(&command.word_certainty).filter_map(|(word, known)| {
        let open = word.find(['*', '?', '['])?;
        let end = word[..open].rfind('/')?;
        match known {
            WordCertainty::Pattern => Some(ReadOperand::Path(&word[..end.max(1)])),
            WordCertainty::AnyWords => Some(ReadOperand::Unknown(word)),
            WordCertainty::Literal | WordCertainty::SingleWord | WordCertainty::Pipe => None,
        }
    });
    listed.collect()
}

/// Whether an operand may name a file with contents.
fn is_file_operand(name: &str, word: &str) -> bool {
    !(word == "/dev/null" || word == "/" && SLASHES.contains(&name))
}

/// Whether the command follows links below a directory.
fn follows_links(name: &str, rest: &[String]) -> bool {
    let Some((_, letters, longs)) = FOLLOWING.iter().find(|(it, ..)| *it == name) else {
        return false;
    };
    let is_cut_short = |word: &str| word.len() > 2 && longs.iter().any(|it| it.starts_with(word));
    let is_follow_option = |word: &String| match word.strip_prefix('-') {
        Some(cluster) if !cluster.starts_with('-') && name != "find" => {
            cluster.contains(|c| letters.contains(c))
        }
        Some(_) => is_cut_short(word) || word.strip_prefix('-') == Some(letters),
        None => false,
    };
    rest.iter().any(is_follow_option)
}

/// Adds the entries of compared directories, whose links are followed.
fn add_compared_entries(given: &mut Vec<ReadOperand<'_>>) {
    for at in 0..given.len() {
        match given[at] {
            ReadOperand::Path(path) | ReadOperand::MaybePath(path) => {
                given.push(ReadOperand::Entries(path))
            }
            ReadOperand::Pattern(pattern) => given.push(ReadOperand::Unknown(pattern)),
            _ => {}
        }
    }
}

/// Adds the files below searched directories.
fn add_searched_folders(given: &mut Vec<ReadOperand<'_>>) {
    for at in 0..given.len() {
        match given[at] {
            ReadOperand::Path(path) | ReadOperand::MaybePath(path) => {
                given.push(ReadOperand::Subtree(path))
            }
            ReadOperand::Pattern(pattern) => given.push(ReadOperand::UnnamedContent(pattern)),
            _ => {}
        }
    }
}

/// Adds option values that may name files.
fn add_option_values<'a>(name: &str, option: &'a str, given: &mut Vec<ReadOperand<'a>>) {
    let is_path = |value: &&str| !value.is_empty() && is_file_operand(name, value);
    let assigned = option.split_once('=').map(|(_, value)| value);
    let beginning = option.find(['/', '~']).map(|at| &option[at..]);
    given.extend(assigned.into_iter().chain(beginning).filter(is_path).map(ReadOperand::MaybePath));
    if matches!(name, "git" | "grep" | "rg") {
        // A pattern file may be printed line by line.
        let behind = option.match_indices('f').map(|(at, _)| &option[at + 1..]);
        let behind = behind.filter(|_| !option.starts_with("--"));
        let assigned = assigned.filter(|_| option.starts_with("--f"));
        given.extend(behind.chain(assigned).filter(is_path).map(ReadOperand::Path));
    }
    // The file lists the names of the files to read.
    if matches!(name, "du" | "wc") && option.starts_with("--f") {
        given.push(ReadOperand::Unknown(option));
    }
}

/// Returns the path in `revision:path`, `lines:path` or `:(words)path`.
fn tracked_path(word: &str) -> Option<&str> {
    let (_, path) = word.rsplit_once(':')?;
    let path = path.rsplit(')').next()?.trim_start_matches('/');
    // Exclusion patterns name no files.
    (!path.is_empty() && !path.starts_with(['!', '^'])).then_some(path)
}

/// Whether an option of a search gives the pattern, so that no operand does.
fn gives_pattern(option: &str) -> bool {
    let Some(option) = option.strip_prefix('-') else { return false };
    let Some(long) = option.strip_prefix('-') else { return option.contains(['e', 'f']) };
    // Long options may be abbreviated, and `rg --files` has no pattern.
    let name = long.split('=').next().unwrap_or_default();
    !name.is_empty() && ["regexp", "files"].iter().any(|it| it.starts_with(name))
}

/// Whether the command reads the current directory, regardless of its operands.
fn reads_current_folder(name: &str, rest: &[String]) -> bool {
    matches!(name, "du" | "find" | "ls") || implicit_reads::searches_subtree(name, rest)
}

#[cfg(test)]
mod tests {
    use super::ReadOperand::{CurrentFolder, Entries, MaybePath, Path, Pattern, Tracked, Unknown};
    use super::*;
    use crate::shell::analyze_script;

    #[test]
    fn every_word_that_may_name_a_file_is_given() {
        for (script, expected) in [
            ("cat a -n b", &[Path("a"), Path("b")][..]),
            ("cat -- -a", &[Path("-a")]),
            ("cat a* \"$(b)\" $(b)", &[Pattern("a*"), Unknown("$(b)"), Unknown("$(b)")]),
            ("cat <(b)", &[]),
            ("timeout 5 /bin/ls a", &[]),
            ("[ -f a ]", &[Path("a"), Path("]")]),
            ("echo a", &[]),
            ("cut -d / -f 1 a", &[Path("1"), Path("a")]),
            ("grep a b", &[Path("b")]),
            ("grep -- -a b", &[Path("b")]),
            ("grep -ie a b", &[Path("a"), Path("b")]),
            ("grep -hfa b", &[Path("a"), Path("b")]),
            ("grep --reg=a b", &[MaybePath("a"), Path("b"), CurrentFolder]),
            (
                "grep -r a --include=*.rs",
                &[Pattern("--include=*.rs"), MaybePath("*.rs"), CurrentFolder],
            ),
            ("rg --files a", &[Path("a"), CurrentFolder]),
            ("git show HEAD:a", &[MaybePath("show"), MaybePath("HEAD:a"), Tracked("a")]),
            ("git grep -nfa b", &[MaybePath("grep"), Path("a"), MaybePath("b")]),
            ("git log -L1,2:a", &[MaybePath("log"), Tracked("a")]),
            ("git diff ':(top)a'", &[MaybePath("diff"), MaybePath(":(top)a"), Tracked("a")]),
            ("git diff ':!a'", &[MaybePath("diff"), MaybePath(":!a")]),
            ("git diff --no-index / a", &[MaybePath("diff"), Path("/"), MaybePath("a")]),
            ("diff a*", &[Pattern("a*"), Unknown("a*")]),
            ("diff --to-file=b a", &[MaybePath("b"), Path("a"), Entries("b"), Entries("a")]),
            ("grep a b /dev/null", &[Path("b")]),
            ("grep -R a b", &[Path("b"), CurrentFolder, Unknown("grep -R a b")]),
            ("grep --deref a b", &[Path("b"), CurrentFolder, Unknown("grep --deref a b")]),
            ("rg -nL a", &[CurrentFolder, Unknown("rg -nL a")]),
            (
                "diff -ur a b",
                &[Path("a"), Path("b"), Entries("a"), Entries("b"), Unknown("diff -ur a b")],
            ),
            ("grep -R -e --no-d a", &[Path("a"), CurrentFolder, Unknown("grep -R -e --no-d a")]),
            ("find -L a", &[Path("a"), CurrentFolder, Unknown("find -L a")]),
            ("find -Lx a", &[Path("a"), CurrentFolder]),
            ("wc --files0-from=a", &[MaybePath("a"), Unknown("--files0-from=a")]),
            ("ls", &[CurrentFolder]),
        ] {
            let analysis = analyze_script(script);
            let mut found = read_operands(&analysis.commands[0]);
            // What lies below is no word.
            found.retain(|it| {
                !matches!(it, ReadOperand::Subtree(_) | ReadOperand::UnnamedContent(_))
            });
            assert_eq!(found.len(), expected.len(), "{script}: {found:?}");
            assert!(expected.iter().all(|it| found.contains(it)), "{script}: {found:?}");
        }
    }
}
