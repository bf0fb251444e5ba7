//! Plugins as people and attackers write them: installed, enabled, called, changed, removed.

#![cfg(unix)]

mod restrictions;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::{
    Call, ErrorKind, Mode, Outcome, Output, Pipeline, PluginManager, ProgramFolders, Registry,
    Session, ToolError, TrustedFolders, Workspace, tools,
};

use super::library::PluginPlaces;
use super::plan::{PluginAction, PluginPlan};
use super::*;

/// A plugin with a tool for each protocol, a rule and a hook.
const MANIFEST: &str = r#"
name = "words"
version = "1.0.0"
description = "Counts words"
rules = ["deny forbidden_*"]

[[tools]]
name = "words_count"
description = "Count the words of a text."
command = ["./count.sh"]
risk = "read"
permission = "words"
display = { name = "Count", primary = "text", summary = "Counting {text}" }
parameters = { type = "object", properties = { text = { type = "string", description = "The text." } }, required = ["text"], additionalProperties = false }
env = { LABEL = "words in ${PLUGIN_ROOT}" }

[[tools]]
name = "words_echo"
description = "Return the arguments."
command = ["python3", "${PLUGIN_ROOT}/echo.py"]
protocol = "lines"
risk = "read"
parameters = { type = "object", additionalProperties = true }
"#;

const COUNT: &str = r#"#!/bin/sh
# Counts the words behind the colon.
text=$(cat)
case "$text" in
  *sleep*) exec sleep 600 ;;
  *fail*) echo "the cause" >&2; echo '{"error": "it failed", "hint": "say less"}'; exit 3 ;;
  *crash*) echo "the cause" >&2; exit 4 ;;
  *garbage*) echo "no json"; exit 0 ;;
  *much*) head -c 3000000 /dev/zero | tr '\0' 'x'; exit 0 ;;
  *env*) printf '"%s|%s|%s"' "$LABEL" "${SECRET_TOKEN-none}" "$(pwd)"; exit 0 ;;
esac
set -- $(printf '%s' "$text" | sed 's/.*"text":"//; s/"}.*//')
echo "{\"words\": $#}"
"#;

const ECHO: &str = r#"import json, os, sys, time
lingers = False
for line in sys.stdin:
    call = json.loads(line)
    arguments = call["arguments"]
    if arguments.get("exit"):
        print("the cause", file=sys.stderr)
        sys.exit(1)
    if arguments.get("wait"):
        open("waiting", "w").close()
        time.sleep(600)
    if arguments.get("linger"):
        lingers = True
    if arguments.get("other"):
        print(json.dumps({"id": 0, "result": "of another call"}), flush=True)
    elif arguments.get("error"):
        print(json.dumps({"id": call["id"], "error": "no", "hint": "yes"}), flush=True)
    else:
        result = {"pid": os.getpid(), "tool": call["tool"], "arguments": arguments}
        print(json.dumps({"id": call["id"], "result": result}), flush=True)
if lingers:
    time.sleep(600)
"#;

struct PluginFolders {
    _temp: tempfile::TempDir,
    root: PathBuf,
    state: PathBuf,
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn write_plugin(folder: &Path) {
    for (name, text) in [("plugin.toml", MANIFEST), ("count.sh", COUNT), ("echo.py", ECHO)] {
        write(&folder.join(name), text);
    }
}

fn folders() -> PluginFolders {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().canonicalize().unwrap();
    let [root, state] = ["root", "state"].map(|name| path.join(name));
    fs::create_dir_all(&root).unwrap();
    write_plugin(&root.join("new"));
    PluginFolders { _temp: temp, root, state }
}

impl PluginFolders {
    fn program_folders(&self) -> ProgramFolders {
        let mut folders = ProgramFolders::default();
        folders.state = Some(self.state.clone());
        folders
    }

    fn places(&self) -> PluginPlaces {
        PluginPlaces { folders: self.program_folders(), ..PluginPlaces::default() }
    }

