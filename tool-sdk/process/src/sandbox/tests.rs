//! Tests of policies without a helper: library tests have no `main` of their own. The restrictions
//! themselves are tested with the program in `tool-std`.

use super::*;
use crate::{BackgroundCommand, BackgroundProcesses, Command, ExitOutcome, RunError};

fn status(filesystem: EnforcementLevel, network: EnforcementLevel) -> SandboxStatus {
    SandboxStatus {
        filesystem,
        network,
        processes: EnforcementLevel::Full,
        ..SandboxStatus::default()
    }
}

// SB2: a required policy is fully enforced, or nothing runs.
#[test]
fn required_takes_nothing_less() {
    use EnforcementLevel::{Full, None, Partial};
    for (mode, level, filesystem, network, expected) in [
        (SandboxMode::Required, SandboxLevel::WorkspaceWrite, Full, Full, true),
        (SandboxMode::Required, SandboxLevel::WorkspaceWrite, Full, Partial, false),
        (SandboxMode::Required, SandboxLevel::WorkspaceWrite, Partial, Full, false),
        (SandboxMode::Required, SandboxLevel::ReadOnly, None, None, false),
        (SandboxMode::Required, SandboxLevel::Full, None, None, true),
        (SandboxMode::BestEffort, SandboxLevel::ReadOnly, None, None, true),
        (SandboxMode::Off, SandboxLevel::ReadOnly, None, None, true),
    ] {
        let met = SandboxPolicy::new(mode, level).is_met_by(&status(filesystem, network));
        assert_eq!(met, expected, "{mode} {level} {filesystem} {network}");
    }
    let open = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::ReadOnly).with_network(true);
    assert!(open.is_met_by(&status(Full, None)));
    let required = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::ReadOnly);
    assert!(!required.is_met_by(&SandboxStatus { processes: Partial, ..status(Full, Full) }));
}

// SB2: without restricted writes a call does not count as sandboxed.
#[test]
fn a_network_that_is_out_of_reach_is_no_sandbox() {
    assert!(!status(EnforcementLevel::None, EnforcementLevel::Full).is_confined());
    assert!(status(EnforcementLevel::Partial, EnforcementLevel::None).is_confined());
    let text = SandboxStatus::unenforced("why").to_string();
    assert_eq!(text, "filesystem none, network none, processes none (why)");
}

// fault 16: without a helper, a required policy refuses to run anything.
#[tokio::test]
async fn without_a_helper_required_refuses() {
    let policy = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite);
    let run = Command::new("echo", ["hello"]).sandbox(policy.clone());
    let error = crate::run(run).await.unwrap_err();
    assert!(matches!(&error, RunError::Sandbox(status) if !status.is_confined()), "{error}");
    assert!(error.to_string().contains("sandbox"), "{error}");

    let spawn = BackgroundCommand::new("echo", ["hello"]).sandbox(policy);
    let error = BackgroundProcesses::default().spawn(&spawn).unwrap_err();
    assert!(matches!(error, RunError::Sandbox(_)));
}

#[tokio::test]
async fn without_a_helper_best_effort_runs_and_says_so() {
    let policy = SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::ReadOnly);
    let finished = crate::run(Command::new("echo", ["hello"]).sandbox(policy)).await.unwrap();
    assert_eq!(
        (finished.exit, finished.stdout.to_text().as_str()),
        (ExitOutcome::Code(0), "hello\n")
    );
    let status = finished.sandbox.unwrap();
    assert!(!status.is_confined() && !status.reasons.is_empty(), "{status}");

    let finished = crate::run(Command::new("echo", ["hello"])).await.unwrap();
    assert_eq!(finished.sandbox, None);
}

// A host may name any program as the helper; one without a valid response is reported as
// enforcing nothing.
#[cfg(all(feature = "sandbox", target_os = "linux"))]
#[test]
fn a_helper_that_is_none_confines_nothing() {
    for program in ["/bin/true", "/bin/cat", "/no/such/program"] {
        let policy = SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::ReadOnly)
            .with_helper(program);
        let support = policy.support();
        assert!(!support.status.is_confined(), "{program}");
        let required =
            SandboxPolicy::new(SandboxMode::Required, SandboxLevel::ReadOnly).with_helper(program);
        assert!(confine_command(&required, "echo".as_ref(), &[]).is_err());
    }
}

#[cfg(all(feature = "sandbox", target_os = "linux"))]
#[test]
fn only_the_outermost_folders_are_writable() {
    let policy = SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::WorkspaceWrite)
        .with_writable("/w")
        .with_writable("/w/inner")
        .with_writable("/wider");
    let folders = policy.writable_folders();
    assert!(folders.contains(&"/w".into()) && folders.contains(&"/wider".into()));
    assert!(!folders.contains(&"/w/inner".into()));
    assert!(policy.clone().with_level(SandboxLevel::ReadOnly).writable_folders().is_empty());

    // The nested root is protected too; a path outside of the writable folders need not be.
    let protected = policy.with_protected("/elsewhere").always_protected();
    assert_eq!(protected, ["/w/.git", "/w/inner/.git", "/wider/.git"].map(Into::into).into());
}

// F193, SB2: what stays readable although it must not be read does not meet a required policy.
#[test]
fn required_leaves_nothing_readable() {
    use EnforcementLevel::{Full, None, Partial};
    let policy = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite);
    let full = status(Full, Full);
    assert!(policy.is_met_by(&full));
    let unreadable = policy.clone().with_unreadable(["/home/ada/.ssh"]);
    // A status of another policy says nothing about these paths.
    assert!(!unreadable.is_met_by(&full));
    for (reads, expected) in [(Full, true), (Partial, false), (None, false)] {
        let status = SandboxStatus { reads: Some(reads), ..full.clone() };
        assert_eq!(unreadable.is_met_by(&status), expected, "{reads}");
        assert!(status.to_string().ends_with(&format!("reads {reads}")), "{status}");
        assert!(!full.is_at_least(&status));
        assert!(status.is_at_least(&full));
    }
    assert_eq!(full.to_string(), "filesystem full, network full, processes full");
    assert!(!serde_json::to_string(&full).unwrap().contains("reads"));
}

// The cache of probes does not grow with the paths that are covered.
#[test]
fn policies_that_differ_in_covered_paths_share_a_probe() {
    let policy = SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::ReadOnly);
    let key = |path: &str| policy.clone().with_unreadable([path]).without_unreadable_paths();
    assert_eq!(key("/a"), key("/b"));
    assert_eq!(policy.without_unreadable_paths(), policy);
    assert_ne!(key("/a"), policy);
    let gap = policy.clone().with_unreadable_gap("why");
    assert_eq!(gap.without_unreadable_paths(), key("/a"));
    assert!(gap.status().reasons.iter().any(|reason| reason.contains("why")));
}

#[test]
fn names_are_read_as_they_are_written() {
    for level in SandboxLevel::ALL {
        assert_eq!(level.as_str().parse(), Ok(*level));
        assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
    }
    for mode in SandboxMode::ALL {
        assert_eq!(mode.as_str().parse(), Ok(*mode));
        assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
    }
    let error = "on".parse::<SandboxMode>().unwrap_err().to_string();
    assert_eq!(error, "`on` is not a sandbox mode: off best_effort required");
}

#[test]
fn nothing_is_confined_unless_a_host_says_so() {
    assert!(SandboxPolicy::default().is_off());
    assert!(SandboxPolicy::default().is_met_by(&SandboxStatus::default()));
    assert!(confine_command(&SandboxPolicy::default(), "x".as_ref(), &[]).unwrap().is_none());
}
