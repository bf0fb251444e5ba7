//! Tests of the precedence of settings, with sample tools.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::test_support::{CliOutput, TestCli, run, test_registry};
use crate::{App, Io};

/// Returns the decision for a call of the tool `kinds`, which may write.
fn decision(setting: &TestCli, options: &[&str]) -> Value {
    let ran = setting.run(&[options, &["check", "kinds", "--json"]].concat());
    assert_eq!(ran.code, 0, "{options:?} {} {}", ran.out, ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

#[track_caller]
fn check(setting: &TestCli, options: &[&str], expected: &str) {
    let decision = decision(setting, options);
    assert_eq!(decision["decision"], expected, "{options:?} {decision}");
}

fn with_env(env: &[(&'static str, &str)]) -> TestCli {
    let env = env.iter().map(|&(name, value)| (name, value.to_owned())).collect();
    TestCli { env, ..TestCli::default() }
}

fn with_file(text: &str) -> TestCli {
    let mut setting = TestCli::default();
    let path = setting.write_text("rules.toml", text);
    setting.env.push(("TOOL_SDK_CONFIG", path));
    setting
}

#[track_caller]
fn check_refused(ran: &CliOutput, words: &str) {
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(ran.err.contains(words), "{words}: {}", ran.err);
}

/// Runs a command whose configuration file is removed once it was read; returns its exit code, the
/// text of standard error, and what it read and built: the variables of settings, and `toolset`.
fn run_with_file_that_vanishes(text: &str, args: &[&str]) -> (u8, String, Vec<String>) {
    let setting = TestCli::default();
    let file = setting.write_text("rules.toml", text);
    // Tools may write to the current folder.
    let state = tempfile::tempdir().unwrap();
    let steps = Rc::new(RefCell::new(Vec::new()));
    let env = |name: &str| {
        if name.starts_with("TOOL_SDK_") {
            steps.borrow_mut().push(name.to_owned());
        }
        match name {
            "TOOL_SDK_CONFIG" => Some(file.clone().into()),
            "TOOL_SDK_STATE_DIR" => Some(state.path().into()),
            // The first variable after the file.
            "TOOL_SDK_MODE" => {
                let _ = std::fs::remove_file(&file);
                None
            }
            _ => None,
        }
    };
    let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
    let mut io = Io {
        env: &env,
        current_dir: setting.folder.path().to_owned(),
        ..Io::new(&mut stdin, &mut out, &mut err)
    };
    let args = std::iter::once(&"toy").chain(args).map(Into::into);
    let built = Rc::clone(&steps);
    let app = App::new(test_registry()).with_toolset(move |tools| {
        built.borrow_mut().push("toolset".to_owned());
        tools
    });
    let code = app.run(args, &mut io);
    assert!(!std::path::Path::new(&file).exists(), "the file was read");
    (code, String::from_utf8(err).unwrap(), steps.take())
}

#[test]
fn every_command_resolves_its_settings_and_builds_its_toolset_once() {
    let servers = if cfg!(feature = "mcp") {
        "[mcp.servers.gone]\ncommand = \"/no/such/program\"\nsandbox = \"best_effort\"\n\
         [serve.mcp.principals.ada]\ntoken_env = \"ADA_TOKEN\"\n"
    } else {
        ""
    };
    let text = format!("audit = \"log\"\nwritable = [\".\"]\n[hooks]\nStop = []\n{servers}");
    for (args, code, words) in [
        (&["list"][..], 0, ""),
        (&["show", "echo"], 0, ""),
        (&["schema"], 0, ""),
        (&["call", "echo", "--text", "x"], 0, "hooks.Stop"),
        (&["call", "ecko", "{}", "--events"], 2, "there is no tool `ecko`"),
        (&["check", "kinds"], 0, "hooks.Stop"),
        (&["batch"], 0, "hooks.Stop"),
        (&["approvals", "list"], 0, "no approvals"),
        (&["doctor"], 0, ""),
        #[cfg(feature = "mcp")]
        (&["call", "mcp__gone__x", "{}", "--yes"], 2, "`gone` is left out"),
        #[cfg(feature = "mcp")]
        (&["mcp", "list"], 0, "`gone` is left out"),
        #[cfg(feature = "mcp")]
        (&["mcp", "inspect", "gone"], 1, "cannot use the server `gone`: cannot start"),
        #[cfg(feature = "mcp")]
        (&["mcp", "add", "it", "--", "/no/such/program"], 1, "cannot use the server `it`"),
        #[cfg(feature = "mcp")]
        (&["serve", "mcp", "--http", "127.0.0.1:0"], 2, "`ADA_TOKEN`"),
    ] {
        let (ended, err, mut steps) = run_with_file_that_vanishes(&text, args);
        assert!(ended == code && err.contains(words), "{args:?}: {ended} {err}");
        steps.sort();
        for step in steps.windows(2) {
            assert_ne!(step[0], step[1], "{args:?}");
        }
    }
}

// F75: the last rule that matches decides, across the three options.
#[test]
fn the_order_on_the_command_line_is_kept() {
    let here = TestCli::default();
    check(&here, &["--allow", "kinds", "--deny", "kinds"], "deny");
    check(&here, &["--deny", "kinds", "--allow", "kinds"], "allow");
    check(&here, &["--deny=kinds", "--allow=kinds", "--ask=kinds"], "ask");
    check(&here, &["--allow=kinds", "--deny=other", "--ask=kinds", "--allow=kinds"], "allow");
}

#[test]
fn options_work_at_every_position() {
    for args in [
        &["--deny", "kinds", "call", "--allow", "kinds", "kinds"][..],
        &["call", "--deny", "kinds", "kinds", "--allow", "kinds"],
        &["--deny", "kinds", "call", "kinds", "{}", "--allow", "kinds"],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (0, "{}\n"), "{args:?} {}", ran.err);
    }
    assert_eq!(run(&["call", "kinds", "--mode", "plan"]).code, 3);
    assert_eq!(run(&["--mode", "plan", "call", "kinds", "--mode", "bypass"]).code, 0);
}

#[test]
fn a_rule_has_its_origin_and_scope() {
    let origin = |setting: &TestCli, options: &[&str]| {
        let rule = decision(setting, options)["rules"][0].clone();
        let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
        (text("origin"), text("scope"))
    };
    let said = |origin: &str, scope: &str| (origin.to_owned(), scope.to_owned());
    assert_eq!(origin(&TestCli::default(), &["--deny", "kinds"]), said("--deny", "session"));
    assert_eq!(
        origin(&with_env(&[("TOOL_SDK_DENY", "kinds")]), &[]),
        said("TOOL_SDK_DENY", "user")
    );
    let file = with_file("\ndeny = [\"kinds\"]");
    let place = file.folder.path().join("rules.toml");
    assert_eq!(origin(&file, &[]), said(&format!("{}:2", place.display()), "user"));
}

// F178
#[test]
fn the_environment_holds_one_rule_a_line() {
    check(&with_env(&[("TOOL_SDK_ALLOW", "echo\n\n  kinds\n")]), &[], "allow");
    let both = with_env(&[("TOOL_SDK_ALLOW", "kinds"), ("TOOL_SDK_DENY", "k*")]);
    check(&both, &[], "deny");
    check(&both, &["--allow", "kinds"], "allow");
}

#[test]
fn nearer_sources_win() {
    let mut all = with_file("mode = \"plan\"\nallow = [\"echo\"]\ndeny = [\"kinds\"]");
    check(&all, &[], "deny");
    all.env.push(("TOOL_SDK_ALLOW", "kinds".to_owned()));
    // The mode of the file forbids writing, even if a rule allows it.
    check(&all, &[], "deny");
    all.env.push(("TOOL_SDK_MODE", "auto".to_owned()));
    check(&all, &[], "allow");
    check(&all, &["--ask", "kinds"], "ask");
    check(&all, &["--mode", "explore"], "deny");
}

#[test]
fn a_locked_rule_of_the_file_holds_against_the_command_line() {
    let rule = "[[rules]]\npermission = \"kinds\"\naction = \"deny\"\n";
    check(&with_file(rule), &["--allow", "kinds"], "allow");
    let locked = with_file(&format!("{rule}locked = true\n"));
    check(&locked, &["--allow", "kinds"], "deny");
    check(&locked, &["--mode", "bypass"], "deny");
}

#[test]
fn the_file_is_the_one_that_is_named() {
    let mut setting = with_file("deny = [\"kinds\"]");
    let other = setting.write_text("other.toml", "allow = [\"kinds\"]");
    check(&setting, &["--config", &other], "allow");
    check(&setting, &["--config", "other.toml"], "allow");

    setting.env.clear();
    setting.write_text("config/tool-sdk/config.toml", "deny = [\"kinds\"]");
    let config = setting.folder.path().join("config").to_str().unwrap().to_owned();
    setting.env.push(("XDG_CONFIG_HOME", config));
    check(&setting, &[], "deny");
    setting.env.clear();
    check(&setting, &[], "ask");
}

#[test]
fn a_config_in_the_workspace_is_ignored() {
    let setting = TestCli::default();
    setting.write_text(".tool-sdk.toml", "allow = [\"kinds\"]");
    setting.write_text("tool-sdk/config.toml", "allow = [\"kinds\"]");
    setting.write_text("config.toml", "allow = [\"kinds\"]");
    check(&setting, &[], "ask");
}

// AP4: without its rules no command runs.
#[test]
fn a_file_that_cannot_be_read_ends_the_command() {
    let setting = with_file("deny = [\"kinds\"");
    let folder = setting.folder.path().to_str().unwrap();
    for command in [
        &["list"][..],
        &["show", "echo"],
        &["schema"],
        &["call", "echo", "--text", "x"],
        &["check", "echo", "--text", "x"],
        &["batch"],
    ] {
        check_refused(&setting.run(command), "rules.toml:1: ");
        check_refused(&setting.run(&[command, &["--config", "missing"]].concat()), "missing");
        check_refused(&setting.run(&[command, &["--config", folder]].concat()), folder);
    }
    let ran = setting.run(&["list", "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (2, ""));
    assert!(ran.out.contains(r#""kind":"config""#), "{}", ran.out);
}

#[test]
fn invalid_options_and_variables_are_rejected() {
    for (args, words) in [
        (&["--yes", "--no-input", "list"][..], "`--yes` and `--no-input` exclude each other"),
        (&["--yes", "call", "echo", "--text", "x", "--no-input"], "exclude each other"),
        (&["list", "--safe-commands", "--no-safe-commands"], "exclude each other"),
        (&["list", "--allow", "a(b"], "--allow: `a(b` is not a rule"),
        (&["--deny", "", "list"], "--deny"),
        (&["list", "--mode", "careless"], "careless"),
    ] {
        check_refused(&run(args), words);
    }
    for (variable, value, words) in [
        ("TOOL_SDK_MODE", "careless", "TOOL_SDK_MODE: `careless` is not a mode"),
        ("TOOL_SDK_YES", "maybe", "TOOL_SDK_YES must be `true` or `false`, not `maybe`"),
        ("TOOL_SDK_DENY", "a(b", "TOOL_SDK_DENY: `a(b` is not a rule"),
        ("TOOL_SDK_SAFE_COMMANDS", "2", "must be `true` or `false`"),
    ] {
        check_refused(&with_env(&[(variable, value)]).run(&["list"]), words);
    }
    let both = with_env(&[("TOOL_SDK_YES", "1"), ("TOOL_SDK_NO_INPUT", "true")]);
    check_refused(&both.run(&["list"]), "TOOL_SDK_YES and TOOL_SDK_NO_INPUT");
    assert_eq!(both.run(&["list", "--no-input"]).code, 0);
}

#[test]
fn yes_approves_and_no_input_denies() {
    let yes = with_env(&[("TOOL_SDK_YES", "true")]);
    assert_eq!(yes.run(&["call", "kinds"]).code, 0);
    assert_eq!(yes.run(&["call", "kinds", "--no-input"]).code, 3);
    assert_eq!(run(&["call", "kinds", "--yes"]).code, 0);
    // `--yes` answers prompts and overrides no denial.
    assert_eq!(run(&["call", "kinds", "--yes", "--deny", "kinds"]).code, 3);
    let ran = run(&["call", "kinds"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""));
    assert!(ran.err.contains("the rule `allow kinds` would allow it"), "{}", ran.err);
}

// F71: configured hooks run for calls, and their denial is final.
#[cfg(unix)]
#[test]
fn configured_hooks_can_deny_calls() {
    let hook = |event: &str, command: &str| {
        with_file(&format!(
            "[hooks]\n{event} = [{{ hooks = [{{ type = \"command\", command = \"{command}\" }}] }}]"
        ))
    };
    let no = hook("PreToolUse", "echo not today >&2; exit 2");
    let ran = no.run(&["call", "kinds", "--yes"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    assert!(ran.err.contains("not today"), "{}", ran.err);
    assert_eq!(hook("PreToolUse", "true").run(&["call", "kinds", "--yes"]).code, 0);
    // A hook without a decision leaves the prompt to the user, and there is no terminal.
    assert_eq!(hook("PermissionRequest", "true").run(&["call", "kinds"]).code, 3);
    assert_eq!(hook("PermissionRequest", "true").run(&["call", "kinds", "--yes"]).code, 0);
}

// F71: hook events of other programs must not make the file invalid.
#[cfg(unix)]
#[test]
fn warns_of_unknown_hook_events_and_keys() {
    let guard = "PreToolUse = [{ hooks = [{ type = \"command\", command = \"exit 2\", \
                 statusMessage = \"x\" }] }]";
    let ran = with_file(&format!("[hooks]\nStop = []\n{guard}")).run(&["call", "kinds", "--yes"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    for warning in [
        "warning: hooks.Stop: unknown event",
        "warning: hooks.PreToolUse[0].hooks[0].statusMessage: unknown key",
    ] {
        assert!(ran.err.contains(warning), "{}", ran.err);
    }
    let ran = with_file("[hooks]\nPreToolUsed = []").run(&["call", "kinds", "--yes"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
}

// F71: the program waits for async hooks at its end.
#[cfg(unix)]
#[test]
fn async_hooks_finish_before_the_program_ends() {
    let setting = with_file(
        "[hooks]\nPostToolUse = [{ hooks = [{ type = \"command\", async = true, \
         command = \"sleep 0.3; touch done\" }] }]",
    );
    assert_eq!(setting.run(&["call", "kinds", "--yes"]).code, 0);
    assert!(setting.folder.path().join("done").exists());
}

// F67: a matcher that matches no tool is most likely a mistake.
#[cfg(unix)]
#[test]
fn warns_of_unmatched_hook_matchers() {
    let guard = |matcher: &str| {
        with_file(&format!(
            "[hooks]\nPreToolUse = [{{ matcher = \"{matcher}\", \
             hooks = [{{ type = \"command\", command = \"exit 2\" }}] }}]"
        ))
    };
    let ran = guard("KINDS|kidns").run(&["call", "kinds", "--yes"]);
    let warning = "warning: the matcher `kidns` (hooks.PreToolUse[0].hooks[0]) matches no tool\n";
    assert_eq!((ran.code, ran.err.starts_with(warning)), (3, true), "{}", ran.err);
    let ran = guard("^ki?nds").run(&["check", "kinds"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

/// Returns the configured sandbox mode, level and network access.
fn sandbox(setting: &TestCli, options: &[&str]) -> String {
    let ran = setting.run(&[options, &["doctor", "--json"]].concat());
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let word = |key: &str| report["sandbox"]["configured"][key].clone();
    let network = if word("network") == true { "network" } else { "none" };
    let [mode, level] = ["mode", "level"].map(word);
    format!("{} {} {network}", mode.as_str().unwrap(), level.as_str().unwrap())
}

#[test]
fn sandbox_settings_follow_the_precedence() {
    let file = "sandbox = \"required\"\nsandbox_level = \"read_only\"\nsandbox_network = true";
    let mut setting = TestCli::default();
    assert_eq!(sandbox(&setting, &[]), "off workspace_write none");
    let path = setting.write_text("rules.toml", file);
    setting.env.push(("TOOL_SDK_CONFIG", path));
    assert_eq!(sandbox(&setting, &[]), "required read_only network");

    for (name, value) in [
        ("TOOL_SDK_SANDBOX", "best_effort"),
        ("TOOL_SDK_SANDBOX_LEVEL", "workspace_write"),
        ("TOOL_SDK_SANDBOX_NETWORK", "false"),
    ] {
        setting.env.push((name, value.to_owned()));
    }
    assert_eq!(sandbox(&setting, &[]), "best_effort workspace_write none");
    let options = ["--sandbox", "off", "--sandbox-level=full"];
    assert_eq!(sandbox(&setting, &options), "off full network");

    // Planning modes are read-only.
    for mode in ["--mode=plan", "--mode=explore"] {
        assert_eq!(sandbox(&setting, &[mode]), "best_effort read_only none");
        assert_eq!(
            sandbox(&setting, &[mode, "--sandbox-level=full"]),
            "best_effort read_only none"
        );
    }
}

// An invalid sandbox setting never turns the sandbox off.
#[test]
fn an_invalid_sandbox_setting_ends_the_command() {
    check_refused(&with_env(&[("TOOL_SDK_SANDBOX", "on")]).run(&["list"]), "off best_effort");
    check_refused(&with_env(&[("TOOL_SDK_SANDBOX_LEVEL", "")]).run(&["list", "--x"]), "--x");
    check_refused(&with_env(&[("TOOL_SDK_SANDBOX_NETWORK", "no")]).run(&["list"]), "`no`");
    check_refused(&with_file("sandbox = true").run(&["list"]), "rules.toml:1");
    check_refused(&with_file("sandbox = \"on\"").run(&["list"]), "off best_effort");
    check_refused(&TestCli::default().run(&["list", "--sandbox", "on"]), "'on'");
}

#[test]
fn reports_every_invalid_rule() {
    let setting = with_env(&[("TOOL_SDK_DENY", "a(b")]);
    let ran = setting.run(&["list", "--allow", "kinds", "--deny", "c(d", "--ask", "e)("]);
    check_refused(&ran, "TOOL_SDK_DENY: `a(b` is not a rule");
    for words in ["--deny: `c(d` is not a rule", "--ask: `e)(` is not a rule"] {
        assert!(ran.err.contains(words), "{}", ran.err);
    }
}

// A pattern that matches nothing removes nothing.
#[test]
fn warns_of_unmatched_patterns_and_missing_folders() {
    let setting = with_file(
        "experimental = [\"nope\"]\nwritable = [\"/no/such\"]\n\
         disable = [\"ehco\", \"fail\", \"toys\"]\n\
         [agents.a]\nonly = [\"kinds\", \"kidns\"]\nwithout = [\"category:x\"]\n",
    );
    let ran = setting.run(&["check", "kinds", "{}"]);
    let told: Vec<_> = ran.err.lines().filter(|line| line.starts_with("warning: ")).collect();
    let speaks = |what: &str| format!("warning: the pattern {what} matches no tool");
    let expected = [
        "warning: `/no/such` (writable) does not exist".to_owned(),
        speaks("`nope` (experimental)"),
        speaks("`ehco` (disable)"),
        speaks("`kidns` (agents.a.only)"),
        speaks("`category:x` (agents.a.without)"),
    ];
    assert_eq!(told, expected, "{}", ran.err);
}