    /// The folder from which an enabled plugin of the state folder runs.
    fn copy_of(&self, plugin: &str) -> PathBuf {
        self.places().run_folder(&self.state.join(plugin)).unwrap()
    }

    /// A program that loads the enabled plugins.
    fn program(&self) -> PluginProgram {
        self.program_with(|pipeline| pipeline)
    }

    /// A program whose pipeline the host changes before plugins are loaded.
    fn program_with(&self, setup: impl FnOnce(Pipeline) -> Pipeline) -> PluginProgram {
        let registry = Registry::builder().add(tools![plugin_manager, crate::fs::read_file]);
        let pipeline = setup(Pipeline::new(registry.build().unwrap()).mode(Mode::Bypass));
        let pipeline = pipeline.rules(["allow plugin".parse().unwrap()]);
        let found = EnabledPlugins::find(&self.program_folders(), std::slice::from_ref(&self.root));
        let mut problems = found.problems;
        for plugin in &found.plugins {
            let loaded = pipeline.plugins().load(plugin);
            if let Err(error) = loaded {
                pipeline.plugins().load_restrictions(plugin, &error);
                problems.push(error.to_string());
            }
        }
        let session = Session::new("test")
            .with_service(Workspace::open([&self.root]).unwrap())
            .with_service(self.program_folders())
            .with_service(pipeline.plugins());
        PluginProgram { pipeline, session, problems }
    }

    fn trust(&self) {
        TrustedFolders::open(&self.state).trust(&self.root).unwrap();
    }
}

struct PluginProgram {
    pipeline: Pipeline,
    session: Session,
    problems: Vec<String>,
}

impl PluginProgram {
    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.pipeline.call(&self.session, Call::new(tool, arguments.to_string())).await
    }

    async fn ok(&self, tool: &str, arguments: Value) -> Output {
        let result = self.call(tool, arguments.clone()).await.result;
        result.unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"))
    }

    async fn error(&self, tool: &str, arguments: Value) -> ToolError {
        match self.call(tool, arguments.clone()).await.result {
            Ok(output) => panic!("{tool} {arguments}: {}", output.as_text()),
            Err(error) => error,
        }
    }

    async fn manage(&self, action: &str, name: &str) -> Output {
        self.ok("plugin_manager", json!({ "action": action, "name": name })).await
    }

    async fn install_and_enable(&self) {
        self.ok("plugin_manager", json!({ "action": "install", "source": "new" })).await;
        self.manage("enable", "words").await;
    }
}

/// The number of processes that run in a folder.
fn count_processes(folder: &Path) -> usize {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let folders = all.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    folders.filter(|its| its == folder).count()
}

