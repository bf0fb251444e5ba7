//! The command line interface of every program that links tools.
//!
//! [`main`] is all that a binary needs; [`App`] is for programs that give their tools state of
//! their own, and [`run`] does the same without a process, for tests and for hosts that already
//! have a command line. The commands and options are the same in every such program:
//!
//! ```text
//! PROGRAM [--root DIR]… [--allow RULE]… [--ask RULE]… [--deny RULE]… [--mode MODE]
//!         [--yes | --no-input] [--safe-commands | --no-safe-commands]
//!         [--sandbox MODE] [--sandbox-level LEVEL]
//!         [--disable GROUP]… [--secrets-command WORDS] [--config FILE] [--state-dir DIR] [--color WHEN] [--verbose] COMMAND
//!   list    [--json] [--scope S] [--category C] [--model M] [--agent A] [--tools FILE]
//!   show    NAME… [--json]
//!   schema  [NAME…] [--format F] [--write DIR | --check DIR] [--lint] [--json]
//!   call    NAME [JSON | - | @FILE | --param value …] [--events] [--json] [--save DIR]
//!   check   NAME [JSON | - | @FILE | --param value …] [--json]
//!   batch   [FILE | -] [--events] [--json]
//!   approvals  list [--json] | revoke ID
//!   rules   list [--scope S] [--json]
//!   secrets set NAME [--plain] | list [--json] | remove NAME
//!   serve   mcp [--http ADDR | --http unix:PATH] [--roots-from-client]
//!           http [ADDR | PORT | unix:PATH]
//!           acp [--model PROVIDER/NAME] [--model-url URL]
//!           nats --url URL --namespace NAME [--permit-key FILE] [--credentials FILE] [--tls-ca FILE] [--max-calls N]
//!   chat    [--model PROVIDER/NAME] [--model-url URL] [--resume [ID]] [--print PROMPT [--output FORMAT]]
//!   token   create --scope S… [--principal NAME] [--json] | list [--json] | revoke ID
//!   mcp     list [--json] | inspect NAME [--json] | remove NAME
//!           add NAME [--sandbox MODE] [--sandbox-level LEVEL] [--sandbox-network] -- COMMAND …
//!           add NAME --url URL [--trust-annotations] | import [CLIENT | FILE]
//!           login NAME [--no-browser] | logout NAME
//!           resources [NAME] | prompts [NAME] | read NAME URI
//!           pack [PROGRAM] --author NAME [--download-url URL]
//!   state   show [--json] | backup FILE | export | prune --older-than TIME | end-plan
//!   sessions  list [--json] | show ID [--json] | export ID
//!   memory  list [WORDS] [--json] | import DIR | export DIR
//!   agents  list [--json] | show NAME [--json]
//!   trust   [DIR] | list [--json] | remove [DIR]
//!   new     crate NAME | plugin NAME
//!   workers list [--json] | stats [--json] | inspect NAMESPACE [TOOL…] [--json] | trust NAMESPACE [TOOL…] | drain ID
//!   setup   CLIENT [--acp] [--write] [--project] [--name NAME]
//!   doctor  [--self-test] [--json]
//!   completions SHELL
//!   man     DIR
//! ```
//!
//! Program options are accepted before and after the command. They may also come from
//! environment variables and from a configuration file; the command line takes precedence. The
//! chapter on the command line in the guide, in the folder of this package, documents each option.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | the tool failed; schema files are out of date; `--lint` or `doctor` found a problem |
//! | 2 | wrong usage, invalid arguments, unknown tool, unreadable root or configuration |
//! | 3 | denied |
//! | 4 | timed out or aborted |
//!
//! With `--json`, standard output holds one JSON value and nothing else.
//!
//! **Invariant:** no tool is known by name here, and standard input, standard output and the
//! environment are only accessed through [`Io`].

#![forbid(unsafe_code)]

