//! Combines the results of the single restrictions into a status.
//!
//! **Invariant:** a level is full only if every gap is named by the reasons or by
//! [`SandboxPolicy::with_writable`](super::super::SandboxPolicy::with_writable).

use std::io;

use super::super::status::{Enforced, Status, Support};
use super::super::{Level, Order};
use super::mounts::Mounts;

/// The Landlock ABI versions since which it restricts truncation, TCP and signals.
pub(super) const TRUNCATE: i32 = 3;
const TCP: i32 = 4;
pub(super) const SIGNALS: i32 = 6;

/// The gap that remains with mounts: files that do not exist yet or that the search did not reach.
const UNHELD: &str = "protected files that do not exist yet, or are deeply nested, can be \
                      created; created ones are reported with the result";

/// The result of each step.
#[derive(Debug)]
pub(super) struct Steps {
    /// The result of the mounts, if there is a mount namespace.
    pub(super) mounts: io::Result<Mounts>,
    /// Whether there is a PID namespace.
    pub(super) processes: io::Result<()>,
    pub(super) rights: io::Result<()>,
    /// The Landlock ABI version.
    pub(super) landlock: Result<i32, String>,
    pub(super) calls: Result<(), String>,
}

impl Steps {
    pub(super) fn support(&self, order: &Order) -> Support {
        let status = Status {
            filesystem: self.filesystem(order.level),
            network: self.network(order.network),
            processes: self.processes(),
            reasons: self.reasons(order.level),
        };
        Support {
            status,
            landlock: self.landlock.as_ref().ok().copied(),
            namespaces: self.mounts.is_ok(),
            seccomp: self.calls.is_ok(),
        }
    }

    fn filesystem(&self, level: Level) -> Enforced {
        let held = self.mounts.as_ref().is_ok_and(|mounts| mounts.open.is_empty());
        // With capabilities the child could undo the mounts. On the read-only level there are no
        // writable folders with protected files.
        let is_whole = self.rights.is_ok() && (held || level == Level::ReadOnly);
        match (&self.mounts, &self.landlock) {
            // A read-only mount does not prevent writes to devices and FIFOs; Landlock does.
            (Ok(_), Ok(_)) if is_whole => Enforced::Full,
            (Err(_), Ok(TRUNCATE..)) if is_whole => Enforced::Full,
            (Err(_), Err(_)) => Enforced::None,
            _ => Enforced::Partial,
        }
    }

    fn network(&self, is_open: bool) -> Enforced {
        match (&self.calls, &self.landlock) {
            _ if is_open => Enforced::None,
            (Ok(()), _) => Enforced::Full,
            // Landlock restricts TCP only.
            (Err(_), Ok(TCP..)) => Enforced::Partial,
            (Err(_), _) => Enforced::None,
        }
    }

    fn processes(&self) -> Enforced {
        let hidden = self.mounts.as_ref().is_ok_and(|mounts| mounts.processes.is_none());
        match (&self.processes, &self.landlock) {
            (Ok(()), _) if hidden => Enforced::Full,
            // Processes outside are visible only.
            (Ok(()), Ok(_)) => Enforced::Partial,
            // Descendants may outlive the child. Processes outside are visible only.
            (Err(_), Ok(SIGNALS..)) => Enforced::Partial,
            (_, _) => Enforced::None,
        }
    }

    fn reasons(&self, level: Level) -> Vec<String> {
        let mut reasons = Vec::new();
        match &self.mounts {
            Ok(Mounts { open, .. }) if !open.is_empty() => {
                reasons.push(format!("not protected: {}", open.join(", ")));
            }
            Ok(_) if level == Level::WorkspaceWrite => reasons.push(UNHELD.to_owned()),
            Ok(_) => {}
            Err(error) => reasons.push(format!("no mount namespace: {error}")),
        }
        if let Err(error) = &self.processes {
            reasons.push(format!(
                "no PID namespace, so background processes may outlive the command: {error}"
            ));
        }
        if let (Ok(()), Ok(Mounts { processes: Some(error), .. })) = (&self.processes, &self.mounts)
        {
            reasons.push(format!(
                "cannot mount `/proc`, so processes outside of the sandbox are visible: {error}"
            ));
        }
        match &self.landlock {
            Ok(SIGNALS..) => {}
            Ok(_) if self.processes.is_ok() => {}
            Ok(version) => reasons.push(format!(
                "Landlock ABI {version} does not block signals to other processes of the user"
            )),
            Err(error) => {
                reasons
                    .push(format!("no Landlock, so devices and FIFOs can be written to: {error}"));
            }
        }
        if let Err(error) = &self.rights {
            reasons.push(format!("cannot drop capabilities: {error}"));
        }
        if let Err(error) = &self.calls {
            reasons.push(format!("no seccomp: {error}"));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Mode, Policy};
    use super::*;

    fn steps(namespaces: bool, landlock: i32, calls: bool) -> Steps {
        let missing = || io::Error::from(io::ErrorKind::Unsupported);
        Steps {
            mounts: if namespaces { Ok(Mounts::default()) } else { Err(missing()) },
            processes: if namespaces { Ok(()) } else { Err(missing()) },
            rights: Ok(()),
            landlock: if landlock > 0 { Ok(landlock) } else { Err("not there".to_owned()) },
            calls: if calls { Ok(()) } else { Err("not there".to_owned()) },
        }
    }

    fn words(steps: &Steps, level: Level) -> String {
        let order = Order::of(&Policy::new(Mode::BestEffort, level), None).unwrap();
        let status = steps.support(&order).status;
        let Status { filesystem, network, processes, reasons } = status;
        format!("{filesystem} {network} {processes} {}", reasons.len())
    }

    // SB1, SB2, SB3, fault 16: older kernels, and those that disable a mechanism.
    #[test]
    fn what_is_missing_is_counted() {
        use Level::{ReadOnly, WorkspaceWrite};
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
        for (landlock, mounted, expected) in
            [(7, true, Enforced::Partial), (0, true, Enforced::None), (7, false, Enforced::Partial)]
        {
            let mut steps = steps(true, landlock, true);
            let seen = || io::Error::from(io::ErrorKind::PermissionDenied);
            steps.mounts = match mounted {
                true => Ok(Mounts { processes: Some(seen()), ..Mounts::default() }),
                false => Err(seen()),
            };
            let required = Policy::new(Mode::Required, Level::ReadOnly);
            let order = Order::of(&required, None).unwrap();
            let status = steps.support(&order).status;
            assert_eq!(status.processes, expected);
            assert!(!status.reasons.is_empty());
            assert!(!required.is_met_by(&status));
        }
    }

    #[test]
    fn what_is_not_held_is_named() {
        let mut steps = steps(true, 7, true);
        steps.mounts = Ok(Mounts { open: vec!["`.git`".to_owned()], ..Mounts::default() });
        let order = Order::of(&Policy::new(Mode::BestEffort, Level::WorkspaceWrite), None).unwrap();
        let status = steps.support(&order).status;
        assert_eq!(status.filesystem, Enforced::Partial);
        assert_eq!(status.reasons, ["not protected: `.git`"]);

        steps.mounts = Ok(Mounts::default());
        steps.rights = Err(io::ErrorKind::PermissionDenied.into());
        assert_eq!(steps.support(&order).status.filesystem, Enforced::Partial);
    }
}
