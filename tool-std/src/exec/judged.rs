//! What a command line touches, as rules and people see it.
//!
//! One subject for each command, and those of each file that a redirection reads or writes.
//!
//! **Invariant:** a command line that is not understood has no subject that a rule for some
//! commands could allow.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use tool_sdk::{Subject, ToolError};

use super::files::Base;
use super::{found, scripts};
use crate::shell::{self, Simple, Understood, Why};

/// A command line that somebody has to answer for.
pub(super) struct Judged<'a> {
    text: Text<'a>,
    understood: Arc<Understood>,
    /// The program that reads the script, when that is no shell that is understood.
    reader: Option<String>,
}

/// What is judged. It may be long, and a call asks for what it means several times.
enum Text<'a> {
    /// A script for bash.
    Script(Cow<'a, str>),
    /// A program and its arguments.
    Argv(Cow<'a, [String]>),
}

impl<'a> Judged<'a> {
    /// A script for bash.
    pub(super) fn script(script: impl Into<Cow<'a, str>>) -> Self {
        Self::of(Text::Script(script.into()))
    }

    /// A program and its arguments.
    pub(super) fn argv(argv: &'a [String]) -> Self {
        Self::of(Text::Argv(argv.into()))
    }

    fn of(text: Text<'a>) -> Self {
        Self { understood: understood(&text), text, reader: None }
    }

    /// Says which program reads it: that is a command of its own.
    pub(super) fn read_by(mut self, reader: Option<&str>) -> Self {
        self.reader = reader.map(str::to_owned);
        self
    }

    /// Says which variables it is given beside: what they hold may be a command.
    pub(super) fn with_variables(mut self, variables: &[String]) -> Self {
        if !variables.is_empty() {
            let variables = shell::understand_argv(variables);
            self.understood = Arc::new(Arc::unwrap_or_clone(self.understood).and(variables));
        }
        self
    }

    /// Says whether a terminal shows what it writes: `nohup` then keeps that in a file.
    pub(super) fn shown_on_terminal(mut self, is_shown: bool) -> Self {
        let is_one = |command: &&mut Simple| {
            command.argv.first().is_some_and(|program| shell::bare_name(program) == "nohup")
        };
        if is_shown {
            let commands = &mut Arc::make_mut(&mut self.understood).commands;
            for command in commands.iter_mut().filter(is_one) {
                command.safe = false;
            }
        }
        self
    }

    /// Counts it as not understood, when `why` is something.
    pub(super) fn doubted(mut self, why: Option<Why>) -> Self {
        // A reason that hides names counts for more than one that does not.
        if why.is_some() && !self.understood.opaque.is_some_and(Why::hides_names) {
            Arc::make_mut(&mut self.understood).opaque = why;
        }
        self
    }

    /// Takes no command for safe: what reads them may be no shell.
    pub(super) fn unsure(mut self) -> Self {
        for command in &mut Arc::make_mut(&mut self.understood).commands {
            command.safe = false;
        }
        self
    }

    pub(super) fn understood(&self) -> &Understood {
        &self.understood
    }

    /// What is judged, as it was written.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match &self.text {
            Text::Script(script) => Cow::Borrowed(script),
            Text::Argv(_) => Cow::Owned(self.text.to_line()),
        }
    }

    /// Fails where some of it was not looked at, so that no rule has seen it, or a yes to it
    /// would not be bound to a script.
    pub(super) fn whole(&self) -> Result<(), ToolError> {
        match self.understood.is_cut() || scripts::are_too_many(&self.understood) {
            false => Ok(()),
            true => Err(ToolError::denied("the command is too long to be judged")
                .hint("write it to a file in parts, and run that")),
        }
    }

    /// What it touches, when it is run in `base`.
    pub(super) fn subjects(&self, base: &Base<'_>) -> Vec<Subject> {
        // What never runs needs no rule that has seen all of it.
        if let Err(error) = self.whole() {
            return vec![Subject::new(self.text.to_line()).nameless().refused(&error)];
        }
        let understood = self.understood_in(base);
        let is_own = |program: &str| base.is_own_program(program);
        let commands = self.commands(&understood, &is_own).into_iter();
        let mut subjects: Vec<Subject> = commands.map(|it| base.command(it)).collect();
        subjects.extend(self.as_written());
        subjects.extend(base.subjects(&understood));
        subjects
    }

    /// What is known of it where it runs. The settings of a repository that lies in the workspace
    /// may have come with what was unpacked there, and name programs that git runs.
    fn understood_in(&self, base: &Base<'_>) -> Arc<Understood> {
        let is_git = |it: &Simple| it.safe && it.argv.first().is_some_and(|it| is_git(it));
        let mut understood = Arc::clone(&self.understood);
        if understood.commands.iter().any(is_git) && base.is_in_other_repository() {
            let commands = &mut Arc::make_mut(&mut understood).commands;
            commands.iter_mut().filter(|it| is_git(it)).for_each(|it| it.safe = false);
        }
        understood
    }

    fn commands(&self, of: &Understood, is_own: &dyn Fn(&str) -> bool) -> Vec<Subject> {
        let (opaque, commands) = (of.opaque, &of.commands);
        let mut subjects = Vec::with_capacity(2 * commands.len());
        subjects.extend(commands.iter().map(|command| subject(command, opaque, is_own)));
        // What only looks is asked about where it is not trusted.
        let is_more = commands.len() > 1 || commands.iter().any(|command| command.safe);
        if is_more && shell::may_be_granted(of) {
            let offering =
                |(subject, command): (Subject, _)| subject.offering(shell::patterns(command));
            subjects = subjects.into_iter().zip(commands).map(offering).collect();
        }
        let mut seen = HashSet::new();
        let quoted = commands.iter().filter(|it| !is_unquoted(it) && seen.insert(&it.argv));
        subjects.extend(quoted.filter_map(unquoted));
        subjects.extend(commands.iter().flat_map(readings));
        subjects.extend(commands.iter().filter(|it| it.open_end).map(begun));
        let is_alias = |it: &&Simple| it.may_be_alias && !found::is_of_git(it);
        subjects.extend(commands.iter().filter(is_alias).map(alias));
        if let Some(reader) = &self.reader {
            let words = [reader.clone(), "-c".to_owned(), self.text.to_line()];
            subjects.extend(
                shell::understand_argv(&words)
                    .commands
                    .iter()
                    .take(1)
                    .map(|command| subject(command, Some(Why::OtherShell), is_own)),
            );
        }
        // There is always something to judge.
        if subjects.is_empty() {
            let all = Subject::new(self.text.to_line()).nameless();
            subjects.push(match opaque {
                Some(why) => all.because(why.as_str()),
                None => all,
            });
        }
        subjects
    }

    /// The whole of it, as somebody may have written it into a rule that forbids.
    fn as_written(&self) -> Option<Subject> {
        let text = self.text();
        let is_told =
            self.understood.commands.first().is_some_and(|command| command.text == text.trim());
        (!is_told).then(|| Subject::new(text.trim()).only_forbidden())
    }

    /// What "always" may stand for.
    pub(super) fn suggestions(&self) -> Vec<String> {
        shell::suggestions(&self.understood, &|_| false)
    }
}

