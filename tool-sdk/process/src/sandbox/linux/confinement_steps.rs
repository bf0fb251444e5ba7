//! Combines the results of the single restrictions into a status.
//!
//! **Invariant:** a level is full only if every gap is named by the reasons or by
//! [`SandboxPolicy::with_writable`](crate::sandbox::SandboxPolicy::with_writable).

use std::io;

use super::mounts::MountReport;
use crate::sandbox::status::{EnforcementLevel, SandboxStatus, SandboxSupport};
use crate::sandbox::{HelperRequest, SandboxLevel};

/// The Landlock ABI versions since which it restricts truncation, TCP and signals.
pub(super) const TRUNCATE_ABI: i32 = 3;
const TCP_ABI: i32 = 4;
pub(super) const SIGNALS_ABI: i32 = 6;

/// The gap that remains with mounts: files that do not exist yet or that the search did not reach.
const UNPROTECTED_NOTE: &str = "protected files that do not exist yet, or are deeply nested, can be \
                      created; created ones are reported with the result";

/// The result of each step.
#[derive(Debug)]
pub(super) struct ConfinementSteps {
    /// The result of the mounts, if there is a mount namespace.
    pub(super) mounts: io::Result<MountReport>,
    /// Whether there is a PID namespace.
    pub(super) processes: io::Result<()>,
    pub(super) capabilities: io::Result<()>,
    /// The Landlock ABI version.
    pub(super) landlock: Result<i32, String>,
    pub(super) seccomp: Result<(), String>,
}

impl ConfinementSteps {
    pub(super) fn to_support(&self, order: &HelperRequest) -> SandboxSupport {
        let status = SandboxStatus {
            filesystem: self.filesystem_level(order.level),
            network: self.network_level(order.network),
            processes: self.processes_level(),
            reads: order.unreadable.as_ref().map(|_| self.reads_level()),
            reasons: self.reasons(order.level),
        };
        SandboxSupport {
            status,
            landlock: self.landlock.as_ref().ok().copied(),
            namespaces: self.mounts.is_ok(),
            seccomp: self.seccomp.is_ok(),
        }
    }

    fn filesystem_level(&self, level: SandboxLevel) -> EnforcementLevel {
        let held = self.mounts.as_ref().is_ok_and(|mounts| mounts.unprotected.is_empty());
        // With capabilities the child could undo the mounts. On the read-only level there are no
        // writable folders with protected files.
        let is_whole = self.capabilities.is_ok() && (held || level == SandboxLevel::ReadOnly);
        match (&self.mounts, &self.landlock) {
            // A read-only mount does not prevent writes to devices and FIFOs; Landlock does.
            (Ok(_), Ok(_)) if is_whole => EnforcementLevel::Full,
            (Err(_), Ok(TRUNCATE_ABI..)) if is_whole => EnforcementLevel::Full,
            (Err(_), Err(_)) => EnforcementLevel::None,
            _ => EnforcementLevel::Partial,
        }
    }

    fn network_level(&self, is_open: bool) -> EnforcementLevel {
        match (&self.seccomp, &self.landlock) {
            _ if is_open => EnforcementLevel::None,
            (Ok(()), _) => EnforcementLevel::Full,
            // Landlock restricts TCP only.
            (Err(_), Ok(TCP_ABI..)) => EnforcementLevel::Partial,
            (Err(_), _) => EnforcementLevel::None,
        }
    }

    fn processes_level(&self) -> EnforcementLevel {
        match (&self.processes, &self.landlock) {
            (Ok(()), _) if self.hides_processes() => EnforcementLevel::Full,
            // Processes outside are visible only.
            (Ok(()), Ok(_)) => EnforcementLevel::Partial,
            // Descendants may outlive the child. Processes outside are visible only.
            (Err(_), Ok(SIGNALS_ABI..)) => EnforcementLevel::Partial,
            (_, _) => EnforcementLevel::None,
        }
    }

    fn hides_processes(&self) -> bool {
        let has_own_proc = self.mounts.as_ref().is_ok_and(|mounts| mounts.proc_error.is_none());
        has_own_proc && self.processes.is_ok()
    }

