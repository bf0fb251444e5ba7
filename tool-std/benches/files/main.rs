//! What reading and searching costs, beside programs that are known to be fast and beside
//! the same work done by hand.
//!
//! ```text
//! files             all tables
//! files read        only those of one kind: read, grep, glob, list, patch, edit, hostile
//! ```
//!
//! `rg` and `fd` are measured where they are installed. The first run writes about 700 MiB
//! below the target folder; `docs/PERFORMANCE.md` says how to read the figures.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails should stop")]

mod change;
mod floor;
mod measure;
mod tree;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tool_sdk::{Call, Mode, Output, Pipeline, Registry, Session, ToolError, Workspace, tools};
use tool_std::fs::{apply_patch, edit_file, list_dir, read_file, write_file};
use tool_std::search::{glob_files, grep_files};

use self::change::Patched;
use self::measure::{Lane, ROUNDS, table};
use self::tree::{LONG_LINES, Tree};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let tree = Tree::at(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|it| it == name);
    let tables = [
        ("read", read as Table),
        ("grep", grep),
        ("glob", glob),
        ("list", list),
        ("patch", patch),
        ("edit", edit),
        ("hostile", hostile),
    ];
    for (name, table) in tables {
        if is_wanted(name) {
            table(&tree);
        }
    }
}

/// Measures and prints.
type Table = fn(&Tree);

/// Our tools, as a host calls them.
struct Host {
    runtime: Runtime,
    pipeline: Pipeline,
    session: Session,
}

impl Host {
    fn new(folder: &Path) -> Self {
        let tools =
            tools![list_dir, read_file, glob_files, grep_files, write_file, edit_file, apply_patch];
        let registry = Registry::builder().add(tools).build().unwrap();
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap(),
            pipeline: Pipeline::new(registry).mode(Mode::Bypass),
            session: Session::new("bench").with_service(Workspace::open([folder]).unwrap()),
        }
    }

    fn run(&self, tool: &str, args: &Value) -> Result<Output, ToolError> {
        self.run_text(tool, &args.to_string())
    }

    /// Calls a tool with arguments as a model sends them.
    fn run_text(&self, tool: &str, args: &str) -> Result<Output, ToolError> {
        let call = self.pipeline.call(&self.session, Call::new(tool, args));
        self.runtime.block_on(call).result
    }

    /// Calls a tool and gives the `count` of its display data.
    fn call(&self, tool: &str, args: &Value, count: &str) -> usize {
        let output = self.run(tool, args).unwrap();
        let display = output.display_data().unwrap();
        usize::try_from(display[count].as_u64().unwrap()).unwrap()
    }
}

/// Runs a program and counts the lines that it prints; `None` when it is not installed.
fn peer(program: &str, args: &[&str], folder: &Path) -> Option<usize> {
    let output = Command::new(program).args(args).current_dir(folder).output().ok()?;
    Some(memchr::memchr_iter(b'\n', &output.stdout).count())
}

/// Adds a lane for a program that is installed.
fn with_peer<'a>(
    lanes: &mut Vec<Lane<'a>>,
    program: &'static str,
    args: &'a [&'a str],
    folder: &'a Path,
) {
    if peer(program, &["--version"], folder).is_some() {
        lanes.push(Lane::new(program, move || peer(program, args, folder).unwrap()));
    }
}

/// Waits until a file was left alone for so long that marks are kept of it.
fn rest(path: &Path) {
    let settled = Duration::from_millis(2100);
    let age = fs::metadata(path).unwrap().modified().unwrap().elapsed().unwrap_or_default();
    sleep(settled.saturating_sub(age));
}

