//! What keeps other programs of the same user out of the memory of this one.
//!
//! Its own environment and memory hold the host's secrets, and on Linux every program of the
//! same user may read both. Only the host knows whether it wants debuggers to be kept out too,
//! so it has to ask for this.

/// Closes this process to other programs of the same user: they cannot read its environment or
/// memory, or attach to it, and no image of it is written when it crashes.
///
/// Programs of the superuser are not held to it. Without Linux, only the last holds. Call it
/// at the start, before anything runs that is not trusted.
///
/// # Errors
///
/// Fails when the system refuses.
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
        // Nothing is closed to the superuser.
        assert!(geteuid().is_root() || !is_seen);
    }

    // CH3: a child does not read the secrets of this process.
    #[test]
    fn a_child_cannot_read_what_this_process_was_given() {
        let test = "process::harden::tests::in_a_process_of_its_own";
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored"])
            .env(SECRET, "x")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && told.contains("1 passed"), "{told}");
    }
}
