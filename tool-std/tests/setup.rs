//! The program is set up for MCP clients, as a user does it in the first hour.

#![cfg(all(feature = "application", unix))]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tool-std");

/// The home folder of a new user, with a project in it.
struct HomeFolder(tempfile::TempDir);

impl HomeFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        fs::create_dir(folder.path().join("project")).expect("there is room");
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().expect("it exists")
    }

    fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    /// Returns the program in this folder, with no other variables than HOME.
    fn program(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(folder).env_clear().env("HOME", self.path());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.run_in(&self.project(), args)
    }

    fn run_in(&self, folder: &Path, args: &[&str]) -> Output {
        self.program(folder, args).stdin(Stdio::null()).output().expect("the program runs")
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts the server that a client's entry names, and returns the answer to `initialize`.
fn start_server(home: &HomeFolder, entry: &Value) -> Value {
    start_program(home, entry, &json!("2025-06-18"))
}

/// Starts what a client's entry says, and returns the answer to `initialize` with this version.
fn start_program(home: &HomeFolder, entry: &Value, version: &Value) -> Value {
    let args = entry["args"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let mut server = Command::new(entry["command"].as_str().expect("a command"))
        .args(args)
        // Desktop clients start servers here.
        .current_dir("/")
        .env_clear()
        .env("HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" },
    } });
    writeln!(server.stdin.take().expect("a pipe"), "{initialize}").expect("it reads");
    let output = server.wait_with_output().expect("it ends");
    serde_json::from_str(out(&output).lines().next().expect("an answer")).expect("JSON")
}

/// Each client with its file below the home folder, and the key of its servers.
const CLIENTS: [(&str, &str, &str); 7] = [
    ("claude-code", ".claude.json", "mcpServers"),
    ("claude-desktop", "Claude/claude_desktop_config.json", "mcpServers"),
    ("vscode", "Code/User/mcp.json", "servers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("codex", ".codex/config.toml", "mcp_servers"),
    ("gemini", ".gemini/settings.json", "mcpServers"),
    ("zed", "zed/settings.json", "context_servers"),
];

/// Returns the path of a client's file on this system.
fn client_file(home: &HomeFolder, client: &str, name: &str) -> PathBuf {
    match client {
        "claude-desktop" | "vscode" if cfg!(target_os = "macos") => {
            home.path().join("Library/Application Support").join(name)
        }
        "claude-desktop" | "vscode" | "zed" => home.path().join(".config").join(name),
        _ => home.path().join(name),
    }
}

/// Parses a file that a client reads.
fn read_servers(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    match path.extension().is_some_and(|end| end == "toml") {
        true => serde_json::to_value(toml::from_str::<toml::Table>(&text).expect("TOML")),
        false => serde_json::from_str(&text),
    }
    .expect("the file is valid")
}

#[test]
fn each_client_starts_the_server_that_setup_wrote() {
    let home = HomeFolder::new();
    for (client, name, key) in CLIENTS {
        let wrote = home.run(&["setup", client, "--write", "--deny", "read(.env)"]);
        assert_eq!((wrote.status.code(), &*out(&wrote)), (Some(0), ""), "{}", err(&wrote));
        let path = client_file(&home, client, name);
        let entry = &read_servers(&path)[key]["tool-std"];
        let project = home.project();
        let expected = ["--root", project.to_str().expect("UTF-8"), "--deny", "read(.env)"];
        assert_eq!(entry["args"], json!([&expected[..], &["serve", "mcp"]].concat()), "{client}");
        assert_eq!(entry["command"], PROGRAM, "{client}");
        let answer = &start_server(&home, entry)["result"];
        assert_eq!(answer["serverInfo"]["name"], "tool-std");
        // Clients see what restricts the tools, also where nothing does.
        let instructions = answer["instructions"].as_str().expect("a text");
        assert!(instructions.contains(project.to_str().expect("UTF-8")), "{instructions}");
        assert!(instructions.contains("Sandbox of commands: off"), "{instructions}");
        // Nothing is written twice.
        let again = home.run(&["setup", client, "--write", "--deny", "read(.env)"]);
        assert!(err(&again).contains("is already in"), "{client}: {}", err(&again));
        assert!(!path.with_extension("json.bak").exists());
    }
}

#[test]
fn without_write_the_configuration_is_printed() {
    let home = HomeFolder::new();
    for (client, name, key) in CLIENTS {
        let printed = home.run(&["setup", client, "--name", "files"]);
        assert_eq!(printed.status.code(), Some(0), "{}", err(&printed));
        let path = client_file(&home, client, name);
        assert!(!path.exists(), "{client}");
        assert!(err(&printed).contains(path.to_str().expect("UTF-8")), "{}", err(&printed));
        fs::create_dir_all(path.parent().expect("a folder")).expect("there is room");
        fs::write(&path, out(&printed)).expect("there is room");
        assert_eq!(read_servers(&path)[key]["files"]["command"], PROGRAM, "{client}");
    }
}

#[test]
fn the_rest_of_a_file_is_kept_and_the_old_one_beside_it() {
    let home = HomeFolder::new();
    let json = "{\r\n  // Mine.\r\n  \"theme\": \"dark\",\r\n  \"context_servers\": {\r\n    \"tool-std\": {\"command\": \"old\", \"env\": {\"K\": \"v\"}},\r\n  },\r\n}\r\n";
    let toml = "# Mine.\nmodel = 'x' # really\n\n[mcp_servers.tool-std]\ncommand = \"old\"\nstartup_timeout_sec = 9\n\n# Theirs.\n[mcp_servers.other]\ncommand = \"y\"\n";
    for (client, name, text, kept) in [
        ("zed", "zed/settings.json", json, ["// Mine.\r\n", "\"env\": {\"K\": \"v\"}"]),
        (
            "codex",
            ".codex/config.toml",
            toml,
            ["model = 'x' # really\n", "startup_timeout_sec = 9"],
        ),
    ] {
        let path = client_file(&home, client, name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("there is room");
        fs::write(&path, text).expect("there is room");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is ours");
        let wrote = home.run(&["setup", client, "--write"]);
        assert_eq!(wrote.status.code(), Some(0), "{}", err(&wrote));
        let new = fs::read_to_string(&path).expect("it is there");
        assert!(kept.iter().all(|kept| new.contains(kept)), "{new}");
        assert!(new.contains(PROGRAM) && !new.contains("\"old\""), "{new}");
        let file_name = path.file_name().expect("a name").to_str().expect("UTF-8");
        let copy = path.with_file_name(format!("{file_name}.bak"));
        assert_eq!(fs::read_to_string(&copy).expect("it is there"), text);
        for file in [&path, &copy] {
            let mode = fs::metadata(file).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o640);
        }
        let entries = fs::read_dir(path.parent().expect("a folder")).expect("it is there").count();
        assert_eq!(entries, 2, "no temporary file stays");
    }
}

#[test]
fn a_broken_file_is_an_error_and_left_alone() {
    let home = HomeFolder::new();
    for (client, name, text, place) in [
        ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": oops\n}\n", "mcp.json:2:"),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": []}", "is not an object"),
        ("codex", ".codex/config.toml", "model = \n", "config.toml:1:"),
        ("codex", ".codex/config.toml", "mcp_servers = 3\n", "is not a table"),
    ] {
        let path = client_file(&home, client, name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("there is room");
        fs::write(&path, text).expect("there is room");
        let wrote = home.run(&["setup", client, "--write"]);
        assert_eq!((wrote.status.code(), &*out(&wrote)), (Some(2), ""), "{text}");
        assert!(err(&wrote).contains(place), "{text}: {}", err(&wrote));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        let entries = fs::read_dir(path.parent().expect("a folder")).expect("it is there").count();
        assert_eq!(entries, 1, "{text}");
    }
}

