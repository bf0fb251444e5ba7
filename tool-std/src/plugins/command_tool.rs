//! Tools of a manifest: each call runs a command of the plugin, or asks a process that runs on.
//!
//! **Invariant:** a command runs as the user set the sandbox, with the variables of the allow-list and
//! those of the manifest, and ends with the call that waits for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tool_sdk::process::{
    self, ChildEnv, Command as ChildCommand, CommandOutput, ExitOutcome, RunError,
};
use tool_sdk::{Context, Definition, DynamicTool, Output, Schema, ToolError, ToolName, Workspace};

use super::line_process::LineProcesses;
use super::manifest::{CommandProtocol, CommandToolEntry};
use crate::exec::sandbox_policy;

/// The most that is read of a result, unless the manifest says otherwise.
const MAX_OUTPUT: usize = 1 << 20;

/// How much of standard error is kept of a call that failed: its last lines, and bytes of them.
const MAX_STDERR_LINES: usize = 20;
const MAX_STDERR_BYTES: usize = 8 * 1024;

/// The time limit of a process; that of the call is shorter, and ends the process.
const PROCESS_TIMEOUT: Duration = Duration::from_hours(24);

/// The command of a tool, as it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PluginCommand {
    /// The folder of the plugin.
    pub(super) root: PathBuf,
    pub(super) words: Vec<String>,
    env: ChildEnv,
    pub(super) max_output: usize,
}

impl PluginCommand {
    /// Returns the command of a tool in the plugin folder `root`.
    pub(super) fn new(tool: &CommandToolEntry, root: PathBuf) -> Result<Self, ToolError> {
        let mut env = plugin_env(&root);
        for (name, value) in &tool.env {
            env = env
                .with_untrusted_var(name, &expand_root(value, &root))
                .map_err(|error| ToolError::config(format_args!("`{}`: {error}", tool.name)))?;
        }
        let words = tool.command.iter().map(|word| expand_root(word, &root)).collect();
        let max_output = tool.max_output.unwrap_or(MAX_OUTPUT);
        Ok(Self { root, words, env, max_output })
    }

    /// Returns the command for the session of a call. It starts in the workspace.
    pub(super) async fn prepare(&self, cx: &Context) -> Result<ChildCommand, ToolError> {
        let context = cx.clone();
        let policy = cx.run_blocking(move |_| Ok::<_, ToolError>(sandbox_policy(&context))).await?;
        let workspace = cx.state::<Workspace>().ok();
        let folder = workspace.as_ref().and_then(|workspace| workspace.roots().next());
        let program = match self.words[0].contains('/') {
            true => self.root.join(&self.words[0]).into_os_string(),
            false => self.words[0].clone().into(),
        };
        Ok(ChildCommand::new(program, self.words[1..].iter().cloned())
            .current_dir(folder.unwrap_or(&self.root))
            .env(self.env.clone())
            .sandbox(policy)
            .timeout(PROCESS_TIMEOUT)
            .output_limit(self.max_output.saturating_mul(2)))
    }
}

/// Returns the variables of the commands of a plugin.
pub(super) fn plugin_env(root: &std::path::Path) -> ChildEnv {
    ChildEnv::from_host()
        .with_var("PLUGIN_ROOT", root)
        .with_var("CLAUDE_PLUGIN_ROOT", root)
        // Compiled files would change the content that was approved.
        .with_var("PYTHONDONTWRITEBYTECODE", "1")
}

/// Puts the folder of the plugin in the place of its variable.
pub(super) fn expand_root(text: &str, root: &std::path::Path) -> String {
    let folder = root.to_string_lossy();
    text.replace("${PLUGIN_ROOT}", &folder).replace("${CLAUDE_PLUGIN_ROOT}", &folder)
}

/// Builds the tool of an entry. `revision` is the content hash of the plugin.
pub(super) fn build_tool(
    entry: &CommandToolEntry,
    root: PathBuf,
    revision: &str,
    processes: &LineProcesses,
) -> Result<DynamicTool, ToolError> {
    let definition = build_definition(entry, revision)?;
    let command = Arc::new(PluginCommand::new(entry, root)?);
    let name: Arc<str> = entry.name.as_str().into();
    Ok(match entry.protocol {
        CommandProtocol::OneShot => {
            DynamicTool::new(definition, move |args: Value, cx: Context| {
                let (command, name) = (Arc::clone(&command), Arc::clone(&name));
                async move { run_once(&command, &name, &args, &cx).await }
            })
        }
        CommandProtocol::Lines => {
            let process = processes.for_command(&command);
            DynamicTool::new(definition, move |args: Value, cx: Context| {
                let (process, name) = (Arc::clone(&process), Arc::clone(&name));
                async move { process.call(&name, args, &cx).await }
            })
        }
    })
}

