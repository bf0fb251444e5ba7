//! A request to call one tool, from the words of `call` or `check`.
//!
//! The flags of a call depend on the tool, so the words after its name are parsed once the tool is
//! known.

use std::ffi::OsString;

use clap::ArgMatches;

use super::args::{self, ToolVerb};
use super::exit::{CommandError, Result, USAGE};
use super::tool_args::ToolArgs;
use super::{Io, flag, show};
use tool_sdk_core::RawArgs;
use tool_sdk_core::{Definition, Fault, InvalidArgs};
use tool_sdk_core::{Toolset, ToolsetView};

/// The parsed options before the name of the tool, and the unparsed words after it.
pub(super) struct CallRequest<'m> {
    verb: ToolVerb,
    pub(super) name: &'m str,
    /// The options before the command, and those between it and the name.
    before: [&'m ArgMatches; 2],
    args_after_name: Vec<OsString>,
}

/// A call whose tool is known.
pub(super) struct ParsedCall<'m> {
    /// The canonical name of the tool; the request may have used an alias.
    pub(super) tool: String,
    /// The arguments as JSON text.
    pub(super) arguments: String,
    before: [&'m ArgMatches; 2],
    options_after: ArgMatches,
}

impl<'m> CallRequest<'m> {
    pub(super) fn from_matches(
        program: &str,
        verb: ToolVerb,
        top: &'m ArgMatches,
        matches: &'m ArgMatches,
    ) -> Result<Self> {
        let Some((name, behind)) = matches.subcommand() else {
            return Err(CommandError::usage("the name of a tool is missing")
                .hint(format_args!("`{program} list` names the tools")));
        };
        let behind = behind.get_many("").into_iter().flatten().cloned().collect();
        Ok(Self { verb, name, before: [top, matches], args_after_name: behind })
    }

    /// Returns the options before the name of the tool.
    pub(super) fn options_before_name(&self) -> [&'m ArgMatches; 2] {
        self.before
    }

    /// Parses the program options after the name while the tool is unknown, because `--config` may
    /// say where it is found.
    pub(super) fn options_after_name(&self) -> Option<ArgMatches> {
        let command = args::tool_options_command(self.verb);
        ToolArgs::parse(&self.args_after_name, &[], &command).parse_options(command).ok().flatten()
    }

    /// Whether `--json` is given, even if the other words are invalid.
    pub(super) fn wants_json(&self) -> bool {
        self.has_switch(args::JSON)
    }

    /// Whether a switch is given, even if the other words are invalid.
    pub(super) fn has_switch(&self, switch: &str) -> bool {
        let is_it = |word: &OsString| {
            word.to_str()
                .and_then(|word| word.strip_prefix("--"))
                .is_some_and(|word| word == switch)
        };
        self.before[1].get_flag(switch) || self.args_after_name.iter().any(is_it)
    }

    /// Finds the tool, and parses its arguments from flags, JSON, standard input or a file.
    pub(super) fn parse(
        &self,
        program: &str,
        toolset: &Toolset,
        io: &mut Io<'_>,
    ) -> Result<ParsedCall<'m>> {
        let view = toolset.view();
        let definition = show::find_tool_or_explain(program, &view, toolset, self.name)?;
        let flags = flag::tool_flags(&definition);
        let command = args::tool_command(program, self.verb, &definition, &flags);
        let command = command.term_width(io.help_width());
        let mut words = ToolArgs::parse(&self.args_after_name, &flags, &command);
        if definition.parameters.allows_unknown_properties() {
            words.explain_free_names();
        }
        let options = words.parse_options(command)?;
        let (arguments, faults) = words.into_arguments(io)?;
        match (options, arguments) {
            (Some(behind), Some(arguments)) if faults.is_empty() => {
                let tool = definition.name.into();
                Ok(ParsedCall { tool, arguments, before: self.before, options_after: behind })
            }
            (_, arguments) => {
                let refused = invalid_args(&view, &definition, arguments.as_deref(), faults);
                let verb = self.verb.as_str();
                Err(CommandError::new(USAGE, refused.into()).hint(format_args!(
                    "`{program} {verb} {} --help` lists the parameters",
                    definition.name
                )))
            }
        }
    }
}

impl ParsedCall<'_> {
    /// Returns the parsed options from left to right.
    pub(super) fn option_levels(&self) -> [&ArgMatches; 3] {
        let [top, between] = self.before;
        [top, between, &self.options_after]
    }

    /// Whether a switch of the command is set, before or after the name.
    pub(super) fn has_switch(&self, switch: &str) -> bool {
        self.before[1].get_flag(switch) || self.options_after.get_flag(switch)
    }
}

/// Combines the faults of the words with those of the resulting arguments.
fn invalid_args(
    view: &ToolsetView,
    tool: &Definition,
    arguments: Option<&str>,
    words: Vec<Fault>,
) -> InvalidArgs {
    let prepare = |text| Some(view.get(tool.name.as_str())?.prepare(&RawArgs::new(text)));
    let prepared = arguments.and_then(prepare);
    let mut faults = words;
    if let Some(Err(invalid)) = prepared {
        let told: Vec<String> = faults.iter().map(|fault| fault.pointer.clone()).collect();
        let is_new = |fault: &&Fault| fault.pointer.is_empty() || !told.contains(&fault.pointer);
        faults.extend(invalid.faults().iter().filter(is_new).cloned());
    }
    InvalidArgs::for_definition(tool, faults)
}
