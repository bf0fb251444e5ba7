//! Commands in texts that no shell here reads: code of other languages, aliases of git, and
//! what is run on another machine.
//!
//! Nobody knows what such a text does, so this is no way to allow anything: what is found is
//! only for the rules that forbid. Every word may begin a command.
//!
//! **Invariant:** one look at each character, twice, and a bounded number of words for each
//! word.

use std::borrow::Cow;

use super::Why;
use super::danger;
use super::program::known_name;
use super::word::{Word, is_assignment, quote};

/// How many words are listed of what may be a command, but for those that stand so near to the
/// start of a part of a text: of these, all are.
const WORDS: usize = 10;
const FIRST: usize = 5;

/// A program that reads code in an argument, unless `danger` objects to that argument anyway.
#[derive(Debug)]
struct Interpreter {
    /// Without the digits of versions.
    names: &'static [&'static str],
    /// The letters of options, and other beginnings of words, that tell that it does.
    letters: &'static str,
    words: &'static [&'static str],
}

const fn reads(
    names: &'static [&'static str],
    letters: &'static str,
    words: &'static [&'static str],
) -> Interpreter {
    Interpreter { names, letters, words }
}

/// Stands for every word with more in it than a name.
const CODE: &str = "(";

const INTERPRETERS: &[Interpreter] = &[
    reads(&["python", "pypy", "py"], "cms", &[]),
    reads(&["perl"], "eEMm", &[]),
    reads(&["ruby", "luajit", "lua", "rscript", "r", "groovy", "scala", "ghc"], "eE", &["--eval"]),
    reads(
        &["node", "nodejs", "bun"],
        "ep",
        &["--eval", "--import", "--print", "--require", "exec"],
    ),
    reads(&["deno", "julia", "elixir"], "eE", &["--eval", "eval"]),
    reads(&["php"], "rBRE", &["--run"]),
    reads(&["osascript", "tclsh", "expect", "erl", "sbcl", "guile"], "ec", &["--eval", "-eval"]),
    reads(
        &["psql", "mysql", "mariadb", "mongosh", "redis-cli"],
        "eco",
        // A shell behind a backslash or a dot.
        &["\\", ".", "--command", "--eval", "--execute", "--output", "--pager"],
    ),
    // A statement may have functions that edit a text with a program.
    reads(&["sqlite"], "", &["\\", ".", CODE]),
    reads(
        &[
            "gdb",
            "gdb-multiarch",
            "gdbtui",
            "rust-gdb",
            "rust-gdbgui",
            "rust-lldb",
            "lldb",
            "vi",
            "vim",
            "nvim",
            "ex",
            "view",
            "ed",
            "emacs",
            "editor",
            "gview",
            "gvim",
            "rview",
            "rvim",
            "sensible-editor",
        ],
        "ecxo",
        &["+", "--eval", "--ex", "-ex"],
    ),
    reads(
        &["nc", "ncat", "netcat", "m4", "dc", "jshell", "tcpdump"],
        "ecsz",
        &["!", "--exec", "--sh-exec"],
    ),
    // A key may stand for a line that is typed.
    reads(&["bind"], "x", &[CODE, "\""]),
    reads(&["bpftrace", "irb", "jrunscript", "rake"], "e", &["--execute"]),
    reads(&["idle", "pdb"], "c", &[]),
    reads(&["prename", "rename", "file-rename"], "", &[CODE]),
    reads(&["mksquashfs"], "p", &[]),
    reads(&["prove"], "e", &["--exe"]),
    reads(&["java"], "", &["-XX:OnError", "-XX:OnOutOfMemoryError"]),
    reads(&["gnuplot", "octave", "emacsclient"], "e", &["--eval"]),
    reads(&["ipython", "clickhouse-client", "duckdb", "racket", "raku"], "ce", &["--query"]),
    reads(
        &["ts-node", "tsx", "qjs", "clj", "clojure", "bb", "ocaml"],
        "ep",
        &["--eval", "--print"],
    ),
    reads(&["swipl"], "g", &["--goal"]),
    reads(&["jbang", "kotlin", "iex"], "e", &["--eval"]),
    reads(&["lftp"], "ce", &[]),
    reads(&["cpio"], "", &["--rsh-command"]),
    reads(&["aria2c", "yt-dlp", "youtube-dl"], "", &["--exec", "--netrc-cmd", "--on-"]),
    reads(&["rclone", "restic", "borg"], "o", &["--option", "--password-command", "--rsh"]),
    reads(&["openvpn"], "", &["--down", "--route-up", "--up"]),
    reads(&["tex", "latex", "pdftex", "pdflatex", "xelatex", "lualatex"], "", &["\\"]),
];

