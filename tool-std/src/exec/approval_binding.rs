//! The facts that an approval of a command is bound to, besides its words: the directory, the
//! environment, the program files, and the contents of scripts.
//!
//! If a fact changes, the approval no longer applies. Files that a program reads later, such as a
//! makefile, are not included.

use std::borrow::Cow;
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs::Metadata;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hmac_sha256::Hash;
use serde_json::{Value, json};
use tool_sdk::process::ChildEnv;
use tool_sdk::{Context, Workspace};

use super::analysis::CommandAnalysis;
use super::effects::mentioned_files::{FileMap, MentionQuery, MentionedFiles};
use super::effects::scripts;

/// The fact that something was not inspected. Its value is random, so no approval stays valid.
pub(super) const UNSEEN: &str = "unseen";

/// How many bytes of each script are hashed, of how many scripts, and in total. Beyond that the
/// file identity is used.
const MAX_READ_BYTES: u64 = 256 << 10;
const MAX_SCRIPTS: usize = 64;
const MAX_TOTAL_READ_BYTES: u64 = 512 << 10;

/// The maximum number of programs that are located.
const MAX_PROGRAMS: usize = 128;

/// The maximum number of files named by script operands.
const MAX_NAMED_FILES: usize = 1024;

/// The maximum number of directories in which a command may run.
const MAX_FOLDERS: usize = 8;

/// The inputs from which the facts of a command are collected.
pub(super) struct ApprovalBinding<'a> {
    pub(super) analysis: &'a CommandAnalysis<'a>,
    /// The shell that runs the command line, if there is one.
    pub(super) shell: Option<&'a str>,
    /// The directory it runs in; `None` if that is not a directory, so that it does not run.
    pub(super) folder: Option<PathBuf>,
    pub(super) env: ChildEnv,
}

