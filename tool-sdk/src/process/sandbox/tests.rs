//! Tests of policies without a helper: library tests have no `main` of their own. The restrictions
//! themselves are tested with the program in `tool-std`.

use super::*;
use crate::context::Session;
use crate::process::{self, Exit, Run, RunError};

fn status(filesystem: Enforced, network: Enforced) -> Status {
    Status { filesystem, network, processes: Enforced::Full, reasons: Vec::new() }
}

// SB2: a required policy is fully enforced, or nothing runs.
#[test]
fn required_takes_nothing_less() {
    use Enforced::{Full, None, Partial};
    for (mode, level, filesystem, network, expected) in [
        (Mode::Required, Level::WorkspaceWrite, Full, Full, true),
        (Mode::Required, Level::WorkspaceWrite, Full, Partial, false),
        (Mode::Required, Level::WorkspaceWrite, Partial, Full, false),
        (Mode::Required, Level::ReadOnly, None, None, false),
        (Mode::Required, Level::Full, None, None, true),
        (Mode::BestEffort, Level::ReadOnly, None, None, true),
        (Mode::Off, Level::ReadOnly, None, None, true),
    ] {
        let met = Policy::new(mode, level).is_met_by(&status(filesystem, network));
        assert_eq!(met, expected, "{mode} {level} {filesystem} {network}");
    }
    let open = Policy::new(Mode::Required, Level::ReadOnly).network(true);
    assert!(open.is_met_by(&status(Full, None)));
    let required = Policy::new(Mode::Required, Level::ReadOnly);
    assert!(!required.is_met_by(&Status { processes: Partial, ..status(Full, Full) }));
}

// SB2: without restricted writes a call does not count as sandboxed.
#[test]
fn a_network_that_is_out_of_reach_is_no_sandbox() {
    assert!(!status(Enforced::None, Enforced::Full).is_confined());
    assert!(status(Enforced::Partial, Enforced::None).is_confined());
    let text = Status::none("why").to_string();
    assert_eq!(text, "filesystem none, network none, processes none (why)");
}

// fault 16: without a helper, a required policy refuses to run anything.
#[tokio::test]
async fn without_a_helper_required_refuses() {
    let policy = Policy::new(Mode::Required, Level::WorkspaceWrite);
    let run = Run::exec("echo", ["hello"]).sandbox(policy.clone());
    let error = process::run(run).await.unwrap_err();
    assert!(matches!(&error, RunError::Sandbox(status) if !status.is_confined()), "{error}");
    assert!(error.to_string().contains("sandbox"), "{error}");

    let spawn = process::Spawn::exec("echo", ["hello"]).sandbox(policy);
    let error = process::Processes::default().start(&spawn).unwrap_err();
    assert!(matches!(error, RunError::Sandbox(_)));
}

#[tokio::test]
async fn without_a_helper_best_effort_runs_and_says_so() {
    let policy = Policy::new(Mode::BestEffort, Level::ReadOnly);
    let finished = process::run(Run::exec("echo", ["hello"]).sandbox(policy)).await.unwrap();
    assert_eq!((finished.exit, finished.stdout.text().as_str()), (Exit::Code(0), "hello\n"));
    let status = finished.sandbox.unwrap();
    assert!(!status.is_confined() && !status.reasons.is_empty(), "{status}");

    let finished = process::run(Run::exec("echo", ["hello"])).await.unwrap();
    assert_eq!(finished.sandbox, None);
}

// A host may name any program as the helper; one without a valid response is reported as
// enforcing nothing.
#[cfg(all(feature = "sandbox", target_os = "linux"))]
#[test]
fn a_helper_that_is_none_confines_nothing() {
    for program in ["/bin/true", "/bin/cat", "/no/such/program"] {
        let policy = Policy::new(Mode::BestEffort, Level::ReadOnly).helper(program);
        let support = policy.support();
        assert!(!support.status.is_confined(), "{program}");
        let required = Policy::new(Mode::Required, Level::ReadOnly).helper(program);
        assert!(confine(&required, "echo".as_ref(), &[]).is_err());
    }
}

#[cfg(all(feature = "sandbox", target_os = "linux"))]
#[test]
fn only_the_outermost_folders_are_writable() {
    let policy = Policy::new(Mode::BestEffort, Level::WorkspaceWrite)
        .writable("/w")
        .writable("/w/inner")
        .writable("/wider");
    let folders = policy.writable_folders();
    assert!(folders.contains(&"/w".into()) && folders.contains(&"/wider".into()));
    assert!(!folders.contains(&"/w/inner".into()));
    assert!(policy.clone().with_level(Level::ReadOnly).writable_folders().is_empty());

    // The nested root is protected too; a path outside of the writable folders need not be.
    let protected = policy.protect("/elsewhere").always_protected();
    assert_eq!(protected, ["/w/.git", "/w/inner/.git", "/wider/.git"].map(Into::into).into());
}

#[test]
fn names_are_read_as_they_are_written() {
    for level in Level::ALL {
        assert_eq!(level.as_str().parse(), Ok(*level));
        assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
    }
    for mode in Mode::ALL {
        assert_eq!(mode.as_str().parse(), Ok(*mode));
        assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
    }
    let error = "on".parse::<Mode>().unwrap_err().to_string();
    assert_eq!(error, "`on` is not a sandbox mode: off best_effort required");
}

#[test]
fn nothing_is_confined_unless_a_host_says_so() {
    assert!(Policy::of(&Session::new("s")).is_off());
    assert!(Policy::default().is_met_by(&Status::default()));
    assert!(confine(&Policy::default(), "x".as_ref(), &[]).unwrap().is_none());
}
