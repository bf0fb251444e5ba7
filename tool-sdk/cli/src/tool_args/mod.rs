//! Parses the words after the name of a tool: flags of the tool, program options, and arguments
//! that are already JSON.
//!
//! Flags are converted to JSON, so that the argument check of the pipeline reports wrong values in
//! the same way. Faults of the command line itself are collected here.
//!
//! **Invariant:** no call is made while there is a word that could not be parsed.

use std::ffi::{OsStr, OsString};

use clap::{ArgMatches, Command};
use tool_sdk_core::{Fault, FaultKind, internal::closest_name};

use super::exit::{CommandError, Result};
use super::flag::{self, ParamFlag};
use super::{Io, input, style};

/// The parsed words, by kind.
pub(super) struct ToolArgs<'w> {
    flags: &'w [ParamFlag<'w>],
    /// The JSON texts of the values of each flag.
    values: Vec<Vec<String>>,
    /// Whether each flag is given; an empty list has no values.
    is_given: Vec<bool>,
    /// The words of each program option: its name, and its value.
    program_options: Vec<Vec<&'w OsString>>,
    /// JSON, `-` or `@FILE`.
    json: Option<&'w OsString>,
    faults: Vec<Fault>,
}

impl<'w> ToolArgs<'w> {
    /// Sorts the words. `command` has the program options.
    pub(super) fn parse(
        words: &'w [OsString],
        flags: &'w [ParamFlag<'w>],
        command: &Command,
    ) -> Self {
        let values = flags.iter().map(|_| Vec::new()).collect();
        let mut read = Self {
            flags,
            values,
            is_given: vec![false; flags.len()],
            program_options: Vec::new(),
            json: None,
            faults: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match &*word.to_string_lossy() {
                "--" => words.by_ref().for_each(|word| read.add_positional(word)),
                "-h" => read.program_options.push(vec![word]),
                text if text.starts_with("--") => read.add_option(word, text, &mut words, command),
                text if text.starts_with('-') && text != "-" => {
                    // Skips its value, which is not the JSON arguments.
                    take_value(&mut words, true);
                    read.add_unknown(text, command);
                }
                _ => read.add_positional(word),
            }
        }
        read
    }

    /// Parses the program options with clap; `None` after a fault.
    pub(super) fn parse_options(&mut self, command: Command) -> Result<Option<ArgMatches>> {
        let understood = self.faults.len();
        for option in &self.program_options {
            if let Err(error) = command.clone().try_get_matches_from(option) {
                let failure = CommandError::from(flag::explain_reserved_flag(error, self.flags));
                self.faults.push(malformed(failure.into_tool_error()?.1.message()));
            }
        }
        if self.faults.len() > understood {
            return Ok(None);
        }
        match command.try_get_matches_from(self.program_options.iter().flatten()) {
            Ok(matches) => Ok(Some(matches)),
            Err(error) => {
                self.faults
                    .push(malformed(CommandError::from(error).into_tool_error()?.1.message()));
                Ok(None)
            }
        }
    }

    /// Returns the arguments as JSON text, `{}` by default, and the faults. There is no text if it
    /// is unclear what the arguments are.
    pub(super) fn into_arguments(
        mut self,
        io: &mut Io<'_>,
    ) -> Result<(Option<String>, Vec<Fault>)> {
        let Some(word) = self.json else {
            return Ok((Some(self.to_json_object()), self.faults));
        };
        let is_flagged = self.is_given.contains(&true);
        // The arguments of a call are an object, so after a flag another value is a stray word.
        let is_object = is_object_word(word);
        match (is_flagged, if is_flagged { !is_object } else { is_bare_word(word) }) {
            (true, true) => self.faults.push(self.stray_word_fault(word)),
            (true, false) => {
                self.faults
                    .push(malformed("the arguments come either as JSON or as flags, not both"));
            }
            (false, true) => {
                self.faults.push(self.bare_word_fault(word));
                return Ok((None, self.faults));
            }
            (false, false) => return self.read_json(word, io),
        }
        Ok((Some(self.to_json_object()), self.faults))
    }

    /// Reads the arguments that are JSON.
    fn read_json(mut self, word: &OsStr, io: &mut Io<'_>) -> Result<(Option<String>, Vec<Fault>)> {
        match input::read_arguments(word, io) {
            Ok(text) => Ok((Some(text), self.faults)),
            Err(failure) if self.faults.is_empty() => Err(failure),
            Err(failure) => {
                self.faults.push(malformed(failure.into_tool_error()?.1.message()));
                Ok((None, self.faults))
            }
        }
    }

    /// Returns the fault for a word after a value, most likely a further part of that.
    fn stray_word_fault(&self, word: &OsStr) -> Fault {
        let shown = excerpt(word);
        let lists = self.flags.iter().zip(&self.is_given).filter(|(flag, _)| flag.is_list());
        let list = lists.filter(|(_, is_given)| **is_given).map(|(flag, _)| flag).next();
        malformed(&match list {
            Some(list) => format!(
                "unexpected word `{shown}`; each item of `{}` needs its flag, as in `--{} {}`, and \
                 a value with blanks needs quotes",
                list.name,
                list.long(),
                style::shell_quote(&shown)
            ),
            None => format!("unexpected word `{shown}`; a value with blanks needs quotes"),
        })
    }

    /// Returns the fault for a word in place of JSON, most likely the value of a flag.
    fn bare_word_fault(&self, word: &OsStr) -> Fault {
        let flag = self.flags.iter().find(|flag| flag.is_required()).or(self.flags.first());
        let shown = excerpt(word);
        match flag {
            Some(flag) => malformed(&format!(
                "`{shown}` is neither JSON nor a flag; write `--{} {}`",
                flag.long(),
                style::shell_quote(&shown)
            )),
            None => malformed(&format!("unexpected word `{shown}`")),
        }
    }

    fn add_positional(&mut self, word: &'w OsString) {
        if self.json.is_none() {
            self.json = Some(word);
            return;
        }
        self.faults.push(malformed(&format!("unexpected word `{}`", excerpt(word))));
    }

    /// Handles `--name`, `--name=value` or `--name value`.
    fn add_option(
        &mut self,
        word: &'w OsString,
        text: &str,
        rest: &mut std::slice::Iter<'w, OsString>,
        command: &Command,
    ) {
        let (name, inline) = match text[2..].split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&text[2..], None),
        };
        if let Some(at) = self.flags.iter().position(|flag| flag.matches_name(name)) {
            let value = match inline {
                Some(_) if word.to_str().is_none() => Some(word.as_os_str()),
                Some(value) => Some(OsStr::new(value)),
                None => match self.missing_value_fault(at, rest, command) {
                    Some(fault) => return self.faults.push(fault),
                    None => take_value(rest, self.flags[at].is_switch()),
                },
            };
            return self.add_flag_value(at, value);
        }
        match takes_value(command, name) {
            None => {
                if inline.is_none() {
                    take_value(rest, true);
                }
                self.add_unknown(text, command);
            }
            Some(true) if inline.is_none() => {
                self.program_options.push(std::iter::once(word).chain(rest.next()).collect());
            }
            Some(_) => self.program_options.push(vec![word]),
        }
    }

    /// Returns a fault if a flag that needs a value is followed by another flag or by `--`, because
    /// the value was most likely forgotten. So the program options among the words are the same
    /// whether or not the flags of the tool are known.
    fn missing_value_fault(
        &self,
        at: usize,
        rest: &std::slice::Iter<'_, OsString>,
        command: &Command,
    ) -> Option<Fault> {
        let flag = &self.flags[at];
        let next = rest.as_slice().first()?;
        let is_known = match &*next.to_string_lossy() {
            "--" | "-h" => true,
            text => text.strip_prefix("--").is_some_and(|text| {
                let name = text.split('=').next().unwrap_or_default();
                self.flags.iter().any(|flag| flag.matches_name(name))
                    || takes_value(command, name).is_some()
            }),
        };
        (is_known && !flag.is_switch()).then(|| {
            let message = format!(
                "`{}` has no value; write `--{}={}` if that is its value",
                flag.name,
                flag.long(),
                excerpt(next)
            );
            Fault::new(FaultKind::Malformed, format!("/{}", flag.name), message)
        })
    }

    /// Explains in the faults of unknown flags that a tool with free argument names takes them as
    /// JSON.
    pub(super) fn explain_free_names(&mut self) {
        let unknown = self.faults.iter_mut().filter(|it| it.kind == FaultKind::Unknown);
        for fault in unknown {
            let name = fault.pointer.trim_start_matches('/');
            fault.message = format!(
                "`{name}` has no flag; the tool accepts any name, so write all arguments as JSON"
            );
        }
    }

    fn add_flag_value(&mut self, at: usize, value: Option<&OsStr>) {
        let flag = &self.flags[at];
        let wrong = match value.map(OsStr::to_str) {
            _ if self.is_given[at] && !flag.is_list() => format!("`{}` comes twice", flag.name),
            Some(Some(value)) => match flag.encode_value(value) {
                Ok(values) => {
                    self.is_given[at] = true;
                    return self.values[at].extend(values);
                }
                Err(message) => message,
            },
            None if flag.is_switch() => {
                self.is_given[at] = true;
                return self.values[at].push("true".to_owned());
            }
            Some(None) => format!("`{}` is not UTF-8", flag.name),
            None => format!("`{}` has no value", flag.name),
        };
        self.faults.push(Fault::new(FaultKind::Malformed, format!("/{}", flag.name), wrong));
    }

    /// Records a flag that neither the tool nor the program has.
    fn add_unknown(&mut self, text: &str, command: &Command) {
        let name = text.trim_start_matches('-').split('=').next().unwrap_or_default();
        let names: Vec<&str> = self.flags.iter().map(|flag| flag.name).collect();
        let mut fault = Fault::unknown_argument(name, &names);
        let own: Vec<&str> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
        if let Some(meant) = self.flags.iter().find(|flag| flag.name == name) {
            fault.message = format!("the flag of `{name}` is `--{}`", meant.long());
        } else if closest_name(name, &names).is_none()
            && let Some(option) = closest_name(name, &own)
        {
            fault.message = format!("unknown argument `{name}`; did you mean `--{option}`?");
        }
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Returns the values of the flags as a JSON object, in the order of the parameters.
    fn to_json_object(&self) -> String {
        let given = self.flags.iter().zip(&self.values).zip(&self.is_given);
        let members: Vec<String> = given
            .filter(|(_, is_given)| **is_given)
            .filter_map(|((flag, values), _)| Some((flag.name, flag.join_values(values)?)))
            .map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name)))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

