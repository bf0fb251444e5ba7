//! The journal of transactions: what a transaction is about to replace, so that another process can
//! finish it when this one is killed.
//!
//! It is written to a private folder of the host before the first temporary file and removed after
//! the last rename. It names the root and the folders by device and inode, and each file by the hashes of its
//! content before and after. The next transaction below that root recovers: if no file was replaced
//! yet, the temporary files are removed; otherwise the remaining files are replaced. A file that is
//! neither as before nor as after stops the recovery, which then changes nothing and says so.
//!
//! **Invariant:** recovery changes a file only through the compare-and-swap of any other change, and
//! only while the process that wrote the journal does not run.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, MetadataExt as _};
use hmac_sha256::Hash;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::dir_lock::{DirLocks, LockTimeout, open_lockable};
use super::expected_file::ExpectedFile;
use super::journal_entry::{JournalEntry, RecoveryReport};
use super::open::open_entry;
use super::snapshot::SnapshotMetadata;
use super::staged_file::StagedFile;
use super::temp_file::TempFile;
use super::xattrs::ExtendedAttributes;
use super::{Root, RootAccess};

/// The version of the format.
const VERSION: u32 = 1;

/// The suffix of a journal, of one that is written, and of one that recovery left alone.
const SUFFIX: &str = "journal";
const UNFINISHED_SUFFIX: &str = "new";
const LEFT_SUFFIX: &str = "left";

/// The largest journal, and the largest file that recovery reads.
const MAX_JOURNAL_BYTES: u64 = 64 << 20;
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Device and inode.
type Identity = (u64, u64);

/// The content of a journal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalRecord {
    version: u32,
    /// For people; the identity decides.
    root: PathBuf,
    root_identity: Identity,
    folders: Vec<FolderRecord>,
    /// In the order in which they are replaced.
    files: Vec<FileRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FolderRecord {
    /// Relative to the root.
    path: PathBuf,
    identity: Identity,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRecord {
    /// The index of the folder.
    folder: usize,
    name: String,
    /// The file with the new content; `None` for a removal.
    temporary: Option<String>,
    /// The hash of the content; `None` when there is no file.
    before: Option<String>,
    after: Option<String>,
}

/// Writes the journal of staged changes below one writable root; `None` for a single change,
/// which is atomic by itself, and for changes in several roots.
pub(super) fn begin_entry(
    folder: &Path,
    staged: &[StagedFile],
    durable: bool,
) -> io::Result<Option<JournalEntry>> {
    let Some(root) = single_root(staged) else { return Ok(None) };
    let record = serde_json::to_vec(&JournalRecord::new(root, staged)?)?;
    ensure_private_folder(folder)?;
    let path = folder.join(format!("{:016x}.{SUFFIX}", random_number()));
    let unfinished = path.with_extension(UNFINISHED_SUFFIX);
    let mut file = open_options().write(true).create_new(true).open(&unfinished)?;
    let finish = |file: &mut File| {
        file.lock()?;
        file.write_all(&record)?;
        if durable {
            file.sync_all()?;
        }
        fs::rename(&unfinished, &path)
    };
    match finish(&mut file) {
        Ok(()) => Ok(Some(JournalEntry { path, _file: file })),
        Err(error) => {
            let _ = fs::remove_file(&unfinished);
            Err(error)
        }
    }
}

impl JournalRecord {
    fn new(root: &Root, staged: &[StagedFile]) -> io::Result<Self> {
        let mut record = Self {
            version: VERSION,
            root: root.canonical.clone(),
            root_identity: identity(&root.dir)?,
            folders: Vec::new(),
            files: Vec::with_capacity(staged.len()),
        };
        let mut known: HashMap<PathBuf, usize> = HashMap::new();
        for file in staged {
            let path = file.path().relative.parent().unwrap_or(Path::new("")).to_owned();
            let folder = match known.get(&path) {
                Some(index) => *index,
                None => {
                    let identity = identity(file.parent_dir())?;
                    record.folders.push(FolderRecord { path: path.clone(), identity });
                    known.insert(path, record.folders.len() - 1);
                    record.folders.len() - 1
                }
            };
            record.files.push(FileRecord {
                folder,
                name: to_text(file.path().entry_name())?,
                temporary: file.temporary_name().map(|name| to_text(name.as_ref())).transpose()?,
                before: file.before().map(|(content, is_link)| digest(content, is_link)),
                after: file.after().map(|content| digest(content, false)),
            });
        }
        Ok(record)
    }
}

fn to_text(name: &Path) -> io::Result<String> {
    name.to_str().map(str::to_owned).ok_or_else(|| io::ErrorKind::InvalidFilename.into())
}

/// Returns the root of all changes, if it is one to which tools may write.
fn single_root(staged: &[StagedFile]) -> Option<&Root> {
    let [first, others @ ..] = staged else { return None };
    let root = first.path().root();
    let is_same = |file: &StagedFile| std::ptr::eq(file.path().root(), root);
    let is_journaled =
        !others.is_empty() && root.access == RootAccess::ReadWrite && others.iter().all(is_same);
    is_journaled.then_some(root)
}

/// Recovers the interrupted transactions below `root`. A journal that cannot be used is renamed, so
/// that it is reported once.
pub(super) fn recover_root(folder: &Path, root: &Root) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for path in journals(folder, UNFINISHED_SUFFIX) {
        if open_abandoned(&path).is_some() {
            let _ = fs::remove_file(&path);
        }
    }
    for path in journals(folder, SUFFIX) {
        let Some((file, record)) = open_abandoned(&path) else { continue };
        let Some(record) = record else {
            report.left.push(format!("the journal `{}` cannot be read", path.display()));
            let _ = fs::rename(&path, path.with_extension(LEFT_SUFFIX));
            continue;
        };
        if identity(&root.dir).ok() != Some(record.root_identity) {
            continue;
        }
        match record.recover(root) {
            Ok(()) => {
                report.recovered += 1;
                let _ = fs::remove_file(&path);
            }
            Err(why) => {
                report.left.push(why);
                let _ = fs::rename(&path, path.with_extension(LEFT_SUFFIX));
            }
        }
        drop(file);
    }
    report
}