fn read(tree: &Tree) {
    let path = tree.long.join("long.txt");
    rest(&path);
    let host = || Host::new(&tree.long);
    let read = |host: &Host, path: &str, offset: usize| {
        let args = json!({ "path": path, "offset": offset, "limit": 2000 });
        host.call("read_file", &args, "line_count")
    };
    let deep = 900_000;
    assert!(deep < LONG_LINES);
    // A host of its own each time remembers nothing; its thread for such work has started.
    let hosts: Vec<Host> = (0..=ROUNDS).map(|_| host()).collect();
    for host in &hosts {
        read(host, "short.txt", 2);
    }
    let mut unused = hosts.iter();
    table(
        "read_file, line 900,000 for the first time (S1)",
        &mut [
            Lane::new("blocks and memchr", || floor::skip_lines(&path, deep)),
            Lane::new("read_file", || read(unused.next().unwrap(), "long.txt", deep)),
        ],
    );
    let known = host();
    table(
        "read_file, line 900,000 again (S2)",
        &mut [
            Lane::new("one block there", || floor::block_at(&path, 80_000_000)),
            Lane::new("read_file", || read(&known, "long.txt", deep)),
        ],
    );
    table(
        "read_file, the first page (S3)",
        &mut [
            Lane::new("one block", || floor::first_block(&path)),
            Lane::new("read_file", || read(&known, "long.txt", 1)),
            Lane::new("read_file, a short file", || read(&known, "short.txt", 1)),
        ],
    );
}

fn grep(tree: &Tree) {
    let host = Host::new(&tree.folder);
    let files = floor::files(&tree.folder);
    let same = ["--no-config", "--hidden", "--no-require-git", "--no-ignore-global"];
    for (title, pattern, mode, flag) in [
        ("a literal, few hits", "unsafe impl", "content", "--line-number"),
        ("a regex, few hits", r"fn [a-z_]+_handler\(", "content", "--line-number"),
        ("a regex, many hits, counted", r"pub const [A-Z]+_[0-9]+:", "count", "--count"),
        ("a literal that is nowhere", "absent_needle_word", "content", "--line-number"),
    ] {
        let args = json!({ "pattern": pattern, "output_mode": mode, "limit": 2000 });
        let peer_args = [&same[..], &[flag, pattern]].concat();
        let mut lanes = Vec::new();
        with_peer(&mut lanes, "rg", &peer_args, &tree.folder);
        lanes.push(Lane::new("read all, memmem", || floor::holding(&files, "absent_needle_word")));
        lanes.push(Lane::new("grep_files", || host.call("grep_files", &args, "total_matches")));
        table(&format!("grep_files, {title} (S4)"), &mut lanes);
    }
    let args =
        |limit: u32| json!({ "pattern": "return", "output_mode": "content", "limit": limit });
    let all = json!({ "pattern": "absent_needle_word", "limit": 100 });
    table(
        "grep_files, frequent hits (S5)",
        &mut [
            Lane::new("a full search", || host.call("grep_files", &all, "total_matches")),
            Lane::new("the first 100", || host.call("grep_files", &args(100), "total_matches")),
            Lane::new("the first 2000", || host.call("grep_files", &args(2000), "total_matches")),
        ],
    );
}

fn glob(tree: &Tree) {
    let host = Host::new(&tree.folder);
    let same = ["--hidden", "--no-require-git", "--no-global-ignore-file", "--type", "f"];
    for pattern in ["*.rs", "package_1*/**/file_*7.toml"] {
        let args = json!({ "pattern": pattern, "limit": 100 });
        let path = if pattern.contains('/') { &["--full-path"][..] } else { &[] };
        // With the whole path, a glob has to match what stands before the tree as well.
        let glob = if path.is_empty() { pattern.to_owned() } else { format!("**/{pattern}") };
        let peer_args = [&same[..], path, &["--glob", &glob]].concat();
        let mut lanes = Vec::new();
        with_peer(&mut lanes, "fd", &peer_args, &tree.folder);
        lanes.push(Lane::new("read_dir", || floor::files(&tree.folder).len()));
        lanes.push(Lane::new("glob_files", || host.call("glob_files", &args, "total_matches")));
        table(&format!("glob_files, {pattern} (S6)"), &mut lanes);
    }
}

