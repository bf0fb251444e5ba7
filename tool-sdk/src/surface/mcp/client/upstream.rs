//! Configuration of a server: its name, its transport, and which of its tools are used.
//!
//! Plain data, written by the host; the server has no influence on it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Value, json};
use thiserror::Error;

use super::address::Address;
use super::name;
use super::questions::Questions;
use super::remote::{Remote, RemoteTool, RemoteWork};
use crate::process::sandbox::Policy;
use crate::process::{ChildEnv, Run};
use crate::redact::Redactor;

/// Redacts values that look like secrets, independent of this process' environment, so that the
/// identity of a server is the same in every process.
static SHAPES: LazyLock<Redactor> = LazyLock::new(Redactor::default);

/// The longest timeout: a year. `Instant::now()` plus it does not overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A server whose tools are used.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tool_sdk::mcp::{Address, Launch, Upstream};
///
/// let time = Upstream::new("time", Launch::new("mcp-server-time", ["--local-timezone", "UTC"]))?
///     .call_timeout(Duration::from_secs(10))
///     .only(["get_current_time"]);
/// let wiki = Upstream::new("wiki", Address::new("https://wiki.example.com/mcp")?.bearer("s3cret"))?;
///
/// assert!(Upstream::new("mcp", Launch::new("x", ["y"])).is_err(), "the name is reserved");
/// assert!(Address::new("http://wiki.example.com/mcp").is_err(), "the token would not be encrypted");
/// # Ok::<(), tool_sdk::mcp::InvalidUpstream>(())
/// ```
#[derive(Clone)]
pub struct Upstream {
    pub(super) name: String,
    pub(super) reach: Reach,
    pub(super) startup_timeout: Duration,
    pub(super) call_timeout: Duration,
    pub(super) questions: Questions,
    pub(super) enabled: bool,
    only: Option<Vec<String>>,
    without: Vec<String>,
}

/// How to connect to a server.
#[derive(Clone)]
#[non_exhaustive]
pub enum Reach {
    /// A program that is started; messages go over its standard input and output.
    Launch(Launch),
    /// An endpoint for streamable HTTP.
    Address(Address),
    /// A connection that the host provides.
    Custom(Connect),
}

/// Opens a connection that the host provides.
pub type Connect = Arc<dyn Fn() -> RemoteWork<'static, Arc<dyn Remote>> + Send + Sync>;

/// Why the configuration of a server is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{subject} `{given}`: {problem}")]
#[non_exhaustive]
pub struct InvalidUpstream {
    /// The kind of thing that is wrong, such as "the server".
    pub subject: &'static str,
    /// The value that was given.
    pub given: String,
    /// What is wrong with it.
    pub problem: String,
}

impl InvalidUpstream {
    pub(super) fn new(subject: &'static str, given: &str, problem: impl fmt::Display) -> Self {
        let given = given.escape_debug().take(80).collect();
        Self { subject, given, problem: problem.to_string() }
    }
}

impl Upstream {
    /// Returns the configuration of a server with this name: 1 to 32 of `a-z 0-9 _ -`, with no
    /// two of `_ -` in a row and none at an end.
    ///
    /// # Errors
    ///
    /// Fails when the name has another form, or is reserved.
    pub fn new(name: impl Into<String>, reach: impl Into<Reach>) -> Result<Self, InvalidUpstream> {
        let name = name.into();
        if let Some(fault) = name::server_fault(&name) {
            return Err(InvalidUpstream::new("the server", &name, fault));
        }
        Ok(Self {
            name,
            reach: reach.into(),
            startup_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(300),
            questions: Questions::none(),
            enabled: true,
            only: None,
            without: Vec::new(),
        })
    }

    /// Sets how long the server may take until its tools are listed; 30 seconds by default, a year at
    /// most.
    #[must_use]
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets how long the server may be silent during a call; five minutes by default, a year at most.
    /// Each progress notification restarts it.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets which requests of the server are answered while its tools run; none by default.
    #[must_use]
    pub fn questions(mut self, questions: Questions) -> Self {
        self.questions = questions;
        self
    }

    /// Sets whether the server is used; it is by default. A disabled server is listed in the status,
    /// is never connected and has no tools.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Uses only these tools, by the server's names.
    #[must_use]
    pub fn only<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.only.get_or_insert_default().extend(tools.into_iter().map(Into::into));
        self
    }

    /// Excludes these tools, even if [`only`](Self::only) names them.
    #[must_use]
    pub fn without<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.without.extend(tools.into_iter().map(Into::into));
        self
    }

    /// The name in the host's configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to connect to it.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Returns a warning for each name in the filters that no tool of the server has.
    pub(super) fn unknown_among(&self, tools: &[RemoteTool]) -> Vec<String> {
        let is_unknown = |name: &&String| !tools.iter().any(|tool| tool.name == **name);
        let unknown = self.only.iter().flatten().chain(&self.without).filter(is_unknown);
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
    pub(super) fn admits(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|one| one == tool);
        self.only.as_deref().is_none_or(named) && !named(&self.without)
    }
}

