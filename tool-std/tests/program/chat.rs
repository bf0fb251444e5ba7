//! `chat` against a server that answers as a model does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use http_stub::{HttpStub, RecordedRequest, StubReply};
use serde_json::{Value, json};

use super::{err, json, out};

/// A model that reads `notes.txt`, replaces `helo` in it, and says that it is done. It says `Hello`
/// to every other prompt.
struct FakeModel(HttpStub);

impl FakeModel {
    fn start() -> Self {
        Self(HttpStub::start(answer_request))
    }

    /// The part of the URL before the path.
    fn url(&self) -> String {
        self.0.url().replace("/mcp", "/v1")
    }
}

fn answer_request(request: &RecordedRequest) -> StubReply {
    let messages = request.message["messages"].as_array().cloned().unwrap_or_default();
    let said = messages.iter().rev().find(|it| it["role"] == "user").cloned().unwrap_or_default();
    let said = said["content"].as_str().unwrap_or_default().to_owned();
    let results = messages.iter().filter(|it| it["role"] == "tool").count();
    let call = |name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        let id = format!("c{results}");
        json!({ "tool_calls": [{ "index": 0, "id": id, "function": function }] })
    };
    let (delta, reason) = match results {
        0 if said.contains("hand it over") => {
            let task = json!({ "agent": "fixer", "task": "Please fix the typo in notes.txt" });
            (call("delegate", task), "tool_calls")
        }
        _ if said.contains("hand it over") => {
            let told = messages.last().cloned().unwrap_or_default();
            (json!({ "content": format!("It says: {}", told["content"]) }), "stop")
        }
        _ if said.contains("plan") => {
            match messages.last().is_some_and(|it| it["role"] == "user") {
                true => (call("plan_enter", json!({})), "tool_calls"),
                false => (json!({ "content": "I plan." }), "stop"),
            }
        }
        _ if !said.contains("typo") => (json!({ "content": "Hello" }), "stop"),
        0 => (call("read_file", json!({ "path": "notes.txt" })), "tool_calls"),
        1 => {
            let edit = json!({ "path": "notes.txt", "old_string": "helo", "new_string": "hello" });
            (call("edit_file", edit), "tool_calls")
        }
        _ => (json!({ "content": "I am done." }), "stop"),
    };
    stream_reply(&[delta], reason)
}

/// Returns the stream of a message of the model.
pub(super) fn stream_reply(deltas: &[Value], reason: &str) -> StubReply {
    let chunk = |choice: Value| json!({ "choices": [choice] });
    let deltas = deltas.iter().map(|delta| chunk(json!({ "index": 0, "delta": delta })));
    let usage = json!({ "prompt_tokens": 100, "completion_tokens": 10 });
    let end = [
        chunk(json!({ "index": 0, "delta": {}, "finish_reason": reason })),
        json!({ "choices": [], "usage": usage }),
    ];
    let body: String = deltas.chain(end).map(|event| format!("data: {event}\n\n")).collect();
    let (length, kind) = (body.len(), "text/event-stream");
    StubReply::Raw(format!(
        "200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
}

/// A folder with `notes.txt`, and one for the state of the program.
struct ChatFolder {
    folder: tempfile::TempDir,
    model: FakeModel,
}

impl ChatFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("work")).expect("a folder in it");
        let this = Self { folder, model: FakeModel::start() };
        std::fs::write(this.notes(), "helo world\n").expect("a file in it");
        this
    }

    fn notes(&self) -> PathBuf {
        self.folder.path().join("work/notes.txt")
    }

    fn chat(&self, options: &[&str], args: &[&str]) -> Output {
        self.chat_with_input(options, args, Path::new("/dev/null"))
    }

    fn chat_with_input(&self, options: &[&str], args: &[&str], input: &Path) -> Output {
        self.chat_in(&self.folder.path().join("work"), options, args, input)
    }

    fn chat_in(&self, folder: &Path, options: &[&str], args: &[&str], input: &Path) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .env("TOOL_SDK_CONFIG", "/dev/null")
            .arg("--state-dir")
            .arg(self.folder.path().join("state"))
            .args(options)
            .args(["chat", "--model", "openai-chat/test-1", "--model-url", &self.model.url()])
            .args(args)
            .env("OPENAI_API_KEY", "k-1")
            .current_dir(folder)
            .stdin(Stdio::from(std::fs::File::open(input).expect("it can be read")))
            .output()
            .expect("the program runs")
    }
}