impl Text<'_> {
    fn to_line(&self) -> String {
        match self {
            Self::Script(script) => script.to_string(),
            Self::Argv(argv) => argv.join(" "),
        }
    }

    fn understood(&self) -> Understood {
        match self {
            Self::Script(script) => shell::understand(script),
            Self::Argv(argv) => shell::understand_argv(argv),
        }
    }

    fn is_longer_than(&self, most: usize) -> bool {
        match self {
            Self::Script(script) => script.len() > most,
            Self::Argv(argv) => argv.iter().map(|word| word.len() + 1).sum::<usize>() > most,
        }
    }

    fn is(&self, other: &Text<'_>) -> bool {
        match (self, other) {
            (Self::Script(script), Text::Script(other)) => script == other,
            (Self::Argv(argv), Text::Argv(other)) => argv == other,
            _ => false,
        }
    }

    fn kept(&self) -> Text<'static> {
        match self {
            Self::Script(script) => Text::Script(script.to_string().into()),
            Self::Argv(argv) => Text::Argv(argv.to_vec().into()),
        }
    }
}

thread_local! {
    /// What was understood last: a call asks up to five times for what its text means.
    static LAST: RefCell<Option<(Text<'static>, Arc<Understood>)>> = const { RefCell::new(None) };
}

/// What a text means, which nothing else decides.
fn understood(text: &Text<'_>) -> Arc<Understood> {
    // What is longer is not looked at, and to compare it would take longer than that.
    if text.is_longer_than(shell::MAX_LINE) {
        return text.understood().into();
    }
    LAST.with_borrow_mut(|last| match last {
        Some((known, understood)) if text.is(known) => Arc::clone(understood),
        _ => Arc::clone(&last.insert((text.kept(), text.understood().into())).1),
    })
}

/// Whether the text of a command is its words with blanks between them.
fn is_unquoted(command: &Simple) -> bool {
    let mut rest = Some(command.text.as_str());
    for (at, word) in command.argv.iter().enumerate() {
        let blank = if at == 0 { "" } else { " " };
        rest = rest.and_then(|rest| rest.strip_prefix(blank)?.strip_prefix(word.as_str()));
    }
    rest == Some("")
}

/// A command as people write it in rules, without its quotes: rules that forbid are held
/// against that too.
fn unquoted(command: &Simple) -> Option<Subject> {
    let text = command.argv.join(" ");
    let (program, rest) = text.split_at(command.argv.first()?.len());
    let bare = format!("{}{rest}", shell::bare_name(program));
    Some(Subject::new(text).also_forbidden_as(bare).only_forbidden())
}

/// A command whose last words nobody knows, by those that are there.
fn begun(command: &Simple) -> Subject {
    let begun = Subject::new(command.text.clone()).only_forbidden();
    match command.bare() {
        Some(bare) => begun.also_forbidden_as(bare),
        None => begun,
    }
}

/// How a command begins, in every spelling, where not all of its words are known.
fn beginnings(command: &Simple) -> Vec<String> {
    if command.is_known() {
        return Vec::new();
    }
    let texts = shell::readings(command).unwrap_or_default().into_iter();
    let texts = texts.chain([command.text.clone()]).chain(command.bare());
    texts.map(|text| beginning(&text).to_owned()).collect()
}

/// What is known of a text with what is only known when it runs in it, up to the first option.
fn beginning(text: &str) -> &str {
    let is_open = |c: char| "$`*?[]{}~'\"\\()<>|&;".contains(c);
    // As the name of a program, a bracket is no pattern.
    let behind = if text.starts_with("[ ") { 1 } else { 0 };
    let known = text[behind..].find(is_open).map_or(text, |at| &text[..behind + at]);
    known.find(" -").map_or(known, |at| &known[..=at])
}

fn is_git(program: &str) -> bool {
    shell::bare_name(program) == "git"
}

/// A command without what stands before the words that name its action, where something does, and
/// under other names: rules that forbid are held against that too.
fn readings(command: &Simple) -> Vec<Subject> {
    let Some(texts) = shell::readings(command) else {
        return vec![Subject::new(command.text.clone()).nameless()];
    };
    texts.into_iter().map(|text| Subject::new(text).only_forbidden()).collect()
}

/// A command that settings may make into another one, as rules that forbid see it.
fn alias(command: &Simple) -> Subject {
    let why = "it is none of the program's own commands, and may be an alias of one";
    Subject::new(command.text.clone()).because(why).nameless().only_forbidden()
}

/// `is_own` says whether a program is one of the workspace.
fn subject(command: &Simple, opaque: Option<Why>, is_own: &dyn Fn(&str) -> bool) -> Subject {
    // A rule that ends where it does is about no more.
    let more = if command.open_end { " …" } else { "" };
    let mut subject = Subject::new(format!("{}{more}", command.text));
    subject = subject.known_to_begin(beginnings(command));
    if command.dangerous {
        subject = subject.dangerous();
    }
    if let Some(bare) = command.bare() {
        subject = subject.also_forbidden_as(bare);
    }
    if command.hidden {
        return subject.only_forbidden();
    }
    let why = opaque.or(command.asks.filter(|why| !why.may_be_allowed()));
    if let Some(why) = why {
        subject = subject.because(why.as_str());
    }
    if command.is_nameless || opaque.is_some_and(Why::hides_names) {
        return subject.nameless();
    }
    if why == Some(Why::Argument) && opaque.is_none() {
        // SH6: the user can write a rule for it.
        let subject = if command.is_known() { subject } else { subject.means_more() };
        return subject.opaque().unless_exact();
    }
    if why.is_some() {
        return subject.opaque();
    }
    // What is known of a program by its name is not known of another one of that name.
    let is_known = command.safe || shell::has_profile(command);
    if is_known && command.argv.first().is_some_and(|program| is_own(program)) {
        return subject.because("a program of the workspace has this name").opaque();
    }
    if command.safe { subject.known_safe() } else { subject }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(script: &str, is_own: &dyn Fn(&str) -> bool) -> Vec<Subject> {
        let judged = Judged::script(script);
        judged.commands(&judged.understood, is_own)
    }

    fn told(script: &str) -> Vec<String> {
        let tell = |subject: &Subject| {
            let opaque = if subject.is_opaque() { " ?" } else { "" };
            format!("{}{opaque}", subject.text())
        };
        commands(script, &|_| false).iter().map(tell).collect()
    }

    // F72, SH10: every command is a subject of its own, and there is always one.
    #[test]
    fn each_command_is_a_subject() {
        for (script, expected) in [
            ("git status && rm x", &["git status", "rm x"][..]),
            ("timeout 5 rm x", &["timeout 5 rm x", "rm x"]),
            ("cat < in > out", &["cat"]),
            ("ls 2>/dev/null", &["ls"]),
            ("", &[" ?"]),
        ] {
            assert_eq!(told(script), expected, "{script}");
        }
        assert!(!told("> out").is_empty());
    }

    // SH4
    #[test]
    fn a_program_of_the_workspace_is_not_the_one_that_its_name_says() {
        for (script, expected) in [
            ("git push", true),
            ("ls", true),
            ("timeout 5 git push", true),
            ("pytest -x", false),
            ("./git push", false),
        ] {
            let subjects = commands(script, &|program| !program.contains('/'));
            assert_eq!(subjects.iter().any(Subject::is_opaque), expected, "{script}");
        }
    }

    // SH8: what is remembered of one script is not taken for another.
    #[test]
    fn each_script_is_what_it_says() {
        for script in ["ls a", "rm -rf a", "ls a", "ls b", ""] {
            assert_eq!(*Judged::script(script).understood(), shell::understand(script));
            let argv = [script.to_owned()];
            assert_eq!(*Judged::argv(&argv).understood(), shell::understand_argv(&argv));
            let unsure = Judged::script(script).doubted(Some(Why::OtherShell)).unsure();
            assert!(unsure.understood().opaque.is_some());
        }
    }

    #[test]
    fn what_is_not_understood_is_opaque_as_a_whole() {
        for script in ["if true; then ls; fi", "ls `id`", "x() { ls; }; x", "ls &"] {
            let commands = commands(script, &|_| false);
            assert!(!commands.is_empty(), "{script}");
            assert!(commands.iter().all(Subject::is_opaque), "{script}: {commands:?}");
        }
    }
}
