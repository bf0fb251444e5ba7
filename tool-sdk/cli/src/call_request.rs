//! A request to call one tool, from the words of `call` or `check`.
//!
//! The flags of a call depend on the tool, so the words after its name are parsed once the tool is
//! known. The program options among them are parsed before, because `--config` may say where the
//! tool is found.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ArgMatches;
use tool_sdk_core::{
    Call, CallId, Definition, Fault, InvalidArgs, RawArgs, ToolError, Toolset, ToolsetView,
};

use super::args::{self, ToolVerb};
use super::call_environment::CallEnvironment;
use super::exit::{self, CommandError, Result, USAGE};
use super::mcp::{ConfiguredServers, ServerScope};
use super::tool_args::ToolArgs;
use super::{App, Io, flag, show};

/// The parsed options of a call, and the unparsed words after the name of its tool.
pub(super) struct CallRequest<'m> {
    verb: ToolVerb,
    pub(super) name: &'m str,
    pub(super) id: CallId,
    /// The options before the command, and those between it and the name.
    before: [&'m ArgMatches; 2],
    args_after_name: Vec<OsString>,
    /// The options after the name; `None` if they are invalid, or ask for help.
    after: Option<ArgMatches>,
}

/// A call whose tool is known, and what it runs in.
pub(super) struct ReadyCall {
    /// The canonical name of the tool; the request may have used an alias.
    pub(super) tool: String,
    pub(super) call: Call<'static>,
    pub(super) environment: CallEnvironment,
    /// Keeps the connections to servers alive.
    _servers: ConfiguredServers,
}

/// The canonical name of a tool, and the arguments as JSON text.
type ParsedCall = (String, String);

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
        let args_after_name: Vec<_> = behind.get_many("").into_iter().flatten().cloned().collect();
        let command = args::tool_options_command(verb);
        let after = ToolArgs::parse(&args_after_name, &[], &command).parse_options(command);
        let (id, after) = (CallId::generate(), after.ok().flatten());
        Ok(Self { verb, name, id, before: [top, matches], args_after_name, after })
    }

    /// Whether a switch is given, before or after the name, even if other words are invalid.
    pub(super) fn has_switch(&self, switch: &str) -> bool {
        let is_after = match &self.after {
            Some(after) => after.get_flag(switch),
            None => self.args_after_name.iter().any(|word| *word == *format!("--{switch}")),
        };
        is_after || self.before[1].get_flag(switch)
    }

    /// Returns the folder of `--save`.
    pub(super) fn save_folder(&self) -> Option<PathBuf> {
        let levels: Vec<_> = self.before[1..].iter().copied().chain(&self.after).collect();
        args::last_option(&levels, args::SAVE)
    }

    /// Resolves the settings, parses the words, and builds what the call runs in.
    ///
    /// The words for one of the program's own tools are parsed first, so that its help needs no
    /// configuration.
    pub(super) fn prepare(&self, app: &App, program: &str, io: &mut Io<'_>) -> Result<ReadyCall> {
        let base = app.base_toolset();
        let own = self.toolset_with_own_tool(&base);
        let parsed = own.map(|own| self.parse(program, &own, io)).transpose()?;
        let levels: Vec<_> = self.before.into_iter().chain(&self.after).collect();
        let settings = app.load_settings(&levels, io)?;
        let tools = app.configure_toolset(base, &settings)?;
        let need = ServerScope::Tool(self.name);
        let (servers, parsed) = match parsed {
            Some(parsed) => (ConfiguredServers::load_unconnected(&settings, io)?, parsed),
            None => {
                let servers = ConfiguredServers::load(&settings, io)?;
                let known = servers.merge_tools(tools.clone(), need, io);
                if self.emits_events() && known.view().definition(self.name).is_none() {
                    let environment = CallEnvironment::build(app, &settings, tools.clone(), io)?;
                    environment.call(self.to_call("{}".to_owned()), true, io)?;
                }
                if known.get(self.name).is_none()
                    && let Some(missing) = servers.explain_missing_source(&known, self.name)
                {
                    let error = ToolError::unavailable(missing);
                    return Err(CommandError::new(exit::exit_code(error.kind()), error));
                }
                (servers, self.parse(program, &known, io)?)
            }
        };
        let mut environment = CallEnvironment::build(app, &settings, tools, io)?;
        servers.connect_into(&mut environment, need, io);
        environment.warn_missing_services(io);
        let (view, all) = (environment.toolset_view(), environment.pipeline.toolset());
        show::find_tool_or_explain(program, &view, all, self.name)?;
        let (tool, arguments) = parsed;
        Ok(ReadyCall { tool, call: self.to_call(arguments), environment, _servers: servers })
    }

    /// Returns the program's toolset if it has the tool; unfiltered when only then it has it,
    /// because the settings may enable the tool. `None` if the tool is not one of the program.
    fn toolset_with_own_tool(&self, base: &Toolset) -> Option<Toolset> {
        let has_tool = |tools: &Toolset| tools.get(self.name).is_some();
        Some(base.clone())
            .filter(has_tool)
            .or_else(|| Some(base.clone().unfiltered()).filter(has_tool))
    }

    /// Whether events are printed. A call of an unknown tool emits its terminal event, too.
    pub(super) fn emits_events(&self) -> bool {
        self.verb == ToolVerb::Call && self.has_switch(args::EVENTS)
    }

    fn to_call(&self, arguments: String) -> Call<'static> {
        let mut call = Call::new(self.name.to_owned(), arguments);
        call.id = Some(self.id.clone());
        call
    }

    /// Finds the tool, and parses its arguments from flags, JSON, standard input or a file.
    fn parse(&self, program: &str, toolset: &Toolset, io: &mut Io<'_>) -> Result<ParsedCall> {
        let view = toolset.view();
        let definition = show::find_tool_or_explain(program, &view, toolset, self.name)?;
        let flags = flag::tool_flags(&definition);
        let command = args::tool_command(program, self.verb, &definition, &flags);
        let command = command.term_width(io.help_width());
        let mut words = ToolArgs::parse(&self.args_after_name, &flags, &command);
        if definition.parameters.allows_unknown_properties() {
            words.explain_free_names();
        }
        words.parse_options(command)?;
        let (arguments, faults) = words.into_arguments(io)?;
        match arguments {
            Some(arguments) if faults.is_empty() => Ok((definition.name.into(), arguments)),
            arguments => {
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