/// Waits until `count` processes run in a folder.
async fn wait_for_processes(folder: &Path, count: usize) {
    for _ in 0..6000 {
        if count_processes(folder) >= count {
            return;
        }
        // The start of a process is not an event that another one could wait for.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{count} processes do not start");
}

/// How often what must leave nothing behind is done: `TOOL_STD_TEST_ROUNDS`, or a few times.
fn rounds() -> u32 {
    std::env::var("TOOL_STD_TEST_ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(3)
}

fn words(output: &Output) -> Value {
    output.to_structured().or_else(|| serde_json::from_str(output.as_text()).ok()).unwrap()
}

// F116: each action, and a dry run that changes nothing.
#[tokio::test]
async fn a_plugin_is_installed_enabled_updated_and_removed() {
    let folders = folders();
    let program = folders.program();
    let dry = json!({ "action": "install", "source": "new", "dry_run": true });
    let plan = program.ok("plugin_manager", dry).await;
    for part in [
        "Would install the plugin `words` (1.0.0): Counts words",
        "brings: tool `words_count` may read (permission `words`), runs ./count.sh",
        "brings: rule `deny forbidden_*`",
        "+command = [\"./count.sh\"]",
    ] {
        assert!(plan.as_text().contains(part), "{part}: {}", plan.as_text());
    }
    assert!(!folders.state.exists());

    program.ok("plugin_manager", json!({ "action": "install", "source": "new" })).await;
    assert!(program.pipeline.toolset().get("words_count").is_none(), "installing enables nothing");
    assert!(folders.program().pipeline.plugins().loaded().is_empty());
    let listed = program.ok("plugin_manager", json!({ "action": "list" })).await;
    assert_eq!(listed.as_text(), "words (user, disabled): Counts words");
    let error =
        program.error("plugin_manager", json!({ "action": "install", "source": "new" })).await;
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");

    let plan = program
        .ok("plugin_manager", json!({"action": "enable", "name": "words", "dry_run": true}))
        .await;
    assert!(plan.as_text().contains("+name = \"words\""), "{}", plan.as_text());
    assert!(folders.program().pipeline.plugins().loaded().is_empty());
    let enabled = program.manage("enable", "words").await;
    assert!(enabled.as_text().contains("`words_count`, `words_echo`"), "{}", enabled.as_text());
    let counted = program.ok("words_count", json!({ "text": "to be or" })).await;
    assert_eq!(words(&counted), json!({ "words": 3 }));
    let again = folders.program();
    assert_eq!(
        words(&again.ok("words_count", json!({ "text": "a" })).await),
        json!({ "words": 1 })
    );

    let shown = program.manage("show", "words").await;
    assert!(shown.as_text().contains("(user, enabled)"), "{}", shown.as_text());
    program.manage("reload", "words").await;
    let error = program.error("plugin_manager", json!({"action": "update", "name": "words"})).await;
    assert!(error.message().contains("is up to date"), "{error}");
    write(&folders.root.join("new/plugin.toml"), &MANIFEST.replace("1.0.0", "1.1.0"));
    let plan = json!({ "action": "update", "name": "words", "dry_run": true });
    let planned = program.ok("plugin_manager", plan).await;
    assert!(planned.as_text().contains("stays in use"), "{}", planned.as_text());
    let updated = program.manage("update", "words").await;
    assert!(updated.as_text().contains("stays in use until this one is enabled"), "{updated:?}");
    // Its tools and denials are in force, here and in the next program, until the user has seen the new one.
    for program in [&program, &folders.program()] {
        program.ok("words_count", json!({ "text": "a" })).await;
        let shown = program.manage("show", "words").await;
        assert!(shown.as_text().contains("1.1.0 (user, changed"), "{}", shown.as_text());
    }
    program.manage("enable", "words").await;
    let shown = program.manage("show", "words").await;
    assert!(shown.as_text().contains("1.1.0 (user, enabled)"), "{}", shown.as_text());
    program.manage("disable", "words").await;
    assert!(program.pipeline.toolset().get("words_count").is_none());
    program.manage("enable", "words").await;
    program.manage("uninstall", "words").await;
    assert!(program.pipeline.plugins().loaded().is_empty());
    let left: Vec<_> = fs::read_dir(folders.state.join("plugins")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    for pins in ["plugin-pins", "enabled-plugins", "plugin-copies"] {
        assert_eq!(fs::read_dir(folders.state.join(pins)).unwrap().count(), 0, "{pins}");
    }
}

// A plugin whose files have changed runs from those that the user enabled, and asks again.
#[tokio::test]
async fn a_changed_plugin_runs_from_the_enabled_files() {
    let folders = folders();
    let program = folders.program();
    program.install_and_enable().await;
    let installed = folders.state.join("plugins/words");
    write(&installed.join("count.sh"), "#!/bin/sh\necho '\"evil\"'\n");
    let next = folders.program();
    assert!(next.problems[0].contains("has changed since it was enabled"), "{:?}", next.problems);
    assert_eq!(words(&next.ok("words_count", json!({ "text": "x" })).await), json!({ "words": 1 }));
    let error = next.error("plugin_manager", json!({"action": "reload", "name": "words"})).await;
    assert!(error.message().contains("has changed since it was enabled"), "{error}");
    let plan = next
        .ok("plugin_manager", json!({"action": "enable", "name": "words", "dry_run": true}))
        .await;
    assert!(plan.as_text().contains("+echo '\"evil\"'"), "{}", plan.as_text());
    next.manage("enable", "words").await;
    assert_eq!(next.ok("words_count", json!({ "text": "x" })).await.as_text(), "evil");
}

// A plugin of a project counts when the folder is trusted, and runs from a copy of what was approved.
#[tokio::test]
async fn a_project_brings_plugins_when_it_is_trusted() {
    let folders = folders();
    write_plugin(&folders.root.join(".agents/plugins/words"));
    let program = folders.program();
    let listed = program.ok("plugin_manager", json!({ "action": "list" })).await;
    assert!(listed.as_text().contains("until the user trusts"), "{}", listed.as_text());
    program.error("plugin_manager", json!({"action": "enable", "name": "words"})).await;
    folders.trust();
    program.manage("enable", "words").await;
    program.ok("words_count", json!({ "text": "x" })).await;
    // The running program goes on with what was approved; the next one asks again.
    let changed = folders.root.join(".agents/plugins/words/count.sh");
    write(&changed, "#!/bin/sh\necho '\"evil\"'\n");
    assert_eq!(
        words(&program.ok("words_count", json!({ "text": "x" })).await),
        json!({ "words": 1 })
    );
    let plan = program
        .ok("plugin_manager", json!({"action": "enable", "name": "words", "dry_run": true}))
        .await;
    assert!(plan.as_text().contains("+echo '\"evil\"'") && plan.as_text().contains("-echo "));
    write(&changed, COUNT);
    assert_eq!(folders.program().pipeline.plugins().loaded().len(), 1);
    for action in ["uninstall", "update"] {
        let error =
            program.error("plugin_manager", json!({"action": action, "name": "words"})).await;
        assert!(error.message().contains("a part of the project"), "{error}");
    }
    program.manage("disable", "words").await;
    assert_eq!(fs::read_dir(folders.state.join("plugin-copies")).unwrap().count(), 0);
    TrustedFolders::open(&folders.state).revoke(&folders.root).unwrap();
    assert!(folders.program().pipeline.plugins().loaded().is_empty());
}

// Two plugins of one name: neither is guessed.
#[tokio::test]
async fn a_name_of_two_plugins_is_an_error_with_both_places() {
    let folders = folders();
    let program = folders.program();
    program.install_and_enable().await;
    write_plugin(&folders.root.join(".claude/plugins/words"));
    folders.trust();
    let error = program.error("plugin_manager", json!({"action": "show", "name": "words"})).await;
    assert!(error.message().contains("state/plugins/words"), "{error}");
    assert!(error.message().contains(".claude/plugins/words"), "{error}");
}

// F115: the pipeline judges, limits and ends a command like any tool.
#[tokio::test]
async fn commands_are_tools_like_any_other() {
    let folders = folders();
    let program = folders.program();
    program.install_and_enable().await;
    let error = program.error("words_count", json!({ "txt": 1 })).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    for (text, message) in [
        ("fail", "it failed"),
        ("crash", "`words_count` failed: its command ended with exit code 4"),
        ("garbage", "`words_count` printed no JSON value"),
        ("much", "`words_count` printed more than 1048576 bytes"),
    ] {
        let error = program.error("words_count", json!({ "text": text })).await;
        assert!(error.message().starts_with(message), "{error}");
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let is_told = matches!(text, "fail" | "crash");
        assert_eq!(cause.contains("the cause"), is_told, "{text}: {cause}");
        assert!(!error.to_string().contains("the cause"), "the model does not read it");
    }
    let seen = program.ok("words_count", json!({ "text": "env" })).await;
    let root = folders.copy_of("plugins/words");
    let expected = format!("words in {}|none|{}", root.display(), folders.root.display());
    assert_eq!(seen.as_text(), expected);

    program.pipeline.set_mode(Mode::Strict);
    let error = program.error("words_count", json!({ "text": "x" })).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    program.pipeline.set_rules(["deny words(*)".parse().unwrap()].into_iter().collect());
    program.pipeline.set_mode(Mode::Bypass);
    let error = program.error("words_count", json!({ "text": "x" })).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn a_process_answers_line_by_line() {
    let folders = folders();
    let program = folders.program();
    program.install_and_enable().await;
    let pid = |output: Output| words(&output)["pid"].as_u64().unwrap();
    let first = program.ok("words_echo", json!({ "a": [1, "ä\n"] })).await;
    assert_eq!(words(&first)["arguments"], json!({ "a": [1, "ä\n"] }));
    assert_eq!(words(&first)["tool"], "words_echo");
    let first = pid(first);
    assert_eq!(pid(program.ok("words_echo", json!({})).await), first, "the process runs on");
    let error = program.error("words_echo", json!({ "error": true })).await;
    assert_eq!((error.message(), error.suggestion()), ("no", Some("yes")));
    assert_eq!(pid(program.ok("words_echo", json!({})).await), first);
    for broken in ["exit", "other"] {
        let error = program.error("words_echo", json!({ broken: true })).await;
        assert!(error.message().starts_with("the process of `words_echo` failed"), "{error}");
        assert_ne!(pid(program.ok("words_echo", json!({})).await), first, "a new process");
    }
    // A call that ends early ends the process.
    let before = pid(program.ok("words_echo", json!({})).await);
    let cancel = tool_sdk::CancellationToken::new();
    let call = Call::new("words_echo", r#"{"wait": true}"#).cancelled_by(cancel.clone());
    let (outcome, ()) = tokio::join!(program.pipeline.call(&program.session, call), async {
        while !folders.root.join("waiting").exists() {
            // Nothing tells when the process has read the call.
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        cancel.cancel();
    });
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
    assert_ne!(pid(program.ok("words_echo", json!({})).await), before);
    program.manage("disable", "words").await;
    assert_eq!(count_processes(&folders.root), 0);
}

// Tools share a process only with the same variables, and only for one user.
#[tokio::test]
async fn a_process_serves_one_user_with_one_environment() {
    let folders = folders();
    let two = MANIFEST.find("[[tools]]\nname = \"words_echo\"").map(|at| &MANIFEST[at..]).unwrap();
    let named = |name: &str| two.replace("words_echo", name);
    let manifest =
        format!("{MANIFEST}\n{}\n{}env = {{ A = \"1\" }}\n", named("same"), named("other"));
    write(&folders.root.join("new/plugin.toml"), &manifest);
    let program = folders.program();
    program.install_and_enable().await;
    let pid = async |tool: &str, session: &Session| {
        let outcome = program.pipeline.call(session, Call::new(tool, "{}")).await;
        words(&outcome.result.unwrap())["pid"].as_u64().unwrap()
    };
    let host = &program.session;
    let [one, two] = ["one", "two"].map(|user| host.clone().with_user(user));
    let first = pid("words_echo", host).await;
    assert_eq!(pid("same", host).await, first);
    assert_ne!(pid("other", host).await, first, "other variables");
    let of_one = pid("words_echo", &one).await;
    assert!(of_one != first && of_one != pid("words_echo", &two).await, "other users");
    assert_eq!(pid("same", &one).await, of_one);
    program.manage("disable", "words").await;
    assert_eq!(count_processes(&folders.root), 0);
}

// What runs is shown, also behind much other text.
#[tokio::test]
async fn text_that_cannot_be_shown_is_not_enabled() {
    let folders = folders();
    let new = folders.root.join("new");
    let enable = json!({"action": "enable", "name": "words", "dry_run": true});
    let long = format!("{COUNT}{}echo evil\n", "# padding\n".repeat(10_000));
    write(&new.join("count.sh"), &long);
    write(&new.join("a/data.bin"), &"\0".repeat(3 << 20));
    let program = folders.program();
    program.ok("plugin_manager", json!({ "action": "install", "source": "new" })).await;
    // What a prompt shows; the model reads less.
    let places = folders.places();
    let found = places.find_plugin("words").unwrap();
    let plan = PluginPlan::for_plugin(PluginAction::Enable, found, &places).unwrap().describe();
    assert!(plan.contains("+echo evil"), "the end of a long file");
    assert!(plan.contains("[count.sh: it can be executed]"));
    let at = |part: &str| plan.find(part).unwrap();
    assert!(at("+++ count.sh") < at("[a/data.bin: "), "what runs comes first");

    for (name, text) in [
        ("b/padding.txt", "padding\n".repeat(300_000)),
        ("count.sh", format!("{COUNT}# \0\necho evil\n")),
    ] {
        write_plugin(&new);
        write(&new.join(name), &text);
        program.manage("update", "words").await;
        let error = program.error("plugin_manager", enable.clone()).await;
        assert!(error.message().contains(&format!("cannot be shown: `{name}`")), "{error}");
        fs::remove_file(new.join(name)).unwrap();
    }
}

// What a plugin says about itself reaches the model short and visible.
#[tokio::test]
async fn commands_and_descriptions_are_unambiguous() {
    let folders = folders();
    let manifest = MANIFEST
        .replace("Counts words", &format!("Counts\\u202e words{}", "x".repeat(400)))
        .replace("[\"./count.sh\"]", "[\"./count.sh\", \"a b\", \"\", \"c\\nd\"]");
    write(&folders.root.join("new/plugin.toml"), &manifest);
    let program = folders.program();
    program.ok("plugin_manager", json!({ "action": "install", "source": "new" })).await;
    let listed = program.ok("plugin_manager", json!({ "action": "list" })).await;
    let shown = program.manage("show", "words").await;
    for text in [listed.as_text(), shown.as_text()] {
        assert!(text.contains(r"Counts\u{202e} words"), "{text}");
        assert!(!text.contains(&"x".repeat(300)) && text.contains("x…"), "{text}");
    }
    let command = r#"runs ./count.sh "a b" "" "c\nd", with LABEL="words in ${PLUGIN_ROOT}""#;
    assert!(shown.as_text().contains(command), "{}", shown.as_text());
}

// F68: the hooks of a plugin transform calls, deny them, and never allow.
#[tokio::test]
async fn hooks_and_skills_of_a_plugin_come_and_go() {
    let folders = folders();
    let plugin = folders.root.join("claude");
    write(
        &plugin.join(".claude-plugin/plugin.json"),
        r#"{"name": "guard", "description": "Guards", "keywords": ["x"], "author": {"name": "a"}}"#,
    );
    let hooks = json!({"description": "Guards files", "hooks": {"PreToolUse": [{"matcher": "Read",
        "hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/guard.sh", "may_allow": true}]}]}});
    write(&plugin.join("hooks/hooks.json"), &hooks.to_string());
    write(
        &plugin.join("guard.sh"),
        "#!/bin/sh\ngrep -q secret || exit 0\necho 'no secrets' >&2\nexit 2\n",
    );
    write(&plugin.join("skills/tidy/SKILL.md"), "---\nname: tidy\ndescription: d\n---\nDo.\n");
    write(&plugin.join("commands/x.md"), "x");
    write(&folders.root.join("secret.txt"), "x");
    write(&folders.root.join("free.txt"), "x");
    let program = folders.program();
    program.ok("plugin_manager", json!({ "action": "install", "source": "claude" })).await;
    let shown = program.manage("show", "guard").await;
    for part in ["guard.sh", "skills in `skills`", "its commands", "`may_allow`"] {
        assert!(shown.as_text().contains(part), "{part}: {}", shown.as_text());
    }
    program.manage("enable", "guard").await;
    let error = program.error("read_file", json!({ "path": "secret.txt" })).await;
    assert!(error.message().contains("no secrets"), "{error}");
    program.ok("read_file", json!({ "path": "free.txt" })).await;
    let scope = program.session.service::<PluginManager>().unwrap().loaded().remove(0);
    assert_eq!(scope.skill_folders(), [folders.copy_of("plugins/guard").join("skills")]);
    drop(scope);
    program.manage("disable", "guard").await;
    program.ok("read_file", json!({ "path": "secret.txt" })).await;
}

// Everything that changes something asks, in every mode.
#[tokio::test]
async fn changes_ask() {
    let folders = folders();
    let program = folders.program();
    program.install_and_enable().await;
    program.pipeline.set_rules(tool_sdk::Ruleset::default());
    for action in ["disable", "reload", "uninstall"] {
        let error =
            program.error("plugin_manager", json!({"action": action, "name": "words"})).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{action}: {error}");
    }
    write_plugin(&folders.root.join("other"));
    let error =
        program.error("plugin_manager", json!({"action": "install", "source": "other"})).await;
    assert!(error.kind() == ErrorKind::Denied || error.kind() == ErrorKind::Conflict, "{error}");
    program.ok("plugin_manager", json!({ "action": "list" })).await;
    assert_eq!(program.pipeline.plugins().loaded().len(), 1);
}

#[tokio::test]
async fn bad_manifests_are_refused() {
    let folders = folders();
    let program = folders.program();
    for (change, with, message) in [
        ("deny forbidden_*", "allow *", "only `deny` and `ask` are possible"),
        ("name = \"words\"", "name = \"../words\"", "cannot be the name of a plugin"),
        ("name = \"words\"", "name = \"words\"\nextra = 1", "unknown field `extra`"),
        ("./count.sh", "./gone.sh", "which the plugin does not have"),
        ("./count.sh", "/bin/sh", "must be a name"),
        ("./count.sh", "../../x", "must be a name"),
        ("./count.sh", "./echo.py", "is not executable"),
        ("risk = \"read\"", "risk = \"none\"", "unknown variant"),
        ("risk = \"read\"", "timeout = 0", "between 0.001 and 3600"),
    ] {
        write(&folders.root.join("new/plugin.toml"), &MANIFEST.replacen(change, with, 1));
        let error =
            program.error("plugin_manager", json!({"action": "install", "source": "new"})).await;
        assert!(error.message().contains(message), "{with}: {error}");
    }
    write(&folders.root.join("new/plugin.toml"), &MANIFEST.replacen("LABEL", "LD_PRELOAD", 1));
    program.ok("plugin_manager", json!({ "action": "install", "source": "new" })).await;
    let error = program.error("plugin_manager", json!({"action": "enable", "name": "words"})).await;
    assert!(error.message().contains("LD_PRELOAD"), "{error}");
    std::os::unix::fs::symlink("/etc", folders.root.join("new/link")).unwrap();
    let error = program.error("plugin_manager", json!({"action": "update", "name": "words"})).await;
    assert!(error.message().contains("a link"), "{error}");
}

// Uninstalling while calls run: the calls end with a clear error, and nothing stays behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uninstalling_while_calls_run_leaves_nothing_behind() {
    let folders = folders();
    let program = Arc::new(folders.program());
    for _ in 0..rounds() {
        program.install_and_enable().await;
        let start = |tool: &'static str, arguments: Value| {
            let program = Arc::clone(&program);
            tokio::spawn(async move { program.call(tool, arguments).await })
        };
        let mut calls: Vec<_> =
            (0..3).map(|_| start("words_count", json!({ "text": "sleep" }))).collect();
        calls.push(start("words_echo", json!({ "wait": true })));
        wait_for_processes(&folders.root, 4).await;
        let done = program.manage("uninstall", "words").await;
        assert!(!done.as_text().contains("did not end"), "{}", done.as_text());
        assert_eq!(count_processes(&folders.root), 0, "processes");
        for call in calls {
            let error = call.await.unwrap().result.unwrap_err();
            assert_eq!(error.message(), "the plugin `words` was unloaded while the call ran");
        }
        let toolset = program.pipeline.toolset();
        assert!(toolset.get("words_count").is_none() && toolset.plugins().is_empty());
        for folder in ["plugins", "plugin-pins", "enabled-plugins", "plugin-copies"] {
            let left: Vec<_> = fs::read_dir(folders.state.join(folder)).unwrap().collect();
            assert!(left.is_empty(), "{folder}: {left:?}");
        }
        let listed = program.ok("plugin_manager", json!({ "action": "list" })).await;
        assert_eq!(listed.as_text(), "There are no plugins.");
    }
}

// Manifests of public plugins: `tests/fixtures/claude-plugins/SOURCE.txt` says where they are from.
#[tokio::test]
async fn public_plugins_are_read() {
    let folders = folders();
    let program = folders.program();
    let text = include_str!("../../../tests/fixtures/claude-plugins/cases.json");
    let cases: Vec<Value> = serde_json::from_str(text).unwrap();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        for (file, content) in case["files"].as_object().unwrap() {
            let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
            write(&folders.root.join(name).join(file), &content);
        }
        program.ok("plugin_manager", json!({ "action": "install", "source": name })).await;
        let shown = program.manage("show", name).await.into_text();
        for (field, start) in [("brings", "brings: "), ("notes", "note: ")] {
            for part in case[field].as_array().unwrap() {
                let line = format!("{start}{}", part.as_str().unwrap());
                assert!(shown.contains(&line), "{line}: {shown}");
            }
        }
        program.manage("enable", name).await;
    }
    assert_eq!(program.pipeline.plugins().loaded().len(), cases.len());
    let loaded = program.pipeline.plugins().loaded();
    let servers: Vec<_> = loaded.iter().flat_map(|scope| scope.mcp_servers()).collect();
    assert_eq!(servers[0].0, "context7-context7");
    assert_eq!(servers[0].1["args"], json!(["--force", "-y", "@upstash/context7-mcp"]));
    assert_eq!(folders.program().pipeline.plugins().loaded().len(), cases.len());
}

// SK1 to SK3: an archive of an attacker installs nothing.
#[tokio::test]
async fn archives_of_attackers_install_nothing() {
    use std::io::Write as _;

    let folders = folders();
    let program = folders.program();
    let options = zip::write::SimpleFileOptions::default();
    let manifest = MANIFEST.as_bytes();
    let zeros = vec![0; 20 << 20];
    for (name, content, message) in [
        ("../evil", &b"x"[..], "must be a name"),
        ("/etc/evil", b"x", "must be a name"),
        ("a\\b", b"x", "contains `\\`"),
        ("PLUGIN.TOML", b"x", "twice"),
        ("plugin.toml/x", b"x", "twice"),
        ("big", &zeros, "too large"),
        ("nul", b"x", "device on Windows"),
        ("a\u{202e}b", b"x", "do not show"),
    ] {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, content) in [("plugin.toml", manifest), (name, content)] {
            archive.start_file(name, options).unwrap();
            archive.write_all(content).unwrap();
        }
        let bytes = archive.finish().unwrap().into_inner();
        fs::write(folders.root.join("evil.zip"), bytes).unwrap();
        let error = program
            .error("plugin_manager", json!({"action": "install", "source": "evil.zip"}))
            .await;
        assert!(error.message().contains(message), "{name}: {error}");
        assert!(!folders.state.join("plugins").exists(), "{name}");
    }
    assert!(!folders.root.join("../evil").exists());
}
