//! Files that are changed: as many as a large patch has, one that is long, and texts that
//! are made to take long.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of the large patch, and its places in each of them.
const FILES: usize = 200;
const PLACES: usize = 25;
/// Lines between two places.
const APART: usize = 10;

/// A folder of files, and patches that lead there and back.
pub(crate) struct Patched {
    pub(crate) folder: PathBuf,
    /// For `git apply`.
    pub(crate) unified: [PathBuf; 2],
    /// For `apply_patch`.
    pub(crate) ours: [String; 2],
    /// The texts of all files before and after.
    texts: [Vec<String>; 2],
}

impl Patched {
    /// The files and patches below `place`, written anew.
    pub(crate) fn at(place: &Path) -> Self {
        let place = place.join("patch");
        let _ = fs::remove_dir_all(&place);
        let folder = place.join("files");
        fs::create_dir_all(&folder).unwrap();
        let texts = ["old", "new"].map(|word| (0..FILES).map(|file| text(file, word)).collect());
        let unified = [place.join("there.diff"), place.join("back.diff")];
        for (path, words) in unified.iter().zip([["old", "new"], ["new", "old"]]) {
            fs::write(path, diff(words)).unwrap();
        }
        let ours = [["old", "new"], ["new", "old"]].map(patch);
        let patched = Self { folder, unified, ours, texts };
        patched.write(0);
        patched
    }

    /// Writes all files by hand, in place.
    pub(crate) fn write(&self, side: usize) -> usize {
        for (file, text) in self.texts[side].iter().enumerate() {
            fs::write(self.folder.join(name(file)), text).unwrap();
        }
        FILES
    }

    /// Reads all files, writes their successors beside them and exchanges the names: what is
    /// needed at least so that each of them changes at once, and none before all are written.
    #[cfg(target_os = "linux")]
    pub(crate) fn exchange(&self, side: usize) -> usize {
        use rustix::fs::{CWD, RenameFlags, renameat_with};

        let path = |file| self.folder.join(name(file));
        let beside = |file| self.folder.join(format!(".{file}.tmp"));
        for (file, text) in self.texts[side].iter().enumerate() {
            assert!(!fs::read(path(file)).unwrap().is_empty());
            fs::write(beside(file), text).unwrap();
        }
        for file in 0..FILES {
            let exchange = RenameFlags::EXCHANGE;
            renameat_with(CWD, beside(file), CWD, path(file), exchange).unwrap();
            fs::remove_file(beside(file)).unwrap();
        }
        FILES
    }

    /// Whether all files are those of a side.
    pub(crate) fn is(&self, side: usize) -> bool {
        let there = |file| fs::read_to_string(self.folder.join(name(file))).unwrap();
        self.texts[side].iter().enumerate().all(|(file, text)| there(file) == *text)
    }

    /// Runs `git apply`.
    pub(crate) fn git(&self, side: usize) -> usize {
        let mut git = Command::new("git");
        git.args(["apply", "--whitespace=nowarn"]).arg(&self.unified[side]);
        assert!(git.current_dir(&self.folder).status().unwrap().success());
        FILES
    }
}

fn name(file: usize) -> String {
    format!("file_{file}.rs")
}

fn line(file: usize, line: usize, word: &str) -> String {
    let word = if line % APART == APART / 2 { word } else { "kept" };
    format!("    let {word}_{line} = value_of(number_{file}, {line});")
}

fn text(file: usize, word: &str) -> String {
    (0..PLACES * APART).map(|at| line(file, at, word) + "\n").collect()
}

/// The places of a file with a line around each, which keeps the patch below the limit of
/// all arguments: where, and what.
fn hunks(file: usize, [from, to]: [&str; 2]) -> impl Iterator<Item = (usize, String)> {
    (0..PLACES).map(move |place| {
        let at = place * APART + APART / 2;
        let mut hunk = String::new();
        for line_at in at - 1..=at + 1 {
            if line_at == at {
                let _ = writeln!(hunk, "-{}", line(file, at, from));
            }
            let sign = if line_at == at { '+' } else { ' ' };
            let _ = writeln!(hunk, "{sign}{}", line(file, line_at, to));
        }
        (at, hunk)
    })
}

fn diff(words: [&str; 2]) -> String {
    let mut diff = String::new();
    for file in 0..FILES {
        let _ = write!(diff, "--- a/{0}\n+++ b/{0}\n", name(file));
        for (at, hunk) in hunks(file, words) {
            let _ = write!(diff, "@@ -{at},3 +{at},3 @@\n{hunk}");
        }
    }
    diff
}

fn patch(words: [&str; 2]) -> String {
    let mut patch = String::from("*** Begin Patch\n");
    for file in 0..FILES {
        let _ = writeln!(patch, "*** Update File: {}", name(file));
        for (_, hunk) in hunks(file, words) {
            let _ = write!(patch, "@@\n{hunk}");
        }
    }
    patch + "*** End Patch"
}

/// Patches of nearly 1 MiB that nobody would write by accident, each with the text of the
/// file `hostile`.
pub(crate) fn hostile() -> [(&'static str, String, String); 4] {
    const LINES: usize = 200_000;
    let update =
        |body: String| format!("*** Begin Patch\n*** Update File: hostile\n{body}*** End Patch");
    let repeated = "a\n".repeat(LINES);
    let numbered = |what: &str| (0..100_000).map(|at| format!("{what}{at}\n")).collect::<String>();
    [
        (
            "a quote that is nearly everywhere",
            repeated.clone(),
            update(format!("@@\n{}-b\n", " a\n".repeat(LINES))),
        ),
        (
            "many places, each of them quoted loosely",
            format!("{}\n", "a \nb\n".repeat(LINES / 2)),
            update("@@\n-a\n b\n+c\n".repeat(55_000)),
        ),
        (
            "every line of a long file is another",
            numbered("old "),
            format!(
                "*** Begin Patch\n*** Add File: hostile\n{}*** End Patch",
                numbered("+").lines().rev().map(|line| format!("{line}\n")).collect::<String>()
            ),
        ),
        (
            "markers and nothing else",
            repeated,
            update(format!("@@\n-b\n+a\n{}", "@@ a\n a\n".repeat(90_000))),
        ),
    ]
}
