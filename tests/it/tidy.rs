//! Rules about the code that a reader relies on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tool_sdk::Registry;

use crate::support::{published_packages, published_sources, root};

/// Modules of `tool-sdk` in the order data flows. A module may use only its own row and
/// those before it.
const LAYERS: &[&[&str]] = &[
    &[
        "frontmatter",
        "sha256",
        "rfc3339",
        "name",
        "content",
        "risk",
        "error",
        "redact",
        "schema",
        "call",
    ],
    &[
        "context",
        "definition_pins",
        "ledger",
        "memory_store",
        "private_file",
        "principal",
        "session_store",
        "conversation_store",
    ],
    &["tool"],
    &["registry", "truncate", "permission"],
    &["hook", "loop_guard", "plan_mode", "plan_store", "plugin", "scheduler", "secrets"],
    &["toolset", "event", "audit"],
    &["pipeline"],
    &["batch", "session_recorder", "trusted_folders"],
    &["provider", "schema_files", "schema_lock"],
    &["testing", "macros", "__private", "lib"],
];

/// What `tool-std` may not name: a tool knows nothing of who calls it.
const NOT_FOR_TOOLS: &[&str] =
    &["Registry", "Toolset", "Pipeline", "provider::", "Outcome", "ToolEvent"];

/// How `tool-std` may not reach the world: files through the workspace, the rest through
/// what the host lends.
///
/// Two files may: those by which packages and rules are read, which lie in folders of the user and of the
/// program.
const NOT_THE_WORLD: &[&str] = &[
    "Command::new",
    "File::create",
    "File::open",
    "SystemTime::now",
    "fs::read",
    "fs::write",
    "std::env",
    "tokio::fs",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The files of the console's page, which draws every tool from its definition and display data (F182).
fn console_page(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root().join(folder).join("console/page")) else {
        return Vec::new();
    };
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code of a file: without comments, and without the tests at its end.
fn code(path: &Path) -> String {
    let text = read(path);
    let code = text.split("\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_test(path: &Path) -> bool {
    let name = path.file_name().is_some_and(|name| name == "tests.rs" || name == "toy.rs");
    name || path.parent().is_some_and(|folder| folder.ends_with("tests"))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The names that `text` has after `crate::`, each of a group by itself.
fn names_of_the_crate(text: &str) -> Vec<&str> {
    text.split("crate::").skip(1).flat_map(first_names).collect()
}

/// The first name of a path, or those of the group that begins with it.
fn first_names(path: &str) -> Vec<&str> {
    let word = |text| str::split(text, |c| !is_word(c)).next().unwrap_or_default();
    let Some(group) = path.strip_prefix('{') else { return vec![word(path)] };
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            ',' | '}' if depth == 0 => {
                names.push(word(group[start..at].trim_start()));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// What the root of the crate shows under another path: each name with its module.
fn re_exports(root: &str) -> BTreeMap<&str, &str> {
    let mut shown = BTreeMap::new();
    for item in root.split("pub use self::").skip(1) {
        let item = item.split(';').next().unwrap_or_default();
        let (module, names) = item.split_once("::").unwrap_or_default();
        // What stands behind ` as ` or at the end of a path is the name.
        let names = names.split([',', '{', '}', '\n']).filter_map(|it| it.rsplit(' ').next());
        let names = names.filter_map(|path| path.rsplit("::").next()).map(str::trim);
        shown.extend(names.filter(|name| !name.is_empty()).map(|name| (name, module)));
    }
    shown
}

#[test]
fn groups_and_names_of_the_root_are_seen() {
    let names = names_of_the_crate("use crate::{a, b::{c, d}, E};\nlet x = crate::f::g();");
    assert_eq!(names, ["a", "b", "E", "f"]);
    let shown = re_exports("pub use self::a::{B, c::D};\npub use self::e::F;\nmod g;");
    assert_eq!(shown, BTreeMap::from([("B", "a"), ("D", "a"), ("F", "e")]));
}

#[test]
fn modules_use_only_what_stands_before_them() {
    let folder = root().join("tool-sdk/core/src");
    let layer = |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    let crate_root = read(&folder.join("lib.rs"));
    let shown = re_exports(&crate_root);
    assert!(shown.get("Pipeline") == Some(&"pipeline") && shown.len() > 50, "{shown:?}");
    let mut wrong = Vec::new();
    for path in sources(&folder).iter().filter(|path| !is_test(path)) {
        let relative = path.strip_prefix(&folder).expect("it is inside");
        let first = relative.components().next().expect("it has a name").as_os_str();
        let module = first.to_string_lossy().trim_end_matches(".rs").to_owned();
        let own = layer(&module).unwrap_or_else(|| panic!("`{module}` stands in no layer"));
        for name in names_of_the_crate(&code(path)) {
            let used = shown.get(name).copied().unwrap_or(name);
            match layer(used) {
                Some(other) if other <= own => {}
                Some(_) => wrong.push(format!("{}: uses `{used}`", relative.display())),
                // A macro of the crate's root.
                None => {}
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that point the wrong way:\n{}", wrong.join("\n"));
}

// F171: no standard tool's name in the runtime or the macros: not in code, not in comments,
// not in tests.
#[test]
fn the_runtime_names_no_standard_tool() {
    let registry = Registry::linked().expect("no two tools share a name");
    let standard: Vec<&str> = registry
        .definitions()
        .filter(|definition| definition.place.is_some_and(|place| place.package == "tool-std"))
        .map(|definition| definition.name.as_str())
        // The words alone are what a log, a shell and a skill are called.
        .filter(|name| !["log", "shell", "skill"].contains(name))
        .collect();
    assert!(standard.len() >= 3);
    for folder in published_sources().iter().filter(|folder| !folder.starts_with("tool-std")) {
        for path in sources(&root().join(folder)).into_iter().chain(console_page(folder)) {
            let text = read(&path);
            let words: BTreeSet<&str> = text.split(|c| !is_word(c)).collect();
            let named: Vec<_> = standard.iter().filter(|name| words.contains(*name)).collect();
            assert!(named.is_empty(), "{}: {named:?}", path.display());
        }
    }
}

#[test]
fn standard_tools_know_nothing_of_their_callers() {
    for path in sources(&root().join("tool-std/src")).iter().filter(|path| !is_test(path)) {
        let code = code(path);
        let world = if path.ends_with("host_files.rs") { &[] } else { NOT_THE_WORLD };
        // These are not tools: the program sets a pipeline up, and the engine of reactions reads its events.
        let is_caller = path.ends_with("src/main.rs") || path.ends_with("reactions/engine.rs");
        let callers = if is_caller { &[] } else { NOT_FOR_TOOLS };
        for &word in callers.iter().chain(world) {
            let starts_a_word = |at: usize| !code[..at].ends_with(is_word);
            let is_named = code.match_indices(word).any(|(at, _)| starts_a_word(at));
            assert!(!is_named, "{} names `{word}`", path.display());
        }
    }
}

#[test]
fn every_file_of_tests_is_declared() {
    let folder = root().join("tests/it");
    for path in sources(&folder) {
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let parent = path.parent().expect("it is inside");
        let index = match name.as_str() {
            "main" => continue,
            "mod" => parent.parent().expect("it is inside").join("main.rs"),
            _ if parent == folder => folder.join("main.rs"),
            _ => parent.join("mod.rs"),
        };
        let module = if name == "mod" {
            parent.file_name().expect("it has a name").to_string_lossy().into_owned()
        } else {
            name
        };
        assert!(read(&index).contains(&format!("mod {module};")), "{} is not run", path.display());
    }
}

#[test]
fn every_mistake_has_its_message_and_every_message_its_mistake() {
    let fail = root().join("tests/ui/fail");
    let cases = sources(&fail);
    assert!(cases.len() >= 50, "{} compile-fail cases", cases.len());
    for path in &cases {
        assert!(path.with_extension("stderr").exists(), "{} has no .stderr", path.display());
    }
    for entry in walk(&fail) {
        if entry.extension().is_some_and(|end| end == "stderr") {
            assert!(entry.with_extension("rs").exists(), "{} has no case", entry.display());
        }
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").path())
        .flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] })
        .collect()
}

// All crates of the SDK are one release.
#[test]
fn crates_of_the_sdk_are_pinned_to_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    let manifest = read(&root().join("Cargo.toml"));
    let mut count = 0;
    for package in published_packages() {
        let own = read(&root().join(&package).join("Cargo.toml"));
        let name = own.split("name = \"").nth(1).and_then(|it| it.split('"').next());
        let name = name.expect("it has a name");
        if name != "tool-sdk" && name.starts_with("tool-sdk") {
            let pin = format!("{name} = {{ path = \"{package}\", version = \"={version}\" }}");
            assert!(manifest.contains(&pin), "expected {pin}");
            count += 1;
        }
    }
    assert!(count >= 7, "{count}");
}

#[test]
fn unsafe_code_is_in_the_process_crate_alone() {
    for folder in published_sources() {
        let file = root().join(&folder).join("lib.rs");
        let is_forbidden = read(&file).contains("#![forbid(unsafe_code)]");
        assert_eq!(is_forbidden, folder != "tool-sdk/process/src", "{}", file.display());
    }
}

#[test]
fn the_changelog_has_the_current_version() {
    let text = read(&root().join("CHANGELOG.md"));
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.contains("## [Unreleased]"));
    assert!(text.contains(&format!("## [{version}]")), "no entry for {version}");
}

#[test]
fn source_files_say_what_they_are_for() {
    let folders = published_sources().into_iter().chain(["tests/it".into(), "examples".into()]);
    for folder in folders {
        for path in sources(&root().join(folder)) {
            assert!(read(&path).starts_with("//!"), "{} has no head", path.display());
        }
    }
}

/// The features that a package declares, each with the comment above it.
fn features(package: &str) -> Vec<(String, String)> {
    let manifest = read(&root().join(package).join("Cargo.toml"));
    let section = manifest.split("[features]\n").nth(1).expect("it has features");
    let section = section.split("\n[").next().unwrap_or_default();
    let mut comment = String::new();
    let mut found = Vec::new();
    for line in section.lines() {
        if let Some(words) = line.strip_prefix("# ") {
            comment = words.to_owned();
        } else if let Some((name, parts)) = line.split_once(" = ") {
            let words = std::mem::take(&mut comment);
            let words = if name == "default" { format!("`{parts}`") } else { words };
            assert!(!words.is_empty(), "the feature `{name}` of {package} has no comment");
            found.push((name.to_owned(), words));
        }
    }
    found
}

#[test]
fn newcomers_read_about_every_feature() {
    for file in ["tool-sdk/README.md", "tool-sdk/src/lib.rs"] {
        let text = read(&root().join(file));
        for (name, _) in features("tool-sdk").iter().filter(|(name, _)| name != "default") {
            assert!(text.contains(&format!("`{name}`")), "{file} does not name `{name}`");
        }
    }
}

/// Compares a generated file with what it should be; `TOOL_SDK_BLESS=1` writes it.
#[track_caller]
fn generated(file: &str, wanted: &str) {
    let path = root().join(file);
    if std::env::var_os("TOOL_SDK_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().expect("it is inside")).expect("the folder is made");
        fs::write(&path, wanted).expect("the file is written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "{file} is out of date; run the tests with TOOL_SDK_BLESS=1");
}

#[test]
fn the_reference_of_tools_is_current() {
    let registry = Registry::linked().expect("no two tools share a name");
    let mut text = String::from(
        "# Standard tools\n\nGenerated from the definitions; the tests keep it current.\n",
    );
    for definition in registry.definitions() {
        if definition.place.is_none_or(|place| place.package != "tool-std") {
            continue;
        }
        let _ = write!(text, "\n## {}\n\n{}\n\n", definition.name, definition.description);
        let _ = writeln!(text, "Risk: {}.", definition.risk.class.as_str());
        text.push_str("\n| parameter | type | meaning |\n| --- | --- | --- |\n");
        for (name, schema) in definition.parameters.properties() {
            let required = if definition.parameters.is_required(name) { "" } else { "?" };
            let meaning = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
            let _ =
                writeln!(text, "| `{name}`{required} | {kind} | {} |", meaning.replace('\n', " "));
        }
        for example in &definition.examples {
            let _ = write!(text, "\n```json\n{example}\n```\n");
        }
    }
    generated("docs/reference/tools.md", &text);
}

#[test]
fn the_reference_of_features_is_current() {
    let mut text =
        String::from("# Features\n\nGenerated from the manifests; the tests keep it current.\n");
    for package in ["tool-sdk", "tool-std"] {
        let _ = write!(text, "\n## {package}\n\n| feature | brings |\n| --- | --- |\n");
        for (name, words) in features(package) {
            let _ = writeln!(text, "| `{name}` | {words} |");
        }
    }
    generated("docs/reference/features.md", &text);
}
