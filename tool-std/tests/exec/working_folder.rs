//! The folder that a command runs in, while another process replaces it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::{ApprovalRequest, ApprovalResponse, Approver, Mode};

use crate::support::Host;

/// Puts a link to `target` in the place of `folder` before it answers.
struct ReplacingApprover {
    folder: PathBuf,
    target: PathBuf,
}

impl Approver for ReplacingApprover {
    fn request_approval(
        &self,
        _: Arc<ApprovalRequest>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        replace_by_link(&self.folder, &self.target);
        Box::pin(std::future::ready(Some(ApprovalResponse::Once)))
    }
}

fn replace_by_link(folder: &Path, target: &Path) {
    fs::rename(folder, folder.with_file_name("moved")).unwrap();
    symlink(target, folder).unwrap();
}

/// Calls of each tool that say where they run. Bash itself resolves `pwd -P` by the path, so a
/// shell reads a relative file instead.
fn calls() -> [(&'static str, Value); 5] {
    [
        ("exec_command", json!({ "cmd": "pwd -P", "workdir": "dir" })),
        ("exec_command", json!({ "cmd": "cat where | cat", "workdir": "dir" })),
        ("shell_command", json!({ "command": "pwd -P", "workdir": "dir" })),
        ("shell_command", json!({ "command": "cat where | cat", "workdir": "dir" })),
        ("shell", json!({ "command": ["pwd", "-P"], "workdir": "dir" })),
    ]
}

#[tokio::test]
async fn refuses_a_working_directory_that_was_replaced() {
    for (tool, arguments) in calls() {
        let outside = tempfile::tempdir().unwrap();
        let host = Host::new(Mode::Strict, &[]);
        let folder = host.folder.path().join("dir");
        fs::create_dir(&folder).unwrap();
        let approver = ReplacingApprover { folder, target: outside.path().to_owned() };
        let session = host.session.clone().with_approver(approver);
        let host = Host { session, ..host };
        let error = host.error(tool, arguments).await;
        assert!(error.message().contains("leads outside the workspace"), "{tool}: {error}");
    }
}

/// The sandbox is off, so the question says what nothing holds.
#[tokio::test]
async fn approval_request_says_that_paths_are_not_confined() {
    use tool_sdk::ScriptedApprover;

    let approver = Arc::new(ScriptedApprover::default());
    let host = Host::new(Mode::Strict, &[]);
    let session =
        host.session.clone().with_shared_approver(Arc::<ScriptedApprover>::clone(&approver));
    let host = Host { session, ..host };
    host.error("exec_command", json!({ "cmd": "pwd" })).await;
    let preview = approver.requests()[0].preview.clone().unwrap();
    let sandbox = preview["sandbox"].as_str().unwrap();
    assert!(sandbox.starts_with("off: nothing confines"), "{sandbox}");
}

// No command runs outside while `dir` and a link to the outside change places, in up to 2 s.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_stay_in_the_workspace_while_their_folder_is_swapped() {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    let other = tempfile::tempdir().unwrap();
    let host = Host::open();
    let root = host.folder.path().to_owned();
    let (folder, trap) = (root.join("dir"), root.join("trap"));
    fs::create_dir(&folder).unwrap();
    symlink(other.path(), &trap).unwrap();
    fs::write(folder.join("where"), "inside").unwrap();
    // The name of the folder outside, so that both kinds of calls print it.
    let outside = other.path().canonicalize().unwrap();
    let name = outside.to_str().unwrap();
    fs::write(outside.join("where"), name).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &trap, RenameFlags::EXCHANGE).unwrap();
                std::thread::yield_now();
            }
        }
    });
    let (started, mut printed) = (Instant::now(), 0);
    // Whether a command finds its folder is up to the scheduler.
    for (tool, arguments) in calls().into_iter().cycle() {
        let outcome = host.outcome(tool, &arguments).await;
        assert!(!outcome.text().contains(name), "{tool} ran outside: {}", outcome.text());
        printed += usize::from(outcome.result.is_ok());
        if printed > 0 && started.elapsed() > Duration::from_secs(2) {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "no command ran");
    }
    is_over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}
