//! What files a command is given that only looks, as far as its words tell.
//!
//! Which of them are there, and where, is not known here.
//!
//! **Invariant:** a word that may name a file, or name what does, is never left out.

use super::files::leads_out;
use super::shown;
use crate::shell::{self, Known, Simple};

/// Commands that only look, but at no files that they are given.
const NO_FILES: &[&str] = &[
    "basename", "command", "date", "dirname", "echo", "expr", "false", "id", "nproc", "numfmt",
    "printf", "pwd", "seq", "sleep", "tr", "true", "type", "uname", "which", "whoami",
];

/// Commands that only contain others, which are judged themselves.
const WRAPPERS: &[&str] =
    &["bash", "env", "gstdbuf", "gtimeout", "nice", "nohup", "sh", "stdbuf", "time", "timeout"];

/// Commands to which a slash alone is a character, or a folder into which they do not look.
const SLASHES: &[&str] = &["[", "cut", "df", "nl", "paste", "readlink", "realpath", "sort", "test"];

/// Searches below a folder, and the letters and the long options, which may be cut short, with
/// which they follow the links that they find there.
const FOLLOWING: &[(&str, &str, &[&str])] = &[
    ("diff", "r", &["--recursive"]),
    ("du", "L", &["--dereference"]),
    ("find", "L", &["-follow"]),
    ("grep", "RS", &["--dereference-recursive"]),
    ("ls", "L", &["--dereference"]),
    ("rg", "L", &["--follow"]),
];

