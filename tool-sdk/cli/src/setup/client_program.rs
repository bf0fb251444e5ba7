//! The MCP clients that the program can configure: where each keeps its servers, and in what form.
//!
//! | client | file of the user | file of a project | servers are below |
//! |---|---|---|---|
//! | claude-code | `~/.claude.json` | `.mcp.json` | `mcpServers` |
//! | claude-desktop | `Claude/claude_desktop_config.json` in the configuration folder | – | `mcpServers` |
//! | vscode | `Code/User/mcp.json` in the configuration folder | `.vscode/mcp.json` | `servers` |
//! | cursor | `~/.cursor/mcp.json` | `.cursor/mcp.json` | `mcpServers` |
//! | codex | `~/.codex/config.toml` | `.codex/config.toml` | `mcp_servers` |
//! | gemini | `~/.gemini/settings.json` | `.gemini/settings.json` | `mcpServers` |
//! | zed | `zed/settings.json` in the configuration folder | `.zed/settings.json` | `context_servers` |
//!
//! The configuration folder is `~/.config` or `XDG_CONFIG_HOME` on Linux, `~/Library/Application
//! Support` on macOS and `%APPDATA%` on Windows. Zed uses `~/.config` on macOS, too.
//!
//! **Invariant:** no file is opened here.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Io;

/// A program that starts MCP servers by a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientProgram {
    ClaudeCode,
    ClaudeDesktop,
    VsCode,
    Cursor,
    Codex,
    Gemini,
    Zed,
}

/// The syntax of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientFileFormat {
    /// JSON, where most clients accept comments and trailing commas.
    Json,
    Toml,
}

/// The operating system, which decides where configuration files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostSystem {
    Linux,
    MacOs,
    Windows,
}

impl HostSystem {
    /// Returns the system of this program; other UNIX systems count as Linux.
    pub(crate) const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

impl FromStr for ClientProgram {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|client| client.as_str() == name).ok_or_else(|| {
            format!("`{name}` is not one of {}", Self::ALL.map(Self::as_str).join(", "))
        })
    }
}

