//! Configured MCP servers in the sandbox.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use super::{Machine, run_keeping};

/// A server whose tool writes into the folder in which it is started, and reports the result.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *server/discover*) say '"error":{"code":-32601,"message":"no"}' ;;
    *tools/list*) say '"result":{"tools":[{"name":"put","inputSchema":{"type":"object"}}]}' ;;
    *tools/call*) if { echo x >"$1/made"; } 2>/dev/null; then how=wrote; else how=refused; fi
      say '"result":{"content":[{"type":"text","text":"'$how'"}]}' ;;
  esac
done
"#;

/// A workspace, an outside folder, and a configuration of one server. Its pins are kept apart from
/// those of other tests, whose servers have the same name.
struct Shelf {
    root: tempfile::TempDir,
    outside: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Self {
        // Not in a folder for temporary files, which is writable.
        let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let (root, outside, state) = (folder(), folder(), folder());
        fs::write(outside.path().join("server.sh"), SERVER).expect("it is written");
        Self { root, outside, state }
    }

    fn config(&self) -> PathBuf {
        self.outside.path().join("config.toml")
    }

    /// Returns the tool's report of writing into `folder`, with these keys of the server.
    fn put(&self, folder: &Path, keys: &str) -> Output {
        let script = self.outside.path().join("server.sh");
        let config = format!(
            "[mcp.servers.shelf]\ncommand = \"sh\"\nargs = [{script:?}, {folder:?}]\n{keys}\n"
        );
        fs::write(self.config(), config).expect("it is written");
        self.run(&["--yes", "call", "mcp__shelf__put", "{}"])
    }

    fn run(&self, args: &[&str]) -> Output {
        let config = self.config();
        let config = config.to_str().expect("it is text");
        run_keeping(self.state.path(), self.root.path(), &[&["--config", config], args].concat())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// MC5
#[test]
fn the_sandbox_limits_the_writes_of_a_server() {
    if !Machine::new().is_whole() {
        return;
    }
    let shelf = Shelf::new();
    let (inside, outside) = (shelf.root.path(), shelf.outside.path());
    let git = inside.join(".git");
    fs::create_dir(&git).expect("it is made");
    let read_only = "sandbox = \"required\"\nsandbox_level = \"read_only\"";
    for (folder, keys, expected) in [
        (outside, "", "wrote\n"),
        (outside, "sandbox = \"off\"", "wrote\n"),
        (outside, "sandbox = \"required\"", "refused\n"),
        (outside, "sandbox = \"best_effort\"", "refused\n"),
        (outside, "sandbox = \"required\"\nsandbox_level = \"full\"", "wrote\n"),
        (inside, "sandbox = \"required\"", "wrote\n"),
        (inside, read_only, "refused\n"),
        (&git, "sandbox = \"required\"", "refused\n"),
        (&git, "", "wrote\n"),
    ] {
        let output = shelf.put(folder, keys);
        let made = folder.join("made");
        assert_eq!(text(&output.stdout), expected, "{keys}: {}", text(&output.stderr));
        assert_eq!(made.exists(), expected == "wrote\n", "{keys}");
        let _ = fs::remove_file(made);
    }
    let listed = text(&shelf.run(&["mcp", "list"]).stdout);
    assert!(listed.contains("1 tool ") && !listed.contains("sandbox"), "{listed}");
    shelf.put(outside, read_only);
    let listed = text(&shelf.run(&["mcp", "list"]).stdout);
    assert!(listed.trim_end().ends_with("(sandbox: required, read_only)"), "{listed}");
    let shown = text(&shelf.run(&["mcp", "inspect", "shelf"]).stdout);
    assert!(shown.contains("\"mode\": \"required\"") && !shown.contains("gaps"), "{shown}");
}

// MC5: what a server does at its start counts as well, and it starts before its pins are stored.
#[test]
fn a_server_is_sandboxed_at_its_first_start() {
    if !Machine::new().is_whole() {
        return;
    }
    let shelf = Shelf::new();
    let (inside, outside) = (shelf.root.path(), shelf.outside.path());
    let script = outside.join("server.sh");
    fs::write(&script, format!("echo x >\"$1/made\" 2>/dev/null\n{SERVER}"))
        .expect("it is written");
    let script = script.to_str().expect("it is text");
    fs::write(shelf.config(), "").expect("it is written");
    for (folder, options, keys, is_made) in [
        (outside, &[][..], "", true),
        (outside, &["--sandbox", "off"], "sandbox = \"off\"\n", true),
        (outside, &["--sandbox", "required"], "sandbox = \"required\"\n", false),
        (inside, &["--sandbox", "required"], "sandbox = \"required\"\n", true),
        (
            inside,
            &["--sandbox", "required", "--sandbox-level", "read_only", "--sandbox-network"],
            "sandbox = \"required\"\nsandbox_level = \"read_only\"\nsandbox_network = true\n",
            false,
        ),
    ] {
        let place = folder.to_str().expect("it is text");
        let add = [&["--yes", "mcp", "add", "shelf"], options, &["--", "sh", script, place]];
        let added = shelf.run(&add.concat());
        assert!(added.status.success(), "{options:?}: {}", text(&added.stderr));
        let made = folder.join("made");
        assert_eq!(made.exists(), is_made, "{options:?}");
        let _ = fs::remove_file(made);
        let written = fs::read_to_string(shelf.config()).expect("it is written");
        assert!(written.ends_with(&format!("]\n{keys}")), "{options:?}: {written}");
        assert!(shelf.run(&["mcp", "remove", "shelf"]).status.success());
    }

    let asked = |folder: &Path, more: &str| {
        let arguments = format!(
            "{{\"name\": \"shelf\", \"command\": \"sh\", \"args\": [{script:?}, {folder:?}]{more}}}"
        );
        let made = folder.join("made");
        let added = shelf.run(&["--yes", "call", "register_mcp_server", &arguments]);
        assert!(added.status.success(), "{more}: {}", text(&added.stderr));
        let is_made = made.exists();
        let _ = fs::remove_file(made);
        is_made
    };
    assert!(asked(outside, ""));
    assert!(!asked(outside, ", \"sandbox\": \"required\""));
    assert!(!asked(inside, ", \"sandbox\": \"required\", \"sandbox_level\": \"read_only\""));
}

// The server cannot change its own configuration.
#[test]
fn a_server_cannot_change_its_own_sandbox() {
    if !Machine::new().is_whole() {
        return;
    }
    let shelf = Shelf::new();
    // The workspace is the folder of the configuration.
    let root = shelf.outside.path();
    let script = root.join("server.sh");
    let config = shelf.config();
    let target = root.join("made");
    fs::write(
        &config,
        format!(
            "[mcp.servers.shelf]\ncommand = \"sh\"\nargs = [{script:?}, {root:?}]\n\
             sandbox = \"required\"\n"
        ),
    )
    .expect("it is written");
    let call = ["--yes", "call", "mcp__shelf__put", "{}"];
    let path = config.to_str().expect("it is text");
    let output = run_keeping(shelf.state.path(), root, &[&["--config", path], &call[..]].concat());
    assert_eq!(text(&output.stdout), "wrote\n", "{}", text(&output.stderr));
    fs::remove_file(&target).expect("it is there");
    // The same file under the name to which the server writes.
    let made = fs::read_to_string(&config).expect("it is there");
    fs::write(&target, &made).expect("it is written");
    let path = target.to_str().expect("it is text");
    let output = run_keeping(shelf.state.path(), root, &[&["--config", path], &call[..]].concat());
    assert_eq!(text(&output.stdout), "refused\n", "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&target).expect("it is there"), made);
}
