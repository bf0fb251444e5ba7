//! Configuration of a server: its name, its transport, and which of its tools are used.
//!
//! Plain data, written by the host; the server has no influence on it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Value, json};
use thiserror::Error;
use tool_sdk_core::Redactor;
use tool_sdk_process::internal::enter_without_links;
use tool_sdk_process::{ChildEnv, Command, sandbox::SandboxPolicy};

use super::http_endpoint::HttpEndpoint;
use super::naming;
use super::remote::{RemoteConnection, RemoteFuture, RemoteTool};
use super::server_requests::ClientFeatures;

/// Redacts values that look like secrets, independent of this process' environment, so that the
/// identity of a server is the same in every process.
static SECRET_SHAPES: LazyLock<Redactor> = LazyLock::new(Redactor::default);

/// The longest timeout: a year. `Instant::now()` plus it does not overflow.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A server whose tools are used.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tool_sdk::mcp::{HttpEndpoint, ServerCommand, ServerConfig};
///
/// let time = ServerConfig::new("time", ServerCommand::new("mcp-server-time", ["--local-timezone", "UTC"]))?
///     .call_timeout(Duration::from_secs(10))
///     .only_tools(["get_current_time"]);
/// let wiki = ServerConfig::new("wiki", HttpEndpoint::new("https://wiki.example.com/mcp")?.bearer_token("s3cret"))?;
///
/// assert!(ServerConfig::new("mcp", ServerCommand::new("x", ["y"])).is_err(), "the name is reserved");
/// assert!(HttpEndpoint::new("http://wiki.example.com/mcp").is_err(), "the token would not be encrypted");
/// # Ok::<(), tool_sdk::mcp::InvalidServerConfig>(())
/// ```
#[derive(Clone)]
pub struct ServerConfig {
    pub(super) name: String,
    pub(super) transport: TransportConfig,
    pub(super) startup_timeout: Duration,
    pub(super) call_timeout: Duration,
    pub(super) client_features: ClientFeatures,
    pub(super) enabled: bool,
    pub(super) trust: AnnotationTrust,
    only_tools: Option<Vec<String>>,
    without_tools: Vec<String>,
}

/// Whether the server's hints about the risk of its tools may lower it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AnnotationTrust {
    /// Hints only raise the risk.
    #[default]
    Untrusted,
    /// The host believes the server.
    Trusted,
}

/// How to connect to a server.
#[derive(Clone)]
#[non_exhaustive]
pub enum TransportConfig {
    /// A program that is started; messages go over its standard input and output.
    Stdio(ServerCommand),
    /// An endpoint for streamable HTTP.
    Http(HttpEndpoint),
    /// A connection that the host provides.
    Custom(ConnectFn),
}

/// Opens a connection that the host provides.
pub type ConnectFn =
    Arc<dyn Fn() -> RemoteFuture<'static, Arc<dyn RemoteConnection>> + Send + Sync>;

/// Why the configuration of a server is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{subject} `{value}`: {problem}")]
#[non_exhaustive]
pub struct InvalidServerConfig {
    /// The kind of thing that is wrong, such as "the server".
    pub subject: &'static str,
    /// The value that was given.
    pub value: String,
    /// What is wrong with it.
    pub problem: String,
}

impl InvalidServerConfig {
    pub(super) fn new(subject: &'static str, given: &str, problem: impl fmt::Display) -> Self {
        let value = given.escape_debug().take(80).collect();
        Self { subject, value, problem: problem.to_string() }
    }
}

impl ServerConfig {
    /// Returns the configuration of a server with this name: 1 to 32 of `a-z 0-9 _ -`, with no
    /// two of `_ -` in a row and none at an end.
    ///
    /// # Errors
    ///
    /// Fails when the name has another form, or is reserved.
    pub fn new(
        name: impl Into<String>,
        reach: impl Into<TransportConfig>,
    ) -> Result<Self, InvalidServerConfig> {
        let name = name.into();
        if let Some(fault) = naming::server_name_error(&name) {
            return Err(InvalidServerConfig::new("the server", &name, fault));
        }
        Ok(Self {
            name,
            transport: reach.into(),
            startup_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(300),
            client_features: ClientFeatures::none(),
            enabled: true,
            trust: AnnotationTrust::default(),
            only_tools: None,
            without_tools: Vec::new(),
        })
    }

    /// Sets how long the server may take until its tools are listed; 30 seconds by default, a year at
    /// most.
    #[must_use]
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// Sets how long the server may be silent during a call; five minutes by default, a year at most.
    /// Each progress notification restarts it.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// Sets which requests of the server are answered while its tools run; none by default.
    #[must_use]
    pub fn client_features(mut self, questions: ClientFeatures) -> Self {
        self.client_features = questions;
        self
    }

