//! Tests of `mcp pack`: the files, their schemas, and what is refused.

use std::io::{Cursor, Read as _};
use std::path::PathBuf;

use serde_json::{Value, json};
use zip::ZipArchive;

use super::ListedTool;
use crate::App;
use crate::test_support::{CliOutput, TestCli, test_registry};

const MANIFEST_SCHEMA: &str =
    include_str!("../../../tests/fixtures/mcpb-manifest/mcpb-manifest-v0.3.schema.json");
const NEWER_MANIFEST_SCHEMA: &str =
    include_str!("../../../tests/fixtures/mcpb-manifest/mcpb-manifest-v0.4.schema.json");
const REGISTRY_SCHEMA: &str =
    include_str!("../../../tests/fixtures/mcp-registry/server.schema.json");
const RELEASE: &str = "https://github.com/ada/shelf/releases/download/v1.2.3/toy.mcpb";

/// A command line whose program is a file with the signature of a program for Linux.
struct PackCli(TestCli);

impl PackCli {
    fn new() -> Self {
        let mut cli = TestCli::default();
        cli.program_path = Some(PathBuf::from(cli.write_text("bin/toy", "\x7fELF and more")));
        Self(cli)
    }

    fn pack(&self, args: &[&str]) -> CliOutput {
        let app = App::new(test_registry()).version("1.2.3");
        self.0.run_app(&app, &[&["mcp", "pack"], args].concat())
    }

    #[track_caller]
    fn check_packed(&self, args: &[&str]) {
        let ran = self.pack(args);
        assert_eq!((ran.code, &*ran.out), (0, ""), "{args:?}: {}", ran.err);
    }