const PROMPT: &str = "Please fix the typo in notes.txt";

#[test]
fn a_prompt_is_answered_by_way_of_tools() {
    let chat = ChatFolder::new();
    let output = chat.chat(&["--allow", "edit(notes.txt)"], &["--print", PROMPT]);
    assert_eq!(
        (out(&output).as_str(), output.status.code()),
        ("I am done.\n", Some(0)),
        "{output:?}"
    );
    assert_eq!(std::fs::read_to_string(chat.notes()).expect("it is there"), "hello world\n");
    let requests = chat.model.0.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|it| it.has("authorization: bearer k-1")), "{requests:?}");
}

// F104, F166, F177: an agent of a trusted project does the work, under the rules of the user and
// those of its file, and its answer comes back.
#[test]
fn a_task_is_delegated_to_an_agent_of_the_project() {
    let chat = ChatFolder::new();
    let agents = chat.folder.path().join("work/.agents");
    std::fs::create_dir(&agents).expect("a folder in it");
    let file = agents.join("fixer.md");
    let fixer = |tools: &str| format!("---\ndescription: Fixes\ntools: {tools}\n---\nFix it.\n");
    let run = |args: &[&str]| {
        let args = [&["--print", "Please hand it over"], args].concat();
        out(&chat.chat(&["--allow", "edit(notes.txt)"], &args))
    };
    std::fs::write(&file, fixer("[read, edit]")).expect("a file in it");
    assert!(run(&[]).contains("there is no agent `fixer`"));
    let trusting = Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .args(["trust", "--yes", "--state-dir"])
        .arg(chat.folder.path().join("state"))
        .current_dir(chat.folder.path().join("work"))
        .output()
        .expect("the program runs");
    assert!(trusting.status.success(), "{trusting:?}");

    std::fs::write(&file, fixer("[read]")).expect("a file in it");
    assert!(run(&[]).contains("I am done."), "the answer comes back");
    let content = || std::fs::read_to_string(chat.notes()).expect("it is there");
    assert_eq!(content(), "helo world\n", "the agent has no such tool");
    std::fs::write(&file, fixer("[read, edit]")).expect("a file in it");
    run(&["--mode", "plan"]);
    assert_eq!(content(), "helo world\n", "the mode of the user denies it");
    run(&[]);
    assert_eq!(content(), "hello world\n");
    let asked = chat.model.0.requests();
    let systems = asked.iter().map(|it| it.message["messages"][0]["content"].to_string());
    assert!(systems.filter(|it| it.contains("Fix it.")).count() >= 3);
}

// F163: a rule of the user reacts to a call, and its notification reaches the next request of the same
// run; the section of the prompt is there as well.
#[test]
fn a_reaction_reaches_the_next_request() {
    let chat = ChatFolder::new();
    let config = chat.folder.path().join("config/tool-sdk");
    std::fs::create_dir_all(&config).expect("a folder in it");
    let rules = r#"
        [[reaction]]
        name = "notes"
        on = "completed"
        when = 'event.tool == "read_file" && event.display.category == "filesystem"'
        actions = [
            { tool = "modify_prompt", section = "notes", text = "Notes are holy." },
            { tool = "notify_self", message = "Leave it, ${event.tool} is enough." },
        ]
    "#;
    std::fs::write(config.join("reactions.toml"), rules).expect("a file in it");
    let run = || {
        Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .env("TOOL_SDK_CONFIG", "/dev/null")
            .env("XDG_CONFIG_HOME", chat.folder.path().join("config"))
            .arg("--state-dir")
            .arg(chat.folder.path().join("state"))
            .args(["chat", "--model", "openai-chat/test-1", "--model-url", &chat.model.url()])
            .args(["--print", PROMPT])
            .env("OPENAI_API_KEY", "k-1")
            .current_dir(chat.folder.path().join("work"))
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    };
    let output = run();
    assert_eq!(out(&output), "Hello\n", "{output:?}");
    let requests = chat.model.0.requests();
    let messages = requests[1].message["messages"].as_array().expect("a list");
    let last = messages.last().expect("there are messages");
    let told = "<notification>\nLeave it, read_file is enough.\n</notification>";
    assert_eq!((&last["role"], &last["content"]), (&json!("user"), &json!(told)));
    let system = |at: usize| requests[at].message["messages"][0]["content"].to_string();
    assert!(!system(0).contains("holy") && system(1).contains("Notes are holy."));

    std::fs::write(config.join("reactions.toml"), "[[reaction]]\n").expect("a file in it");
    let warned = err(&run());
    assert!(warned.contains("warning: ") && warned.contains("reactions.toml:1:"), "{warned}");
}