    /// Sets whether the server is used; it is by default. A disabled server is listed in the status,
    /// is never connected and has no tools.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets whether the risk hints of the server are believed; they are not by default, and then only
    /// raise a risk. Believed, `readOnlyHint` makes a tool one that only reads, which runs without an
    /// approval by default, and `destructiveHint: false` one that writes.
    ///
    /// The first call of a tool, and the first after its definition changed, asks nevertheless.
    #[must_use]
    pub fn trust_annotations(mut self, trusted: bool) -> Self {
        self.trust = if trusted { AnnotationTrust::Trusted } else { AnnotationTrust::Untrusted };
        self
    }

    /// Whether the risk hints of the server are believed.
    #[must_use]
    pub fn trusts_annotations(&self) -> bool {
        self.trust == AnnotationTrust::Trusted
    }

    /// Uses only these tools, by the server's names.
    #[must_use]
    pub fn only_tools<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.only_tools.get_or_insert_default().extend(tools.into_iter().map(Into::into));
        self
    }

    /// Excludes these tools, even if [`only`](Self::only_tools) names them.
    #[must_use]
    pub fn without_tools<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.without_tools.extend(tools.into_iter().map(Into::into));
        self
    }

    /// The name in the host's configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to connect to it.
    #[must_use]
    pub fn transport(&self) -> &TransportConfig {
        &self.transport
    }

    /// Returns a warning for each name in the filters that no tool of the server has.
    pub(super) fn unknown_filter_names(&self, tools: &[RemoteTool]) -> Vec<String> {
        let is_unknown = |name: &&String| !tools.iter().any(|tool| tool.name == **name);
        let unknown =
            self.only_tools.iter().flatten().chain(&self.without_tools).filter(is_unknown);
        unknown
            .map(|name| {
                format!(
                    "it has no tool `{}`, which the configuration enables or disables",
                    name.escape_debug()
                )
            })
            .collect()
    }

    /// Whether the filters allow a tool.
    pub(super) fn allows_tool(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|one| one == tool);
        self.only_tools.as_deref().is_none_or(named) && !named(&self.without_tools)
    }
}

impl TransportConfig {
    /// A connection that the host provides.
    pub fn custom<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Arc<dyn RemoteConnection>, super::RemoteError>> + Send + 'static,
    {
        Self::Custom(Arc::new(move || Box::pin(connect())))
    }

    /// Returns a redactor for the secrets that this server is given, and for values that look like
    /// secrets.
    pub(super) fn build_redactor(&self) -> Redactor {
        match self {
            Self::Stdio(launch) => Redactor::from_env_with(launch.env.values()),
            Self::Http(address) => Redactor::from_env_with(address.secret_values()),
            Self::Custom(_) => Redactor::from_env(),
        }
    }

    /// What identifies the server in pinned definitions: everything but the values of secrets.
    #[must_use]
    pub fn identity(&self) -> Value {
        match self {
            Self::Stdio(launch) => launch.identity(),
            Self::Http(address) => json!({
                "url": address.to_string(),
                "headers": address.header_names(),
            }),
            Self::Custom(_) => json!({ "custom": true }),
        }
    }
}

/// A program to start.
///
/// It gets the environment of every child process plus the variables that are given here. It runs
/// in its own process group, which is killed when the connection ends.
#[derive(Clone)]
#[must_use]
pub struct ServerCommand {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    current_dir: Option<PathBuf>,
    /// `current_dir` without links.
    real_dir: Option<PathBuf>,
    sandbox: SandboxPolicy,
    pub(super) exit_timeout: Duration,
}

/// How long a server may take to exit once its standard input is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

impl ServerCommand {
    /// A program with arguments; no shell parses them.
    pub fn new<A: Into<String>>(
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self {
            command: command.into(),
            args,
            env: BTreeMap::new(),
            current_dir: None,
            real_dir: None,
            sandbox: SandboxPolicy::default(),
            exit_timeout: EXIT_TIMEOUT,
        }
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the working directory; the host's own by default.
    ///
    /// Its symbolic links are resolved here. A link that is put into the path later is refused when
    /// the server starts.
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let real = folder.canonicalize().or_else(|_| std::path::absolute(&folder));
        self.real_dir = Some(real.unwrap_or_else(|_| folder.clone()));
        self.current_dir = Some(folder);
        self
    }

    /// Sets how long the server may take to exit by itself once its standard input is closed, as the
    /// protocol asks it to. Default: 2 s. Then it gets `SIGTERM`, and a second later `SIGKILL`.
    pub fn exit_timeout(mut self, timeout: Duration) -> Self {
        self.exit_timeout = timeout;
        self
    }

