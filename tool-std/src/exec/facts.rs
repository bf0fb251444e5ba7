//! What decides, beside its words, what a command does: where it runs, which file each program
//! is, and what a script says.
//!
//! A yes to a command is one to these too. What a program reads later, such as a makefile, is
//! not looked at.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tool_sdk::process::ChildEnv;
use tool_sdk::{Context, Workspace};

use super::judged::Judged;
use super::mentioned::{Mentioned, Text};
use super::scripts;

/// How much of each script is read, and of how many: of others their identity tells.
const MOST_READ: u64 = 256 << 10;
const MOST_SCRIPTS: usize = 256;

/// How many programs are looked at.
const MOST_PROGRAMS: usize = 256;

/// In how many folders a command is looked for.
const MOST_FOLDERS: usize = 8;

/// What is looked at of a command.
pub(super) struct Facts<'a> {
    pub(super) judged: &'a Judged<'a>,
    /// What reads the whole of it, where something does.
    pub(super) shell: Option<&'a str>,
    /// Where it runs; nothing where that is no folder, and it does not run.
    pub(super) folder: Option<PathBuf>,
    pub(super) env: ChildEnv,
}

impl Facts<'_> {
    /// Each by its name.
    pub(super) fn list(&self, cx: &Context) -> Vec<(&'static str, String)> {
        let Some(folder) = &self.folder else { return Vec::new() };
        // A link may lead elsewhere later.
        let place = folder.canonicalize().unwrap_or_default();
        let mut facts = vec![("folder", format!("{} {}", folder.display(), place.display()))];
        facts.extend(self.shell.and_then(|shell| self.locate(folder, shell)).map(program));
        let understood = self.judged.understood();
        let are_given = scripts::are_given(understood);
        let (mut programs, mut files) = (HashSet::new(), HashSet::new());
        let mut known = HashMap::new();
        let commands = self.commands();
        for Placed { folders, argv } in &commands {
            for folder in folders {
                let Some(file) = self.locate_once(&mut known, folder, &argv[0]) else { continue };
                if programs.len() < MOST_PROGRAMS && programs.insert(file.clone()) {
                    facts.push(program(file));
                }
            }
            let given = scripts::given(argv).filter(|_| are_given);
            let read = understood.reads.iter().filter(|_| are_given);
            let read = read.map(|word| Cow::Borrowed(word.as_str()));
            for word in scripts::named(argv).chain(given).chain(read) {
                files.extend(folders.iter().map(|folder| folder.join(&*word)));
            }
        }
        // What is refused for its length needs no more of it looked at.
        if self.judged.whole().is_ok() && scripts::may_run_files(understood) {
            let mentioned = self.mentioned(folder, &commands, cx);
            files.extend(mentioned.files);
            // What nobody saw is never the same again.
            let unseen = || ("unseen", RandomState::new().hash_one(()).to_string());
            facts.extend(mentioned.is_cut.then(unseen));
        }
        // Most words are no files, and to see that takes less than to look for one.
        let mut files: Vec<PathBuf> =
            files.into_iter().filter(|file| file.symlink_metadata().is_ok()).collect();
        files.sort_unstable();
        let scripts = files.iter().enumerate();
        facts.extend(scripts.filter_map(|(at, file)| script(file, at < MOST_SCRIPTS, cx)));
        facts
    }

    /// The files that it mentions in the folders where it may run.
    fn mentioned(&self, folder: &Path, commands: &[Placed<'_>], cx: &Context) -> Mentioned {
        let mut folders = vec![folder.to_owned()];
        for folder in commands.iter().flat_map(|it| &it.folders) {
            if folders.len() < MOST_FOLDERS && !folders.contains(folder) {
                folders.push(folder.clone());
            }
        }
        let workspace = cx.state::<Workspace>();
        let is_ours = |folder: &str| workspace.as_ref().is_ok_and(|it| it.resolve(folder).is_ok());
        let understood = self.judged.understood();
        let text = Text {
            text: &self.judged.text(),
            words: commands.iter().flat_map(|it| it.argv).map(String::as_str).collect(),
            folders: &folders,
            completes: scripts::complete_names(understood),
            finds: scripts::are_found(understood),
            counts: &|folder| folder.to_str().is_some_and(is_ours),
        };
        text.files()
    }

    /// Where it runs, and which files its programs are, for whoever is asked (PR1).
    pub(super) fn shown(&self) -> Option<Value> {
        let folder = self.folder.as_ref()?;
        let (commands, mut known) = (self.commands().into_iter(), HashMap::new());
        let located =
            commands.filter_map(|it| self.locate_once(&mut known, it.folders.last()?, &it.argv[0]));
        let mut programs: Vec<String> = located.map(|it| it.display().to_string()).collect();
        programs.dedup();
        Some(json!({ "folder": folder.display().to_string(), "programs": programs }))
    }

    /// The commands that are seen, each where it may run.
    fn commands(&self) -> Vec<Placed<'_>> {
        let Some(folder) = self.folder.clone() else { return Vec::new() };
        let mut folders = vec![folder];
        let mut placed = Vec::new();
        for command in scripts::commands(self.judged.understood()) {
            let argv = command.argv.as_slice();
            match scripts::entered(argv) {
                // It may fail, or be undone by the end of a bracket.
                Some(into) => {
                    let entered: Vec<PathBuf> =
                        folders.iter().map(|folder| folder.join(into)).collect();
                    folders.retain(|folder| !entered.contains(folder));
                    folders.extend(entered);
                    folders.drain(..folders.len().saturating_sub(MOST_FOLDERS));
                }
                None if argv.is_empty() => {}
                None => placed.push(Placed { folders: folders.clone(), argv }),
            }
        }
        placed
    }

    /// The same, where a name that needs no folder is looked for once.
    fn locate_once<'p>(
        &self,
        known: &mut HashMap<&'p str, Option<PathBuf>>,
        folder: &Path,
        program: &'p str,
    ) -> Option<PathBuf> {
        match program.contains('/') {
            true => self.locate(folder, program),
            false => known.entry(program).or_insert_with(|| self.env.find(program)).clone(),
        }
    }

    /// The file that a program is, when it is called in `folder`.
    fn locate(&self, folder: &Path, program: &str) -> Option<PathBuf> {
        match program.contains('/') {
            // Without steps that lead nowhere.
            true => Some(folder.join(program).components().collect()),
            false => self.env.find(program),
        }
    }
}

