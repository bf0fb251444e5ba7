//! The tool `register_mcp_server`: connects an MCP server and adds its tools to the session.
//!
//! A server that is started by a command is a command: the permission rules for commands apply to
//! it.

use serde_json::{Value, json};
use tool_sdk::mcp::{
    HttpEndpoint, InvalidServerConfig, ServerCommand, ServerConfig, ServerManager, TransportConfig,
};
use tool_sdk::process::ChildEnv;
use tool_sdk::process::sandbox::SandboxPolicy;
use tool_sdk::{Context, Output, Resource, State, ToolError, tool};

use super::env_vars;
use super::sandbox_request::{self, SandboxRequest};

/// Use the tools of another server of the Model Context Protocol.
///
/// Give either the command that starts it or the URL where it listens. Its tools are there
/// from the next message on, under names that start with `mcp__NAME__`.
#[tool(
    execute,
    open_world,
    category = "mcp",
    display(
        name = "Add server",
        primary = name,
        show(name, command, args),
        summary = "Adding the server {name}",
        preview = approval_preview
    ),
    approval(required = requires_approval, resources = approval_resources, dangerous = is_dangerous),
    parallel = exclusive,
    timeout = "90s",
    example = r#"{"name": "time", "command": "mcp-server-time", "args": ["--local-timezone", "UTC"]}"#
)]
#[expect(clippy::too_many_arguments, reason = "each is a parameter of the tool")]
pub async fn register_mcp_server(
    /// What it shall be called here: 1 to 32 of a-z 0-9 _ -.
    #[arg(length = 1..=32)]
    name: String,
    /// The program that starts it; no shell reads it.
    command: Option<String>,
    /// The arguments of the program.
    args: Option<Vec<String>>,
    /// Variables for the program, each as NAME=VALUE. Secrets do not belong here.
    #[arg(sensitive)]
    env: Option<Vec<String>>,
    /// Where it listens, for a server that is not started here.
    #[arg(sensitive)]
    url: Option<String>,
    /// What confines the program: `required` starts it in a sandbox or not at all, `best_effort`
    /// as far as this system can. Without it the program is confined as commands are.
    #[arg(choices("best_effort", "required"))]
    sandbox: Option<String>,
    /// What the confined program may write: nothing, or folders for temporary files only.
    #[arg(choices("read_only", "workspace_write"))]
    sandbox_level: Option<String>,
    /// Whether the confined program reaches networks; unless said, only where the host has it so.
    sandbox_network: Option<bool>,
    upstreams: State<ServerManager>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let plan = ServerRequest {
        name: &name,
        command: command.as_deref(),
        args: args.as_deref().unwrap_or_default(),
        env: env.as_deref().unwrap_or_default(),
        url: url.as_deref(),
        sandbox: SandboxRequest {
            mode: sandbox.as_deref(),
            level: sandbox_level.as_deref(),
            network: sandbox_network,
        },
    };
    let upstreams = upstreams.for_call(cx);
    upstreams.add(plan.server_config(cx)?).map_err(invalid_args)?;
    match upstreams.connect(&name).await {
        Ok(status) => {
            cx.emit("mcp_server_registered", json!({ "server": name, "tools": status.tools }));
            let mut text = format!("{name} has {}:", super::count_noun(status.tools.len(), "tool"));
            for tool in &status.tools {
                text.push_str(&format!("\n- {tool}"));
            }
            for warning in &status.warnings {
                text.push_str(&format!("\nwarning: {warning}"));
            }
            Ok(Output::text(text).display(json!(status)))
        }
        Err(error) => {
            let stderr = upstreams.status(&name).map(|status| status.stderr).unwrap_or_default();
            upstreams.remove(&name);
            Err(ToolError::unavailable(format_args!("{name} does not answer: {error}"))
                .hint("look whether the command and its arguments are right")
                .source(format!("{error}\n{stderr}")))
        }
    }
}

fn invalid_args(error: InvalidServerConfig) -> ToolError {
    ToolError::invalid_args(error)
}

/// The arguments of a call.
struct ServerRequest<'a> {
    name: &'a str,
    command: Option<&'a str>,
    args: &'a [String],
    env: &'a [String],
    url: Option<&'a str>,
    sandbox: SandboxRequest<'a>,
}

