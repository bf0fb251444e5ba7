//! Walks a folder tree on several threads, and passes each file to a visitor.
//!
//! Every folder and file is opened relative to the handle of its folder. Symbolic links are not
//! followed. `.git` and the files that ignore files exclude are skipped; hidden files are not.
//!
//! **Invariant:** nothing here reads a file, except ignore files.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, available_parallelism};

use tool_sdk::{FolderEntry, OpenFolder, ResolvedPath, ToolError};

use super::ignore_rules::{IgnoreRules, MAX_BYTES, PerIgnoreFile};

/// The number of jobs that run on the first thread before others are started.
const SINGLE_THREAD_JOBS: usize = 32;

/// The maximum number of files of a folder in one job.
const FILES_PER_JOB: usize = 64;

/// The start of a `.git` file in a worktree or submodule, which points to the repository.
const GITDIR_PREFIX: &str = "gitdir:";

/// Receives the files of a walk; each thread has its own visitor.
pub(crate) trait FileVisitor: Send {
    /// Visits the regular file at `path`, which is relative to the start.
    fn visit_file(&mut self, path: &Path, entry: &FolderEntry);
}

/// The result of a walk.
pub(crate) struct WalkResult<V> {
    pub(crate) visitors: Vec<V>,
    /// Folders that could not be read.
    pub(crate) unreadable: u64,
    /// Folders on another device, which are not entered.
    pub(crate) other_devices: u64,
    /// Ignore files that were truncated.
    pub(crate) truncated_ignore_files: u64,
}

/// Walks until all files are visited or `is_over` returns `true`.
///
/// Fails when `start` is not a readable folder.
pub(crate) fn walk_tree<V: FileVisitor>(
    start: &ResolvedPath,
    is_over: &(dyn Fn() -> bool + Sync),
    visitor: impl Fn() -> V,
) -> Result<WalkResult<V>, ToolError> {
    let folder = start.open_folder()?;
    let cut = AtomicU64::new(0);
    let (above, ignored) = ignore_rules_above(start, &cut);
    let (queue, unread, elsewhere) = Default::default();
    let walk = TreeWalk {
        start: &above,
        is_over,
        queue,
        unreadable: unread,
        other_devices: elsewhere,
        truncated_ignore_files: cut,
    };
    walk.queue.push_jobs([WalkJob { path: above.clone(), ignored, work: JobKind::Start(folder) }]);

    let mut first = visitor();
    for _ in 0..SINGLE_THREAD_JOBS {
        walk.run_next_job(&mut first);
    }
    let mut visitors = vec![first];
    if !walk.queue.is_empty() {
        // Most of the time is spent opening files, so twice as many threads as cores are faster.
        let threads = 2 * available_parallelism().map_or(1, usize::from);
        visitors.extend((1..threads).map(|_| visitor()));
        thread::scope(|scope| {
            for visitor in &mut visitors {
                scope.spawn(|| while walk.run_next_job(visitor) {});
            }
        });
    }
    let [unread, elsewhere, cut] =
        [walk.unreadable, walk.other_devices, walk.truncated_ignore_files]
            .map(AtomicU64::into_inner);
    Ok(WalkResult {
        visitors,
        unreadable: unread,
        other_devices: elsewhere,
        truncated_ignore_files: cut,
    })
}

