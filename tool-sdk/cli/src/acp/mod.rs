//! The command `serve acp`: the agent over the Agent Client Protocol, for editors.
//!
//! ```text
//! service           the methods of the protocol, on one connection
//! session           one session: its conversation, and the prompt that is being answered
//! line_stream       standard input and output as lines
//! session_opener    builds sessions, on the main thread
//! prompt_blocks     from the blocks of a prompt to a message of the user
//! update_queue      everything that a session reports, in the order in which it happened
//! tool_calls        from events of calls to tool calls of the protocol
//! diff_blocks       from unified diffs to diffs of the protocol
//! replay            from a stored conversation to updates
//! permission        approvals by the user of the editor
//! forms             forms of tools, for the user of the editor
//! modes             permission modes as session modes
//! ```
//!
//! Files are read and written through the workspace of the session, and commands are run by the
//! tools; the client's `fs` and `terminal` methods are not used, so that rules, approvals and the
//! sandbox hold for everything that the model does.
//!
//! **Invariant:** standard output carries the protocol and nothing else, and a lost connection
//! approves nothing.

mod diff_blocks;
mod forms;
mod line_stream;
mod modes;
mod permission;
mod prompt_blocks;
mod replay;
mod service;
mod session;
mod session_opener;
mod tool_calls;
mod update_queue;

use std::io;
use std::pin::pin;

use clap::{ArgMatches, Command};
use tokio::sync::mpsc;
use tool_sdk_mcp::internal::open_streams;

use self::service::AcpService;
use self::session_opener::SessionOpener;
use super::exit::Result;
use super::settings::Settings;
use super::{App, Io, args, chat, run_loop, signals, style};

/// Builds the clap command `serve acp`.
pub(super) fn build_command() -> Option<Command> {
    let command = Command::new("acp")
        .about("Serve the agent over the Agent Client Protocol, to the editor that starts it")
        .after_help(chat::MODEL_HELP)
        .args(chat::agent_args())
        .args(args::caller_args());
    Some(command)
}

/// Serves one editor until it closes standard input, or until a shutdown signal.
///
/// `levels` are the parsed options, from which each session resolves its own settings.
pub(super) fn run(
    app: &App,
    program: &str,
    settings: &Settings,
    levels: &[&ArgMatches],
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result<io::Result<()>> {
    // The user is prompted in the editor; the terminal of this process is not used.
    io.console = None;
    if io.stdin_is_terminal {
        io.print_stderr(format_args!(
            "waiting for an editor on standard input; Ctrl-C ends the agent\n\
             hint: editors start this command themselves: `{program} setup zed --acp` prints the \
             configuration of one"
        ));
    }
    let (requests, mut incoming) = mpsc::unbounded_channel();
    let service = AcpService::new(program, settings, requests);
    let mut opener = SessionOpener { app, program, levels, matches, io };
    run_loop::block_on(async move {
        let (input, output) = open_streams()?;
        let (lines, messages) = (line_stream::read_lines(input), line_stream::write_lines(output));
        let mut serving = pin!(service.serve(lines, messages));
        let mut interrupt = pin!(signals::wait_for_shutdown());
        loop {
            tokio::select! {
                biased;
                _ = &mut interrupt, if !service.is_closing() => service.start_closing(),
                served = &mut serving => {
                    return served.map_err(|error| io::Error::other(error.to_string()));
                }
                Some(request) = incoming.recv() => opener.answer(request).await,
            }
        }
    })
}

/// Prints a warning for the log of the editor.
fn print_warning(io: &mut Io<'_>, text: &str) {
    io.print_stderr(style::sanitize_text(&format!("warning: {text}")));
}