/// Returns how many journals of interrupted transactions wait for their recovery, and how many
/// were left alone.
pub(super) fn count_interrupted(folder: &Path) -> (usize, usize) {
    let waiting = journals(folder, SUFFIX).into_iter().filter(|it| open_abandoned(it).is_some());
    (waiting.count(), journals(folder, LEFT_SUFFIX).len())
}

fn journals(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    if check_private(folder, |it| it.is_dir()).is_err() {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == suffix)).collect();
    found.sort();
    found
}

/// Opens a journal whose process does not run any more, with its record if it is valid; `None` when
/// the process runs or the file is not private.
fn open_abandoned(path: &Path) -> Option<(File, Option<JournalRecord>)> {
    check_private(path, |it| it.is_file()).ok()?;
    let file = open_options().read(true).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !is_private(&metadata) || !metadata.is_file() {
        return None;
    }
    file.try_lock().ok()?;
    // The transaction may have ended while the lock was taken.
    path.symlink_metadata()
        .ok()
        .filter(|now| (now.dev(), now.ino()) == (metadata.dev(), metadata.ino()))?;
    let mut bytes = Vec::new();
    (&file).take(MAX_JOURNAL_BYTES).read_to_end(&mut bytes).ok()?;
    let record = serde_json::from_slice(&bytes).ok();
    Some((file, record.filter(|record: &JournalRecord| record.version == VERSION)))
}

/// The state of a file of an interrupted transaction.
struct FoundFile<'r> {
    record: &'r FileRecord,
    dir: Arc<Dir>,
    current: Option<FileContent>,
    /// The temporary file, if it still has the new content.
    next: Option<FileContent>,
    is_replaced: bool,
}

struct FileContent {
    bytes: Vec<u8>,
    is_link: bool,
}

impl JournalRecord {
    fn recover(&self, root: &Root) -> Result<(), String> {
        let folders = self.open_folders(root)?;
        let _locks = DirLocks::acquire(&folders, &mut LockTimeout::default(), &|| false);
        let files: Vec<FoundFile<'_>> = self
            .files
            .iter()
            .map(|file| self.find_file(file, &folders))
            .collect::<Result<_, _>>()?;
        let is_begun = files.iter().any(FoundFile::was_changed);
        if is_begun && let Some(file) = files.iter().find(|file| file.lacks_content()) {
            return Err(self.describe(file.record, "has no file with its new content"));
        }
        for file in &files {
            if is_begun && !file.is_replaced {
                let done = file.replace().map_err(|error| error.to_string());
                match done {
                    Ok(true) => {}
                    Ok(false) => return Err(self.describe(file.record, "was changed")),
                    Err(error) => return Err(self.describe(file.record, &error)),
                }
            }
            file.remove_temporary(is_begun);
        }
        Ok(())
    }

    fn describe(&self, file: &FileRecord, what: &str) -> String {
        let folder = self.folders.get(file.folder).map(|folder| folder.path.as_path());
        let path = self.root.join(folder.unwrap_or(Path::new(""))).join(&file.name);
        format!("`{}` {what}", path.display())
    }

    fn open_folders(&self, root: &Root) -> Result<Vec<Arc<Dir>>, String> {
        let open = |folder: &FolderRecord| {
            let mut dir = root.dir.try_clone()?;
            for part in folder.path.components() {
                let Component::Normal(name) = part else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                dir = dir.open_dir_nofollow(name)?;
            }
            match identity(&dir)? == folder.identity {
                true => Ok(Arc::new(open_lockable(&dir)?)),
                false => Err(io::Error::other("it was replaced")),
            }
        };
        let describe = |folder: &FolderRecord, error: io::Error| {
            format!("the folder `{}`: {error}", self.root.join(&folder.path).display())
        };
        self.folders.iter().map(|it| open(it).map_err(|error| describe(it, error))).collect()
    }

