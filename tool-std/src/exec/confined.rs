//! What confines the commands of a session, and what is said about it.
//!
//! **Invariant:** no argument of a tool has a say in this; the host sets it.

use std::path::PathBuf;

use serde_json::{Value, json};
use tool_sdk::process::sandbox::{Level, Mode, Policy, Status};
use tool_sdk::process::{Exit, Process};
use tool_sdk::{Context, ToolError, Workspace};

use super::facts::UNSEEN;

/// What programs print when the system refuses something, in the language that they are
/// given.
const REFUSED: &[&str] = &[
    "Operation not permitted",
    "Permission denied",
    "Read-only file system",
    "Network is unreachable",
    "name resolution",
    "resolve host",
];

/// How many names a warning names.
const MOST_NAMED: usize = 8;

/// The host's policy for the folders of the workspace.
pub(super) fn policy(cx: &Context) -> Policy {
    let policy = Policy::of(cx.session());
    match cx.state::<Workspace>() {
        Ok(workspace) => workspace.roots().fold(policy, |policy, root| policy.writable(root)),
        Err(_) => policy,
    }
}

/// What whoever is asked about a command reads: `shown` of it, and how far it is confined. Nobody is
/// asked where their yes would not hold.
pub(super) fn preview(
    shown: Option<Value>,
    facts: &[(&'static str, String)],
    cx: &Context,
) -> Result<Option<Value>, ToolError> {
    if facts.iter().any(|(name, _)| *name == UNSEEN) {
        return Err(ToolError::denied(
            "nobody can be asked: it mentions more files or programs than a yes can be bound to",
        )
        .hint("name fewer of them, or the folder that they are in; a rule may allow it as it is"));
    }
    let policy = policy(cx);
    let held = (!policy.is_off()).then(|| policy.status());
    let words = status(&policy, held.as_ref()).unwrap_or_else(|| "off".to_owned());
    let mut preview = shown.unwrap_or_else(|| json!({}));
    preview["sandbox"] = words.into();
    Ok(Some(preview))
}

/// What whoever is asked about typing reads: into what, and how far that is confined.
pub(super) fn preview_of(process: &Process, cx: &Context) -> Value {
    let words = status(&Policy::of(cx.session()), process.sandbox());
    json!({ "session": process.title(), "sandbox": words.unwrap_or_else(|| "off".to_owned()) })
}

/// How far a command is confined, in words; nothing where no sandbox was wanted.
fn status(policy: &Policy, status: Option<&Status>) -> Option<String> {
    let held = match status {
        Some(status) => status.to_string(),
        None if policy.mode() == Mode::Off => return None,
        None => "nothing is confined".to_owned(),
    };
    Some(format!("{}, {}: {held}", policy.mode(), policy.level()))
}

/// How a command is confined that was started.
pub(super) struct Confinement {
    policy: Policy,
    status: Option<Status>,
    /// What is protected and has come, below the workspace where it lies there.
    planted: Vec<String>,
}

impl Confinement {
    pub(super) async fn of(process: &Process, cx: &Context) -> Self {
        let workspace = cx.state::<Workspace>().ok();
        let name = |path: PathBuf| {
            let mut roots = workspace.iter().flat_map(|workspace| workspace.roots());
            let below = roots.find_map(|root| path.strip_prefix(root).ok());
            below.unwrap_or(&path).display().to_string()
        };
        Self {
            policy: Policy::of(cx.session()),
            status: process.sandbox().cloned(),
            planted: process.planted().await.into_iter().map(name).collect(),
        }
    }

    /// For screens.
    pub(super) fn json(&self) -> Value {
        let Some(status) = &self.status else {
            return match self.policy.mode() {
                Mode::Off => json!({ "mode": "off" }),
                mode => json!({ "mode": mode, "level": self.policy.level() }),
            };
        };
        json!({
            "mode": self.policy.mode(),
            "level": self.policy.level(),
            "filesystem": status.filesystem,
            "network": status.network,
            "processes": status.processes,
            "reasons": status.reasons,
            "planted": self.planted,
        })
    }

    /// A line for whoever reads the result, where a sandbox was wanted.
    pub(super) fn line(&self) -> Option<String> {
        // Why something is missing, whoever is asked reads, and the host.
        let mut short = self.status.clone();
        short.iter_mut().for_each(|short| short.reasons.clear());
        status(&self.policy, short.as_ref()).map(|words| format!("Sandbox: {words}"))
    }

    /// A line for whoever reads the result, where something came that the sandbox would have
    /// held had it been there.
    pub(super) fn warning(&self) -> Option<String> {
        let names: Vec<String> = self.planted.iter().map(|name| format!("`{name}`")).collect();
        let names = match names.get(..MOST_NAMED) {
            Some(some) if names.len() > MOST_NAMED => format!("{} and more", some.join(", ")),
            _ => names.join(", "),
        };
        (!names.is_empty()).then(|| {
            format!(
                "What is new here, other programs run or obey later: {names}. Look at it first."
            )
        })
    }

    /// A line for the model, where a command that failed seems to have met the sandbox.
    pub(super) fn remark(&self, exit: Option<Exit>, output: &str) -> Option<String> {
        self.status.as_ref()?;
        let failed = exit.is_some_and(|exit| exit != Exit::Code(0));
        if !failed || !REFUSED.iter().any(|words| output.contains(words)) {
            return None;
        }
        let writable = match self.policy.level() {
            Level::ReadOnly => "nothing can be written",
            _ => {
                "only the workspace, without protected files such as `.git`, and folders for \
                  temporary files can be written"
            }
        };
        let network = if self.policy.has_network() { "" } else { ", and no network is reached" };
        Some(format!("It may have been the sandbox: {writable}{network}."))
    }
}