fn list(tree: &Tree) {
    let host = Host::new(&tree.folder);
    let args = json!({ "depth": 10, "limit": 1000 });
    let same = ["--hidden", "--no-ignore", "--max-depth", "10"];
    let mut lanes = Vec::new();
    with_peer(&mut lanes, "fd", &same, &tree.folder);
    lanes.push(Lane::new("read_dir", || floor::files(&tree.folder).len()));
    lanes.push(Lane::new("list_dir", || host.call("list_dir", &args, "entry_count")));
    table("list_dir, the whole tree counted (S6)", &mut lanes);
}

/// There and back by turns; every lane starts where it left off.
fn by_turns<'a>(mut run: impl FnMut(usize) -> usize + 'a) -> impl FnMut() -> usize + 'a {
    let mut side = 1;
    move || {
        side = 1 - side;
        run(side)
    }
}

fn patch(tree: &Tree) {
    let [for_git, for_ours, for_hand] =
        ["git", "ours", "hand"].map(|name| Patched::at(&tree.long.join(name)));
    #[cfg(target_os = "linux")]
    let exchanged = Patched::at(&tree.long.join("exchanged"));
    let host = Host::new(&for_ours.folder);
    let args = for_ours.ours.each_ref().map(|patch| json!({ "input": patch }).to_string());
    let apply = |side: usize| {
        let output = host.run_text("apply_patch", &args[side]);
        output.unwrap().display_data().unwrap()["files"].as_array().unwrap().len()
    };
    for side in [0, 1] {
        apply(side);
        assert!(for_ours.is(1 - side));
    }
    let mut lanes = Vec::new();
    if peer("git", &["--version"], &tree.long).is_some() {
        lanes.push(Lane::new("git apply", by_turns(|side| for_git.git(side))));
    }
    lanes.push(Lane::new("written in place", by_turns(|side| for_hand.write(1 - side))));
    #[cfg(target_os = "linux")]
    lanes.push(Lane::new("written and exchanged", by_turns(|side| exchanged.exchange(1 - side))));
    lanes.push(Lane::new("apply_patch", by_turns(apply)));
    table("apply_patch, 5,000 places in 200 files (S7)", &mut lanes);
}

fn edit(tree: &Tree) {
    let folder = tree.long.join("edit");
    fs::create_dir_all(&folder).unwrap();
    let (by_hand, by_us) = (folder.join("hand.txt"), folder.join("ours.txt"));
    let text: String = fs::read_to_string(tree.long.join("long.txt")).unwrap();
    let middle = text.char_indices().map(|(at, _)| at).find(|at| *at >= 5_000_000).unwrap();
    let text = format!("{}\nneedle 0\n{}", &text[..middle], &text[middle..2 * middle]);
    for path in [&by_hand, &by_us] {
        fs::write(path, &text).unwrap();
    }
    let host = Host::new(&folder);
    table(
        "edit_file, 10 MB",
        &mut [
            Lane::new("read and written", || floor::rewrite(&by_hand)),
            Lane::new(
                "edit_file",
                by_turns(|side| {
                    let words = ["needle 0", "needle 1"];
                    let (old, new) = (words[side], words[1 - side]);
                    let args = json!({ "path": "ours.txt", "old_string": old, "new_string": new });
                    host.run("edit_file", &args).unwrap();
                    1
                }),
            ),
        ],
    );
}

fn hostile(tree: &Tree) {
    let folder = tree.long.join("hostile");
    fs::create_dir_all(&folder).unwrap();
    let host = Host::new(&folder);
    let cases = change::hostile();
    let (host, folder) = (&host, &folder);
    let lane = |(name, text, patch): &'_ (&'static str, String, String)| {
        let (text, args) = (text.clone(), json!({ "input": patch }));
        Lane::new(name, move || {
            fs::write(folder.join("hostile"), &text).unwrap();
            usize::from(host.run("apply_patch", &args).is_ok())
        })
    };
    let mut lanes: Vec<_> = cases.iter().map(lane).collect();
    table("apply_patch, patches of 1 MiB that are made to take long", &mut lanes);
}
