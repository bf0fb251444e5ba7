//! Why a command line, or one command of it, is not simply allowed.
//!
//! Each reason is one line that tells a person what to look at, and a model what to write
//! instead.

use std::fmt;

/// Why somebody has to be asked about a script or a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// There is no command in it.
    Empty,
    /// It is longer than 64 KiB.
    TooLong,
    /// It has more than 256 commands or 4096 words.
    TooMany,
    /// Commands are nested too deeply.
    TooDeep,
    /// It has characters that nobody sees, or that reorder what is seen.
    Invisible,
    /// It has control characters.
    Control,
    /// A long run of blanks pushes a part of it out of sight.
    Padding,
    /// A quote or a bracket is not closed.
    Unclosed,
    /// An operator is out of place, or not one that is understood.
    Operator,
    /// It has loops, conditions, functions or groups.
    Compound,
    /// A command is left running in the background.
    Background,
    /// An expansion with operators of its own.
    Expansion,
    /// The value of a variable.
    Parameter,
    /// `$'..'` or `$".."`.
    SpecialQuote,
    /// `$((..))` or `$[..]`.
    Arithmetic,
    /// A substitution in backticks.
    Backtick,
    /// `>(..)`, or `<(..)` inside a word.
    ProcessSubstitution,
    /// Braces that may expand to several words.
    Braces,
    /// A heredoc whose end or whose expansions are not certain.
    Heredoc,
    /// A line continuation inside a word.
    Continuation,
    /// A file descriptor other than 0, 1 and 2, or one that is moved or closed.
    Descriptor,
    /// A redirection whose target is only known when it runs.
    Target,
    /// A redirection that opens a network connection.
    Network,
    /// A redirection without a command.
    NoCommand,
    /// A redirection opens a relative path after the folder was changed, or inside of a
    /// command that may change it.
    Moved,
    /// A command before a redirection may rename, link or mount the file.
    Renamed,
    /// The name of the program is only known when it runs.
    Program,
    /// Which of its commands a program runs is only known when it runs.
    Action,
    /// The program is named by a path that is not one of the system's folders.
    ProgramPath,
    /// A variable is set.
    Assignment,
    /// It changes what later commands mean.
    Declares,
    /// Commands come from a file or from the input.
    Sourced,
    /// Another program may have read a part of it before the shell does.
    Mixed,
    /// Another shell than bash reads it.
    OtherShell,
    /// A program that is no shell reads it, or nobody knows what does.
    OtherReader,
    /// A login shell reads its start-up files before it.
    Login,
    /// Options hide which command is run.
    Wrapper,
    /// An argument runs other programs, writes files, or may do so.
    Argument,
}

impl Why {
    /// Whether a rule that spells out the command may allow it all the same.
    ///
    /// Otherwise a rule that covers it, such as one for all commands of a program, was most
    /// likely not written with this in mind.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::understand;
    ///
    /// let script = understand("./gradlew build");
    /// assert!(script.commands[0].asks.is_some_and(|why| why.may_be_allowed()));
    /// ```
    #[must_use]
    pub fn may_be_allowed(self) -> bool {
        // The path is part of what rules match, so only a rule with that path covers it.
        self == Self::ProgramPath
    }

    /// Whether a command may be run that nobody can name, so that no rule against commands
    /// can be held against it.
    ///
    /// What is done to files is judged by itself. Of an argument or a variable this alone does
    /// not tell.
    pub(crate) fn hides_names(self) -> bool {
        !matches!(
            self,
            Self::Argument
                | Self::Assignment
                | Self::Empty
                | Self::Moved
                | Self::ProgramPath
                | Self::Renamed
        )
    }

    /// The reason in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "there is no command",
            Self::TooLong => "it is longer than 64 KiB; put it into a file",
            Self::TooMany => "it has more than 256 commands or 4096 words; split it",
            Self::TooDeep => "commands are nested too deeply; run them one by one",
            Self::Invisible => "it has invisible characters; leave them out",
            Self::Control => "it has control characters; leave them out",
            Self::Padding => "a long run of blanks may hide a part of it; shorten the run",
            Self::Unclosed => "a quote or a bracket is not closed",
            Self::Operator => "an operator is out of place or not understood",
            Self::Compound => "it has loops, conditions or functions; run the commands one by one",
            Self::Background => "`&` leaves a command running; run it on its own",
            Self::Expansion => "an expansion such as `${x:-y}` is not understood; write the value",
            Self::Parameter => "the value of a variable is not known; write the value",
            Self::SpecialQuote => "`$'..'` is not understood; use plain quotes",
            Self::Arithmetic => "arithmetic is not understood; write the number",
            Self::Backtick => "backticks are not understood; use `$(..)`",
            Self::ProcessSubstitution => "`>(..)` is not understood; use a pipe or a file",
            Self::Braces => "braces may expand to several words; write the words",
            Self::Heredoc => "a heredoc is not understood; quote its delimiter, as in `<<'EOF'`",
            Self::Continuation => "a line is continued inside a word; write it on one line",
            Self::Descriptor => "only the file descriptors 0, 1 and 2 are understood",
            Self::Target => "the target of a redirection is not known; write its path",
            Self::Network => "a redirection opens a network connection",
            Self::NoCommand => "a redirection stands without a command",
            Self::Moved => {
                "where a redirection leads is not known after `cd`; write an absolute path"
            }
            Self::Renamed => {
                "where a redirection leads is not known after the commands before it; run them first"
            }
            Self::Program => "the name of the program is not known; write it",
            Self::Action => "which of its commands a program runs is not known; write it",
            Self::ProgramPath => "the program is named by a path outside the system's folders",
            Self::Assignment => "a variable is set",
            Self::Declares => "it changes what later commands mean",
            Self::Sourced => "commands come from a file or from the input",
            Self::Mixed => {
                "a program before it may read a part of it; type lines one by one (`\\u0003` drops all)"
            }
            Self::OtherShell => "a shell other than bash reads it",
            Self::OtherReader => "it goes to a program that is no bash at its prompt",
            Self::Login => "start-up files may change what it means; leave out the login",
            Self::Wrapper => "options hide which command is run",
            Self::Argument => "an argument may run other programs or write files",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
