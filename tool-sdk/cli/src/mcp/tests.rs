//! Tests of configured servers, from the configuration to a call; the server is a shell script.

use http_stub::{HttpStub, StubReply};
use serde_json::{Value, json};
use tool_sdk_core::{Context, DynamicTool, FromContext as _, Registry, State};
use tool_sdk_mcp::ServerManager;

use crate::App;
use crate::test_support::{CliOutput, TestCli, make_definition};

/// A server with one tool as a shell script; `cases` handle its calls.
fn server(tool: &str, cases: &str) -> String {
    format!(
        r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
  case "$line" in
    *'"initialize"'*) say '"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},"resources":{{}},"prompts":{{}}}},"serverInfo":{{"name":"x","version":"1"}}}}' ;;
    *server/discover*) say '"error":{{"code":-32601,"message":"no"}}' ;;
    *tools/list*) say '"result":{{"tools":[{tool}]}}' ;;
    {cases}
  esac
done
"#
    )
}

/// A server whose tool returns a greeting.
pub(super) fn greeting_server() -> String {
    server(
        r#"{"name":"hello","description":"Says hello.","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}}"#,
        r#"*tools/call*) say '"result":{"content":[{"type":"text","text":"hello"}]}' ;;"#,
    )
}

/// A server whose tool elicits a name and greets it.
fn asking_server() -> String {
    server(
        r#"{"name":"hello","inputSchema":{"type":"object"}}"#,
        r#"*tools/call*) call=$id; id='"q"'; say '"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}' ;;
    *'"id":"q"'*) name=$(printf '%s' "$line" | sed -n 's/.*"name":"\([a-z]*\)".*/\1/p'); id=$call; say '"result":{"content":[{"type":"text","text":"hello '"$name"'"}]}' ;;"#,
    )
}

/// A command line with its own configuration file and state folder.
struct TestConfig {
    setting: TestCli,
    config: String,
    state: tempfile::TempDir,
}

impl TestConfig {
    fn new(config: &str) -> Self {
        let setting = TestCli::default();
        let config = setting.write_text("config.toml", config);
        Self { setting, config, state: tempfile::tempdir().expect("a folder") }
    }

    fn run(&self, args: &[&str]) -> CliOutput {
        let state = self.state.path().to_str().expect("a plain path");
        let options = ["--config", &self.config, "--state-dir", state];
        self.setting.run(&[&options[..], args].concat())
    }

    /// Adds the server of the script.
    fn add(&self) -> CliOutput {
        let script = self.setting.write_text("server.sh", &greeting_server());
        self.run(&["--yes", "mcp", "add", "greeter", "--", "sh", &script])
    }
}

