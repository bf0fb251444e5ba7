//! The files that are read and searched: always the same ones, written when they are not
//! there.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Files that a search sees.
const FILES: usize = 33_660;
/// Files that `.gitignore` excludes.
const IGNORED: usize = 1_210;
/// Files in one folder.
const PER_FOLDER: usize = 11;
/// Lines of the file that is read page by page.
pub(crate) const LONG_LINES: usize = 1_060_000;

/// Bumped when what is written changes.
const VERSION: &str = "3";

/// What is on the disk.
pub(crate) struct Tree {
    /// A folder of many files.
    pub(crate) folder: PathBuf,
    /// The folder of a long file and a short one.
    pub(crate) long: PathBuf,
}

impl Tree {
    /// The tree below `place`, which takes about 700 MiB.
    pub(crate) fn at(place: &Path) -> Self {
        let place = place.join("files-bench");
        let tree = Self { folder: place.join("tree"), long: place.join("long") };
        let mark = place.join("complete");
        if fs::read_to_string(&mark).is_ok_and(|version| version == VERSION) {
            return tree;
        }
        if place.exists() {
            fs::remove_dir_all(&place).unwrap();
        }
        tree.write();
        fs::write(mark, VERSION).unwrap();
        tree
    }

    fn write(&self) {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let pool = pool(&mut dice);
        for number in 0..FILES + IGNORED {
            let path = self.folder.join(path(number));
            if number % PER_FOLDER == 0 {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
            }
            fs::write(path, content(number, &pool, &mut dice)).unwrap();
        }
        fs::write(self.folder.join(".gitignore"), "/target/\n*.log\nbuild-*/\n").unwrap();
        for package in (0..FILES / PER_FOLDER / 80).step_by(4) {
            let place = self.folder.join(format!("package_{package}"));
            fs::write(place.join(".gitignore"), "*.tmp\n/dist\n!keep.tmp\n").unwrap();
        }
        fs::create_dir_all(&self.long).unwrap();
        let mut long = fs::File::create(self.long.join("long.txt")).unwrap();
        let lines = pool.lines().cycle().take(LONG_LINES);
        let mut text = String::new();
        for (number, line) in lines.enumerate() {
            writeln!(text, "{number:>8} {line:<80.80}").unwrap();
        }
        long.write_all(text.as_bytes()).unwrap();
        fs::write(self.long.join("short.txt"), &text[..60_000]).unwrap();
    }
}

fn path(number: usize) -> String {
    let folder = number / PER_FOLDER;
    let (package, module) = (folder / 80, folder % 80);
    let end = ["rs", "rs", "rs", "md", "rs", "toml", "rs", "json", "rs", "txt", "rs"][number % 11];
    match number < FILES {
        true => {
            format!("package_{package}/src/module_{}/part_{module}/file_{number}.{end}", module / 9)
        }
        false => format!("target/debug/unit_{folder}/file_{number}.{end}"),
    }
}

/// About 18 KiB of lines out of the pool, and in some files a line that is searched for.
fn content(number: usize, pool: &str, dice: &mut Dice) -> String {
    let len = match dice.below(100) {
        0 => 200_000 + dice.below(200_000),
        1..=20 => 20_000 + dice.below(40_000),
        _ => 500 + dice.below(15_000),
    };
    let start = dice.below(pool.len() - len - 200);
    let start = start + pool[start..].find('\n').unwrap_or_default() + 1;
    let end = start + len + pool[start + len..].find('\n').unwrap_or_default() + 1;
    let mut text = pool[start..end].to_owned();
    if number.is_multiple_of(42) {
        text.push_str("unsafe impl Send for Handle {}\n");
    }
    if number.is_multiple_of(122) {
        text.push_str("pub fn request_handler(input: &str) {}\n");
    }
    if number.is_multiple_of(19) {
        for line in 0..40 {
            writeln!(text, "pub const LIMIT_{line}: usize = {number};").unwrap();
        }
    }
    text
}

/// Eight megabytes of lines that look a little like source text.
fn pool(dice: &mut Dice) -> String {
    const WORDS: &[&str] = &[
        "let", "value", "self", "return", "match", "state", "config", "index", "result", "Some",
        "unsafe", "impl", "struct", "the", "of", "parser", "fn", "buffer", "request", "handler",
        "error", "into", "format", "string", "line", "while", "async", "await", "token", "stream",
    ];
    let mut pool = String::new();
    while pool.len() < 8 << 20 {
        let (indent, words) = (dice.below(4), dice.below(11));
        pool.extend(std::iter::repeat_n("    ", indent));
        for _ in 0..words {
            let word = WORDS[dice.below(WORDS.len())];
            pool.push_str(word);
            pool.push_str(["_", " ", " = ", ".", ", ", "("][dice.below(6)]);
        }
        pool.push('\n');
    }
    // What is searched for comes only where it is put.
    pool.replace("unsafe impl", "unsafe into").replace("_handler(", "_handles(")
}

/// Numbers that look random and are always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}
