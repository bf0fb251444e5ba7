//! The arguments of a call as other programs read them, and the changes that they make.
//!
//! A program knows an argument by any of its names, and a path without the folder that it
//! starts in. So every name is there, and what was decoded as a path is absolute.
//!
//! **Invariant:** what a program gives back as it read it changes nothing.

use serde_json::{Map, Value};

use super::{Tool, paths};
use crate::call::RawArgs;
use crate::context::Session;

/// How the arguments of one call are told to other programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExternalArgNames {
    /// The arguments that have several names: the one that was sent, then all of them.
    names: Vec<(String, Vec<String>)>,
    /// The paths among the arguments, as they were sent and as absolute ones.
    paths: Vec<(String, String)>,
}

impl ExternalArgNames {
    /// The wording of a call of `tool` with these arguments.
    pub(crate) fn for_call(tool: &dyn Tool, args: &RawArgs<'_>, session: &Session) -> Self {
        let sent: Map<String, Value> = serde_json::from_str(args.text()).unwrap_or_default();
        let names = sent.keys().filter_map(|sent| {
            let names: Vec<_> = tool.argument_names(sent).into_iter().map(str::to_owned).collect();
            (names.len() > 1).then(|| (sent.clone(), names))
        });
        // Nothing is run: the paths are what decoding comes by.
        let paths = paths::absolute_paths(|| drop(tool.prepare(args)), session);
        Self { names: names.collect(), paths }
    }

    /// `arguments` under all their names, with absolute paths.
    pub(crate) fn to_external(&self, arguments: &Value) -> Value {
        let mut shown = arguments.clone();
        self.make_absolute(&mut shown);
        if let Some(arguments) = shown.as_object_mut() {
            for (sent, names) in &self.names {
                let Some(value) = arguments.get(sent).cloned() else { continue };
                for name in names {
                    arguments.entry(name.as_str()).or_insert_with(|| value.clone());
                }
            }
        }
        shown
    }

    /// A text that is one of the paths counts as that path, wherever it stands: a guard
    /// rather sees one too many.
    fn make_absolute(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some((_, absolute)) = self.paths.iter().find(|(sent, _)| sent == text) {
                    text.clone_from(absolute);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.make_absolute(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.make_absolute(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// What of `changes` differs from what was shown, under the names that were sent; the name
    /// of an argument that is changed to two values at once is the error.
    pub(crate) fn changed_arguments(
        &self,
        changes: Map<String, Value>,
        shown: &Value,
    ) -> Result<Map<String, Value>, String> {
        let mut taken = Map::new();
        for (name, value) in changes {
            if shown.get(&name) == Some(&value) {
                continue;
            }
            let name = self.sent_name(name);
            if taken.get(&name).is_some_and(|other| *other != value) {
                return Err(name);
            }
            taken.insert(name, value);
        }
        Ok(taken)
    }

    /// The name by which an argument was sent that has the name `name`.
    fn sent_name(&self, name: String) -> String {
        match self.names.iter().find(|(_, names)| names.contains(&name)) {
            Some((sent, _)) => sent.clone(),
            None => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn external_arg_names() -> ExternalArgNames {
        let names = ["cmd", "command"].map(str::to_owned).to_vec();
        ExternalArgNames {
            names: vec![("cmd".to_owned(), names)],
            paths: vec![("a.pem".to_owned(), "/w/a.pem".to_owned())],
        }
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn every_name_and_every_path_is_shown() {
        let sent = json!({ "cmd": "ls", "files": [{ "path": "a.pem" }], "n": 1 });
        let shown = json!({
            "cmd": "ls", "command": "ls", "files": [{ "path": "/w/a.pem" }], "n": 1,
        });
        assert_eq!(external_arg_names().to_external(&sent), shown);
    }

    // Programs give back all that they read, with what they change in it.
    #[test]
    fn only_what_differs_from_what_was_shown_is_a_change() {
        let shown = external_arg_names().to_external(&json!({ "cmd": "ls", "path": "a.pem" }));
        for (changes, expected) in [
            (shown.clone(), Ok(json!({}))),
            (json!({ "command": "ls -l" }), Ok(json!({ "cmd": "ls -l" }))),
            (
                json!({ "cmd": "ls", "command": "ls -l", "path": "/w/a.pem" }),
                Ok(json!({ "cmd": "ls -l" })),
            ),
            (json!({ "cmd": "id", "command": "id" }), Ok(json!({ "cmd": "id" }))),
            (json!({ "cmd": "id", "command": "ls -l" }), Err("cmd")),
            (json!({ "path": "b" }), Ok(json!({ "path": "b" }))),
        ] {
            let taken = external_arg_names().changed_arguments(object(changes.clone()), &shown);
            let expected = expected.map(object).map_err(str::to_owned);
            assert_eq!(taken, expected, "{changes}");
        }
    }
}