/// Returns the path of `start` below the topmost known folder, and the ignore rules of the folders
/// above it.
fn ignore_rules_above(
    start: &ResolvedPath,
    cut: &AtomicU64,
) -> (PathBuf, Option<Arc<IgnoreRules>>) {
    let mut places: Vec<ResolvedPath> =
        std::iter::successors(start.parent(), ResolvedPath::parent).collect();
    places.reverse();
    let (mut path, mut ignored) = (PathBuf::new(), None);
    for (depth, place) in places.iter().enumerate() {
        if let (true, Some(name)) = (depth > 0, place.file_name()) {
            path.push(name);
        }
        let text = |name: &str| {
            place
                .join(name)
                .open_file()
                .map_or_else(|_| String::new(), |file| read_ignore_file(&file))
        };
        let texts = PerIgnoreFile {
            ignore: text(".ignore"),
            gitignore: text(".gitignore"),
            exclude: text(".git/info/exclude"),
        };
        let is_repository = place.join(".git").metadata().is_ok_and(|git| git.kind.is_dir())
            || text(".git").starts_with(GITDIR_PREFIX);
        let level = IgnoreRules::new(ignored, &path, &texts, is_repository);
        cut.fetch_add(level.truncated_count(), Ordering::Relaxed);
        ignored = Some(Arc::new(level));
    }
    path.extend(start.file_name());
    (path, ignored)
}

/// Reads an ignore file, up to one byte more than the limit.
fn read_ignore_file(file: impl Read) -> String {
    let mut bytes = Vec::new();
    match file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

/// A walk, shared by its threads.
struct TreeWalk<'a> {
    start: &'a Path,
    is_over: &'a (dyn Fn() -> bool + Sync),
    queue: JobQueue,
    unreadable: AtomicU64,
    other_devices: AtomicU64,
    truncated_ignore_files: AtomicU64,
}

/// A part of the tree that has not been visited.
struct WalkJob {
    /// Relative to the topmost folder, as ignore rules need it.
    path: PathBuf,
    ignored: Option<Arc<IgnoreRules>>,
    work: JobKind,
}

enum JobKind {
    Start(OpenFolder),
    Below(FolderEntry),
    Files(Vec<FolderEntry>),
}

