//! Parses the configuration file key by key.
//!
//! The `mcp` and `serve` tables are parsed by the modules of these commands.

use serde_json::Value;
use tool_sdk_core::{Action, AgentProfile, Rule, RuleConfig, RuleScope};
use tool_sdk_hooks::ExternalHooks;

use super::toml_reader::{ConfigErrors, TomlTable, TomlValue};
use super::{ConfigFile, HooksConfig};
use crate::secrets::SecretsCommand;
use crate::settings::check_path;
use crate::settings::limits::FileLimits;
use crate::settings::web::parse_web;
use crate::{chat, mcp, serve, workers};

const ROOT_KEYS: &[&str] = &[
    "agents",
    "allow",
    "approval_timeout",
    "ask",
    "audit",
    "call_timeout",
    "capture_bytes",
    "chat",
    "deny",
    "disable",
    "durable",
    "experimental",
    "hooks",
    "loop_guard",
    "mcp",
    "mode",
    "one_device",
    "output_bytes",
    "output_lines",
    "output_tokens",
    "outputs_max_age",
    "record_sessions",
    "rules",
    "safe_commands",
    "sandbox",
    "sandbox_auto_allow",
    "sandbox_level",
    "sandbox_network",
    "secrets_command",
    "serve",
    "variants",
    "web",
    "workers",
    "writable",
];

const RULE_KEYS: &[&str] = &["action", "argument", "locked", "pattern", "permission"];

/// Parses `text`, the content of the file `name`.
pub(super) fn parse_config<'t>(text: &'t str, name: &str) -> Result<ConfigFile, ConfigErrors<'t>> {
    let mistakes = ConfigErrors::new(text);
    let read = mistakes
        .parse_root()
        .and_then(|it| it.into_table_with(ROOT_KEYS))
        .map(|keys| read_root(keys, name, &mistakes));
    match read {
        Some(config) if mistakes.is_empty() => Ok(config),
        _ => Err(mistakes),
    }
}

fn read_root(mut keys: TomlTable<'_, '_>, name: &str, mistakes: &ConfigErrors<'_>) -> ConfigFile {
    ConfigFile {
        rules: read_rules(&mut keys, name, mistakes),
        mode: keys.parse_word("mode"),
        safe_commands: keys.read_value("safe_commands"),
        agents: keys.take_named_values("agents").into_iter().filter_map(read_agent).collect(),
        variants: keys.take_named_values("variants").into_iter().filter_map(read_variant).collect(),
        experimental: keys.read_list("experimental").unwrap_or_default(),
        disable: keys.read_list("disable").unwrap_or_default(),
        secrets_command: keys
            .take_value("secrets_command")
            .and_then(|part| part.read_with(SecretsCommand::new)),
        workers: workers::parse_workers(keys.take_named_values("workers")),
        writable: keys.take_value("writable").map(|part| part.map_items(check_path)),
        hooks: keys.take_value("hooks").and_then(read_hooks),
        audit: keys.take_value("audit").and_then(|part| part.read_with(check_path)),
        servers: keys.take_value("mcp").map(mcp::parse_servers).unwrap_or_default(),
        chat: keys.take_value("chat").map(chat::parse_chat_config).unwrap_or_default(),
        serve: keys.take_value("serve").map(serve::parse_serve_config).unwrap_or_default(),
        durable: keys.parse_word("durable"),
        one_device: keys.read_value("one_device"),
        record_sessions: keys.read_value("record_sessions"),
        limits: FileLimits {
            call_timeout: keys.read_value("call_timeout"),
            approval_timeout: keys.read_value("approval_timeout"),
            output_lines: keys.read_value("output_lines"),
            output_bytes: keys.read_value("output_bytes"),
            output_tokens: keys.read_value("output_tokens"),
            outputs_max_age: keys.read_value("outputs_max_age"),
            capture_bytes: keys.read_value("capture_bytes"),
            loop_guard: keys.read_value("loop_guard").unwrap_or_default(),
        },
        web: keys.take_value("web").map(parse_web).unwrap_or_default(),
        sandbox: keys.parse_word("sandbox"),
        sandbox_level: keys.parse_word("sandbox_level"),
        sandbox_network: keys.read_value("sandbox_network"),
        sandbox_auto_allow: keys.read_value("sandbox_auto_allow"),
    }
}

/// Reads rules of both forms (lists by action, `[[rules]]`) in file order.
fn read_rules(keys: &mut TomlTable<'_, '_>, name: &str, mistakes: &ConfigErrors<'_>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for action in [Action::Allow, Action::Ask, Action::Deny] {
        rules.extend(keys.take_items(action.as_str()).into_iter().filter_map(|part| {
            let parse = |text: String| Rule::parse(action, &text);
            Some((part.start_byte(), part.read_with(parse)?))
        }));
    }
    rules.extend(keys.take_items("rules").into_iter().filter_map(|part| {
        let start = part.start_byte();
        Some((start, part.check_keys(RULE_KEYS)?.read_with(RuleConfig::into_rule)?))
    }));
    rules.sort_by_key(|(start, _)| *start);
    let placed = |(start, rule): (usize, Rule)| {
        rule.scope(RuleScope::User).origin(format!("{name}:{}", mistakes.line_number(start)))
    };
    rules.into_iter().map(placed).collect()
}

