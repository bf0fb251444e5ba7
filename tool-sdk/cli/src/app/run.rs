//! Parses the command line and runs one command; [`App::run_command`] is the table of commands.
//!
//! **Invariant:** a command runs only after all program options were parsed.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, Command};
use tool_sdk_core::Toolset;
use tool_sdk_process::{internal, sandbox};
use tool_sdk_workspace::internal::shut_down_writes;

use super::App;
use crate::command_words::{command_position, program_name, rewrite_help_command};
use crate::exit::{BrokenPipeWriter, CommandError};
use crate::mcp::{ConfiguredServers, ServerScope};
use crate::settings::Settings;
use crate::{
    Io, approvals, args, batch, call, chat, check, doctor, exit, filters, list, mcp, new_project,
    rules, schema, secrets, serve, setup, shell_files, show, style, trust, usage_hints,
};

/// How long the program waits at its end for file changes in progress.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The warning of a program without tools.
const NO_LINKED_TOOLS: &str = "warning: no tools are linked into this program; name the crate that \
                               has them with `tool_sdk::link!(the_crate);`";

impl App {
    /// Runs the command line of this process.
    ///
    /// When the process was started as a sandbox helper, it runs the helper instead.
    #[must_use]
    pub fn main(self) -> ExitCode {
        sandbox::run_helper_if_asked();
        // Best effort: without it, other processes of the user may still attach to this one.
        #[cfg(unix)]
        let _ = tool_sdk_process::harden_process();
        #[cfg(unix)]
        internal::raise_open_files_limit();
        tool_sdk_process::restore_sigchld();
        internal::deny_memory_access();
        let (mut stdin, mut stdout, mut stderr) = (io::stdin(), io::stdout().lock(), io::stderr());
        let (terminal, live) = (stdout.is_terminal(), stderr.is_terminal());
        let mut io = Io {
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout_is_terminal: terminal,
            stderr_is_terminal: live,
            env: &|name| std::env::var_os(name),
            current_dir: std::env::current_dir().unwrap_or_default(),
            program_path: std::env::current_exe().ok(),
            columns: crate::terminal_columns(),
            ..Io::new(&mut stdin, &mut stdout, &mut stderr)
        };
        io.log_setup = Some(crate::start_logs);
        io.console = crate::process_console(style::is_dumb_terminal(&io));
        let code = self.run(std::env::args_os(), &mut io);
        // Abandoned work must not leave a file partly written.
        shut_down_writes(SHUTDOWN_TIMEOUT);
        code.into()
    }

    /// Runs one command line, whose first item is the program's name, and returns its exit code.
    ///
    /// Starts its own async runtime, so it must not be called from async code.
    pub fn run(&self, args: impl IntoIterator<Item = OsString>, io: &mut Io<'_>) -> u8 {
        let mut args = args.into_iter();
        let program = program_name(args.next());
        let args = self.rewrite_tool_commands(args.collect(), &program);
        let args = rewrite_help_command(args, &args::program_command(&program));
        let json = args.iter().any(|word| word == "--json");
        let color = style::ColorChoice::from_words(&args, io);
        let mut stdout = BrokenPipeWriter::new(io.stdout);
        let mut io = Io {
            stdin_is_terminal: io.stdin_is_terminal,
            stdout_is_terminal: io.stdout_is_terminal,
            stderr_is_terminal: io.stderr_is_terminal,
            columns: io.columns,
            env: io.env,
            current_dir: io.current_dir.clone(),
            program_path: io.program_path.clone(),
            color,
            log_setup: io.log_setup,
            console: io.console.clone(),
            ..Io::new(io.stdin, &mut stdout, io.stderr)
        };
        let result = match &self.conflicts {
            Some(conflicts) => {
                Err(CommandError::new(exit::FAILED, tool_sdk_core::ToolError::config(conflicts)))
            }
            None => self
                .build_command(&program)
                .term_width(io.help_width())
                .try_get_matches_from(args)
                .map_err(|error| {
                    let tools = || self.base_toolset();
                    usage_hints::add_suggestion(error, &program, tools).into()
                })
                .and_then(|matches| self.run_command(&program, &matches, &mut io)),
        };
        self.warn_of_plugins(&mut io);
        exit::report_result(result, json, &mut io)
    }

    fn build_command(&self, program: &str) -> Command {
        // The names and parameters of tools, which no callback changes.
        let tools = Toolset::new(self.registry.clone());
        let own = self.tool_commands.iter().map(|commands| commands.build_command(&tools));
        let command = args::program_command(program).subcommands(own);
        match self.version {
            Some(version) => command.version(version),
            None => command,
        }
    }

