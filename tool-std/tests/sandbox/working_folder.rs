//! The folder of a confined command, while another process replaces it.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};
use tool_sdk::process::{self, Command};

use super::{Machine, PROGRAM};

// The helper enters the folder again below its own mounts, and no link in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confined_commands_stay_in_their_folder_while_it_is_swapped() {
    if !Machine::new().is_whole() {
        return;
    }
    let [root, outside] = [(); 2].map(|()| tempfile::tempdir().expect("there is room"));
    let (folder, trap) = (root.path().join("dir"), root.path().join("trap"));
    fs::create_dir(&folder).expect("there is room");
    fs::write(folder.join("where"), "inside").expect("there is room");
    fs::write(outside.path().join("where"), "outside").expect("there is room");
    symlink(outside.path(), &trap).expect("there is room");
    let policy = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite)
        .with_helper(PROGRAM)
        .with_writable(root.path().canonicalize().expect("it is there"));

    let is_over = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (is_over, folder) = (Arc::clone(&is_over), folder.clone());
        move || {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &trap, RenameFlags::EXCHANGE).expect("both exist");
                std::thread::yield_now();
            }
        }
    });
    let (started, mut inside) = (Instant::now(), 0);
    // Whether a command finds its folder is up to the scheduler.
    while inside == 0 || started.elapsed() < Duration::from_secs(2) && inside < 20 {
        assert!(started.elapsed() < Duration::from_secs(60), "no command ran");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(handle) = openat(CWD, &folder, flags, Mode::empty()) else { continue };
        let command = Command::new("cat", ["where"])
            .current_dir_handle(File::from(handle), &folder)
            .sandbox(policy.clone());
        let output = process::run(command).await.expect("the helper starts");
        let printed = output.stdout.to_text();
        assert_ne!(printed, "outside", "the command ran outside");
        inside += usize::from(printed == "inside");
    }
    is_over.store(true, Ordering::Relaxed);
    swapping.join().expect("it ends");
}
