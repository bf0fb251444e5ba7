//! Mutation fuzzing: random pieces of the scripts in the corpus, cut and joined.
//!
//! Runs a few thousand mutants by default. For a longer run:
//!
//! ```text
//! TOOL_STD_FUZZ_SECONDS=60 cargo test -p tool-std --test shell mutants -- --nocapture
//! ```
//!
//! Add a failing script to the corpus or to a test of its own.

use std::time::{Duration, Instant};

use tool_std::shell::analyze_script;

use crate::bash::Oracle;
use crate::fixture;

/// The number of mutants without a time limit.
const ALWAYS: usize = 3_000;

/// One in this many comparable scripts is compared with bash.
const ASKED: u64 = 4;

/// A deterministic random number generator.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("it is small")
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Fragments that are inserted besides pieces of other scripts.
const PIECES: &[&str] = &[
    "'",
    "\"",
    "\\",
    "\\\n",
    "$",
    "$(",
    "`",
    ")",
    "(",
    "{",
    "}",
    ",",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "\n",
    " ",
    "\t",
    "<",
    ">",
    ">>",
    "<<E\n",
    "E\n",
    "<<<",
    "#",
    "!",
    "~",
    "*",
    "?",
    "[",
    "]",
    "=",
    "%",
    "@",
    "^",
    "-",
    "\u{a0}",
    "\r",
    "\0",
    "ä",
    "{a,b}",
    "${x}",
    "$'",
    "if ",
    "time ",
    "eval ",
    "2>&1",
    "/dev/null",
];

fn mutant(scripts: &[String], numbers: &mut Numbers) -> String {
    let mut chars: Vec<char> = numbers.of(scripts).chars().collect();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(chars.len() + 1);
        let until = (at + numbers.below(6)).min(chars.len());
        let put: Vec<char> = match numbers.below(4) {
            0 => Vec::new(),
            1 => {
                let other: Vec<char> = numbers.of(scripts).chars().collect();
                let start = numbers.below(other.len());
                other.into_iter().skip(start).take(1 + numbers.below(12)).collect()
            }
            _ => numbers.of(PIECES).chars().collect(),
        };
        chars.splice(at..until, put);
    }
    chars.into_iter().collect()
}

/// Checks the properties that hold for every text.
fn check(script: &str) {
    let analysis = analyze_script(script);
    assert!(analysis.opaque.is_some() || !analysis.commands.is_empty(), "{script:?}");
    let plain = analysis.commands.iter().filter(|command| analysis.is_plain && !command.is_nested);
    for command in plain {
        // What rules see says the same once more.
        assert_eq!(analyze_script(&command.text).commands[0].text, command.text, "{script:?}");
    }
    // SH10: no text before it hides a command.
    let more = format!("{script}a\nevil now\n");
    let found =
        analyze_script(&more).commands.iter().any(|command| command.text.starts_with("evil now"));
    assert!(found, "{more:?}");
}

// (d), (e): nothing panics, nothing is hidden, and what is plain is what bash runs.
#[test]
fn mutants_keep_all_properties() {
    let tricks: Vec<(String, String)> = fixture!("shell-corpus/bypasses.json");
    let mut scripts: Vec<String> = fixture!("shell-corpus/legitimate.json");
    scripts.extend(tricks.into_iter().map(|(script, _)| script));
    let seconds = std::env::var("TOOL_STD_FUZZ_SECONDS").ok().and_then(|it| it.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seed = until.map_or(1, |_| u64::from(std::process::id()) * 0x9e37_79b9 + 1);
    let (mut numbers, oracle) = (Numbers(seed), Oracle::new());
    let (mut made, mut asked) = (0, 0);
    while until.map_or(made < ALWAYS, |until| Instant::now() < until) {
        let script = mutant(&scripts, &mut numbers);
        made += 1;
        check(&script);
        // Without slashes, bash finds no program and no file elsewhere.
        let harmless = script.replace('/', "_");
        let is_asked = until.is_some() || numbers.next() % ASKED == 0;
        if let Some(oracle) = oracle.as_ref().filter(|_| is_asked) {
            asked += usize::from(oracle.agrees_about_plain(&harmless));
        }
    }
    eprintln!("seed {seed}: {made} scripts, bash agreed about {asked} plain ones");
    assert!(asked > 0 || oracle.is_none(), "bash was never asked");
}