impl Reach {
    /// A connection that the host provides.
    pub fn custom<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Arc<dyn Remote>, super::RemoteError>> + Send + 'static,
    {
        Self::Custom(Arc::new(move || Box::pin(connect())))
    }

    /// Returns a redactor for the secrets that this server is given, and for values that look like
    /// secrets.
    pub(super) fn redactor(&self) -> Redactor {
        match self {
            Self::Launch(launch) => Redactor::from_env_and(launch.env.values()),
            Self::Address(address) => Redactor::from_env_and(address.secrets()),
            Self::Custom(_) => Redactor::from_env(),
        }
    }

    /// What identifies the server in pinned definitions: everything but the values of secrets.
    #[must_use]
    pub fn identity(&self) -> Value {
        match self {
            Self::Launch(launch) => launch.identity(),
            Self::Address(address) => json!({
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
pub struct Launch {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    folder: Option<PathBuf>,
    sandbox: Policy,
}

impl Launch {
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
            folder: None,
            sandbox: Policy::default(),
        }
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the working directory; the host's own by default.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
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
    /// use tool_sdk::mcp::{Launch, Reach};
    /// use tool_sdk::process::sandbox::{Level, Mode, Policy};
    ///
    /// let policy = Policy::new(Mode::Required, Level::WorkspaceWrite).writable("/home/ada/project");
    /// let notes = Reach::from(Launch::new("mcp-server-notes", ["--all"]).sandbox(policy));
    ///
    /// assert_eq!(notes.identity()["sandbox"]["mode"], "required");
    /// ```
    pub fn sandbox(mut self, policy: Policy) -> Self {
        self.sandbox = policy;
        self
    }

    fn identity(&self) -> Value {
        let mut identity = json!({
            "command": self.command,
            "args": self.args.iter().map(|arg| SHAPES.redact(arg)).collect::<Vec<_>>(),
            "env": self.env.keys().collect::<Vec<_>>(),
            "cwd": self.folder,
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

    pub(super) fn run(&self) -> Run {
        let add = |env: ChildEnv, (name, value)| env.with(name, value);
        let env = self.env.iter().fold(ChildEnv::inherited(), add);
        let run = Run::exec(&self.command, &self.args).env(env).grace(Duration::from_secs(1));
        let run = run.sandbox(self.sandbox.clone());
        match &self.folder {
            Some(folder) => run.folder(folder),
            None => run,
        }
    }
}

impl From<Launch> for Reach {
    fn from(launch: Launch) -> Self {
        Self::Launch(launch)
    }
}

impl From<Address> for Reach {
    fn from(address: Address) -> Self {
        Self::Address(address)
    }
}

/// Without the values of variables, headers and tokens.
impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.identity(), f)
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Reach::Launch(self.clone()).fmt(f)
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("name", &self.name).field("reach", &self.reach).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_secrets() {
        let launch = Launch::new("run", ["-v", "ghp_0123456789abcdefghijkl"]);
        let launch = launch.env("API_KEY", "hunter2");
        let address = Address::new("https://a/?key=hunter2").unwrap().bearer("hunter2");
        let address = address.header("X-Key", "hunter2").unwrap();
        let shown = format!("{launch:?} {address:?}");
        assert!(shown.contains("API_KEY") && shown.contains("x-key"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("ghp_"), "{shown}");
    }

    // The filters of the Codex agent, as data.
    #[test]
    fn tool_filters_match_the_codex_fixtures() {
        let text = include_str!("../../../../tests/fixtures/codex-mcp-names/cases.json");
        let cases: Value = serde_json::from_str(text).unwrap();
        for case in cases["filters"].as_array().unwrap() {
            let list = |key: &str| {
                let items = case[key].as_array()?;
                Some(items.iter().map(|one| one.as_str().unwrap().to_owned()).collect::<Vec<_>>())
            };
            let mut upstream = Upstream::new("s", Launch::new("x", ["y"])).unwrap();
            if let Some(only) = list("enabled") {
                upstream = upstream.only(only);
            }
            let upstream = upstream.without(list("disabled").unwrap_or_default());
            let allowed = upstream.admits(case["tool"].as_str().unwrap());
            assert_eq!(Some(allowed), case["allowed"].as_bool(), "{case}");
        }
    }
}
