//! Finds commands embedded in text that bash does not parse: code of other languages, git
//! aliases, and commands for other machines.
//!
//! The effect of such text is unknown, so the result is used for deny rules only and never allows
//! anything. Every word may begin a command.
//!
//! **Invariant:** two passes, one look at each character, and a bounded number of words per
//! candidate.

use std::borrow::Cow;

use super::OpaqueReason;
use super::assignments::are_harmless_assignments;
use super::dangerous;
use super::program_names::canonical_name;
use super::word::{ShellWord, is_assignment, quote_word};

/// How many words of a candidate are listed. Candidates among the first `FULLY_LISTED_STARTS`
/// words of a fragment are listed in full.
const MAX_LISTED_WORDS: usize = 10;
const FULLY_LISTED_STARTS: usize = 5;

/// A program that executes code from an argument, where `dangerous` does not reject that argument
/// anyway.
#[derive(Debug)]
struct CodeInterpreter {
    /// Program names without version digits.
    names: &'static [&'static str],
    /// Option letters that announce code, and word prefixes that do.
    letters: &'static str,
    words: &'static [&'static str],
}

const fn code_interpreter(
    names: &'static [&'static str],
    letters: &'static str,
    words: &'static [&'static str],
) -> CodeInterpreter {
    CodeInterpreter { names, letters, words }
}

/// Marks that any word that is more than a plain name may be code.
const CODE: &str = "(";

const INTERPRETERS: &[CodeInterpreter] = &[
    code_interpreter(&["python", "pypy", "py"], "cms", &[]),
    code_interpreter(&["perl"], "eEMm", &[]),
    code_interpreter(
        &["ruby", "luajit", "lua", "rscript", "r", "groovy", "scala", "ghc"],
        "eE",
        &["--eval"],
    ),
    code_interpreter(
        &["node", "nodejs", "bun"],
        "ep",
        &["--eval", "--import", "--print", "--require", "exec"],
    ),
    code_interpreter(&["deno", "julia", "elixir"], "eE", &["--eval", "eval"]),
    code_interpreter(&["php"], "rBRE", &["--run"]),
    code_interpreter(
        &["osascript", "tclsh", "expect", "erl", "sbcl", "guile"],
        "ec",
        &["--eval", "-eval"],
    ),
    code_interpreter(
        &["psql", "mysql", "mariadb", "mongosh", "redis-cli"],
        "eco",
        // Meta commands that start with a backslash or a dot can run a shell.
        &["\\", ".", "--command", "--eval", "--execute", "--output", "--pager"],
    ),
    // A SQL statement may call functions that run a program.
    code_interpreter(&["sqlite"], "", &["\\", ".", CODE]),
    code_interpreter(
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
    code_interpreter(
        &["nc", "ncat", "netcat", "m4", "dc", "jshell", "tcpdump"],
        "ecsz",
        &["!", "--exec", "--sh-exec"],
    ),
    // A key binding may type a command line.
    code_interpreter(&["bind"], "x", &[CODE, "\""]),
    code_interpreter(&["bpftrace", "irb", "jrunscript", "rake"], "e", &["--execute"]),
    code_interpreter(&["idle", "pdb"], "c", &[]),
    code_interpreter(&["prename", "rename", "file-rename"], "", &[CODE]),
    code_interpreter(&["mksquashfs"], "p", &[]),
    code_interpreter(&["prove"], "e", &["--exe"]),
    code_interpreter(&["java"], "", &["-XX:OnError", "-XX:OnOutOfMemoryError"]),
    code_interpreter(&["gnuplot", "octave", "emacsclient"], "e", &["--eval"]),
    code_interpreter(
        &["ipython", "clickhouse-client", "duckdb", "racket", "raku"],
        "ce",
        &["--query"],
    ),
    code_interpreter(
        &["ts-node", "tsx", "qjs", "clj", "clojure", "bb", "ocaml"],
        "ep",
        &["--eval", "--print"],
    ),
    code_interpreter(&["swipl"], "g", &["--goal"]),
    code_interpreter(&["jbang", "kotlin", "iex"], "e", &["--eval"]),
    code_interpreter(&["lftp"], "ce", &[]),
    code_interpreter(&["cpio"], "", &["--rsh-command"]),
    code_interpreter(&["aria2c", "yt-dlp", "youtube-dl"], "", &["--exec", "--netrc-cmd", "--on-"]),
    code_interpreter(
        &["rclone", "restic", "borg"],
        "o",
        &["--option", "--password-command", "--rsh"],
    ),
    code_interpreter(&["openvpn"], "", &["--down", "--route-up", "--up"]),
    code_interpreter(&["tex", "latex", "pdftex", "pdflatex", "xelatex", "lualatex"], "", &["\\"]),
];

/// Interpreters that accept code options after their operands.
const CODE_AFTER_OPERANDS: &[&str] =
    &["mariadb", "mongosh", "mysql", "psql", "redis-cli", "sqlite"];

/// Programs that run a command on another machine or in a container, and the subcommands that do.
const REMOTE_RUNNERS: &[(&[&str], &[&str])] = &[
    (&["ssh", "mosh", "autossh", "rsh", "pssh", "pdsh", "dsh", "ansible", "salt", "wsl"], &[]),
    (&["docker", "podman", "nerdctl", "docker-compose"], &["run", "exec", "create"]),
    (&["kubectl", "oc", "k3s", "microk8s", "crictl"], &["run", "exec", "debug", "rsh"]),
    (&["ctr", "devcontainer", "distrobox"], &["run", "exec", "enter"]),
    (&["minikube"], &["ssh"]),
    (
        &["lxc", "incus", "machinectl", "adb", "vagrant", "gcloud", "fly", "flyctl", "heroku"],
        &["exec", "shell", "ssh", "run", "run:detached", "console"],
    ),
    (&["socat"], &[]),
];

/// Programs that never run others, except with these option letters or option prefixes.
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

/// Programs that run others, but never from a text argument.
const NO_EMBEDDED_TEXTS: &[&str] = &["bfs", "find", "gfind"];

/// The names of all programs in the tables.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let elsewhere = REMOTE_RUNNERS.iter().flat_map(|(names, _)| *names);
    let readers = INTERPRETERS.iter().flat_map(|it| it.names).chain(READS_INPUT);
    readers.chain(elsewhere).copied()
}

