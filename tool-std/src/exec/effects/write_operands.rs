//! The files that a command writes because its operands name them: `cp`, `mv`, `tee` and the
//! like.
//!
//! Whether the command runs is decided elsewhere. These files are for deny rules, and for the
//! places that need approval for every tool. An unlisted program may write as well; approving it
//! accepts that.
//!
//! **Invariant:** nothing here accesses a file.

use crate::shell::{SimpleCommand, WordCertainty, bare_name};

/// What a program does with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperandUse {
    /// It only reads them.
    Read,
    /// It writes all of them.
    All,
    /// It removes all of them.
    Removed,
    /// The first one is not a file.
    AllButFirst,
    /// It copies all of them to the last one.
    ToLast,
    /// It moves all of them to the last one.
    Moved,
}

/// A program that writes its operands.
struct WriterProgram {
    names: &'static [&'static str],
    operands: OperandUse,
    /// Short options that take a value, which is not an operand.
    valued: &'static str,
    /// The short and long option whose value is written.
    output: Option<(char, &'static str)>,
}

const TARGET: Option<(char, &str)> = Some(('t', "--target-directory"));

const WRITERS: &[WriterProgram] = &[
    WriterProgram {
        names: &["cp", "ln"],
        operands: OperandUse::ToLast,
        valued: "St",
        output: TARGET,
    },
    WriterProgram {
        names: &["install"],
        operands: OperandUse::ToLast,
        valued: "Sgmot",
        output: TARGET,
    },
    WriterProgram { names: &["mv"], operands: OperandUse::Moved, valued: "St", output: TARGET },
    WriterProgram {
        names: &["chgrp", "chmod", "chown"],
        operands: OperandUse::AllButFirst,
        valued: "",
        output: None,
    },
    WriterProgram {
        names: &["rm", "rmdir", "unlink"],
        operands: OperandUse::Removed,
        valued: "",
        output: None,
    },
    WriterProgram {
        names: &["mkdir", "tee"],
        operands: OperandUse::All,
        valued: "m",
        output: None,
    },
    WriterProgram { names: &["shred"], operands: OperandUse::All, valued: "ns", output: None },
    WriterProgram { names: &["touch"], operands: OperandUse::All, valued: "drt", output: None },
    WriterProgram { names: &["truncate"], operands: OperandUse::All, valued: "rs", output: None },
    WriterProgram {
        names: &["curl"],
        operands: OperandUse::Read,
        valued: "ACDEFHKPQTUXYbcdehmortuwxyz",
        output: Some(('o', "--output")),
    },
    WriterProgram {
        names: &["wget"],
        operands: OperandUse::Read,
        valued: "ADIOPQRTUXaeiltow",
        output: Some(('O', "--output-document")),
    },
    WriterProgram {
        names: &["sort"],
        operands: OperandUse::Read,
        valued: "STkot",
        output: Some(('o', "--output")),
    },
];

/// Operands that are not regular files, or are checked as redirections.
const NO_FILES: &[&str] = &["", "/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"];