fn build_definition(entry: &CommandToolEntry, revision: &str) -> Result<Definition, ToolError> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| {
        ToolError::config(format_args!("the tool `{}`: {what}: {error}", entry.name))
    };
    let name = ToolName::new(entry.name.clone()).map_err(|error| wrong("its name", &error))?;
    let schema = Schema::from_value(entry.parameters.clone())
        .map_err(|error| wrong("its `parameters`", &error))?;
    let mut definition = Definition::new(name, entry.description.clone(), schema)
        .risk(entry.risk())
        .display(entry.display.clone());
    if let Some(output) = &entry.output {
        let output = Schema::result_from_value(output.clone());
        definition.output = Some(output.map_err(|error| wrong("its `output`", &error))?);
    }
    definition.permission = entry.permission.clone().map(Into::into);
    definition.title = entry.title.clone().map(Into::into);
    definition.category = entry.category.clone().map(Into::into);
    definition.timeout = entry.time_limit();
    definition.examples = entry.examples.iter().cloned().map(Into::into).collect();
    definition.revision = Some(revision.to_owned());
    Ok(definition)
}

/// Runs the command once. Dropping the future ends it with everything that it started.
async fn run_once(
    command: &PluginCommand,
    tool: &str,
    args: &Value,
    cx: &Context,
) -> Result<Output, ToolError> {
    let run = command.prepare(cx).await?.stdin(args.to_string());
    let ended = process::run(run).await.map_err(|error| start_error(tool, error))?;
    let stderr = ended.stderr.to_text();
    read_output(command, tool, &ended).map_err(|error| with_stderr(error, &stderr))
}

fn read_output(
    command: &PluginCommand,
    tool: &str,
    ended: &CommandOutput,
) -> Result<Output, ToolError> {
    let size = ended.stdout.head.len() as u64 + ended.stdout.omitted_bytes;
    if size > command.max_output as u64 {
        let most = command.max_output;
        return Err(ToolError::failed(format_args!("`{tool}` printed more than {most} bytes"))
            .hint("ask for less at once"));
    }
    let value: Result<Value, _> = serde_json::from_slice(&ended.stdout.head);
    match (ended.exit, value) {
        (ExitOutcome::Code(0), Ok(value)) => to_output(value),
        (ExitOutcome::Code(0), Err(error)) => {
            let text = format_args!("`{tool}` printed no JSON value: {error}");
            Err(ToolError::failed(text).hint("this is a defect of the plugin"))
        }
        (exit, value) => Err(value.ok().as_ref().and_then(reported_error).unwrap_or_else(|| {
            ToolError::failed(format_args!("`{tool}` failed: {}", describe_exit(exit)))
        })),
    }
}

/// Returns the error that a command reports: `{"error": "what is wrong", "hint": "what to do"}`.
pub(super) fn reported_error(value: &Value) -> Option<ToolError> {
    let error = ToolError::failed(value.get("error")?.as_str()?);
    Some(match value.get("hint").and_then(Value::as_str) {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

/// Returns a result: text as it is, everything else as JSON.
pub(super) fn to_output(value: Value) -> Result<Output, ToolError> {
    match value {
        Value::String(text) => Ok(Output::text(text)),
        value => Output::json(&value).map_err(ToolError::from_error),
    }
}

/// Keeps the end of what the command wrote on standard error as the cause, for the host.
pub(super) fn with_stderr(error: ToolError, stderr: &str) -> ToolError {
    match stderr.trim_end() {
        "" => error,
        stderr => error.source(format!("the command wrote:\n{}", last_lines(stderr))),
    }
}

/// Returns the last lines of a text.
fn last_lines(text: &str) -> &str {
    let before = text.rmatch_indices('\n').nth(MAX_STDERR_LINES - 1);
    let tail = before.map_or(text, |(end, _)| &text[end + 1..]);
    &tail[tail.ceil_char_boundary(tail.len().saturating_sub(MAX_STDERR_BYTES))..]
}

pub(super) fn start_error(tool: &str, error: RunError) -> ToolError {
    ToolError::unavailable(format_args!("the command of `{tool}` cannot be started: {error}"))
        .source(error)
}

fn describe_exit(exit: ExitOutcome) -> String {
    match exit {
        ExitOutcome::Code(code) => format!("its command ended with exit code {code}"),
        ExitOutcome::Signal(signal) => format!("its command was killed by signal {signal}"),
        ExitOutcome::TimedOut => "its command ran for too long".to_owned(),
        _ => "how its command ended is unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A trace of Python ends with what went wrong.
    #[test]
    fn the_cause_is_the_end_of_standard_error() {
        let cause = |stderr: &str| {
            let error = with_stderr(ToolError::failed("no"), stderr);
            std::error::Error::source(&error).map(ToString::to_string)
        };
        assert_eq!(cause(" \n"), None);
        assert_eq!(cause("  one\ntwo\n").unwrap(), "the command wrote:\n  one\ntwo");
        let lines: Vec<String> = (0..50).map(|nth| format!("line {nth}")).collect();
        let kept = cause(&lines.join("\n")).unwrap();
        assert!(kept.starts_with("the command wrote:\nline 30\n") && kept.ends_with("line 49"));
        assert!(cause(&"ä".repeat(9000)).unwrap().len() < 9000);
    }
}
