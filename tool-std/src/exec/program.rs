//! How a command line is run: exactly as it was judged.
//!
//! A single plain command is started without any shell. Everything else is read by a bash
//! that reads no start-up files; what would change its meaning from the environment is not
//! passed on.

use std::io;
use std::path::Path;

use serde_json::Value;
use tool_sdk::process::{ChildEnv, RunError, Spawn};
use tool_sdk::{Context, Subject, ToolError, Workspace};

use super::facts::Facts;
use super::files::Base;
use super::judged::Judged;
use super::report::not_started;
use super::{confined, patch};
use crate::shell::Why;
#[cfg(feature = "mcp")]
use crate::shell::is_login;

/// What programs are told, so that they write plain text and never wait at a pager.
///
/// And git is told not to take a folder for a repository because of what lies in it: whoever
/// may write files could write the settings of one, and these name programs to run. No
/// variable of git is passed on or may be asked for, so that nothing is counted beside it.
const TOLD: &[(&str, &str)] = &[
    ("COLORTERM", ""),
    ("GH_PAGER", "cat"),
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
    // What only looks does not write what it has seen, and so no hook runs.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("LC_CTYPE", "C.UTF-8"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// The permission under which commands are judged.
#[cfg(feature = "mcp")]
const PERMISSION: &str = "exec_command";

/// The shell whose scripts are understood.
const BASH: &str = "bash";

/// A command line with everything that decides what it means.
pub(super) struct Line<'a> {
    pub(super) script: &'a str,
    pub(super) shell: Option<&'a str>,
    pub(super) login: bool,
    pub(super) env: &'a [String],
    pub(super) tty: bool,
}

impl<'a> Line<'a> {
    pub(super) fn judged(&self) -> Judged<'a> {
        // Start-up files and variables may change what every word means.
        let why = if self.shell.is_some_and(|shell| !is_bash(shell)) {
            Some(Why::OtherShell)
        } else if self.login {
            Some(Why::Login)
        } else {
            (!self.env.is_empty()).then_some(Why::Assignment)
        };
        let other = self.shell.filter(|shell| !is_bash(shell));
        let judged = Judged::script(self.script).shown_on_terminal(self.tty);
        judged.with_variables(self.env).doubted(why).read_by(other)
    }

    /// What it touches, when it is run in `base`.
    pub(super) fn subjects(&self, base: &Base<'_>) -> Vec<Subject> {
        let mut subjects = self.judged_in(base).subjects(base);
        let refused = self.refusal(base.folder.as_deref());
        subjects.extend(refused.map(|error| Subject::new(self.script).refused(&error)));
        subjects
    }

    /// A bash that may be anybody's makes of its words what it likes.
    fn judged_in(&self, base: &Base<'_>) -> Judged<'a> {
        let judged = self.judged();
        let is_started_by_name = self.shell.is_none_or(|shell| shell == BASH);
        match is_started_by_name && self.direct(&judged).is_none() && base.is_own_program(BASH) {
            true => judged.doubted(Some(Why::OtherShell)).unsure(),
            false => judged,
        }
    }

    /// The words of the only command, where they are run without a shell.
    fn direct<'j>(&self, judged: &'j Judged<'_>) -> Option<&'j [String]> {
        judged.understood().direct().filter(|_| !self.login && self.shell.is_none())
    }

    /// Why it would not be started in `folder`, whoever allows it.
    fn refusal(&self, folder: Option<&Path>) -> Option<ToolError> {
        if self.env.is_empty() && self.shell.is_none() {
            return None;
        }
        let env = match environment(self.env) {
            Ok(env) => env,
            Err(error) => return Some(error),
        };
        let shell = self.shell?;
        let is_there = match shell.contains('/') {
            // Of what cannot be looked at, only the system knows.
            true => folder.is_none_or(|folder| folder.join(shell).try_exists().unwrap_or(true)),
            false => env.find(shell).is_some(),
        };
        let source = || io::ErrorKind::NotFound.into();
        let missing = || RunError::Spawn { program: shell.to_owned(), source: source() };
        (!is_there).then(|| not_started(missing()))
    }

    /// What to start.
    pub(super) fn spawn(&self) -> Result<Spawn, ToolError> {
        patch::refuse(self.script)?;
        let judged = self.judged();
        judged.whole()?;
        let env = environment(self.env)?;
        let spawn = match self.direct(&judged) {
            Some([program, args @ ..]) => Spawn::exec(program, args),
            _ => self.by_shell(&env),
        };
        Ok(spawn.env(env).title(self.script))
    }

    /// What reads the script.
    fn by_shell(&self, env: &ChildEnv) -> Spawn {
        let shell = self.shell.unwrap_or(BASH);
        match env.find(BASH).filter(|_| shell == BASH) {
            // A bash that is called by its name looks for itself again; what it calls itself
            // is the word behind the script.
            Some(file) => Spawn::exec(file, self.args().into_iter().chain([BASH])),
            None => Spawn::exec(shell, self.args()),
        }
    }

    /// What decides beside its words what it does, when it is run in `workdir`.
    pub(super) fn facts(&self, workdir: &str, cx: &Context) -> Vec<(&'static str, String)> {
        let Ok(env) = environment(self.env) else { return Vec::new() };
        let shell = Some(self.shell.unwrap_or(BASH));
        Facts { judged: &self.judged(), shell, folder: folder(cx, workdir).ok(), env }.list(cx)
    }

    /// What whoever is asked sees of where it runs, and which programs.
    pub(super) fn shown(&self, workdir: &str, cx: &Context) -> Option<Value> {
        let (folder, env) = (folder(cx, workdir).ok(), environment(self.env).ok()?);
        Facts { judged: &self.judged(), shell: None, folder, env }.shown()
    }

    fn args(&self) -> Vec<&str> {
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

/// What a child sees: what is passed on, what keeps it quiet, and what was asked for.
pub(super) fn environment(asked: &[String]) -> Result<ChildEnv, ToolError> {
    let tell = |env: ChildEnv, (name, value): &(&str, &str)| env.with(*name, *value);
    let env = TOLD.iter().fold(ChildEnv::inherited(), tell);
    asked.iter().try_fold(env, |env, variable| {
        let Some((name, value)) = variable.split_once('=') else {
            return Err(ToolError::invalid("env", format_args!("`{variable}` has no `=`"))
                .hint("write `NAME=value`"));
        };
        env.with_untrusted(name, value).map_err(|error| ToolError::invalid("env", error))
    })
}

/// What another tool touches that starts a program with arguments, wherever it starts it.
#[cfg(feature = "mcp")]
pub(crate) fn subjects_of_argv(argv: &[String], has_variables: bool, cx: &Context) -> Vec<Subject> {
    let why = if is_login(argv) { Some(Why::Login) } else { None };
    let judged = Judged::argv(argv).doubted(why.or(has_variables.then_some(Why::Assignment)));
    let named = |subject: Subject| match subject.permission() {
        None => subject.under(PERMISSION),
        Some(_) => subject,
    };
    judged.subjects(&Base::new(cx, None)).into_iter().map(named).collect()
}

/// Where the relative paths of a command start that is run in `workdir`.
pub(super) fn base<'a>(cx: &'a Context, workdir: &str) -> Base<'a> {
    match folder(cx, workdir) {
        Ok(folder) => Base::new(cx, Some(folder)).held(confined::policy(cx).enforced_roots()),
        Err(error) => Base::refused(cx, workdir, &error),
    }
}

