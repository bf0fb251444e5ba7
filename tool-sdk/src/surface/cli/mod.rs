//! A whole command line for any program that links tools.
//!
//! [`main`] is all that a binary needs; [`run`] does the same without a process, for
//! tests and for hosts that have a command line of their own. The grammar is the same in
//! every such program:
//!
//! ```text
//! PROGRAM [--root DIR]… [--state-dir DIR] COMMAND
//!   list    [--json] [--scope S] [--category C] [--model M] [--agent A]
//!   show    NAME [--json]
//!   schema  [NAME…] [--format F] [--write DIR | --check DIR] [--lint] [--json]
//!   call    NAME [JSON | - | @FILE | --param value …] [--events] [--json]
//!   serve   mcp [--http ADDR]
//! ```
//!
//! Options of the program stand before or after the command. They may also come from
//! `TOOL_SDK_ROOT` (folders, separated as in `PATH`) and `TOOL_SDK_STATE_DIR`; the
//! command line wins.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | the tool failed; schema files are out of date; a finding of `--lint` |
//! | 2 | wrong usage, invalid arguments, no such tool, a root that cannot be opened |
//! | 3 | denied |
//! | 4 | timed out or aborted |
//!
//! With `--json`, standard output holds one JSON value and nothing else.
//!
//! **Invariant:** no tool's name is known here, and standard input, output and the
//! environment are only touched through [`Io`].

mod audience;
mod call;
mod exit;
mod flag;
mod grammar;
mod input;
mod list;
mod place;
mod schema;
#[cfg(feature = "mcp")]
mod serve;
#[cfg(not(feature = "mcp"))]
#[path = "serve_nothing.rs"]
mod serve;
mod show;
mod style;
#[cfg(test)]
mod toy;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;

use self::exit::{Failure, UntilClosed};
use crate::registry::Registry;

/// What a command line reads and writes.
///
/// # Examples
///
/// ```
/// use std::path::PathBuf;
/// use tool_sdk::{Registry, cli};
///
/// let (mut out, mut err) = (Vec::new(), Vec::new());
/// let mut io = cli::Io {
///     stdin: &mut std::io::empty(),
///     stdout: &mut out,
///     stderr: &mut err,
///     terminal: false,
///     env: &|_| None,
///     current_dir: PathBuf::from("."),
/// };
/// let code = cli::run(Registry::default(), ["tools", "list", "--json"].map(Into::into), &mut io);
///
/// assert_eq!(code, 0);
/// assert_eq!(out, b"[]\n");
/// ```
pub struct Io<'a> {
    /// Where `-` reads arguments from.
    pub stdin: &'a mut dyn Read,
    /// Where results go.
    pub stdout: &'a mut dyn Write,
    /// Where errors, events and remarks go.
    pub stderr: &'a mut dyn Write,
    /// Whether `stdout` is a terminal, which may show colours.
    pub terminal: bool,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// The folder that relative paths on the command line start from.
    pub current_dir: PathBuf,
}

impl Io<'_> {
    /// A variable of the environment; an empty one is not set.
    fn var(&self, name: &str) -> Option<OsString> {
        (self.env)(name).filter(|value| !value.is_empty())
    }

    /// A path of the command line.
    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.current_dir.join(path)
    }

    /// Tells people something. That nobody listens is not a failure.
    fn say(&mut self, line: impl fmt::Display) {
        let _ = writeln!(self.stderr, "{line}");
    }
}

impl fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io")
            .field("terminal", &self.terminal)
            .field("current_dir", &self.current_dir)
            .finish_non_exhaustive()
    }
}

/// Runs the command line of this process with every tool that is linked into it.
///
/// # Examples
///
/// The whole `main.rs` of a program of tools:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// // The crates that have the tools.
/// tool_sdk::link!(tool_sdk);
///
/// fn main() -> ExitCode {
///     tool_sdk::cli::main()
/// }
/// ```
#[must_use]
pub fn main() -> ExitCode {
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    let mut stderr = io::stderr();
    let terminal = stdout.is_terminal();
    let mut io = Io {
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
        terminal,
        env: &|name| std::env::var_os(name),
        current_dir: std::env::current_dir().unwrap_or_default(),
    };
    match Registry::linked() {
        Ok(registry) => run(registry, std::env::args_os(), &mut io).into(),
        Err(conflicts) => {
            io.say(format_args!("error: {conflicts}"));
            exit::FAILED.into()
        }
    }
}

