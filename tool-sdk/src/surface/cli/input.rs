//! Where the arguments of a call come from: JSON, standard input, a file, or flags.
//!
//! **Invariant:** JSON goes on as it was written. Whether it is good is decided in one
//! place, by the pipeline.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;

use clap::ArgMatches;

use super::exit::{Failure, Result};
use super::flag::Flag;
use super::{Io, grammar};
use crate::escape::json_string;

/// The most bytes that are read. The pipeline's own limit is lower and has better words;
/// this one only ends what would never end.
const MAX_BYTES: u64 = 16 << 20;

/// The arguments of a call as JSON text; `{}` when there are none.
pub(super) fn arguments(
    flags: &[Flag<'_>],
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result<String> {
    match matches.get_one::<OsString>(grammar::ARGUMENTS) {
        Some(given) => from_text(given, io),
        None => Ok(from_flags(flags, matches)),
    }
}

fn from_text(given: &OsString, io: &mut Io<'_>) -> Result<String> {
    let Some(text) = given.to_str() else {
        return Err(Failure::usage("the arguments are not UTF-8")
            .hint("send them through standard input, with `-`"));
    };
    if text == "-" {
        return self::text(&mut *io.stdin, "standard input", MAX_BYTES);
    }
    let Some(path) = text.strip_prefix('@') else {
        return Ok(text.to_owned());
    };
    let mut file = File::open(io.path(path))
        .map_err(|error| Failure::usage(format_args!("cannot open `{path}`: {error}")))?;
    self::text(&mut file, path, MAX_BYTES)
}

/// Everything that there is to read, as text.
pub(super) fn text(from: &mut dyn Read, name: &str, most: u64) -> Result<String> {
    String::from_utf8(bytes(from, name, most)?)
        .map_err(|_| Failure::usage(format_args!("{name} is not UTF-8")))
}

/// Everything that there is to read; more than `most` is wrong usage.
pub(super) fn bytes(from: &mut dyn Read, name: &str, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format_args!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > most {
        let limit = most >> 20;
        return Err(Failure::usage(format_args!("{name} is longer than {limit} MiB")));
    }
    Ok(bytes)
}

fn from_flags(flags: &[Flag<'_>], matches: &ArgMatches) -> String {
    let members: Vec<String> = flags
        .iter()
        .filter_map(|flag| Some(format!("{}:{}", json_string(flag.name), flag.value(matches)?)))
        .collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::{flag, toy};
    use super::*;

    fn parse(args: &[&str], stdin: &[u8], dir: &std::path::Path) -> Result<String> {
        let definition = toy::kinds();
        let flags = flag::flags(&definition);
        let matches = grammar::tool("toy", grammar::Verb::Call, &definition, &flags)
            .try_get_matches_from(args)
            .map_err(|error| flag::explain(error, &flags))?;
        let (mut stdin, mut out, mut err) = (stdin, Vec::new(), Vec::new());
        let mut io = Io::new(&mut stdin, &mut out, &mut err);
        io.current_dir = dir.to_owned();
        arguments(&flags, &matches, &mut io)
    }

    #[track_caller]
    fn check(args: &[&str], expected: &str) {
        assert_eq!(parse(args, b"", ".".as_ref()).unwrap(), expected, "{args:?}");
    }

    #[track_caller]
    fn check_refused(args: &[&str], stdin: &[u8], expected: &str) {
        let message = match parse(args, stdin, ".".as_ref()).unwrap_err() {
            Failure::Said { code: 2, error } => error.to_string(),
            Failure::Clap(error) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn values_become_what_the_schema_says() {
        check(&["--text", "5"], r#"{"text":"5"}"#);
        check(&["--text", "say \"hi\"\n"], r#"{"text":"say \"hi\"\n"}"#);
        check(&["--count", "5"], r#"{"count":5}"#);
        check(&["--count=-5"], r#"{"count":-5}"#);
        check(&["--count", "-5"], r#"{"count":-5}"#);
        check(&["--ratio", "1e3"], r#"{"ratio":1e3}"#);
        check(&["--tags", "a", "--tags=2"], r#"{"tags":["a","2"]}"#);
        check(&["--sizes", "1", "--sizes", "x"], r#"{"sizes":[1,"x"]}"#);
        check(&["--where", r#"{"a":1, "a":2}"#], r#"{"where":{"a":1, "a":2}}"#);
        check(&["--either", "7"], r#"{"either":7}"#);
        check(&["--either", "seven"], r#"{"either":"seven"}"#);
    }

    #[test]
    fn booleans_are_switches() {
        check(&["--loud"], r#"{"loud":true}"#);
        check(&["--loud=true"], r#"{"loud":true}"#);
        check(&["--loud=false"], r#"{"loud":false}"#);
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
    fn flags_are_spelled_with_dashes_or_as_the_parameter_is() {
        check(&["--dry-run"], r#"{"dry_run":true}"#);
        check(&["--dry_run"], r#"{"dry_run":true}"#);
        check(&["--arg-mode", "fast"], r#"{"mode":"fast"}"#);
    }

    #[test]
    fn json_goes_on_as_it_was_written() {
        check(&[], "{}");
        check(&[r#"{"a": 1, "a": 2}"#], r#"{"a": 1, "a": 2}"#);
        check(&["not json"], "not json");
        check(&[""], "");
        assert_eq!(parse(&["-"], b" {}\n", ".".as_ref()).unwrap(), " {}\n");
    }

    #[test]
    fn a_file_is_found_from_the_current_folder() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("args.json"), r#"{"text":"é"}"#).unwrap();
        assert_eq!(parse(&["@args.json"], b"", dir.path()).unwrap(), r#"{"text":"é"}"#);
        check_refused(&["@no-such-file"], b"", "cannot open `no-such-file`");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        check_refused(&["{}", "--text", "x"], b"", "cannot be used with");
        check_refused(&["--text", "a", "--text", "b"], b"", "cannot be used multiple times");
        check_refused(&["--txt", "a"], b"", "--text");
        check_refused(&["--mode", "fast"], b"", "the tool's own parameter is '--arg-mode'");
        check_refused(&["--text"], b"", "a value is required");
        check_refused(&["-"], b"\xff", "standard input is not UTF-8");
        check_refused(&["-"], &vec![b' '; (MAX_BYTES + 1) as usize], "longer than 16 MiB");
    }
}