/// The folder to run in, which must be in the workspace.
pub(super) fn folder(cx: &Context, workdir: &str) -> Result<std::path::PathBuf, ToolError> {
    let place = cx.state::<Workspace>()?.resolve(workdir)?;
    if !place.metadata()?.kind.is_dir() {
        return Err(ToolError::invalid("workdir", format_args!("`{workdir}` is no folder")));
    }
    Ok(place.absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(script: &str) -> Line<'_> {
        Line { script, shell: None, login: false, env: &[], tty: false }
    }

    fn started(line: &Line<'_>) -> String {
        let shown = format!("{:?}", line.spawn().unwrap());
        let (program, rest) = shown.split_once("args: ").unwrap();
        let args = rest.split_once("]").unwrap().0;
        format!("{} {args}]", program.trim_start_matches("Spawn { program: Program { name: "))
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
        let login = Line { login: true, ..line("echo a") };
        assert!(started(&login).ends_with(r#"/bash",  ["-l", "-c", "echo a", "bash"]"#));
        let own = Line { shell: Some("/bin/bash"), ..line("ls") };
        assert!(started(&own).ends_with(r#""/bin/bash",  ["--noprofile", "--norc", "-c", "ls"]"#));
        let other = Line { shell: Some("zsh"), ..line("ls") };
        assert_eq!(started(&other), r#""zsh",  ["-c", "ls"]"#);
    }

    // SH8, CH2: what may mean something else is never allowed by a rule for commands.
    #[test]
    fn other_shells_and_variables_ask() {
        let env = ["A=1".to_owned()];
        for line in [
            Line { shell: Some("zsh"), ..line("ls") },
            Line { shell: Some("./bash"), ..line("ls") },
            Line { login: true, ..line("ls") },
            Line { env: &env, ..line("ls") },
        ] {
            assert!(line.judged().understood().opaque.is_some());
            assert!(line.judged().suggestions().is_empty());
        }
        assert!(line("ls").judged().understood().opaque.is_none());
    }

    #[test]
    fn variables_that_steer_programs_are_refused() {
        for variable in ["LD_PRELOAD=x", "API_KEY=x", "GIT_CONFIG_COUNT=0", "novalue"] {
            assert!(environment(&[variable.to_owned()]).is_err(), "{variable}");
        }
        assert!(environment(&["RUST_LOG=debug".to_owned()]).is_ok());
    }
}
