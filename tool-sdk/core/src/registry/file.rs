//! Loads tools from a definition file, with handlers that are bound by name.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::Value;

use crate::context::Context;
use crate::risk::{Risk, RiskClass};
use crate::schema::{Schema, find_contradictions, find_misspelt};
use crate::tool::args::{check_unambiguous, find_self_violations, unsupported};
use crate::tool::{Definition, DynamicTool, IntoOutput, IntoTools, Tool};

/// The definitions of a `tools.json`, before their handlers are bound.
///
/// The file is what the `tools-json` format writes: `{"version": 1, "tools": [..]}`, or the
/// list alone. An entry may also have the older function form: `{"type": "function", "function":
/// {"name", "description", "parameters"}, "agent_scope": [..], "category": ".."}`, where
/// `agent_scope` names the scopes.
///
/// # Examples
///
/// ```
/// use serde_json::Value;
/// use tool_sdk::{Context, Registry, ToolsFile};
///
/// let text = r#"{"version": 1, "tools": [{
///     "name": "greet",
///     "description": "Greets a person.",
///     "parameters": {
///         "type": "object",
///         "properties": {"who": {"type": "string"}},
///         "required": ["who"]
///     }
/// }]}"#;
/// let tools = ToolsFile::parse("tools.json", text)?
///     .bind("greet", |args: Value, _cx: Context| async move { format!("hello {}", args["who"]) })
///     .finish()?;
/// let registry = Registry::builder().add(tools).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ToolsFile {
    file: String,
    /// By name, with the JSON pointer in the file.
    definitions: BTreeMap<String, (Definition, String)>,
    tools: Vec<DynamicTool>,
    problems: Vec<FileProblem>,
}

impl ToolsFile {
    /// Parses definitions from `text`; `file` is the name for messages.
    ///
    /// # Errors
    ///
    /// Names file, tool and path of every invalid definition.
    pub fn parse(file: impl Into<String>, text: &str) -> Result<Self, ToolsFileError> {
        let mut this = Self {
            file: file.into(),
            definitions: BTreeMap::new(),
            tools: Vec::new(),
            problems: Vec::new(),
        };
        let read =
            serde_json::from_str(text).and_then(|it: Value| check_unambiguous(text).map(|()| it));
        match read {
            Ok(document) => this.read_document(&document),
            Err(error) => this.add_problem("", "", error.to_string()),
        }
        if this.problems.is_empty() { Ok(this) } else { Err(this.into_error()) }
    }

    fn read_document(&mut self, document: &Value) {
        let (entries, prefix) = match document {
            Value::Array(entries) => (entries, ""),
            _ => match document.get("tools").and_then(Value::as_array) {
                Some(entries) => (entries, "/tools"),
                None => {
                    return self.add_problem(
                        "",
                        "/tools",
                        "a list of tools is expected".to_owned(),
                    );
                }
            },
        };
        if let Some(version) = document.get("version")
            && version != 1
        {
            self.add_problem("", "/version", format!("unknown version {version}; expected 1"));
        }
        for (index, entry) in entries.iter().enumerate() {
            self.read_tool(entry, &format!("{prefix}/{index}"));
        }
    }

    fn read_tool(&mut self, entry: &Value, path: &str) {
        match entry.get("function") {
            None => self.read_definition(entry, path),
            Some(function) => {
                let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
                match legacy_definition(entry, function) {
                    Ok(entry) => self.read_definition(&entry, &format!("{path}/function")),
                    Err((member, what)) => {
                        self.add_problem(name, &format!("{path}{member}"), what);
                    }
                }
            }
        }
    }

    fn read_definition(&mut self, entry: &Value, path: &str) {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let definition = Definition::deserialize(entry);
        if let (None, Err(error)) = (entry.get("parameters"), &definition) {
            // An unknown property may be a misspelt `parameters`.
            return self.add_problem(&name, path, error.to_string());
        }
        let parameters = entry.get("parameters").cloned().unwrap_or(Value::Null);
        let parameters = match Schema::from_value(parameters) {
            Ok(parameters) => parameters,
            Err(error) => {
                return self.add_problem(&name, &format!("{path}/parameters"), error.to_string());
            }
        };
        if let Some(what) = unsupported(parameters.as_map()) {
            return self.add_problem(&name, &format!("{path}/parameters"), what);
        }
        let root = parameters.as_map();
        for odd in find_misspelt(root).into_iter().chain(find_contradictions(root)) {
            let place = format!("{path}/parameters{}", odd.path());
            self.add_problem(&name, &place, odd.problem().to_owned());
        }
        for what in find_self_violations(root) {
            self.add_problem(&name, &format!("{path}/parameters"), what);
        }
        match definition {
            Ok(definition) if definition.permission.as_deref() == Some("") => {
                self.add_problem(&name, &format!("{path}/permission"), "is empty".to_owned());
            }
            Ok(Definition {
                risk: Risk { class: RiskClass::Read, destructive: true, .. }, ..
            }) => {
                let what = "a read-only tool cannot be destructive".to_owned();
                self.add_problem(&name, &format!("{path}/risk"), what);
            }
            Ok(definition) if definition.description.trim().is_empty() => {
                self.add_problem(&name, &format!("{path}/description"), "is empty".to_owned());
            }
            Ok(definition) if has_duplicate_alias(&definition) => {
                let what =
                    "a name is used twice; names and aliases are case-insensitive".to_owned();
                self.add_problem(&name, &format!("{path}/aliases"), what);
            }
            Ok(mut definition) => {
                definition.parameters = parameters;
                let found = (definition, path.to_owned());
                if self.definitions.insert(name.clone(), found).is_some() {
                    self.add_problem(&name, path, "the name is used twice".to_owned());
                }
            }
            Err(error) => self.add_problem(&name, path, error.to_string()),
        }
    }

