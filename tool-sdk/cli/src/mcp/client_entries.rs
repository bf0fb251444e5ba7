//! Translates the server entries of other MCP clients into entries of this program.
//!
//! | client | references |
//! |---|---|
//! | Claude Code | `${VAR}`, `${VAR:-default}` |
//! | VS Code | `${env:VAR}`, `${input:id}`, `${workspaceFolder}`, `${userHome}` |
//! | Cursor | `${env:VAR}`, `${workspaceFolder}`, `${userHome}` |
//! | Gemini CLI | `$VAR`, `${VAR}` |
//! | Codex, Claude Desktop, Zed | none |
//!
//! A file of an unknown client may use all of them, except `$VAR`.
//!
//! **Invariant:** what a client takes literally is literal here, too.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::references::{escape_references, is_variable_name, required_variables};
use super::server_entry::ServerEntry;
use crate::Io;
use crate::settings::Settings;
use crate::setup::ClientProgram;

/// A server to import.
pub(super) struct ImportedServer {
    pub(super) entry: ServerEntry,
    /// What the user has to know or to do.
    pub(super) notes: Vec<String>,
}

/// A server that is not imported.
pub(super) struct SkippedServer {
    pub(super) name: String,
    pub(super) why: String,
}

/// What the translation of one server needs to know.
pub(super) struct TranslationContext<'a, 'i> {
    client: Option<ClientProgram>,
    name: &'a str,
    file: &'a Path,
    settings: &'a Settings,
    io: &'a Io<'i>,
    notes: Vec<String>,
    /// The variables that a note says to set.
    told_variables: Vec<String>,
}

/// Translates the entry of a server; fails with the reason if it cannot be used here.
pub(super) fn translate_server(
    server: &Value,
    context: TranslationContext<'_, '_>,
) -> Result<ImportedServer, String> {
    match server.as_object() {
        Some(server) => context.translate(server),
        None => Err("its entry is not an object".to_owned()),
    }
}

impl<'a, 'i> TranslationContext<'a, 'i> {
    pub(super) fn new(
        client: Option<ClientProgram>,
        name: &'a str,
        file: &'a Path,
        settings: &'a Settings,
        io: &'a Io<'i>,
    ) -> Self {
        Self { client, name, file, settings, io, notes: Vec::new(), told_variables: Vec::new() }
    }

    fn translate(mut self, server: &Map<String, Value>) -> Result<ImportedServer, String> {
        let text = |key: &str| server.get(key).and_then(Value::as_str);
        let mut entry = ServerEntry::default();
        let url = text("httpUrl").or_else(|| text("url")).or_else(|| text("serverUrl"));
        if let Some(url) = url {
            let is_old = match text("type") {
                Some(kind) => kind.eq_ignore_ascii_case("sse"),
                // Gemini CLI has `httpUrl` for the newer transport.
                None => self.client == Some(ClientProgram::Gemini) && text("httpUrl").is_none(),
            };
            if is_old {
                return Err("it uses HTTP+SSE of 2024-11-05, which is not supported".to_owned());
            }
            let url = self.convert_text(url);
            entry.url = Some(self.hide_query_secrets(&url));
            self.translate_headers(server, &mut entry);
        } else {
            self.translate_command(server, &mut entry)?;
        }
        let seconds = |key: &str| server.get(key).and_then(Value::as_f64);
        entry.startup_timeout = seconds("startup_timeout_sec");
        entry.call_timeout = seconds("tool_timeout_sec");
        let is_off = server.get("disabled") == Some(&Value::Bool(true))
            || server.get("enabled") == Some(&Value::Bool(false));
        entry.enabled = is_off.then_some(false);
        let names = |keys: [&str; 2]| keys.into_iter().find_map(|key| text_list(server.get(key)?));
        entry.enabled_tools = names(["enabled_tools", "includeTools"]);
        entry.disabled_tools = names(["disabled_tools", "excludeTools"]).unwrap_or_default();
        if text("envFile").is_some() {
            self.notes.push("`envFile` is not read: set its variables yourself".to_owned());
        }
        let entry = entry.validate_as(plain_name(self.name))?;
        let var = |name: &str| self.io.env_var(name).is_none();
        let mut missing: Vec<String> = entry.needed_variables();
        missing.retain(|name| var(name) && !self.told_variables.contains(name));
        if !missing.is_empty() {
            self.notes.push(format!("set in the environment: {}", missing.join(", ")));
        }
        Ok(ImportedServer { entry, notes: self.notes })
    }