/// How many characters of a word are repeated in a message.
const MAX_EXCERPT: usize = 64;

fn excerpt(word: &OsStr) -> String {
    let start: String = word.to_string_lossy().chars().take(MAX_EXCERPT).collect();
    start.escape_debug().to_string()
}

/// Whether a word is neither JSON, nor `-`, nor `@FILE`.
fn is_bare_word(word: &OsStr) -> bool {
    let text = word.to_str().unwrap_or_default().trim_start();
    let begins = |c: char| c.is_ascii_digit() || "{[\"-@".contains(c);
    !text.is_empty() && !text.starts_with(begins) && !["true", "false", "null"].contains(&text)
}

/// Whether a word is a JSON object, or `-`, or `@FILE`.
fn is_object_word(word: &OsStr) -> bool {
    let text = word.to_str().unwrap_or_default().trim_start();
    text == "-" || text.starts_with(['{', '@'])
}

/// Returns a fault that belongs to no parameter.
fn malformed(message: &str) -> Fault {
    Fault::new(FaultKind::Malformed, String::new(), message.to_owned())
}

/// Takes the next word as the value of a flag. With `alone`, which is for flags that need no value,
/// a word that looks like an option or JSON is not taken.
fn take_value<'w>(rest: &mut std::slice::Iter<'w, OsString>, alone: bool) -> Option<&'w OsStr> {
    let next = rest.as_slice().first()?;
    let is_other = next.to_string_lossy().starts_with(['-', '{', '@']);
    if alone && is_other {
        return None;
    }
    rest.next().map(OsString::as_os_str)
}

/// Whether a program option takes a value; `None` if there is no such option.
fn takes_value(command: &Command, name: &str) -> Option<bool> {
    if name == "help" {
        return Some(false);
    }
    let own = command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
    Some(own.get_action().takes_values())
}

#[cfg(test)]
mod tests;
