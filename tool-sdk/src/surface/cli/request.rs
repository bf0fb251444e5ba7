//! A request to call one tool, from the words of `call` or `check`.
//!
//! The flags of a call depend on the tool, so the words after its name are parsed once the tool is
//! known.

use std::ffi::OsString;

use clap::ArgMatches;

use super::exit::{Failure, Result, USAGE};
use super::grammar::{self, Verb};
use super::words::Words;
use super::{Io, flag, show};
use crate::call::RawArgs;
use crate::tool::{Definition, Fault, InvalidArgs};
use crate::toolset::{Toolset, View};

/// The parsed options before the name of the tool, and the unparsed words after it.
pub(super) struct Request<'m> {
    verb: Verb,
    pub(super) name: &'m str,
    /// The options before the command, and those between it and the name.
    before: [&'m ArgMatches; 2],
    behind: Vec<OsString>,
}

/// A call whose tool is known.
pub(super) struct Parsed<'m> {
    /// The canonical name of the tool; the request may have used an alias.
    pub(super) tool: String,
    /// The arguments as JSON text.
    pub(super) arguments: String,
    before: [&'m ArgMatches; 2],
    behind: ArgMatches,
}

impl<'m> Request<'m> {
    pub(super) fn of(
        program: &str,
        verb: Verb,
        top: &'m ArgMatches,
        matches: &'m ArgMatches,
    ) -> Result<Self> {
        let Some((name, behind)) = matches.subcommand() else {
            return Err(Failure::usage("the name of a tool is missing")
                .hint(format_args!("`{program} list` names the tools")));
        };
        let behind = behind.get_many("").into_iter().flatten().cloned().collect();
        Ok(Self { verb, name, before: [top, matches], behind })
    }

    /// Returns the options before the name of the tool.
    pub(super) fn before(&self) -> [&'m ArgMatches; 2] {
        self.before
    }

    /// Parses the program options after the name while the tool is unknown, because `--config` may
    /// say where it is found.
    pub(super) fn options_behind(&self) -> Option<ArgMatches> {
        let command = grammar::options(self.verb);
        Words::read(&self.behind, &[], &command).options(command).ok().flatten()
    }

    /// Whether `--json` is given, even if the other words are invalid.
    pub(super) fn wants_json(&self) -> bool {
        self.wants(grammar::JSON)
    }

    /// Whether a switch is given, even if the other words are invalid.
    pub(super) fn wants(&self, switch: &str) -> bool {
        let is_it = |word: &OsString| {
            word.to_str()
                .and_then(|word| word.strip_prefix("--"))
                .is_some_and(|word| word == switch)
        };
        self.before[1].get_flag(switch) || self.behind.iter().any(is_it)
    }

    /// Finds the tool, and parses its arguments from flags, JSON, standard input or a file.
    pub(super) fn parse(
        &self,
        program: &str,
        toolset: &Toolset,
        io: &mut Io<'_>,
    ) -> Result<Parsed<'m>> {
        let view = toolset.view();
        let definition = show::find_among(program, &view, toolset, self.name)?;
        let flags = flag::flags(&definition);
        let command = grammar::tool(program, self.verb, &definition, &flags);
        let command = command.term_width(io.width());
        let mut words = Words::read(&self.behind, &flags, &command);
        if definition.parameters.takes_free_names() {
            words.tell_of_free_names();
        }
        let options = words.options(command)?;
        let (arguments, faults) = words.finish(io)?;
        match (options, arguments) {
            (Some(behind), Some(arguments)) if faults.is_empty() => {
                let tool = definition.name.into();
                Ok(Parsed { tool, arguments, before: self.before, behind })
            }
            (_, arguments) => {
                let refused = refused(&view, &definition, arguments.as_deref(), faults);
                let verb = self.verb.as_str();
                Err(Failure::new(USAGE, refused.into()).hint(format_args!(
                    "`{program} {verb} {} --help` lists the parameters",
                    definition.name
                )))
            }
        }
    }
}

impl Parsed<'_> {
    /// Returns the parsed options from left to right.
    pub(super) fn levels(&self) -> [&ArgMatches; 3] {
        let [top, between] = self.before;
        [top, between, &self.behind]
    }

    /// Whether a switch of the command is set, before or after the name.
    pub(super) fn has(&self, switch: &str) -> bool {
        self.before[1].get_flag(switch) || self.behind.get_flag(switch)
    }
}

/// Combines the faults of the words with those of the resulting arguments.
fn refused(
    view: &View,
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
    InvalidArgs::told(tool, faults)
}
