//! The audit log file: JSON lines, append-only.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::{AuditEvent, AuditRecord, AuditSink};
use crate::private_file::location;
use crate::redact::{DetectedSecrets, Redactor};
use crate::tool::Resource;

/// Writes records as JSON lines to a file with mode `0o600`.
///
/// Each line is one append, so several processes may share a file on a local disk. Secrets are
/// redacted by a [`Redactor`].
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
    /// Whether the last line may be incomplete, because a write failed.
    has_partial_line: AtomicBool,
    path: PathBuf,
    redactor: Redactor,
}

impl AuditLog {
    /// Opens the file at `path`, and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be opened or its mode cannot be set, and when `path` is a link
    /// or not a regular file.
    pub fn open(path: impl AsRef<Path>, redactor: Redactor) -> io::Result<Self> {
        let path = path.as_ref();
        let mut file = location::open_options().read(true).append(true).create(true).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the audit log is not a regular file",
            ));
        }
        make_private(&file)?;
        let cut = AtomicBool::new(!is_at_line_start(&mut file)?);
        Ok(Self {
            file,
            has_partial_line: cut,
            path: location::canonicalize_existing(path),
            redactor,
        })
    }
}

impl AuditSink for AuditLog {
    fn record(&self, record: &AuditRecord<'_>) -> io::Result<()> {
        let mut value = serde_json::to_value(record)?;
        let mut spotted = DetectedSecrets::from_arguments(&self.redactor, record.argument_texts);
        if let AuditEvent::Decided { subjects, .. } = record.event {
            let texts = subjects.iter().flat_map(Resource::forbidden_spellings);
            texts.for_each(|text| spotted.scan_text(&self.redactor, text));
        }
        // Redact before serializing, because JSON escapes would hide a secret with quotes.
        self.redactor.redact_value(&mut value);
        // Only the reason may be truncated and so contain a fragment of a secret.
        if let Some(Value::String(reason)) = value.get_mut("reason") {
            self.redactor.redact_call_text(reason, &spotted);
        }
        let mut line = value.to_string();
        line.push('\n');
        if self.has_partial_line.swap(false, Ordering::Relaxed) {
            // End the incomplete line, so that this record starts on its own line.
            line.insert(0, '\n');
        }
        let written = location::append_to(&self.file, line.as_bytes());
        if written.is_err() {
            self.has_partial_line.store(true, Ordering::Relaxed);
        }
        written
    }

    fn file_path(&self) -> Option<&Path> {
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

/// Sets the mode; the mode given at opening applies to new files only.
#[cfg(unix)]
fn make_private(file: &File) -> io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    file.set_permissions(Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_: &File) -> io::Result<()> {
    Ok(())
}
