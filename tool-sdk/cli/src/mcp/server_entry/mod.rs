//! Parses `[mcp.servers.NAME]`, the configuration of an MCP server.
//!
//! ```toml
//! [mcp.servers.time]
//! command = "mcp-server-time"
//! args = ["--local-timezone", "UTC"]
//! call_timeout = 10
//!
//! [mcp.servers.wiki]
//! url = "https://wiki.example.com/mcp"
//! bearer_env = "WIKI_TOKEN"
//! disabled_tools = ["delete_page"]
//!
//! [mcp.servers.drive]
//! url = "https://drive.example.com/mcp"
//! oauth = { client_id = "4711", client_secret_env = "DRIVE_SECRET", issuer = "https://login.example.com" }
//!
//! [mcp.servers.notes]
//! command = "mcp-server-notes"
//! sandbox = "required"
//! ```

mod client_config;
mod oauth_entry;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use toml_edit::{Array, InlineTable, Table, value};
use tool_sdk_mcp::ServerConfig;
use tool_sdk_process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};

pub(super) use self::oauth_entry::OAuthEntry;
#[cfg(feature = "acp")]
use super::references::escape_references;
use super::references::{TextPart, parse_references, required_variables};
use super::server_folders::ServerFolders;
use crate::settings::TomlValue;

/// All servers of a configuration.
pub(crate) type ServerEntries = Vec<ServerEntry>;

/// One server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerEntry {
    #[serde(skip)]
    pub(super) name: String,
    pub(super) command: Option<String>,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    /// Environment variables that are passed to the server process.
    pub(super) env_from: Vec<String>,
    pub(super) cwd: Option<PathBuf>,
    /// The sandbox mode of the server process; without it there is no sandbox.
    pub(super) sandbox: Option<SandboxMode>,
    pub(super) sandbox_level: Option<SandboxLevel>,
    pub(super) sandbox_network: Option<bool>,
    pub(super) url: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
    /// The environment variable that holds the bearer token.
    pub(super) bearer_env: Option<String>,
    pub(super) oauth: Option<OAuthEntry>,
    pub(super) startup_timeout: Option<f64>,
    pub(super) call_timeout: Option<f64>,
    /// The seconds to exit in once the standard input is closed.
    exit_timeout: Option<f64>,
    pub(super) enabled: Option<bool>,
    pub(super) enabled_tools: Option<Vec<String>>,
    pub(super) disabled_tools: Vec<String>,
    /// Whether the server's hints about the risk of its tools are believed.
    pub(super) trust_annotations: Option<bool>,
    /// The requests that the server may make while one of its tools runs.
    questions: Vec<AllowedQuestion>,
    /// Whether a plugin brings it.
    #[serde(skip)]
    is_of_plugin: bool,
}

/// A kind of server request that the command line answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AllowedQuestion {
    Forms,
    Roots,
    Urls,
}

/// Parses the servers of the `[mcp]` table.
pub(crate) fn parse_servers(mcp: TomlValue<'_, '_>) -> ServerEntries {
    let Some(mut mcp) = mcp.into_table_with(&["servers"]) else { return ServerEntries::new() };
    let read = |(name, part): (String, TomlValue<'_, '_>)| {
        part.read_with(|entry: ServerEntry| entry.validate_as(name))
    };
    mcp.take_named_values("servers").into_iter().filter_map(read).collect()
}

fn parse_seconds(time: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(time).ok().filter(|time| !time.is_zero())
}

