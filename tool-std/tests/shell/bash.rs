//! Compares the analysis with a real bash: a plain script runs exactly the listed commands.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use tool_std::shell::{OpaqueReason, ScriptAnalysis, SimpleCommand, analyze_script};

/// The number of plain scripts that are compared.
const CASES: usize = 1_000;

/// The number of scripts with nested commands that are compared.
const NESTED: usize = 300;

/// The most scripts that are tried for that.
const TRIES: usize = 200_000;

/// Writes the arguments of every command to a file, and gives `$status`. Each process has a file of
/// its own: bash writes line by line, and the commands of a pipeline do so at the same time.
const STUB: &str = r#"command_not_found_handle() {
    printf '%s\0' "$#" "$@" >> "$LOG.$BASHPID"
    return "$STATUS"
}
"#;

/// Lets all builtins be commands like any other, but for those of the stub.
const NO_BUILTINS: &str = "\
for builtin in $(compgen -b); do
    case $builtin in printf | return | enable) ;; *) enable -n \"$builtin\" ;; esac
done
";

/// Fragments with nested commands that run first. bash runs them, so an absolute path is a word
/// of its own, and nothing may be appended to it.
fn nested() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => prop::sample::select(vec!["aa", "bb", "git9", "x", "-x"]),
        3 => prop::sample::select(vec![" ", " ", "\n", ";", "&&", "||", "|"]),
        3 => prop::sample::select(vec!["$(", "\"$(", ")", ")\"", "<(", "(", " $(aa)", "\"$(bb x)\""]),
        2 => prop::sample::select(vec![
            "'", "\"", "\\", "#", "$x", "${x}", "\"$x\"", "~", "*", "=", "a=", "$", "{}", "\\\n",
            " \\\n", " # zz\n", " 2>&1", " >/dev/null ", " <<'E'\n$(cc)\nE\n", " <<< $(dd)", "time ",
            "`", "$((", "$'", "{a,b}", "<<E\n", "\nE\n", "case ", " in ", "ä",
        ]),
        2 => prop::sample::select(vec![
            "if ", ";then ", ";else ", ";elif ", ";fi", "{ ", ";}", "while aa;do ", ";done",
            "for x in aa bb;do ", "for y in {1..2};do ", " \"$x\"", " $x", " c$y", "\"$x$y\"",
            " x=1;", "for x in ", ";do ",
        ]),
    ];
    prop::collection::vec(piece.prop_map(str::to_owned), 1..14).prop_map(|pieces| pieces.concat())
}

/// Pieces of scripts, harmless and not; no builtin of bash is among the names.
fn scripts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec!["aa", "bb", "ls9", "git9", "x", "-x", "=", "1"]),
        3 => prop::sample::select(vec![" ", " ", "\t", "\n", ";", "&&", "||", "|", "&"]),
        3 => prop::sample::select(vec!["'", "\"", "\\", "''", "\"\"", "\\ ", "' '", "\"a;b\""]),
        2 => prop::sample::select(vec![
            "#", "~", "*", "?", "[", "]", "!", "{", "}", ",", "..", "$", "`", "(", ")", "<", ">",
            "^", "%", "@", ":", "+", "ä", "語", "\u{a0}", "\r", "\u{1}", "a=", "a[1]=", "a+=",
            "if", "time", "then", "do", "{a,b}", "$x", "\\\n", " \\\n", "{}", " 2>&1",
            " >/dev/null ", " > yy ", " # zz\n", " <<'E'\n(a $b\nE\n", "\\\"",
        ]),
    ];
    let piece = prop_oneof![
        12 => piece.prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

fn bash() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("bash")).find(|file| file.is_file())
}

/// The argument lists that bash runs after `start`, when every command gives `status`.
fn run(bash: &Path, folder: &Path, start: &str, script: &str, status: &str) -> Vec<Vec<String>> {
    // What bash left running may write late: that belongs to no other script.
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let log = format!("log{}", RUNS.fetch_add(1, Ordering::Relaxed));
    let done = Command::new(bash)
        // Patterns stand for themselves: which files there are is another matter.
        .args(["--noprofile", "--norc", "-f", "-c"])
        .arg(format!("{STUB}{start}{script}\n"))
        .env_clear()
        .env("PATH", folder.join("nothing"))
        .env("LC_ALL", "C.UTF-8")
        .env("LOG", folder.join(&log))
        .env("STATUS", status)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.expect("bash runs");
    let mut commands = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it is there").path();
        if path.file_stem().is_none_or(|stem| *stem != *log) || path.extension().is_none() {
            continue;
        }
        let said = fs::read_to_string(&path).expect("the log is read");
        fs::remove_file(&path).expect("the log is removed");
        let mut fields = said.split_terminator('\0');
        while let Some(count) = fields.next() {
            let count = count.parse().expect("a number");
            commands.push(fields.by_ref().take(count).map(str::to_owned).collect());
        }
    }
    commands
}

/// Whether it runs through a stub: no path, no builtin, and no keyword.
fn is_stubbed(program: &str) -> bool {
    !program.contains('/') && !matches!(program, ":" | "." | "[" | "time")
}