    #[track_caller]
    fn check_refused(&self, args: &[&str], words: &str) {
        let ran = self.pack(args);
        assert_eq!((ran.code, &*ran.out), (2, ""), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
        assert!(!self.path("toy.mcpb").exists(), "{args:?}");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.folder.path().join(name)
    }

    fn bundle(&self) -> ZipArchive<Cursor<Vec<u8>>> {
        let bytes = std::fs::read(self.path("toy.mcpb")).unwrap();
        ZipArchive::new(Cursor::new(bytes)).unwrap()
    }

    fn manifest(&self) -> Value {
        serde_json::from_slice(&read_entry(&mut self.bundle(), "manifest.json")).unwrap()
    }
}

fn read_entry(bundle: &mut ZipArchive<Cursor<Vec<u8>>>, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    bundle.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[track_caller]
fn check_schema(schema: &str, value: &Value) {
    let schema = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn a_bundle_holds_the_program_and_a_valid_manifest() {
    let cli = PackCli::new();
    cli.check_packed(&["--author", "Ada", "--", "--mode", "ask"]);
    let mut bundle = cli.bundle();
    let names: Vec<String> = bundle.file_names().map(|name| name.unwrap().into_owned()).collect();
    assert_eq!(names, ["manifest.json", "server/toy"]);
    assert_eq!(read_entry(&mut bundle, "server/toy"), b"\x7fELF and more");
    assert_eq!(bundle.by_name("server/toy").unwrap().unix_mode().unwrap() & 0o777, 0o755);
    let manifest = cli.manifest();
    check_schema(MANIFEST_SCHEMA, &manifest);
    assert_eq!((&manifest["name"], &manifest["version"]), (&json!("toy"), &json!("1.2.3")));
    assert_eq!(manifest["description"], "The tools echo, fail, kinds");
    assert_eq!(manifest["compatibility"]["platforms"], json!(["linux"]));
    assert_eq!(manifest["server"]["entry_point"], "server/toy");
    let run = &manifest["server"]["mcp_config"];
    assert_eq!(run["command"], "${__dirname}/server/toy");
    let args = ["--root", "${user_config.folder}", "serve", "mcp", "--mode", "ask"];
    assert_eq!(run["args"], json!(args));
    assert_eq!(manifest["tools"][0]["name"], "echo");
    assert!(!cli.path("server.json").exists());
    // Apart from its number, the manifest is valid in the next version of the format, too.
    let mut newer = manifest;
    newer["manifest_version"] = "0.4".into();
    check_schema(NEWER_MANIFEST_SCHEMA, &newer);
}

#[test]
fn every_option_is_in_the_manifest_and_the_entry() {
    let cli = PackCli::new();
    let icon = cli.path("icon.png");
    std::fs::write(&icon, b"\x89PNG\r\n\x1a\n...").unwrap();
    cli.check_packed(&[
        "--author",
        "Ada",
        "--name",
        "toy",
        "--title",
        "Toy box",
        "--description",
        "Plays.",
        "--bundle-version",
        "2.0.0-rc.1",
        "--license",
        "MIT",
        "--icon",
        icon.to_str().unwrap(),
        "--no-folder",
        "--download-url",
        RELEASE,
    ]);
    let manifest = cli.manifest();
    check_schema(MANIFEST_SCHEMA, &manifest);
    for (key, expected) in [
        ("display_name", json!("Toy box")),
        ("description", json!("Plays.")),
        ("version", json!("2.0.0-rc.1")),
        ("license", json!("MIT")),
        ("icon", json!("icon.png")),
        ("repository", json!({ "type": "git", "url": "https://github.com/ada/shelf" })),
        ("user_config", Value::Null),
    ] {
        assert_eq!(manifest[key], expected, "{key}");
    }
    assert!(read_entry(&mut cli.bundle(), "icon.png").starts_with(b"\x89PNG"));
    assert_eq!(manifest["server"]["mcp_config"]["args"][1], "${__dirname}");

    let entry = std::fs::read(cli.path("server.json")).unwrap();
    let entry: Value = serde_json::from_slice(&entry).unwrap();
    check_schema(REGISTRY_SCHEMA, &entry);
    assert_eq!(entry["name"], "io.github.ada/toy");
    let package = &entry["packages"][0];
    assert_eq!(package["identifier"], RELEASE);
    let bundle = std::fs::read(cli.path("toy.mcpb")).unwrap();
    let hash: String =
        hmac_sha256::Hash::hash(&bundle).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(package["fileSha256"], json!(hash));
}

#[test]
fn the_same_program_makes_the_same_bytes() {
    let cli = PackCli::new();
    cli.check_packed(&["--author", "Ada", "--output", "a"]);
    cli.check_packed(&["--author", "Ada", "--output", "b"]);
    let read = |folder: &str| std::fs::read(cli.path(folder).join("toy.mcpb")).unwrap();
    assert_eq!(read("a"), read("b"));
}

#[test]
fn existing_files_are_only_replaced_on_request() {
    let cli = PackCli::new();
    cli.0.write_text("server.json", "mine");
    cli.check_refused(&["--author", "Ada", "--download-url", RELEASE], "exists already");
    assert_eq!(std::fs::read(cli.path("server.json")).unwrap(), b"mine");
    cli.check_packed(&["--author", "Ada", "--download-url", RELEASE, "--force"]);
    assert_ne!(std::fs::read(cli.path("server.json")).unwrap(), b"mine");
}

#[test]
fn rejects_what_makes_no_valid_bundle() {
    let cli = PackCli::new();
    let script = cli.0.write_text("script", "#!/bin/sh\n");
    let text = cli.0.write_text("icon.txt", "no image");
    for (args, words) in [
        (&[][..], "--author"),
        (&["--author", " "], "`--author` is empty"),
        (&["--author", "Ada", "--description", ""], "`--description` is empty"),
        (&["--author", "Ada", "--name", "a b"], "is not a name for a bundle"),
        (&["--author", "Ada", "--name", "../toy"], "is not a name for a bundle"),
        (&["--author", "Ada", "--bundle-version", "^1.0"], "is not a version such as"),
        (&["--author", "Ada", "--bundle-version", "latest"], "is not a version such as"),
        (&["--author", "Ada", "--icon", &text], "is not a PNG image"),
        (&["--author", "Ada", "--icon", "missing.png"], "cannot read"),
        (&["--author", "Ada", "--server-name", "com.example/toy"], "--download-url"),
        (&["--author", "Ada", "--download-url", "http://example.com/toy.mcpb"], "download from"),
        (&["missing", "--author", "Ada"], "cannot read"),
        (&[&script, "--author", "Ada"], "is not a compiled program"),
    ] {
        cli.check_refused(args, words);
    }
    let unversioned = cli.0.run_app(&App::new(test_registry()), &["mcp", "pack", "--author", "A"]);
    assert!(unversioned.err.contains("--bundle-version"), "{}", unversioned.err);
}

/// A program that does not run is an error with the cause.
#[cfg(unix)]
#[test]
fn a_program_with_another_command_line_is_refused() {
    let cli = PackCli::new();
    let broken = cli.0.write_text("broken", "\x7fELF");
    let ran = cli.pack(&[&broken, "--author", "Ada"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("it does not start"), "{}", ran.err);
    // A compiled program that knows no `list --json`.
    let other = std::env::current_exe().unwrap();
    let ran = cli.pack(&[other.to_str().unwrap(), "--author", "Ada"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("`--config /dev/null list --json` ended with"), "{}", ran.err);
}

#[test]
fn the_default_description_names_some_of_the_tools() {
    let tools = |count: usize| -> Vec<ListedTool> {
        let tool = |number| ListedTool { name: format!("t{number}"), description: String::new() };
        (0..count).map(tool).collect()
    };
    assert_eq!(super::default_description(&tools(2)), "The tools t0, t1");
    assert_eq!(super::default_description(&tools(5)), "The tools t0, t1, t2 and 2 more");
}
