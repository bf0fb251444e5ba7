//! Protects the memory of the host from other programs of the same user.
//!
//! The environment and memory of the host hold its secrets, and on Linux every program of the
//! same user may read both. This also keeps debuggers out, so the host has to opt in.

/// Protects this process from other programs of the same user: they cannot read its environment
/// or memory or attach a debugger, and no core dump is written.
///
/// The superuser is not restricted. On other systems than Linux only core dumps are disabled.
/// Call it at startup, before anything untrusted runs.
///
/// # Errors
///
/// Fails when the system rejects the setting.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)]
/// tool_sdk::process::harden_process()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(unix)]
pub fn harden_process() -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};

    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Command;

    use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, geteuid, getrlimit};

    use super::*;

    const SECRET: &str = "HARDENED_CANARY";

    #[test]
    #[ignore = "the next test starts it as a process of its own"]
    fn in_a_process_of_its_own() {
        harden_process().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        let script = "tr '\\0' '\\n' < /proc/$PPID/environ";
        let read = Command::new("sh").args(["-c", script]).env_remove(SECRET).output().unwrap();
        let is_seen = String::from_utf8_lossy(&read.stdout).contains(SECRET);
        // The superuser is not restricted.
        assert!(geteuid().is_root() || !is_seen);
    }

    // CH3: a child cannot read the secrets of this process.
    #[test]
    fn a_child_cannot_read_what_this_process_was_given() {
        let test = "harden::tests::in_a_process_of_its_own";
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored"])
            .env(SECRET, "x")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && told.contains("1 passed"), "{told}");
    }
}