/// A command, and the folders in one of which it runs, the likeliest last.
struct Placed<'a> {
    folders: Vec<PathBuf>,
    /// There is always a program.
    argv: &'a [String],
}

/// Which file a program is.
fn program(file: PathBuf) -> (&'static str, String) {
    let real = file.canonicalize().unwrap_or(file);
    let identity = match real.metadata() {
        Ok(it) => {
            format!("{}:{} {} {}.{}", it.dev(), it.ino(), it.size(), it.mtime(), it.mtime_nsec())
        }
        Err(error) => error.kind().to_string(),
    };
    ("program", format!("{} {identity}", real.display()))
}

/// What a file of the workspace says, or only which one it is; nothing where it is none.
fn script(file: &Path, is_read: bool, cx: &Context) -> Option<(&'static str, String)> {
    let place = cx.state::<Workspace>().ok()?.resolve(file.to_str()?).ok()?;
    let real = place.real().ok()?;
    let metadata = real.metadata().ok().filter(|metadata| metadata.kind.is_file())?;
    let mut fact = format!("{} {} ", file.display(), metadata.len);
    if is_read {
        let mut read = Vec::new();
        real.open_file().ok()?.take(MOST_READ).read_to_end(&mut read).ok()?;
        for byte in Sha256::digest(&read) {
            let _ = write!(fact, "{byte:02x}");
        }
    }
    if !is_read || metadata.len > MOST_READ {
        // What comes behind it cannot be changed without a trace in this.
        let it = file.metadata().ok()?;
        let _ = write!(fact, " {}:{} {}.{}", it.dev(), it.ino(), it.ctime(), it.ctime_nsec());
    }
    Some(("script", fact))
}
