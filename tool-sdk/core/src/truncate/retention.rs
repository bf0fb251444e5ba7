//! Removes saved outputs after their retention time.
//!
//! Only files that [`save_output`](super::output_file::save_output) could have written are
//! removed: files with its suffix, in private session folders.
//!
//! **Invariant:** no link is followed, and only saved outputs and empty folders are removed.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::output_file::{OUTPUT_SUFFIX, is_private_folder, is_safe_parent};

/// How long a saved output is kept.
pub const RETENTION: Duration = Duration::from_hours(7 * 24);

/// The interval between two sweeps of a folder.
const SWEEP_INTERVAL: Duration = Duration::from_hours(1);

/// Returns whether `folder` was not swept within the last hour, and records a sweep now.
pub fn is_sweep_due(folder: &Path) -> bool {
    static SWEPT: Mutex<Option<HashMap<PathBuf, Instant>>> = Mutex::new(None);
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let swept = swept.get_or_insert_default();
    swept.retain(|_, at| at.elapsed() < SWEEP_INTERVAL);
    if swept.contains_key(folder) {
        return false;
    }
    swept.insert(folder.to_owned(), Instant::now());
    true
}

/// Removes the outputs below `folder` that are older than `max_age`, and session folders that have
/// been empty as long. Returns the number of removed files.
///
/// Files that cannot be read or removed are skipped.
pub fn sweep_outputs(folder: &Path, max_age: Duration) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    // Other users could replace a session folder by a link during the sweep.
    if !is_safe_parent(&fs::metadata(folder)?) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write here"));
    }
    let mut removed = 0;
    for entry in entries.flatten() {
        // `DirEntry::metadata` does not follow links.
        let Ok(session) = entry.metadata() else { continue };
        if is_private_folder(&session) {
            removed += sweep_session(&entry.path(), max_age);
            // A new session folder may be empty because nothing was saved yet.
            if is_older(&session, max_age) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
    Ok(removed)
}

fn sweep_session(folder: &Path, max_age: Duration) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(OUTPUT_SUFFIX))
        .filter(|entry| {
            entry.metadata().is_ok_and(|file| file.is_file() && is_older(&file, max_age))
        })
        .filter(|entry| fs::remove_file(entry.path()).is_ok())
        .count()
}

/// Returns whether the file is older than `max_age`. A missing or future time is not old.
fn is_older(found: &fs::Metadata, max_age: Duration) -> bool {
    let written = found.modified().ok();
    let age = written.and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_some_and(|age| age > max_age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truncate::{prepare_outputs, save_output};

    const DAY: Duration = Duration::from_hours(24);

    /// Makes a file or folder look as if it had been written `days` ago.
    fn age(path: &Path, days: u32) {
        let written = SystemTime::now() - DAY * days;
        fs::File::open(path).unwrap().set_modified(written).unwrap();
    }

    // F98: ten days old is removed, three days old is kept.
    #[test]
    fn removes_expired_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let old = save_output(folder.path(), "s", "old", "text").unwrap();
        let young = save_output(folder.path(), "s", "young", "text").unwrap();
        let gone = save_output(folder.path(), "gone", "old", "text").unwrap();
        let lent = prepare_outputs(folder.path(), "lent").unwrap();
        age(&old, 10);
        age(&young, 3);
        age(&gone, 10);
        age(gone.parent().unwrap(), 10);

        assert_eq!(sweep_outputs(folder.path(), RETENTION).unwrap(), 2);
        assert!(!old.exists() && young.exists());
        assert!(!gone.parent().unwrap().exists() && lent.exists());
        assert_eq!(sweep_outputs(folder.path(), RETENTION).unwrap(), 0);
        assert_eq!(sweep_outputs(&folder.path().join("none"), RETENTION).unwrap(), 0);
    }

    #[test]
    fn keeps_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = prepare_outputs(folder.path(), "s").unwrap();
        let others = [
            folder.path().join("a.output.txt"),
            outputs.join("notes.txt"),
            outputs.join("below/a.output.txt"),
        ];
        fs::create_dir(outputs.join("below")).unwrap();
        for path in &others {
            fs::write(path, "text").unwrap();
            age(path, 100);
        }
        age(&outputs, 100);
        assert_eq!(sweep_outputs(folder.path(), RETENTION).unwrap(), 0);
        assert!(others.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_folder_is_due_once_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_sweep_due(folder.path()));
        assert!(!is_sweep_due(folder.path()));
        assert!(is_sweep_due(&folder.path().join("other")));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let outside = save_output(elsewhere.path(), "s", "c", "text").unwrap();
        age(&outside, 10);
        let outputs = prepare_outputs(folder.path(), "s").unwrap();
        symlink(outside.parent().unwrap(), folder.path().join("link")).unwrap();
        symlink(&outside, outputs.join("link.output.txt")).unwrap();
        assert_eq!(sweep_outputs(folder.path(), RETENTION).unwrap(), 0);
        assert!(outside.exists() && outputs.join("link.output.txt").is_symlink());

        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        sweep_outputs(folder.path(), RETENTION).unwrap_err();
    }
}