impl<'a> ServerRequest<'a> {
    fn from_args(args: &'a RegisterMcpServerArgs) -> Self {
        Self {
            name: &args.name,
            command: args.command.as_deref(),
            args: args.args.as_deref().unwrap_or_default(),
            env: args.env.as_deref().unwrap_or_default(),
            url: args.url.as_deref(),
            sandbox: SandboxRequest {
                mode: args.sandbox.as_deref(),
                level: args.sandbox_level.as_deref(),
                network: args.sandbox_network,
            },
        }
    }

    /// Returns the sandbox policy of the server process. The request comes from a model, so the
    /// server is confined at least as strictly as commands are.
    fn sandbox_policy(&self, cx: &Context) -> Result<SandboxPolicy, ToolError> {
        self.sandbox.narrow_policy(&cx.session().extension::<SandboxPolicy>())
    }

    /// Returns the server's configuration, if it is valid and the program exists.
    fn server_config(&self, cx: &Context) -> Result<ServerConfig, ToolError> {
        let reach = match (self.command, self.url) {
            (Some(command), None) => self.launch_config(command, cx)?,
            (None, Some(url)) => match self.sandbox.first_argument() {
                Some(name) => {
                    let words = format_args!("`{name}` has no effect with `url`");
                    return Err(ToolError::invalid_args(words));
                }
                None => HttpEndpoint::new(url).map_err(invalid_args)?.into(),
            },
            _ => return Err(ToolError::invalid_args("give either `command` or `url`")),
        };
        let upstream = ServerConfig::new(self.name, reach).map_err(invalid_args)?;
        cx.state::<ServerManager>()?.for_call(cx).check_name(&upstream).map_err(invalid_args)?;
        match self.command.map(|command| (command, ProgramLookup::find(command))) {
            Some((command, ProgramLookup::Missing)) => {
                Err(ToolError::unavailable(format_args!("there is no program `{command}`"))
                    .hint("check the command, and whether it is installed"))
            }
            _ => Ok(upstream),
        }
    }

    /// Returns the launch configuration. The program gets only the variables of every child process
    /// and those that are validated as harmless.
    fn launch_config(&self, command: &str, cx: &Context) -> Result<TransportConfig, ToolError> {
        let program = ProgramLookup::find(command);
        let policy = self.sandbox_policy(cx)?;
        sandbox_request::check_enforceable(&policy)?;
        let launch =
            ServerCommand::new(program.path_or(command), self.args.iter().cloned()).sandbox(policy);
        let add = |launch: ServerCommand, (name, value)| launch.env(name, value);
        Ok(env_vars::validate_variables(self.env)?.into_iter().fold(launch, add).into())
    }

    /// The command line as the call gave it.
    fn argv(&self) -> Vec<String> {
        let command = self.command.map(str::to_owned);
        command.into_iter().chain(self.args.iter().cloned()).collect()
    }

    /// Returns the address without the values of the query, which may be secrets.
    fn display_address(&self) -> Option<String> {
        let url = self.url?;
        Some(HttpEndpoint::new(url).map_or_else(|wrong| wrong.value, |address| address.to_string()))
    }
}

/// The result of looking up the program of a command.
enum ProgramLookup {
    Found(String),
    Missing,
    /// The result depends on the working directory, or the path is not valid UTF-8.
    Unknown,
}

impl ProgramLookup {
    /// Looks the program up in the `PATH` of child processes; no requested variable can change it.
    fn find(command: &str) -> Self {
        let env = ChildEnv::from_host();
        if !cfg!(unix) || env.find_program("sh").is_none() {
            return Self::Unknown;
        }
        if command.contains('/') && !command.starts_with('/') {
            return Self::Unknown;
        }
        match env.find_program(command).map(std::path::PathBuf::into_os_string) {
            Some(file) => file.into_string().map_or(Self::Unknown, Self::Found),
            None => Self::Missing,
        }
    }

    fn found_path(&self) -> Option<&str> {
        match self {
            Self::Found(file) => Some(file),
            Self::Missing | Self::Unknown => None,
        }
    }

    fn path_or<'a>(&'a self, command: &'a str) -> &'a str {
        self.found_path().unwrap_or(command)
    }
}

fn requires_approval(_: &RegisterMcpServerArgs, _: &Context) -> bool {
    true
}