    fn run_command(&self, program: &str, matches: &ArgMatches, io: &mut Io<'_>) -> exit::Result {
        if self.is_linked && self.base_toolset().is_empty() {
            io.print_stderr(NO_LINKED_TOOLS);
        }
        match matches.subcommand() {
            // Their options go on after the name of the tool.
            Some(("call", sub)) => return call::run(self, program, matches, sub, io),
            Some(("check", sub)) => return check::run(self, program, matches, sub, io),
            Some(("completions", sub)) => {
                let (command, tools) = (self.build_command(program), self.base_toolset());
                return shell_files::print_completions(command, program, &tools, sub, io);
            }
            Some(("man", sub)) => {
                return shell_files::write_manual(self.build_command(program), sub, io);
            }
            _ => {}
        }
        let settings = &self.load_settings(&args::option_levels(matches), io)?;
        match matches.subcommand() {
            Some(("list", sub)) => {
                list::run(self.listed_toolset(settings, ServerScope::All, sub, io)?, sub, io)
            }
            Some(("show", sub)) => {
                let need = match *show::requested_names(sub) {
                    [name] => ServerScope::Tool(name),
                    _ => ServerScope::All,
                };
                show::run(program, self.listed_toolset(settings, need, sub, io)?, sub, io)
            }
            Some(("schema", sub)) => {
                let tools = self.listed_toolset(settings, ServerScope::All, sub, io)?;
                schema::run(self, program, tools, sub, io)
            }
            Some(("approvals", sub)) => approvals::run(settings, sub, io),
            Some(("secrets", sub)) => secrets::run(settings, sub, io),
            #[cfg(feature = "agent")]
            Some(("agents", sub)) => crate::agents::run(self, settings, sub, io),
            Some(("trust", sub)) => trust::run(settings, sub, io),
            Some(("new", sub)) => new_project::run(sub, io),
            Some(("rules", sub)) => rules::run(settings, &self.build_toolset(settings)?, sub, io),
            Some(("doctor", sub)) => doctor::run(settings, sub, io),
            Some(("batch", sub)) => batch::run(self, program, settings, sub, io),
            Some(("mcp", sub)) => mcp::run(self, settings, matches, sub, io),
            Some(("serve", sub)) => {
                serve::run(self, program, settings, &args::option_levels(matches), sub, io)
            }
            Some(("chat", sub)) => chat::run(self, program, settings, sub, io),
            Some(("setup", sub)) => {
                setup::run(program, settings, &args::option_levels(matches), sub, io)
            }
            #[cfg(feature = "http")]
            Some(("token", sub)) => crate::token::run(settings, sub, io),
            #[cfg(feature = "remote")]
            Some(("workers", sub)) => crate::workers::run(settings, sub, io),
            #[cfg(feature = "store")]
            Some(("state", sub)) => crate::state::run(settings, sub, io),
            #[cfg(feature = "store")]
            Some(("sessions", sub)) => crate::sessions::run(settings, sub, io),
            #[cfg(feature = "store")]
            Some(("memory", sub)) => crate::memory::run(settings, sub, io),
            other => {
                let name = other.map(|(name, _)| name);
                match self.tool_commands.iter().find(|own| Some(own.name()) == name) {
                    Some(own) => Err(own.usage_error()),
                    None => Err(CommandError::usage("a command is missing")
                        .hint(format_args!("try `{program} --help`"))),
                }
            }
        }
    }

    /// Returns the definitions of `--tools FILE`, or else the toolset, including the tools of
    /// configured servers.
    fn listed_toolset(
        &self,
        settings: &Settings,
        need: ServerScope<'_>,
        matches: &ArgMatches,
        io: &mut Io<'_>,
    ) -> exit::Result<Toolset> {
        if let Some(path) = matches.get_one::<PathBuf>(args::TOOLS) {
            return filters::read_tools_file(path, io);
        }
        let own = self.build_toolset(settings)?;
        Ok(ConfiguredServers::load(settings, io)?.merge_tools(own, need, io))
    }

    /// Rewrites the program's own commands to `call`.
    fn rewrite_tool_commands(&self, mut words: Vec<OsString>, program: &str) -> Vec<OsString> {
        if !self.tool_commands.is_empty() {
            let at = command_position(&words, &args::program_command(program));
            for commands in &self.tool_commands {
                commands.rewrite_words(&mut words, at, || self.base_toolset());
            }
        }
        words
    }
}