    fn translate_command(
        &mut self,
        server: &Map<String, Value>,
        entry: &mut ServerEntry,
    ) -> Result<(), String> {
        // Older files of Zed have an object.
        let nested = server.get("command").and_then(Value::as_object);
        let within = nested.unwrap_or(server);
        let command = match nested {
            Some(nested) => nested.get("path"),
            None => server.get("command"),
        };
        let Some(command) = command.and_then(Value::as_str).filter(|it| !it.is_empty()) else {
            return Err("it has neither a command nor a URL".to_owned());
        };
        if self.io.program_path.as_deref() == Some(Path::new(command)) {
            return Err("it is this program".to_owned());
        }
        entry.command = Some(self.convert_text(command));
        let args = within.get("args").and_then(text_list).unwrap_or_default();
        let args: Vec<String> = args.iter().map(|arg| self.convert_text(arg)).collect();
        entry.args = self.hide_argument_secrets(args);
        entry.cwd =
            server.get("cwd").and_then(Value::as_str).map(|cwd| self.convert_text(cwd).into());
        entry.env_from = server.get("env_vars").and_then(text_list).unwrap_or_default();
        for (name, value) in text_map(within.get("env")) {
            let value = self.convert_text(&value);
            if value == format!("${{{name}}}") {
                entry.env_from.push(name);
            } else if is_literal_secret(&name, &value) && is_variable_name(&name) {
                self.note_secret(&name, &name);
                entry.env_from.push(name);
            } else {
                entry.env.insert(name, value);
            }
        }
        Ok(())
    }

    fn translate_headers(&mut self, server: &Map<String, Value>, entry: &mut ServerEntry) {
        let bearer = server.get("bearer_token_env_var").and_then(Value::as_str);
        entry.bearer_env = bearer.map(str::to_owned);
        for (name, variable) in text_map(server.get("env_http_headers")) {
            entry.headers.insert(name, format!("${{{variable}}}"));
        }
        let headers = text_map(server.get("headers").or_else(|| server.get("http_headers")));
        for (name, value) in headers {
            let value = self.convert_text(&value);
            let token = value.strip_prefix("Bearer ").filter(|_| {
                name.eq_ignore_ascii_case("authorization") && entry.bearer_env.is_none()
            });
            if let Some(token) = token {
                let variable = token.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
                entry.bearer_env = Some(match variable.filter(|name| is_variable_name(name)) {
                    Some(variable) => variable.to_owned(),
                    None => self.secret_variable("token", "the bearer token"),
                });
            } else if is_literal_secret(&name, &value) {
                let variable = self.secret_variable(&name, &format!("the header `{name}`"));
                entry.headers.insert(name, format!("${{{variable}}}"));
            } else {
                entry.headers.insert(name, value);
            }
        }
    }

    /// Returns the variable for a secret of this server, and tells the user to set it.
    fn secret_variable(&mut self, what: &str, shown: &str) -> String {
        let variable = variable_name(&format!("{}_{what}", self.name));
        self.note_secret(&variable, shown);
        variable
    }

    fn note_secret(&mut self, variable: &str, what: &str) {
        let file = self.file.display();
        self.told_variables.push(variable.to_owned());
        self.notes.push(format!("set {variable} to the secret ({what}) that stays in {file}"));
    }