#[cfg(feature = "acp")]
mod acp;
#[cfg(not(feature = "acp"))]
#[path = "acp_disabled.rs"]
mod acp;
#[cfg(feature = "agent")]
mod agents;
mod app;
mod approvals;
mod args;
mod attachments;
mod batch;
mod call;
mod call_environment;
mod call_request;
#[cfg(feature = "agent")]
mod chat;
#[cfg(not(feature = "agent"))]
#[path = "chat_disabled.rs"]
mod chat;
mod check;
mod command_words;
#[cfg(any(feature = "agent", feature = "store"))]
mod conversation_title;
mod doctor;
mod event_printer;
mod exit;
mod filters;
mod flag;
#[cfg(feature = "store")]
mod imported_conversations;
mod input;
mod json_output;
mod list;
#[cfg(feature = "mcp")]
mod listen_address;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(not(feature = "mcp"))]
#[path = "mcp_disabled.rs"]
mod mcp;
#[cfg(feature = "store")]
mod memory;
#[cfg(feature = "store")]
mod memory_file;
mod new_project;
mod plugins;
#[cfg(feature = "mcp")]
mod principals;
#[cfg(all(feature = "http", feature = "store"))]
mod recorded_history;
mod rules;
mod run_loop;
mod schema;
mod secrets;
#[cfg(feature = "mcp")]
mod serve;
#[cfg(not(feature = "mcp"))]
#[path = "serve_disabled.rs"]
mod serve;
#[cfg(feature = "http")]
mod serve_http;
#[cfg(feature = "remote")]
mod serve_nats;
#[cfg(feature = "store")]
mod sessions;
mod settings;
#[cfg(feature = "mcp")]
mod setup;
#[cfg(not(feature = "mcp"))]
#[path = "setup_disabled.rs"]
mod setup;
mod shell_files;
mod show;
mod signals;
#[cfg(feature = "store")]
mod state;
#[cfg(feature = "store")]
mod state_store;
#[cfg(not(feature = "store"))]
#[path = "state_store_disabled.rs"]
mod state_store;
mod style;
mod terminal;
#[cfg(test)]
mod test_support;
#[cfg(feature = "http")]
mod token;
#[cfg(feature = "http")]
mod token_file;
mod tool_args;
mod tool_commands;
mod trust;
#[cfg(unix)]
mod tty;
mod usage_hints;
#[cfg(feature = "remote")]
mod workers;
#[cfg(not(feature = "remote"))]
#[path = "workers_disabled.rs"]
mod workers;

use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use tool_sdk_core::Registry;
use tracing::Level;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub use self::app::App;
#[cfg(feature = "agent")]
pub use self::chat::ConversationTask;
pub use self::terminal::Console;
pub use self::tool_commands::ToolSubcommand;

/// The streams, terminal and environment that a command line uses.
///
/// # Examples
///
/// ```
/// use std::path::PathBuf;
/// use tool_sdk::{Registry, cli};
///
/// let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
/// let mut io = cli::Io::new(&mut stdin, &mut out, &mut err);
/// io.current_dir = PathBuf::from("/tmp");
/// let code = cli::run(Registry::default(), ["tools", "list", "--json"].map(Into::into), &mut io);
///
/// assert_eq!(code, 0);
/// assert_eq!(out, b"[]\n");
/// ```
#[non_exhaustive]
pub struct Io<'a> {
    /// The stream from which the argument `-` is read.
    pub stdin: &'a mut dyn Read,
    /// The stream for results.
    pub stdout: &'a mut dyn Write,
    /// The stream for errors, warnings and events.
    pub stderr: &'a mut dyn Write,
    /// Whether `stdin` is a terminal, so that a server says what it waits for.
    pub stdin_is_terminal: bool,
    /// Whether `stdout` is a terminal, so that colours may be used.
    pub stdout_is_terminal: bool,
    /// Whether `stderr` is a terminal, so that the progress of calls may be shown.
    pub stderr_is_terminal: bool,
    /// The width of the terminal in columns, if there is one; help is wrapped to it.
    pub columns: Option<u16>,
    /// The terminal for approval prompts and forms; without it the user is never prompted.
    pub console: Option<Arc<dyn Console>>,
    /// Returns the value of an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// The folder to which relative paths on the command line are resolved.
    pub current_dir: PathBuf,
    /// The path of the program, by which another program can start it; its name if not known.
    pub program_path: Option<PathBuf>,
    /// When colours are used, from the options and the environment of the command line.
    color: style::ColorChoice,
    /// Starts to print the events of `tracing`, with `--verbose`. Only a process of its own has one,
    /// because a process has one subscriber.
    log_setup: Option<fn()>,
}