/// Programs that run a command somewhere else, and the words of which one must be there for
/// that.
const ELSEWHERE: &[(&[&str], &[&str])] = &[
    (&["ssh", "mosh", "autossh", "rsh", "pssh", "pdsh", "dsh", "ansible", "salt", "wsl"], &[]),
    (&["docker", "podman", "nerdctl", "docker-compose"], &["run", "exec", "create"]),
    (&["kubectl", "oc", "k3s", "microk8s"], &["run", "exec", "debug"]),
    (
        &["lxc", "incus", "machinectl", "adb", "vagrant", "gcloud", "fly", "flyctl", "heroku"],
        &["exec", "shell", "ssh", "run", "run:detached", "console"],
    ),
    (&["socat"], &[]),
];

/// Programs that run no others, and the options of one letter and the beginnings of others with
/// which they do.
const RUNS_NOTHING: &[(&str, &str, &[&str])] = &[
    ("curl", "", &[]),
    ("dmesg", "", &[]),
    ("hostname", "", &[]),
    ("iconv", "", &[]),
    ("ptx", "", &[]),
    ("rm", "", &[]),
    ("shuf", "", &[]),
    ("uniq", "", &[]),
    ("wget", "e", &["--conf", "--exe", "--use-a"]),
    ("xxd", "", &[]),
];

/// Programs that run others, but none from a text among their arguments.
const NO_TEXTS: &[&str] = &["bfs", "find", "gfind"];

/// The programs that are known to run texts.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let elsewhere = ELSEWHERE.iter().flat_map(|(names, _)| *names);
    let readers = INTERPRETERS.iter().flat_map(|it| it.names).chain(READS_INPUT);
    readers.chain(elsewhere).copied()
}

/// Whether all commands of a program together, or all of one of its actions, may run any text
/// that they are given.
pub(super) fn runs_texts(name: &str, action: Option<&&str>) -> bool {
    let is_elsewhere = |(names, then): &(&[&str], &[&str])| {
        let is_told = action.is_none_or(|action| then.is_empty() || then.contains(action));
        names.contains(&name) && is_told
    };
    action.is_none() && interpreter(name).is_some() || ELSEWHERE.iter().any(is_elsewhere)
}

/// The texts among the words of a command that may hold others; `asks` is what is said of it.
pub(super) fn texts(words: &[Word], asks: Option<Why>) -> &[Word] {
    let Some((head, rest)) = words.split_first() else { return words };
    let set = words.iter().take_while(|word| is_assignment(&word.value)).count();
    if set > 0 {
        return &words[..set];
    }
    let name = known_name(&head.value);
    let name = &*name;
    let has_commands = is_interpreter(name, rest)
        || is_elsewhere(name, rest)
        || asks == Some(Why::Argument)
            && !runs_nothing(name, rest)
            && !NO_TEXTS.contains(&name)
            && danger::may_run(words);
    if has_commands { rest } else { &[] }
}

fn runs_nothing(name: &str, rest: &[Word]) -> bool {
    let Some((_, letters, begins)) = RUNS_NOTHING.iter().find(|it| it.0 == name) else {
        return false;
    };
    !rest.iter().any(|word| {
        let cluster = word.value.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        cluster.is_some_and(|it| it.contains(|c| letters.contains(c)))
            || begins.iter().any(|begin| word.value.starts_with(begin))
    })
}

