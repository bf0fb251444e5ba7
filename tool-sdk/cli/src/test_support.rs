//! Test support: sample tools, and a command line that runs in memory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tool_sdk_core::{
    Attachment, Context, Definition, DynamicTool, ErrorKind, Output, Registry, Risk, RiskClass,
    Schema, ToolError, ToolName,
};

use super::{App, Console, Io};

/// The exit code and the output of a command line.
pub(super) struct CliOutput {
    pub(super) code: u8,
    pub(super) out: String,
    pub(super) err: String,
}

pub(super) fn run(args: &[&str]) -> CliOutput {
    run_registry(test_registry(), args)
}

pub(super) fn run_registry(registry: Registry, args: &[&str]) -> CliOutput {
    TestCli::default().run_registry(registry, args)
}

/// A command line for tests: input, environment, terminal and current folder.
pub(super) struct TestCli {
    pub(super) stdin: Vec<u8>,
    pub(super) env: Vec<(&'static str, String)>,
    pub(super) stdout_is_terminal: bool,
    pub(super) stderr_is_terminal: bool,
    pub(super) columns: Option<u16>,
    pub(super) folder: tempfile::TempDir,
    pub(super) console: Option<Arc<ScriptedConsole>>,
    /// The file of the program.
    pub(super) program_path: Option<PathBuf>,
}

impl Default for TestCli {
    fn default() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            stdin: Vec::new(),
            env: Vec::new(),
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            columns: None,
            folder,
            console: None,
            program_path: None,
        }
    }
}

impl TestCli {
    /// Adds a console whose user types these lines, followed by the end of input.
    pub(super) fn type_lines(&mut self, lines: &[&str]) {
        self.console = Some(ScriptedConsole::with_lines(lines));
    }

    /// Returns the text of all prompts.
    pub(super) fn shown_text(&self) -> String {
        self.console.as_ref().map(|person| person.shown()).unwrap_or_default()
    }

    /// Writes a file into the current folder and returns its path.
    pub(super) fn write_text(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(super) fn run(&self, args: &[&str]) -> CliOutput {
        self.run_registry(test_registry(), args)
    }

    /// Runs a command with the state folder `state` in the current folder.
    pub(super) fn run_with_state(&self, args: &[&str]) -> CliOutput {
        let state = self.folder.path().join("state");
        self.run(&[args, &["--state-dir", state.to_str().unwrap()]].concat())
    }

    pub(super) fn run_registry(&self, registry: Registry, args: &[&str]) -> CliOutput {
        self.run_app(&App::new(registry), args)
    }

    pub(super) fn run_app(&self, app: &App, args: &[&str]) -> CliOutput {
        let (mut stdin, mut out, mut err) = (&*self.stdin, Vec::new(), Vec::new());
        let env = |name: &str| {
            let found = self.env.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.into())
        };
        let mut io = Io {
            stdout_is_terminal: self.stdout_is_terminal,
            stderr_is_terminal: self.stderr_is_terminal,
            columns: self.columns,
            console: self.console.clone().map(|person| person as _),
            env: &env,
            current_dir: self.folder.path().to_owned(),
            program_path: self.program_path.clone(),
            ..Io::new(&mut stdin, &mut out, &mut err)
        };
        let args = std::iter::once("/usr/bin/toy").chain(args.iter().copied()).map(OsString::from);
        let code = app.run(args, &mut io);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CliOutput { code, out: text(out), err: text(err) }
    }
}

/// A console with scripted input.
pub(super) struct ScriptedConsole {
    lines: Mutex<VecDeque<String>>,
    shown: Mutex<String>,
    columns: u16,
}

impl ScriptedConsole {
    /// Creates a console that answers with these lines, followed by the end of input.
    pub(super) fn with_lines(lines: &[&str]) -> Arc<Self> {
        Self::with_columns(lines, 200)
    }