// Without a user who can be asked, a change is denied, and the model reads why.
#[test]
fn a_change_needs_an_approval() {
    let chat = ChatFolder::new();
    let output = chat.chat(&[], &["--print", PROMPT, "--output", "jsonl"]);
    assert_eq!(std::fs::read_to_string(chat.notes()).expect("it is there"), "helo world\n");
    let lines: Vec<Value> = out(&output)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(types, ["system", "assistant", "user", "assistant", "user", "assistant", "result"]);
    let denied = &lines[4]["message"]["content"][0];
    let error: Value = serde_json::from_str(denied["content"].as_str().unwrap_or_default())
        .expect("an error is JSON for the model");
    assert_eq!((&denied["is_error"], &error["category"]), (&json!(true), &json!("denied")));
    let result = &lines[6];
    assert_eq!((&result["subtype"], &result["num_turns"]), (&json!("success"), &json!(3)));
    assert_eq!(result["usage"]["input_tokens"], 300);
    let denied = &result["permission_denials"];
    assert_eq!(denied.as_array().map(Vec::len), Some(1), "{denied}");
    assert_eq!(
        (&denied[0]["tool_name"], &denied[0]["tool_use_id"]),
        (&json!("edit_file"), &json!("c1"))
    );
    assert_eq!(denied[0]["tool_input"]["path"], "notes.txt");
    // The price of the model is unknown.
    assert_eq!(result.get("total_cost_usd"), Some(&Value::Null));
}

#[test]
fn a_limit_has_an_exit_code_of_its_own() {
    let chat = ChatFolder::new();
    let args = ["--print", PROMPT, "--max-turns", "2", "--output", "json"];
    let output = chat.chat(&["--yes"], &args);
    assert_eq!(output.status.code(), Some(4));
    let result = json(&output);
    assert_eq!(
        (&result["subtype"], &result["is_error"]),
        (&json!("error_max_turns"), &json!(true))
    );
    assert_eq!(result["error"], "the limit of 2 turns is reached");
}

// Each request costs one dollar.
const PRICED: &str =
    "[chat]\nmodel = \"openai-chat/test-1\"\nprice = { input = 10000.0, output = 0.0 }\n";

impl ChatFolder {
    /// Runs the program with this configuration.
    fn chat_with_config(&self, config: &str, args: &[&str]) -> Output {
        let file = self.folder.path().join("config.toml");
        std::fs::write(&file, config).expect("a file");
        let file = file.to_str().expect("a plain path");
        self.chat(&["--config", file], &[args, &["--output", "json"]].concat())
    }
}

#[test]
fn a_limit_on_cost_counts_the_whole_conversation() {
    let chat = ChatFolder::new();
    let first = chat.chat_with_config(PRICED, &["--max-cost", "1", "--print", "Hi"]);
    assert_eq!((first.status.code(), &json(&first)["total_cost_usd"]), (Some(0), &json!(1.0)));
    let again = ["--resume", "--max-cost", "1", "--print", "Again"];
    let again = chat.chat_with_config(PRICED, &again);
    assert_eq!(again.status.code(), Some(4), "{again:?}");
    let result = json(&again);
    assert_eq!(result["subtype"], "error_max_budget", "{result}");
    let more = chat.chat_with_config(PRICED, &["--resume", "--max-cost", "2", "--print", "Again"]);
    let result = json(&more);
    assert_eq!((more.status.code(), &result["total_cost_usd"]), (Some(0), &json!(1.0)), "{result}");
}