/// Whether an argument or a variable may run a command that its words do not name, where `asks`
/// says that it may do something.
pub(super) fn evades(words: &[Word], asks: Why) -> bool {
    let program = words.first().filter(|head| !is_assignment(&head.value));
    let name = program.map(|head| known_name(&head.value)).unwrap_or_default();
    if runs_nothing(&name, words) {
        return false;
    }
    let is_open = |text: &Word| !text.is_literal() || danger::builds_commands(&name, &text.value);
    let is_any_option = asks == Why::Argument && words.iter().any(Word::may_be_option);
    is_any_option || texts(words, Some(asks)).iter().any(is_open)
}

/// Programs that read commands from their input, whatever they are given.
const READS_INPUT: &[&str] = &[
    "dc",
    "ed",
    "ex",
    "ftp",
    "gdb",
    "gdb-multiarch",
    "gdbtui",
    "gmake",
    "lftp",
    "lldb",
    "make",
    "mariadb",
    "mysql",
    "psql",
    "redis-cli",
    "rust-gdb",
    "rust-gdbgui",
    "rust-lldb",
    "sftp",
    "sqlite",
    "vi",
    "vim",
];

/// Names of what a program gets as its input.
const INPUT: &[&str] = &["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Whether it reads code from what it gets as input, or through a pipe that it is given.
pub(super) fn reads_code(words: &[Word]) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    let name = known_name(&head.value);
    let is_no_file =
        |word: &Word| word.value.starts_with('-') || INPUT.contains(&word.value.as_str());
    let is_given = rest.iter().all(is_no_file) || rest.iter().any(|word| word.pipe);
    let is_code = is_given && interpreter(&name).is_some();
    is_code || READS_INPUT.contains(&&*name) || is_elsewhere(&name, rest)
}

fn interpreter(name: &str) -> Option<&'static Interpreter> {
    INTERPRETERS.iter().find(|it| it.names.contains(&name))
}

fn is_interpreter(name: &str, rest: &[Word]) -> bool {
    let Some(interpreter) = interpreter(name) else { return false };
    rest.iter().any(|word| {
        let value = word.value.as_str();
        let cluster = value.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        cluster.is_some_and(|cluster| cluster.contains(|c| interpreter.letters.contains(c)))
            || interpreter.words.iter().any(|word| match *word {
                CODE => value.contains(|c: char| c.is_whitespace() || "({;".contains(c)),
                word => value.starts_with(word),
            })
    })
}

fn is_elsewhere(name: &str, rest: &[Word]) -> bool {
    ELSEWHERE.iter().any(|(names, then)| {
        let is_told = |word: &Word| then.contains(&&*word.value);
        names.contains(&name) && (then.is_empty() || rest.iter().any(is_told))
    })
}

/// Calls `found` with the program and the text of all that may be commands in `text`.
pub(super) fn commands(text: &str, mut found: impl FnMut(&str, String)) {
    let text = text.replace("${IFS}", " ").replace("$IFS", " ");
    // Quotes may end a word, or stand inside of one.
    for part in text.split(is_end) {
        list(&split(part, true), &mut found);
        if part.contains(is_quote) {
            list(&split(part, false), &mut found);
        }
    }
}

fn list(words: &[String], found: &mut impl FnMut(&str, String)) {
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    for (at, word) in words.iter().enumerate() {
        let Some(head) = head(word).filter(|head| is_program(head)) else { continue };
        let own = if head == word { Cow::Borrowed(&quoted[at]) } else { Cow::Owned(quote(head)) };
        let end = if at < FIRST { quoted.len() } else { quoted.len().min(at + WORDS) };
        let rest = &quoted[at + 1..end];
        let room = own.len() + rest.iter().map(|word| word.len() + 1).sum::<usize>();
        let mut text = String::with_capacity(room);
        text.push_str(&own);
        for word in rest {
            text.push(' ');
            text.push_str(word);
        }
        found(head, text);
    }
}