    /// Sets the sandbox; none by default. If it is required and cannot be applied, the program is not
    /// started.
    ///
    /// Mode, level and network of the sandbox are part of the server's identity, so changing them
    /// makes its tools unseen again. The writable folders are not.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::mcp::{ServerCommand, TransportConfig};
    /// use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};
    ///
    /// let policy = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite)
    ///     .with_writable("/home/ada/project");
    /// let notes = TransportConfig::from(ServerCommand::new("mcp-server-notes", ["--all"]).sandbox(policy));
    ///
    /// assert_eq!(notes.identity()["sandbox"]["mode"], "required");
    /// ```
    pub fn sandbox(mut self, policy: SandboxPolicy) -> Self {
        self.sandbox = policy;
        self
    }

    fn identity(&self) -> Value {
        let mut identity = json!({
            "command": self.command,
            "args": self.args.iter().map(|arg| SECRET_SHAPES.redact(arg)).collect::<Vec<_>>(),
            "env": self.env.keys().collect::<Vec<_>>(),
            "cwd": self.current_dir,
        });
        if !self.sandbox.is_off() {
            identity["sandbox"] = json!({
                "mode": self.sandbox.mode(),
                "level": self.sandbox.level(),
                "network": self.sandbox.has_network(),
            });
        }
        identity
    }

    /// Builds the command; fails when the working directory cannot be opened.
    pub(super) fn build_command(&self) -> io::Result<Command> {
        let add = |env: ChildEnv, (name, value)| env.with_var(name, value);
        let env = self.env.iter().fold(ChildEnv::from_host(), add);
        let run =
            Command::new(&self.command, &self.args).env(env).grace_period(Duration::from_secs(1));
        let run = run.sandbox(self.sandbox.clone());
        match &self.real_dir {
            Some(folder) => enter_without_links(run, folder),
            None => Ok(run),
        }
    }
}

impl From<ServerCommand> for TransportConfig {
    fn from(launch: ServerCommand) -> Self {
        Self::Stdio(launch)
    }
}

impl From<HttpEndpoint> for TransportConfig {
    fn from(address: HttpEndpoint) -> Self {
        Self::Http(address)
    }
}

/// Without the values of variables, headers and tokens.
impl fmt::Debug for TransportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.identity(), f)
    }
}

impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TransportConfig::Stdio(self.clone()).fmt(f)
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("name", &self.name)
            .field("reach", &self.transport)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn refuses_a_working_directory_that_was_replaced_by_a_link() {
        let top = tempfile::tempdir().unwrap();
        let (folder, other) = (top.path().join("folder"), top.path().join("other"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::create_dir(&other).unwrap();
        let launch = ServerCommand::new("run", ["x"]).current_dir(&folder);
        assert!(launch.build_command().is_ok());
        std::fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&other, &folder).unwrap();
        assert!(launch.build_command().is_err());
        // A link that was there when the server was configured is followed.
        let launch = ServerCommand::new("run", ["x"]).current_dir(&folder);
        assert!(launch.build_command().is_ok());
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let launch = ServerCommand::new("run", ["-v", "ghp_0123456789abcdefghijkl"]);
        let launch = launch.env("API_KEY", "hunter2");
        let address = HttpEndpoint::new("https://a/?key=hunter2").unwrap().bearer_token("hunter2");
        let address = address.header("X-Key", "hunter2").unwrap();
        let shown = format!("{launch:?} {address:?}");
        assert!(shown.contains("API_KEY") && shown.contains("x-key"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("ghp_"), "{shown}");
    }

    // The filters of the Codex agent, as data.
    #[test]
    fn tool_filters_match_the_codex_fixtures() {
        let text = include_str!("../../tests/fixtures/codex-mcp-names/cases.json");
        let cases: Value = serde_json::from_str(text).unwrap();
        for case in cases["filters"].as_array().unwrap() {
            let list = |key: &str| {
                let items = case[key].as_array()?;
                Some(items.iter().map(|one| one.as_str().unwrap().to_owned()).collect::<Vec<_>>())
            };
            let mut upstream = ServerConfig::new("s", ServerCommand::new("x", ["y"])).unwrap();
            if let Some(only) = list("enabled") {
                upstream = upstream.only_tools(only);
            }
            let upstream = upstream.without_tools(list("disabled").unwrap_or_default());
            let allowed = upstream.allows_tool(case["tool"].as_str().unwrap());
            assert_eq!(Some(allowed), case["allowed"].as_bool(), "{case}");
        }
    }
}