#[test]
fn a_project_has_its_own_file() {
    let home = HomeFolder::new();
    for (client, name) in [
        ("claude-code", ".mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("codex", ".codex/config.toml"),
        ("gemini", ".gemini/settings.json"),
        ("zed", ".zed/settings.json"),
    ] {
        let wrote = home.run(&["setup", client, "--write", "--project"]);
        assert_eq!(wrote.status.code(), Some(0), "{}", err(&wrote));
        assert!(home.project().join(name).exists(), "{client}");
    }
    let none = home.run(&["setup", "claude-desktop", "--project"]);
    assert_eq!(none.status.code(), Some(2), "{}", err(&none));
}

#[test]
fn wrong_names_are_refused_with_the_right_ones() {
    let home = HomeFolder::new();
    let wrong = home.run(&["setup", "claude"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("claude-code"), "{}", err(&wrong));
    let wrong = home.run(&["setup", "cursor", "--name", "a b"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("is not a name for a server"), "{}", err(&wrong));
}

// Desktop clients start servers in `/` or in the home folder.
// Zed starts the agent, whose root comes with each session.
#[test]
fn zed_is_set_up_for_the_agent() {
    let home = HomeFolder::new();
    let wrote = home.run(&["setup", "zed", "--acp", "--write", "--deny", "read(.env)"]);
    assert_eq!(wrote.status.code(), Some(0), "{}", err(&wrote));
    let text = fs::read_to_string(home.path().join(".config/zed/settings.json"));
    let settings: Value = serde_json::from_str(&text.expect("it was written")).expect("JSON");
    let entry = &settings["agent_servers"]["tool-std"];
    let args = json!(["--deny", "read(.env)", "serve", "acp"]);
    assert_eq!((&entry["type"], &entry["args"]), (&json!("custom"), &args), "{settings}");
    let answer = start_program(&home, entry, &json!(1));
    assert_eq!(answer["result"]["agentInfo"]["name"], "tool-std", "{answer}");
    let other = home.run(&["setup", "cursor", "--acp"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(err(&other).contains("configures Zed"), "{}", err(&other));
}

#[test]
fn the_home_folder_is_only_served_if_an_option_names_it() {
    let home = HomeFolder::new();
    for folder in [home.path(), home.path().join(".."), "/".into()] {
        for command in [&["serve", "mcp"][..], &["setup", "cursor"]] {
            let refused = home.run_in(&folder, command);
            assert_eq!(refused.status.code(), Some(2), "{folder:?} {command:?}");
            assert!(err(&refused).contains("--root"), "{}", err(&refused));
        }
    }
    let home_root = home.path();
    let named = ["--root", home_root.to_str().expect("UTF-8"), "setup", "cursor"];
    assert_eq!(home.run_in(&home_root, &named).status.code(), Some(0));
    assert_eq!(home.run(&["setup", "cursor"]).status.code(), Some(0));
}
