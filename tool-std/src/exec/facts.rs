//! What decides, beside its words, what a command does: where it runs and with which variables,
//! which file each program is, and what a script says.
//!
//! A yes to a command is one to these too. What a program reads later, such as a makefile, is
//! not looked at.

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

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tool_sdk::process::ChildEnv;
use tool_sdk::{Context, Workspace};

use super::judged::Judged;
use super::mentioned::{Files, Mentioned, Text};
use super::scripts;

/// The fact that something was not seen, which is never the same again: no yes holds then.
pub(super) const UNSEEN: &str = "unseen";

/// How much of each script is read, of how many, and of all together: of others their identity
/// tells.
const MOST_READ: u64 = 256 << 10;
const MOST_SCRIPTS: usize = 64;
const MOST_READ_IN_ALL: u64 = 512 << 10;

/// How many programs are looked for, and looked at.
const MOST_PROGRAMS: usize = 128;

/// How many files are looked at because of a word that is one by its place.
const MOST_NAMED: usize = 1024;

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
        facts.push(("environment", environment(&self.env)));
        facts.extend(self.shell.and_then(|shell| self.locate(folder, shell)).map(program));
        // What is refused for its length needs no more of it looked at.
        if self.judged.whole().is_err() {
            return facts;
        }
        let understood = self.judged.understood();
        let are_given = scripts::are_given(understood);
        let (mut programs, mut named) = (HashSet::new(), BTreeSet::new());
        let mut known = Known::default();
        let commands = self.commands();
        for Placed { folders, argv } in &commands {
            for folder in folders {
                let Some(file) = self.locate_once(&mut known, folder, &argv[0]) else { continue };
                if programs.contains(&file) {
                    continue;
                }
                if programs.len() == MOST_PROGRAMS {
                    known.is_cut = true;
                    break;
                }
                programs.insert(file.clone());
                facts.push(program(file));
            }
            let given = scripts::given(argv).filter(|_| are_given);
            let read = understood.reads.iter().filter(|_| are_given);
            let read = read.map(|word| Cow::Borrowed(word.as_str()));
            for word in scripts::named(argv).chain(given).chain(read) {
                named.extend(folders.iter().map(|folder| folder.join(&*word)));
            }
        }
        let are_all_named = named.len() <= MOST_NAMED;
        // Most words are no files.
        let there = |file: PathBuf| file.symlink_metadata().ok().map(|metadata| (file, metadata));
        let named: Files = named.into_iter().take(MOST_NAMED).filter_map(there).collect();
        let mut scripts = Scripts::new(cx);
        facts.extend(scripts.facts(&named));
        let mut is_cut = known.is_cut || !are_all_named;
        if scripts::may_run_files(understood) {
            let mut mentioned = self.mentioned(folder, &commands, cx);
            is_cut |= mentioned.is_cut;
            mentioned.files.retain(|file, _| !named.contains_key(file));
            facts.extend(scripts.facts(&mentioned.files));
        }
        let unseen = || (UNSEEN, RandomState::new().hash_one(()).to_string());
        facts.extend(is_cut.then(unseen));
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
        let (commands, mut known) = (self.commands().into_iter(), Known::default());
        let located =
            commands.filter_map(|it| self.locate_once(&mut known, it.folders.last()?, &it.argv[0]));
        let mut programs: Vec<String> = located.map(|it| it.display().to_string()).collect();
        programs.dedup();
        programs.extend(known.is_cut.then(|| "and more".to_owned()));
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

    /// The same, where a name that needs no folder is looked for once, and only so many are.
    fn locate_once<'p>(
        &self,
        known: &mut Known<'p>,
        folder: &Path,
        program: &'p str,
    ) -> Option<PathBuf> {
        if program.contains('/') {
            return self.locate(folder, program);
        }
        let is_full = known.files.len() == MOST_PROGRAMS;
        match known.files.entry(program) {
            Entry::Occupied(entry) => entry.get().clone(),
            Entry::Vacant(_) if is_full => {
                known.is_cut = true;
                None
            }
            Entry::Vacant(entry) => entry.insert(self.env.find(program)).clone(),
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

/// Programs that were looked for by their names.
#[derive(Default)]
struct Known<'p> {
    files: HashMap<&'p str, Option<PathBuf>>,
    /// Whether there are more than may be looked for.
    is_cut: bool,
}

/// A command, and the folders in one of which it runs, the likeliest last.
struct Placed<'a> {
    folders: Vec<PathBuf>,
    /// There is always a program.
    argv: &'a [String],
}

