//! The analysis of a command line as the resources that rules and approvers see.
//!
//! There is one resource for each command, and those for each file that a redirection reads or
//! writes.
//!
//! **Invariant:** an opaque command line has no resource that a rule for some commands could
//! allow.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use tool_sdk::{Resource, ToolError};
use tool_shell_analysis::{OpaqueReason, ScriptAnalysis, SimpleCommand};

use super::effects::base_folder::BaseFolder;
use super::effects::{self, git, scripts};
use tool_shell_analysis as shell;

/// A command line with its analysis.
pub(super) struct CommandAnalysis<'a> {
    text: CommandText<'a>,
    analysis: Arc<ScriptAnalysis>,
    /// The program that reads the script, if it is not bash.
    reader: Option<String>,
    /// Whether it is a login shell that is started without its start-up files.
    drops_login: bool,
}

/// The source of a command line. It may be long, and each call analyses it several times.
enum CommandText<'a> {
    /// A script for bash.
    Script(Cow<'a, str>),
    /// A program and its arguments.
    Argv(Cow<'a, [String]>),
}

impl<'a> CommandAnalysis<'a> {
    /// A script for bash.
    pub(super) fn from_script(script: impl Into<Cow<'a, str>>) -> Self {
        Self::from_text(CommandText::Script(script.into()))
    }

    /// A program and its arguments.
    pub(super) fn from_argv(argv: &'a [String]) -> Self {
        let drops_login = shell::internal::is_login_shell(argv);
        Self { drops_login, ..Self::from_text(CommandText::Argv(argv.into())) }
    }

    fn from_text(text: CommandText<'a>) -> Self {
        Self { analysis: cached_analysis(&text), text, reader: None, drops_login: false }
    }

    /// If the script is nothing but `bash -lc SCRIPT`, analyses it as `bash -c SCRIPT`. The caller
    /// starts that without another shell, so that no start-up file is read.
    pub(super) fn without_login_shell(mut self) -> Self {
        let is_login = |argv: &&[String]| shell::internal::is_login_shell(argv);
        if let Some(argv) = self.analysis.direct_argv().filter(is_login) {
            self.analysis = shell::analyze_argv(argv).into();
            self.drops_login = true;
        }
        self
    }

    /// Returns the words that are started instead of those of a login shell.
    pub(super) fn started_without_login(&self) -> Option<&str> {
        let command = self.analysis.commands.first().filter(|_| self.drops_login)?;
        Some(&command.text)
    }

    /// Sets the program that reads the script, which is a command of its own.
    pub(super) fn with_reader(mut self, reader: Option<&str>) -> Self {
        self.reader = reader.map(str::to_owned);
        self
    }

    /// Adds variables of the call, whose values may contain commands.
    pub(super) fn with_variables(mut self, variables: &[String]) -> Self {
        if !variables.is_empty() {
            let variables = shell::analyze_argv(variables);
            self.analysis = Arc::new(Arc::unwrap_or_clone(self.analysis).merge(variables));
        }
        self
    }

    /// Sets whether the command has a terminal: `nohup` then writes its output to a file.
    pub(super) fn with_terminal(mut self, is_shown: bool) -> Self {
        let is_one = |command: &&mut SimpleCommand| {
            command
                .argv
                .first()
                .is_some_and(|program| shell::internal::bare_name(program) == "nohup")
        };
        if is_shown {
            let commands = &mut Arc::make_mut(&mut self.analysis).commands;
            for command in commands.iter_mut().filter(is_one) {
                command.is_safe = false;
            }
        }
        self
    }

    /// Marks the command line as opaque if `why` is a reason.
    pub(super) fn with_reason(mut self, why: Option<OpaqueReason>) -> Self {
        // A reason that hides commands takes precedence over one that does not.
        if why.is_some() && !self.analysis.opaque.is_some_and(OpaqueReason::hides_commands) {
            Arc::make_mut(&mut self.analysis).opaque = why;
        }
        self
    }

    /// Treats no command as read-only, because the reader may not be a shell.
    pub(super) fn without_safe_commands(mut self) -> Self {
        for command in &mut Arc::make_mut(&mut self.analysis).commands {
            command.is_safe = false;
        }
        self
    }

    pub(super) fn script_analysis(&self) -> &ScriptAnalysis {
        &self.analysis
    }

    /// Returns the command line as written.
    pub(super) fn source_text(&self) -> Cow<'_, str> {
        match &self.text {
            CommandText::Script(script) => Cow::Borrowed(script),
            CommandText::Argv(_) => Cow::Owned(self.text.to_line()),
        }
    }

    /// Fails if a part was not analysed, so that no rule has seen it, or if an approval could not
    /// be bound to a script.
    pub(super) fn check_complete(&self) -> Result<(), ToolError> {
        match self.analysis.is_truncated() || scripts::has_too_many_words(&self.analysis) {
            false => Ok(()),
            true => Err(ToolError::denied("the command is too long to be analysed")
                .hint("write it to a file in several steps, then run the file")),
        }
    }

    /// Returns the resources of the command line when it is run in `base`.
    pub(super) fn call_resources(&self, base: &BaseFolder<'_>) -> Vec<Resource> {
        // A command line that is rejected needs no further resources.
        if let Err(error) = self.check_complete() {
            return vec![
                Resource::new(self.text.to_line()).with_unknown_effect().with_refusal(&error),
            ];
        }
        let analysis = self.analysis_in(base);
        let is_own = |program: &str| base.is_workspace_program(program);
        let commands = self.command_resources(&analysis, &is_own).into_iter();
        let mut subjects: Vec<Resource> = commands.map(|it| base.restrict_command(it)).collect();
        subjects.extend(self.whole_line_resource());
        subjects.extend(effects::file_resources(base, &analysis));
        subjects
    }

    /// Returns the analysis for the directory it runs in. The settings of a nested repository in
    /// the workspace may come from an unpacked archive and name programs that git runs, so git is
    /// not read-only there.
    fn analysis_in(&self, base: &BaseFolder<'_>) -> Arc<ScriptAnalysis> {
        let is_git =
            |it: &SimpleCommand| it.is_safe && it.argv.first().is_some_and(|it| is_git(it));
        let mut analysis = Arc::clone(&self.analysis);
        if analysis.commands.iter().any(is_git) && base.is_in_nested_repository() {
            let commands = &mut Arc::make_mut(&mut analysis).commands;
            commands.iter_mut().filter(|it| is_git(it)).for_each(|it| it.is_safe = false);
        }
        analysis
    }

    fn command_resources(
        &self,
        analysis: &ScriptAnalysis,
        is_own: &dyn Fn(&str) -> bool,
    ) -> Vec<Resource> {
        let (opaque, commands) = (analysis.opaque, &analysis.commands);
        let mut subjects = Vec::with_capacity(2 * commands.len());
        subjects.extend(commands.iter().map(|command| command_resource(command, opaque, is_own)));
        // Read-only commands need approval if the settings do not trust them.
        let is_more = commands.len() > 1 || commands.iter().any(|command| command.is_safe);
        if is_more && shell::internal::can_offer_grant(analysis) {
            let offering = |(subject, command): (Resource, _)| {
                subject.with_suggestions(shell::internal::rule_patterns(command))
            };
            subjects = subjects.into_iter().zip(commands).map(offering).collect();
        }
        let mut seen = HashSet::new();
        let quoted = commands.iter().filter(|it| !is_text_unquoted(it) && seen.insert(&it.argv));
        subjects.extend(quoted.filter_map(unquoted_resource));
        subjects.extend(commands.iter().flat_map(spelling_resources));
        subjects.extend(commands.iter().filter(|it| it.has_open_end).map(open_end_resource));
        let is_alias = |it: &&SimpleCommand| it.may_be_alias && !git::is_external_git_command(it);
        subjects.extend(commands.iter().filter(is_alias).map(alias_resource));
        if let Some(reader) = &self.reader {
            let words = [reader.clone(), "-c".to_owned(), self.text.to_line()];
            subjects.extend(
                shell::analyze_argv(&words).commands.iter().take(1).map(|command| {
                    command_resource(command, Some(OpaqueReason::OtherShell), is_own)
                }),
            );
        }
        // There is always at least one resource.
        if subjects.is_empty() {
            let all = Resource::new(self.text.to_line()).with_unknown_effect();
            subjects.push(match opaque {
                Some(why) => all.with_reason(why.as_str()),
                None => all,
            });
        }
        subjects
    }

    /// Returns the whole line as a resource, for deny rules that spell it out.
    fn whole_line_resource(&self) -> Option<Resource> {
        let text = self.source_text();
        let is_listed =
            self.analysis.commands.first().is_some_and(|command| command.text == text.trim());
        (!is_listed).then(|| Resource::new(text.trim()).deny_rules_only())
    }

    /// Returns the patterns for "always allow".
    pub(super) fn suggest_rules(&self) -> Vec<String> {
        shell::suggest_patterns(&self.analysis, &|_| false)
    }
}

