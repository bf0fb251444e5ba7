//! What each program does with the files that its words name: the one table of programs.
//!
//! A program without a row reads every file that its words name, writes none of them, and may run
//! any of them.
//!
//! **Invariant:** plain data; nothing here looks at a command or a file.

use tool_shell_analysis::internal::bare_name;

/// How a program uses files.
#[derive(Clone, Copy)]
pub(super) struct ProgramEffects {
    names: &'static [&'static str],
    pub(super) reads: ReadEffect,
    pub(super) writes: WriteEffect,
    pub(super) runs: RunEffect,
    /// Short options that take a value, which is not an operand.
    pub(super) valued: &'static str,
    /// A short option that takes the rest of its word as value.
    pub(super) suffixed: Option<char>,
    /// The short and long option whose value is written.
    pub(super) output: Option<(char, &'static str)>,
    /// The short and long options with which it reads files that no word names: it follows links,
    /// or reads a list of names.
    pub(super) unnamed_reads: (&'static str, &'static [&'static str]),
    /// Options whose value is a message for people.
    pub(super) messages: &'static [&'static str],
    /// Whether `/` alone is a character, or a directory that it does not read.
    pub(super) ignores_slash: bool,
}

/// What a program reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadEffect {
    /// The files that its words name.
    Operands,
    /// Pairs of files, or of the entries of directories.
    Compared,
    /// The names below its operands, or below the current directory.
    Listed,
    /// The lines that match its first operand.
    Searched,
    /// Files of the work tree and of revisions.
    Git,
    /// What the nested command reads, which is a command of its own.
    Nested,
    /// Nothing: its words are text.
    Nothing,
    /// Nothing while it is read-only. Otherwise an option may name a file, as in `date -f list`.
    NothingIfReadOnly,
    /// No contents: it uses the names alone.
    Names,
}

/// What a program does with its operands besides reading them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteEffect {
    /// It writes none of them.
    Nothing,
    /// It writes only the value of its output option.
    Output,
    /// It writes all of them.
    Operands,
    /// It removes all of them.
    Removed,
    /// It changes all but the first one, and what is below them.
    AllButFirst,
    /// It copies all of them to the last one.
    ToLast,
    /// It moves all of them to the last one.
    Moved,
    /// It writes `of=file`.
    Assigned,
    /// It edits all but its program if an option says so, as `sed -i` does.
    InPlace,
}

/// Which files a program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RunEffect {
    /// Any file that its words name.
    Unknown,
    /// None of its operands, or project code that is not inspected.
    Nothing,
    /// A script given by name; a version may follow the program name.
    Script,
    /// A script given with `-f`; a version may follow the program name.
    ScriptOption,
}

impl ProgramEffects {
    /// Returns the row of a bare program name.
    pub(super) fn find(name: &str) -> &'static Self {
        PROGRAMS.iter().find(|program| program.names.contains(&name)).unwrap_or(&UNKNOWN)
    }

    /// Returns what a program runs, by its word. A version and an architecture may follow the
    /// name of an interpreter.
    pub(super) fn find_runs(word: &str) -> RunEffect {
        let name = bare_name(word);
        let is_version = |c: char| c.is_ascii_digit() || c == '.';
        let family = name.split(is_version).next().unwrap_or_default().trim_end_matches('-');
        match (Self::find(&name).runs, Self::find(family).runs) {
            (RunEffect::Unknown, runs @ (RunEffect::Script | RunEffect::ScriptOption)) => runs,
            // Of another file with the name, nothing is known.
            (RunEffect::Nothing, _) if name != word => RunEffect::Unknown,
            (runs, _) => runs,
        }
    }

    const fn reads(self, reads: ReadEffect) -> Self {
        Self { reads, ..self }
    }

    const fn writes(self, writes: WriteEffect, valued: &'static str) -> Self {
        Self { writes, valued, ..self }
    }

    const fn suffixed(self, letter: char) -> Self {
        Self { suffixed: Some(letter), ..self }
    }

    const fn output(self, short: char, long: &'static str) -> Self {
        Self { output: Some((short, long)), ..self }
    }

    const fn runs(self, runs: RunEffect) -> Self {
        Self { runs, ..self }
    }

    const fn unnamed_reads(self, short: &'static str, long: &'static [&'static str]) -> Self {
        Self { unnamed_reads: (short, long), ..self }
    }

    const fn messages(self, messages: &'static [&'static str]) -> Self {
        Self { messages, ..self }
    }

    const fn ignores_slash(self) -> Self {
        Self { ignores_slash: true, ..self }
    }
}

const fn program(names: &'static [&'static str]) -> ProgramEffects {
    ProgramEffects { names, ..UNKNOWN }
}

const UNKNOWN: ProgramEffects = ProgramEffects {
    names: &[],
    reads: ReadEffect::Operands,
    writes: WriteEffect::Nothing,
    runs: RunEffect::Unknown,
    valued: "",
    suffixed: None,
    output: None,
    unnamed_reads: ("", &[]),
    messages: &[],
    ignores_slash: false,
};

