//! `mcp pack`: the program in a bundle is unpacked and started as the manifest says.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use zip::ZipArchive;

use crate::peer::Peer;

const RELEASE: &str = "https://github.com/ada/tools/releases/download/v1.0.0/tool-std.mcpb";

/// Packs the program into a folder, as a program that another one packs.
fn pack_program(folder: &Path) -> Value {
    let program = env!("CARGO_BIN_EXE_tool-std");
    let packed = Command::new(program)
        .args(["mcp", "pack", program, "--author", "Ada", "--download-url", RELEASE, "--output"])
        .arg(folder)
        .output()
        .unwrap();
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    let mut bundle =
        ZipArchive::new(fs::File::open(folder.join("tool-std.mcpb")).unwrap()).unwrap();
    bundle.extract(folder.join("unpacked")).unwrap();
    let mut manifest = String::new();
    bundle.by_name("manifest.json").unwrap().read_to_string(&mut manifest).unwrap();
    serde_json::from_str(&manifest).unwrap()
}

#[test]
fn a_packed_program_serves_the_chosen_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (notes, state) = (folder.path().join("notes"), folder.path().join("state"));
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("a.txt"), "kept in a bundle\n").unwrap();
    let manifest = pack_program(folder.path());
    assert_eq!(manifest["name"], "tool-std");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));

    // A host replaces the variables, and starts the command.
    let unpacked = folder.path().join("unpacked");
    let expand = |text: &Value| {
        let text = text.as_str().unwrap().replace("${__dirname}", unpacked.to_str().unwrap());
        text.replace("${user_config.folder}", notes.to_str().unwrap())
    };
    let run = &manifest["server"]["mcp_config"];
    let mut server = Command::new(expand(&run["command"]));
    server.args(run["args"].as_array().unwrap().iter().map(expand));
    server.arg("--state-dir").arg(state);
    server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut peer = Peer::greet(server, json!({}));
    peer.send(&crate::peer::call(1, "read_file", json!({ "path": "a.txt" })));
    let answer = peer.hear();
    assert!(answer["result"].to_string().contains("kept in a bundle"), "{answer}");
    peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    let served: Vec<Value> = names(&peer.hear()["result"]["tools"]);
    assert_eq!(names(&manifest["tools"]), served);
}

fn names(tools: &Value) -> Vec<Value> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect()
}
