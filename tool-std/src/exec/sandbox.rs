//! The sandbox policy for the commands of a session, and its description for models and users.
//!
//! **Invariant:** the host sets the policy; no tool argument changes it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy, SandboxStatus};
use tool_sdk::process::{BackgroundProcess, ExitOutcome};
use tool_sdk::{CallId, Context, ToolError, Workspace};

use super::approval_binding::UNSEEN;
use super::unreadable_files::add_unreadable_files;

/// What programs print when the kernel does not let them open a file, in the locale of commands.
const FILE_ERRORS: &[&str] =
    &["Operation not permitted", "Permission denied", "Read-only file system"];

/// What programs print when they reach no network.
const NETWORK_ERRORS: &[&str] = &[
    "Network is unreachable",
    "Connection refused",
    "Name or service not known",
    "getaddrinfo",
    "name resolution",
    "resolve host",
];

const NO_NETWORK: &str = "The sandbox may have caused this: no network is reached, not even this machine. \
    The user can allow it with `--sandbox-network`, or `sandbox_network = true` in the configuration.";

/// The status of a command without a sandbox. Rules judge the words of a command; what it opens
/// by a path afterwards, only the kernel can confine.
const OFF: &str = "off: nothing confines the files that the command opens to the workspace";

/// How many names a warning lists.
const MAX_WARNED_NAMES: usize = 8;

/// How many calls are remembered that need no approval because they are confined.
const MAX_CONFINED_CALLS: usize = 1_024;

/// The calls that were decided about as confined and have not started yet.
#[derive(Clone, Default)]
struct ConfinedCalls(Arc<Mutex<VecDeque<CallId>>>);

impl ConfinedCalls {
    fn set(&self, call: &CallId, is_confined: bool) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|other| other != call);
        if is_confined {
            calls.truncate(MAX_CONFINED_CALLS - 1);
            calls.push_front(call.clone());
        }
    }

    fn take(&self, call: &CallId) -> bool {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = calls.iter().position(|other| other == call);
        at.and_then(|at| calls.remove(at)).is_some()
    }
}

/// Returns the policy by which a call is decided about. The files that commands must not read are
/// searched only if the decision depends on them.
pub(super) fn decision_policy(cx: &Context) -> SandboxPolicy {
    let policy = host_policy(cx);
    if !policy.allows_confined_commands() {
        return policy;
    }
    let policy = add_unreadable_files(policy, cx);
    let calls = cx.session().extension::<ConfinedCalls>();
    calls.set(cx.call_id(), policy.allows_confined_commands());
    policy
}

/// Returns the policy for a command that starts now.
///
/// Fails when the call was decided about as confined, and more stays readable by now.
pub(super) async fn start_policy(cx: &Context) -> Result<SandboxPolicy, ToolError> {
    let was_confined = cx.session().extension::<ConfinedCalls>().take(cx.call_id());
    let context = cx.clone();
    let policy = cx.run_blocking(move |_| Ok(current_policy(&context))).await?;
    if was_confined && !policy.allows_confined_commands() {
        return Err(ToolError::conflict(
            "files that must not be read appeared since the command was allowed, and the sandbox \
             cannot cover them",
        ));
    }
    Ok(policy)
}

/// Returns the policy of the host with the workspace roots writable, and the files covered that
/// must not be read and exist now.
pub(crate) fn current_policy(cx: &Context) -> SandboxPolicy {
    add_unreadable_files(host_policy(cx), cx)
}

/// Returns the policy of the host with the workspace roots writable.
fn host_policy(cx: &Context) -> SandboxPolicy {
    let policy = cx.session().extension::<SandboxPolicy>();
    match cx.state::<Workspace>() {
        Ok(workspace) => workspace.roots().fold(policy, |policy, root| policy.with_writable(root)),
        Err(_) => policy,
    }
}

