//! The working directory of a child: a path, or an open folder.
//!
//! **Invariant:** a child enters an open folder through its handle, so a symbolic link that another
//! process puts in the place of the folder is not followed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Command;

/// The working directory of a child.
#[derive(Clone, Debug)]
pub(super) struct WorkingDir {
    /// The path, for records; the child enters it if there is no handle.
    pub(super) path: PathBuf,
    /// The open folder that the child enters.
    #[cfg_attr(not(unix), expect(dead_code, reason = "children enter paths there"))]
    pub(super) handle: Option<Arc<File>>,
}

impl WorkingDir {
    pub(super) fn from_path(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), handle: None }
    }

    pub(super) fn from_handle(folder: File, path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), handle: Some(Arc::new(folder)) }
    }
}

/// Lets a command run in `folder`, an absolute path, if no part of it is a symbolic link.
///
/// # Errors
///
/// Fails when a part of the path is not a folder.
pub fn enter_without_links(command: Command, folder: &Path) -> io::Result<Command> {
    #[cfg(unix)]
    return Ok(command.current_dir_handle(open_without_links(folder)?, folder));
    #[cfg(not(unix))]
    return Ok(command.current_dir(folder));
}

/// Opens a folder from the top, one component at a time.
#[cfg(unix)]
fn open_without_links(folder: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};

    // A folder that can be entered need not be readable.
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut opened = openat(CWD, "/", flags, Mode::empty())?;
    for part in folder.components().skip(1) {
        opened = openat(&opened, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok(opened.into())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::{BackgroundCommand, BackgroundProcesses, run};

    /// Two folders; the child cannot start in the second.
    fn two_folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let real = top.path().canonicalize().unwrap();
        let (inside, outside) = (real.join("inside"), real.join("outside"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        (top, inside, outside)
    }

    /// Puts a link to `target` in the place of `folder`, which is moved to `moved`.
    fn replace_by_link(folder: &Path, target: &Path) -> PathBuf {
        let moved = folder.with_file_name("moved");
        fs::rename(folder, &moved).unwrap();
        symlink(target, folder).unwrap();
        moved
    }

    #[tokio::test]
    async fn enters_the_open_folder_when_its_path_leads_elsewhere() {
        let (_top, inside, outside) = two_folders();
        let handle = || File::open(&inside).unwrap();
        let command = Command::new("pwd", ["-P"]).current_dir_handle(handle(), &inside);
        let background =
            BackgroundCommand::new("pwd", ["-P"]).current_dir_handle(handle(), &inside);
        let moved = replace_by_link(&inside, &outside);

        let output = run(command).await.unwrap();
        assert_eq!(output.stdout.to_text().trim(), moved.to_str().unwrap());

        let processes = BackgroundProcesses::default();
        let process = processes.spawn(&background).unwrap();
        process.wait_for_exit(|_| {}).await;
        let printed = process.read_output(std::time::Duration::ZERO, |_| {}).await;
        assert_eq!(printed.output.to_text().trim(), moved.to_str().unwrap());
    }

    #[tokio::test]
    async fn refuses_a_path_with_a_link() {
        let (_top, inside, outside) = two_folders();
        let below = inside.join("below");
        fs::create_dir(&below).unwrap();
        let command = || Command::new("pwd", ["-P"]);
        let output = run(enter_without_links(command(), &below).unwrap()).await.unwrap();
        assert_eq!(output.stdout.to_text().trim(), below.to_str().unwrap());

        fs::create_dir(outside.join("below")).unwrap();
        replace_by_link(&inside, &outside);
        assert!(enter_without_links(command(), &below).is_err());
    }
}
