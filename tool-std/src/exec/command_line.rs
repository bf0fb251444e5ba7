//! Builds the process of a command line: exactly the command that was analysed.
//!
//! A single plain command is started without a shell. Everything else is run by bash without
//! start-up files, and without environment variables that would change its meaning.

use std::io;
use std::path::Path;

use serde_json::Value;
use tool_sdk::process::{BackgroundCommand, ChildEnv, RunError};
use tool_sdk::{
    Context, ResolvedPath, Resource, ToolError, ToolSettings, Workspace, WorkspacePath,
};
use tool_shell_analysis::OpaqueReason;

use super::analysis::CommandAnalysis;
use super::approval_binding::ApprovalBinding;
use super::effects::base_folder::BaseFolder;
use super::output::start_error;
use super::{patch_command, sandbox};
#[cfg(feature = "mcp")]
use tool_shell_analysis::internal::is_login_shell;

/// Environment variables of every command, so that programs write plain text and never start a
/// pager.
///
/// They also keep git from treating a directory as a bare repository: anything that can write
/// files could create its settings, which name programs to run. No other variable of git is
/// passed on or accepted, so that nothing overrides this.
const CHILD_VARIABLES: &[(&str, &str)] = &[
    ("COLORTERM", ""),
    ("GH_PAGER", "cat"),
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
    // Read-only commands do not refresh the index, so that no hook runs.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("LC_CTYPE", "C.UTF-8"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// The permission for commands.
#[cfg(feature = "mcp")]
const PERMISSION: &str = "exec_command";

/// The shell whose scripts are analysed.
const BASH: &str = "bash";

/// A command line with all parameters that affect its meaning.
pub(super) struct CommandLine<'a> {
    pub(super) script: &'a str,
    pub(super) shell: Option<&'a str>,
    pub(super) login: bool,
    pub(super) env: &'a [String],
    pub(super) tty: bool,
}

impl<'a> CommandLine<'a> {
    pub(super) fn analyze(&self) -> CommandAnalysis<'a> {
        // Start-up files and variables may change the meaning of every word.
        let why = if self.shell.is_some_and(|shell| !is_bash(shell)) {
            Some(OpaqueReason::OtherShell)
        } else if self.login {
            Some(OpaqueReason::LoginShell)
        } else {
            (!self.env.is_empty()).then_some(OpaqueReason::Assignment)
        };
        let other = self.shell.filter(|shell| !is_bash(shell));
        let analysis = CommandAnalysis::from_script(self.script);
        let analysis = match self.shell.is_none() && !self.login {
            true => analysis.without_login_shell(),
            false => analysis,
        };
        let analysis = analysis.with_terminal(self.tty);
        analysis.with_variables(self.env).with_reason(why).with_reader(other)
    }

    /// Returns the resources of the command line when it is run in `base_folder`.
    pub(super) fn call_resources(&self, base: &BaseFolder<'_>) -> Vec<Resource> {
        let mut subjects = self.analyze_in(base).call_resources(base);
        let refused = self.find_start_error(base.folder.as_deref());
        subjects.extend(refused.map(|error| Resource::new(self.script).with_refusal(&error)));
        subjects
    }

    /// Analyses the command line; it is opaque if `bash` resolves to a program of the workspace.
    fn analyze_in(&self, base: &BaseFolder<'_>) -> CommandAnalysis<'a> {
        let analysis = self.analyze();
        let is_started_by_name = self.shell.is_none_or(|shell| shell == BASH);
        match is_started_by_name
            && self.direct_argv(&analysis).is_none()
            && base.is_workspace_program(BASH)
        {
            true => analysis.with_reason(Some(OpaqueReason::OtherShell)).without_safe_commands(),
            false => analysis,
        }
    }

    /// Returns the argument vector if the command is run without a shell.
    fn direct_argv<'j>(&self, analysis: &'j CommandAnalysis<'_>) -> Option<&'j [String]> {
        analysis.script_analysis().direct_argv().filter(|_| !self.login && self.shell.is_none())
    }

    /// Returns the error with which it would fail to start in `working_folder`.
    fn find_start_error(&self, folder: Option<&Path>) -> Option<ToolError> {
        if self.env.is_empty() && self.shell.is_none() {
            return None;
        }
        let env = match child_environment(self.env) {
            Ok(env) => env,
            Err(error) => return Some(error),
        };
        let shell = self.shell?;
        let is_there = match shell.contains('/') {
            // If the path cannot be checked, the system decides when it starts.
            true => folder.is_none_or(|folder| folder.join(shell).try_exists().unwrap_or(true)),
            false => env.find_program(shell).is_some(),
        };
        let source = || io::ErrorKind::NotFound.into();
        let missing = || RunError::Spawn { program: shell.to_owned(), source: source() };
        (!is_there).then(|| start_error(missing()))
    }

    /// Builds the command to start.
    pub(super) fn build_spawn(&self) -> Result<BackgroundCommand, ToolError> {
        patch_command::reject_patch(self.script)?;
        let analysis = self.analyze();
        analysis.check_complete()?;
        let env = child_environment(self.env)?;
        let spawn = match self.direct_argv(&analysis) {
            Some([program, args @ ..]) => BackgroundCommand::new(program, args),
            _ => self.shell_spawn(&env),
        };
        Ok(spawn.env(env).title(self.script))
    }

    /// Builds the command that starts the shell.
    fn shell_spawn(&self, env: &ChildEnv) -> BackgroundCommand {
        let shell = self.shell.unwrap_or(BASH);
        match env.find_program(BASH).filter(|_| shell == BASH) {
            // The resolved path is used, so that bash is not looked up again; `$0` is the word
            // after the script.
            Some(file) => BackgroundCommand::new(file, self.shell_args().into_iter().chain([BASH])),
            None => BackgroundCommand::new(shell, self.shell_args()),
        }
    }

    /// Returns the facts that an approval is bound to, when it is run in `workdir`.
    pub(super) fn approval_facts(
        &self,
        workdir: &WorkspacePath,
        cx: &Context,
    ) -> Vec<(&'static str, String)> {
        let Ok(env) = child_environment(self.env) else { return Vec::new() };
        let shell = Some(self.shell.unwrap_or(BASH));
        ApprovalBinding {
            analysis: &self.analyze(),
            shell,
            folder: working_folder(cx, workdir).ok().map(|folder| folder.absolute_path()),
            env,
        }
        .collect_facts(cx)
    }

    /// Returns the preview for the approver: the directory and the program files.
    pub(super) fn approval_preview(&self, workdir: &WorkspacePath, cx: &Context) -> Option<Value> {
        let folder = working_folder(cx, workdir).ok().map(|folder| folder.absolute_path());
        let env = child_environment(self.env).ok()?;
        ApprovalBinding { analysis: &self.analyze(), shell: None, folder, env }.to_preview()
    }

    fn shell_args(&self) -> Vec<&str> {
        match (self.shell.is_none_or(is_bash), self.login) {
            (true, false) => vec!["--noprofile", "--norc", "-c", self.script],
            (_, true) => vec!["-l", "-c", self.script],
            (false, false) => vec!["-c", self.script],
        }
    }
}

