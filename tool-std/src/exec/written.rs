//! Which files a command writes that is given their names: `cp`, `mv`, `tee` and their like.
//!
//! Whether the command runs is asked about elsewhere. This is for the rules that forbid some
//! files, and for those places that every tool is asked about. A program that is not known here
//! may write as well: whoever allows it allows that.
//!
//! **Invariant:** nothing here looks at a file.

use crate::shell::{Known, Simple, bare_name};

/// What a program does with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operands {
    /// It only reads them.
    Read,
    /// It writes all of them.
    All,
    /// It removes all of them.
    Removed,
    /// The first one is no file.
    AllButFirst,
    /// It copies all of them to the last one.
    ToLast,
    /// It moves all of them to the last one.
    Moved,
}

/// A program that writes what it is given.
struct Writer {
    names: &'static [&'static str],
    operands: Operands,
    /// The letters of its options that take a value, which is no operand.
    valued: &'static str,
    /// The letter and the long name of the option whose value is written.
    output: Option<(char, &'static str)>,
}

const TARGET: Option<(char, &str)> = Some(('t', "--target-directory"));

const WRITERS: &[Writer] = &[
    Writer { names: &["cp", "ln"], operands: Operands::ToLast, valued: "St", output: TARGET },
    Writer { names: &["install"], operands: Operands::ToLast, valued: "Sgmot", output: TARGET },
    Writer { names: &["mv"], operands: Operands::Moved, valued: "St", output: TARGET },
    Writer {
        names: &["chgrp", "chmod", "chown"],
        operands: Operands::AllButFirst,
        valued: "",
        output: None,
    },
    Writer {
        names: &["rm", "rmdir", "unlink"],
        operands: Operands::Removed,
        valued: "",
        output: None,
    },
    Writer { names: &["mkdir", "tee"], operands: Operands::All, valued: "m", output: None },
    Writer { names: &["shred"], operands: Operands::All, valued: "ns", output: None },
    Writer { names: &["touch"], operands: Operands::All, valued: "drt", output: None },
    Writer { names: &["truncate"], operands: Operands::All, valued: "rs", output: None },
    Writer {
        names: &["curl"],
        operands: Operands::Read,
        valued: "ACDEFHKPQTUXYbcdehmortuwxyz",
        output: Some(('o', "--output")),
    },
    Writer {
        names: &["wget"],
        operands: Operands::Read,
        valued: "ADIOPQRTUXaeiltow",
        output: Some(('O', "--output-document")),
    },
    Writer {
        names: &["sort"],
        operands: Operands::Read,
        valued: "STkot",
        output: Some(('o', "--output")),
    },
];

/// What is written without a file, or is judged where it is redirected.
const NO_FILES: &[&str] = &["", "/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"];

