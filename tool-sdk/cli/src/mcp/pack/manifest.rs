//! The `manifest.json` of an MCP bundle.
//!
//! The version of the format is 0.3, the current one; 0.4 only adds an experimental kind of Python
//! server. The user of the bundle chooses the folder that the tools may access when the bundle is
//! installed, so a bundle never has access to a folder by itself.
//!
//! **Invariant:** the manifest is valid by its JSON Schema, which a test holds.

use serde_json::{Value, json};

use super::PackedProgram;

const MANIFEST_VERSION: &str = "0.3";
/// The setting in which the host stores the chosen folder.
const FOLDER: &str = "folder";

/// Returns the manifest of a bundle.
pub(super) fn bundle_manifest(program: &PackedProgram) -> Value {
    let entry_point = program.entry_point();
    let root = match program.needs_folder {
        true => format!("${{user_config.{FOLDER}}}"),
        // Without an own root, the program would act on the folder in which the host runs.
        false => "${__dirname}".to_owned(),
    };
    let mut args = vec!["--root".to_owned(), root, "serve".to_owned(), "mcp".to_owned()];
    args.extend(program.options.iter().cloned());
    let tools = program
        .tools
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description }));
    let mut manifest = json!({
        "manifest_version": MANIFEST_VERSION,
        "name": program.name,
        "version": program.version,
        "description": program.description,
        "author": { "name": program.author },
        "server": {
            "type": "binary",
            "entry_point": entry_point,
            "mcp_config": {
                "command": format!("${{__dirname}}/{entry_point}"),
                "args": args,
                "env": {},
            },
        },
        "tools": tools.collect::<Vec<_>>(),
        // Servers that the user of the bundle configures add their tools.
        "tools_generated": true,
        "compatibility": { "platforms": [program.system.as_platform()] },
    });
    if program.needs_folder {
        manifest["user_config"] = json!({ FOLDER: {
            "type": "directory",
            "title": "Folder",
            "description": "The folder that the tools may read and change",
            "required": true,
        }});
    }
    if let Some(title) = &program.title {
        manifest["display_name"] = title.clone().into();
    }
    if let Some(license) = &program.license {
        manifest["license"] = license.clone().into();
    }
    if let Some(repository) = &program.repository {
        manifest["repository"] = json!({ "type": "git", "url": repository });
    }
    if program.icon.is_some() {
        manifest["icon"] = super::ICON_FILE.into();
    }
    manifest
}
