//! How far each step of the confinement came, and what that makes together.
//!
//! **Invariant:** nothing is called full that has a gap which neither the reasons nor
//! [`Policy::writable`](super::super::Policy::writable) name.

use std::io;

use super::super::status::{Enforced, Status, Support};
use super::super::{Level, Order};
use super::mounts::Mounts;

/// Since which versions of Landlock files cannot be truncated, TCP cannot be used and signals
/// cannot be sent.
pub(super) const TRUNCATE: i32 = 3;
const TCP: i32 = 4;
pub(super) const SIGNALS: i32 = 6;

/// What no mount holds: there is nothing yet to mount, or the search ended before it.
const UNHELD: &str = "protected names that are not there yet, or lie very deep, can be made; \
                      those that were are told with the result";

/// What came of each step.
#[derive(Debug)]
pub(super) struct Steps {
    /// What came of mounts of its own, where there are any.
    pub(super) mounts: io::Result<Mounts>,
    /// Whether it has processes of its own.
    pub(super) processes: io::Result<()>,
    pub(super) rights: io::Result<()>,
    /// The version of Landlock.
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
        // Without capabilities nobody undoes it; where nothing can be written, nothing needs
        // protection.
        let is_whole = self.rights.is_ok() && (held || level == Level::ReadOnly);
        match (&self.mounts, &self.landlock) {
            // Mounts do not keep anybody from writing to devices and FIFOs.
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
            // It knows nothing but TCP.
            (Err(_), Ok(TCP..)) => Enforced::Partial,
            (Err(_), _) => Enforced::None,
        }
    }

    fn processes(&self) -> Enforced {
        let hidden = self.mounts.as_ref().is_ok_and(|mounts| mounts.processes.is_none());
        match (&self.processes, &self.landlock) {
            (Ok(()), _) if hidden => Enforced::Full,
            // Those outside are seen, and no more.
            (Ok(()), Ok(_)) => Enforced::Partial,
            // They are seen and outlive it; nothing can be done to those outside.
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
            Err(error) => reasons.push(format!("no mounts of its own: {error}")),
        }
        if let Err(error) = &self.processes {
            reasons.push(format!(
                "no processes of its own, so what hides may outlive the command: {error}"
            ));
        }
        if let (Ok(()), Ok(Mounts { processes: Some(error), .. })) = (&self.processes, &self.mounts)
        {
            reasons.push(format!(
                "`/proc` cannot be mounted anew, so it tells of the processes outside: {error}"
            ));
        }
        match &self.landlock {
            Ok(SIGNALS..) => {}
            Ok(_) if self.processes.is_ok() => {}
            Ok(version) => reasons.push(format!(
                "Landlock {version} lets other processes of the user be sent signals"
            )),
            Err(error) => {
                reasons
                    .push(format!("no Landlock, so devices and FIFOs can be written to: {error}"));
            }
        }
        if let Err(error) = &self.rights {
            reasons.push(format!("privileges cannot be dropped: {error}"));
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

    // SB1, SB2, SB3, fault 16: older kernels, and those that forbid a part of it.
    #[test]
    fn what_is_missing_is_counted() {
        use Level::{ReadOnly, WorkspaceWrite};
        for (mounts, landlock, calls, level, expected) in [
            // What is not there yet is told in any case.
            (true, 7, true, WorkspaceWrite, "full full full 1"),
            (true, 7, true, ReadOnly, "full full full 0"),
            // With processes of its own no signal leads out.
            (true, 5, true, WorkspaceWrite, "full full full 1"),
            // Devices and FIFOs are no part of a mount.
            (true, 0, true, WorkspaceWrite, "partial full full 2"),
            (true, 0, true, ReadOnly, "partial full full 1"),
            // Nothing inside of a folder can be protected.
            (false, 7, true, WorkspaceWrite, "partial full partial 2"),
            (false, 7, true, ReadOnly, "full full partial 2"),
            // Signals are sent to others.
            (false, 5, true, ReadOnly, "full full none 3"),
            // Files can be truncated.
            (false, 2, true, ReadOnly, "partial full none 3"),
            (false, 0, true, WorkspaceWrite, "none full none 3"),
            // TCP is only a part of networks.
            (true, 4, false, WorkspaceWrite, "full partial full 2"),
            (true, 3, false, WorkspaceWrite, "full none full 2"),
            (false, 0, false, ReadOnly, "none none none 4"),
        ] {
            let found = words(&steps(mounts, landlock, calls), level);
            assert_eq!(found, expected, "{mounts} {landlock} {calls} {level}");
        }
    }

    // SB8: what can be read of others is told, and is nothing that `required` takes.
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
