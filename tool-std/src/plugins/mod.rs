//! Plugins: packages that bring tools, hooks, rules, skills, agents and MCP servers. The tool
//! `plugin_manager` lists, installs, enables and removes them.
//!
//! A plugin is a folder with a file `plugin.toml`, or one in the layout of Claude Code with
//! `.claude-plugin/plugin.json`. Plugins are installed into `plugins` of the state folder; those of a
//! project lie in `.agents/plugins` and `.claude/plugins`, and count only when the user
//! [trusts](tool_sdk::TrustedFolders) the folder of the project.
//!
//! Installing enables nothing. Enabling shows what the plugin brings with the whole text of its files, and
//! copies them: a plugin whose files have changed since runs from the copy until it is enabled again, so that
//! no change switches its denials off. Its rules and hooks only make decisions stricter, and its tools pass the
//! pipeline like any other.
//!
//! **Invariant:** nothing of a plugin runs or counts before the user enabled exactly these files.

mod command_tool;
mod library;
mod line_process;
mod manager_tool;
mod manifest;
mod package_plugin;
mod plan;
mod plugin_change;
#[cfg(test)]
mod tests;

pub use self::manager_tool::plugin_manager;
pub use self::package_plugin::{EnabledPlugins, PackagePlugin};