    /// Replaces the values of `--api-key VALUE` and `--api-key=VALUE` by references.
    fn hide_argument_secrets(&mut self, args: Vec<String>) -> Vec<String> {
        let mut hidden = Vec::with_capacity(args.len());
        let mut secret_flag: Option<String> = None;
        for arg in args {
            if let Some(flag) = secret_flag.take()
                && !arg.starts_with('-')
                && is_literal_secret(&flag, &arg)
            {
                let variable = self.secret_variable(flag.trim_start_matches('-'), &flag);
                hidden.push(format!("${{{variable}}}"));
                continue;
            }
            match arg.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
                Some((flag, value)) if is_literal_secret(flag, value) => {
                    let variable = self.secret_variable(flag.trim_start_matches('-'), flag);
                    hidden.push(format!("{flag}=${{{variable}}}"));
                }
                _ => {
                    secret_flag = arg.starts_with("--").then(|| arg.clone());
                    hidden.push(arg);
                }
            }
        }
        hidden
    }

    /// Replaces the values of secrets in the query of a URL by references.
    fn hide_query_secrets(&mut self, url: &str) -> String {
        let Some((start, query)) = url.split_once('?') else { return url.to_owned() };
        let members: Vec<String> = query
            .split('&')
            .map(|member| match member.split_once('=') {
                Some((key, value)) if is_literal_secret(key, value) => {
                    let variable = self.secret_variable(key, &format!("`{key}` of the URL"));
                    format!("{key}=${{{variable}}}")
                }
                _ => member.to_owned(),
            })
            .collect();
        format!("{start}?{}", members.join("&"))
    }

    /// Converts the references of the client in a text into those of this program.
    fn convert_text(&mut self, text: &str) -> String {
        let text = match self.client {
            Some(ClientProgram::Gemini) => brace_variables(text),
            Some(ClientProgram::Codex | ClientProgram::ClaudeDesktop | ClientProgram::Zed) => {
                return escape_references(text);
            }
            _ => text.to_owned(),
        };
        let (mut converted, mut rest) = (String::with_capacity(text.len()), &*text);
        while let Some(at) = rest.find("${") {
            converted.push_str(&rest[..at]);
            let Some(end) = rest[at..].find('}') else { break };
            converted += &self.convert_reference(&rest[at + 2..at + end]);
            rest = &rest[at + end + 1..];
        }
        converted + &escape_references(rest)
    }

    /// Converts the text between `${` and `}`.
    fn convert_reference(&mut self, inner: &str) -> String {
        let has_env =
            matches!(self.client, None | Some(ClientProgram::VsCode | ClientProgram::Cursor));
        let has_plain =
            matches!(self.client, None | Some(ClientProgram::ClaudeCode | ClientProgram::Gemini));
        let name = inner.split(":-").next().unwrap_or_default();
        if has_plain && is_variable_name(name) {
            return format!("${{{inner}}}");
        }
        let root = || self.settings.roots.first().map(|root| root.display().to_string());
        let replaced = match inner.split_once(':') {
            Some(("env", name)) if has_env && is_variable_name(name) => {
                return format!("${{{name}}}");
            }
            Some(("input", id)) if has_env => {
                let variable = variable_name(id);
                self.told_variables.push(variable.clone());
                self.notes.push(format!("set {variable}, which the client asks for (`{id}`)"));
                return format!("${{{variable}}}");
            }
            None if has_env => match inner {
                "workspaceFolder" | "workspaceRoot" => root(),
                "workspaceFolderBasename" => {
                    let root = self.settings.roots.first();
                    root.and_then(|root| Some(root.file_name()?.to_string_lossy().into_owned()))
                }
                "userHome" => self.io.env_var("HOME").and_then(|home| home.into_string().ok()),
                "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
                _ => None,
            },
            _ => None,
        };
        if let Some(text) = replaced {
            return escape_references(&text);
        }
        self.notes.push(format!("`${{{inner}}}` is not understood and stays as it is"));
        format!("$${{{inner}}}")
    }
}

/// Writes `$NAME` as `${NAME}`.
fn brace_variables(text: &str) -> String {
    let mut braced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        braced.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = &behind[..end.unwrap_or(behind.len())];
        if is_variable_name(name) {
            braced += &format!("${{{name}}}");
            rest = &behind[name.len()..];
        } else {
            braced.push('$');
            rest = behind;
        }
    }
    braced + rest
}

/// Whether the value of this name is most likely a secret that stands in the file.
fn is_literal_secret(name: &str, value: &str) -> bool {
    const WORDS: [&str; 8] =
        ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTHORIZATION", "COOKIE"];
    let name = name.to_ascii_uppercase();
    let has_reference = required_variables(value).next().is_some() || value.contains("${");
    !value.is_empty() && !has_reference && WORDS.iter().any(|word| name.contains(word))
}

/// Returns a name for an environment variable.
fn variable_name(text: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = text.chars().map(upper).collect();
    if is_variable_name(&name) { name } else { format!("_{name}") }
}

/// Returns the name of a server as the configuration accepts it.
fn plain_name(name: &str) -> String {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c) => c,
        _ => '-',
    };
    name.chars().map(plain).collect::<String>().trim_matches('-').to_owned()
}

fn text_list(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?.iter().map(|item| match item {
        Value::String(text) => text.clone(),
        item => item.to_string(),
    });
    Some(items.collect())
}

/// Returns the members of an object as texts; `null` members are left out.
fn text_map(value: Option<&Value>) -> BTreeMap<String, String> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    let text = |(name, value): (&String, &Value)| match value {
        Value::Null => None,
        Value::String(text) => Some((name.clone(), text.clone())),
        value => Some((name.clone(), value.to_string())),
    };
    members.filter_map(text).collect()
}