/// What tells these variables from any others, without their values.
fn environment(env: &ChildEnv) -> String {
    let mut digest = Sha256::new();
    for part in env.variables().flat_map(|(name, value)| [name, value]) {
        digest.update(part.len().to_be_bytes());
        digest.update(part.as_bytes());
    }
    format!("{:x}", digest.finalize())
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

/// What files of the workspace say, those that are asked for first, or only which they are.
struct Scripts {
    workspace: Option<Arc<Workspace>>,
    /// Which folders lie in it, with all on the way there.
    folders: HashMap<PathBuf, bool>,
    /// How many files may still be read, and how much of them.
    files: usize,
    bytes: u64,
}

impl Scripts {
    fn new(cx: &Context) -> Self {
        Self {
            workspace: cx.state::<Workspace>().ok().map(|workspace| workspace.0),
            folders: HashMap::new(),
            files: MOST_SCRIPTS,
            bytes: MOST_READ_IN_ALL,
        }
    }

    fn facts(&mut self, files: &Files) -> Vec<(&'static str, String)> {
        let facts = files.iter().filter_map(|(file, metadata)| self.fact(file, metadata));
        facts.map(|fact| ("script", fact)).collect()
    }

    /// Nothing where it is no file of the workspace.
    fn fact(&mut self, file: &Path, metadata: &Metadata) -> Option<String> {
        let followed;
        let metadata = if metadata.is_symlink() {
            let real = self.workspace.as_ref()?.resolve(file.to_str()?).ok()?.real().ok()?;
            real.metadata().ok().filter(|it| it.kind.is_file())?;
            followed = file.metadata().ok()?;
            &followed
        } else {
            metadata
        };
        if !metadata.is_file() || !self.has(file.parent()?) {
            return None;
        }
        let mut fact = format!("{} {} ", file.display(), metadata.len());
        let is_read = self.files > 0 && metadata.len().min(MOST_READ) <= self.bytes;
        if is_read {
            self.files -= 1;
            self.bytes -= metadata.len().min(MOST_READ);
            let _ = write!(fact, "{:x}", Sha256::digest(&self.read(file)?));
        }
        if !is_read || metadata.len() > MOST_READ {
            // What comes behind it cannot be changed without a trace in this.
            let it = metadata;
            let _ = write!(fact, " {}:{} {}.{}", it.dev(), it.ino(), it.ctime(), it.ctime_nsec());
        }
        Some(fact)
    }

    /// Whether a folder lies in the workspace.
    fn has(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let lies = |workspace: &Arc<Workspace>| {
            folder
                .to_str()
                .is_some_and(|it| workspace.resolve(it).is_ok_and(|it| it.real().is_ok()))
        };
        let lies = self.workspace.as_ref().is_some_and(lies);
        self.folders.insert(folder.to_owned(), lies);
        lies
    }

    /// What a file begins with.
    fn read(&self, file: &Path) -> Option<Vec<u8>> {
        let place = self.workspace.as_ref()?.resolve(file.to_str()?).ok()?;
        let mut read = Vec::new();
        let opened = place.real().ok()?.open_file().ok()?;
        opened.take(MOST_READ).read_to_end(&mut read).ok()?;
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
            environment(
                &variables
                    .iter()
                    .fold(ChildEnv::default(), |env, (name, value)| env.with(*name, *value)),
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
