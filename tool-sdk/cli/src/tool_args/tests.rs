//! Tests of parsing the words after the name of a tool.

use std::io;

use super::*;
use crate::{args, test_support};

/// Parses words; returns the JSON text and the faults, one a line.
fn read_with(args: &[&str], stdin: &[u8], dir: &std::path::Path) -> Result<(String, String)> {
    let definition = test_support::kinds_tool();
    let flags = flag::tool_flags(&definition);
    let command = args::tool_command("toy", args::ToolVerb::Call, &definition, &flags);
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let (mut stdin, mut out, mut err) = (stdin, Vec::new(), Vec::new());
    let mut io = Io::new(&mut stdin, &mut out, &mut err);
    io.current_dir = dir.to_owned();
    let mut words = ToolArgs::parse(&args, &flags, &command);
    words.parse_options(command)?;
    let (text, faults) = words.into_arguments(&mut io)?;
    let text = text.unwrap_or_default();
    let faults: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
    Ok((text, faults.join("\n")))
}

fn read(args: &[&str], stdin: &[u8]) -> Result<(String, String)> {
    read_with(args, stdin, ".".as_ref())
}

#[track_caller]
fn check(args: &[&str], expected: &str) {
    assert_eq!(read(args, b"").unwrap(), (expected.to_owned(), String::new()), "{args:?}");
}

/// Checks the faults line by line; each contains the expected text.
#[track_caller]
fn check_faults(args: &[&str], expected: &[&str]) {
    let (_, faults) = read(args, b"").unwrap();
    let lines: Vec<&str> = faults.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{args:?}: {faults}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.contains(expected), "{args:?}: {line}");
    }
}

#[track_caller]
fn check_refused(args: &[&str], stdin: &[u8], expected: &str) {
    let (code, error) = read(args, stdin).unwrap_err().into_tool_error().unwrap();
    assert_eq!(code, 2);
    assert!(error.message().contains(expected), "{error}");
}

#[test]
fn says_how_a_list_is_written() {
    for wrong in ["1,2", "x", "[1,", "{}", ""] {
        let expected = "`sizes` is a list of integer values: write `--sizes '[1, 2]'`, or repeat";
        check_faults(&["--sizes", "1", "--sizes", wrong], &[expected]);
    }
    check_faults(
        &["--sizes", "1", "2"],
        &["each item of `sizes` needs its flag, as in `--sizes 2`"],
    );
    check_faults(&["--tags", "a", "b"], &["each item of `tags` needs its flag, as in `--tags b`"]);
}

