//! What is fuzzed: the engines behind the tools, which are private to `tool-std` and included
//! here as they are.
//!
//! Each claim takes any bytes and panics where something is wrong.

#![expect(dead_code, unused_imports, reason = "not all of the engines is fuzzed")]

#[path = "../../src/diff/mod.rs"]
mod diff;
#[path = "../../src/edit/mod.rs"]
mod edit;
mod packages;
#[path = "../../src/patch/mod.rs"]
mod patch;
mod script;
mod skills;
#[path = "../../src/text/mod.rs"]
mod text;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use self::diff::{DiffDetail, FileDiff};
use self::edit::{QuotedEdit, replace_quoted};
use self::patch::{ChunkLine, MatchBudget, PatchHunk, apply_chunks, parse, parse_hunk};
use tool_sdk::Workspace;

pub use self::script::{a_denial_only_tightens, a_script_is_understood};
pub use self::skills::{a_skill_is_read, an_archive_stays_inside};

/// Parts of an input are apart by this line.
const SEAM: &str = "\n====\n";

/// Any text is a patch or is refused; one that is accepted says what it touches.
pub fn a_patch_is_read(text: &str) {
    let Ok(patch) = parse(text) else { return };
    if patch.verify().is_ok() {
        assert!(!patch.sections.is_empty());
    }
    for section in &patch.sections {
        assert!(section.paths().all(|path| !path.is_empty() && !path.contains('\n')), "{text:?}");
        assert!(
            parse_hunk(section.source).is_ok_and(|hunk| hunk.path() == section.path),
            "{text:?}"
        );
    }
}

/// Of a file (first part) and a patch of it (second), what is not touched stays, and what is
/// added is there; and an edit with the same parts agrees with a plain replacement.
pub fn a_change_changes_what_it_says(text: &str) {
    let mut parts = text.split(SEAM);
    let (Some(old), Some(body)) = (parts.next(), parts.next()) else { return };
    let patch = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
    if let Ok(patch) = parse(&patch)
        && let [section] = &patch.sections[..]
        && let Ok(PatchHunk::Update { chunks, .. }) = parse_hunk(section.source)
        && let Ok(new) = apply_chunks(old, &chunks, "f", &MatchBudget::default())
    {
        let lines = || chunks.iter().flat_map(|chunk| &chunk.lines);
        if lines().all(|line| matches!(line, ChunkLine::Keep(text) if !text.is_empty())) {
            assert_eq!(new.text, old, "{patch:?}");
        }
        for line in lines() {
            if let ChunkLine::Add(added) = line {
                assert!(new.text.contains(added), "{patch:?}");
            }
        }
        let shown = diff::diff_texts(old, &new.text, 100);
        assert_eq!(shown.unified.is_empty(), old == new.text, "{patch:?}");
        let known =
            FileDiff::from_changes("f", old, &new.text, &new.changes, DiffDetail::Full).diff;
        assert_eq!(known.unified.is_empty(), old == new.text, "{patch:?}");
    }
    let Some(put) = parts.next() else { return };
    let edit = QuotedEdit { old: body, new: put, replace_all: true };
    if let Ok(edited) = replace_quoted(old, &[edit], &|| false) {
        assert!(edited.replaced > 0);
        let plain = !text.contains(['\r', '\u{feff}']) && old.contains(body);
        if plain {
            assert_eq!(edited.text, old.replace(body, put));
        }
    }
}

/// Whatever is opened is below the root, by the word of the system.
pub fn a_path_leads_nowhere_else(path: &str) {
    static TREE: OnceLock<(PathBuf, Workspace)> = OnceLock::new();
    let (root, workspace) = TREE.get_or_init(tree);
    let Ok(place) = workspace.resolve(path) else { return };
    let real = place.canonicalize();
    for place in [Some(place), real.ok()].into_iter().flatten() {
        if let Ok(file) = place.open_file() {
            assert!(is_below(&file, root), "{path:?} leads out");
            let mut text = String::new();
            (&file).take(99).read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{path:?}");
        }
        if let Ok(entries) = place.read_dir() {
            assert!(entries.flatten().all(|entry| entry.name != "outside"), "{path:?} leads out");
        }
    }
}

fn is_below(file: &File, root: &Path) -> bool {
    use std::os::fd::AsRawFd as _;

    let place = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
    place.starts_with(root)
}

/// `w` is the workspace, full of links that lead everywhere.
fn tree() -> (PathBuf, Workspace) {
    use std::os::unix::fs::symlink;

    let top = tempfile::tempdir().unwrap().keep().canonicalize().unwrap();
    let root = top.join("w");
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::create_dir(top.join("o")).unwrap();
    std::fs::write(top.join("outside"), "outside").unwrap();
    std::fs::write(top.join("o/outside"), "outside").unwrap();
    for place in ["f", "a/f", "a/b/f"] {
        std::fs::write(root.join(place), "inside").unwrap();
    }
    for (target, link) in [
        ("..", "u"),
        ("../..", "a/u"),
        ("../o", "o"),
        ("a/b", "i"),
        ("../a", "a/b/i"),
        ("/", "r"),
        ("l", "l"),
        ("../../w/f", "a/b/l"),
        ("/proc/self/root", "p"),
        ("/proc/self/cwd", "c"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let workspace = Workspace::open([&root]).unwrap();
    (root, workspace)
}