/// Builds the preview of a command for the approver: `shown` and the sandbox status. Fails if an
/// approval could not be bound to all files.
pub(super) fn approval_preview(
    shown: Option<Value>,
    facts: &[(&'static str, String)],
    cx: &Context,
) -> Result<Option<Value>, ToolError> {
    if facts.iter().any(|(name, _)| *name == UNSEEN) {
        return Err(ToolError::denied(
            "approval is not possible: the command mentions more files or programs than an approval can be bound to",
        )
        .hint("name fewer files, or the folder that they are in; a rule may allow the command as it is"));
    }
    let policy = current_policy(cx);
    let enforced = (!policy.is_off()).then(|| policy.status());
    let words = describe_status(&policy, enforced.as_ref()).unwrap_or_else(|| OFF.to_owned());
    let mut preview = shown.unwrap_or_else(|| json!({}));
    preview["sandbox"] = words.into();
    Ok(Some(preview))
}

/// Builds the preview of typed input for the approver: the session and its sandbox status.
pub(super) fn typing_preview(process: &BackgroundProcess, cx: &Context) -> Value {
    let words =
        describe_status(&cx.session().extension::<SandboxPolicy>(), process.sandbox_status());
    json!({ "session": process.title(), "sandbox": words.unwrap_or_else(|| OFF.to_owned()) })
}

/// Describes the sandbox status; `None` if no sandbox was requested.
fn describe_status(policy: &SandboxPolicy, status: Option<&SandboxStatus>) -> Option<String> {
    let enforced = match status {
        Some(status) => status.to_string(),
        None if policy.mode() == SandboxMode::Off => return None,
        None => "nothing is confined".to_owned(),
    };
    Some(format!("{}, {}: {enforced}", policy.mode(), policy.level()))
}

/// The sandbox status of a command that was started.
pub(super) struct SandboxReport {
    policy: SandboxPolicy,
    status: Option<SandboxStatus>,
    /// Protected files that appeared during the run, relative to the workspace if they are in it.
    new_protected_files: Vec<String>,
}

impl SandboxReport {
    pub(super) async fn from_process(process: &BackgroundProcess, cx: &Context) -> Self {
        let workspace = cx.state::<Workspace>().ok();
        let name = |path: PathBuf| {
            let mut roots = workspace.iter().flat_map(|workspace| workspace.roots());
            let below = roots.find_map(|root| path.strip_prefix(root).ok());
            below.unwrap_or(&path).display().to_string()
        };
        Self {
            policy: cx.session().extension::<SandboxPolicy>(),
            status: process.sandbox_status().cloned(),
            new_protected_files: process
                .new_protected_files()
                .await
                .into_iter()
                .map(name)
                .collect(),
        }
    }

    /// Returns the status as display data for screens.
    pub(super) fn to_json(&self) -> Value {
        let Some(status) = &self.status else {
            return match self.policy.mode() {
                SandboxMode::Off => json!({ "mode": "off" }),
                mode => json!({ "mode": mode, "level": self.policy.level() }),
            };
        };
        let mut data = json!({
            "mode": self.policy.mode(),
            "level": self.policy.level(),
            "filesystem": status.filesystem,
            "network": status.network,
            "processes": status.processes,
            "reasons": status.reasons,
            "planted": self.new_protected_files,
        });
        if let Some(reads) = status.reads {
            data["reads"] = reads.as_str().into();
        }
        data
    }

    /// Returns the status line of the result, if a sandbox was requested.
    pub(super) fn summary_line(&self) -> Option<String> {
        // The reasons for missing features are for the approver and the host only.
        let mut short = self.status.clone();
        short.iter_mut().for_each(|short| short.reasons.clear());
        describe_status(&self.policy, short.as_ref()).map(|words| format!("Sandbox: {words}"))
    }

    /// Returns a warning about new protected files, which the sandbox could not protect because
    /// they did not exist.
    pub(super) fn new_files_warning(&self) -> Option<String> {
        let names: Vec<String> =
            self.new_protected_files.iter().map(|name| format!("`{name}`")).collect();
        let names = match names.get(..MAX_WARNED_NAMES) {
            Some(some) if names.len() > MAX_WARNED_NAMES => format!("{} and more", some.join(", ")),
            _ => names.join(", "),
        };
        (!names.is_empty()).then(|| {
            format!("New files that other programs run or obey later: {names}. Review them first.")
        })
    }

    /// Returns a hint for the model if a failed command was probably denied by the sandbox.
    pub(super) fn denial_hint(&self, exit: Option<ExitOutcome>, output: &str) -> Option<String> {
        let status = self.status.as_ref()?;
        let failed = exit.is_some_and(|exit| exit != ExitOutcome::Code(0));
        let says_any = |errors: &[&str]| errors.iter().any(|words| output.contains(words));
        let has_no_network = !self.policy.has_network();
        if failed && has_no_network && says_any(NETWORK_ERRORS) {
            return Some(NO_NETWORK.to_owned());
        }
        if !failed || !says_any(FILE_ERRORS) {
            return None;
        }
        let writable = match self.policy.level() {
            SandboxLevel::ReadOnly => "nothing can be written",
            _ => {
                "only the workspace, without protected files such as `.git`, and folders for \
                  temporary files can be written"
            }
        };
        let network = match has_no_network {
            true => ", and no network is reached (the user can allow it with `--sandbox-network`)",
            false => "",
        };
        let reads =
            if status.reads.is_some() { ", and files that rules deny cannot be read" } else { "" };
        Some(format!("The sandbox may have caused this: {writable}{network}{reads}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // F193: what was decided last about a call holds, once.
    #[test]
    fn remembers_which_calls_are_confined_until_they_start() {
        let calls = ConfinedCalls::default();
        let ids: Vec<CallId> = (0..=MAX_CONFINED_CALLS)
            .map(|number| CallId::from_external(&number.to_string()))
            .collect();
        calls.set(&ids[0], true);
        assert!(calls.take(&ids[0]) && !calls.take(&ids[0]));

        calls.set(&ids[0], true);
        calls.set(&ids[0], false);
        assert!(!calls.take(&ids[0]));

        ids.iter().for_each(|id| calls.set(id, true));
        assert!(!calls.take(&ids[0]) && calls.take(&ids[1]));
    }
}
