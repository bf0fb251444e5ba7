//! Static analysis of shell command lines: which commands, files and redirections a script
//! contains.
//!
//! [`analyze_script`] splits a script into the simple commands that bash would run, including those
//! nested in `$(..)`, `sudo`, `bash -c` and `find -exec`. Permission rules match those commands,
//! never the script text. A strict lexer reads plain words; a second parser reads redirections,
//! variables, braces, substitutions, heredocs, groups, conditions and loops. The body of a `for`
//! loop over known words is listed once for each word. A script that neither accepts is *opaque*: it needs
//! approval, and a fallback scan lists every command that it may contain, so that deny rules
//! still apply.
//!
//! Only bash syntax is analysed. Scripts for other shells are always opaque.
//!
//! **Invariant:** pure and linear in the length of the script. Nothing here starts a process,
//! reads a file or knows a permission rule.

#![forbid(unsafe_code)]

mod aliases;
mod analyze;
mod ansi_quotes;
mod assignments;
mod classify;
mod dangerous;
mod embedded_commands;
mod execution_order;
mod fallback_scan;
mod file_renames;
mod leading_cd;
mod lexer;
mod login_shell;
mod opaque_reason;
mod parser;
mod program_names;
mod raw_text;
mod safe;
mod spellings;
mod suggest;
mod synonyms;
mod word;
mod wrappers;

use self::analyze::ScriptAnalyzer;
pub use self::opaque_reason::OpaqueReason;
pub use self::suggest::suggest_patterns;
pub use self::word::WordCertainty;
use self::word::bare_name;

/// For `tool-std`, without a promise of stability.
#[doc(hidden)]
pub mod internal {
    pub use crate::aliases::external_git_program;
    pub use crate::analyze::MAX_BYTES as MAX_LINE;
    pub use crate::has_profile;
    pub use crate::login_shell::{is_login_shell, strip_login_option};
    pub use crate::spellings::alternative_spellings;
    pub use crate::suggest::{can_offer_grant, rule_patterns};
    pub use crate::word::bare_name;
}

/// The result of the static analysis of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptAnalysis {
    /// Every simple command: those of the script first, then the nested ones. For an opaque
    /// script, every command that it may contain.
    pub commands: Vec<SimpleCommand>,
    /// Paths that redirections write, as spelled in the script.
    pub writes: Vec<String>,
    /// Paths that redirections read, as spelled in the script.
    pub reads: Vec<String>,
    /// Why the script could not be analysed; `None` if the analysis is complete.
    pub opaque: Option<OpaqueReason>,
    /// Whether the script consists only of plain words and `;`, `&&`, `||`, `|`.
    pub is_plain: bool,
    /// The target of each command that changes the working directory; `None` if it is not known.
    pub folder_changes: Vec<Option<String>>,
    /// How many of these run before every other command.
    pub leading_changes: usize,
    /// Whether all of these run first, and every redirection is opened after them.
    pub redirects_follow_changes: bool,
    /// Paths that redirections of an opaque script may read.
    pub possible_reads: Vec<String>,
    /// Texts that an interpreter may execute from its standard input, and whether it is a shell.
    pub code_inputs: Vec<(String, bool)>,
    /// Whether a command may link, move or mount files.
    pub may_rename_files: bool,
    is_direct: bool,
    has_unstable_paths: bool,
    is_truncated: bool,
}

impl ScriptAnalysis {
    /// Returns the argument vector of the only command if it can be run without a shell.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::analyze_script;
    ///
    /// assert_eq!(analyze_script("echo 'a b'").direct_argv().unwrap(), ["echo", "a b"]);
    /// assert_eq!(analyze_script("echo *").direct_argv(), None);
    /// ```
    #[must_use]
    pub fn direct_argv(&self) -> Option<&[String]> {
        let command = self.commands.first()?;
        self.is_direct.then_some(command.argv.as_slice())
    }

    /// Whether it removes files by force or destroys data irreversibly.
    #[must_use]
    pub fn is_dangerous(&self) -> bool {
        self.commands.iter().any(|command| command.is_dangerous)
    }

    /// Whether a path may resolve differently by the time it is opened, because an earlier
    /// command may rename, link or mount files.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::analyze_script;
    ///
    /// assert!(analyze_script("ln -s /etc/hosts x && echo > /work/x").has_unstable_paths());
    /// assert!(!analyze_script("make && echo done > /work/x").has_unstable_paths());
    /// ```
    #[must_use]
    pub fn has_unstable_paths(&self) -> bool {
        self.has_unstable_paths
    }