impl ApprovalBinding<'_> {
    /// Returns the facts as names and values.
    pub(super) fn collect_facts(&self, cx: &Context) -> Vec<(&'static str, String)> {
        let Some(folder) = &self.folder else { return Vec::new() };
        // A link may change its target later.
        let place = folder.canonicalize().unwrap_or_default();
        let mut facts = vec![("folder", format!("{} {}", folder.display(), place.display()))];
        facts.push(("environment", environment_digest(&self.env)));
        facts.extend(
            self.shell.and_then(|shell| self.locate_program(folder, shell)).map(program_fact),
        );
        // A command line that is rejected for its length needs no further facts.
        if self.analysis.check_complete().is_err() {
            return facts;
        }
        let analysis = self.analysis.script_analysis();
        let reads_input = scripts::has_input_reader(analysis);
        let (mut programs, mut named) = (HashSet::new(), BTreeSet::new());
        let mut known = LocatedPrograms::default();
        let commands = self.placed_commands();
        for PlacedCommand { folders, argv } in &commands {
            for folder in folders {
                let Some(file) = self.locate_program_once(&mut known, folder, &argv[0]) else {
                    continue;
                };
                if programs.contains(&file) {
                    continue;
                }
                if programs.len() == MAX_PROGRAMS {
                    known.is_incomplete = true;
                    break;
                }
                programs.insert(file.clone());
                facts.push(program_fact(file));
            }
            let given = scripts::input_words(argv).filter(|_| reads_input);
            let read = analysis.reads.iter().filter(|_| reads_input);
            let read = read.map(|word| Cow::Borrowed(word.as_str()));
            for word in scripts::script_words(argv).chain(given).chain(read) {
                named.extend(folders.iter().map(|folder| folder.join(&*word)));
            }
        }
        let are_all_named = named.len() <= MAX_NAMED_FILES;
        // Most words do not name files.
        let there = |file: PathBuf| file.symlink_metadata().ok().map(|metadata| (file, metadata));
        let named: FileMap = named.into_iter().take(MAX_NAMED_FILES).filter_map(there).collect();
        let mut scripts = ScriptHasher::new(cx);
        facts.extend(scripts.script_facts(&named));
        let mut is_cut = known.is_incomplete || !are_all_named;
        if scripts::may_run_files(analysis) {
            let mut mentioned = self.mentioned_files(folder, &commands, cx);
            is_cut |= mentioned.is_incomplete;
            mentioned.files.retain(|file, _| !named.contains_key(file));
            facts.extend(scripts.script_facts(&mentioned.files));
        }
        let unseen = || (UNSEEN, RandomState::new().hash_one(()).to_string());
        facts.extend(is_cut.then(unseen));
        facts
    }

    /// Finds the files that the text mentions in the directories where it may run.
    fn mentioned_files(
        &self,
        folder: &Path,
        commands: &[PlacedCommand<'_>],
        cx: &Context,
    ) -> MentionedFiles {
        let mut folders = vec![folder.to_owned()];
        for folder in commands.iter().flat_map(|it| &it.folders) {
            if folders.len() < MAX_FOLDERS && !folders.contains(folder) {
                folders.push(folder.clone());
            }
        }
        let workspace = cx.state::<Workspace>();
        let is_ours = |folder: &str| workspace.as_ref().is_ok_and(|it| it.resolve(folder).is_ok());
        let analysis = self.analysis.script_analysis();
        let text = MentionQuery {
            text: &self.analysis.source_text(),
            words: commands.iter().flat_map(|it| it.argv).map(String::as_str).collect(),
            folders: &folders,
            adds_extensions: scripts::adds_extensions(analysis),
            runs_found_files: scripts::runs_found_files(analysis),
            is_relevant: &|folder| folder.to_str().is_some_and(is_ours),
        };
        text.find_mentions()
    }

    /// Returns the directory and the program files for the approver (PR1).
    pub(super) fn to_preview(&self) -> Option<Value> {
        let folder = self.folder.as_ref()?;
        let (commands, mut known) =
            (self.placed_commands().into_iter(), LocatedPrograms::default());
        let located = commands
            .filter_map(|it| self.locate_program_once(&mut known, it.folders.last()?, &it.argv[0]));
        let mut programs: Vec<String> = located.map(|it| it.display().to_string()).collect();
        programs.dedup();
        programs.extend(known.is_incomplete.then(|| "and more".to_owned()));
        let mut preview = json!({ "folder": folder.display().to_string(), "programs": programs });
        if let Some(started) = self.analysis.started_without_login() {
            preview["started as"] = format!("{started} (without start-up files)").into();
        }
        Some(preview)
    }

    /// Returns the visible commands, each with the directories in which it may run.
    fn placed_commands(&self) -> Vec<PlacedCommand<'_>> {
        let Some(folder) = self.folder.clone() else { return Vec::new() };
        let mut folders = vec![folder];
        let mut placed = Vec::new();
        for command in scripts::visible_commands(self.analysis.script_analysis()) {
            let argv = command.argv.as_slice();
            match scripts::entered_folder(argv) {
                // `cd` may fail, or be undone at the end of a subshell.
                Some(into) => {
                    let entered: Vec<PathBuf> =
                        folders.iter().map(|folder| folder.join(into)).collect();
                    folders.retain(|folder| !entered.contains(folder));
                    folders.extend(entered);
                    folders.drain(..folders.len().saturating_sub(MAX_FOLDERS));
                }
                None if argv.is_empty() => {}
                None => placed.push(PlacedCommand { folders: folders.clone(), argv }),
            }
        }
        placed
    }

    /// Like `locate_program`, with a bounded cache for bare names.
    fn locate_program_once<'p>(
        &self,
        known: &mut LocatedPrograms<'p>,
        folder: &Path,
        program: &'p str,
    ) -> Option<PathBuf> {
        if program.contains('/') {
            return self.locate_program(folder, program);
        }
        let is_full = known.files.len() == MAX_PROGRAMS;
        match known.files.entry(program) {
            Entry::Occupied(entry) => entry.get().clone(),
            Entry::Vacant(_) if is_full => {
                known.is_incomplete = true;
                None
            }
            Entry::Vacant(entry) => entry.insert(self.env.find_program(program)).clone(),
        }
    }

    /// Returns the file of a program that is called in `folder`.
    fn locate_program(&self, folder: &Path, program: &str) -> Option<PathBuf> {
        match program.contains('/') {
            // Removes `.` components.
            true => Some(folder.join(program).components().collect()),
            false => self.env.find_program(program),
        }
    }
}

/// A cache of located programs.
#[derive(Default)]
struct LocatedPrograms<'p> {
    files: HashMap<&'p str, Option<PathBuf>>,
    /// Whether there are more programs than the limit.
    is_incomplete: bool,
}

/// A command, and the directories in which it may run, the likeliest last.
struct PlacedCommand<'a> {
    folders: Vec<PathBuf>,
    /// Never empty.
    argv: &'a [String],
}

/// Returns a digest of the environment that does not reveal its values.
fn environment_digest(env: &ChildEnv) -> String {
    let mut digest = Hash::new();
    for part in env.iter().flat_map(|(name, value)| [name, value]) {
        digest.update(part.len().to_be_bytes());
        digest.update(part.as_bytes());
    }
    to_hex(digest.finalize())
}

