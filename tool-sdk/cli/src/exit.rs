//! Exit codes, and how errors of a command are reported.

use std::error::Error as _;
use std::fmt;
use std::io::{self, Write};

use serde_json::{Value, json};
use tool_sdk_core::{ErrorKind, Output, ToolError};

use super::args::UNBREAKABLE;
use super::{Io, style};

/// The tool failed, or a check found a problem.
pub(super) const FAILED: u8 = 1;
/// Wrong usage or invalid arguments.
pub(super) const USAGE: u8 = 2;
/// A rule, a hook or the user denied the call.
pub(super) const DENIED: u8 = 3;
/// Timed out or aborted.
pub(super) const ENDED_EARLY: u8 = 4;

/// The exit code of a command, or the error that prevented it.
pub(super) type Result<T = u8> = std::result::Result<T, CommandError>;

/// Returns the exit code for a failed call.
pub(super) fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidArgs => USAGE,
        ErrorKind::Denied | ErrorKind::Unauthorized => DENIED,
        ErrorKind::Timeout | ErrorKind::Aborted => ENDED_EARLY,
        ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::Unavailable
        | ErrorKind::Config
        | ErrorKind::Failed
        | ErrorKind::Internal => FAILED,
    }
}

/// Returns the exit code for the result of a call: that of a failure if the tool ran a command that
/// failed, which is `exit_code` in the metadata.
pub(super) fn output_exit_code(output: &Output) -> u8 {
    let code = output.metadata_map().and_then(|metadata| metadata.get("exit_code")?.as_i64());
    match code {
        None | Some(0) => 0,
        Some(_) => FAILED,
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(super) enum CommandError {
    /// An error that is reported to the user.
    Reported { code: u8, error: ToolError },
    /// Help, or a usage error of clap.
    Clap(clap::Error),
    /// Standard output could not be written.
    Output(io::Error),
}

impl CommandError {
    pub(super) fn new(code: u8, error: ToolError) -> Self {
        Self::Reported { code, error }
    }

    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self::new(USAGE, ToolError::invalid_args(message))
    }

    /// Creates an error of the configuration, without which the command must not run.
    pub(super) fn config(message: impl fmt::Display) -> Self {
        Self::new(USAGE, ToolError::config(message))
    }

    /// Adds a hint that says what to do instead.
    pub(super) fn hint(self, hint: impl fmt::Display) -> Self {
        match self {
            Self::Reported { code, error } => Self::Reported { code, error: error.hint(hint) },
            other => other,
        }
    }
}

impl CommandError {
    /// Returns the exit code and the error. Help output and write errors are returned unchanged
    /// as `Err`.
    pub(super) fn into_tool_error(self) -> Result<(u8, ToolError)> {
        match self {
            Self::Reported { code, error } => Ok((code, error)),
            Self::Clap(usage) if usage.use_stderr() => {
                let text = usage.to_string();
                let end =
                    ["\n\nUsage:", "\n\nFor more"].into_iter().filter_map(|it| text.find(it)).min();
                let words = text[..end.unwrap_or(text.len())].trim();
                let words = words.strip_prefix("error: ").unwrap_or(words);
                Ok((USAGE, ToolError::invalid_args(words)))
            }
            other => Err(other),
        }
    }
}

impl CommandError {
    /// Returns why the command failed, for callers that are not a command line.
    #[cfg(feature = "agent")]
    pub(super) fn into_cause(self) -> ToolError {
        match self.into_tool_error() {
            Ok((_, error)) => error,
            Err(_) => ToolError::failed("the command failed"),
        }
    }
}

/// Returns an error as JSON.
pub(super) fn error_json(error: &ToolError) -> Value {
    let mut report = json!({
        "kind": error.kind(),
        "message": error.message(),
        "recoverable": error.kind().is_recoverable(),
    });
    if let Some(hint) = error.suggestion() {
        report["hint"] = hint.into();
    }
    report
}

impl From<clap::Error> for CommandError {
    fn from(error: clap::Error) -> Self {
        Self::Clap(error)
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Formats an error together with its source.
pub(super) fn with_cause(error: &(dyn std::error::Error + 'static)) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Reports a result, an error as one JSON value with `json`, and returns the exit code.
pub(super) fn report_result(result: Result, json: bool, io: &mut Io<'_>) -> u8 {
    let result = match result {
        Err(failure) if json => failure.into_tool_error().and_then(|(code, error)| {
            writeln!(io.stdout, "{}", json!({ "ok": false, "error": error_json(&error) }))?;
            Ok(code)
        }),
        result => result,
    };
    let result = result.and_then(|code| Ok(io.stdout.flush().map(|()| code)?));
    match result {
        Ok(code) => code,
        Err(CommandError::Reported { code, error }) => {
            io.print_stderr(format_args!("error: {}", style::sanitize_text(&error.to_string())));
            if let Some(cause) = config_cause(&error) {
                io.print_stderr(format_args!("cause: {}", style::sanitize_text(&cause)));
            }
            code
        }
        Err(CommandError::Clap(error)) if error.use_stderr() => {
            let _ = io.stderr.write_all(render_clap_error(&error).as_bytes());
            USAGE
        }
        Err(CommandError::Clap(help)) => {
            match io.stdout.write_all(render_clap_error(&help).as_bytes()) {
                Ok(()) => 0,
                Err(error) => report_write_error(&error, io),
            }
        }
        Err(CommandError::Output(error)) => report_write_error(&error, io),
    }
}

/// Renders help or a usage error of clap.
fn render_clap_error(words: &clap::Error) -> String {
    words.to_string().replace(UNBREAKABLE, " ")
}

/// Returns the source of a configuration error, which the user can fix. Sources of other errors
/// may hold private details of a tool and are not printed.
fn config_cause(error: &ToolError) -> Option<String> {
    let cause = error.source().filter(|_| error.kind() == ErrorKind::Config)?.to_string();
    Some(cause).filter(|cause| !error.message().contains(cause.as_str()))
}

fn report_write_error(error: &io::Error, io: &mut Io<'_>) -> u8 {
    io.print_stderr(format_args!("error: cannot write the output: {error}"));
    FAILED
}

/// A writer that ignores a closed pipe, as with `| head`: later output is dropped, and the exit
/// code still describes the command.
pub(super) struct BrokenPipeWriter<'a> {
    inner: &'a mut dyn Write,
    is_closed: bool,
}

impl<'a> BrokenPipeWriter<'a> {
    pub(super) fn new(inner: &'a mut dyn Write) -> Self {
        Self { inner, is_closed: false }
    }

    fn write_or_drop<T>(
        &mut self,
        dropped: T,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.is_closed {
            return Ok(dropped);
        }
        match write(self.inner) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(dropped)
            }
            done => done,
        }
    }
}

impl Write for BrokenPipeWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_or_drop(bytes.len(), |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_or_drop((), |to| to.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_kind_has_an_exit_code() {
        for kind in ErrorKind::ALL {
            let expected = match kind.as_str() {
                "invalid_args" => 2,
                "denied" | "unauthorized" => 3,
                "timeout" | "aborted" => 4,
                _ => 1,
            };
            assert_eq!(exit_code(kind), expected, "{kind}");
        }
    }
}