/// The part of a word that may be a program.
fn head(word: &str) -> Option<&str> {
    let head = word.trim_start_matches('@');
    let head = head.rsplit(['=', '!', ':']).next().unwrap_or(head);
    // What is written behind the letter of an option is its value.
    match head.strip_prefix('-') {
        Some(option) => {
            let mut rest = option.chars();
            rest.next().filter(|&letter| letter != '-').map(|_| rest.as_str())
        }
        None => Some(head),
    }
}

/// Whether a command ends here in most languages.
fn is_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | ';' | '|' | '&' | '(' | ')' | '{' | '}' | '<' | '>' | '`')
}

fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"' | '\\')
}

fn split(part: &str, quotes_split: bool) -> Vec<String> {
    let is_blank =
        |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']') || quotes_split && is_quote(c);
    let words = part.split(is_blank).map(|word| word.replace(is_quote, ""));
    words.filter(|word| !word.is_empty()).collect()
}

fn is_program(head: &str) -> bool {
    head.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '~' | '_'))
        && head.contains(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<Word> {
        text.iter().map(|word| Word::literal(word)).collect()
    }

    #[test]
    fn a_command_is_found_in_any_language() {
        for code in [
            "import os; os.system('rm -rf x')",
            "subprocess.run([\"rm\", \"-rf\", \"x\"])",
            "spawn('rm', ['-rf', 'x'])",
            "BEGIN{system(\"rm -rf x\")}",
            "`rm -rf x`",
            "exec %w[rm -rf x]",
            ":!rm -rf x",
            "!rm -rf x",
            "alias.x=!rm -rf x",
            "EXEC:rm -rf x",
            "-xrm -rf x",
            "--exec=rm -rf x",
            "1e rm -rf x",
            "sudo r''m -rf x",
            "rm${IFS}-rf${IFS}x",
            "bash -c \"rm -rf x\"",
        ] {
            let mut all = Vec::new();
            commands(code, |_, text| all.push(text));
            assert!(all.iter().any(|text| text == "rm -rf x"), "{code}: {all:?}");
        }
    }

    // SH10: a rule that names the end of a command is held against long ones, too.
    #[test]
    fn a_long_command_is_found_whole() {
        let long = format!("git push{} --force", " a".repeat(40));
        for code in
            [format!("system(\"{long}\")"), format!("h {long}"), format!("-c alias.x=!{long}")]
        {
            let mut all = Vec::new();
            commands(&code, |_, text| all.push(text));
            assert!(all.contains(&long), "{code}: {all:?}");
        }
    }

    #[test]
    fn an_option_is_no_command() {
        commands("run --rm -it image", |program, _| assert_ne!(program, "rm"));
    }

    #[test]
    fn only_what_may_run_a_text_is_looked_into() {
        let dangerous = Some(Why::Argument);
        for (argv, asks, expected) in [
            (&["python3.12", "-c", "x"][..], None, 2),
            (&["python", "x.py", "rm"], None, 0),
            (&["node", "-e", "x"], None, 2),
            (&["vim", "+!x"], None, 1),
            (&["ssh", "host", "x"], None, 2),
            (&["docker", "rm", "x"], None, 0),
            (&["docker", "exec", "x", "y"], None, 3),
            (&["git", "-c", "alias.x=!y", "x"], dangerous, 3),
            (&["git", "commit", "-m", "rm x"], None, 0),
            (&["curl", "-o", "rm", "x"], dangerous, 0),
            (&["sed", "-i", "s/rm x/y/", "z"], dangerous, 0),
            (&["sed", "1e rm x"], dangerous, 1),
            (&["A=b", "B=c", "d"], Some(Why::Assignment), 2),
        ] {
            assert_eq!(texts(&words(argv), asks).len(), expected, "{argv:?}");
        }
    }
}