impl<'a> Io<'a> {
    /// Creates an `Io` without a terminal and without a console, with an empty environment, in
    /// the current folder.
    #[must_use]
    pub fn new(
        stdin: &'a mut dyn Read,
        stdout: &'a mut dyn Write,
        stderr: &'a mut dyn Write,
    ) -> Self {
        Self {
            stdin,
            stdout,
            stderr,
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            columns: None,
            console: None,
            env: &|_| None,
            current_dir: PathBuf::from("."),
            program_path: None,
            color: style::ColorChoice::Auto,
            log_setup: None,
        }
    }
}

impl Io<'_> {
    /// Returns the line width for help: the terminal's, limited to 40 to 100 columns; 80 by default.
    fn help_width(&self) -> usize {
        self.columns.map_or(80, |columns| columns.clamp(40, 100).into())
    }

    /// Returns an environment variable; an empty one counts as not set.
    fn env_var(&self, name: &str) -> Option<OsString> {
        (self.env)(name).filter(|value| !value.is_empty())
    }

    /// Resolves a path of the command line to the current folder.
    fn resolve_path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.current_dir.join(path)
    }

    /// Writes a line to standard error, with a coloured `error:`, `warning:` or `hint:`. Write
    /// errors are ignored.
    fn print_stderr(&mut self, line: impl fmt::Display) {
        let line = line.to_string();
        let line = style::TextStyle::for_stderr(self).message(&line);
        let _ = writeln!(self.stderr, "{line}");
    }
}

impl fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io")
            .field("terminal", &self.stdout_is_terminal)
            .field("current_dir", &self.current_dir)
            .finish_non_exhaustive()
    }
}

/// Runs the command line of this process with every tool that is linked into it.
///
/// # Examples
///
/// The complete `main.rs` of a program with tools:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// // The crates that define the tools.
/// tool_sdk::link!(tool_sdk);
///
/// fn main() -> ExitCode {
///     tool_sdk::cli::main()
/// }
/// ```
#[must_use]
pub fn main() -> ExitCode {
    App::linked().main()
}

/// Runs one command line, whose first item is the program's name, and returns its exit code.
///
/// Starts its own async runtime, so it must not be called from async code.
pub fn run(registry: Registry, args: impl IntoIterator<Item = OsString>, io: &mut Io<'_>) -> u8 {
    App::new(registry).run(args, io)
}