impl ClientProgram {
    /// All clients, in the order of the help.
    pub(crate) const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::VsCode,
        Self::Cursor,
        Self::Codex,
        Self::Gemini,
        Self::Zed,
    ];

    /// Returns the name on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::VsCode => "vscode",
            Self::Cursor => "cursor",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Zed => "zed",
        }
    }

    /// Returns the name that its users know.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::VsCode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Zed => "Zed",
        }
    }

    pub(crate) const fn file_format(self) -> ClientFileFormat {
        match self {
            Self::Codex => ClientFileFormat::Toml,
            _ => ClientFileFormat::Json,
        }
    }

    /// Returns the key of the table that holds the servers.
    pub(crate) const fn servers_key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor | Self::Gemini => "mcpServers",
        }
    }

    /// Whether an entry says how the client reaches the server.
    pub(crate) const fn names_transport(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::VsCode)
    }

    /// Returns the path of the user's file; `None` if the user has no home folder.
    pub(crate) fn user_file(self, system: HostSystem, io: &Io<'_>) -> Option<PathBuf> {
        let absolute = |name| io.env_var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
        let home = || match system {
            HostSystem::Windows => absolute("USERPROFILE").or_else(|| absolute("HOME")),
            _ => absolute("HOME"),
        };
        let xdg = || absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")));
        let config = || match system {
            HostSystem::Linux => xdg(),
            HostSystem::MacOs => Some(home()?.join("Library/Application Support")),
            HostSystem::Windows => absolute("APPDATA"),
        };
        match self {
            Self::ClaudeCode => {
                Some(absolute("CLAUDE_CONFIG_DIR").or_else(home)?.join(".claude.json"))
            }
            Self::ClaudeDesktop => Some(config()?.join("Claude/claude_desktop_config.json")),
            Self::VsCode => Some(config()?.join("Code/User/mcp.json")),
            Self::Cursor => Some(home()?.join(".cursor/mcp.json")),
            Self::Codex => {
                let folder =
                    absolute("CODEX_HOME").or_else(|| home().map(|home| home.join(".codex")));
                Some(folder?.join("config.toml"))
            }
            Self::Gemini => Some(home()?.join(".gemini/settings.json")),
            Self::Zed if system == HostSystem::Windows => Some(config()?.join("Zed/settings.json")),
            Self::Zed => Some(xdg()?.join("zed/settings.json")),
        }
    }

    /// Returns the path of a project's file; `None` if the client has none.
    pub(crate) fn project_file(self, project: &Path) -> Option<PathBuf> {
        let name = match self {
            Self::ClaudeCode => ".mcp.json",
            Self::ClaudeDesktop => return None,
            Self::VsCode => ".vscode/mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Gemini => ".gemini/settings.json",
            Self::Zed => ".zed/settings.json",
        };
        Some(project.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the files of all clients for a user with these variables.
    fn user_files(system: HostSystem, env: &[(&str, &str)]) -> Vec<Option<String>> {
        let env =
            |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
        let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
        let io = Io { env: &env, ..Io::new(&mut stdin, &mut out, &mut err) };
        let path =
            |client: ClientProgram| Some(client.user_file(system, &io)?.display().to_string());
        ClientProgram::ALL.map(path).into()
    }

    #[track_caller]
    fn check_files(system: HostSystem, env: &[(&str, &str)], expected: [&str; 7]) {
        let files: Vec<String> = user_files(system, env).into_iter().map(Option::unwrap).collect();
        assert_eq!(files, expected, "{system:?}");
    }

    // The separators of the system where the test runs are `/`.
    #[cfg(unix)]
    #[test]
    fn each_system_has_its_paths() {
        let home = ("HOME", "/h");
        check_files(
            HostSystem::Linux,
            &[home],
            [
                "/h/.claude.json",
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/.config/Code/User/mcp.json",
                "/h/.cursor/mcp.json",
                "/h/.codex/config.toml",
                "/h/.gemini/settings.json",
                "/h/.config/zed/settings.json",
            ],
        );
        check_files(
            HostSystem::MacOs,
            &[home],
            [
                "/h/.claude.json",
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
                "/h/Library/Application Support/Code/User/mcp.json",
                "/h/.cursor/mcp.json",
                "/h/.codex/config.toml",
                "/h/.gemini/settings.json",
                "/h/.config/zed/settings.json",
            ],
        );
        check_files(
            HostSystem::Windows,
            &[home, ("USERPROFILE", "/u"), ("APPDATA", "/a")],
            [
                "/u/.claude.json",
                "/a/Claude/claude_desktop_config.json",
                "/a/Code/User/mcp.json",
                "/u/.cursor/mcp.json",
                "/u/.codex/config.toml",
                "/u/.gemini/settings.json",
                "/a/Zed/settings.json",
            ],
        );
    }

    #[cfg(unix)]
    #[test]
    fn variables_of_the_clients_move_their_files() {
        let moved = user_files(
            HostSystem::Linux,
            &[
                ("HOME", "/h"),
                ("XDG_CONFIG_HOME", "/x"),
                ("CODEX_HOME", "/c"),
                ("CLAUDE_CONFIG_DIR", "/d"),
            ],
        );
        let paths = [0, 1, 2, 4, 6].map(|at: usize| moved[at].clone().unwrap_or_default());
        assert_eq!(
            paths,
            [
                "/d/.claude.json",
                "/x/Claude/claude_desktop_config.json",
                "/x/Code/User/mcp.json",
                "/c/config.toml",
                "/x/zed/settings.json",
            ]
        );
        assert!(user_files(HostSystem::Linux, &[]).iter().all(Option::is_none));
    }

    #[test]
    fn names_are_parsed_back() {
        for client in ClientProgram::ALL {
            assert_eq!(client.as_str().parse(), Ok(client));
        }
        assert!("emacs".parse::<ClientProgram>().unwrap_err().contains("claude-code"));
    }
}
