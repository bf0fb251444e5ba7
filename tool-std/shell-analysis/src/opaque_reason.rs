//! Reasons why a script or a command needs approval.
//!
//! Each reason has one line of text that tells the user what to check and the model what to write
//! instead.

use std::fmt;

/// Why a script is opaque or a command needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpaqueReason {
    /// The script has no command.
    Empty,
    /// The script is longer than 64 KiB.
    TooLong,
    /// The script has more than 256 commands or 4096 words.
    TooMany,
    /// Commands are nested too deeply.
    TooDeep,
    /// It has invisible characters, or characters that reorder the visible text.
    InvisibleCharacters,
    /// It has control characters.
    ControlCharacters,
    /// A long run of whitespace may push a part of it out of sight.
    Padding,
    /// A quote or a bracket is not closed.
    Unclosed,
    /// An operator is misplaced or not supported.
    Operator,
    /// It has a function, `case`, `[[`, or a condition or loop that is not understood.
    Compound,
    /// A command is left running in the background.
    Background,
    /// A parameter expansion with operators, such as `${x:-y}`.
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
    /// A brace expansion whose words are not certain.
    Braces,
    /// A heredoc with an uncertain delimiter or with expansions.
    Heredoc,
    /// A line continuation inside a word.
    Continuation,
    /// A file descriptor other than 0, 1 and 2, or one that is moved or closed.
    Descriptor,
    /// A redirection whose target is only known at run time.
    UnknownTarget,
    /// A redirection that opens a network connection.
    Network,
    /// A redirection without a command.
    NoCommand,
    /// A redirection opens a relative path after `cd`, or inside a command that may change the
    /// directory.
    FolderChanged,
    /// A command before a redirection may rename, link or mount the file.
    FileRenamed,
    /// The name of the program is only known at run time.
    UnknownProgram,
    /// The subcommand of the program is only known at run time.
    UnknownAction,
    /// The program path is outside the system's program directories.
    ProgramPath,
    /// A variable assignment, unless it only changes how output looks, such as `NO_COLOR=1`.
    Assignment,
    /// It changes the meaning of later commands: an alias, a function, a shell option.
    Redefines,
    /// Commands are read from a file or from standard input.
    SourcedCommands,
    /// Another program may consume a part of the typed text before the shell reads it.
    MixedInput,
    /// A shell other than bash reads it.
    OtherShell,
    /// A program other than a shell reads it, or the reader is unknown.
    OtherReader,
    /// A login shell reads its start-up files before it.
    LoginShell,
    /// Options of a wrapper hide which command it runs.
    WrapperOptions,
    /// An argument may run other programs or write files.
    RiskyArgument,
}

impl OpaqueReason {
    /// Whether a rule that spells out the command may still allow it.
    ///
    /// For all other reasons a broad rule, such as one for all commands of a program, was
    /// probably not written with this case in mind.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::analyze_script;
    ///
    /// let script = analyze_script("./gradlew build");
    /// assert!(script.commands[0].approval_reason.is_some_and(|why| why.is_allowed_by_exact_rule()));
    /// ```
    #[must_use]
    pub fn is_allowed_by_exact_rule(self) -> bool {
        // The path is part of the matched text, so only a rule with that path covers it.
        self == Self::ProgramPath
    }

    /// Whether a command with an unknown name may run, so that no deny rule can match it.
    ///
    /// File access is checked separately. For `RiskyArgument` and `Assignment`, the embedded texts
    /// decide.
    pub fn hides_commands(self) -> bool {
        !matches!(
            self,
            Self::RiskyArgument
                | Self::Assignment
                | Self::Empty
                | Self::FolderChanged
                | Self::ProgramPath
                | Self::FileRenamed
        )
    }

    /// Returns the reason as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "there is no command",
            Self::TooLong => "it is longer than 64 KiB; put it into a file",
            Self::TooMany => "it has more than 256 commands or 4096 words; split it",
            Self::TooDeep => "commands are nested too deeply; run them one by one",
            Self::InvisibleCharacters => "it has invisible characters; remove them",
            Self::ControlCharacters => "it has control characters; remove them",
            Self::Padding => "a long run of blanks may hide a part of it; shorten the run",
            Self::Unclosed => "a quote or a bracket is not closed",
            Self::Operator => "an operator is out of place or not understood",
            Self::Compound => {
                "a function, `case`, `[[` or this form of loop or condition is not understood; run the commands one by one"
            }
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
            Self::UnknownTarget => "the target of a redirection is not known; write its path",
            Self::Network => "a redirection opens a network connection",
            Self::NoCommand => "a redirection stands without a command",
            Self::FolderChanged => {
                "where a redirection leads is not known after `cd`; write an absolute path"
            }
            Self::FileRenamed => {
                "where a redirection leads is not known after the commands before it; run them first"
            }
            Self::UnknownProgram => "the name of the program is not known; write it",
            Self::UnknownAction => "which of its commands a program runs is not known; write it",
            Self::ProgramPath => "the program is named by a path outside the system's folders",
            Self::Assignment => "a variable is set",
            Self::Redefines => "it changes what later commands mean",
            Self::SourcedCommands => "commands come from a file or from the input",
            Self::MixedInput => {
                "a program before it may read a part of it; type lines one by one (`\\u0003` drops all)"
            }
            Self::OtherShell => "a shell other than bash reads it",
            Self::OtherReader => "it goes to a program other than bash at its prompt",
            Self::LoginShell => "start-up files may change what it means; leave out the login",
            Self::WrapperOptions => "options hide which command is run",
            Self::RiskyArgument => "an argument may run other programs or write files",
        }
    }
}

impl fmt::Display for OpaqueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