    /// Creates a console on a terminal with this many columns.
    pub(super) fn with_columns(lines: &[&str], columns: u16) -> Arc<Self> {
        let lines = lines.iter().map(|line| format!("{line}\n")).collect();
        Arc::new(Self { lines: Mutex::new(lines), shown: Mutex::default(), columns })
    }

    /// Returns the text of all prompts.
    pub(super) fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }
}

impl Console for ScriptedConsole {
    fn prompt(&self, text: &str, _: &dyn Fn() -> bool) -> io::Result<Option<String>> {
        self.shown.lock().unwrap().push_str(text);
        Ok(self.lines.lock().unwrap().pop_front())
    }

    fn prompt_hidden(&self, text: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<String>> {
        self.prompt(text, wanted)
    }

    fn can_hide_input(&self) -> bool {
        true
    }

    fn columns(&self) -> u16 {
        self.columns
    }
}

/// Builds a definition with these optional parameters.
pub(super) fn make_definition(name: &'static str, properties: Value) -> Definition {
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let schema = Schema::from_value(schema).unwrap();
    Definition::new(ToolName::from_static(name), "Takes every kind of value.", schema)
}

/// A tool with a parameter of every kind.
pub(super) fn kinds_tool() -> Definition {
    make_definition(
        "kinds",
        json!({
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "loud": {"type": "boolean"},
            "dry_run": {"type": "boolean", "default": true},
            "mode": {"enum": ["fast", "slow"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "where": {"type": "object", "additionalProperties": true},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        }),
    )
    .risk(Risk::new(RiskClass::Write))
}

fn echo_tool() -> Definition {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to say.", "maxLength": 20},
            "times": {
                "type": "integer", "description": "How often.",
                "minimum": 1, "maximum": 3, "default": 1,
            },
        },
        "required": ["text"],
        "additionalProperties": false,
    });
    let mut echo = Definition::new(
        ToolName::from_static("echo"),
        "Says it again. And that is all.",
        Schema::from_value(schema).unwrap(),
    )
    .risk(Risk::new(RiskClass::Read));
    echo.aliases = vec![ToolName::from_static("say")];
    echo.category = Some("toys".into());
    echo.examples = vec![r#"{"text": "hello there", "times": 2}"#.into()];
    echo
}

fn fail_tool() -> Definition {
    let kinds: Vec<&str> = ErrorKind::ALL.map(ErrorKind::as_str).to_vec();
    let mut fail = make_definition("fail", json!({"kind": {"type": "string", "enum": kinds}}));
    fail.description = "Fails as it is told to.".into();
    fail
}

fn archive_tool() -> Definition {
    let mut archive = make_definition("archive", json!({}));
    archive.scopes = vec!["librarian".into()];
    archive
}

pub(super) fn tool_definitions() -> Vec<Definition> {
    vec![archive_tool(), echo_tool(), fail_tool(), kinds_tool()]
}

pub(super) fn test_registry() -> Registry {
    Registry::builder()
        .add(DynamicTool::new(archive_tool(), |_: Value, _: Context| async { "dust" }))
        .add(DynamicTool::new(echo_tool(), |args: Value, cx: Context| async move {
            cx.progress(1, Some(1), "saying it");
            let times = args["times"].as_u64().unwrap_or(1);
            vec![args["text"].as_str().unwrap_or_default(); times as usize].join("\n")
        }))
        .add(DynamicTool::new(fail_tool(), |args: Value, _: Context| async move {
            let kind: ErrorKind = serde_json::from_value(args["kind"].clone()).unwrap();
            Err::<Output, _>(ToolError::new(kind, "no luck").hint("try again"))
        }))
        .add(DynamicTool::new(kinds_tool(), |args: Value, _: Context| async move {
            let count = args.as_object().map_or(0, Map::len);
            Output::json(&args).map_err(ToolError::internal).map(|output| {
                output
                    .title("Kinds")
                    .metadata("n", count)
                    .attach(Attachment::bytes("image/png", vec![0; 3]).with_name("dot.png"))
                    .display(json!({"type": "kinds"}))
            })
        }))
        .build()
        .unwrap()
}