const PROGRAMS: &[ProgramEffects] = &[
    // Programs and builtins that read no contents.
    program(&["echo", "printf"]).reads(ReadEffect::Nothing).runs(RunEffect::Nothing),
    program(&["false", "sleep", "true", "type"]).reads(ReadEffect::Nothing),
    program(&[
        "basename", "command", "date", "dirname", "expr", "id", "nproc", "numfmt", "pwd", "seq",
        "tr", "uname", "which", "whoami",
    ])
    .reads(ReadEffect::NothingIfReadOnly),
    program(&["[", "test"]).reads(ReadEffect::Names).ignores_slash(),
    program(&[
        ":", "cd", "declare", "exit", "export", "let", "local", "popd", "pushd", "read", "return",
        "set", "shift", "trap", "umask", "unset", "wait",
    ])
    .reads(ReadEffect::Names),
    program(&["kill"]).reads(ReadEffect::Names).runs(RunEffect::Nothing),
    program(&["env", "gstdbuf", "gtimeout", "nice", "nohup", "stdbuf", "time", "timeout"])
        .reads(ReadEffect::Nested),
    // Programs that read.
    program(&["cut", "df", "nl", "paste", "readlink", "realpath"]).ignores_slash(),
    program(&["diff"]).reads(ReadEffect::Compared).unnamed_reads("r", &["--recursive"]),
    program(&["du"])
        .reads(ReadEffect::Listed)
        .unnamed_reads("L", &["--dereference", "--files0-from"]),
    program(&["find"]).reads(ReadEffect::Listed).unnamed_reads("", &["-L", "-follow"]),
    program(&["git"]).reads(ReadEffect::Git).runs(RunEffect::Nothing).messages(&[
        "-m",
        "-am",
        "--message",
    ]),
    program(&["grep"])
        .reads(ReadEffect::Searched)
        .unnamed_reads("RS", &["--dereference-recursive"]),
    program(&["ls"]).reads(ReadEffect::Listed).unnamed_reads("L", &["--dereference"]),
    program(&["rg"]).reads(ReadEffect::Searched).unnamed_reads("L", &["--follow"]),
    program(&["wc"]).unnamed_reads("", &["--files0-from"]),
    // Programs that write their operands.
    program(&["chgrp"]).writes(WriteEffect::AllButFirst, ""),
    program(&["chmod", "chown"]).writes(WriteEffect::AllButFirst, "").runs(RunEffect::Nothing),
    program(&["cp", "ln"])
        .writes(WriteEffect::ToLast, "St")
        .output('t', "--target-directory")
        .runs(RunEffect::Nothing),
    program(&["curl"])
        .writes(WriteEffect::Output, "ACDEFHKPQTUXYbcdehmortuwxyz")
        .output('o', "--output")
        .runs(RunEffect::Nothing),
    program(&["dd"]).writes(WriteEffect::Assigned, ""),
    program(&["install"]).writes(WriteEffect::ToLast, "Sgmot").output('t', "--target-directory"),
    program(&["mkdir"])
        .reads(ReadEffect::Names)
        .writes(WriteEffect::Operands, "m")
        .runs(RunEffect::Nothing),
    program(&["mv"])
        .writes(WriteEffect::Moved, "St")
        .output('t', "--target-directory")
        .runs(RunEffect::Nothing),
    program(&["rm", "rmdir"])
        .reads(ReadEffect::Names)
        .writes(WriteEffect::Removed, "")
        .runs(RunEffect::Nothing),
    program(&["sed"])
        .writes(WriteEffect::InPlace, "efl")
        .suffixed('i')
        .runs(RunEffect::ScriptOption),
    program(&["shred"]).writes(WriteEffect::Operands, "ns"),
    program(&["sort"]).writes(WriteEffect::Output, "STkot").output('o', "--output").ignores_slash(),
    program(&["tee"]).writes(WriteEffect::Operands, "m"),
    program(&["touch"])
        .reads(ReadEffect::Names)
        .writes(WriteEffect::Operands, "drt")
        .runs(RunEffect::Nothing),
    program(&["truncate"]).writes(WriteEffect::Operands, "rs"),
    program(&["unlink"]).writes(WriteEffect::Removed, ""),
    program(&["wget"])
        .writes(WriteEffect::Output, "ADIOPQRTUXaeiltow")
        .output('O', "--output-document")
        .runs(RunEffect::Nothing),
    // Programs that run files, and others that do not.
    program(&["bash", "sh"]).reads(ReadEffect::Nested).runs(RunEffect::Script),
    program(&[
        ".", "ash", "bun", "csh", "dash", "deno", "expect", "fish", "java", "ksh", "lua", "node",
        "nodejs", "perl", "php", "pwsh", "pypy", "python", "rscript", "ruby", "source", "tclsh",
        "tcsh", "ts-node", "tsx", "zsh",
    ])
    .runs(RunEffect::Script),
    program(&["awk", "gawk", "mawk", "nawk"]).runs(RunEffect::ScriptOption),
    program(&["cargo", "gzip", "rsync", "scp", "tail", "tar", "unzip", "zip"])
        .runs(RunEffect::Nothing),
    program(&["gh"])
        .runs(RunEffect::Nothing)
        .messages(&["-b", "-t", "--body", "--notes", "--title"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_one_row() {
        let mut names: Vec<&str> =
            PROGRAMS.iter().flat_map(|program| program.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| bare_name(name) == *name), "{names:?}");
    }

    #[test]
    fn version_may_follow_the_name_of_an_interpreter() {
        for (word, expected) in [
            ("python3.12", RunEffect::Script),
            ("/usr/bin/perl5.36-x86_64", RunEffect::Script),
            ("sed4", RunEffect::ScriptOption),
            ("git", RunEffect::Nothing),
            ("./git", RunEffect::Unknown),
            ("git2", RunEffect::Unknown),
            ("make", RunEffect::Unknown),
        ] {
            assert!(ProgramEffects::find_runs(word) == expected, "{word}");
        }
    }
}