    /// Whether the script is too large to list every command. It must not run, because no rule
    /// has seen the omitted part.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::analyze_script;
    ///
    /// assert!(analyze_script(&"ls;".repeat(100_000)).is_truncated());
    /// assert!(!analyze_script(&"ls;".repeat(1_000)).is_truncated());
    /// ```
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Merges the commands of `other` into this analysis; the script properties of `self` are
    /// kept.
    #[doc(hidden)]
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.commands.extend(other.commands);
        self.opaque = self.opaque.or(other.opaque);
        self.is_truncated |= other.is_truncated;
        self
    }

    /// Whether every command is read-only and known, so that no approval is needed.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.opaque.is_none()
            && self.writes.is_empty()
            && self.commands.iter().all(|command| command.is_safe || command.is_embedded)
    }
}

/// One simple command: a program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimpleCommand {
    /// The words after quote removal. Expansions whose value is only known at run time are kept
    /// as spelled.
    pub argv: Vec<String>,
    /// The words joined by single spaces, quoted only where necessary. Permission rules match
    /// this text.
    pub text: String,
    /// Whether it is nested in another command or in a substitution.
    pub is_nested: bool,
    /// Why the command needs approval even if a rule allows it.
    pub approval_reason: Option<OpaqueReason>,
    /// Whether it is known to be read-only. For a wrapper such as `timeout` this means that only
    /// the wrapped command matters, which is listed too.
    pub is_safe: bool,
    /// Whether it removes files by force or destroys data irreversibly.
    pub is_dangerous: bool,
    /// Whether it was found in text that bash does not parse, such as code of another language or
    /// a command for another machine, and may not be a command at all. Only deny rules apply to
    /// it, and `argv` has only its first word.
    pub is_embedded: bool,
    /// Whether it is read-only, even if it needs approval because of the shell that runs it.
    pub is_read_only: bool,
    /// How certain the value of each word is.
    pub word_certainty: Vec<WordCertainty>,
    /// Whether it may run a command whose name is not known, so that no deny rule can match it.
    pub hides_commands: bool,
    /// Whether its subcommand may be an alias from the settings of git or cargo.
    pub may_be_alias: bool,
    /// Whether more arguments may be appended at run time, as `xargs` does.
    pub has_open_end: bool,
    /// Whether it may run in another directory, or see other files in it.
    pub may_run_elsewhere: bool,
}

impl SimpleCommand {
    /// Whether the value of every word is known.
    pub fn is_fully_known(&self) -> bool {
        use WordCertainty::{HomePath, Literal, Pipe};
        let is_known = |known: &WordCertainty| matches!(known, Literal | HomePath | Pipe);
        !self.has_open_end && self.word_certainty.iter().all(is_known)
    }

    /// Returns the text with the bare name of the program, if that differs.
    ///
    /// Deny rules use it: `/tmp/rm` and `RM.exe` are `rm` to them. Allow rules must not.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::analyze_script;
    ///
    /// let script = analyze_script("./git push");
    /// assert_eq!(script.commands[0].text, "./git push");
    /// assert_eq!(script.commands[0].bare_text().as_deref(), Some("git push"));
    /// ```
    #[must_use]
    pub fn bare_text(&self) -> Option<String> {
        let program = self.argv.first()?;
        let name = bare_name(program);
        let name = program_names::strip_gnu_prefix(&name);
        if name == program {
            return None;
        }
        // The program is a single word of the text, however it is quoted.
        let written = word::quote_word(program);
        let rest = self.text.strip_prefix(&written).or_else(|| self.text.strip_prefix(program))?;
        Some(format!("{}{rest}", word::quote_word(name)))
    }
}

/// Whether the classification of a command relies on the option profile of its program.
#[doc(hidden)]
#[must_use]
pub fn has_profile(command: &SimpleCommand) -> bool {
    command.argv.first().is_some_and(|program| dangerous::has_profile(program))
}

/// Analyses a bash script.
///
/// # Examples
///
/// ```
/// use tool_std::shell::analyze_script;
///
/// let script = analyze_script("cd src && sudo rm -rf 'my files' > log");
/// let texts: Vec<_> = script.commands.iter().map(|command| &*command.text).collect();
///
/// assert_eq!(texts, ["cd src", "sudo rm -rf 'my files'", "rm -rf 'my files'"]);
/// assert_eq!(script.writes, ["log"]);
/// assert!(script.is_dangerous());
/// ```
#[must_use]
pub fn analyze_script(script: &str) -> ScriptAnalysis {
    ScriptAnalyzer::default().analyze_script(script)
}

/// Analyses a program with its arguments, started without a shell.
///
/// `bash -lc` is treated as `bash -c`, because the exec tools start it without start-up files.
///
/// # Examples
///
/// ```
/// use tool_std::shell::analyze_argv;
///
/// let argv = ["bash", "-c", "ls && git push"].map(String::from);
/// let commands = analyze_argv(&argv).commands;
/// assert_eq!(commands[2].text, "git push");
/// ```
#[must_use]
pub fn analyze_argv(argv: &[String]) -> ScriptAnalysis {
    ScriptAnalyzer::default().analyze_argv(argv)
}

#[cfg(test)]
mod tests;