/// The servers of a client, which are not configured. Their texts are literal: a client inserts
/// variables itself.
#[cfg(feature = "acp")]
impl ServerEntry {
    /// Creates the entry of a command.
    ///
    /// # Errors
    ///
    /// Fails with a text for the client when the entry is not valid.
    pub(crate) fn for_command(
        name: &str,
        command: &str,
        args: &[String],
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, String> {
        let entry = Self {
            command: Some(escape_references(command)),
            args: args.iter().map(|arg| escape_references(arg)).collect(),
            env: env.into_iter().map(|(name, value)| (name, escape_references(&value))).collect(),
            ..Self::default()
        };
        entry.validate_as(plain_server_name(name))
    }

    /// Creates the entry of a server over HTTP.
    ///
    /// # Errors
    ///
    /// Fails with a text for the client when the entry is not valid.
    pub(crate) fn for_url(
        name: &str,
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, String> {
        let headers = headers.into_iter().map(|(name, value)| (name, escape_references(&value)));
        let entry = Self {
            url: Some(escape_references(url)),
            headers: headers.collect(),
            ..Self::default()
        };
        entry.validate_as(plain_server_name(name))
    }
}

/// The servers of plugins, in the form of `.mcp.json`.
impl ServerEntry {
    /// Creates the entry of a plugin's server. A process runs in the sandbox of commands.
    ///
    /// # Errors
    ///
    /// Fails with the reason when the entry is not valid.
    pub(crate) fn for_plugin(
        name: &str,
        server: &serde_json::Value,
        sandbox: &SandboxPolicy,
    ) -> Result<Self, String> {
        use serde::Deserialize as _;

        let mut entry = Self::deserialize(server).map_err(|error| error.to_string())?;
        if entry.command.is_some() && !sandbox.is_off() {
            entry.sandbox = Some(sandbox.mode());
            entry.sandbox_level = Some(sandbox.level());
            entry.sandbox_network = Some(sandbox.has_network());
        }
        entry.is_of_plugin = true;
        entry.validate_as(name)
    }

    /// Whether a plugin brings it.
    pub(super) fn is_of_plugin(&self) -> bool {
        self.is_of_plugin
    }

    /// Returns the configuration of the server of a plugin that is loaded while the program runs.
    ///
    /// # Errors
    ///
    /// Fails with the reason when the server needs the environment, which a command reads at its start.
    pub(super) fn to_plugin_config(&self, folders: &ServerFolders) -> Result<ServerConfig, String> {
        if let Some(variable) = self.needed_variables().first() {
            return Err(format!(
                "it needs the environment variable `{variable}`, so it is there when the program \
                 starts again"
            ));
        }
        let config = self.build_config(folders, |_| None).map_err(|error| error.to_string())?;
        Ok(config.enabled(self.enabled != Some(false)))
    }

    /// Whether both entries have one name.
    pub(crate) fn has_name_of(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Returns the name of a server of a client with the characters that names of servers may have.
#[cfg(feature = "acp")]
fn plain_server_name(name: &str) -> String {
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '-' };
    name.trim().chars().map(plain).collect()
}

impl ServerEntry {
    /// Sets the name, and checks that the keys are valid together.
    pub(super) fn validate_as(self, name: impl Into<String>) -> Result<Self, String> {
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => return Err("`command` and `url` exclude each other".to_owned()),
            (None, None) => return Err("`command` or `url` is missing".to_owned()),
            _ => {}
        }
        if let Some(key) = self.unused_key() {
            let other = if self.url.is_some() { "url" } else { "command" };
            return Err(format!("`{key}` has no effect with `{other}`"));
        }
        if self.oauth.is_some() && self.bearer_env.is_some() {
            return Err("`oauth` has no effect with `bearer_env`".to_owned());
        }
        if let Some(OAuthEntry { client_id: None, client_secret_env: Some(_), .. }) = &self.oauth {
            return Err("`client_secret_env` has no effect without `client_id`".to_owned());
        }
        if let Some(OAuthEntry { issuer: None, client_secret_env: Some(_), .. }) = &self.oauth {
            let mistake = "`client_secret_env` needs `issuer`, the authorization server that issued \
                           the secret";
            return Err(mistake.to_owned());
        }
        if self.sandbox.is_none() && self.sandbox_level.is_some() {
            return Err("`sandbox_level` has no effect without `sandbox`".to_owned());
        }
        if self.sandbox.is_none() && self.sandbox_network.is_some() {
            return Err("`sandbox_network` has no effect without `sandbox`".to_owned());
        }
        for time in
            [self.startup_timeout, self.call_timeout, self.exit_timeout].into_iter().flatten()
        {
            parse_seconds(time).ok_or("a timeout is a number of seconds above 0")?;
        }
        let named = Self { name: name.into(), ..self };
        // Validates names and addresses before a server is started.
        let nowhere = ServerFolders::default();
        named
            .with_literal_url()
            .build_config(&nowhere, |_| Some(String::new()))
            .map_err(|error| error.to_string())?;
        Ok(named)
    }

    /// Returns the entry with an example in place of a URL that has references, which is only
    /// known when the server is needed.
    fn with_literal_url(&self) -> Self {
        let has_references =
            |url: &String| !matches!(&*parse_references(url), [TextPart::Literal(_)]);
        match &self.url {
            Some(url) if has_references(url) => {
                Self { url: Some("https://example.com/".to_owned()), ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Returns the names of the variables without which the server cannot be used, each once.
    pub(super) fn needed_variables(&self) -> Vec<String> {
        let secret = self.oauth.iter().flat_map(|oauth| &oauth.client_secret_env);
        let named = self.env_from.iter().chain(&self.bearer_env).chain(secret).map(String::as_str);
        let cwd = self.cwd.as_ref().and_then(|cwd| cwd.to_str());
        let texts = self.command.iter().chain(&self.args).chain(self.env.values());
        let texts = texts.chain(self.headers.values()).chain(&self.url).map(String::as_str);
        let mut needed: Vec<String> = Vec::new();
        for name in named.chain(texts.chain(cwd).flat_map(required_variables)) {
            if !needed.iter().any(|known| known == name) {
                needed.push(name.to_owned());
            }
        }
        needed
    }

    /// Describes how the server is reached, with the references as they are written.
    pub(super) fn describe_transport(&self) -> String {
        let off = if self.enabled == Some(false) { "  (switched off)" } else { "" };
        let words = self.command.iter().chain(&self.args).map(String::as_str);
        match &self.url {
            Some(url) => format!("{url}{off}"),
            None => words.collect::<Vec<_>>().join(" ") + off,
        }
    }

    /// Whether the server process is sandboxed.
    pub(super) fn is_sandboxed(&self) -> bool {
        self.sandbox.is_some_and(|mode| mode != SandboxMode::Off)
    }

    /// Returns a key that has no effect with this kind of transport.
    fn unused_key(&self) -> Option<&'static str> {
        let keys = match self.url {
            Some(_) => vec![
                ("args", self.args.is_empty()),
                ("cwd", self.cwd.is_none()),
                ("exit_timeout", self.exit_timeout.is_none()),
                ("env", self.env.is_empty()),
                ("env_from", self.env_from.is_empty()),
                ("sandbox", self.sandbox.is_none()),
                ("sandbox_level", self.sandbox_level.is_none()),
                ("sandbox_network", self.sandbox_network.is_none()),
            ],
            None => vec![
                ("headers", self.headers.is_empty()),
                ("bearer_env", self.bearer_env.is_none()),
                ("oauth", self.oauth.is_none()),
            ],
        };
        keys.into_iter().find(|(_, is_missing)| !is_missing).map(|(key, _)| key)
    }

    /// Returns the entry as a TOML table.
    pub(super) fn to_toml(&self) -> Table {
        let list = |items: &[String]| items.iter().collect::<Array>();
        let mut table = Table::new();
        if let Some(command) = &self.command {
            table["command"] = value(command);
            table["args"] = value(list(&self.args));
        }
        for (key, text) in [("url", &self.url), ("bearer_env", &self.bearer_env)] {
            if let Some(text) = text {
                table[key] = value(text);
            }
        }
        if let Some(oauth) = &self.oauth {
            table["oauth"] = value(oauth.to_toml());
        }
        if !self.env_from.is_empty() {
            table["env_from"] = value(list(&self.env_from));
        }
        if let Some(folder) = &self.cwd {
            table["cwd"] = value(folder.to_string_lossy().into_owned());
        }
        let words = [
            ("sandbox", self.sandbox.map(SandboxMode::as_str)),
            ("sandbox_level", self.sandbox_level.map(SandboxLevel::as_str)),
        ];
        for (key, word) in words {
            if let Some(word) = word {
                table[key] = value(word);
            }
        }
        for (key, time) in
            [("startup_timeout", self.startup_timeout), ("call_timeout", self.call_timeout)]
        {
            if let Some(time) = time {
                table[key] = value(time);
            }
        }
        if let Some(enabled) = self.enabled {
            table["enabled"] = value(enabled);
        }
        if let Some(tools) = &self.enabled_tools {
            table["enabled_tools"] = value(list(tools));
        }
        if !self.disabled_tools.is_empty() {
            table["disabled_tools"] = value(list(&self.disabled_tools));
        }
        if let Some(trusted) = self.trust_annotations {
            table["trust_annotations"] = value(trusted);
        }
        if let Some(network) = self.sandbox_network {
            table["sandbox_network"] = value(network);
        }
        for (key, given) in [("env", &self.env), ("headers", &self.headers)] {
            if !given.is_empty() {
                table[key] = value(given.iter().collect::<InlineTable>());
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ConfigErrors;

    /// Parses servers; fails with the formatted errors.
    fn read(text: &str) -> Result<ServerEntries, String> {
        let mistakes = ConfigErrors::new(text);
        let servers = mistakes
            .parse_root()
            .and_then(|it| it.into_table_with(&["mcp"])?.take_value("mcp"))
            .map(parse_servers);
        match mistakes.format_errors("f") {
            told if told.is_empty() => Ok(servers.unwrap_or_default()),
            told => Err(told),
        }
    }

    #[track_caller]
    fn check_mistake(text: &str, words: &str) {
        let mistake = read(text).unwrap_err();
        assert!(mistake.contains(words), "{mistake}");
    }

    // A client inserts variables itself, and what it has inserted is not a reference.
    #[cfg(feature = "acp")]
    #[test]
    fn texts_of_clients_are_literal() {
        let env = [("TOKEN".to_owned(), "a${HOME}".to_owned())];
        let args = ["${HOME}".to_owned()];
        let entry = ServerEntry::for_command("My server", "run", &args, env).unwrap();
        assert_eq!(entry.name, "my-server");
        assert_eq!(entry.needed_variables(), Vec::<String>::new());
        let transport = entry.build_config(&ServerFolders::default(), |_| None).unwrap();
        assert_eq!(transport.transport().identity()["args"], serde_json::json!(["${HOME}"]));
        let address = ServerEntry::for_url("s", "no address", []);
        assert!(address.is_err(), "{address:?}");
    }

    #[test]
    fn rejects_invalid_entries() {
        for (entry, words) in [
            ("", "`mcp.servers.s`: `command` or `url` is missing"),
            ("command = 'x'\nurl = 'https://a'", "exclude each other"),
            ("command = 'x'\nargv = []", "f:3: `mcp.servers.s`: unknown field `argv`"),
            ("command = 'x'\nquestions = ['samples']", "`forms`, `roots`, `urls`"),
            ("command = 'x'\ncall_timeout = 0", "above 0"),
            ("command = 'x'\nheaders = { a = 'b' }", "`headers` has no effect with `command`"),
            ("url = 'https://a'\nenv_from = ['A']", "`env_from` has no effect with `url`"),
            ("url = 'http://example.com/'", "https"),
            ("url = 'https://a'\noauth = { client = 'x' }", "unknown field `client`"),
            ("url = 'https://a'\noauth = { issuer = 'http://b.example' }", "https"),
            ("url = 'https://a'\noauth = { client_secret_env = 'A' }", "without `client_id`"),
            (
                "url = 'https://a'\noauth = { client_id = 'x', client_secret_env = 'A' }",
                "`client_secret_env` needs `issuer`",
            ),
            ("url = 'https://a'\nbearer_env = 'A'\noauth = {}", "no effect with `bearer_env`"),
            ("command = 'x'\noauth = {}", "`oauth` has no effect with `command`"),
            ("url = 'https://a'\nsandbox = 'off'", "`sandbox` has no effect with `url`"),
            ("command = 'x'\nsandbox = 'on'", "`off`, `best_effort`, `required`"),
            ("command = 'x'\nsandbox_level = 'read_only'", "no effect without `sandbox`"),
            ("command = 'x'\nsandbox_network = true", "no effect without `sandbox`"),
        ] {
            check_mistake(&format!("[mcp.servers.s]\n{entry}\n"), words);
        }
        check_mistake("[mcp.servers.'a b']\ncommand = 'x'\n", "a-z 0-9");
        check_mistake("[mcp.server.s]\n", "unknown key `server`; did you mean `servers`?");
        check_mistake("[mcp]\nservers = 3\n", "`mcp.servers`: expected a table");
    }

    #[test]
    fn a_written_table_is_parsed_back() {
        let entry = ServerEntry {
            command: Some("run \"it\"".to_owned()),
            args: vec!["a\\b".to_owned(), "ü\n".to_owned()],
            env: BTreeMap::from([("A B".to_owned(), "1".to_owned())]),
            env_from: vec!["TOKEN".to_owned()],
            cwd: Some("/x y".into()),
            sandbox: Some(SandboxMode::BestEffort),
            sandbox_level: Some(SandboxLevel::ReadOnly),
            sandbox_network: Some(true),
            startup_timeout: Some(1.5),
            enabled: Some(false),
            enabled_tools: Some(vec!["a".to_owned()]),
            disabled_tools: vec!["b".to_owned()],
            trust_annotations: Some(true),
            ..ServerEntry::default()
        };
        let written = entry.validate_as("s").unwrap();
        let mut document = toml_edit::DocumentMut::new();
        document["mcp"]["servers"]["s"] = toml_edit::Item::Table(written.to_toml());
        let again = read(&document.to_string()).unwrap();
        assert_eq!(format!("{written:?}"), format!("{:?}", again[0]));
    }
}