/// A file that a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOperand<'a> {
    /// A path.
    Path(&'a str),
    /// A path that is removed with everything below it; of a link, only the link.
    Removed(&'a str),
    /// A path, and possibly everything below it.
    Tree(&'a str),
    /// The files that match a glob.
    Pattern(&'a str),
    /// A file that is copied to a path, or into it if it is a directory.
    Copy { from: &'a str, to: &'a str },
    /// An unknown file.
    Unknown(&'a str),
}

/// Returns the files that a command writes, from its words alone.
pub(super) fn write_operands(command: &SimpleCommand) -> Vec<WriteOperand<'_>> {
    let Some(program) = command.argv.first() else { return Vec::new() };
    let name = bare_name(program);
    let rest = || {
        command.argv.iter().zip(&command.word_certainty).skip(1).map(|(it, known)| (&**it, *known))
    };
    let mut written = match &*name {
        "dd" => rest()
            .filter_map(|(word, known)| file_operand(word.strip_prefix("of=")?, known))
            .collect(),
        "sed" => sed_in_place_files(rest()),
        name => match WRITERS.iter().find(|writer| writer.names.contains(&name)) {
            Some(writer) => writer.parse_operands(rest()),
            None => return Vec::new(),
        },
    };
    if command.has_open_end {
        written.push(WriteOperand::Unknown(&command.text));
    }
    written
}

/// Classifies a word that names a file.
fn file_operand(word: &str, known: WordCertainty) -> Option<WriteOperand<'_>> {
    match known {
        WordCertainty::Literal if NO_FILES.contains(&word) => None,
        WordCertainty::Literal => Some(WriteOperand::Path(word)),
        WordCertainty::Pipe => None,
        WordCertainty::Pattern => Some(WriteOperand::Pattern(word)),
        WordCertainty::SingleWord | WordCertainty::AnyWords => Some(WriteOperand::Unknown(word)),
    }
}

impl WriterProgram {
    fn parse_operands<'a>(
        &self,
        rest: impl Iterator<Item = (&'a str, WordCertainty)>,
    ) -> Vec<WriteOperand<'a>> {
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
            } else if known != WordCertainty::Literal {
                // It may expand to an operand.
                operands.push((word, known));
            }
        }
        self.resolve_operands(&operands, outputs)
    }

    fn resolve_operands<'a>(
        &self,
        operands: &[(&'a str, WordCertainty)],
        outputs: Vec<(&'a str, WordCertainty)>,
    ) -> Vec<WriteOperand<'a>> {
        let all = |words: &[(&'a str, WordCertainty)]| {
            words.iter().filter_map(|(word, known)| file_operand(word, *known)).collect::<Vec<_>>()
        };
        let as_other = |words: &[(&'a str, WordCertainty)],
                        other: fn(&'a str) -> WriteOperand<'a>| {
            let files = all(words).into_iter().map(|file| match file {
                WriteOperand::Path(path) => other(path),
                file => file,
            });
            files.collect::<Vec<_>>()
        };
        let (sources, targets) = match (self.operands, operands) {
            (OperandUse::Read, _) => return all(&outputs),
            (OperandUse::All, files) => return all(files),
            (OperandUse::Removed, files) => return as_other(files, WriteOperand::Removed),
            (OperandUse::AllButFirst, [_, files @ ..]) => {
                return as_other(files, WriteOperand::Tree);
            }
            (OperandUse::AllButFirst, []) => return Vec::new(),
            (_, sources) if !outputs.is_empty() => (sources, outputs),
            // `ln` with one operand creates the link in the current directory.
            (OperandUse::ToLast, [source]) => {
                (std::slice::from_ref(source), vec![(".", WordCertainty::Literal)])
            }
            (_, [sources @ .., target]) => (sources, vec![*target]),
            (_, []) => return Vec::new(),
        };
        let mut written = Vec::new();
        for (to, known) in targets {
            let is_known =
                |(_, known): &&(&'a str, WordCertainty)| *known == WordCertainty::Literal;
            match known {
                WordCertainty::Literal => {
                    let copies = sources.iter().filter(is_known);
                    written.extend(copies.map(|(from, _)| WriteOperand::Copy { from, to }));
                    if let Some((from, _)) = sources.iter().find(|source| !is_known(source)) {
                        written.extend([WriteOperand::Unknown(from), WriteOperand::Tree(to)]);
                    }
                }
                _ => written.push(WriteOperand::Unknown(to)),
            }
        }
        if self.operands == OperandUse::Moved {
            written.extend(as_other(sources, WriteOperand::Removed));
        }
        written
    }
}

/// Returns the files that `sed` edits in place.
fn sed_in_place_files<'a>(
    rest: impl Iterator<Item = (&'a str, WordCertainty)> + Clone,
) -> Vec<WriteOperand<'a>> {
    let is_in_place = |word: &str| match word.strip_prefix("--") {
        Some(long) => long.starts_with("in"),
        None => word.starts_with('-') && option_letters(word).any(|letter| letter == 'i'),
    };
    if !rest.clone().any(|(word, _)| is_in_place(word)) {
        return Vec::new();
    }
    // The first operand is the sed program, unless an option gives it.
    let gives_program = |word: &str| match word.strip_prefix("--") {
        Some(long) => long.starts_with(['e', 'f']),
        None => {
            word.starts_with('-') && option_letters(word).any(|letter| matches!(letter, 'e' | 'f'))
        }
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
                option_letters(word).last() == word.chars().next_back()
            };
        } else if !std::mem::take(&mut is_program) {
            written.extend(file_operand(word, known));
        }
    }
    written
}

/// Returns the option letters of a `sed` word, up to one that takes the rest as value.
fn option_letters(word: &str) -> impl Iterator<Item = char> {
    let mut ends = false;
    word.chars().skip(1).take_while(move |letter| {
        !std::mem::replace(&mut ends, matches!(letter, 'e' | 'f' | 'i' | 'l'))
    })
}