/// Whether a rule for a whole program, or for one of its subcommands, would allow running
/// arbitrary text.
pub(super) fn may_run_texts(name: &str, action: Option<&&str>) -> bool {
    let is_elsewhere = |(names, then): &(&[&str], &[&str])| {
        let is_subcommand = action.is_none_or(|action| then.is_empty() || then.contains(action));
        names.contains(&name) && is_subcommand
    };
    let reads_code = find_interpreter(name).is_some();
    reads_code && (action.is_none() || CODE_AFTER_OPERANDS.contains(&name))
        || REMOTE_RUNNERS.iter().any(is_elsewhere)
}

/// Returns the arguments that may contain commands; `asks` is the approval reason of the command.
pub(super) fn embedded_texts(words: &[ShellWord], asks: Option<OpaqueReason>) -> &[ShellWord] {
    let Some((head, rest)) = words.split_first() else { return words };
    let set = words.iter().take_while(|word| is_assignment(&word.value)).count();
    if set > 0 {
        return if are_harmless_assignments(&words[..set]) { &[] } else { &words[..set] };
    }
    let name = canonical_name(&head.value);
    let name = &*name;
    let has_commands = reads_code_argument(name, rest)
        || runs_remotely(name, rest)
        || asks == Some(OpaqueReason::RiskyArgument)
            && !never_runs_commands(name, rest)
            && !NO_EMBEDDED_TEXTS.contains(&name)
            && dangerous::may_run_argument(words);
    if has_commands { rest } else { &[] }
}

fn never_runs_commands(name: &str, rest: &[ShellWord]) -> bool {
    let Some((_, letters, begins)) = RUNS_NOTHING.iter().find(|it| it.0 == name) else {
        return false;
    };
    !rest.iter().any(|word| {
        let cluster = word.value.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        cluster.is_some_and(|it| it.contains(|c| letters.contains(c)))
            || begins.iter().any(|begin| word.value.starts_with(begin))
    })
}

/// Whether an argument or assignment may run a command that the words do not name. `asks` is the
/// approval reason of the command.
pub(super) fn hides_commands(words: &[ShellWord], asks: OpaqueReason) -> bool {
    let program = words.first().filter(|head| !is_assignment(&head.value));
    let name = program.map(|head| canonical_name(&head.value)).unwrap_or_default();
    if never_runs_commands(&name, words) {
        return false;
    }
    let is_open =
        |text: &ShellWord| !text.is_literal() || dangerous::builds_commands(&name, &text.value);
    let is_any_option =
        asks == OpaqueReason::RiskyArgument && words.iter().any(ShellWord::may_be_option);
    is_any_option || embedded_texts(words, Some(asks)).iter().any(is_open)
}

