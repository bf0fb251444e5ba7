//! A server of somebody else: its name here, how it is reached, and which of its tools count.
//!
//! Plain data. Who wrote it down is the host; a server has no say in any of it.

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

/// Finds what looks like a secret, and knows none: what is shown of a server stays the same,
/// whoever looks.
static SHAPES: LazyLock<Redactor> = LazyLock::new(Redactor::default);

/// The longest that is waited for anything: so much that a moment after it can be named.
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
/// assert!(Address::new("http://wiki.example.com/mcp").is_err(), "a token would be read by others");
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

/// How a server is reached.
#[derive(Clone)]
#[non_exhaustive]
pub enum Reach {
    /// A program that is started and talked to over its standard input and output.
    Launch(Launch),
    /// A place on the network.
    Address(Address),
    /// In a way of the host's own.
    Custom(Connect),
}

/// Makes a connection of the host's own kind.
pub type Connect = Arc<dyn Fn() -> RemoteWork<'static, Arc<dyn Remote>> + Send + Sync>;

/// Why a server cannot be used as it is described.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{subject} `{given}`: {problem}")]
#[non_exhaustive]
pub struct InvalidUpstream {
    /// What was described.
    pub subject: &'static str,
    /// How.
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
    /// A server under the name that it has here: 1 to 32 of `a-z 0-9 _ -`, with no
    /// two of `_ -` in a row and none at an end.
    ///
    /// # Errors
    ///
    /// Fails when the name is of another form, or reserved.
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

    /// Sets how long the server may take until its tools are known; half a minute unless set,
    /// and a year at most.
    #[must_use]
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets for how long the server may say nothing while a call runs; five minutes unless
    /// set, and a year at most. Each message about progress begins it anew.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets which questions of the server are answered while its tools run; none unless set.
    #[must_use]
    pub fn questions(mut self, questions: Questions) -> Self {
        self.questions = questions;
        self
    }

    /// Sets whether it may be met at all; it may unless set. A server that is switched off is
    /// known, and has no tools.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Keeps only these tools, by the server's names.
    #[must_use]
    pub fn only<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.only.get_or_insert_default().extend(tools.into_iter().map(Into::into));
        self
    }

    /// Leaves these tools out, whatever [`only`](Self::only) says.
    #[must_use]
    pub fn without<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.without.extend(tools.into_iter().map(Into::into));
        self
    }

    /// The name that it has here.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is reached.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// What names no tool of those that the server has: who wrote it meant another one.
    pub(super) fn unknown_among(&self, tools: &[RemoteTool]) -> Vec<String> {
        let is_unknown = |name: &&String| !tools.iter().any(|tool| tool.name == **name);
        let unknown = self.only.iter().flatten().chain(&self.without).filter(is_unknown);
        unknown
            .map(|name| format!("it has no tool `{}` to choose or leave out", name.escape_debug()))
            .collect()
    }

    /// Whether a tool counts.
    pub(super) fn admits(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|one| one == tool);
        self.only.as_deref().is_none_or(named) && !named(&self.without)
    }
}

impl Reach {
    /// A connection of the host's own kind.
    pub fn custom<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Arc<dyn Remote>, super::RemoteError>> + Send + 'static,
    {
        Self::Custom(Arc::new(move || Box::pin(connect())))
    }

    /// Finds the secrets that this server is handed, and whatever else looks like one.
    pub(super) fn redactor(&self) -> Redactor {
        match self {
            Self::Launch(launch) => Redactor::from_env_and(launch.env.values()),
            Self::Address(address) => Redactor::from_env_and(address.secrets()),
            Self::Custom(_) => Redactor::from_env(),
        }
    }

    /// What tells this server from another one: everything but the values of secrets.
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
/// It sees what every child sees, and the variables that are given here; it leads a process
/// group of its own, which ends with the connection.
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
    /// A program with arguments; no shell reads them.
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

    /// Adds a variable to its environment.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// The folder that it runs in; the host's own when nothing is said.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// What the kernel lets it do; everything when nothing is said. Where that is required and
    /// cannot be held, the program is not started.
    ///
    /// Whether and how far it is confined tells it from other servers: a tool of one that is
    /// not confined any more is a tool that nobody has seen. Which folders it may write does not.
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
    fn no_secret_is_shown() {
        let launch = Launch::new("run", ["-v", "ghp_0123456789abcdefghijkl"]);
        let launch = launch.env("API_KEY", "hunter2");
        let address = Address::new("https://a/?key=hunter2").unwrap().bearer("hunter2");
        let address = address.header("X-Key", "hunter2").unwrap();
        let shown = format!("{launch:?} {address:?}");
        assert!(shown.contains("API_KEY") && shown.contains("x-key"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("ghp_"), "{shown}");
    }

    // The filters of another agent, as data.
    #[test]
    fn filters_are_those_of_the_fixtures() {
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
