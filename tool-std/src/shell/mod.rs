//! What a command line will do, as far as its text tells.
//!
//! [`understand`] takes a script apart into the commands that bash would run, also those
//! inside `$(..)`, `sudo`, `bash -c` and `find -exec`. Rules then match commands, never the
//! script. Two layers read scripts: a strict one for plain words, and a second one for what
//! people type around them. What neither takes is *opaque*: somebody has to be asked, and
//! every command that might be in it is listed for the rules that forbid.
//!
//! It holds for bash. For every other shell a script is not understood.
//!
//! **Invariant:** pure and linear. Nothing here starts a process, looks at a file or knows
//! a rule.

#[cfg(all(feature = "exec", unix))]
mod action;
mod alias;
mod ansi;
mod danger;
mod find;
mod folders;
mod hidden;
mod judge;
mod known;
mod lex;
mod login;
mod names;
mod places;
mod program;
mod rawcheck;
mod rich;
mod safe;
mod suggest;
#[cfg(all(feature = "exec", unix))]
mod synonyms;
mod unwrap;
mod why;
mod word;

#[cfg(all(feature = "exec", unix))]
pub(crate) use self::action::readings;
#[cfg(all(feature = "exec", unix))]
pub(crate) use self::alias::program_instead;
use self::judge::Judge;
#[cfg(all(feature = "exec", unix))]
pub(crate) use self::judge::MAX_BYTES as MAX_LINE;
#[cfg(all(feature = "exec", unix, feature = "mcp"))]
pub(crate) use self::login::is_login;
#[cfg(all(feature = "exec", unix))]
pub(crate) use self::login::without_login;
pub use self::suggest::suggestions;
#[cfg(all(feature = "exec", unix))]
pub(crate) use self::suggest::{may_be_granted, patterns};
pub use self::why::Why;
pub(crate) use self::word::{Known, bare_name};

/// What is known of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Understood {
    /// Every command, those that stand in the script before those inside of them. When it
    /// is opaque, everything that might be one.
    pub commands: Vec<Simple>,
    /// Files that redirections write, as they are written.
    pub writes: Vec<String>,
    /// Files that redirections read, as they are written.
    pub reads: Vec<String>,
    /// Why the script is not understood.
    pub opaque: Option<Why>,
    /// Whether it consists of plain words and `;`, `&&`, `||`, `|` only.
    pub plain: bool,
    /// Where each command leads that changes the folder, where that is known.
    pub(crate) moves: Vec<Option<String>>,
    /// How many of these are done before everything else.
    pub(crate) led: usize,
    /// Whether all of these are, and every redirection comes after them.
    pub(crate) opens_led: bool,
    /// What redirections of a script that is not understood may read.
    pub(crate) may_read: Vec<String>,
    /// What a program may be given on its input to obey, and whether a shell obeys it.
    pub(crate) obeyed: Vec<(String, bool)>,
    /// Whether a command may link, move or mount files.
    pub(crate) renames: bool,
    direct: bool,
    unsettled: bool,
    cut: bool,
}

impl Understood {
    /// The words of the only command, when they can be run as they are, without a shell.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::understand;
    ///
    /// assert_eq!(understand("echo 'a b'").direct().unwrap(), ["echo", "a b"]);
    /// assert_eq!(understand("echo *").direct(), None);
    /// ```
    #[must_use]
    pub fn direct(&self) -> Option<&[String]> {
        let command = self.commands.first()?;
        self.direct.then_some(command.argv.as_slice())
    }

    /// Whether it removes by force, or destroys what cannot be brought back.
    #[must_use]
    pub fn is_dangerous(&self) -> bool {
        self.commands.iter().any(|command| command.dangerous)
    }

    /// Whether files may lie elsewhere when they are opened than they do now: something before
    /// that may rename, link or mount them.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::understand;
    ///
    /// assert!(understand("ln -s /etc/hosts x && echo > /work/x").is_unsettled());
    /// assert!(!understand("make && echo done > /work/x").is_unsettled());
    /// ```
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// Whether there is too much of it to list every command. It must not run: no rule has
    /// seen what was left out.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::understand;
    ///
    /// assert!(understand(&"ls;".repeat(100_000)).is_cut());
    /// assert!(!understand(&"ls;".repeat(1_000)).is_cut());
    /// ```
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// What is known of both, where the first one is what runs.
    #[cfg(all(feature = "exec", unix))]
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.commands.extend(other.commands);
        self.opaque = self.opaque.or(other.opaque);
        self.cut |= other.cut;
        self
    }

    /// Whether all of it only looks, so that nobody needs to be asked.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.opaque.is_none()
            && self.writes.is_empty()
            && self.commands.iter().all(|command| command.safe || command.hidden)
    }
}

