//! Which file systems can share the memory that SQLite's write-ahead log needs.

use std::path::Path;

/// How SQLite keeps a transaction safe from a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalMode {
    /// A log beside the file, with an index in shared memory: readers and a writer at once.
    WriteAheadLog,
    /// A rollback journal: for file systems whose clients share no memory.
    Rollback,
}

impl JournalMode {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::WriteAheadLog => "wal",
            Self::Rollback => "delete",
        }
    }
}

/// Returns the journal mode for databases in `folder`.
#[cfg(target_os = "linux")]
pub(crate) fn journal_mode_for(folder: &Path) -> JournalMode {
    /// The magic numbers of NFS, SMB, CIFS, SMB2, AFS, Ceph and 9P, of `statfs(2)`.
    const NETWORK: [u64; 7] =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x00c3_6400, 0x0102_1997];
    let Ok(facts) = rustix::fs::statfs(folder) else { return JournalMode::WriteAheadLog };
    #[expect(clippy::cast_sign_loss, reason = "a magic number is an unsigned word")]
    let magic = facts.f_type as u64 & 0xffff_ffff;
    if !NETWORK.contains(&magic) {
        return JournalMode::WriteAheadLog;
    }
    tracing::warn!(
        folder = %folder.display(),
        "the state folder is on a network file system; writes of several processes are slower there"
    );
    JournalMode::Rollback
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn journal_mode_for(_: &Path) -> JournalMode {
    JournalMode::WriteAheadLog
}
