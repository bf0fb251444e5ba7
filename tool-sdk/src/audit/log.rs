//! A file of records: one JSON object a line, only ever added to.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::{Audit, AuditRecord, Audited};
use crate::redact::{Redactor, Spotted};
use crate::store::place;
use crate::tool::Subject;

/// Keeps records as JSON lines in a file that only its owner may read.
///
/// Each line is one write to the end of the file, so that several processes may share one
/// on a local disk. What a [`Redactor`] finds is not written.
///
/// # Examples
///
/// ```no_run
/// use tool_sdk::{AuditLog, Redactor};
///
/// let log = AuditLog::open("/var/lib/agent/audit.jsonl", Redactor::from_env())?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct AuditLog {
    file: File,
    /// Whether the last line may have no end, because it could not be written whole.
    cut: AtomicBool,
    path: PathBuf,
    redactor: Redactor,
}

impl AuditLog {
    /// Opens the file at `path`, and makes it when there is none.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be opened or made the owner's own, and when `path` is a
    /// link or no file.
    pub fn open(path: impl AsRef<Path>, redactor: Redactor) -> io::Result<Self> {
        let path = path.as_ref();
        let mut file = place::options().read(true).append(true).create(true).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the audit log is no file"));
        }
        close_to_others(&file)?;
        let cut = AtomicBool::new(!is_at_line_start(&mut file)?);
        Ok(Self { file, cut, path: place::real(path), redactor })
    }
}

impl Audit for AuditLog {
    fn record(&self, record: &AuditRecord<'_>) -> io::Result<()> {
        let mut value = serde_json::to_value(record)?;
        let mut spotted = Spotted::in_arguments(&self.redactor, record.made_of);
        if let Audited::Decided { subjects, .. } = record.what {
            let texts = subjects.iter().flat_map(Subject::forbidden_spellings);
            texts.for_each(|text| spotted.look_at(&self.redactor, text));
        }
        // Before it becomes text: a secret with a quote would be another text in JSON.
        self.redactor.redact_value(&mut value);
        // All else is told whole, so that no piece of a secret is in it.
        if let Some(Value::String(reason)) = value.get_mut("reason") {
            self.redactor.scrub_told(reason, &spotted);
        }
        let mut line = value.to_string();
        line.push('\n');
        if self.cut.swap(false, Ordering::Relaxed) {
            // What was cut costs no other record.
            line.insert(0, '\n');
        }
        let written = place::put(&self.file, line.as_bytes());
        if written.is_err() {
            self.cut.store(true, Ordering::Relaxed);
        }
        written
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

fn is_at_line_start(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The mode at opening only counts for a new file.
#[cfg(unix)]
fn close_to_others(file: &File) -> io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    file.set_permissions(Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn close_to_others(_: &File) -> io::Result<()> {
    Ok(())
}
