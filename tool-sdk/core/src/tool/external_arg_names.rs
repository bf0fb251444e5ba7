//! Converts arguments for external programs, and applies the changes that they make.
//!
//! A program may know an argument by any of its names, and does not know the working folder. So
//! it gets the argument under every name, and decoded paths as absolute paths.
//!
//! **Invariant:** a value that a program returns unchanged changes nothing.

use serde_json::{Map, Value};

use super::{Tool, path_collector};
use crate::call::RawArgs;
use crate::context::Session;

/// The names and paths of one call's arguments for external programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalArgNames {
    /// The arguments with several names: the name that was sent, then all names.
    names: Vec<(String, Vec<String>)>,
    /// The paths among the arguments, as sent and as absolute paths.
    paths: Vec<(String, String)>,
}

impl ExternalArgNames {
    /// Collects the names and paths of a call of `tool` with these arguments.
    pub(crate) fn for_call(tool: &dyn Tool, args: &RawArgs<'_>, session: &Session) -> Self {
        let sent: Map<String, Value> = serde_json::from_str(args.text()).unwrap_or_default();
        let names = sent.keys().filter_map(|sent| {
            let names: Vec<_> = tool.argument_names(sent).into_iter().map(str::to_owned).collect();
            (names.len() > 1).then(|| (sent.clone(), names))
        });
        // The call is not run: decoding alone collects the paths.
        let paths = path_collector::absolute_paths(|| drop(tool.prepare(args)), session);
        Self { names: names.collect(), paths }
    }

    /// Returns `arguments` under all their names, with absolute paths.
    #[doc(hidden)]
    pub fn to_external(&self, arguments: &Value) -> Value {
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

    /// Replaces every text that equals one of the paths, at any depth of `value`: a guard had
    /// better see one path too many.
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

    /// Returns the arguments of `changes` that differ from the ones shown, under the names that
    /// were sent. Fails with the name of an argument that is changed to two values at once.
    #[doc(hidden)]
    pub fn changed_arguments(
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

    /// Returns the name under which the argument `name` was sent.
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

    // Programs return all arguments, including the ones that they did not change.
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