fn is_bash(shell: &str) -> bool {
    matches!(shell, BASH | "/bin/bash" | "/usr/bin/bash")
}

/// Builds the environment of a command: inherited variables, fixed ones, and those that the call
/// asks for.
pub(super) fn child_environment(asked: &[String]) -> Result<ChildEnv, ToolError> {
    let tell = |env: ChildEnv, (name, value): &(&str, &str)| env.with_var(*name, *value);
    let env = CHILD_VARIABLES.iter().fold(ChildEnv::from_host(), tell);
    asked.iter().try_fold(env, |env, variable| {
        let Some((name, value)) = variable.split_once('=') else {
            return Err(ToolError::invalid("env", format_args!("`{variable}` has no `=`"))
                .hint("write `NAME=value`"));
        };
        env.with_untrusted_var(name, value).map_err(|error| ToolError::invalid("env", error))
    })
}

/// Returns the resources of a program that another tool starts, in an unknown directory.
#[cfg(feature = "mcp")]
pub(crate) fn argv_resources(argv: &[String], has_variables: bool, cx: &Context) -> Vec<Resource> {
    let why = if is_login_shell(argv) { Some(OpaqueReason::LoginShell) } else { None };
    let analysis = CommandAnalysis::from_argv(argv)
        .with_reason(why.or(has_variables.then_some(OpaqueReason::Assignment)));
    let named = |subject: Resource| match subject.permission() {
        None => subject.with_permission(PERMISSION),
        Some(_) => subject,
    };
    analysis.call_resources(&BaseFolder::new(cx, None)).into_iter().map(named).collect()
}

/// Returns the base directory for the relative paths of a command that is run in `workdir`.
pub(super) fn base_folder<'a>(cx: &'a Context, workdir: &WorkspacePath) -> BaseFolder<'a> {
    // The command runs in the folder that is judged here, or not at all.
    workdir.pin_location(cx);
    match working_folder(cx, workdir) {
        Ok(folder) => {
            let policy = sandbox::decision_policy(cx);
            BaseFolder::new(cx, Some(folder.absolute_path()))
                .with_writable_roots(policy.enforced_roots())
                .with_confinement(policy.allows_confined_commands())
        }
        Err(error) => BaseFolder::new_refused(cx, workdir.as_str(), &error),
    }
}