#[test]
fn a_server_is_added_used_and_removed() {
    let shelf = TestConfig::new("mode = \"auto\"\n");
    let added = shelf.add();
    assert_eq!(added.code, 0, "{}", added.err);
    assert!(added.err.contains("  hello  execute   Says hello."));

    let listed = shelf.run(&["list"]);
    assert!(listed.out.contains("mcp__greeter__hello  execute  Says hello."), "{}", listed.out);
    let shown = shelf.run(&["mcp", "inspect", "greeter", "--json"]);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(shown["tools"][0]["source"]["server"], "greeter");

    // Adding it trusted its definitions, so a rule for the tool is enough.
    let call = ["call", "mcp__greeter__hello", "--to", "ada"];
    assert_eq!(shelf.run(&[&["--no-input"][..], &call].concat()).code, 3);
    let called = shelf.run(&[&["--no-input", "--allow", "mcp(greeter/*)"][..], &call].concat());
    assert_eq!((called.code, called.out.as_str()), (0, "hello\n"), "{}", called.err);
    assert_eq!(called.err, "", "the rule matches");
    let rules = ["mcp(greeter/*)", "mcp_definition(greeter/*)", "mcp_sampling", "mcp__greeter__*"];
    let rules: Vec<&str> = rules.iter().flat_map(|rule| ["--ask", rule]).collect();
    for call in [&["call", "echo", "--text", "x"][..], &["check", "mcp__greeter__hello"]] {
        assert_eq!(shelf.run(&[&rules[..], call].concat()).err, "", "{call:?}");
    }
    let wrong = ["--ask", "mcp__greter__*", "call", "echo", "--text", "x"];
    assert!(shelf.run(&wrong).err.contains("matches no tool"));
    let denied = shelf.run(&[&["--yes", "--deny", "mcp__greeter__*"][..], &call].concat());
    assert_eq!(denied.code, 3, "{}", denied.err);
    let checked = shelf.run(&["check", "mcp__greeter__hello", "--json"]);
    assert!(checked.out.contains("\"decision\":\"ask\""), "{}", checked.out);

    // Options after the tool's name select the configuration, too.
    let state = shelf.state.path().to_str().unwrap();
    let behind = ["--config", &shelf.config, "--state-dir", state, "--yes"];
    let called = shelf.setting.run(&[&call, &behind[..]].concat());
    assert_eq!((called.code, called.out.as_str()), (0, "hello\n"), "{}", called.err);
    let checked = shelf.setting.run(&[&["check", "mcp__greeter__hello"], &behind[..4]].concat());
    assert!(checked.out.contains("\"decision\":\"ask\""), "{}", checked.err);

    assert_eq!(shelf.run(&["mcp", "remove", "greeter"]).code, 0);
    assert_eq!(shelf.run(&["mcp", "list"]).err, "no servers are configured\n");
    assert_eq!(shelf.run(&call).code, 2, "there is no such tool any more");

    // MC2: the same entry must be trusted again.
    let script = shelf.setting.write_text("server.sh", &greeting_server());
    let entry = format!("[mcp.servers.greeter]\ncommand = \"sh\"\nargs = [{script:?}]\n");
    shelf.setting.write_text("config.toml", &entry);
    let again = shelf.run(&[&["--no-input", "--allow", "mcp(greeter/*)"][..], &call].concat());
    assert_eq!(again.code, 3, "{}", again.out);
}

// MC2: a changed definition is named wherever the user meets the tool, and `--yes`, which shows
// nothing, does not approve it for later calls.
#[test]
fn a_changed_definition_is_named_and_not_pinned_by_yes() {
    let shelf = TestConfig::new("");
    assert_eq!(shelf.add().code, 0);
    let listed = shelf.run(&["mcp", "list"]).out;
    assert!(listed.starts_with("greeter  1 tool  sh "), "{listed}");

    let changed = greeting_server().replace("Says hello.", "Says hello, and more.");
    shelf.setting.write_text("server.sh", &changed);
    let call = ["--allow", "mcp(greeter/*)", "call", "mcp__greeter__hello", "--to", "ada"];
    let is_refused = || {
        let ran = shelf.run(&[&["--no-input"][..], &call].concat());
        assert_eq!(ran.code, 3, "{}", ran.out);
        let words = "the server changed the definition of `hello` since it was approved, and `";
        assert!(ran.err.contains(words), "{}", ran.err);
        assert!(ran.err.contains("mcp inspect greeter` shows the difference"), "{}", ran.err);
    };
    is_refused();
    let listed = shelf.run(&["mcp", "list"]).out;
    let state = "1 tool, 1 changed since approved: `mcp inspect greeter`";
    assert!(listed.contains(state), "{listed}");
    let shown = shelf.run(&["mcp", "inspect", "greeter"]).out;
    assert!(shown.contains("changed since it was approved:"), "{shown}");
    assert!(shown.contains("+  \"description\": \"Says hello, and more.\""), "{shown}");
    let shown = shelf.run(&["mcp", "inspect", "greeter", "--json"]).out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert!(shown["changed"]["mcp__greeter__hello"].is_string(), "{shown}");

    let ran = shelf.run(&[&["--yes"][..], &call].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "hello\n"), "{}", ran.err);
    is_refused();
}

// MC7: elicitation reaches the terminal if the configuration allows it.
#[test]
fn a_server_elicits_from_the_terminal() {
    for (questions, lines, expected) in [
        ("questions = [\"forms\"]", &["y", "y", "ada"][..], "hello ada\n"),
        ("questions = [\"forms\"]", &["y", "n"], "hello \n"),
        ("", &["y", "y", "ada"], "hello \n"),
    ] {
        let mut shelf = TestConfig::new("");
        let script = shelf.setting.write_text("server.sh", &asking_server());
        let server =
            format!("[mcp.servers.shy]\ncommand = \"sh\"\nargs = [\"{script}\"]\n{questions}\n");
        shelf.config = shelf.setting.write_text("config.toml", &server);
        shelf.setting.type_lines(lines);
        let called = shelf.run(&["call", "mcp__shy__hello", "{}"]);
        assert_eq!((called.code, called.out.as_str()), (0, expected), "{}", called.err);
        let asked = shelf.setting.shown_text().contains("The server `shy` asks this");
        assert_eq!(asked, !questions.is_empty(), "{}", shelf.setting.shown_text());
    }
}

