//! What a map of a repository of 5,000 files costs, beside parsing all of the files with tree-sitter
//! on as many threads.
//!
//! The first run writes about 21 MB below the target folder.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that fails should stop")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use serde_json::json;
use tool_sdk::{Call, Pipeline, Registry, Session, Workspace, tools};
use tool_std::code::get_repo_map;
use tool_std_code::{SourceLanguage, SymbolExtractor};

const FILES: usize = 5_000;
const ROUNDS: usize = 7;

fn main() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code-5000");
    let files = write_repository(&folder);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (mut parsed, mut mapped, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        parsed.push(parse_all(&files));
        // A session of its own knows no file.
        let session = Session::new("bench").with_service(Workspace::open([&folder]).unwrap());
        for times in [&mut mapped, &mut again] {
            let started = Instant::now();
            let text = runtime.block_on(map(&session));
            times.push(started.elapsed());
            assert!(text.contains(" in 5000 source files") || text.contains(" of 5000 source"));
        }
    }
    let [parsed, mapped, again] = [parsed, mapped, again].map(median);
    let ratio = |time: Duration| time.as_secs_f64() / parsed.as_secs_f64();
    println!("parsing {FILES} files            {parsed:>10.1?}");
    println!("get_repo_map, cold            {mapped:>10.1?}  {:.2} x", ratio(mapped));
    println!("get_repo_map, files known     {again:>10.1?}  {:.2} x", ratio(again));
}

async fn map(session: &Session) -> String {
    let registry = Registry::builder().add(tools![get_repo_map]).build().unwrap();
    let outcome = Pipeline::new(registry).call(session, Call::new("get_repo_map", json!({}))).await;
    outcome.result.unwrap().into_text()
}

/// Reads and parses the files on as many threads as the tool has.
fn parse_all(files: &[PathBuf]) -> Duration {
    let (next, started) = (AtomicUsize::new(0), Instant::now());
    thread::scope(|scope| {
        for _ in 0..2 * available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut extractor = SymbolExtractor::new();
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let text = fs::read_to_string(path).unwrap();
                    let language = SourceLanguage::of_path(path).unwrap();
                    assert_eq!(extractor.check_syntax(language, &text, &|| false), Ok(false));
                }
            });
        }
    });
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Writes files in four languages that use each other's functions.
fn write_repository(folder: &Path) -> Vec<PathBuf> {
    let files = (0..FILES).map(|number| {
        let (ending, text) = match number % 4 {
            0 => ("rs", rust_file(number)),
            1 => ("py", python_file(number)),
            2 => ("ts", typescript_file(number)),
            _ => ("go", go_file(number)),
        };
        let path = folder.join(format!("part{:02}/file{number:04}.{ending}", number % 50));
        if !path.exists() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
        }
        path
    });
    files.collect()
}

/// The numbers of functions of other files that a function uses.
fn used_numbers(number: usize, function: usize) -> [usize; 2] {
    let seed = number * 31 + function * 17;
    let same_language = |at: usize| at % FILES / 4 * 4 + number % 4;
    [same_language(seed * seed), same_language(seed / 3)]
}

fn rust_file(number: usize) -> String {
    let mut text = format!(
        "use std::collections::HashMap;\n\n/// A part.\n#[derive(Clone, Debug)]\npub struct Part{number} {{\n    pub name: String,\n    values: HashMap<String, u64>,\n}}\n"
    );
    for function in 0..10 {
        let [one, other] = used_numbers(number, function);
        write!(
            text,
            "\n/// Computes step {function}.\npub fn compute_{number}_{function}(part: &Part{number}, limit: u64) -> Result<u64, String> {{\n    let mut total = limit;\n    for (key, value) in &part.values {{\n        if key.len() > 3 && *value < limit {{\n            total += compute_{one}_{function}(key.as_str(), value.saturating_mul(2))?;\n        }} else {{\n            total = total.checked_sub(*value).ok_or_else(|| format!(\"{{key}} is too large\"))?;\n        }}\n    }}\n    Ok(total.max(compute_{other}_{function}(&part.name, total)?))\n}}\n"
        )
        .unwrap();
    }
    text
}

fn python_file(number: usize) -> String {
    let mut text = format!(
        "import os\nfrom typing import Any\n\n\nclass Part{number}:\n    name: str = \"\"\n\n    def __init__(self, values: dict[str, int]) -> None:\n        self.values = values\n"
    );
    for function in 0..10 {
        let [one, other] = used_numbers(number, function);
        write!(
            text,
            "\n\ndef compute_{number}_{function}(part: Part{number}, limit: int) -> int:\n    \"\"\"Computes step {function}.\"\"\"\n    total = limit\n    for key, value in part.values.items():\n        if len(key) > 3 and value < limit:\n            total += compute_{one}_{function}(key.strip(), value * 2)\n        else:\n            total = max(total - value, 0)\n    return max(total, compute_{other}_{function}(part.name, total), *[item for item in range(3)])\n"
        )
        .unwrap();
    }
    text
}

fn typescript_file(number: usize) -> String {
    let mut text = format!(
        "export interface Part{number} {{\n  name: string;\n  values: Map<string, number>;\n}}\n"
    );
    for function in 0..10 {
        let [one, other] = used_numbers(number, function);
        write!(
            text,
            "\n/** Computes step {function}. */\nexport function compute_{number}_{function}(part: Part{number}, limit: number): number {{\n  let total = limit;\n  for (const [key, value] of part.values.entries()) {{\n    if (key.length > 3 && value < limit) {{\n      total += compute_{one}_{function}({{ name: key, ...part }}, value * 2);\n    }} else {{\n      total = Math.max(total - value, 0);\n    }}\n  }}\n  return Math.max(total, compute_{other}_{function}(part, total) ?? 0);\n}}\n"
        )
        .unwrap();
    }
    text
}

fn go_file(number: usize) -> String {
    let mut text = format!(
        "package parts\n\nimport \"fmt\"\n\ntype Part{number} struct {{\n\tName   string\n\tvalues map[string]int\n}}\n"
    );
    for function in 0..10 {
        let [one, other] = used_numbers(number, function);
        write!(
            text,
            "\n// Compute{number}_{function} computes step {function}.\nfunc Compute{number}_{function}(part *Part{number}, limit int) (int, error) {{\n\ttotal := limit\n\tfor key, value := range part.values {{\n\t\tif len(key) > 3 && value < limit {{\n\t\t\tstep, err := Compute{one}_{function}(nil, value*2)\n\t\t\tif err != nil {{\n\t\t\t\treturn 0, fmt.Errorf(\"%s: %w\", key, err)\n\t\t\t}}\n\t\t\ttotal += step\n\t\t}} else {{\n\t\t\ttotal = total - value\n\t\t}}\n\t}}\n\treturn Compute{other}_{function}(nil, total)\n}}\n"
        )
        .unwrap();
    }
    text
}