/// Runs one command line, the program's name first, and gives back its exit code.
///
/// `call` starts a runtime of its own, so this is not for async code.
pub fn run(registry: Registry, args: impl IntoIterator<Item = OsString>, io: &mut Io<'_>) -> u8 {
    let mut args = args.into_iter();
    let program = program_name(args.next());
    let args: Vec<OsString> = args.collect();
    let json = args.iter().any(|word| word == "--json");
    let mut stdout = UntilClosed::new(io.stdout);
    let mut io = Io {
        stdin: io.stdin,
        stdout: &mut stdout,
        stderr: io.stderr,
        terminal: io.terminal,
        env: io.env,
        current_dir: io.current_dir.clone(),
    };
    let result = grammar::command(&program)
        .try_get_matches_from(args)
        .map_err(Failure::from)
        .and_then(|matches| dispatch(&program, registry, &matches, &mut io));
    exit::finish(result, json, &mut io)
}

fn dispatch(
    program: &str,
    registry: Registry,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> exit::Result {
    match matches.subcommand() {
        Some(("list", sub)) => list::run(registry, sub, io),
        Some(("show", sub)) => show::run(program, registry, sub, io),
        Some(("schema", sub)) => schema::run(program, registry, sub, io),
        Some(("call", sub)) => call::run(program, registry, matches, sub, io),
        Some(("serve", sub)) => serve::run(program, registry, [matches, sub], io),
        _ => {
            Err(Failure::usage("a command is missing").hint(format_args!("try `{program} --help`")))
        }
    }
}

/// The name under which the program was started, without folder and extension.
fn program_name(first: Option<OsString>) -> String {
    first
        .as_deref()
        .map(Path::new)
        .and_then(Path::file_stem)
        .map(OsStr::to_string_lossy)
        .filter(|name| !name.is_empty())
        .map_or_else(|| "tools".to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::toy::{Ran, run};
    use super::*;

    #[track_caller]
    fn check_code(args: &[&str], expected: u8) -> Ran {
        let ran = run(args);
        assert_eq!(ran.code, expected, "{args:?}: {} {}", ran.out, ran.err);
        ran
    }

    #[test]
    fn the_program_is_called_what_it_was_started_as() {
        assert_eq!(program_name(Some("/usr/bin/my-tools".into())), "my-tools");
        assert_eq!(program_name(Some("tools.exe".into())), "tools");
        assert_eq!(program_name(None), "tools");
    }

    #[test]
    fn wrong_usage_is_code_2_and_leaves_stdout_empty() {
        for args in [&[][..], &["nonsense"], &["list", "--nonsense"], &["call"], &["show"]] {
            let ran = check_code(args, 2);
            assert_eq!(ran.out, "");
            assert!(!ran.err.is_empty());
        }
    }

    #[test]
    fn with_json_every_failure_is_one_json_value() {
        for args in [
            &["show", "nope", "--json"][..],
            &["schema", "nope", "--json"],
            &["schema", "--format", "bogus", "--json"],
            &["list", "extra", "--json"],
            &["call", "nope", "{}", "--json"],
        ] {
            let ran = check_code(args, 2);
            let value: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!(value["ok"], false, "{args:?}");
            assert!(value["error"]["message"].is_string(), "{value}");
        }
    }

    // An option that is accepted and does nothing would let a call through that its user
    // meant to stop.
    #[test]
    fn options_that_guard_are_refused_until_they_do_something() {
        for option in
            ["--allow=x", "--ask=x", "--deny=x", "--mode=plan", "--yes", "--no-input", "--config=f"]
        {
            check_code(&[option, "list"], 2);
            check_code(&["call", "echo", option], 2);
            check_code(&["call", option, "echo"], 2);
        }
        for command in ["check", "batch", "approvals", "doctor"] {
            check_code(&[command], 2);
        }
    }

    #[test]
    fn help_is_a_result() {
        for args in [&["--help"][..], &["list", "--help"], &["call", "--help"], &["help", "call"]] {
            let ran = check_code(args, 0);
            assert!(ran.out.contains("Usage:"), "{}", ran.out);
            assert_eq!(ran.err, "");
        }
    }

    #[test]
    fn a_reader_that_leaves_is_no_failure() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let mut err = Vec::new();
        let mut io = Io {
            stdin: &mut io::empty(),
            stdout: &mut Closed,
            stderr: &mut err,
            terminal: false,
            env: &|_| None,
            current_dir: PathBuf::new(),
        };
        let code = super::run(toy::registry(), ["toy", "list"].map(Into::into), &mut io);
        assert_eq!((code, err.as_slice()), (0, &b""[..]));
    }
}