/// A file that a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written<'a> {
    /// A path.
    Path(&'a str),
    /// One that goes with all that is below it, where it is a link just that.
    Gone(&'a str),
    /// A path, and perhaps all that lies below it.
    Whole(&'a str),
    /// The files that fit a pattern.
    Pattern(&'a str),
    /// What is copied to a path, or into it where that is a folder.
    Copy { from: &'a str, to: &'a str },
    /// One that nobody knows.
    Unknown(&'a str),
}

/// What a command writes, as far as its words tell.
pub(super) fn given(command: &Simple) -> Vec<Written<'_>> {
    let Some(program) = command.argv.first() else { return Vec::new() };
    let name = bare_name(program);
    let rest =
        || command.argv.iter().zip(&command.known).skip(1).map(|(it, known)| (&**it, *known));
    let mut written = match &*name {
        "dd" => rest().filter_map(|(word, known)| file(word.strip_prefix("of=")?, known)).collect(),
        "sed" => edited(rest()),
        name => match WRITERS.iter().find(|writer| writer.names.contains(&name)) {
            Some(writer) => writer.written(rest()),
            None => return Vec::new(),
        },
    };
    if command.open_end {
        written.push(Written::Unknown(&command.text));
    }
    written
}

/// A word that is a file, as far as it is known.
fn file(word: &str, known: Known) -> Option<Written<'_>> {
    match known {
        Known::Literal if NO_FILES.contains(&word) => None,
        Known::Literal => Some(Written::Path(word)),
        Known::Pipe => None,
        Known::Pattern => Some(Written::Pattern(word)),
        Known::One | Known::Nothing => Some(Written::Unknown(word)),
    }
}

impl Writer {
    fn written<'a>(&self, rest: impl Iterator<Item = (&'a str, Known)>) -> Vec<Written<'a>> {
        let (mut operands, mut outputs) = (Vec::new(), Vec::new());
        let mut rest = rest.peekable();
        let mut options_end = false;
        while let Some((word, known)) = rest.next() {
            if options_end || !word.starts_with('-') || word == "-" {
                operands.push((word, known));
            } else if word == "--" {
                options_end = true;
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                let is_output = |(_, it): &(char, &str)| it[2..].starts_with(name);
                if self.output.as_ref().is_some_and(is_output) {
                    outputs.extend(value.map(|it| (it, known)).or_else(|| rest.next()));
                }
            } else if let Some(at) = word.find(|c| self.valued.contains(c)) {
                let (letter, value) = (word[at..].chars().next(), &word[at + 1..]);
                let value = if value.is_empty() { rest.next() } else { Some((value, known)) };
                outputs.extend(value.filter(|_| self.output.map(|it| it.0) == letter));
            } else if known != Known::Literal {
                // It may be no option when it runs.
                operands.push((word, known));
            }
        }
        self.meant(&operands, outputs)
    }

    fn meant<'a>(
        &self,
        operands: &[(&'a str, Known)],
        outputs: Vec<(&'a str, Known)>,
    ) -> Vec<Written<'a>> {
        let all = |of: &[(&'a str, Known)]| {
            of.iter().filter_map(|(word, known)| file(word, *known)).collect::<Vec<_>>()
        };
        let as_other = |of: &[(&'a str, Known)], other: fn(&'a str) -> Written<'a>| {
            let files = all(of).into_iter().map(|file| match file {
                Written::Path(path) => other(path),
                file => file,
            });
            files.collect::<Vec<_>>()
        };
        let (sources, targets) = match (self.operands, operands) {
            (Operands::Read, _) => return all(&outputs),
            (Operands::All, files) => return all(files),
            (Operands::Removed, files) => return as_other(files, Written::Gone),
            (Operands::AllButFirst, [_, files @ ..]) => return as_other(files, Written::Whole),
            (Operands::AllButFirst, []) => return Vec::new(),
            (_, sources) if !outputs.is_empty() => (sources, outputs),
            // A link to what stands there alone is made here.
            (Operands::ToLast, [source]) => {
                (std::slice::from_ref(source), vec![(".", Known::Literal)])
            }
            (_, [sources @ .., target]) => (sources, vec![*target]),
            (_, []) => return Vec::new(),
        };
        let mut written = Vec::new();
        for (to, known) in targets {
            let is_known = |(_, known): &&(&'a str, Known)| *known == Known::Literal;
            match known {
                Known::Literal => {
                    let copies = sources.iter().filter(is_known);
                    written.extend(copies.map(|(from, _)| Written::Copy { from, to }));
                    if let Some((from, _)) = sources.iter().find(|source| !is_known(source)) {
                        written.extend([Written::Unknown(from), Written::Whole(to)]);
                    }
                }
                _ => written.push(Written::Unknown(to)),
            }
        }
        if self.operands == Operands::Moved {
            written.extend(as_other(sources, Written::Gone));
        }
        written
    }
}

/// What `sed` changes in its place.
fn edited<'a>(rest: impl Iterator<Item = (&'a str, Known)> + Clone) -> Vec<Written<'a>> {
    let is_in_place = |word: &str| match word.strip_prefix("--") {
        Some(long) => long.starts_with("in"),
        None => word.starts_with('-') && letters(word).any(|letter| letter == 'i'),
    };
    if !rest.clone().any(|(word, _)| is_in_place(word)) {
        return Vec::new();
    }
    // The first word is the program, unless an option gives that.
    let gives_program = |word: &str| match word.strip_prefix("--") {
        Some(long) => long.starts_with(['e', 'f']),
        None => word.starts_with('-') && letters(word).any(|letter| matches!(letter, 'e' | 'f')),
    };
    let mut is_program = !rest.clone().any(|(word, _)| gives_program(word));
    let mut is_value = false;
    let mut written = Vec::new();
    for (word, known) in rest {
        let is_option = word.starts_with('-') && word.len() > 1;
        if std::mem::take(&mut is_value) {
            continue;
        }
        if is_option {
            is_value = !word.starts_with("--") && word.ends_with(['e', 'f', 'l']) && {
                letters(word).last() == word.chars().next_back()
            };
        } else if !std::mem::take(&mut is_program) {
            written.extend(file(word, known));
        }
    }
    written
}

/// The letters of a word that are options of `sed`: behind some of them stands a value.
fn letters(word: &str) -> impl Iterator<Item = char> {
    let mut ends = false;
    word.chars().skip(1).take_while(move |letter| {
        !std::mem::replace(&mut ends, matches!(letter, 'e' | 'f' | 'i' | 'l'))
    })
}
