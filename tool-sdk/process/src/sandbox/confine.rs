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

use super::helper_protocol::{HELPER_ARG, ProtectedPaths};
use super::status::{EnforcementLevel, SandboxStatus, SandboxSupport};
use super::{HelperRequest, SandboxPolicy, system};

/// The command that starts a program in its sandbox.
#[derive(Debug)]
pub(crate) struct ConfinedCommand {
    /// The helper and its arguments; `None` when nothing can be enforced.
    pub(crate) command: Option<(OsString, Vec<OsString>)>,
    pub(crate) status: SandboxStatus,
    /// Kept while the child runs.
    pub(crate) placeholders: PlaceholderDirs,
    pub(crate) protected_baseline: ProtectedBaseline,
}

/// The protected files at the start of a child, to detect those that appear during the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProtectedBaseline(Option<Arc<(SandboxPolicy, ProtectedPaths)>>);

impl ProtectedBaseline {
    /// Returns the protected files that appeared since, within the limits of the search.
    pub(crate) fn find_new(&self) -> Vec<PathBuf> {
        let Some((policy, before)) = self.0.as_deref() else { return Vec::new() };
        // A folder that cannot be read any more yields nothing.
        ProtectedPaths::for_policy(policy).map(|now| before.new_in(now)).unwrap_or_default()
    }
}

/// Empty folders in place of protected files that do not exist; removed with the last clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlaceholderDirs(
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no background processes"))]
    Arc<[system::PlaceholderDir]>,
);

#[cfg(unix)]
impl PlaceholderDirs {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the command that starts `program` under `policy`; `None` when the policy is off.
///
/// # Errors
///
/// Fails with the status when it does not meet a required policy.
pub(crate) fn confine_command(
    policy: &SandboxPolicy,
    program: &OsStr,
    args: &[OsString],
) -> Result<Option<ConfinedCommand>, SandboxStatus> {
    if policy.is_off() {
        return Ok(None);
    }
    let SandboxSupport { status: floor, .. } = probed_support(policy);
    let mut status = floor.clone();
    apply_read_gaps(policy, &mut status);
    if !policy.is_met_by(&status) {
        return Err(status);
    }
    if (status.filesystem, status.network) == (EnforcementLevel::None, EnforcementLevel::None) {
        let (stand_ins, planted) = Default::default();
        return Ok(Some(ConfinedCommand {
            command: None,
            status,
            placeholders: stand_ins,
            protected_baseline: planted,
        }));
    }
    // The status was reported by a helper, so there is one.
    let helper = system::helper_program(policy).map_err(SandboxStatus::unenforced)?;
    let order = HelperRequest::for_policy(policy, Some(floor))
        .map_err(protected_error)
        .map_err(SandboxStatus::unenforced)?;
    let told = encode_request(&order).map_err(SandboxStatus::unenforced)?;
    let protected = policy.always_protected();
    let stand_ins = protected.iter().filter_map(|path| system::PlaceholderDir::create(path));
    let stand_ins = PlaceholderDirs(stand_ins.collect());
    let mut all = vec![HELPER_ARG.into(), told, program.to_owned()];
    all.extend_from_slice(args);
    let baseline_policy = policy.without_unreadable_paths();
    let planted = ProtectedBaseline(Some(Arc::new((baseline_policy, order.protected))));
    Ok(Some(ConfinedCommand {
        command: Some((helper, all)),
        status,
        placeholders: stand_ins,
        protected_baseline: planted,
    }))
}

/// Returns what this machine can enforce for `policy`.
pub(super) fn cached_support(policy: &SandboxPolicy) -> SandboxSupport {
    let mut support = probed_support(policy);
    apply_read_gaps(policy, &mut support.status);
    support
}

/// Lowers the level for reading by what the host could not find out.
fn apply_read_gaps(policy: &SandboxPolicy, status: &mut SandboxStatus) {
    if let (false, Some(unreadable)) = (policy.is_off(), &policy.unreadable) {
        unreadable.apply_gaps(status);
    }
}

/// Returns what the helper enforces for `policy`, from a cache of probes.
fn probed_support(policy: &SandboxPolicy) -> SandboxSupport {
    let policy = &policy.without_unreadable_paths();
    static KNOWN: Mutex<Option<HashMap<SandboxPolicy, SandboxSupport>>> = Mutex::new(None);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(support) = known().get_or_insert_default().get(policy) {
        return support.clone();
    }
    let found = probe_helper(policy).unwrap_or_else(|why| SandboxSupport {
        status: SandboxStatus::unenforced(why),
        ..SandboxSupport::default()
    });
    known().get_or_insert_default().insert(policy.clone(), found.clone());
    found
}

/// Starts a helper that applies `policy` to itself and reports the result.
fn probe_helper(policy: &SandboxPolicy) -> Result<SandboxSupport, String> {
    if policy.is_off() {
        return Err("the sandbox is off".to_owned());
    }
    let cannot = |error: io::Error| format!("cannot start the sandbox helper: {error}");
    let output = Command::new(system::helper_program(policy)?)
        .arg(HELPER_ARG)
        .arg(encode_request(&HelperRequest::for_policy(policy, None).map_err(protected_error)?)?)
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
fn protected_error(error: io::Error) -> String {
    format!("cannot search a writable folder for protected files: {error}")
}

fn encode_request(order: &HelperRequest) -> Result<OsString, String> {
    serde_json::to_string(order)
        .map(OsString::from)
        .map_err(|error| format!("cannot encode a path for the sandbox helper: {error}"))
}
