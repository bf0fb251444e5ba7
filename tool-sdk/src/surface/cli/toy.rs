//! Test support: sample tools, and a command line that runs in memory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::{App, Console, Io};
use crate::content::{Attachment, Output};
use crate::context::Context;
use crate::effect::{Risk, RiskClass};
use crate::error::{ErrorKind, ToolError};
use crate::name::ToolName;
use crate::registry::Registry;
use crate::schema::Schema;
use crate::tool::{Definition, DynamicTool};

/// The exit code and the output of a command line.
pub(super) struct Ran {
    pub(super) code: u8,
    pub(super) out: String,
    pub(super) err: String,
}

pub(super) fn run(args: &[&str]) -> Ran {
    run_with(registry(), args)
}

pub(super) fn run_with(registry: Registry, args: &[&str]) -> Ran {
    Setting::default().run_with(registry, args)
}

/// A command line for tests: input, environment, terminal and current folder.
pub(super) struct Setting {
    pub(super) stdin: Vec<u8>,
    pub(super) env: Vec<(&'static str, String)>,
    pub(super) terminal: bool,
    pub(super) live: bool,
    pub(super) columns: Option<u16>,
    pub(super) folder: tempfile::TempDir,
    pub(super) person: Option<Arc<Person>>,
}

impl Default for Setting {
    fn default() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            stdin: Vec::new(),
            env: Vec::new(),
            terminal: false,
            live: false,
            columns: None,
            folder,
            person: None,
        }
    }
}

impl Setting {
    /// Adds a console whose user types these lines, followed by the end of input.
    pub(super) fn types(&mut self, lines: &[&str]) {
        self.person = Some(Person::typing(lines));
    }

    /// Returns the text of all prompts.
    pub(super) fn shown(&self) -> String {
        self.person.as_ref().map(|person| person.shown()).unwrap_or_default()
    }

    /// Writes a file into the current folder and returns its path.
    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(super) fn run(&self, args: &[&str]) -> Ran {
        self.run_with(registry(), args)
    }

    pub(super) fn run_with(&self, registry: Registry, args: &[&str]) -> Ran {
        self.run_app(&App::new(registry), args)
    }

    pub(super) fn run_app(&self, app: &App, args: &[&str]) -> Ran {
        let (mut stdin, mut out, mut err) = (&*self.stdin, Vec::new(), Vec::new());
        let env = |name: &str| {
            let found = self.env.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.into())
        };
        let mut io = Io {
            terminal: self.terminal,
            live: self.live,
            columns: self.columns,
            console: self.person.clone().map(|person| person as _),
            env: &env,
            current_dir: self.folder.path().to_owned(),
            ..Io::new(&mut stdin, &mut out, &mut err)
        };
        let args = std::iter::once("/usr/bin/toy").chain(args.iter().copied()).map(OsString::from);
        let code = app.run(args, &mut io);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code, out: text(out), err: text(err) }
    }
}

/// A console with scripted input.
pub(super) struct Person {
    lines: Mutex<VecDeque<String>>,
    shown: Mutex<String>,
}

impl Person {
    /// Creates a console that answers with these lines, followed by the end of input.
    pub(super) fn typing(lines: &[&str]) -> Arc<Self> {
        let lines = lines.iter().map(|line| format!("{line}\n")).collect();
        Arc::new(Self { lines: Mutex::new(lines), shown: Mutex::default() })
    }

    /// Returns the text of all prompts.
    pub(super) fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }
}

impl Console for Person {
    fn prompt(&self, text: &str, _: &dyn Fn() -> bool) -> io::Result<Option<String>> {
        self.shown.lock().unwrap().push_str(text);
        Ok(self.lines.lock().unwrap().pop_front())
    }
}

/// Builds a definition with these optional parameters.
pub(super) fn definition(name: &'static str, properties: Value) -> Definition {
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let schema = Schema::from_value(schema).unwrap();
    Definition::new(ToolName::from_static(name), "Takes every kind of value.", schema)
}

/// A tool with a parameter of every kind.
pub(super) fn kinds() -> Definition {
    definition(
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

fn echo() -> Definition {
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

fn fail() -> Definition {
    let kinds: Vec<&str> = ErrorKind::ALL.map(ErrorKind::as_str).to_vec();
    let mut fail = definition("fail", json!({"kind": {"type": "string", "enum": kinds}}));
    fail.description = "Fails as it is told to.".into();
    fail
}

fn archive() -> Definition {
    let mut archive = definition("archive", json!({}));
    archive.scopes = vec!["librarian".into()];
    archive
}

pub(super) fn definitions() -> Vec<Definition> {
    vec![archive(), echo(), fail(), kinds()]
}

pub(super) fn registry() -> Registry {
    Registry::builder()
        .add(DynamicTool::new(archive(), |_: Value, _: Context| async { "dust" }))
        .add(DynamicTool::new(echo(), |args: Value, cx: Context| async move {
            cx.progress(1, Some(1), "saying it");
            let times = args["times"].as_u64().unwrap_or(1);
            vec![args["text"].as_str().unwrap_or_default(); times as usize].join("\n")
        }))
        .add(DynamicTool::new(fail(), |args: Value, _: Context| async move {
            let kind: ErrorKind = serde_json::from_value(args["kind"].clone()).unwrap();
            Err::<Output, _>(ToolError::new(kind, "no luck").hint("try again"))
        }))
        .add(DynamicTool::new(kinds(), |args: Value, _: Context| async move {
            let count = args.as_object().map_or(0, Map::len);
            Output::json(&args).map_err(ToolError::internal).map(|output| {
                output
                    .title("Kinds")
                    .metadata("n", count)
                    .attach(Attachment::bytes("image/png", vec![0; 3]).named("dot.png"))
                    .display(json!({"type": "kinds"}))
            })
        }))
        .build()
        .unwrap()
}