    fn reads_level(&self) -> EnforcementLevel {
        // Without either, the child reaches the mounts of the host through `/proc/PID/cwd`.
        let is_host_hidden = self.landlock.is_ok() || self.hides_processes();
        match self.mounts.as_ref().ok().and_then(|mounts| mounts.read_covers.as_ref()) {
            // With capabilities the child could undo the mounts.
            Some(Ok(uncovered))
                if uncovered.is_empty() && self.capabilities.is_ok() && is_host_hidden =>
            {
                EnforcementLevel::Full
            }
            Some(Ok(_)) => EnforcementLevel::Partial,
            Some(Err(_)) | None => EnforcementLevel::None,
        }
    }

    fn reasons(&self, level: SandboxLevel) -> Vec<String> {
        let mut reasons = Vec::new();
        match &self.mounts {
            Ok(MountReport { unprotected: open, .. }) if !open.is_empty() => {
                reasons.push(format!("not protected: {}", open.join(", ")));
            }
            Ok(_) if level == SandboxLevel::WorkspaceWrite => {
                reasons.push(UNPROTECTED_NOTE.to_owned())
            }
            Ok(_) => {}
            Err(error) => reasons.push(format!("no mount namespace: {error}")),
        }
        match self.mounts.as_ref().ok().and_then(|mounts| mounts.read_covers.as_ref()) {
            Some(Ok(uncovered)) if !uncovered.is_empty() => {
                reasons.push(format!("readable although denied: {}", uncovered.join(", ")));
            }
            Some(Err(error)) => {
                reasons.push(format!("files that must not be read cannot be covered: {error}"));
            }
            Some(Ok(_)) | None => {}
        }
        if let Err(error) = &self.processes {
            reasons.push(format!(
                "no PID namespace, so background processes may outlive the command: {error}"
            ));
        }
        if let (Ok(()), Ok(MountReport { proc_error: Some(error), .. })) =
            (&self.processes, &self.mounts)
        {
            reasons.push(format!(
                "cannot mount `/proc`, so processes outside of the sandbox are visible: {error}"
            ));
        }
        match &self.landlock {
            Ok(SIGNALS_ABI..) => {}
            Ok(_) if self.processes.is_ok() => {}
            Ok(version) => reasons.push(format!(
                "Landlock ABI {version} does not block signals to other processes of the user"
            )),
            Err(error) => {
                reasons
                    .push(format!("no Landlock, so devices and FIFOs can be written to: {error}"));
            }
        }
        if let Err(error) = &self.capabilities {
            reasons.push(format!("cannot drop capabilities: {error}"));
        }
        if let Err(error) = &self.seccomp {
            reasons.push(format!("no seccomp: {error}"));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{SandboxMode, SandboxPolicy};

    fn steps(namespaces: bool, landlock: i32, calls: bool) -> ConfinementSteps {
        let missing = || io::Error::from(io::ErrorKind::Unsupported);
        ConfinementSteps {
            mounts: if namespaces { Ok(MountReport::default()) } else { Err(missing()) },
            processes: if namespaces { Ok(()) } else { Err(missing()) },
            capabilities: Ok(()),
            landlock: if landlock > 0 { Ok(landlock) } else { Err("not there".to_owned()) },
            seccomp: if calls { Ok(()) } else { Err("not there".to_owned()) },
        }
    }

    fn words(steps: &ConfinementSteps, level: SandboxLevel) -> String {
        let order =
            HelperRequest::for_policy(&SandboxPolicy::new(SandboxMode::BestEffort, level), None)
                .unwrap();
        let status = steps.to_support(&order).status;
        let SandboxStatus { filesystem, network, processes, reasons, .. } = status;
        format!("{filesystem} {network} {processes} {}", reasons.len())
    }

    // SB1, SB2, SB3, fault 16: older kernels, and those that disable a mechanism.
    #[test]
    fn what_is_missing_is_counted() {
        use SandboxLevel::{ReadOnly, WorkspaceWrite};
        for (mounts, landlock, calls, level, expected) in [
            // Files that do not exist yet are always a gap.
            (true, 7, true, WorkspaceWrite, "full full full 1"),
            (true, 7, true, ReadOnly, "full full full 0"),
            // A PID namespace blocks signals to the outside.
            (true, 5, true, WorkspaceWrite, "full full full 1"),
            // Mounts do not cover devices and FIFOs.
            (true, 0, true, WorkspaceWrite, "partial full full 2"),
            (true, 0, true, ReadOnly, "partial full full 1"),
            // Without mounts, files in a writable folder cannot be protected.
            (false, 7, true, WorkspaceWrite, "partial full partial 2"),
            (false, 7, true, ReadOnly, "full full partial 2"),
            // Signals reach processes outside.
            (false, 5, true, ReadOnly, "full full none 3"),
            // Files can be truncated.
            (false, 2, true, ReadOnly, "partial full none 3"),
            (false, 0, true, WorkspaceWrite, "none full none 3"),
            // Landlock blocks TCP only.
            (true, 4, false, WorkspaceWrite, "full partial full 2"),
            (true, 3, false, WorkspaceWrite, "full none full 2"),
            (false, 0, false, ReadOnly, "none none none 4"),
        ] {
            let found = words(&steps(mounts, landlock, calls), level);
            assert_eq!(found, expected, "{mounts} {landlock} {calls} {level}");
        }
    }

    // SB8: visible processes are reported, and do not meet a required policy.
    #[test]
    fn processes_that_are_seen_are_named() {
        for (landlock, mounted, expected) in [
            (7, true, EnforcementLevel::Partial),
            (0, true, EnforcementLevel::None),
            (7, false, EnforcementLevel::Partial),
        ] {
            let mut steps = steps(true, landlock, true);
            let seen = || io::Error::from(io::ErrorKind::PermissionDenied);
            steps.mounts = match mounted {
                true => Ok(MountReport { proc_error: Some(seen()), ..MountReport::default() }),
                false => Err(seen()),
            };
            let required = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::ReadOnly);
            let order = HelperRequest::for_policy(&required, None).unwrap();
            let status = steps.to_support(&order).status;
            assert_eq!(status.processes, expected);
            assert!(!status.reasons.is_empty());
            assert!(!required.is_met_by(&status));
        }
    }

    // F193, SB2: what stays readable is counted and named.
    #[test]
    fn reports_what_stays_readable() {
        use EnforcementLevel::{Full, None, Partial};
        type Covers = Option<io::Result<Vec<String>>>;
        let policy = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite);
        let unreadable = policy.clone().with_unreadable(["/x"]);
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let support = |steps: &ConfinementSteps, policy: &SandboxPolicy| {
            steps.to_support(&HelperRequest::for_policy(policy, Option::None).unwrap()).status
        };
        let cases: [(Covers, bool, i32, EnforcementLevel); 5] = [
            (Some(Ok(Vec::new())), true, 7, Full),
            (Some(Ok(vec!["`/x` (busy)".to_owned()])), true, 7, Partial),
            (Some(Err(denied())), true, 7, None),
            (Some(Ok(Vec::new())), false, 7, Full),
            // The mounts of the host can be reached.
            (Some(Ok(Vec::new())), false, 0, Partial),
        ];
        for (read_covers, has_own_proc, landlock, expected) in cases {
            let mut steps = steps(true, landlock, true);
            let is_named = expected != Full;
            let proc_error = (!has_own_proc).then(denied);
            steps.mounts = Ok(MountReport { read_covers, proc_error, ..MountReport::default() });
            let status = support(&steps, &unreadable);
            assert_eq!(status.reads, Some(expected), "{status}");
            assert!(!is_named || status.reasons.len() > 1, "{status}");
            assert_eq!(unreadable.is_met_by(&status), expected == Full && has_own_proc, "{status}");
            assert_eq!(support(&steps, &policy).reads, Option::None);
        }
        let status = support(&steps(false, 7, true), &unreadable);
        assert_eq!(status.reads, Some(None));
    }

    #[test]
    fn what_is_not_held_is_named() {
        let mut steps = steps(true, 7, true);
        steps.mounts =
            Ok(MountReport { unprotected: vec!["`.git`".to_owned()], ..MountReport::default() });
        let order = HelperRequest::for_policy(
            &SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::WorkspaceWrite),
            None,
        )
        .unwrap();
        let status = steps.to_support(&order).status;
        assert_eq!(status.filesystem, EnforcementLevel::Partial);
        assert_eq!(status.reasons, ["not protected: `.git`"]);

        steps.mounts = Ok(MountReport::default());
        steps.capabilities = Err(io::ErrorKind::PermissionDenied.into());
        assert_eq!(steps.to_support(&order).status.filesystem, EnforcementLevel::Partial);
    }
}