/// A new program must be approved each time.
fn is_dangerous(_: &RegisterMcpServerArgs) -> bool {
    true
}

/// The resources for the permission rules: the command line or the address. An invalid server is
/// denied without asking for approval.
fn approval_resources(args: &RegisterMcpServerArgs, cx: &Context) -> Vec<Resource> {
    let plan = ServerRequest::from_args(args);
    let argv = plan.argv();
    // The server runs in later sessions too, and outside of the sandbox unless it is asked for.
    let own = Resource::new(plan.display_address().unwrap_or_else(|| argv.join(" ")));
    let own = own.requires_approval();
    let own = match plan.server_config(cx) {
        Ok(_) => own,
        Err(error) => own.with_refusal(&error),
    };
    let mut subjects = vec![own];
    if plan.command.is_some() {
        subjects.extend(command_resources(&argv, !plan.env.is_empty(), cx));
    }
    subjects
}

/// The resources of the command line, as the tools that run commands report them.
#[cfg(all(unix, feature = "exec"))]
fn command_resources(argv: &[String], has_variables: bool, cx: &Context) -> Vec<Resource> {
    crate::exec::argv_resources(argv, has_variables, cx)
}

/// Without those tools command lines are not analysed, so the whole command line is opaque.
#[cfg(not(all(unix, feature = "exec")))]
fn command_resources(argv: &[String], _: bool, _: &Context) -> Vec<Resource> {
    vec![Resource::new(argv.join(" ")).opaque().with_permission("exec_command")]
}

/// The approval preview: command, arguments, resolved program, variables and sandbox, which
/// together determine what runs.
fn approval_preview(
    args: &RegisterMcpServerArgs,
    cx: &Context,
) -> Result<Option<Value>, ToolError> {
    let plan = ServerRequest::from_args(args);
    let program = plan.command.map(ProgramLookup::find);
    let policy = plan.command.map(|_| plan.sandbox_policy(cx)).transpose()?;
    Ok(Some(json!({
        "command": plan.command,
        "args": plan.args,
        "program": program.as_ref().and_then(ProgramLookup::found_path),
        "env": env_vars::display_variables(plan.env),
        "url": plan.display_address(),
        "sandbox": policy.as_ref().map(sandbox_request::describe_policy),
    })))
}

#[cfg(test)]
mod tests {
    use tool_sdk::testing::Harness;
    use tool_sdk::{ErrorKind, EventKind, Pipeline, Registry, tools};

    use super::*;

    fn harness() -> Harness {
        let upstreams = ServerManager::for_pipeline(&Pipeline::new(Registry::default()));
        allowed_harness().lend(upstreams)
    }

    /// Returns a harness with a rule for the tool, which asks in every mode.
    fn allowed_harness() -> Harness {
        let harness = Harness::new(tools![register_mcp_server]);
        let rule = "allow register_mcp_server".parse().unwrap();
        harness.pipeline().set_rules([rule].into_iter().collect());
        harness
    }