    /// Returns the definitions that have no handler yet, sorted by name.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.definitions.values().map(|(definition, _)| definition)
    }

    /// Binds a handler to the tool `name`.
    #[must_use]
    pub fn bind<H, F>(mut self, name: &str, handler: H) -> Self
    where
        H: Fn(Value, Context) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: IntoOutput + 'static,
    {
        match self.definitions.remove(name) {
            Some((definition, _)) => self.tools.push(DynamicTool::new(definition, handler)),
            None if self.tools.iter().any(|tool| tool.definition().name.as_str() == name) => {
                self.add_problem(name, "", "two handlers are bound".to_owned());
            }
            None => self.add_problem(
                name,
                "",
                "a handler is bound, but there is no definition".to_owned(),
            ),
        }
        self
    }

    /// Returns the tools, once each definition has a handler.
    ///
    /// # Errors
    ///
    /// Names every definition without a handler, and every handler without a definition.
    pub fn finish(mut self) -> Result<impl IntoTools + fmt::Debug, ToolsFileError> {
        for (name, (_, path)) in std::mem::take(&mut self.definitions) {
            self.add_problem(&name, &path, "has no handler".to_owned());
        }
        if self.problems.is_empty() { Ok(LoadedTools(self.tools)) } else { Err(self.into_error()) }
    }

    fn add_problem(&mut self, tool: &str, path: &str, what: String) {
        self.problems.push(FileProblem { tool: tool.to_owned(), path: path.to_owned(), what });
    }

    fn into_error(self) -> ToolsFileError {
        ToolsFileError { file: self.file, problems: self.problems }
    }
}

/// Converts an entry of the older function form; fails with the path and the mistake.
fn legacy_definition(entry: &Value, function: &Value) -> Result<Value, (String, String)> {
    const MEMBERS: [&str; 4] = ["agent_scope", "category", "function", "type"];
    // The scopes of the older form are texts or lists of texts.
    let wrong = |member: &str, what: &str| Err((member.to_owned(), what.to_owned()));
    let Value::Object(mut definition) = function.clone() else {
        return wrong("/function", "an object is expected");
    };
    let mut members = entry.as_object().into_iter().flat_map(|it| it.keys());
    if let Some(member) = members.find(|member| !MEMBERS.contains(&member.as_str())) {
        let what = format!("unknown member; expected one of {}", MEMBERS.join(", "));
        return Err((format!("/{member}"), what));
    }
    if entry.get("type").is_some_and(|kind| kind != "function") {
        return wrong("/type", "`function` is expected");
    }
    // Strictness is decided when the definitions are sent to a provider.
    definition.shift_remove("strict");
    match entry.get("agent_scope") {
        None | Some(Value::Null) => {}
        Some(Value::String(one)) => {
            definition.insert("scopes".to_owned(), Value::from(vec![one.clone()]));
        }
        Some(Value::Array(several)) if several.iter().all(Value::is_string) => {
            definition.insert("scopes".to_owned(), several.clone().into());
        }
        Some(_) => return wrong("/agent_scope", "a list of texts is expected"),
    }
    match entry.get("category") {
        None | Some(Value::Null) => {}
        Some(category @ Value::String(_)) => {
            definition.insert("category".to_owned(), category.clone());
        }
        Some(_) => return wrong("/category", "a text is expected"),
    }
    Ok(Value::Object(definition))
}

/// Whether two names of a tool are equal; aliases are case-insensitive.
fn has_duplicate_alias(definition: &Definition) -> bool {
    let mut names: Vec<String> = std::iter::once(&definition.name)
        .chain(&definition.aliases)
        .map(|name| name.as_str().to_ascii_lowercase())
        .collect();
    names.sort();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

#[derive(Debug)]
struct LoadedTools(Vec<DynamicTool>);

impl IntoTools for LoadedTools {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        self.0.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileProblem {
    tool: String,
    path: String,
    what: String,
}

/// All errors of a definition file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolsFileError {
    file: String,
    problems: Vec<FileProblem>,
}

impl fmt::Display for ToolsFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}", self.file)?;
            if !problem.path.is_empty() {
                write!(f, "#{}", problem.path)?;
            }
            if !problem.tool.is_empty() {
                write!(f, ": tool `{}`", problem.tool)?;
            }
            write!(f, ": {}", problem.what)?;
        }
        Ok(())
    }
}

impl std::error::Error for ToolsFileError {}
