//! The host's side of the sandbox: builds the command that starts the helper, and probes what the
//! helper can enforce.
//!
//! **Invariant:** with [`SandboxMode::Required`](super::SandboxMode::Required) a program is
//! started in the sandbox or not at all. The helper enforces at least the reported status, or it
//! starts nothing.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use super::order::{ASKED, Protected};
use super::status::{Enforced, Status, Support};
use super::{Order, Policy, system};

/// The command that starts a program in its sandbox.
#[derive(Debug)]
pub(in crate::process) struct Confined {
    /// The helper and its arguments; `None` when nothing can be enforced.
    pub(in crate::process) start: Option<(OsString, Vec<OsString>)>,
    pub(in crate::process) status: Status,
    /// Kept while the child runs.
    pub(in crate::process) stand_ins: StandIns,
    pub(in crate::process) planted: Planted,
}

/// The protected files at the start of a child, to detect those that appear during the run.
#[derive(Clone, Debug, Default)]
pub(in crate::process) struct Planted(Option<Arc<(Policy, Protected)>>);

impl Planted {
    /// Returns the protected files that appeared since, within the limits of the search.
    pub(in crate::process) fn found(&self) -> Vec<PathBuf> {
        let Some((policy, before)) = self.0.as_deref() else { return Vec::new() };
        // A folder that cannot be read any more yields nothing.
        Protected::of(policy).map(|now| before.missing(now)).unwrap_or_default()
    }
}

/// Empty folders in place of protected files that do not exist; removed with the last clone.
#[derive(Clone, Debug, Default)]
pub(in crate::process) struct StandIns(
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no background processes"))]
    Arc<[system::StandIn]>,
);

#[cfg(unix)]
impl StandIns {
    pub(in crate::process) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the command that starts `program` under `policy`; `None` when the policy is off.
///
/// # Errors
///
/// Fails with the status when it does not meet a required policy.
pub(in crate::process) fn confine(
    policy: &Policy,
    program: &OsStr,
    args: &[OsString],
) -> Result<Option<Confined>, Status> {
    if policy.is_off() {
        return Ok(None);
    }
    let status = policy.status();
    if !policy.is_met_by(&status) {
        return Err(status);
    }
    if (status.filesystem, status.network) == (Enforced::None, Enforced::None) {
        let (stand_ins, planted) = Default::default();
        return Ok(Some(Confined { start: None, status, stand_ins, planted }));
    }
    // The status was reported by a helper, so there is one.
    let helper = system::helper(policy).map_err(Status::none)?;
    let order = Order::of(policy, Some(status.clone())).map_err(unknown).map_err(Status::none)?;
    let told = written(&order).map_err(Status::none)?;
    let protected = policy.always_protected();
    let stand_ins = protected.iter().filter_map(|path| system::StandIn::at(path));
    let stand_ins = StandIns(stand_ins.collect());
    let mut all = vec![ASKED.into(), told, program.to_owned()];
    all.extend_from_slice(args);
    let planted = Planted(Some(Arc::new((policy.clone(), order.protected))));
    Ok(Some(Confined { start: Some((helper, all)), status, stand_ins, planted }))
}

/// Returns what this machine can enforce for `policy`, from a cache of probes.
pub(super) fn support(policy: &Policy) -> Support {
    static KNOWN: Mutex<Option<HashMap<Policy, Support>>> = Mutex::new(None);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(support) = known().get_or_insert_default().get(policy) {
        return support.clone();
    }
    let found = tried(policy)
        .unwrap_or_else(|why| Support { status: Status::none(why), ..Support::default() });
    known().get_or_insert_default().insert(policy.clone(), found.clone());
    found
}

/// Starts a helper that applies `policy` to itself and reports the result.
fn tried(policy: &Policy) -> Result<Support, String> {
    if policy.is_off() {
        return Err("the sandbox is off".to_owned());
    }
    let cannot = |error: io::Error| format!("cannot start the sandbox helper: {error}");
    let output = Command::new(system::helper(policy)?)
        .arg(ASKED)
        .arg(written(&Order::of(policy, None).map_err(unknown)?)?)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(cannot)?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("the sandbox helper returned no valid response: {}", said.trim())
    })
}

/// Converts an error of the search for protected files, for `map_err`.
fn unknown(error: io::Error) -> String {
    format!("cannot search a writable folder for protected files: {error}")
}

fn written(order: &Order) -> Result<OsString, String> {
    serde_json::to_string(order)
        .map(OsString::from)
        .map_err(|error| format!("cannot encode a path for the sandbox helper: {error}"))
}