/// One command: a program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Simple {
    /// The words after quotes are removed; what is only known at run time stands in them as
    /// it is written.
    pub argv: Vec<String>,
    /// The words with single blanks between them, and quotes only where they are needed:
    /// this is what rules match.
    pub text: String,
    /// Whether it stands inside of another command, or in a substitution.
    pub inner: bool,
    /// Why somebody has to be asked even when a rule covers it.
    pub asks: Option<Why>,
    /// Whether it only looks. Of a command such as `timeout` it says that only the command
    /// inside matters, which is listed too.
    pub safe: bool,
    /// Whether it removes by force, or destroys what cannot be brought back.
    pub dangerous: bool,
    /// Whether it stands in a text that no shell here reads, such as code of another language
    /// or what runs on another machine, and may be no command at all. Only rules that forbid
    /// are about it; of its words, only the first is in `argv`.
    pub hidden: bool,
    /// Whether it only looks, also where somebody has to be asked because of who runs it.
    pub(crate) looks: bool,
    /// What is known of each word.
    pub(crate) known: Vec<Known>,
    /// Whether it may run a command that nobody can name, so that no rule against commands can
    /// be held against it.
    pub(crate) is_nameless: bool,
    /// Whether settings may say which command of its program it is.
    pub(crate) may_be_alias: bool,
    /// Whether more words may come, which nobody has seen.
    pub(crate) open_end: bool,
    /// Whether it may run in another folder, or find other files there.
    pub(crate) elsewhere: bool,
}

impl Simple {
    /// Whether every word of it is known.
    #[cfg(all(feature = "exec", unix))]
    pub(crate) fn is_known(&self) -> bool {
        let is_known = |known: &Known| matches!(known, Known::Literal | Known::Pipe);
        !self.open_end && self.known.iter().all(is_known)
    }

    /// The text with the bare name of the program, where that differs.
    ///
    /// It is for rules that forbid: `/tmp/rm` and `RM.exe` are `rm` to them. A rule that
    /// allows must not look at it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_std::shell::understand;
    ///
    /// let script = understand("./git push");
    /// assert_eq!(script.commands[0].text, "./git push");
    /// assert_eq!(script.commands[0].bare().as_deref(), Some("git push"));
    /// ```
    #[must_use]
    pub fn bare(&self) -> Option<String> {
        let program = self.argv.first()?;
        let name = bare_name(program);
        let name = program::without_prefix(&name);
        if name == program {
            return None;
        }
        // The program is one word of the text, however it is quoted there.
        let written = word::quote(program);
        let rest = self.text.strip_prefix(&written).or_else(|| self.text.strip_prefix(program))?;
        Some(format!("{}{rest}", word::quote(name)))
    }
}

/// Whether what is said of a command rests on what is known of a program of its name.
#[cfg(all(feature = "exec", unix))]
pub(crate) fn has_profile(command: &Simple) -> bool {
    command.argv.first().is_some_and(|program| danger::has_profile(program))
}

/// Understands a script for bash.
///
/// # Examples
///
/// ```
/// use tool_std::shell::understand;
///
/// let script = understand("cd src && sudo rm -rf 'my files' > log");
/// let texts: Vec<_> = script.commands.iter().map(|command| &*command.text).collect();
///
/// assert_eq!(texts, ["cd src", "sudo rm -rf 'my files'", "rm -rf 'my files'"]);
/// assert_eq!(script.writes, ["log"]);
/// assert!(script.is_dangerous());
/// ```
#[must_use]
pub fn understand(script: &str) -> Understood {
    Judge::default().script(script)
}

/// Understands a program and its arguments, which no shell reads.
///
/// `bash -lc` counts as `bash -c`: whoever starts it keeps it from reading start-up files.
///
/// # Examples
///
/// ```
/// use tool_std::shell::understand_argv;
///
/// let argv = ["bash", "-c", "ls && git push"].map(String::from);
/// let commands = understand_argv(&argv).commands;
/// assert_eq!(commands[2].text, "git push");
/// ```
#[must_use]
pub fn understand_argv(argv: &[String]) -> Understood {
    Judge::default().argv(argv)
}

#[cfg(test)]
mod tests;
