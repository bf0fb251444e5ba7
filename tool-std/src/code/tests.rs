//! The code tools, called like by a host: on real folders, through the whole pipeline.

#![cfg(feature = "code")]

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_sdk::{Call, ErrorKind, Outcome, Pipeline, Registry, Rule, Session, Workspace, tools};
use tool_std_code::{SourceLanguage, SymbolKind};

use super::*;

const SHAPES: &str = "\
pub struct Circle {
    radius: f64,
}

impl Circle {
    pub fn area(&self) -> f64 {
        scale_number(self.radius)
    }
}

pub fn scale_number(by: f64) -> f64 {
    by * 2.0
}
";

const MAIN: &str = "\
use shapes::{Circle, scale_number};

fn main() {
    let area = scale_number(1.0); // scale_number
    println!(\"{area} scale_number\");
}
";

const FILES: &[(&str, &str)] = &[
    ("src/shapes.rs", SHAPES),
    ("src/main.rs", MAIN),
    ("tools/draw.py", "class Circle:\n    def area(self):\n        return 1\n"),
    ("notes.txt", "scale_number\n"),
    (".gitignore", "generated\n"),
    ("generated/gen.rs", "pub fn scale_number() {}\n"),
];

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

async fn call_under(folder: &TempDir, rules: &[&str], tool: &str, args: Value) -> Outcome {
    let registry = Registry::builder().add(tools![
        search_code,
        find_definition,
        find_references,
        list_symbols,
        get_repo_map
    ]);
    let pipeline = Pipeline::new(registry.build().unwrap())
        .rules(rules.iter().map(|rule| rule.parse::<Rule>().unwrap()));
    let session = Session::new("test").with_service(Workspace::open([folder.path()]).unwrap());
    pipeline.call(&session, Call::new(tool.to_owned(), args)).await
}

async fn text(folder: &TempDir, tool: &str, args: Value) -> String {
    let outcome = call_under(folder, &[], tool, args).await;
    outcome.result.unwrap_or_else(|error| panic!("{error:?}")).into_text()
}

async fn error(folder: &TempDir, tool: &str, args: Value) -> (ErrorKind, String) {
    let error = call_under(folder, &[], tool, args).await.result.unwrap_err();
    (error.kind(), error.to_string())
}

// F160: on a small repository the definition of a symbol is found.
#[tokio::test]
async fn finds_definitions_by_name() {
    let folder = folder(FILES);
    let found = text(&folder, "find_definition", json!({ "name": "scale_number" })).await;
    let expected = "\
Found 1 definition of `scale_number`, by name.
src/shapes.rs:
  11-13: function scale_number: pub fn scale_number(by: f64) -> f64";
    assert_eq!(found, expected);

    let found = text(&folder, "find_definition", json!({ "name": "area" })).await;
    assert!(found.starts_with("Found 2 definitions of `area`, by name.\n"), "{found}");
    assert!(
        found.ends_with("tools/draw.py:\n  2-3: method Circle.area: def area(self)"),
        "{found}"
    );
    let found =
        text(&folder, "find_definition", json!({ "name": "Circle::area", "include": "*.rs" }));
    assert!(found.await.starts_with("Found 1 definition of `Circle::area`, by name.\n"));
    let found = text(&folder, "find_definition", json!({ "name": "Circle", "kind": "struct" }));
    assert!(found.await.ends_with("src/shapes.rs:\n  1-3: struct Circle: pub struct Circle"));
    let found = text(&folder, "find_definition", json!({ "name": "circle" })).await;
    let expected = "No definitions of `circle`, by name. Use `search_code` to find similar names.";
    assert_eq!(found, expected);
}

// F160: references are identifiers, not words in comments and strings.
#[tokio::test]
async fn finds_references_by_name() {
    let folder = folder(FILES);
    let found = text(&folder, "find_references", json!({ "name": "scale_number" })).await;
    let expected = "\
Found 3 references to `scale_number`, by name; 1 definition of it found.
src/main.rs:
  1: use shapes::{Circle, scale_number};
  4: let area = scale_number(1.0); // scale_number  (in function main)
src/shapes.rs:
  7: scale_number(self.radius)  (in method Circle::area)";
    assert_eq!(found, expected);
    let args = json!({ "name": "scale_number", "role": "other" });
    let found = text(&folder, "find_references", args).await;
    assert!(found.starts_with("Found 1 reference to "), "{found}");
    let args = json!({ "name": "scale_number", "limit": 1 });
    let found = text(&folder, "find_references", args).await;
    let end = "(Showing 1 of 3 references. Narrow the search or raise `limit`.)";
    assert!(found.ends_with(end), "{found}");
}

// F160: code is searched by symbol, by kind, by text and by structure.
#[tokio::test]
async fn searches_code() {
    let folder = folder(FILES);
    let found = text(&folder, "search_code", json!({ "query": "circ" })).await;
    assert!(found.starts_with("Found 2 symbols for `circ`.\nsrc/shapes.rs:\n  1-3: struct Circle"));
    let found = text(&folder, "search_code", json!({ "query": "*", "kind": "function" })).await;
    let expected = "\
Found 2 symbols for `*`.
src/main.rs:
  3-6: function main: fn main()
src/shapes.rs:
  11-13: function scale_number: pub fn scale_number(by: f64) -> f64";
    assert_eq!(found, expected);

    let args = json!({ "query": "scale_number", "mode": "text", "kind": "method" });
    let found = text(&folder, "search_code", args).await;
    let expected = "\
Found 1 line with `scale_number` in source files.
src/shapes.rs:
  7: scale_number(self.radius)  (in method Circle::area)";
    assert_eq!(found, expected);

    let query = "(class_definition name: (identifier) @class)";
    let args = json!({ "query": query, "mode": "structure", "language": "python" });
    let found = text(&folder, "search_code", args).await;
    assert_eq!(found, "Found 1 match of the query.\ntools/draw.py:\n  1: @class Circle");
}

#[tokio::test]
async fn bad_queries_are_explained() {
    let folder = folder(FILES);
    let args = json!({ "query": "(x) @x", "mode": "structure" });
    let (kind, message) = error(&folder, "search_code", args).await;
    assert_eq!(kind, ErrorKind::InvalidArgs);
    assert!(
        message.contains("`language`") && message.contains("\"language\": \"rust\""),
        "{message}"
    );
    let args = json!({ "query": "(x) @x", "mode": "structure", "language": "rust" });
    let (kind, message) = error(&folder, "search_code", args).await;
    assert_eq!(kind, ErrorKind::InvalidArgs);
    assert!(message.contains("Rust's grammar has no node `x`"), "{message}");
}

#[tokio::test]
async fn lists_the_symbols_of_a_file() {
    let folder = folder(FILES);
    let found = text(&folder, "list_symbols", json!({ "path": "src/shapes.rs" })).await;
    let expected = "\
src/shapes.rs (rust): 4 symbols.
  1-3: pub struct Circle
    2: radius: f64
  6-8: pub fn area(&self) -> f64
  11-13: pub fn scale_number(by: f64) -> f64";
    assert_eq!(found, expected);
    for (path, expected) in [
        ("notes.txt", "`notes.txt` has no known source language"),
        ("src", "`src` is a folder"),
        ("src/shape.rs", "did you mean `src/shapes.rs`?"),
    ] {
        let (_, message) = error(&folder, "list_symbols", json!({ "path": path })).await;
        assert!(message.contains(expected), "{message}");
    }
}

// F160: the map has what is referred to most first, within its budget.
#[tokio::test]
async fn maps_a_repository() {
    let folder = folder(FILES);
    let found = text(&folder, "get_repo_map", json!({})).await;
    assert!(found.starts_with("6 of 6 definitions in 3 of 3 source files, "), "{found}");
    assert!(found.contains("\nsrc/shapes.rs:\n  1: pub struct Circle\n"), "{found}");
    assert!(found.contains("\n  Circle:\n    6: pub fn area(&self) -> f64\n"), "{found}");
    let many: Vec<_> = (0..200)
        .map(|number| (format!("f{number}.rs"), format!("pub fn function_{number}() {{}}\n")))
        .collect();
    let many: Vec<_> = many.iter().map(|(path, text)| (&**path, &**text)).collect();
    let args = json!({ "max_tokens": 128 });
    let found = text(&self::folder(&many), "get_repo_map", args).await;
    assert!(found.len() <= 4 * 128 && found.contains(" of 200 definitions in "), "{found}");
}

// F145, F146: what the rules hide is neither found nor counted; a denied file is not read.
#[tokio::test]
async fn denied_files_are_not_found() {
    let folder = folder(FILES);
    let deny = &["deny read(src/shapes.rs)"][..];
    for (tool, args) in [
        ("find_definition", json!({ "name": "scale_number" })),
        ("search_code", json!({ "query": "scale" })),
        ("search_code", json!({ "query": "by * 2.0", "mode": "text" })),
        ("get_repo_map", json!({})),
        ("find_references", json!({ "name": "radius" })),
    ] {
        let found = call_under(&folder, deny, tool, args).await.result.unwrap().into_text();
        assert!(!found.contains("shapes.rs"), "{tool}: {found}");
        assert!(!found.contains("left out"), "{tool}: {found}");
    }
    let args = json!({ "path": "src/shapes.rs" });
    let error = call_under(&folder, deny, "list_symbols", args).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
}

// Lines and matches are collected up to a limit, and the result says so.
#[tokio::test]
async fn what_is_not_collected_is_told() {
    let (lines, calls) = ("// hit\n".repeat(12_000), "f()\n".repeat(2001));
    let folder = folder(&[("a.rs", &lines), ("b.rs", &lines), ("c.py", &calls)]);
    let args = json!({ "query": "hit", "mode": "text", "limit": 1 });
    let found = text(&folder, "search_code", args).await;
    assert!(
        found.starts_with("Found at least 20000 lines with `hit` in source files.\n"),
        "{found}"
    );
    assert!(found.contains("(Showing 1 of at least 20000 lines."), "{found}");
    let query = json!({ "query": "(call) @call", "mode": "structure", "language": "python" });
    let found = text(&folder, "search_code", query).await;
    assert!(found.starts_with("Found at least 2000 matches of the query.\n"), "{found}");
}

#[tokio::test]
async fn large_files_are_left_out_and_told() {
    let large = format!("fn target() {{}}\n//{}\n", " ".repeat(1 << 20));
    let folder = folder(&[("large.rs", &large), ("small.rs", "fn target() {}\n")]);
    let found = text(&folder, "find_definition", json!({ "name": "target" })).await;
    assert!(found.ends_with("\n(1 file over 1 MiB left out.)"), "{found}");
    let (_, message) = error(&folder, "list_symbols", json!({ "path": "large.rs" })).await;
    assert!(message.contains("`large.rs` is over 1 MiB"), "{message}");
}

#[test]
fn the_choices_are_the_kinds_and_languages() {
    let registry = Registry::builder().add(tools![search_code, find_definition, list_symbols]);
    let registry = registry.build().unwrap();
    let choices = |tool: &str, argument: &str| {
        let definition = registry.definitions().find(|it| it.name.as_str() == tool).unwrap();
        let schema = definition.parameters.to_value();
        let choices = schema["properties"][argument]["enum"].as_array().unwrap().clone();
        choices.into_iter().filter_map(|it| it.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let kinds = SymbolKind::ALL.map(SymbolKind::name);
    for tool in ["search_code", "find_definition", "list_symbols"] {
        assert_eq!(choices(tool, "kind"), kinds, "{tool}");
    }
    assert_eq!(choices("search_code", "language"), SourceLanguage::ALL.map(SourceLanguage::name));
}