impl CommandText<'_> {
    fn to_line(&self) -> String {
        match self {
            Self::Script(script) => script.to_string(),
            Self::Argv(argv) => argv.join(" "),
        }
    }

    fn analyze(&self) -> ScriptAnalysis {
        match self {
            Self::Script(script) => shell::analyze_script(script),
            Self::Argv(argv) => shell::analyze_argv(argv),
        }
    }

    fn is_longer_than(&self, most: usize) -> bool {
        match self {
            Self::Script(script) => script.len() > most,
            Self::Argv(argv) => argv.iter().map(|word| word.len() + 1).sum::<usize>() > most,
        }
    }

    fn is_same(&self, other: &CommandText<'_>) -> bool {
        match (self, other) {
            (Self::Script(script), CommandText::Script(other)) => script == other,
            (Self::Argv(argv), CommandText::Argv(other)) => argv == other,
            _ => false,
        }
    }

    fn to_static(&self) -> CommandText<'static> {
        match self {
            Self::Script(script) => CommandText::Script(script.to_string().into()),
            Self::Argv(argv) => CommandText::Argv(argv.to_vec().into()),
        }
    }
}

thread_local! {
    /// The last analysis: a call analyses its text up to five times.
    static LAST: RefCell<Option<(CommandText<'static>, Arc<ScriptAnalysis>)>> = const { RefCell::new(None) };
}

/// Analyses a text, which depends on nothing else, with a cache of one entry.
fn cached_analysis(text: &CommandText<'_>) -> Arc<ScriptAnalysis> {
    // A longer text is not analysed, and comparing it would take longer.
    if text.is_longer_than(shell::internal::MAX_LINE) {
        return text.analyze().into();
    }
    LAST.with_borrow_mut(|last| match last {
        Some((known, analysis)) if text.is_same(known) => Arc::clone(analysis),
        _ => Arc::clone(&last.insert((text.to_static(), text.analyze().into())).1),
    })
}

/// Whether the text of a command is its words joined by spaces.
fn is_text_unquoted(command: &SimpleCommand) -> bool {
    let mut rest = Some(command.text.as_str());
    for (at, word) in command.argv.iter().enumerate() {
        let blank = if at == 0 { "" } else { " " };
        rest = rest.and_then(|rest| rest.strip_prefix(blank)?.strip_prefix(word.as_str()));
    }
    rest == Some("")
}

/// Returns a command without quotes, as users write it in deny rules.
fn unquoted_resource(command: &SimpleCommand) -> Option<Resource> {
    let text = command.argv.join(" ");
    let (program, rest) = text.split_at(command.argv.first()?.len());
    let bare = format!("{}{rest}", shell::internal::bare_name(program));
    Some(Resource::new(text).with_forbidden_spelling(bare).deny_rules_only())
}

/// Returns a command with unknown last words as its known words, for deny rules.
fn open_end_resource(command: &SimpleCommand) -> Resource {
    let resource = Resource::new(command.text.clone()).deny_rules_only();
    match command.bare_text() {
        Some(bare) => resource.with_forbidden_spelling(bare),
        None => resource,
    }
}

/// Returns the known prefixes of a command in every spelling, if not all of its words are known.
fn known_prefixes(command: &SimpleCommand) -> Vec<String> {
    if command.is_fully_known() {
        return Vec::new();
    }
    let texts = shell::internal::alternative_spellings(command).unwrap_or_default().into_iter();
    let texts = texts.chain([command.text.clone()]).chain(command.bare_text());
    texts.map(|text| known_prefix(&text).to_owned()).collect()
}

/// Returns the known prefix of a text, up to the first option or expansion.
fn known_prefix(text: &str) -> &str {
    let is_open = |c: char| "$`*?[]{}~'\"\\()<>|&;".contains(c);
    // As a program name, `[` is not a glob.
    let behind = if text.starts_with("[ ") { 1 } else { 0 };
    let known = text[behind..].find(is_open).map_or(text, |at| &text[..behind + at]);
    known.find(" -").map_or(known, |at| &known[..=at])
}

fn is_git(program: &str) -> bool {
    shell::internal::bare_name(program) == "git"
}

/// Returns the alternative spellings of a command, for deny rules.
fn spelling_resources(command: &SimpleCommand) -> Vec<Resource> {
    let Some(texts) = shell::internal::alternative_spellings(command) else {
        return vec![Resource::new(command.text.clone()).with_unknown_effect()];
    };
    texts.into_iter().map(|text| Resource::new(text).deny_rules_only()).collect()
}

/// Returns a command whose subcommand may be an alias, for deny rules.
fn alias_resource(command: &SimpleCommand) -> Resource {
    let why = "it is not a built-in command of the program, and may be an alias";
    Resource::new(command.text.clone()).with_reason(why).with_unknown_effect().deny_rules_only()
}

/// Returns the resource of a command. `is_own` tells whether a program lies in the workspace.
fn command_resource(
    command: &SimpleCommand,
    opaque: Option<OpaqueReason>,
    is_own: &dyn Fn(&str) -> bool,
) -> Resource {
    // A rule that ends with the known words must not match the appended ones.
    let more = if command.has_open_end { " …" } else { "" };
    let mut subject = Resource::new(format!("{}{more}", command.text));
    subject = subject.with_known_prefixes(known_prefixes(command));
    if command.is_dangerous {
        subject = subject.dangerous();
    }
    if let Some(bare) = command.bare_text() {
        subject = subject.with_forbidden_spelling(bare);
    }
    if command.is_embedded {
        return subject.deny_rules_only();
    }
    let why = opaque.or(command.approval_reason.filter(|why| !why.is_allowed_by_exact_rule()));
    if let Some(why) = why {
        subject = subject.with_reason(why.as_str());
    }
    if command.hides_commands || opaque.is_some_and(OpaqueReason::hides_commands) {
        return subject.with_unknown_effect();
    }
    if why == Some(OpaqueReason::RiskyArgument) && opaque.is_none() {
        // SH6: the user can write an exact rule for it.
        let subject = if command.is_fully_known() { subject } else { subject.context_dependent() };
        return subject.requires_exact_rule();
    }
    if why.is_some() {
        return subject.opaque();
    }
    // The profile of a program does not apply to another program of the same name.
    let is_known = command.is_safe || shell::internal::has_profile(command);
    if is_known && command.argv.first().is_some_and(|program| is_own(program)) {
        return subject.with_reason("a program of the workspace has this name").opaque();
    }
    if command.is_safe { subject.known_safe() } else { subject }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(script: &str, is_own: &dyn Fn(&str) -> bool) -> Vec<Resource> {
        let analysis = CommandAnalysis::from_script(script);
        analysis.command_resources(&analysis.analysis, is_own)
    }

    fn resource_texts(script: &str) -> Vec<String> {
        let tell = |subject: &Resource| {
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
            assert_eq!(resource_texts(script), expected, "{script}");
        }
        assert!(!resource_texts("> out").is_empty());
    }

    // SH4
    #[test]
    fn workspace_program_shadows_system_program() {
        for (script, expected) in [
            ("git push", true),
            ("ls", true),
            ("timeout 5 git push", true),
            ("pytest -x", false),
            ("./git push", false),
        ] {
            let subjects = commands(script, &|program| !program.contains('/'));
            assert_eq!(subjects.iter().any(Resource::is_opaque), expected, "{script}");
        }
    }

    // SH8: what is remembered of one script is not taken for another.
    #[test]
    fn analyzes_table_of_scripts() {
        for script in ["ls a", "rm -rf a", "ls a", "ls b", ""] {
            assert_eq!(
                *CommandAnalysis::from_script(script).script_analysis(),
                shell::analyze_script(script)
            );
            let argv = [script.to_owned()];
            assert_eq!(
                *CommandAnalysis::from_argv(&argv).script_analysis(),
                shell::analyze_argv(&argv)
            );
            let unsure = CommandAnalysis::from_script(script)
                .with_reason(Some(OpaqueReason::OtherShell))
                .without_safe_commands();
            assert!(unsure.script_analysis().opaque.is_some());
        }
    }

    #[test]
    fn unparsed_script_is_opaque_as_a_whole() {
        for script in ["case x in a) ls;; esac", "ls `id`", "x() { ls; }; x", "ls &"] {
            let commands = commands(script, &|_| false);
            assert!(!commands.is_empty(), "{script}");
            assert!(commands.iter().all(Resource::is_opaque), "{script}: {commands:?}");
        }
    }
}
