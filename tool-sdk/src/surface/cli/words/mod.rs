//! The words behind the name of a tool, taken apart: flags of the tool, options of the
//! program, and arguments that are JSON already.
//!
//! The flags become JSON, so that a wrong value is found where wrong JSON is, and told in
//! the same words. What only a command line can get wrong is told here, all at once.
//!
//! **Invariant:** nothing is run while a word is left that was not understood.

use std::ffi::{OsStr, OsString};

use clap::{ArgMatches, Command};

use super::exit::{Failure, Result};
use super::flag::{self, Flag};
use super::{Io, input, style};
use crate::tool::{Fault, FaultKind, closest};

/// The words, by what they are for.
pub(super) struct Words<'w> {
    flags: &'w [Flag<'w>],
    /// The values of each flag, as JSON texts.
    given: Vec<Vec<String>>,
    /// The options of the program, each with its value.
    options: Vec<Vec<&'w OsString>>,
    /// JSON, `-` or `@FILE`.
    json: Option<&'w OsString>,
    faults: Vec<Fault>,
}

impl<'w> Words<'w> {
    /// `command` knows the options of the program.
    pub(super) fn read(words: &'w [OsString], flags: &'w [Flag<'w>], command: &Command) -> Self {
        let given = flags.iter().map(|_| Vec::new()).collect();
        let mut read = Self { flags, given, options: Vec::new(), json: None, faults: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match &*word.to_string_lossy() {
                "--" => words.by_ref().for_each(|word| read.positional(word)),
                "-h" => read.options.push(vec![word]),
                text if text.starts_with("--") => read.option(word, text, &mut words, command),
                text if text.starts_with('-') && text != "-" => {
                    // Its value is not the arguments as JSON.
                    next_value(&mut words, true);
                    read.unknown(text, command);
                }
                _ => read.positional(word),
            }
        }
        read
    }

    /// The options of the program, as its own parser understands them.
    pub(super) fn options(&mut self, command: Command) -> Result<Option<ArgMatches>> {
        let understood = self.faults.len();
        for option in &self.options {
            if let Err(error) = command.clone().try_get_matches_from(option) {
                let failure = Failure::from(flag::explain(error, self.flags));
                self.faults.push(fault(failure.into_error()?.1.message()));
            }
        }
        if self.faults.len() > understood {
            return Ok(None);
        }
        match command.try_get_matches_from(self.options.iter().flatten()) {
            Ok(matches) => Ok(Some(matches)),
            Err(error) => {
                self.faults.push(fault(Failure::from(error).into_error()?.1.message()));
                Ok(None)
            }
        }
    }

    /// The arguments as JSON text, `{}` when there are none; and what is wrong with the words.
    /// Where it cannot be said what the arguments are, there is no text to judge.
    pub(super) fn finish(mut self, io: &mut Io<'_>) -> Result<(Option<String>, Vec<Fault>)> {
        let Some(word) = self.json else {
            return Ok((Some(self.object()), self.faults));
        };
        let is_flagged = self.given.iter().any(|values| !values.is_empty());
        match (is_flagged, is_bare(word)) {
            (true, true) => self.faults.push(fault(&format!(
                "`{}` is one word too many; a value with blanks needs quotes",
                shown(word)
            ))),
            (true, false) => {
                self.faults.push(fault("the arguments come either as JSON or as flags, not both"));
            }
            (false, true) => {
                self.faults.push(self.bare(word));
                return Ok((None, self.faults));
            }
            (false, false) => return self.document(word, io),
        }
        Ok((Some(self.object()), self.faults))
    }

    /// Arguments that are JSON.
    fn document(mut self, word: &OsStr, io: &mut Io<'_>) -> Result<(Option<String>, Vec<Fault>)> {
        match input::arguments(word, io) {
            Ok(text) => Ok((Some(text), self.faults)),
            Err(failure) if self.faults.is_empty() => Err(failure),
            Err(failure) => {
                self.faults.push(fault(failure.into_error()?.1.message()));
                Ok((None, self.faults))
            }
        }
    }

    /// A word that stands where JSON could; most likely the value of a flag.
    fn bare(&self, word: &OsStr) -> Fault {
        let flag = self.flags.iter().find(|flag| flag.is_required()).or(self.flags.first());
        let shown = shown(word);
        match flag {
            Some(flag) => fault(&format!(
                "`{shown}` is neither JSON nor a flag; write `--{} {}`",
                flag.long(),
                style::shell_quote(&shown)
            )),
            None => fault(&format!("`{shown}` is one word too many")),
        }
    }

    fn positional(&mut self, word: &'w OsString) {
        if self.json.is_none() {
            self.json = Some(word);
            return;
        }
        self.faults.push(fault(&format!("`{}` is one word too many", shown(word))));
    }

    /// `--name`, `--name=value` or `--name value`.
    fn option(
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
        if let Some(at) = self.flags.iter().position(|flag| flag.is_called(name)) {
            let value = match inline {
                Some(_) if word.to_str().is_none() => Some(word.as_os_str()),
                Some(value) => Some(OsStr::new(value)),
                None => match self.flag_behind(at, rest, command) {
                    Some(fault) => return self.faults.push(fault),
                    None => next_value(rest, self.flags[at].is_switch()),
                },
            };
            return self.flag(at, value);
        }
        match takes_value(command, name) {
            None => {
                if inline.is_none() {
                    next_value(rest, true);
                }
                self.unknown(text, command);
            }
            Some(true) if inline.is_none() => {
                self.options.push(std::iter::once(word).chain(rest.next()).collect());
            }
            Some(_) => self.options.push(vec![word]),
        }
    }

    /// What is wrong where another flag stands behind one that needs a value: most likely the
    /// value was forgotten.
    fn flag_behind(
        &self,
        at: usize,
        rest: &std::slice::Iter<'_, OsString>,
        command: &Command,
    ) -> Option<Fault> {
        let flag = &self.flags[at];
        let next = rest.as_slice().first()?.to_str()?;
        let name = next.strip_prefix("--")?.split('=').next().unwrap_or_default();
        let is_known = self.flags.iter().any(|flag| flag.is_called(name))
            || takes_value(command, name).is_some();
        (is_known && !flag.is_switch()).then(|| {
            let message = format!(
                "`{}` has no value; write `--{}={}` if that is its value",
                flag.name,
                flag.long(),
                shown(OsStr::new(next))
            );
            Fault::new(FaultKind::Malformed, format!("/{}", flag.name), message)
        })
    }

    /// Says of names without a flag that the tool takes other names than those that it tells.
    pub(super) fn tell_of_free_names(&mut self) {
        let unknown = self.faults.iter_mut().filter(|it| it.kind == FaultKind::Unknown);
        for fault in unknown {
            let name = fault.pointer.trim_start_matches('/');
            fault.message = format!(
                "`{name}` has no flag; the tool takes names of your choice, so write all as JSON"
            );
        }
    }

    fn flag(&mut self, at: usize, value: Option<&OsStr>) {
        let flag = &self.flags[at];
        let wrong = match value.map(OsStr::to_str) {
            _ if !self.given[at].is_empty() && !flag.is_list() => "comes twice",
            Some(Some(value)) => return self.given[at].push(flag.encode(value)),
            None if flag.is_switch() => return self.given[at].push("true".to_owned()),
            Some(None) => "is not UTF-8",
            None => "has no value",
        };
        let message = format!("`{}` {wrong}", flag.name);
        self.faults.push(Fault::new(FaultKind::Malformed, format!("/{}", flag.name), message));
    }

    /// A flag that neither the tool nor the program has.
    fn unknown(&mut self, text: &str, command: &Command) {
        let name = text.trim_start_matches('-').split('=').next().unwrap_or_default();
        let names: Vec<&str> = self.flags.iter().map(|flag| flag.name).collect();
        let mut fault = Fault::unknown_argument(name, &names);
        let own: Vec<&str> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
        if let Some(meant) = self.flags.iter().find(|flag| flag.name == name) {
            fault.message = format!("the flag of `{name}` is `--{}`", meant.long());
        } else if closest(name, &names).is_none()
            && let Some(option) = closest(name, &own)
        {
            fault.message = format!("unknown argument `{name}`; did you mean `--{option}`?");
        }
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// The values of the flags, in the order of the parameters.
    fn object(&self) -> String {
        let pairs = self.flags.iter().zip(&self.given);
        let members: Vec<String> = pairs
            .filter_map(|(flag, values)| Some((flag.name, flag.join(values)?)))
            .map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name)))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

/// How much of a word is repeated.
const MAX_SHOWN: usize = 64;

fn shown(word: &OsStr) -> String {
    let start: String = word.to_string_lossy().chars().take(MAX_SHOWN).collect();
    start.escape_debug().to_string()
}

/// Whether a word is no JSON, and does not say where any is.
fn is_bare(word: &OsStr) -> bool {
    let text = word.to_str().unwrap_or_default().trim_start();
    let begins = |c: char| c.is_ascii_digit() || "{[\"-@".contains(c);
    !text.is_empty() && !text.starts_with(begins) && !["true", "false", "null"].contains(&text)
}

/// A fault of the words as a whole.
fn fault(message: &str) -> Fault {
    Fault::new(FaultKind::Malformed, String::new(), message.to_owned())
}

/// The word behind a flag that is its value: any, unless the flag may stand alone.
fn next_value<'w>(rest: &mut std::slice::Iter<'w, OsString>, alone: bool) -> Option<&'w OsStr> {
    let next = rest.as_slice().first()?;
    let is_other = next.to_string_lossy().starts_with(['-', '{', '@']);
    if alone && is_other {
        return None;
    }
    rest.next().map(OsString::as_os_str)
}

/// Whether an option of the program takes a value; nothing where there is no such option.
fn takes_value(command: &Command, name: &str) -> Option<bool> {
    if name == "help" {
        return Some(false);
    }
    let own = command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
    Some(own.get_action().takes_values())
}

#[cfg(test)]
mod tests;