    fn find_file<'r>(
        &self,
        record: &'r FileRecord,
        folders: &[Arc<Dir>],
    ) -> Result<FoundFile<'r>, String> {
        let dir = folders.get(record.folder).ok_or("the journal is invalid")?;
        let names = std::iter::once(&record.name).chain(&record.temporary);
        if !names.into_iter().all(|name| is_plain_name(name)) {
            return Err("the journal is invalid".to_owned());
        }
        let read = |name: &str| {
            read_content(dir, name).map_err(|error| self.describe(record, &error.to_string()))
        };
        let current = read(&record.name)?;
        let found = current.as_ref().map(FileContent::digest);
        let is_replaced = found == record.after;
        if !is_replaced && found != record.before {
            return Err(self.describe(record, "is neither as before the change nor as after it"));
        }
        let next = match &record.temporary {
            Some(name) => read(name)?.filter(|next| Some(next.digest()) == record.after),
            None => None,
        };
        Ok(FoundFile { record, dir: Arc::clone(dir), current, next, is_replaced })
    }
}

impl FoundFile<'_> {
    /// Whether the interrupted transaction replaced the file by another content.
    fn was_changed(&self) -> bool {
        self.is_replaced && self.record.before != self.record.after
    }

    fn lacks_content(&self) -> bool {
        !self.is_replaced && self.record.temporary.is_some() && self.next.is_none()
    }

    /// Makes the change; returns whether the file was still as it was found.
    fn replace(&self) -> io::Result<bool> {
        let name = Path::new(&self.record.name);
        let link = match &self.current {
            Some(current) if current.is_link => {
                let metadata = self.dir.symlink_metadata(name)?;
                Some(SnapshotMetadata::from_cap_std(&metadata, ExtendedAttributes::default()))
            }
            _ => None,
        };
        let expected = self
            .current
            .as_ref()
            .map(|current| ExpectedFile { content: &current.bytes, metadata: link.as_ref() });
        match (&self.record.temporary, &self.next, expected) {
            (Some(temporary), Some(next), expected) => {
                let file = TempFile::adopt(&self.dir, temporary)?;
                file.replace_expected(&next.bytes, name, expected)
            }
            (_, _, Some(expected)) => TempFile::remove_expected(&self.dir, name, expected),
            (_, _, None) => Ok(false),
        }
    }

    /// Removes the temporary file. Once files were exchanged, only if it has the old content or the
    /// new one: it may hold what another process wrote. Before that it may be written in part.
    fn remove_temporary(&self, is_begun: bool) {
        let Some(name) = &self.record.temporary else { return };
        let Ok(Some(content)) = read_content(&self.dir, name) else { return };
        let found = Some(content.digest());
        if !is_begun || found == self.record.before || found == self.record.after {
            drop(TempFile::adopt(&self.dir, name));
        }
    }
}

impl FileContent {
    fn digest(&self) -> String {
        digest(&self.bytes, self.is_link)
    }
}

/// Reads a file, or the target of a symbolic link; `None` when there is nothing.
fn read_content(dir: &Dir, name: &str) -> io::Result<Option<FileContent>> {
    let metadata = match dir.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?,
    };
    if metadata.is_symlink() {
        let target = dir.read_link_contents(name)?.into_os_string().into_encoded_bytes();
        return Ok(Some(FileContent { bytes: target, is_link: true }));
    }
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return Err(io::Error::other("it is not a regular file, or it is too large"));
    }
    let mut bytes = Vec::new();
    open_entry(dir, name.as_ref())?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(FileContent { bytes, is_link: false }))
}

/// Returns the hash of a content, or of the target of a link.
fn digest(content: &[u8], is_link: bool) -> String {
    let mut hash = Hash::new();
    hash.update([u8::from(is_link)]);
    hash.update(content);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

fn identity(dir: &Dir) -> io::Result<Identity> {
    dir.dir_metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn random_number() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};

    RandomState::new().hash_one(std::process::id())
}

/// Creates the folder with mode `0o700` if it is missing, and checks that only the user can write
/// to it.
fn ensure_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    check_private(folder, |it| it.is_dir())
}

fn check_private(path: &Path, is_kind: impl Fn(&fs::Metadata) -> bool) -> io::Result<()> {
    let metadata = path.symlink_metadata()?;
    match is_private(&metadata) && is_kind(&metadata) {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Whether the file belongs to the user, and no one else can write to it.
fn is_private(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

/// No symbolic links, no blocking on pipes, and mode `0o600` for new files.
fn open_options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}