fn to_hex(hash: [u8; 32]) -> String {
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the identity of a program file.
fn program_fact(file: PathBuf) -> (&'static str, String) {
    let real = file.canonicalize().unwrap_or(file);
    let identity = match real.metadata() {
        Ok(it) => {
            format!("{}:{} {} {}.{}", it.dev(), it.ino(), it.size(), it.mtime(), it.mtime_nsec())
        }
        Err(error) => error.kind().to_string(),
    };
    ("program", format!("{} {identity}", real.display()))
}

/// Hashes files of the workspace up to a limit; further files are identified by their metadata.
struct ScriptHasher {
    workspace: Option<Arc<Workspace>>,
    /// Cache of directories and whether they resolve inside the workspace.
    folders: HashMap<PathBuf, bool>,
    /// How many files and bytes may still be read.
    files_left: usize,
    bytes_left: u64,
}

impl ScriptHasher {
    fn new(cx: &Context) -> Self {
        Self {
            workspace: cx.state::<Workspace>().ok().map(|workspace| workspace.0),
            folders: HashMap::new(),
            files_left: MAX_SCRIPTS,
            bytes_left: MAX_TOTAL_READ_BYTES,
        }
    }

    fn script_facts(&mut self, files: &FileMap) -> Vec<(&'static str, String)> {
        let facts = files.iter().filter_map(|(file, metadata)| self.script_fact(file, metadata));
        facts.map(|fact| ("script", fact)).collect()
    }

    /// Returns the fact for a file; `None` if it is not a file of the workspace.
    fn script_fact(&mut self, file: &Path, metadata: &Metadata) -> Option<String> {
        let followed;
        let metadata = if metadata.is_symlink() {
            let real =
                self.workspace.as_ref()?.resolve(file.to_str()?).ok()?.canonicalize().ok()?;
            real.metadata().ok().filter(|it| it.kind.is_file())?;
            followed = file.metadata().ok()?;
            &followed
        } else {
            metadata
        };
        if !metadata.is_file() || !self.is_in_workspace(file.parent()?) {
            return None;
        }
        let mut fact = format!("{} {} ", file.display(), metadata.len());
        let is_read = self.files_left > 0 && metadata.len().min(MAX_READ_BYTES) <= self.bytes_left;
        if is_read {
            self.files_left -= 1;
            self.bytes_left -= metadata.len().min(MAX_READ_BYTES);
            fact.push_str(&to_hex(Hash::hash(&self.read_prefix(file)?)));
        }
        if !is_read || metadata.len() > MAX_READ_BYTES {
            // A change after the hashed prefix changes the inode or its change time.
            let it = metadata;
            let _ = write!(fact, " {}:{} {}.{}", it.dev(), it.ino(), it.ctime(), it.ctime_nsec());
        }
        Some(fact)
    }

    /// Whether a directory is in the workspace.
    fn is_in_workspace(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let lies = |workspace: &Arc<Workspace>| {
            folder
                .to_str()
                .is_some_and(|it| workspace.resolve(it).is_ok_and(|it| it.canonicalize().is_ok()))
        };
        let lies = self.workspace.as_ref().is_some_and(lies);
        self.folders.insert(folder.to_owned(), lies);
        lies
    }

    /// Reads the start of a file.
    fn read_prefix(&self, file: &Path) -> Option<Vec<u8>> {
        let place = self.workspace.as_ref()?.resolve(file.to_str()?).ok()?;
        let mut read = Vec::new();
        let opened = place.canonicalize().ok()?.open_file().ok()?;
        opened.take(MAX_READ_BYTES).read_to_end(&mut read).ok()?;
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // F91: a variable counts with its name, its value and where one ends.
    #[test]
    fn other_variables_are_another_environment() {
        let env = |variables: &[(&str, &str)]| {
            environment_digest(
                &variables
                    .iter()
                    .fold(ChildEnv::default(), |env, (name, value)| env.with_var(*name, *value)),
            )
        };
        let known = env(&[("CI", "1"), ("LANG", "C")]);
        assert_eq!(known, env(&[("LANG", "C"), ("CI", "1")]));
        for others in [
            &[("CI", "2"), ("LANG", "C")] as &[_],
            &[("CI", "1")],
            &[("CI", "1LANG"), ("", "C")],
            &[("CI", "1"), ("LANG", "C"), ("TZ", "")],
        ] {
            assert_ne!(known, env(others), "{others:?}");
        }
    }
}