#[test]
fn converts_values_by_schema() {
    check(&["--text", "5"], r#"{"text":"5"}"#);
    check(&["--text", "say \"hi\"\n"], r#"{"text":"say \"hi\"\n"}"#);
    check(&["--count", "5"], r#"{"count":5}"#);
    check(&["--count=-5"], r#"{"count":-5}"#);
    check(&["--count", "-5"], r#"{"count":-5}"#);
    check(&["--ratio", "1e3"], r#"{"ratio":1e3}"#);
    check(&["--tags", "a", "--tags=2"], r#"{"tags":["a","2"]}"#);
    check(&["--sizes", "1", "--sizes", "2"], r#"{"sizes":[1,2]}"#);
    check(&["--sizes", "[1,2]", "--sizes=[]", "--sizes", "3"], r#"{"sizes":[1,2,3]}"#);
    check(&["--sizes", "[]"], r#"{"sizes":[]}"#);
    check(&["--tags", r#"["a", "b,c"]"#, "--tags", "[d"], r#"{"tags":["a","b,c","[d"]}"#);
    check(&["--where", r#"{"a":1, "a":2}"#], r#"{"where":{"a":1, "a":2}}"#);
    check(&["--either", "7"], r#"{"either":7}"#);
    check(&["--either", "seven"], r#"{"either":"seven"}"#);
}

#[test]
fn booleans_are_switches() {
    check(&["--loud"], r#"{"loud":true}"#);
    check(&["--loud=true"], r#"{"loud":true}"#);
    check(&["--loud", "false"], r#"{"loud":false}"#);
    check(&["--loud=maybe"], r#"{"loud":"maybe"}"#);
    check(&["--loud", "--text", "x"], r#"{"text":"x","loud":true}"#);
}

#[test]
fn a_value_of_another_kind_is_sent_as_text() {
    check(&["--count", "five"], r#"{"count":"five"}"#);
    check(&["--count", "05"], r#"{"count":"05"}"#);
    check(&["--count", "NaN"], r#"{"count":"NaN"}"#);
    check(&["--where", "{"], r#"{"where":"{"}"#);
}

#[test]
fn values_may_look_like_options() {
    check(&["--text", "-x", "--tags", "-y", "--tags=-z"], r#"{"text":"-x","tags":["-y","-z"]}"#);
    check(&["--text=--loud", "--loud"], r#"{"text":"--loud","loud":true}"#);
    check(&["--text", "--no-such"], r#"{"text":"--no-such"}"#);
}

// Otherwise a forgotten value would swallow a `--deny` rule.
#[test]
fn a_known_flag_is_not_taken_as_a_value() {
    for (words, message) in [
        (
            &["--text", "--json"][..],
            "`text` has no value; write `--text=--json` if that is its value",
        ),
        (&["--text", "--deny", "x"], "`text` has no value; write `--text=--deny`"),
        (&["--tags", "--count", "1"], "`tags` has no value; write `--tags=--count`"),
        (&["--text", "--"], "`text` has no value; write `--text=--`"),
    ] {
        check_faults(words, &[message]);
    }
    check(&["--text=--json"], r#"{"text":"--json"}"#);
}

// The settings of a call are resolved before the flags of a server's tool are known.
#[test]
fn the_program_options_do_not_depend_on_the_flags_of_the_tool() {
    const WORDS: [&str; 12] = [
        "--text",
        "--loud",
        "--no-such",
        "--no-such=x",
        "--deny",
        "--deny=x",
        "--yes",
        "-x",
        "--",
        "-",
        "{}",
        "word",
    ];
    let definition = test_support::kinds_tool();
    let flags = flag::tool_flags(&definition);
    let verb = args::ToolVerb::Call;
    let known = args::tool_command("toy", verb, &definition, &flags);
    let unknown = args::tool_options_command(verb);
    for number in 0..WORDS.len().pow(4) {
        let at = |place| WORDS[number / WORDS.len().pow(place) % WORDS.len()].into();
        let words: Vec<OsString> = (0..4).map(at).collect();
        let with_flags = ToolArgs::parse(&words, &flags, &known);
        if with_flags.faults.is_empty() {
            let without = ToolArgs::parse(&words, &[], &unknown);
            assert_eq!(with_flags.program_options, without.program_options, "{words:?}");
        }
    }
}

#[test]
fn flags_are_spelled_with_dashes_or_as_the_parameter_is() {
    check(&["--dry-run"], r#"{"dry_run":true}"#);
    check(&["--dry_run"], r#"{"dry_run":true}"#);
    check(&["--arg-mode", "fast"], r#"{"mode":"fast"}"#);
}

#[test]
fn json_arguments_are_passed_unchanged() {
    check(&[], "{}");
    check(&[r#"{"a": 1, "a": 2}"#], r#"{"a": 1, "a": 2}"#);
    check(&["[1]"], "[1]");
    check(&["{not json"], "{not json");
    check(&["null"], "null");
    check(&[""], "");
    check(&["--", "-x"], "-x");
    check(&["--json", "{}", "--root", "/"], "{}");
    assert_eq!(read(&["-"], b" {}\n").unwrap().0, " {}\n");
}

#[test]
fn a_file_is_found_from_the_current_folder() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("args.json"), r#"{"text":"é"}"#).unwrap();
    let (text, _) = read_with(&["@args.json"], b"", dir.path()).unwrap();
    assert_eq!(text, r#"{"text":"é"}"#);
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let [file, word] = [&b"\xff.json"[..], b"@\xff.json"].map(OsStr::from_bytes);
        std::fs::write(dir.path().join(file), "{}").unwrap();
        let (mut stdin, mut out, mut err) = (io::empty(), Vec::new(), Vec::new());
        let mut io = Io::new(&mut stdin, &mut out, &mut err);
        io.current_dir = dir.path().to_owned();
        assert_eq!(input::read_arguments(word, &mut io).unwrap(), "{}");
    }
    check_refused(&["@no-such-file"], b"", "cannot open `no-such-file`");
}

#[test]
fn rejects_contradictory_words() {
    check_faults(&["{}", "--text", "x"], &["either as JSON or as flags"]);
    check_faults(&["{}", "more"], &["unexpected word `more`"]);
    check_faults(&["--text", "a", "--text", "b"], &["`text` comes twice"]);
    check_faults(&["--txt", "a"], &["unknown argument `txt`; did you mean `text`?"]);
    check_faults(&["--jsn"], &["unknown argument `jsn`; did you mean `--json`?"]);
    check_faults(&["-x"], &["unknown argument `x`"]);
    check_faults(&["-x", "1", "--text", "a"], &["unknown argument `x`"]);
    check_faults(&["--text"], &["`text` has no value"]);
    check_faults(&["--root"], &["a value is required for '--root <DIR>'"]);
    check_refused(&["@"], b"", "`@` must be followed by the name of a file");
    check_refused(&["@."], b"", "cannot read `.`");
    check_refused(&["-"], b"\xff", "standard input is not UTF-8");
    check_refused(&["-"], &vec![b' '; (16 << 20) + 1], "longer than 16 MiB");
}

// A bare word gives one fault, not also those of the arguments that it would be.
#[test]
fn a_bare_word_is_reported_as_its_likely_mistake() {
    check_faults(&["--text", "two", "words"], &["unexpected word `words`; a value with"]);
    check_faults(&["two words"], &["neither JSON nor a flag; write `--text 'two words'`"]);
    check_faults(&["{}", "words"], &["unexpected word `words`"]);
    check_faults(&["--nope", "x", "@none"], &["unknown argument `nope`", "cannot open `none`"]);
    let ran = test_support::run(&["call", "echo", "hello"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.err.lines().filter(|line| line.starts_with("- ")).count(), 1, "{}", ran.err);
}

#[test]
fn reports_every_fault_at_once() {
    check_faults(
        &["--txt", "a", "--text", "b", "--text", "c", "--nope=1", "@none", "--count"],
        &[
            "unknown argument `txt`",
            "`text` comes twice",
            "unknown argument `nope`",
            "`count` has no value",
            "either as JSON or as flags",
        ],
    );
}

#[test]
fn errors_of_program_options_keep_claps_message() {
    let (_, faults) = read(&["--mode", "fast", "--sandbox", "no", "--txt"], b"").unwrap();
    for words in [
        "unknown argument `txt`",
        "invalid value 'fast' for '--mode <MODE>'",
        "the tool's own parameter is '--arg-mode'",
        "invalid value 'no' for '--sandbox <MODE>'",
    ] {
        assert!(faults.contains(words), "{words}: {faults}");
    }
    assert!(read(&["--txt", "--help"], b"").unwrap_err().into_tool_error().is_err());
}
