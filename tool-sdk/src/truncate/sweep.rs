//! Removes kept outputs that nobody came back for.
//!
//! Only what [`keep`](super::keep::keep) could have written is touched: files of its
//! ending, in private folders directly below the one that is swept.
//!
//! **Invariant:** no link is followed, and nothing but a kept file or an empty folder goes.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::keep::{SUFFIX, is_guarded, is_private};

/// How long an output is kept.
pub(crate) const RETENTION: Duration = Duration::from_hours(7 * 24);

/// How often a folder is swept.
const INTERVAL: Duration = Duration::from_hours(1);

/// Whether `folder` was not swept within the last hour; asking counts as sweeping it.
pub(crate) fn is_due(folder: &Path) -> bool {
    static SWEPT: Mutex<Option<HashMap<PathBuf, Instant>>> = Mutex::new(None);
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let swept = swept.get_or_insert_default();
    swept.retain(|_, at| at.elapsed() < INTERVAL);
    if swept.contains_key(folder) {
        return false;
    }
    swept.insert(folder.to_owned(), Instant::now());
    true
}

/// Removes the outputs below `folder` that were written longer than `max_age` ago, and the
/// session folders that have been empty as long; says how many files went.
///
/// What cannot be looked at or removed stays.
pub(crate) fn sweep(folder: &Path, max_age: Duration) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    // Others could put a link in the place of a folder while it is swept.
    if !is_guarded(&fs::metadata(folder)?) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write here"));
    }
    let mut removed = 0;
    for entry in entries.flatten() {
        // An entry's metadata is its own, not that of what it links to.
        let Ok(session) = entry.metadata() else { continue };
        if is_private(&session) {
            removed += sweep_session(&entry.path(), max_age);
            // A young folder may have been lent before anything was kept in it.
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
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(SUFFIX))
        .filter(|entry| {
            entry.metadata().is_ok_and(|file| file.is_file() && is_older(&file, max_age))
        })
        .filter(|entry| fs::remove_file(entry.path()).is_ok())
        .count()
}

/// A time that lies in the future, or that the system does not know, is not old.
fn is_older(found: &fs::Metadata, max_age: Duration) -> bool {
    let written = found.modified().ok();
    let age = written.and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_some_and(|age| age > max_age)
}

#[cfg(test)]
mod tests {
    use super::super::keep::{keep, prepare_outputs};
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    /// Makes a file or folder look as if it had been written `days` ago.
    fn age(path: &Path, days: u32) {
        let written = SystemTime::now() - DAY * days;
        fs::File::open(path).unwrap().set_modified(written).unwrap();
    }

    // F98: ten days old goes, three days old stays.
    #[test]
    fn what_is_old_goes() {
        let folder = tempfile::tempdir().unwrap();
        let old = keep(folder.path(), "s", "old", "text").unwrap();
        let young = keep(folder.path(), "s", "young", "text").unwrap();
        let gone = keep(folder.path(), "gone", "old", "text").unwrap();
        let lent = prepare_outputs(folder.path(), "lent").unwrap();
        age(&old, 10);
        age(&young, 3);
        age(&gone, 10);
        age(gone.parent().unwrap(), 10);

        assert_eq!(sweep(folder.path(), RETENTION).unwrap(), 2);
        assert!(!old.exists() && young.exists());
        assert!(!gone.parent().unwrap().exists() && lent.exists());
        assert_eq!(sweep(folder.path(), RETENTION).unwrap(), 0);
        assert_eq!(sweep(&folder.path().join("none"), RETENTION).unwrap(), 0);
    }

    #[test]
    fn what_was_not_kept_here_stays() {
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
        assert_eq!(sweep(folder.path(), RETENTION).unwrap(), 0);
        assert!(others.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_folder_is_due_once_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_due(folder.path()));
        assert!(!is_due(folder.path()));
        assert!(is_due(&folder.path().join("other")));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let outside = keep(elsewhere.path(), "s", "c", "text").unwrap();
        age(&outside, 10);
        let outputs = prepare_outputs(folder.path(), "s").unwrap();
        symlink(outside.parent().unwrap(), folder.path().join("link")).unwrap();
        symlink(&outside, outputs.join("link.output.txt")).unwrap();
        assert_eq!(sweep(folder.path(), RETENTION).unwrap(), 0);
        assert!(outside.exists() && outputs.join("link.output.txt").is_symlink());

        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        sweep(folder.path(), RETENTION).unwrap_err();
    }
}