// F121
#[test]
fn calls_of_a_batch_reach_servers_too() {
    let mut shelf = TestConfig::new("");
    assert_eq!(shelf.add().code, 0);
    shelf.setting.stdin = b"{\"name\": \"mcp__greeter__hello\"}\n{\"name\": \"echo\", \
        \"arguments\": {\"text\": \"own\"}}\n"
        .to_vec();
    let ran = shelf.run(&["--yes", "batch"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.contains("hello") && ran.out.contains("own"), "{}", ran.out);
}

#[test]
fn an_unavailable_server_only_causes_a_warning() {
    let shelf = TestConfig::new("[mcp.servers.gone]\ncommand = \"/no/such/program\"\n");
    let listed = shelf.run(&["list"]);
    assert_eq!(listed.code, 0);
    assert!(listed.out.contains("echo"), "{}", listed.out);
    assert!(listed.err.starts_with("warning: the server `gone` is left out: "), "{}", listed.err);
    let called = shelf.run(&["call", "echo", "--text", "hi"]);
    assert_eq!((called.out.as_str(), called.err.as_str()), ("hi\n", ""), "it is not even tried");
    assert_eq!(shelf.run(&["call", "mcp__gone__x", "{}"]).code, 2);
}

// The options after the name of a tool select the servers that the tool lists.
#[test]
fn a_tool_of_the_program_lists_the_servers_of_its_call() {
    let tool = DynamicTool::new(make_definition("servers", json!({})), |_: Value, cx: Context| {
        let manager = State::<ServerManager>::from_context(&cx).map(|it| it.statuses());
        async move { manager.map(|it| it.iter().map(|it| it.name.clone()).collect::<String>()) }
    });
    let app = App::new(Registry::builder().add(tool).build().unwrap());
    let shelf = TestConfig::new("[mcp.servers.gone]\ncommand = \"/no/such/program\"\n");
    for args in [
        &["--yes", "--config", &*shelf.config, "call", "servers"][..],
        &["--yes", "call", "servers", "--config", &*shelf.config],
    ] {
        let called = shelf.setting.run_app(&app, args);
        assert_eq!((called.code, called.out.as_str()), (0, "gone\n"), "{args:?}: {}", called.err);
    }
}

// F10
#[test]
fn a_missing_variable_only_disables_its_server() {
    for needs in ["url = \"https://a/\"\nbearer_env", "command = \"x\"\nenv_from"] {
        let name = if needs.ends_with("env_from") { "[\"NOT_SET\"]" } else { "\"NOT_SET\"" };
        let shelf = TestConfig::new(&format!("[mcp.servers.poor]\n{needs} = {name}\n"));
        let listed = shelf.run(&["list"]);
        assert!(listed.code == 0 && listed.out.contains("echo"), "{}", listed.err);
        let told = "warning: the server `poor` is left out: it needs the variable `NOT_SET`";
        assert!(listed.err.starts_with(told), "{}", listed.err);
        assert_eq!(shelf.add().code, 0);
        assert_eq!(shelf.run(&["call", "mcp__poor__x", "{}"]).code, 2);
    }
}

// MC5: the test harness has no sandbox helper.
#[test]
fn a_required_sandbox_that_is_missing_prevents_the_start() {
    let shelf = TestConfig::new("");
    let script = shelf.setting.write_text("server.sh", &greeting_server());
    let entry = |sandbox: &str| {
        let server = format!("[mcp.servers.greeter]\ncommand = \"sh\"\nargs = [{script:?}]\n");
        shelf.setting.write_text("config.toml", &(server + sandbox));
    };
    entry("sandbox = \"required\"\n");
    let listed = shelf.run(&["mcp", "list"]);
    let told = "the sandbox cannot enforce the required policy";
    assert!(listed.out.contains(told) && listed.err.contains(told), "{}", listed.out);
    assert!(listed.out.ends_with("(sandbox: required, workspace_write)\n"), "{}", listed.out);
    let call = ["--yes", "call", "mcp__greeter__hello", "{}"];
    let called = shelf.run(&call);
    assert!(called.code == 2 && called.err.contains(told), "{}", called.err);

    entry("sandbox = \"best_effort\"\nsandbox_level = \"read_only\"\nsandbox_network = true\n");
    let shown = shelf.run(&["mcp", "inspect", "greeter"]);
    let first = shown.out.lines().next().unwrap_or_default();
    assert!(first.ends_with("(sandbox: best_effort, read_only, with networks)"), "{}", shown.out);
    assert!(shown.out.contains("warning: its sandbox has gaps: filesystem none"), "{}", shown.out);
    assert_eq!(shelf.run(&call).out, "hello\n");

    for sandbox in ["", "sandbox = \"off\"\n", "sandbox = \"required\"\nsandbox_level = \"full\"\n"]
    {
        entry(sandbox);
        let listed = shelf.run(&["mcp", "list"]);
        assert!(listed.out.starts_with("greeter  1 tool  sh "), "{}", listed.out);
        assert!(!listed.out.contains("(sandbox"), "{sandbox}: {}", listed.out);
    }
}

// MC5
#[test]
fn a_server_is_sandboxed_from_the_first_start() {
    let shelf = TestConfig::new("mode = \"auto\"\n");
    let script = shelf.setting.write_text("server.sh", &greeting_server());
    let written = || std::fs::read_to_string(&shelf.config).unwrap();
    let add = |options: &[&str]| {
        let server = ["--", "sh", &script];
        shelf.run(&[&["--yes", "mcp", "add", "greeter"], options, &server].concat())
    };
    // The test harness has no sandbox helper.
    let refused = add(&["--sandbox", "required"]);
    assert!(refused.code == 1 && refused.err.contains("cannot enforce"), "{}", refused.err);
    assert_eq!(written(), "mode = \"auto\"\n");

    for (options, keys, shown) in [
        (
            &["--sandbox", "best_effort", "--sandbox-level=read_only", "--sandbox-network"][..],
            "sandbox = \"best_effort\"\nsandbox_level = \"read_only\"\nsandbox_network = true\n",
            "  (sandbox: best_effort, read_only, with networks)",
        ),
        (
            &["--sandbox", "best_effort"],
            "sandbox = \"best_effort\"\n",
            "  (sandbox: best_effort, workspace_write)",
        ),
        (&["--sandbox=off"], "sandbox = \"off\"\n", ""),
        (&[], "", ""),
    ] {
        let added = add(options);
        assert_eq!(added.code, 0, "{options:?}: {}", added.err);
        assert!(written().ends_with(&format!("]\n{keys}")), "{}", written());
        assert_eq!(added.err.contains("its sandbox has gaps"), !shown.is_empty(), "{}", added.err);
        let inspected = shelf.run(&["mcp", "inspect", "greeter"]).out;
        for page in [&added.err, &inspected, &shelf.run(&["mcp", "list"]).out] {
            let first = page.lines().next().unwrap_or_default();
            assert!(first.ends_with(&format!("server.sh{shown}")), "{options:?}: {page}");
        }
        // Adding it trusted the server with this sandbox.
        let call = ["--no-input", "--allow", "mcp(greeter/*)", "call", "mcp__greeter__hello", "{}"];
        assert_eq!(shelf.run(&call).out, "hello\n", "{options:?}");
        assert_eq!(shelf.run(&["mcp", "remove", "greeter"]).code, 0);
    }
}

// Sandbox options of `mcp add` apply to the server; the sandbox of commands does not.
#[test]
fn the_sandbox_of_commands_does_not_apply_to_servers() {
    let mut shelf = TestConfig::new("sandbox = \"required\"\n");
    shelf.setting.env.push(("TOOL_SDK_SANDBOX_LEVEL", "read_only".into()));
    assert_eq!(shelf.add().code, 0);
    assert_eq!(shelf.run(&["mcp", "remove", "greeter"]).code, 0);
    let script = shelf.setting.write_text("server.sh", &greeting_server());
    let before = ["--yes", "--sandbox", "best_effort", "mcp", "add", "greeter"];
    assert_eq!(shelf.run(&[&before[..], &["--", "sh", &script]].concat()).code, 0);
    let listed = shelf.run(&["mcp", "list"]).out;
    assert!(listed.ends_with("(sandbox: best_effort, workspace_write)\n"), "{listed}");

    let web = HttpStub::start(|_| StubReply::Usual);
    let before = ["--yes", "--sandbox", "required", "mcp", "add", "web", "--url"];
    let added = shelf.run(&[&before[..], &[&web.url()]].concat());
    assert_eq!(added.code, 0, "{}", added.err);
}

#[test]
fn a_client_that_was_registered_by_hand_is_written_without_its_secret() {
    let mut shelf = TestConfig::new("");
    shelf.setting.env.push(("SHELF_SECRET", "very-secret-word".into()));
    let web = HttpStub::start(|_| StubReply::Usual);
    let url = web.url();
    let add = |name: &str, options: &[&str]| {
        shelf.run(&[&["--yes", "mcp", "add", name, "--url", &url], options].concat())
    };
    let client = ["--client-id", "4711", "--client-secret-env", "SHELF_SECRET"];
    let refused = add("web", &client);
    assert!(refused.code == 2 && refused.err.contains("--issuer"), "{}", refused.err);
    let rest = ["--issuer", "https://a.example", "--scope", "read", "--scope", "write"];
    let added = add("web", &[&client[..], &rest, &["--redirect-port", "7777"]].concat());
    assert_eq!(added.code, 0, "{}", added.err);
    let written = std::fs::read_to_string(&shelf.config).unwrap();
    let expected = "oauth = { client_id = \"4711\", client_secret_env = \"SHELF_SECRET\", \
                    issuer = \"https://a.example\", scopes = [\"read\", \"write\"], redirect_port = 7777 }";
    assert!(written.contains(expected), "{written}");
    assert!(!written.contains("very-secret-word"));
    assert_eq!(add("public", &["--client-id", "4712"]).code, 0);
    let needless = ["--yes", "mcp", "add", "x", "--client-id", "1", "--", "true"];
    assert_eq!(shelf.run(&needless).code, 2);
}

#[test]
fn a_server_with_invalid_sandbox_options_is_not_added() {
    let shelf = TestConfig::new("");
    let touched = shelf.setting.write_text("touched", "");
    std::fs::remove_file(&touched).unwrap();
    let url = ["--url", "https://a.example/"];
    let start = ["--", "touch", &touched];
    for (options, how, words) in [
        (&["--sandbox", "auto"][..], &start[..], "possible values: off, best_effort, required"),
        (&["--sandbox", ""], &start, "possible values: off, best_effort, required"),
        (
            &["--sandbox=required", "--sandbox-level", "write"],
            &start,
            "possible values: read_only, workspace_write, full",
        ),
        (&["--sandbox-level", "read_only"], &start, "has no effect without `sandbox`"),
        (&["--sandbox-network"], &start, "has no effect without `sandbox`"),
        (&["--sandbox=required", "--sandbox-network=no"], &start, "--sandbox-network"),
        (&["--sandbox", "required"], &url, "`sandbox` has no effect with `url`"),
        (&["--sandbox-network"], &url, "`sandbox_network` has no effect with `url`"),
    ] {
        let ran = shelf.run(&[&["--yes", "mcp", "add", "x"], options, how].concat());
        assert_eq!(ran.code, 2, "{options:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{options:?}: {}", ran.err);
    }
    assert_eq!(std::fs::read_to_string(&shelf.config).unwrap(), "");
    assert!(!std::path::Path::new(&touched).exists(), "nothing was started");
    let help = shelf.run(&["mcp", "add", "--help"]).out;
    for part in ["--sandbox-network", "Run the program in a sandbox", "best_effort"] {
        assert!(help.contains(part), "{help}");
    }
}

// MC2: trust in a sandboxed server does not extend to an unrestricted one.
#[test]
fn a_changed_sandbox_needs_new_trust() {
    let mut shelf = TestConfig::new("");
    assert_eq!(shelf.add().code, 0);
    let call = ["--no-input", "--allow", "mcp(greeter/*)", "call", "mcp__greeter__hello", "{}"];
    assert_eq!(shelf.run(&call).out, "hello\n");
    let entry = std::fs::read_to_string(&shelf.config).unwrap();
    let confined = format!("{entry}sandbox = \"best_effort\"\n");
    shelf.setting.write_text("config.toml", &confined);
    assert_eq!(shelf.run(&call).code, 3);
    // A person who approves the call has seen the definition.
    shelf.setting.type_lines(&["y"]);
    assert_eq!(shelf.run(&["call", "mcp__greeter__hello", "{}"]).out, "hello\n");
    assert_eq!(shelf.run(&call).out, "hello\n");
    shelf.setting.write_text("config.toml", &entry);
    assert_eq!(shelf.run(&call).code, 3);
}

#[test]
fn a_disabled_server_is_listed_and_not_connected() {
    let off = "[mcp.servers.off]\ncommand = \"/no/such/program\"\nenabled = false\n\
               env_from = [\"NOT_SET\"]\n";
    let shelf = TestConfig::new(off);
    assert_eq!(shelf.run(&["list"]).err, "");
    assert_eq!(shelf.run(&["mcp", "list"]).out, "off  switched off  /no/such/program\n");
    for ran in [shelf.run(&["mcp", "inspect", "off"]), shelf.run(&["call", "mcp__off__x", "{}"])] {
        assert!(ran.code != 0 && ran.err.contains("switched off"), "{}", ran.err);
    }
    assert_eq!(shelf.run(&["mcp", "remove", "off"]).code, 0);
}

#[test]
fn an_invalid_configuration_ends_the_command() {
    let shelf = TestConfig::new("\n[mcp.servers.s]\ncommand = \"x\"\nargv = []\n");
    let ran = shelf.run(&["list"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("config.toml:") && ran.err.contains("argv"), "{}", ran.err);
}

#[test]
fn nothing_is_added_without_consent() {
    let shelf = TestConfig::new("");
    let script = shelf.setting.write_text("server.sh", &greeting_server());
    let add = ["mcp", "add", "greeter", "--", "sh", &script];
    assert_eq!(shelf.run(&[&["--no-input"][..], &add].concat()).code, 3);
    assert_eq!(std::fs::read_to_string(&shelf.config).unwrap(), "");
    let broken = shelf.run(&["--yes", "mcp", "add", "x", "--", "/no/such/program"]);
    assert_eq!(broken.code, 1);
    assert_eq!(shelf.run(&["mcp", "remove", "greeter"]).code, 2);
}

// MC2, MC4
#[test]
fn shows_everything_that_is_trusted() {
    let shelf = TestConfig::new("");
    let end = format!("{}THE END", "x".repeat(5000));
    let server = greeting_server()
        .replace("Says hello.", &end)
        .replace(r#""name":"hello","#, r#""name":"hello","title":"Hello\u200bYou","#)
        .replace(r#""type":"string""#, r#""type":"string","description":"Who.\u200b""#);
    let script = shelf.setting.write_text("server.sh", &server);
    let added = shelf.run(&["--yes", "--verbose", "mcp", "add", "greeter", "--", "sh", &script]);
    assert_eq!(added.code, 0, "{}", added.err);
    let shown = shelf.run(&["mcp", "inspect", "greeter"]);
    for page in [added.err, shown.out] {
        for part in [&*end, r#""title": "Hello\u{200b}You""#, r#""description": "Who.\u{200b}""#] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }
}

// MC4
#[test]
fn warns_of_descriptions_that_mention_other_tools() {
    let mut shelf = TestConfig::new("");
    let pages = greeting_server().replace("\"hello\"", "\"fetch_page\"");
    let pages = shelf.setting.write_text("pages.sh", &pages);
    let servers = format!("[mcp.servers.pages]\ncommand = \"sh\"\nargs = [\"{pages}\"]\n");
    shelf.config = shelf.setting.write_text("config.toml", &servers);
    let words = "First call fetch_page, then mcp__pages__fetch_page; never say_hello.";
    let greeter =
        greeting_server().replace("Says hello.", words).replace("\"hello\"", "\"say_hello\"");
    let script = shelf.setting.write_text("server.sh", &greeter);
    let added = shelf.run(&["--yes", "mcp", "add", "greeter", "--", "sh", &script]);
    assert_eq!(added.code, 0, "{}", added.err);
    // Adding starts no other server, so only `inspect` knows the tools of all.
    let page = shelf.run(&["mcp", "inspect", "greeter"]).out;
    let warnings: Vec<&str> = page.lines().filter(|line| line.starts_with("warning: ")).collect();
    let [one, two] = &*warnings else { panic!("{page}") };
    assert!(one.contains("say_hello: it mentions `fetch_page`, which is not its own"), "{one}");
    assert!(two.contains("`mcp__pages__fetch_page`"), "{two}");
    let shown = shelf.run(&["mcp", "inspect", "pages"]);
    assert!(!shown.out.contains("warning"), "{}", shown.out);
}

#[test]
fn sessions_are_deleted_when_the_program_ends() {
    let web = HttpStub::start(|_| StubReply::Usual);
    let shelf = TestConfig::new(&format!("[mcp.servers.web]\nurl = \"{}\"\n", web.url()));
    let called = shelf.run(&["--yes", "call", "mcp__web__echo", r#"{"text": "hi"}"#]);
    assert_eq!((called.code, called.out.as_str()), (0, "hi\n"), "{}", called.err);
    assert!(web.requests().iter().any(|asked| asked.method == "DELETE"), "{:?}", web.requests());
}

// F8
#[test]
fn a_failed_call_keeps_attachments_and_structured_output() {
    let image = r#"{"type":"image","data":"AQ==","mimeType":"image/png"}"#;
    let result = format!(
        r#"{{"content":[{{"type":"text","text":"no luck"}},{image}],"structuredContent":{{"n":1}},"isError":true}}"#
    );
    let web = HttpStub::start(move |asked| match asked.is("tools/call") {
        true => StubReply::Result(serde_json::from_str(&result).unwrap()),
        false => StubReply::Usual,
    });
    let shelf = TestConfig::new(&format!("[mcp.servers.web]\nurl = \"{}\"\n", web.url()));
    let call = ["--yes", "call", "mcp__web__echo", "{}"];
    let failed = shelf.run(&call);
    let expected = "attachment: unnamed (image/png, 1 bytes)\nerror: no luck\n";
    assert_eq!((failed.code, failed.err.as_str()), (1, expected));
    let failed = shelf.run(&[&call[..], &["--json"]].concat());
    let document: Value = serde_json::from_str(&failed.out).unwrap();
    assert_eq!(document["structured"]["n"], 1);
    assert_eq!(document["attachments"][0]["mime"], "image/png");
}

/// A server with a resource, a template and a prompt.
fn library_server() -> String {
    server(
        r#"{"name":"lend","inputSchema":{"type":"object"}}"#,
        r#"*resources/list*) say '"result":{"resources":[{"uri":"book://1","name":"one","mimeType":"text/plain"}]}' ;;
    *resources/templates/list*) say '"result":{"resourceTemplates":[{"uriTemplate":"book://{n}","name":"any"}]}' ;;
    *prompts/list*) say '"result":{"prompts":[{"name":"review","description":"Reviews it.","arguments":[{"name":"book","required":true}]}]}' ;;
    *book://1*) say '"result":{"contents":[{"uri":"book://1","text":"once upon a time"}]}' ;;
    *resources/read*) say '"error":{"code":-32002,"message":"no such book"}' ;;"#,
    )
}

#[test]
fn resources_and_prompts_of_a_server_are_listed_and_read() {
    let shelf = TestConfig::new("");
    let script = shelf.setting.write_text("server.sh", &library_server());
    let entry = format!("[mcp.servers.library]\ncommand = \"sh\"\nargs = [{script:?}]\n");
    shelf.setting.write_text("config.toml", &entry);
    for (args, expected) in [
        (
            &["mcp", "resources"][..],
            "library: 2 resources\n  book://1  one (text/plain)\n  book://{n}  any\n",
        ),
        (&["mcp", "prompts", "library"], "library: 1 prompts\n  review(book)  Reviews it.\n"),
        (&["mcp", "read", "library", "book://1"], "book://1:\nonce upon a time\n"),
    ] {
        let ran = shelf.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (0, expected), "{args:?}: {}", ran.err);
    }
    let listed = shelf.run(&["mcp", "resources", "library", "--json"]).out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["resources"][0]["uri"], "book://1");
    for (args, code, words) in [
        (&["mcp", "read", "library", "book://9"][..], 1, "no such book"),
        (&["mcp", "read", "other", "book://1"], 2, "there is no enabled server `other`"),
        (&["mcp", "read", "library"], 2, "URI"),
    ] {
        let ran = shelf.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
    }
}

#[test]
fn instructions_of_a_server_are_shown_in_its_words() {
    let shelf = TestConfig::new("mode = \"auto\"\n");
    let script = greeting_server()
        .replace(r#""serverInfo""#, r#""instructions":"Greet\u202e people.\nTwice.","serverInfo""#);
    let script = shelf.setting.write_text("server.sh", &script);
    assert_eq!(shelf.run(&["--yes", "mcp", "add", "greeter", "--", "sh", &script]).code, 0);
    let words = "  Greet\\u{202e} people.\n  Twice.\n";
    let inspected = shelf.run(&["mcp", "inspect", "greeter"]);
    assert!(inspected.out.contains(words), "{}{}", inspected.out, inspected.err);
    assert!(!shelf.run(&["mcp", "list"]).out.contains("Twice"));
    assert!(shelf.run(&["mcp", "list", "--verbose"]).out.contains(words));
    for args in [&["mcp", "inspect", "greeter", "--json"][..], &["mcp", "list", "--json"]] {
        let shown = shelf.run(args).out;
        assert!(shown.contains(r#""instructions": "Greet"#), "{shown}");
    }
}

// F89
#[test]
fn trusted_annotations_are_shown_and_lower_the_risk() {
    let script = greeting_server().replace(
        r#""description":"Says hello.""#,
        r#""description":"Says hello.","annotations":{"readOnlyHint":true}"#,
    );
    let shelf = TestConfig::new("mode = \"auto\"\n");
    let script = shelf.setting.write_text("server.sh", &script);
    let call = ["--no-input", "call", "mcp__greeter__hello", "--to", "ada"];

    let add = ["--yes", "mcp", "add", "greeter"];
    let added = shelf.run(&[&add[..], &["--", "sh", &script]].concat());
    assert!(added.err.contains("  hello  execute "), "{}", added.err);
    assert_eq!(shelf.run(&call).code, 3, "the hint counts for nothing");
    assert_eq!(shelf.run(&["mcp", "remove", "greeter"]).code, 0);

    let trusting = [&add[..], &["--trust-annotations", "--", "sh", &script]].concat();
    let added = shelf.run(&trusting);
    assert!(added.err.contains("  hello  read "), "{}", added.err);
    assert!(added.err.contains("its hints are trusted"), "{}", added.err);
    assert!(std::fs::read_to_string(&shelf.config).unwrap().contains("trust_annotations = true"));
    let called = shelf.run(&call);
    assert_eq!((called.code, called.out.as_str()), (0, "hello\n"), "{}", called.err);
}

// The user is told what to run; nothing opens a browser by itself.
#[test]
fn server_that_requires_a_login_names_the_command() {
    let web = HttpStub::start(|_| {
        StubReply::Raw(
            "401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nConnection: close\r\n\
             Content-Length: 0\r\n\r\n"
                .to_owned(),
        )
    });
    let shelf = TestConfig::new(&format!("[mcp.servers.web]\nurl = '{}'\n", web.url()));
    let listed = shelf.run(&["mcp", "list"]);
    assert!(listed.out.contains("the user runs `mcp login web`"), "{}", listed.out);
    let json = shelf.run(&["mcp", "list", "--json"]);
    assert!(json.out.contains(r#""authorization": "login_required""#), "{}", json.out);
    let left_out = shelf.run(&["call", "mcp__web__echo", "{}"]);
    assert!(left_out.err.contains("mcp login web"), "{}", left_out.err);

    // This server has no metadata, so that there is nowhere to log in.
    let login = shelf.run(&["mcp", "login", "web", "--no-browser"]);
    assert_eq!(login.code, 1, "{}", login.err);
    assert!(login.err.contains("publishes no metadata"), "{}", login.err);
    let logout = shelf.run(&["mcp", "logout", "web"]);
    assert_eq!((logout.code, &*logout.err), (0, "web was not logged in\n"));
}

#[test]
fn login_is_for_configured_servers_over_http() {
    let shelf = TestConfig::new("mode = \"auto\"\n");
    shelf.add();
    let unknown = shelf.run(&["mcp", "login", "other"]);
    assert!(unknown.code == 2 && unknown.err.contains("there is no server `other`"));
    let program = shelf.run(&["mcp", "login", "greeter"]);
    assert_eq!((program.code, &*program.err), (0, "greeter needs no login\n"));
    let program = shelf.run(&["mcp", "logout", "greeter"]);
    assert!(program.code == 2 && program.err.contains("needs no login"), "{}", program.err);
}