/// Reads `[agents.NAME]`, the profile of one agent.
fn read_agent((name, part): (String, TomlValue<'_, '_>)) -> Option<AgentProfile> {
    part.insert_name("name", &name)?.read_value()
}

/// Reads one entry of `[variants]`, the selected variant of a group of tools.
fn read_variant((group, part): (String, TomlValue<'_, '_>)) -> Option<(String, String)> {
    Some((group, part.read_value()?))
}

/// Reads `[hooks]`, in the format that Claude Code uses.
///
/// A mistake that disables a deciding hook is an error; any other one is a warning.
fn read_hooks(part: TomlValue<'_, '_>) -> Option<HooksConfig> {
    let value: Value = part.clone().read_value()?;
    let (commands, mistakes) = ExternalHooks::from_value(&value);
    if !mistakes.iter().any(|mistake| mistake.fatal) {
        return Some(HooksConfig {
            commands,
            warnings: mistakes.iter().map(ToString::to_string).collect(),
        });
    }
    // A Claude Code settings file has its events one level further down.
    let within = if value.get("hooks").is_some() { "hooks." } else { "" };
    for mistake in &mistakes {
        match mistake.path.as_str() {
            "hooks" => part.report_error(&mistake.message),
            path => part.report_error_at(&format!("{within}{path}"), &mistake.message),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use tool_sdk_core::Mode;
    use tool_sdk_workspace::Durability;

    use super::*;

    #[track_caller]
    fn check_mistake(text: &str, line: usize, words: &str) {
        let told = parse_config(text, "f").unwrap_err().format_errors("f");
        assert!(told.starts_with(&format!("f:{line}: ")), "{text}: {told}");
        assert!(told.contains(words) && !told.contains('\n'), "{text}: {told}");
    }

    #[test]
    fn reads_every_kind_of_setting() {
        let config = parse_config(
            r#"
mode = "strict"
durable = "never"
one_device = true
record_sessions = true
safe_commands = false
deny = ["delete", "read(*.env)"]
allow = ["read"]

[[rules]]
permission = "run"
pattern = "git *"
action = "allow"

[[rules]]
permission = "edit"
argument = "path"
pattern = "/etc/*"
action = "deny"
locked = true
"#,
            "f",
        )
        .unwrap();
        let rules: Vec<(String, &str, bool)> = config
            .rules
            .iter()
            .map(|rule| (rule.to_string(), rule.origin.as_str(), rule.locked))
            .collect();
        let rule = |text: &str, origin, locked| (text.to_owned(), origin, locked);
        assert_eq!(
            rules,
            [
                rule("deny delete", "f:7", false),
                rule("deny read(*.env)", "f:7", false),
                rule("allow read", "f:8", false),
                rule("allow run(git *)", "f:10", false),
                rule("deny edit(path: /etc/*)", "f:15", true),
            ]
        );
        assert!(config.rules.iter().all(|rule| rule.scope == RuleScope::User));
        assert_eq!((config.mode, config.safe_commands), (Some(Mode::Strict), Some(false)));
        assert_eq!((config.durable, config.one_device), (Some(Durability::Never), Some(true)));
        assert_eq!(config.record_sessions, Some(true));
        assert!(parse_config("", "f").unwrap().rules.is_empty());
    }

    #[test]
    fn every_mistake_has_its_line() {
        check_mistake("\nmod = \"plan\"", 2, "unknown key `mod`; did you mean `mode`?");
        check_mistake(
            "yes = true",
            1,
            "unknown key `yes`; the keys here are agents, allow, approval_timeout",
        );
        check_mistake("mode = \"careless\"", 1, "careless");
        check_mistake("\n\nmode = ", 3, "");
        check_mistake("allow = [\"a\",\n\"b(c\"]", 2, "`b(c` is not a rule");
        check_mistake("allow = \"a\"", 1, "`allow`: expected a list");
        check_mistake("[[rules]]\npermision = \"a\"", 2, "did you mean `permission`?");
        check_mistake("[[rules]]\npermission = \"a\"", 1, "missing field `action`");
        check_mistake(
            "[[rules]]\npermission = \"a\"\naction = \"alow\"",
            3,
            "unknown variant `alow`",
        );
        for empty in ["permission = \"\"", "permission = \"a\"\npattern = \" \""] {
            check_mistake(&format!("[[rules]]\n{empty}\naction = \"deny\""), 1, "is empty");
        }
        check_mistake(
            "[[rules]]\npermission = \"a\"\nargument = \"b\"\naction = \"deny\"",
            1,
            "needs a `pattern`",
        );
        // The scope of a rule follows from its source.
        check_mistake(
            "[[rules]]\npermission = \"a\"\naction = \"deny\"\nscope = \"session\"",
            4,
            "unknown key `scope`",
        );
    }

    #[test]
    fn wrong_types_and_empty_values_are_errors() {
        check_mistake("mode = 1", 1, "`mode`: invalid type: integer `1`, expected a string");
        check_mistake("durable = true", 1, "`durable`: invalid type: boolean `true`");
        check_mistake("sandbox = true", 1, "`sandbox`: invalid type: boolean `true`");
        check_mistake("sandbox_level = {}", 1, "`sandbox_level`: invalid type: map");
        check_mistake("writable = [\"a\", \"\"]", 1, "`writable[1]`: it is empty; write `.` for");
        check_mistake("writable = [\"~/x\"]", 1, "`writable[0]`: `~` is not expanded");
        check_mistake("audit = \"~/x\"", 1, "`audit`: `~` is not expanded");
        check_mistake("[agents.a]\nname = \"b\"", 1, "`agents.a`: unknown key `name`");
        let rule = "permission = \"a\"\npattern = \"b\"\naction = \"deny\"";
        for argument in ["", " "] {
            let text = format!("[[rules]]\n{rule}\nargument = \"{argument}\"");
            check_mistake(&text, 1, "`argument` is empty");
        }
        let text = format!("[[rules]]\n{rule}\nargument = \" path \"");
        assert_eq!(parse_config(&text, "f").unwrap().rules[0].to_string(), "deny a(path: b)");
    }

    #[track_caller]
    fn check_mistakes(text: &str, expected: &[&str]) {
        let told = parse_config(text, "f").unwrap_err().format_errors("f");
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{told}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(expected), "{expected}: {told}");
        }
    }

    #[test]
    fn reports_every_error_in_file_order() {
        check_mistakes(
            r#"mod = "plan"
mode = "careless"
allow = ["a(", "fine", 3]
writable = ["/a", 1]
experimental = "x"
variants = { shell = 1 }
durable = "some"

[[rules]]
permission = "a"
patern = "b"

[[rules]]
permission = "a"

[agents.one]
nly = ["a"]

[agents.two]
only = "a"

[hooks]
PostToolUse = [{ hooks = [{ type = "command", command = "a" }] }]
PreToolUse = [
    { hooks = [{ type = "command" }] },
    { hooks = [
        { type = "command", command = "a" },
        { type = "command", command = "b", timeout = -1 },
    ] },
]

[[hooks.PermissionRequest]]
matcher = 1
hooks = []
"#,
            &[
                "f:1: unknown key `mod`; did you mean `mode`?",
                "f:2: `mode`: `careless` is not a mode",
                "f:3: `allow[0]`: ",
                "f:3: `allow[2]`: invalid type: integer `3`",
                "f:4: `writable[1]`: invalid type: integer `1`",
                "f:5: `experimental`: expected a list",
                "f:6: `variants.shell`: invalid type: integer `1`",
                "f:7: `durable`: `some` is not one of",
                "f:11: unknown key `patern`; did you mean `pattern`?",
                "f:13: `rules[1]`: missing field `action`",
                "f:17: `agents.one`: unknown field `nly`",
                "f:20: `agents.two`: invalid type: string \"a\"",
                "f:25: `hooks.PreToolUse[0].hooks[0].command`: expected a command",
                "f:28: `hooks.PreToolUse[1].hooks[1].timeout`: expected a number",
                "f:33: `hooks.PermissionRequest[0].matcher`: expected a string",
            ],
        );
    }

    // After a syntax error, other errors would only follow from it.
    #[test]
    fn syntax_errors_hide_all_other_errors() {
        check_mistakes("mod = 1\nmode = \nallow = [\"a\" \"b\"]\n", &["f:2: ", "f:3: "]);
        check_mistakes("mode = \"auto\"\nmode = \"plan\"\n", &["f:2: duplicate key"]);
    }

    #[cfg(feature = "mcp")]
    #[test]
    fn reports_errors_of_servers_and_principals_one_by_one() {
        check_mistakes(
            r#"[mcp.servers.a]
command = "x"
url = "https://a.example"
[mcp.servers.b]
comand = "x"
[mcp.servers.c]
command = "fine"
[serve.mcp]
host = "a.example"
origins = ["b.example", "https://fine.example"]
[serve.mcp.principals.ada]
[serve.mcp.principals.bob]
token = "secret"
"#,
            &[
                "f:1: `mcp.servers.a`: `command` and `url` exclude each other",
                "f:5: `mcp.servers.b`: unknown field `comand`",
                "f:9: unknown key `host`; did you mean `hosts`?",
                "f:10: `serve.mcp.origins[0]`: `b.example` is not an origin",
                "f:11: `serve.mcp.principals.ada`: it needs either `token_env` or `token_file`",
                "f:13: `serve.mcp.principals.bob`: unknown field `token`",
            ],
        );
    }
}
