//! What decides, beside its words, what a command does: where it runs, which file each program
//! is, and what a script says.
//!
//! A yes to a command is one to these too. What a program reads later, such as a makefile, is
//! not looked at.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tool_sdk::process::ChildEnv;
use tool_sdk::{Context, Workspace};

use super::judged::Judged;
use super::scripts;

/// How much of each script is read.
const MOST_READ: u64 = 256 << 10;

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
        let mut facts = vec![("folder", folder.display().to_string())];
        facts.extend(self.shell.and_then(|shell| self.locate(folder, shell)).map(program));
        let mut seen = HashSet::new();
        for Placed { folder, argv } in self.commands() {
            facts.extend(self.locate(&folder, &argv[0]).map(program));
            for file in scripts::named(argv).map(|word| folder.join(word)) {
                // Most words are no files, and to see that takes less than to look for one.
                if file.symlink_metadata().is_ok() && !seen.contains(&file) {
                    facts.extend(script(&file, cx));
                    seen.insert(file);
                }
            }
        }
        facts
    }

    /// Where it runs, and which files its programs are, for whoever is asked (PR1).
    pub(super) fn shown(&self) -> Option<Value> {
        let folder = self.folder.as_ref()?;
        let commands = self.commands().into_iter();
        let located = commands.filter_map(|it| self.locate(&it.folder, &it.argv[0]));
        let mut programs: Vec<String> = located.map(|it| it.display().to_string()).collect();
        programs.dedup();
        Some(json!({ "folder": folder.display().to_string(), "programs": programs }))
    }

    /// The commands that are seen, each where it runs.
    fn commands(&self) -> Vec<Placed<'_>> {
        let Some(mut folder) = self.folder.clone() else { return Vec::new() };
        let mut placed = Vec::new();
        for command in scripts::commands(self.judged.understood()) {
            match command.argv.as_slice() {
                [] => {}
                [head, into] if head == "cd" => folder = folder.join(into),
                argv => placed.push(Placed { folder: folder.clone(), argv }),
            }
        }
        placed
    }

    fn locate(&self, folder: &Path, program: &str) -> Option<PathBuf> {
        match program.contains('/') {
            // Without steps that lead nowhere.
            true => Some(folder.join(program).components().collect()),
            false => self.env.find(program),
        }
    }
}

/// A command, and the folder in which it runs.
struct Placed<'a> {
    folder: PathBuf,
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

/// What a file of the workspace says; nothing where it is none.
fn script(file: &Path, cx: &Context) -> Option<(&'static str, String)> {
    let place = cx.state::<Workspace>().ok()?.resolve(file.to_str()?).ok()?;
    let real = place.real().ok()?;
    let metadata = real.metadata().ok().filter(|metadata| metadata.kind.is_file())?;
    let mut read = Vec::new();
    real.open_file().ok()?.take(MOST_READ).read_to_end(&mut read).ok()?;
    let mut fact = format!("{} {} ", file.display(), metadata.len);
    for byte in Sha256::digest(&read) {
        let _ = write!(fact, "{byte:02x}");
    }
    Some(("script", fact))
}