/// Programs that always read commands from standard input.
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

/// File names that stand for standard input.
const INPUT_NAMES: &[&str] = &["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Whether a command executes code from standard input or from a pipe argument.
pub(super) fn reads_code(words: &[ShellWord]) -> bool {
    let Some((head, rest)) = words.split_first() else { return false };
    let name = canonical_name(&head.value);
    let is_no_file = |word: &ShellWord| {
        word.value.starts_with('-') || INPUT_NAMES.contains(&word.value.as_str())
    };
    let is_given = rest.iter().all(is_no_file) || rest.iter().any(|word| word.is_pipe);
    let is_code = is_given && find_interpreter(&name).is_some();
    is_code || READS_INPUT.contains(&&*name) || runs_remotely(&name, rest)
}

fn find_interpreter(name: &str) -> Option<&'static CodeInterpreter> {
    INTERPRETERS.iter().find(|it| it.names.contains(&name))
}

fn reads_code_argument(name: &str, rest: &[ShellWord]) -> bool {
    let Some(interpreter) = find_interpreter(name) else { return false };
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

fn runs_remotely(name: &str, rest: &[ShellWord]) -> bool {
    REMOTE_RUNNERS.iter().any(|(names, then)| {
        let is_subcommand = |word: &ShellWord| then.contains(&&*word.value);
        names.contains(&name) && (then.is_empty() || rest.iter().any(is_subcommand))
    })
}

/// Calls `found` with the program and the text of each possible command in `text`.
pub(super) fn find_commands(text: &str, mut found: impl FnMut(&str, String)) {
    let text = text.replace("${IFS}", " ").replace("$IFS", " ");
    // Quotes may separate words or be part of one.
    for part in text.split(is_end) {
        list_candidates(&split_words(part, true), &mut found);
        if part.contains(is_quote) {
            list_candidates(&split_words(part, false), &mut found);
        }
    }
}

fn list_candidates(words: &[String], found: &mut impl FnMut(&str, String)) {
    let quoted: Vec<String> = words.iter().map(|word| quote_word(word)).collect();
    for (at, word) in words.iter().enumerate() {
        let Some(head) = program_part(word).filter(|head| is_program(head)) else { continue };
        let own =
            if head == word { Cow::Borrowed(&quoted[at]) } else { Cow::Owned(quote_word(head)) };
        let end = if at < FULLY_LISTED_STARTS {
            quoted.len()
        } else {
            quoted.len().min(at + MAX_LISTED_WORDS)
        };
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

/// Returns the part of a word that may be a program name.
fn program_part(word: &str) -> Option<&str> {
    let head = word.trim_start_matches('@');
    let head = head.rsplit(['=', '!', ':']).next().unwrap_or(head);
    // In `-xVALUE` the value follows the option letter.
    match head.strip_prefix('-') {
        Some(option) => {
            let mut rest = option.chars();
            rest.next().filter(|&letter| letter != '-').map(|_| rest.as_str())
        }
        None => Some(head),
    }
}

/// Whether a character ends a command in most languages.
fn is_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | ';' | '|' | '&' | '(' | ')' | '{' | '}' | '<' | '>' | '`')
}

fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"' | '\\')
}

fn split_words(part: &str, quotes_split: bool) -> Vec<String> {
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

    fn words(text: &[&str]) -> Vec<ShellWord> {
        text.iter().map(|word| ShellWord::from_literal(word)).collect()
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
            find_commands(code, |_, text| all.push(text));
            assert!(all.iter().any(|text| text == "rm -rf x"), "{code}: {all:?}");
        }
    }

    // SH10: a rule that matches the end of a command also matches long commands.
    #[test]
    fn a_long_command_is_found_whole() {
        let long = format!("git push{} --force", " a".repeat(40));
        for code in
            [format!("system(\"{long}\")"), format!("h {long}"), format!("-c alias.x=!{long}")]
        {
            let mut all = Vec::new();
            find_commands(&code, |_, text| all.push(text));
            assert!(all.contains(&long), "{code}: {all:?}");
        }
    }

    #[test]
    fn an_option_is_no_command() {
        find_commands("run --rm -it image", |program, _| assert_ne!(program, "rm"));
    }

    #[test]
    fn only_what_may_run_a_text_is_looked_into() {
        let dangerous = Some(OpaqueReason::RiskyArgument);
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
            (&["A=b", "B=c", "d"], Some(OpaqueReason::Assignment), 2),
        ] {
            assert_eq!(embedded_texts(&words(argv), asks).len(), expected, "{argv:?}");
        }
    }
}