impl TreeWalk<'_> {
    /// Runs the next job; returns `false` when there is none left.
    fn run_next_job(&self, visitor: &mut impl FileVisitor) -> bool {
        if (self.is_over)() {
            self.queue.close();
        }
        let Some(WalkJob { path, ignored, work }) = self.queue.wait_for_job() else { return false };
        let _busy = BusyGuard(&self.queue);
        let folder = match work {
            JobKind::Files(files) => {
                self.visit_files(&path, &files, visitor);
                return true;
            }
            JobKind::Start(folder) => Ok(folder),
            JobKind::Below(entry) => entry.open_folder(),
        };
        match folder.and_then(OpenFolder::entries) {
            Ok(entries) => self.visit_folder(path, ignored, entries, visitor),
            Err(error) => {
                let left_out = match error.kind() {
                    ErrorKind::CrossesDevices => &self.other_devices,
                    _ => &self.unreadable,
                };
                left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
        true
    }

    fn visit_folder(
        &self,
        folder: PathBuf,
        above: Option<Arc<IgnoreRules>>,
        entries: Vec<FolderEntry>,
        visitor: &mut impl FileVisitor,
    ) {
        let ignored = ignore_rules_of(&folder, above, &entries, &self.truncated_ignore_files);
        let mut path = PathBuf::new();
        let mut folders = Vec::new();
        let mut files = Vec::new();
        for entry in entries {
            let kind = entry.kind();
            if !(kind.is_file() || kind.is_dir()) || entry.name() == ".git" {
                continue;
            }
            let excluded = ignored.as_ref().is_some_and(|ignored| {
                set_path(&mut path, &folder, entry.name());
                ignored.is_excluded(&path, kind.is_dir())
            });
            if !excluded && kind.is_dir() {
                let (path, ignored) = (folder.join(entry.name()), ignored.clone());
                folders.push(WalkJob { path, ignored, work: JobKind::Below(entry) });
            } else if !excluded {
                files.push(entry);
            }
        }
        while files.len() > FILES_PER_JOB {
            let work = JobKind::Files(files.split_off(files.len() - FILES_PER_JOB));
            folders.push(WalkJob { path: folder.clone(), ignored: None, work });
        }
        self.queue.push_jobs(folders);
        self.visit_files(&folder, &files, visitor);
    }

    fn visit_files(&self, folder: &Path, files: &[FolderEntry], visitor: &mut impl FileVisitor) {
        let folder = folder.strip_prefix(self.start).unwrap_or(folder);
        let mut path = PathBuf::new();
        for entry in files {
            if (self.is_over)() {
                return self.queue.close();
            }
            set_path(&mut path, folder, entry.name());
            visitor.visit_file(&path, entry);
        }
    }
}

/// Sets `path` to `folder/name`. Writing the whole path is faster than finding and removing its
/// last component.
fn set_path(path: &mut PathBuf, folder: &Path, name: &OsStr) {
    let path = path.as_mut_os_string();
    path.clear();
    path.push(folder);
    if !path.is_empty() {
        path.push(MAIN_SEPARATOR_STR);
    }
    path.push(name);
}

/// Adds the ignore files of a folder to the rules of its parent.
fn ignore_rules_of(
    path: &Path,
    above: Option<Arc<IgnoreRules>>,
    entries: &[FolderEntry],
    cut: &AtomicU64,
) -> Option<Arc<IgnoreRules>> {
    let find = |name: &str| entries.iter().find(|entry| entry.name() == name);
    let read = |name: &str| {
        let entry = find(name).filter(|entry| entry.kind().is_file())?;
        entry.open_file().ok().map(|(file, _)| read_ignore_file(file))
    };
    let git = find(".git").filter(|entry| entry.kind().is_dir());
    let is_repository =
        git.is_some() || read(".git").is_some_and(|text| text.starts_with(GITDIR_PREFIX));
    let (ignore, gitignore) = (read(".ignore"), read(".gitignore"));
    if ignore.is_none() && gitignore.is_none() && !is_repository {
        return above;
    }
    let texts = PerIgnoreFile {
        ignore: ignore.unwrap_or_default(),
        gitignore: gitignore.unwrap_or_default(),
        exclude: git.and_then(read_git_exclude).unwrap_or_default(),
    };
    let level = IgnoreRules::new(above, path, &texts, is_repository);
    cut.fetch_add(level.truncated_count(), Ordering::Relaxed);
    Some(Arc::new(level))
}

/// Reads `.git/info/read_git_exclude`.
fn read_git_exclude(git: &FolderEntry) -> Option<String> {
    let within = |folder: OpenFolder, name: &str| {
        folder.entries().ok()?.into_iter().find(|entry| entry.name() == name)
    };
    let info = within(git.open_folder().ok()?, "info")?.open_folder().ok()?;
    let (file, _) = within(info, "exclude")?.open_file().ok()?;
    Some(read_ignore_file(file))
}

/// The queue of open jobs. The newest job is taken first, so that few folders are open at once.
#[derive(Default)]
struct JobQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: Vec<WalkJob>,
    busy: usize,
    ended: bool,
}

impl JobQueue {
    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.lock_state().jobs.is_empty()
    }

    fn push_jobs(&self, jobs: impl IntoIterator<Item = WalkJob>) {
        let mut state = self.lock_state();
        let before = state.jobs.len();
        if !state.ended {
            state.jobs.extend(jobs);
        }
        if state.jobs.len() > before {
            self.changed.notify_all();
        }
    }

    /// Takes a job, and waits for one while other threads may still add some.
    fn wait_for_job(&self) -> Option<WalkJob> {
        let mut state = self.lock_state();
        loop {
            if let Some(job) = state.jobs.pop() {
                state.busy += 1;
                return Some(job);
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops all jobs and accepts no more.
    fn close(&self) {
        let mut state = self.lock_state();
        state.ended = true;
        state.jobs.clear();
    }
}

/// Marks a job as running until it is dropped, also on a panic.
struct BusyGuard<'a>(&'a JobQueue);

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock_state();
        state.busy -= 1;
        if state.busy == 0 && state.jobs.is_empty() {
            self.0.changed.notify_all();
        }
    }
}