#[test]
fn a_limit_on_cost_that_cannot_hold_is_an_error() {
    let chat = ChatFolder::new();
    let output = chat.chat_with_config("", &["--max-cost", "1", "--print", "Hi"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let expected = "the price of the model `openai-chat/test-1` is unknown";
    assert!(err(&output).contains(expected), "{}", err(&output));
    assert!(chat.model.0.requests().is_empty());
    // In the configuration it may be meant for another model.
    let output = chat.chat_with_config("[chat]\nmax_cost = 1.0\n", &["--print", "Hi"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let output = chat.chat_with_config("[chat]\nprice = { input = 3.0 }\n", &["--print", "Hi"]);
    assert!(err(&output).contains("`price`: missing field `output`"), "{}", err(&output));
}

#[test]
fn usage_counts_the_agents_below() {
    let chat = ChatFolder::new();
    let agents = chat.folder.path().join("work/.agents");
    std::fs::create_dir(&agents).expect("a folder in it");
    let fixer = "---\ndescription: Fixes\ntools: [read, edit]\n---\nFix it.\n";
    std::fs::write(agents.join("fixer.md"), fixer).expect("a file in it");
    let trusting = Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .args(["trust", "--yes", "--state-dir"])
        .arg(chat.folder.path().join("state"))
        .current_dir(chat.folder.path().join("work"))
        .output()
        .expect("the program runs");
    assert!(trusting.status.success(), "{trusting:?}");
    let output = chat.chat_with_config(PRICED, &["--print", "Please hand it over"]);
    let (result, requests) = (json(&output), chat.model.0.requests().len());
    assert!(requests > 2, "{result}");
    assert_eq!(result["usage"]["input_tokens"], 100 * requests, "{result}");
    assert_eq!(result["usage"]["output_tokens"], 10 * requests, "{result}");
}

// Each line of a pipe is a prompt; the conversation is kept and can be continued.
#[test]
fn a_conversation_is_continued() {
    let chat = ChatFolder::new();
    let input = chat.folder.path().join("input");
    std::fs::write(&input, "Hi\n/tools\n/nonsense\nAgain\n/quit\nnever\n").expect("a file");
    let output = chat.chat_with_input(&[], &[], &input);
    let text = out(&output);
    assert_eq!(text.matches("Hello\n").count(), 2, "{text}{}", err(&output));
    assert!(text.contains("read_file") && text.contains("no command `/nonsense`"), "{text}");

    let output = chat.chat(&[], &["--resume", "--print", "And now?"]);
    assert_eq!(out(&output), "Hello\n", "{}", err(&output));
    let last = chat.model.0.requests().pop().expect("a request");
    let prompts: Vec<&str> = last.message["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(prompts, ["Hi", "Again", "And now?"]);
    let output = chat.chat(&[], &["--resume", "../x", "--print", "Hi"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
}

// A conversation of another folder holds what this one must not see.
#[test]
fn the_newest_conversation_is_that_of_the_folder() {
    let chat = ChatFolder::new();
    chat.chat(&[], &["--print", "Hi"]);
    let elsewhere = chat.folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    let output =
        chat.chat_in(&elsewhere, &[], &["--resume", "--print", "Hi"], Path::new("/dev/null"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(err(&output).contains("no conversation of this folder"), "{output:?}");
    assert_eq!(chat.model.0.requests().len(), 1);
}

// A conversation is in the store, without secrets, and `sessions` shows it.
#[test]
fn a_conversation_is_shown_without_its_secrets() {
    let chat = ChatFolder::new();
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let output = chat.chat(&[], &["--print", &format!("My token is {token}")]);
    assert_eq!(out(&output), "Hello\n", "{}", err(&output));
    let state = chat.folder.path().join("state");
    let sessions = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tool-std"));
        command.env("TOOL_SDK_CONFIG", "/dev/null").arg("--state-dir").arg(&state);
        command.current_dir(chat.folder.path().join("work")).arg("sessions").args(args);
        command.output().expect("the program runs")
    };
    let listed = json(&sessions(&["list", "--json"]));
    let conversation = &listed[0];
    assert_eq!(conversation["title"], "My token is [redacted]", "{listed}");
    let id = conversation["id"].as_str().expect("an id");
    let shown = out(&sessions(&["show", id]));
    assert_eq!(shown, "user: My token is [redacted]\nmodel: Hello\n");
    let exported = out(&sessions(&["export", id]));
    assert!(exported.contains("[redacted]") && !exported.contains(token), "{exported}");
    assert!(state.join("history.db").exists() && !state.join(format!("chats/{id}.json")).exists());
}

// Text of a pipe and of an argument need not be the user's own words.
#[test]
fn a_file_that_is_not_named_at_a_terminal_stays_out() {
    let chat = ChatFolder::new();
    let input = chat.folder.path().join("input");
    std::fs::write(&input, "See @notes.txt and @../input, please.\n").expect("a file");
    for args in [&[][..], &["--print", "-"], &["--print", "See @notes.txt."]] {
        let output = chat.chat_with_input(&[], args, &input);
        assert!(out(&output).contains("Hello"), "{args:?}: {}", err(&output));
        let sent = chat.model.0.requests().pop().expect("a request").message.to_string();
        assert!(sent.contains("@notes.txt"), "{args:?}: {sent}");
        assert!(!sent.contains("helo world") && !sent.contains("<file"), "{args:?}: {sent}");
    }
}

// F155: the user sees that the model entered plan mode, and ends it.
#[test]
fn the_user_ends_plan_mode_of_the_model() {
    let chat = ChatFolder::new();
    let input = chat.folder.path().join("input");
    let lines = "Please plan\n/mode\n/mode explore\n/mode auto\n/mode\nPlease plan\n/quit\n";
    std::fs::write(&input, lines).expect("a file");
    let output = chat.chat_with_input(&[], &[], &input);
    let text = out(&output);
    for line in [
        "plan, which the model entered; `/mode auto` ends it\n",
        "the mode is explore, and the model is in plan mode\n",
        "plan mode has ended; the mode is auto\nauto\n",
    ] {
        assert!(text.contains(line), "{line}: {text}{}", err(&output));
    }
    // The model can enter it again.
    assert_eq!(text.matches("I plan.").count(), 2, "{text}{}", err(&output));
}

// The servers of a chat have a runtime of their own, which ends with the chat.
#[test]
fn a_chat_with_a_server_ends_cleanly() {
    let chat = ChatFolder::new();
    let config = chat.folder.path().join("config.toml");
    let server = env!("CARGO_BIN_EXE_tool-std");
    let entry = format!(
        "[mcp.servers.other]\ncommand = {server:?}\nargs = [\"--root\", {:?}, \"serve\", \"mcp\"]\n",
        chat.notes().parent().expect("a folder")
    );
    std::fs::write(&config, entry).expect("a file");
    let config = config.to_str().expect("the path is text");
    let output = chat.chat(&["--config", config], &["--print", "Hi"]);
    assert_eq!((out(&output).as_str(), err(&output).as_str()), ("Hello\n", ""), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
    let request = chat.model.0.requests().remove(0);
    let tools = request.message["tools"].to_string();
    assert!(tools.contains("mcp__other__read_file"), "{tools}");
}

#[test]
fn what_a_chat_lacks_is_told_with_the_way_out() {
    let chat = ChatFolder::new();
    for (model, problem) in [
        (&["--model", "test-1"][..], "names no provider"),
        (&["--model", "openai/test-1", "--model-url", "http://example.com"], "use https"),
        (&[], "no model is chosen"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .args(["--config", "/dev/null", "--state-dir"])
            .arg(chat.folder.path().join("state"))
            .args(["chat", "--print", "Hi"])
            .args(model)
            .current_dir(chat.folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{model:?}");
        assert!(err(&output).contains(problem), "{model:?}: {}", err(&output));
    }
}

// F131, F165: a client of MCP gives a task to an agent of the program.
#[test]
fn agents_are_served_to_clients() {
    let chat = ChatFolder::new();
    let task = json!({ "agent": "build", "task": "Please fix the typo in notes.txt" });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": { "name": "delegate", "arguments": task } }),
    ];
    let input = chat.folder.path().join("input");
    let lines: Vec<String> = messages.iter().map(ToString::to_string).collect();
    std::fs::write(&input, lines.join("\n") + "\n").expect("a file in it");
    let serve = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .env("TOOL_SDK_CONFIG", "/dev/null")
            .env("TOOL_SDK_CHAT_MODEL_URL", chat.model.url())
            .env("OPENAI_API_KEY", "k-1")
            .args(["--allow", "edit(notes.txt)", "--state-dir"])
            .arg(chat.folder.path().join("state"))
            .args(["serve", "mcp", "--model", "openai-chat/test-1"])
            .args(args)
            .current_dir(chat.folder.path().join("work"))
            .stdin(Stdio::from(std::fs::File::open(&input).expect("it can be read")))
            .output()
            .expect("the program runs")
    };
    assert!(!out(&serve(&[])).contains("I am done."), "agents are served on request alone");
    let output = serve(&["--agents"]);
    assert!(out(&output).contains("I am done."), "{output:?}");
    assert_eq!(std::fs::read_to_string(chat.notes()).expect("it is there"), "hello world\n");
}
