//! The host's side: what is started in place of a program, so that it is confined.
//!
//! **Invariant:** with [`Mode::Required`](super::Mode::Required) a program is started
//! confined or not at all. What the status promises is what the helper holds, or it starts
//! nothing.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use super::order::{ASKED, Protected};
use super::status::{Enforced, Status, Support};
use super::{Order, Policy, system};

/// What is started in place of a program.
#[derive(Debug)]
pub(in crate::process) struct Confined {
    /// The program and its arguments; nothing when there is nobody to confine it.
    pub(in crate::process) start: Option<(OsString, Vec<OsString>)>,
    pub(in crate::process) status: Status,
    /// Kept for as long as the child runs.
    pub(in crate::process) stand_ins: StandIns,
    pub(in crate::process) planted: Planted,
}

/// What tells which protected names have come since a child was started.
#[derive(Clone, Debug, Default)]
pub(in crate::process) struct Planted(Option<Arc<(Policy, Protected)>>);

impl Planted {
    /// Those that were not there then, as far as the search goes.
    pub(in crate::process) fn found(&self) -> Vec<PathBuf> {
        let Some((policy, before)) = self.0.as_deref() else { return Vec::new() };
        // In what cannot be looked into any more, nothing is found.
        Protected::of(policy).map(|now| before.missing(now)).unwrap_or_default()
    }
}

/// What holds the places of what is protected and not there, until the last clone is gone.
#[derive(Clone, Debug, Default)]
pub(in crate::process) struct StandIns(
    #[cfg_attr(not(unix), expect(dead_code, reason = "no process is kept"))] Arc<[system::StandIn]>,
);

#[cfg(unix)]
impl StandIns {
    pub(in crate::process) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What `policy` makes of a program; `None` when it confines nothing.
///
/// # Errors
///
/// Fails with what is missing, when the policy requires more than there is.
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
    // Somebody was found who could say how far it holds.
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

/// What this machine offers for `policy`.
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

/// Lets a helper confine itself and say how far it came.
fn tried(policy: &Policy) -> Result<Support, String> {
    if policy.is_off() {
        return Err("the sandbox is off".to_owned());
    }
    let cannot = |error: io::Error| format!("the helper of the sandbox cannot be started: {error}");
    let output = Command::new(system::helper(policy)?)
        .arg(ASKED)
        .arg(written(&Order::of(policy, None).map_err(unknown)?)?)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(cannot)?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("the helper of the sandbox does not answer: {}", said.trim())
    })
}

/// For `map_err`: what is protected cannot be found out.
fn unknown(error: io::Error) -> String {
    format!("a folder that may be written cannot be looked into: {error}")
}

fn written(order: &Order) -> Result<OsString, String> {
    serde_json::to_string(order)
        .map(OsString::from)
        .map_err(|error| format!("a path cannot be told to the helper of the sandbox: {error}"))
}
