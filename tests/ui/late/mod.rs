//! Mistakes that `cargo check` of a program does not see: a schema that drifted, which test
//! builds refuse.
//!
//! Every case beside this file is a test target of one small crate that stands in the
//! target folder. It is checked once, and what the compiler says of each case is compared
//! with its `.stderr`; `TRYBUILD=overwrite` writes that, as in the other cases.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Checks all cases and compares the messages.
#[track_caller]
pub(crate) fn check() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().nth(2).expect("the package is `tests/ui` of the workspace");
    let cases = cases(&package.join("late"));
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tests").join("late");
    write_crate(&built.join("crate"), root, &cases);
    let (messages, other) = check_cases(&built.join("crate"), &built.join("target"), package);
    let overwrite = std::env::var("TRYBUILD").is_ok_and(|value| value == "overwrite");
    let mut wrong = String::new();
    for case in &cases {
        let found = messages.get(case).map(String::as_str).unwrap_or_default();
        let file = case.with_extension("stderr");
        if overwrite {
            fs::write(&file, found).expect("the message is written");
        }
        let wanted = fs::read_to_string(&file).unwrap_or_default();
        if found.is_empty() {
            let _ = writeln!(wrong, "{} must not compile\n{other}", case.display());
        } else if found != wanted {
            let _ = writeln!(wrong, "{}\nwanted:\n{wanted}\nfound:\n{found}", case.display());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The source files in `folder`, without this one.
fn cases(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut cases: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    cases.retain(|path| !path.ends_with("mod.rs"));
    cases.sort();
    cases
}

/// Writes the crate that has every case as a target, with the schemas that they name.
fn write_crate(folder: &Path, root: &Path, cases: &[PathBuf]) {
    let sdk = root.join("tool-sdk");
    let mut manifest = format!(
        "[package]\nname = \"late\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [lib]\npath = \"lib.rs\"\ntest = false\n\n\
         [dependencies]\ntool-sdk = {{ path = {:?} }}\n\n[profile.dev]\ndebug = false\n",
        sdk.display().to_string()
    );
    fs::create_dir_all(folder).expect("the folder is made");
    for case in cases {
        let name = case.file_stem().expect("it has a name").to_string_lossy();
        let path = case.display().to_string();
        let _ = write!(manifest, "\n[[test]]\nname = \"{name}\"\npath = {path:?}\n");
        let schema = case.with_extension("json");
        if schema.exists() {
            fs::copy(&schema, folder.join(format!("{name}.json"))).expect("the schema is copied");
        }
    }
    fs::write(folder.join("Cargo.toml"), manifest).expect("the manifest is written");
    fs::write(folder.join("lib.rs"), "").expect("the library is written");
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock is copied");
}

/// What the compiler says, by source file, with paths relative to `package`; and what cargo says.
fn check_cases(
    folder: &Path,
    target: &Path,
    package: &Path,
) -> (BTreeMap<PathBuf, String>, String) {
    let output = Command::new(env!("CARGO"))
        .args(["check", "--tests", "--keep-going", "--offline", "--quiet"])
        .args(["--message-format=json", "--color=never"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs");
    let prefix = format!("{}/", package.display());
    let mut messages: BTreeMap<PathBuf, String> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let has_place = line["message"]["spans"].as_array().is_some_and(|spans| !spans.is_empty());
        let source = line["target"]["src_path"].as_str();
        let text = line["message"]["rendered"].as_str();
        if let (true, Some(source), Some(text)) = (has_place, source, text) {
            *messages.entry(source.into()).or_default() += &text.replace(&prefix, "");
        }
    }
    let other = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!messages.is_empty(), "{other}");
    (messages, other)
}
