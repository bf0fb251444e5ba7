//! Read-only commands, which need neither a rule nor approval.
//!
//! The list is short on purpose. A program that can write, run something or use the network with
//! one more argument is not listed, or only without that argument.

use super::dangerous;
use super::word::{ShellWord, bare_name};

/// Programs that are read-only with any arguments.
pub(super) const ALWAYS_SAFE: &[&str] = &[
    "basename", "cat", "cd", "cmp", "comm", "cut", "df", "diff", "dirname", "du", "echo", "expr",
    "false", "grep", "head", "id", "ls", "nl", "nproc", "numfmt", "paste", "pwd", "readlink",
    "realpath", "rev", "seq", "sleep", "stat", "tac", "tail", "tr", "true", "type", "uname", "wc",
    "which", "whoami",
];

/// Read-only git subcommands, except for the arguments that are dangerous to every subcommand.
const SAFE_GIT_COMMANDS: &[&str] = &[
    "blame",
    "cat-file",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
];

/// Options of `git branch` that list branches, and those with which a name is a pattern or commit
/// instead of a new branch.
const BRANCH_LISTS: &[&str] =
    &["--all", "--format", "--remotes", "--show-current", "--sort", "-a", "-r", "-v", "-vv"];
const BRANCH_SEARCHES: &[&str] =
    &["--contains", "--list", "--merged", "--no-contains", "--no-merged", "--points-at", "-l"];

/// Whether a command is read-only, provided that the program is what its name says.
///
/// `open_end` means that more words may be appended at run time.
pub(super) fn is_safe(words: &[ShellWord], open_end: bool) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    let name = bare_name(&head.value);
    if ALWAYS_SAFE.contains(&&*name) {
        return true;
    }
    // Bash parses `]` as a glob, but it ends the test.
    let rest = match rest.split_last() {
        Some((end, rest)) if name == "[" && end.value == "]" => rest,
        _ => rest,
    };
    if open_end
        || rest.iter().any(ShellWord::may_be_option)
        || dangerous::has_dangerous_argument(words, false)
    {
        return false;
    }
    match &*name {
        "[" | "test" => rest.iter().all(is_plain_operand),
        "base64" => rest.iter().all(|word| is_base64_word(&word.value)),
        "command" => rest.first().is_some_and(|word| matches!(&*word.value, "-v" | "-V")),
        "date" => rest.iter().all(|word| word.value.starts_with('+') || word.value == "-u"),
        "find" | "printf" | "rg" | "sort" => true,
        "git" => is_safe_git(rest),
        "sed" => is_safe_sed(rest),
        // The second operand is an output file, and a glob may expand to two operands.
        "uniq" if !rest.iter().all(ShellWord::is_literal) => false,
        "uniq" => rest.len() < 2 || rest[..rest.len() - 1].iter().all(is_flag),
        _ => false,
    }
}

/// Whether a word consists only of option letters without values.
fn is_flag(word: &ShellWord) -> bool {
    let letters = word.value.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|c| "cdiuz".contains(c))
}

fn is_base64_word(word: &str) -> bool {
    !word.starts_with('-') || matches!(word, "-d" | "-D" | "-w" | "-w0" | "--decode" | "--wrap=0")
}

/// Whether a word cannot be an arithmetic expression, in which a subscript may run a command.
fn is_plain_operand(word: &ShellWord) -> bool {
    !word.value.contains(['[', '$', '`'])
}

fn is_safe_git(rest: &[ShellWord]) -> bool {
    let is_quiet = rest.first().is_some_and(|word| word.value == "--no-pager");
    let Some((command, rest)) = rest[usize::from(is_quiet)..].split_first() else { return false };
    if rest.iter().any(|word| shows_signature(&word.value)) {
        return false;
    }
    match command.value.as_str() {
        "--version" => rest.is_empty(),
        // Git runs another program to verify each signature.
        "branch" if rest.iter().any(|word| word.value.contains("signature")) => false,
        "branch" => lists_branches(rest),
        name => SAFE_GIT_COMMANDS.contains(&name),
    }
}