/// Prints the events of `tracing` on standard error from now on: those of this workspace up to the
/// level `debug`, and warnings of other crates, whose details could hold secrets.
fn start_logs() {
    let ours = Targets::new().with_target("tool_", Level::DEBUG).with_default(Level::WARN);
    let lines = tracing_subscriber::fmt::layer()
        .without_time()
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .with_filter(ours);
    // Fails if the program has a subscriber of its own, which then gets the events.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

/// Returns the width of the terminal of this process.
#[cfg(unix)]
fn terminal_columns() -> Option<u16> {
    tty::process_columns()
}

/// The terminal width is only known on Unix.
#[cfg(not(unix))]
fn terminal_columns() -> Option<u16> {
    None
}

/// Returns the terminal of this process, if it is interactive.
#[cfg(unix)]
fn process_console(is_dumb: bool) -> Option<Arc<dyn Console>> {
    tty::open_process_tty(is_dumb).map(|tty| Arc::new(tty) as _)
}

/// Outside Unix typed-ahead input cannot be discarded, so the user is never prompted.
#[cfg(not(unix))]
fn process_console(_: bool) -> Option<Arc<dyn Console>> {
    None
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::test_support::{CliOutput, run};
    use super::*;

    #[track_caller]
    fn check_code(args: &[&str], expected: u8) -> CliOutput {
        let ran = run(args);
        assert_eq!(ran.code, expected, "{args:?}: {} {}", ran.out, ran.err);
        ran
    }

    #[test]
    fn wrong_usage_is_code_2_and_leaves_stdout_empty() {
        for args in [
            &[][..],
            &["nonsense"],
            &["help", "call", "nonsense"],
            &["list", "--nonsense"],
            &["call"],
            &["show"],
        ] {
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

    #[test]
    fn every_command_rejects_invalid_options() {
        for command in [
            &["list"][..],
            &["show", "echo"],
            &["schema"],
            &["call", "echo", "--text", "x"],
            &["check", "echo", "--text", "x"],
            &["batch"],
            &["approvals", "list"],
            &["doctor"],
            #[cfg(feature = "mcp")]
            &["mcp", "list"],
            #[cfg(feature = "mcp")]
            &["serve", "mcp"],
            #[cfg(feature = "mcp")]
            &["setup", "cursor"],
        ] {
            for (wrong, words) in [
                (["--root", "/no/such/folder"], "/no/such/folder"),
                (["--config", "/no/such/file"], "/no/such/file"),
                (["--allow", "a(b"], "is not a rule"),
                (["--mode", "fast"], "invalid value 'fast'"),
            ] {
                let ran = check_code(&[command, &wrong].concat(), 2);
                assert!(ran.err.contains(words), "{command:?} {wrong:?}: {}", ran.err);
                assert_eq!(ran.out, "", "{command:?} {wrong:?}");
            }
        }
    }

    // `--help` always prints text and succeeds.
    #[test]
    fn help_is_text_also_with_json() {
        for args in [
            &["--help", "--json"][..],
            &["list", "--json", "--help"],
            &["call", "echo", "--json", "--help"],
            &["call", "--json", "echo", "-h"],
        ] {
            let ran = run(args);
            let tail = ran.out.contains("Usage:");
            assert_eq!((ran.code, tail, ran.err.as_str()), (0, true, ""), "{args:?}: {}", ran.out);
        }
    }

    #[test]
    fn help_is_a_result() {
        for args in [
            &["--help"][..],
            &["list", "--help"],
            &["call", "--help"],
            &["check", "--help"],
            &["batch", "--help"],
            &["doctor", "--help"],
            &["help", "call"],
            &["help", "call", "echo"],
            &["help", "check", "say"],
            &["--mode", "auto", "--yes", "help", "call", "echo"],
            &["help", "call", "echo", "--mode", "auto"],
        ] {
            let ran = check_code(args, 0);
            assert!(ran.out.contains("Usage:"), "{}", ran.out);
            assert_eq!(ran.err, "");
        }
    }

    #[test]
    fn help_fits_into_the_terminal() {
        for (columns, width) in [(None, 80), (Some(60), 60), (Some(200), 100)] {
            let setting = test_support::TestCli { columns, ..test_support::TestCli::default() };
            for args in [
                &["--help"][..],
                &["schema", "--help"],
                &["call", "echo", "--help"],
                &["check", "kinds", "--help"],
                &["batch", "--help"],
            ] {
                let ran = setting.run(args);
                // Single words and example commands are not wrapped.
                let is_long = |line: &&str| line.chars().count() > width;
                let is_whole = |line: &&str| line.contains("toy ") || !line.trim().contains(' ');
                let long = ran.out.lines().filter(is_long).find(|line| !is_whole(line));
                assert_eq!(long, None, "{args:?} {columns:?}");
            }
        }
    }

    // A shell alias may already contain the switch.
    #[test]
    fn a_switch_may_be_given_twice() {
        for args in [&["list", "--json", "--json"][..], &["call", "kinds", "--yes", "--yes"]] {
            check_code(args, 0);
        }
    }

    #[test]
    fn a_closed_stdout_is_not_a_failure() {
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
        let (mut stdin, mut out) = (io::empty(), Closed);
        let mut io = Io::new(&mut stdin, &mut out, &mut err);
        let code =
            super::run(test_support::test_registry(), ["toy", "list"].map(Into::into), &mut io);
        assert_eq!((code, err.as_slice()), (0, &b""[..]));
    }
}