/// The argument lists that bash should run, where the stubs can show them.
fn expected(analysis: &ScriptAnalysis) -> Option<Vec<Vec<String>>> {
    let heads = analysis.commands.iter().map(|command| command.argv[0].as_str());
    let is_shown = heads.clone().all(is_stubbed) && analysis.commands.iter().all(is_certain);
    is_shown.then(|| analysis.commands.iter().map(|command| command.argv.clone()).collect())
}

/// Whether it is its own words that run, and not what it contains.
fn is_certain(command: &SimpleCommand) -> bool {
    !command.is_nested
        && command.approval_reason.is_none_or(|why| why == OpaqueReason::RiskyArgument)
}

/// A bash that tells what it would run.
pub(crate) struct Oracle {
    bash: PathBuf,
    folder: tempfile::TempDir,
}

impl Oracle {
    /// `None` where there is no bash.
    pub(crate) fn new() -> Option<Self> {
        let Some(bash) = bash() else {
            eprintln!("there is no bash here: skipped");
            return None;
        };
        Some(Self { bash, folder: tempfile::tempdir().expect("a folder") })
    }

    /// Fails unless bash runs what is expected, after `start`.
    fn check(&self, start: &str, script: &str, mut expected: Vec<Vec<String>>) {
        let found = |status| run(&self.bash, self.folder.path(), start, script, status);
        let mut first = found("0");
        if script.contains("||") {
            // Each operator lets the right side run after one of both outcomes.
            first.extend(found("1"));
            let all: BTreeSet<_> = first.into_iter().collect();
            assert_eq!(all, expected.into_iter().collect(), "{script:?}");
        } else {
            expected.sort();
            first.sort();
            assert_eq!(first, expected, "{script:?}");
        }
    }

    /// Whether `script` is plain, so that bash was asked, and agreed. It has no slashes.
    pub(crate) fn agrees_about_plain(&self, script: &str) -> bool {
        let analysis = analyze_script(script);
        let is_stub = |command: &SimpleCommand| {
            let program = &*command.argv[0];
            !matches!(program, "printf" | "return" | "enable" | "time") && !program.contains('[')
        };
        let own = analysis.commands.iter().filter(|command| !command.is_nested);
        // What a home folder is called is another matter.
        let is_shown = analysis.is_plain && own.clone().all(is_stub) && !script.contains('~');
        if is_shown {
            self.check(NO_BUILTINS, script, own.map(|command| command.argv.clone()).collect());
        }
        is_shown
    }
}

/// Asks bash about scripts that fit, until it agreed about enough of them.
fn compare(pieces: &str, fits: impl Fn(&str, &ScriptAnalysis) -> bool) {
    let Some(oracle) = Oracle::new() else { return };
    let mut runner = TestRunner::deterministic();
    let strategy = scripts();
    let mut asked = 0;
    for _ in 0..TRIES {
        if asked == CASES {
            break;
        }
        let script = strategy.new_tree(&mut runner).expect("a script").current();
        let analysis = analyze_script(&script);
        let Some(expected) = expected(&analysis).filter(|_| fits(&script, &analysis)) else {
            continue;
        };
        asked += 1;
        oracle.check("", &script, expected);
    }
    eprintln!("bash agreed about {asked} {pieces} scripts");
    assert_eq!(asked, CASES, "too few scripts are {pieces}");
}

// (d), SH1
#[test]
fn plain_scripts_match_bash() {
    compare("plain", |_, analysis| analysis.is_plain);
}

// The same for the second layer, as far as its words are known before they run.
#[test]
fn parsed_scripts_match_bash() {
    compare("understood", |script, analysis| {
        !analysis.is_plain
            && analysis.opaque.is_none()
            && analysis.reads.is_empty()
            && !script.contains(['$', '~'])
    });
}

/// Whether it may be what bash runs: all of its words are, where they are known.
fn may_be(command: &SimpleCommand, argv: &[String]) -> bool {
    let is_open = command.text.contains(['$', '~']) || command.text.contains("<(");
    let is_anything = command.approval_reason == Some(OpaqueReason::UnknownProgram);
    is_anything || if is_open { command.argv[0] == argv[0] } else { command.argv == argv }
}

// SH10: where a script is understood, bash runs nothing that was not judged.
#[test]
fn bash_runs_only_listed_commands() {
    let Some(oracle) = Oracle::new() else { return };
    let mut runner = TestRunner::deterministic();
    let strategy = nested();
    let mut asked = 0;
    for _ in 0..TRIES {
        if asked == NESTED {
            break;
        }
        let script = strategy.new_tree(&mut runner).expect("a script").current();
        let analysis = analyze_script(&script);
        if analysis.is_plain || analysis.opaque.is_some() || !analysis.reads.is_empty() {
            continue;
        }
        asked += 1;
        for status in ["0", "1"] {
            for argv in run(&oracle.bash, oracle.folder.path(), "", &script, status) {
                let is_judged = analysis.commands.iter().any(|command| may_be(command, &argv));
                assert!(is_judged, "{script:?} runs {argv:?}: {:?}", analysis.commands);
            }
        }
    }
    eprintln!("bash ran what was judged of {asked} scripts");
    assert_eq!(asked, NESTED, "too few scripts are understood");
}