    /// A server with one tool, as a shell script.
    const SERVER: &str = r#"
        while read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
            case "$line" in
            *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
            *server/discover*) say '"error":{"code":-32601,"message":"no"}' ;;
            *tools/list*) say '"result":{"tools":[{"name":"hello","inputSchema":{"type":"object"}}]}' ;;
            esac
        done"#;

    // F126
    #[tokio::test]
    async fn adds_the_tools_and_emits_an_event() {
        let harness = allowed_harness();
        let upstreams = ServerManager::for_pipeline(harness.pipeline());
        let mut events = harness.pipeline().subscribe();
        let harness = harness.lend(upstreams);
        let args = json!({ "name": "greeter", "command": "sh", "args": ["-c", SERVER] });
        let added = harness.ok("register_mcp_server", args).await;
        assert_eq!(added.as_text(), "greeter has 1 tool:\n- mcp__greeter__hello");
        assert!(harness.pipeline().toolset().view().get("mcp__greeter__hello").is_some());
        let told = loop {
            match events.recv().await.unwrap().kind {
                EventKind::Emitted { kind, data } if kind == "mcp_server_registered" => break data,
                EventKind::Completed { .. } => panic!("nothing was told"),
                _ => {}
            }
        };
        assert_eq!(*told, json!({ "server": "greeter", "tools": ["mcp__greeter__hello"] }));
    }

    // F106, F126: on a shared server, the tools are those of the session that added them.
    #[tokio::test]
    async fn a_server_of_one_session_is_invisible_to_others() {
        use tool_sdk::{Call, Mode, Session};

        let tools = tools![register_mcp_server, crate::mcp::debug_mcp_server];
        let registry = Registry::builder().add(tools).build().unwrap();
        let pipeline = Pipeline::new(registry).mode(Mode::Bypass);
        let pipeline = pipeline.rules(["allow register_mcp_server".parse().unwrap()]);
        let servers = ServerManager::for_pipeline(&pipeline);
        servers.add(ServerConfig::new("shared", ServerCommand::new("sh", ["x"])).unwrap()).unwrap();
        let session = |user: &str| {
            let session = Session::new(user).with_user(user).with_shared_server();
            session.with_service(servers.clone())
        };
        let (ada, bob) = (session("ada"), session("bob"));
        let call = async |session: &Session, tool: &str, args: Value| {
            pipeline.call(session, Call::new(tool.to_owned(), args)).await
        };
        let args = json!({ "name": "greeter", "command": "sh", "args": ["-c", SERVER] });
        let added = call(&ada, "register_mcp_server", args.clone()).await;
        assert!(added.text().contains("mcp__greeter__hello"), "{}", added.text());
        let has_tool = |session: &Session| {
            pipeline.toolset().view_for(session).get("mcp__greeter__hello").is_some()
        };
        assert!(has_tool(&ada) && !has_tool(&bob) && !has_tool(&session("ada")));
        let unknown = call(&bob, "mcp__greeter__hello", json!({})).await;
        assert_eq!(unknown.result.unwrap_err().kind(), ErrorKind::NotFound);
        let seen = call(&bob, "debug_mcp_server", json!({ "name": "greeter" })).await;
        assert_eq!(seen.result.unwrap_err().kind(), ErrorKind::NotFound);
        let seen = call(&ada, "debug_mcp_server", json!({})).await;
        assert!(
            seen.text().contains("greeter") && seen.text().contains("shared"),
            "{}",
            seen.text()
        );
        // Another session may use the name, and no session that of a server of the host.
        let again = call(&bob, "register_mcp_server", args).await;
        assert!(again.result.is_ok() && has_tool(&bob), "{:?}", again.result);
        let taken = json!({ "name": "shared", "command": "sh", "args": ["-c", SERVER] });
        let refused = call(&ada, "register_mcp_server", taken).await;
        assert!(refused.text().contains("has the same name"), "{}", refused.text());
        assert!(pipeline.close().await.is_empty());
        assert!(!has_tool(&ada) && !has_tool(&bob));
    }

    // F126
    #[tokio::test]
    async fn removes_a_server_that_does_not_start() {
        let harness = harness();
        let ends = json!({ "name": "gone", "command": "sh", "args": ["-c", "exit 3"] });
        let missing = json!({ "name": "gone", "command": "/no/such/program" });
        for args in [&ends, &ends, &missing] {
            let error = harness.error("register_mcp_server", args.clone()).await;
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
    }

    #[test]
    fn masks_secrets_in_an_address() {
        for (url, expected) in [
            ("https://a.example/mcp?key=s3cret", "https://a.example/mcp?key=[hidden]"),
            ("https://ada:s3cret@a.example/", "https://a.example/"),
        ] {
            let args = RegisterMcpServerArgs { url: Some(url.to_owned()), ..empty_args() };
            assert_eq!(
                ServerRequest::from_args(&args).display_address().as_deref(),
                Some(expected)
            );
            assert!(!shown_text(&args).contains("s3cret"));
        }
    }

    // F126: models put secrets where they do not belong; the approval prompt must not show them.
    #[test]
    fn masks_variables_and_addresses_in_the_display() {
        let registry = Registry::builder().add(tools![register_mcp_server]).build().unwrap();
        let display = &registry.get("register_mcp_server").unwrap().definition().display;
        let arguments = json!({
            "name": "x", "command": "y", "env": ["KEY=s3cret"], "url": "https://a.example/?k=s3cret",
        });
        let shown = display.mask_arguments(&arguments.to_string()).to_string();
        assert!(!shown.contains("s3cret") && shown.contains("\"command\":\"y\""), "{shown}");
    }

    fn empty_args() -> RegisterMcpServerArgs {
        RegisterMcpServerArgs {
            name: "x".to_owned(),
            command: None,
            args: None,
            env: None,
            url: None,
            sandbox: None,
            sandbox_level: None,
            sandbox_network: None,
        }
    }

    // 4.2.4: the preview shows what runs.
    #[cfg(unix)]
    #[test]
    fn preview_shows_the_program_and_its_variables() {
        let env = ["RUST_LOG=debug", "PATH=/tmp/evil"].map(str::to_owned).to_vec();
        let command = Some("sh".to_owned());
        let args = RegisterMcpServerArgs { command, env: Some(env), ..empty_args() };
        let shown = approval_preview(&args, &tool_sdk::testing::context()).unwrap().unwrap();
        assert_eq!(shown["env"], json!(["RUST_LOG=debug", "PATH"]));
        let program = shown["program"].as_str().unwrap();
        assert!(program.starts_with('/') && program.ends_with("/sh"), "{program}");
    }

    // What is shown is what confines it.
    #[cfg(unix)]
    #[test]
    fn preview_shows_the_sandbox() {
        let cx = tool_sdk::testing::context();
        let asked = |mode: Option<&str>, level: Option<&str>| {
            let owned = |word: Option<&str>| word.map(str::to_owned);
            let args = RegisterMcpServerArgs {
                command: Some("sh".to_owned()),
                sandbox: owned(mode),
                sandbox_level: owned(level),
                ..empty_args()
            };
            approval_preview(&args, &cx).unwrap().unwrap()["sandbox"].as_str().unwrap().to_owned()
        };
        assert_eq!(asked(None, None), "off");
        let words = asked(Some("best_effort"), None);
        assert!(words.starts_with("best_effort, workspace_write: "), "{words}");
        let words = asked(Some("required"), Some("read_only"));
        assert!(words.starts_with("required, read_only: "), "{words}");
        let url = Some("https://a.example/".to_owned());
        let args = RegisterMcpServerArgs { url, ..empty_args() };
        assert!(approval_preview(&args, &cx).unwrap().unwrap()["sandbox"].is_null());
    }

    // No helper can be started here, so nothing is held.
    #[tokio::test]
    async fn starts_a_server_in_the_requested_sandbox() {
        let server = json!({ "name": "greeter", "command": "sh", "args": ["-c", SERVER] });
        let with = |more: Value| {
            let mut args = server.clone();
            args.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
            args
        };
        let best = with(json!({
            "sandbox": "best_effort", "sandbox_level": "read_only", "sandbox_network": true,
        }));
        let added = harness().ok("register_mcp_server", best).await;
        let reach = &added.display_data().unwrap()["reach"];
        let expected = json!({ "mode": "best_effort", "level": "read_only", "network": true });
        assert_eq!(reach["sandbox"], expected, "{reach}");

        let required = with(json!({ "sandbox": "required" }));
        let error = harness().error("register_mcp_server", required.clone()).await;
        assert!(error.to_string().contains("the sandbox cannot hold what is required"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unavailable);

        for (more, words) in [
            (json!({ "sandbox": "off" }), "best_effort"),
            (json!({ "sandbox": "auto" }), "required"),
            (json!({ "sandbox": "required", "sandbox_level": "full" }), "workspace_write"),
            (json!({ "sandbox_network": false }), "no effect without `sandbox`"),
        ] {
            let error = harness().error("register_mcp_server", with(more.clone())).await;
            assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{more}: {error}");
            assert!(error.to_string().contains(words), "{more}: {error}");
        }
    }

    // An invalid server is denied before approval is requested.
    #[tokio::test]
    async fn denies_an_invalid_server_without_approval() {
        use tool_sdk::{Action, Call, Session};

        let registry = Registry::builder().add(tools![register_mcp_server]).build().unwrap();
        let pipeline = Pipeline::new(registry);
        let upstreams = ServerManager::for_pipeline(&pipeline);
        upstreams.add(ServerConfig::new("a-b", ServerCommand::new("sh", ["x"])).unwrap()).unwrap();
        let session = Session::new("test").with_service(upstreams);
        for (args, expected) in [
            (json!({ "name": "x", "command": "sh" }), Action::Ask),
            (json!({ "name": "x", "command": "sh", "env": ["CI=1"] }), Action::Ask),
            (json!({ "name": "x", "url": "https://a.example/" }), Action::Ask),
            (json!({ "name": "a_b", "command": "sh" }), Action::Deny),
            (json!({ "name": "mcp", "command": "sh" }), Action::Deny),
            (json!({ "name": "x", "command": "no-such-program" }), Action::Deny),
            (json!({ "name": "x", "command": "/no/such/program" }), Action::Deny),
            (json!({ "name": "x", "command": "sh", "env": ["PATH=/tmp/evil"] }), Action::Deny),
            (json!({ "name": "x", "command": "sh", "url": "https://a/" }), Action::Deny),
            (json!({ "name": "x", "url": "http://a.example/" }), Action::Deny),
            (json!({ "name": "x", "command": "sh", "sandbox": "best_effort" }), Action::Ask),
            (json!({ "name": "x", "command": "sh", "sandbox": "required" }), Action::Deny),
            (json!({ "name": "x", "command": "sh", "sandbox_network": true }), Action::Deny),
            (json!({ "name": "x", "url": "https://a/", "sandbox": "required" }), Action::Deny),
        ] {
            let call = Call::new("register_mcp_server", args.to_string());
            let decision = pipeline.check(&session, call).await.unwrap().decision;
            assert_eq!(decision.action, expected, "{args}: {}", decision.reason);
        }
    }

    fn shown_text(args: &RegisterMcpServerArgs) -> String {
        let cx = tool_sdk::testing::context();
        format!("{:?} {:?}", approval_preview(args, &cx), approval_resources(args, &cx))
    }

    // F72, CH2: a server is not started when the rules for commands deny its command line.
    #[cfg(all(unix, feature = "exec"))]
    #[tokio::test]
    async fn command_rules_apply_to_servers() {
        use tool_sdk::Action::{self, Allow, Deny};
        use tool_sdk::{Call, Mode, Rule, Session};

        async fn decide(rules: &[&str], args: &[&str]) -> Action {
            let registry = Registry::builder().add(tools![register_mcp_server]).build().unwrap();
            let rules = ["allow register_mcp_server"].iter().chain(rules);
            let rules: Vec<Rule> = rules.map(|rule| rule.parse().unwrap()).collect();
            let pipeline = Pipeline::new(registry).mode(Mode::Bypass).rules(rules);
            let session = Session::new("test").with_service(ServerManager::for_pipeline(&pipeline));
            let args = json!({ "name": "x", "command": args[0], "args": args[1..] });
            let call = Call::new("register_mcp_server", args.to_string());
            pipeline.check(&session, call).await.unwrap().decision.action
        }

        const SH: &[&str] = &["sh", "-c", "touch owned"];
        const TWO_WORDS: &[&str] = &["true", "a; b"];
        for (rules, args, expected) in [
            (&[][..], SH, Allow),
            (&["deny exec_command"], SH, Deny),
            (&["deny exec_command"], TWO_WORDS, Deny),
            (&["deny exec_command(sh *)"], SH, Deny),
            (&["deny exec_command(touch *)"], SH, Deny),
            (&["deny exec_command(touch *)"], &["/usr/bin/env", "A=1", "touch", "x"], Deny),
            (&["deny exec_command(b)"], TWO_WORDS, Allow),
            (&["deny edit"], &["sh", "-c", "echo > owned"], Deny),
        ] {
            assert_eq!(decide(rules, args).await, expected, "{rules:?} {args:?}");
        }
    }

    // CH2
    #[tokio::test]
    async fn rejects_invalid_servers() {
        for args in [
            json!({ "name": "x" }),
            json!({ "name": "x", "command": "a", "url": "https://a/" }),
            json!({ "name": "x", "url": "http://example.com/" }),
            json!({ "name": "mcp", "command": "a" }),
            json!({ "name": "x", "command": "sh", "env": ["PATH=/tmp/evil"] }),
            json!({ "name": "x", "command": "sh", "env": ["LD_PRELOAD=./x.so"] }),
            json!({ "name": "x", "command": "sh", "env": ["API_TOKEN=s"] }),
        ] {
            let error = harness().error("register_mcp_server", args.clone()).await;
            assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{args}: {error}");
        }
    }
}