/// Something that a command looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given<'a> {
    /// A path.
    Path(&'a str),
    /// What may be a path, if there is such a file.
    Value(&'a str),
    /// A path of a repository, now or at some time.
    Tracked(&'a str),
    /// What lies in a folder, and what the links lead to that lie there.
    Entries(&'a str),
    /// What lies somewhere below a folder, of which lines may be shown.
    Below(&'a str),
    /// What nobody has named, of which lines may be shown.
    Shown(&'a str),
    /// The files that fit a pattern.
    Pattern(&'a str),
    /// Files that nobody knows.
    Unknown(&'a str),
    /// The folder that the command runs in.
    Here,
}

/// What a command is given.
pub(super) fn given(command: &Simple) -> Vec<Given<'_>> {
    let Some((program, rest)) = command.argv.split_first() else { return Vec::new() };
    let name = &*shell::bare_name(program);
    if WRAPPERS.contains(&name) {
        return Vec::new();
    }
    if NO_FILES.contains(&name) {
        return listed(command);
    }
    let mut given = Vec::new();
    let mut options_end = false;
    let mut is_pattern = matches!(name, "grep" | "rg") && !rest.iter().any(|it| gives_pattern(it));
    for (word, known) in rest.iter().zip(command.known.iter().skip(1).copied()) {
        let is_option = word.starts_with('-') && !options_end;
        if is_option {
            options_end |= word == "--";
            values(name, word, &mut given);
        }
        if name == "git" && (!is_option || word.starts_with("-L")) {
            given.extend(tracked(word).map(Given::Tracked));
        }
        let is_file = !is_option
            && (!std::mem::take(&mut is_pattern)
                || matches!(known, Known::Pattern | Known::Nothing));
        match known {
            // A bracket that only closes means itself.
            Known::Pattern if !word.contains(['*', '?', '[']) => given.push(Given::Path(word)),
            Known::Literal if is_file && names_file(name, word) => given.push(match name {
                // Most words of git are no paths, and it follows no links but those given it.
                "git" if !leads_out(word) => Given::Value(word),
                _ => Given::Path(word),
            }),
            Known::Pattern => given.push(Given::Pattern(word)),
            Known::One if is_file || is_option => given.push(Given::Unknown(word)),
            Known::Nothing => given.push(Given::Unknown(word)),
            Known::Literal | Known::One | Known::Pipe => {}
        }
    }
    if name == "diff" {
        compared(&mut given);
    }
    if name == "git" && shown::by_git(rest) {
        given.push(Given::Shown(&command.text));
    }
    if shown::searches_below(name, rest) {
        searched(&mut given);
        if !shown::names_place(name, rest) {
            given.push(Given::Below("."));
        }
    }
    if command.open_end {
        given.push(Given::Unknown(&command.text));
    }
    if looks_here(name, rest) {
        given.push(Given::Here);
    }
    // Where the links lead, no word says.
    if follows(name, rest) {
        given.push(Given::Unknown(&command.text));
    }
    given
}

/// The folders of which a command is given the names in them, though it looks at no files.
fn listed(command: &Simple) -> Vec<Given<'_>> {
    let listed = command.argv.iter().zip(&command.known).filter_map(|(word, known)| {
        let open = word.find(['*', '?', '['])?;
        let end = word[..open].rfind('/')?;
        match known {
            Known::Pattern => Some(Given::Path(&word[..end.max(1)])),
            Known::Nothing => Some(Given::Unknown(word)),
            Known::Literal | Known::One | Known::Pipe => None,
        }
    });
    listed.collect()
}

/// Whether a word that is no option may name a file with something in it.
fn names_file(name: &str, word: &str) -> bool {
    !(word == "/dev/null" || word == "/" && SLASHES.contains(&name))
}

/// Whether it looks at whatever the links below a folder lead to.
fn follows(name: &str, rest: &[String]) -> bool {
    let Some((_, letters, longs)) = FOLLOWING.iter().find(|(it, ..)| *it == name) else {
        return false;
    };
    let is_cut_short = |word: &str| word.len() > 2 && longs.iter().any(|it| it.starts_with(word));
    let is_told = |word: &String| match word.strip_prefix('-') {
        Some(cluster) if !cluster.starts_with('-') && name != "find" => {
            cluster.contains(|c| letters.contains(c))
        }
        Some(_) => is_cut_short(word) || word.strip_prefix('-') == Some(letters),
        None => false,
    };
    rest.iter().any(is_told)
}

/// Of a folder, each file is compared with one of the same name, and links are followed.
fn compared(given: &mut Vec<Given<'_>>) {
    for at in 0..given.len() {
        match given[at] {
            Given::Path(path) | Given::Value(path) => given.push(Given::Entries(path)),
            Given::Pattern(pattern) => given.push(Given::Unknown(pattern)),
            _ => {}
        }
    }
}

/// Of a folder, each file is looked into.
fn searched(given: &mut Vec<Given<'_>>) {
    for at in 0..given.len() {
        match given[at] {
            Given::Path(path) | Given::Value(path) => given.push(Given::Below(path)),
            Given::Pattern(pattern) => given.push(Given::Shown(pattern)),
            _ => {}
        }
    }
}

/// The values in the word of an option that may name files.
fn values<'a>(name: &str, option: &'a str, given: &mut Vec<Given<'a>>) {
    let is_path = |value: &&str| !value.is_empty() && names_file(name, value);
    let assigned = option.split_once('=').map(|(_, value)| value);
    let beginning = option.find(['/', '~']).map(|at| &option[at..]);
    given.extend(assigned.into_iter().chain(beginning).filter(is_path).map(Given::Value));
    if matches!(name, "git" | "grep" | "rg") {
        // Words to look for stand in a file, and every line of it may be shown.
        let behind = option.match_indices('f').map(|(at, _)| &option[at + 1..]);
        let behind = behind.filter(|_| !option.starts_with("--"));
        let assigned = assigned.filter(|_| option.starts_with("--f"));
        given.extend(behind.chain(assigned).filter(is_path).map(Given::Path));
    }
    // The names of the files stand in that file.
    if matches!(name, "du" | "wc") && option.starts_with("--f") {
        given.push(Given::Unknown(option));
    }
}

/// The path in what git reads as `revision:path`, `lines:path` or `:(words)path`.
fn tracked(word: &str) -> Option<&str> {
    let (_, path) = word.rsplit_once(':')?;
    let path = path.rsplit(')').next()?.trim_start_matches('/');
    // What begins so is left out.
    (!path.is_empty() && !path.starts_with(['!', '^'])).then_some(path)
}

/// Whether an option of a search says what to look for, so that no operand does.
fn gives_pattern(option: &str) -> bool {
    let Some(option) = option.strip_prefix('-') else { return false };
    let Some(long) = option.strip_prefix('-') else { return option.contains(['e', 'f']) };
    // The beginning of a name will do, and `rg --files` looks for nothing.
    let name = long.split('=').next().unwrap_or_default();
    !name.is_empty() && ["regexp", "files"].iter().any(|it| it.starts_with(name))
}

/// Whether it looks at the folder that it runs in, whatever else it is given.
fn looks_here(name: &str, rest: &[String]) -> bool {
    matches!(name, "du" | "find" | "ls") || shown::searches_below(name, rest)
}

#[cfg(test)]
mod tests {
    use super::Given::{Entries, Here, Path, Pattern, Tracked, Unknown, Value};
    use super::*;
    use crate::shell::understand;

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
            ("grep --reg=a b", &[Value("a"), Path("b"), Here]),
            ("grep -r a --include=*.rs", &[Pattern("--include=*.rs"), Value("*.rs"), Here]),
            ("rg --files a", &[Path("a"), Here]),
            ("git show HEAD:a", &[Value("show"), Value("HEAD:a"), Tracked("a")]),
            ("git grep -nfa b", &[Value("grep"), Path("a"), Value("b")]),
            ("git log -L1,2:a", &[Value("log"), Tracked("a")]),
            ("git diff ':(top)a'", &[Value("diff"), Value(":(top)a"), Tracked("a")]),
            ("git diff ':!a'", &[Value("diff"), Value(":!a")]),
            ("git diff --no-index / a", &[Value("diff"), Path("/"), Value("a")]),
            ("diff a*", &[Pattern("a*"), Unknown("a*")]),
            ("diff --to-file=b a", &[Value("b"), Path("a"), Entries("b"), Entries("a")]),
            ("grep a b /dev/null", &[Path("b")]),
            ("grep -R a b", &[Path("b"), Here, Unknown("grep -R a b")]),
            ("grep --deref a b", &[Path("b"), Here, Unknown("grep --deref a b")]),
            ("rg -nL a", &[Here, Unknown("rg -nL a")]),
            (
                "diff -ur a b",
                &[Path("a"), Path("b"), Entries("a"), Entries("b"), Unknown("diff -ur a b")],
            ),
            ("grep -R -e --no-d a", &[Path("a"), Here, Unknown("grep -R -e --no-d a")]),
            ("find -L a", &[Path("a"), Here, Unknown("find -L a")]),
            ("find -Lx a", &[Path("a"), Here]),
            ("wc --files0-from=a", &[Value("a"), Unknown("--files0-from=a")]),
            ("ls", &[Here]),
        ] {
            let understood = understand(script);
            let mut found = given(&understood.commands[0]);
            // What lies below is no word.
            found.retain(|it| !matches!(it, Given::Below(_) | Given::Shown(_)));
            assert_eq!(found.len(), expected.len(), "{script}: {found:?}");
            assert!(expected.iter().all(|it| found.contains(it)), "{script}: {found:?}");
        }
    }
}