/// Whether a format contains a signature placeholder, for which git runs another program.
fn shows_signature(word: &str) -> bool {
    let is_one = |field: &str| {
        let field = field.strip_prefix(['+', '-', ' ']).unwrap_or(field);
        field.starts_with('G') || field.starts_with("(signature")
    };
    word.split('%').skip(1).any(is_one)
}

/// Whether `git branch` lists branches.
fn lists_branches(rest: &[ShellWord]) -> bool {
    let name = |word: &ShellWord| word.value.split('=').next().unwrap_or_default().to_owned();
    let searches = rest.iter().any(|word| BRANCH_SEARCHES.contains(&&*name(word)));
    let is_listed = |word: &ShellWord| {
        let name = name(word);
        let lists = BRANCH_LISTS.contains(&&*name) || BRANCH_SEARCHES.contains(&&*name);
        lists || searches && !name.starts_with('-')
    };
    rest.iter().all(is_listed)
}

/// `sed -n 1,5p`, and at most one file.
fn is_safe_sed(rest: &[ShellWord]) -> bool {
    let [quiet, program, files @ ..] = rest else { return false };
    let range = program.value.strip_suffix('p').unwrap_or_default();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    quiet.value == "-n"
        && range.split(',').count() <= 2
        && range.split(',').all(is_number)
        && files.len() <= 1
        && files.iter().all(|file| !file.value.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<ShellWord> {
        text.split(' ').map(ShellWord::from_literal).collect()
    }

    #[test]
    fn read_only_commands_are_safe() {
        for text in [
            "cat README.md",
            "/bin/ls -la",
            "find . -name *.rs -type f",
            "rg -n TODO src",
            "git status",
            "git log --oneline -5",
            "git log --format=%h%n%gD%an",
            "git diff HEAD~1 -- src",
            "git show HEAD",
            "git branch",
            "git branch -a",
            "git branch --sort=-committerdate",
            "git branch --contains HEAD",
            "git branch -a --list x*",
            "git --no-pager diff",
            "git rev-parse --abbrev-ref HEAD",
            "git ls-files --others --exclude-standard",
            "git log --oneline -5 -- src",
            "git --version",
            "sort -rn -k2 x",
            "date -u +%s",
            "printf %s x",
            "command -v git",
            "test -f x",
            "[ -d x ]",
            "find . -mtime -1",
            "sed -n 1,200p file",
            "sed -n 5p",
            "base64 -d x",
            "uniq -c",
            "uniq -cd x",
        ] {
            assert!(is_safe(&words(text), false), "{text}");
        }
    }

    #[test]
    fn one_more_argument_is_not_safe() {
        for text in [
            "find . -delete",
            "find . -exec rm ;",
            "find . -fprintf x",
            "rg --pre sh TODO",
            "rg -z TODO",
            "rg --hostname-b=x TODO",
            "git -C x status",
            "git -c core.pager=x log",
            "git --git-dir=x status",
            "git log --output=x",
            "git log --outp=x",
            "git diff --ext-diff",
            "git branch new",
            "git branch --sort=x new",
            "git branch -v new",
            "git branch --list -D old",
            "git --no-pager -c x=y log",
            "git --no-pager push",
            "git grep -O x",
            "git cat-file --batch",
            "git --version x",
            "date -s x",
            "printf -v x y",
            "command -p x",
            "command x",
            "test -v a[$(x)]",
            "[ 1 -eq a[$(x)] ]",
            "git log --show-signature",
            "git log --format=%h%GS",
            "git show --pretty=tformat:%+G?",
            "git branch --format=%(signature:key)",
            "git branch -a --sort=signature",
            "git branch --list --sort=-signature:key",
            "git branch -D old",
            "git push",
            "git",
            "sed -i s/a/b/ x",
            "sed -n 1e x",
            "sed -n 1,2,3p x",
            "sed 1p x",
            "sed -n p x",
            "base64 -o x",
            "base64 --output=x y",
            "uniq a b",
            "uniq - b",
            "uniq -- -a b",
            "sort -o x y",
            "env",
            "",
        ] {
            assert!(!is_safe(&words(text), false), "{text}");
        }
    }
}