/// Returns the folder to run in, without links; it must be in the workspace.
pub(super) fn working_folder(
    cx: &Context,
    workdir: &WorkspacePath,
) -> Result<ResolvedPath, ToolError> {
    let workspace = cx.state::<Workspace>()?;
    // A path through the outside is refused, also if it leads back.
    let now = workspace.resolve(workdir.as_str())?.canonicalize()?;
    let folder = workdir.locate(&workspace)?;
    if !folder.is_same_path(&now) {
        return Err(ToolError::conflict(format_args!(
            "`{workdir}` leads to another folder than when it was decided about"
        )));
    }
    if !folder.metadata()?.kind.is_dir() {
        return Err(ToolError::invalid("workdir", format_args!("`{workdir}` is not a folder")));
    }
    Ok(folder)
}

/// Sets how much output is held, and the folder that a command enters: the judged one, through its handle, so that a link that
/// another process puts in its place is not followed.
pub(super) fn enter_working_folder(
    command: BackgroundCommand,
    workdir: &WorkspacePath,
    cx: &Context,
) -> Result<BackgroundCommand, ToolError> {
    let folder = working_folder(cx, workdir)?;
    let command = command.output_limit(ToolSettings::from_session(cx.session()).capture_bytes);
    Ok(command.current_dir_handle(folder.open_dir_handle()?, folder.absolute_path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(script: &str) -> CommandLine<'_> {
        CommandLine { script, shell: None, login: false, env: &[], tty: false }
    }

    fn started(line: &CommandLine<'_>) -> String {
        let shown = format!("{:?}", line.build_spawn().unwrap());
        let (program, rest) = shown.split_once("args: ").unwrap();
        let args = rest.split_once("]").unwrap().0;
        format!(
            "{} {args}]",
            program.trim_start_matches("BackgroundCommand { spec: CommandSpec { program: ")
        )
    }

    // SH8: what was judged is what runs.
    #[test]
    fn one_plain_command_needs_no_shell() {
        assert_eq!(started(&line("echo 'a b'")), r#""echo",  ["a b"]"#);
        for script in ["echo a; echo b", "cd x", "echo *", "echo $X", "ls > x"] {
            let expected =
                format!(r#"/bash",  ["--noprofile", "--norc", "-c", {script:?}, "bash"]"#);
            assert!(started(&line(script)).ends_with(&expected));
        }
        let login = CommandLine { login: true, ..line("echo a") };
        assert!(started(&login).ends_with(r#"/bash",  ["-l", "-c", "echo a", "bash"]"#));
        let own = CommandLine { shell: Some("/bin/bash"), ..line("ls") };
        assert!(started(&own).ends_with(r#""/bin/bash",  ["--noprofile", "--norc", "-c", "ls"]"#));
        let other = CommandLine { shell: Some("zsh"), ..line("ls") };
        assert_eq!(started(&other), r#""zsh",  ["-c", "ls"]"#);
    }

    // SH8, CH2: what may mean something else is never allowed by a rule for commands.
    #[test]
    fn other_shells_and_variables_ask() {
        let env = ["A=1".to_owned()];
        for line in [
            CommandLine { shell: Some("zsh"), ..line("ls") },
            CommandLine { shell: Some("./bash"), ..line("ls") },
            CommandLine { login: true, ..line("ls") },
            CommandLine { env: &env, ..line("ls") },
        ] {
            assert!(line.analyze().script_analysis().opaque.is_some());
            assert!(line.analyze().suggest_rules().is_empty());
        }
        assert!(line("ls").analyze().script_analysis().opaque.is_none());
    }

    // SH8: a login shell alone is started without its start-up files, and shown so.
    #[test]
    fn login_shell_alone_starts_without_start_up_files() {
        let script = "bash -lc 'git status && git diff'";
        let started_words = r#""bash",  ["-c", "git status && git diff"]"#;
        assert_eq!(started(&line(script)), started_words);
        let analysis = line(script).analyze();
        assert_eq!(analysis.started_without_login(), Some("bash -c 'git status && git diff'"));
        assert_eq!(line("bash -c ls").analyze().started_without_login(), None);
        // Inside of a script, and for another shell, the start-up files are read.
        for line in [
            line("bash -lc ls; ls"),
            line("bash -lc ls > x"),
            CommandLine { shell: Some("bash"), ..line(script) },
        ] {
            let analysis = line.analyze();
            let mut commands = analysis.script_analysis().commands.iter();
            assert!(commands.any(|it| it.approval_reason == Some(OpaqueReason::LoginShell)));
            assert_eq!(analysis.started_without_login(), None);
        }
    }

    #[test]
    fn variables_that_steer_programs_are_refused() {
        for variable in ["LD_PRELOAD=x", "API_KEY=x", "GIT_CONFIG_COUNT=0", "novalue"] {
            assert!(child_environment(&[variable.to_owned()]).is_err(), "{variable}");
        }
        assert!(child_environment(&["RUST_LOG=debug".to_owned()]).is_ok());
    }
}
