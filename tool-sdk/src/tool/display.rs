//! How a call is shown to people, without knowing any tool's name.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Definition;

/// How a tool is shown to people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Display {
    /// A short name, such as `Read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The argument that says most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// The arguments worth showing, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<String>,
    /// The pattern of the one-line summary, such as `Reading {path}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Arguments whose values are never shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
}

/// How much of one argument's value is shown.
const MAX_VALUE: usize = 80;

impl Definition {
    /// A call in one line for people, such as `Read(src/a.rs)`.
    ///
    /// A tool without display metadata is shown by its name and compact arguments.
    #[must_use]
    pub fn headline(&self, arguments: &Value) -> String {
        let name = self.display.name.as_deref().unwrap_or(self.name.as_str());
        let shown: Vec<String> = match (&self.display.primary, self.display.show.as_slice()) {
            (None, []) => return format!("{name}({})", self.compact(arguments)),
            (Some(primary), []) => self.value(arguments, primary).into_iter().collect(),
            (_, show) => show.iter().filter_map(|key| self.value(arguments, key)).collect(),
        };
        format!("{name}({})", shown.join(", "))
    }

    fn compact(&self, arguments: &Value) -> String {
        match arguments.as_object() {
            Some(object) => object
                .keys()
                .filter_map(|key| Some(format!("{key}: {}", self.value(arguments, key)?)))
                .collect::<Vec<_>>()
                .join(", "),
            None => String::new(),
        }
    }

    fn value(&self, arguments: &Value, key: &str) -> Option<String> {
        let value = arguments.get(key)?;
        if self.display.sensitive.iter().any(|name| name == key) {
            return Some("***".to_owned());
        }
        let text = match value {
            Value::String(text) => text.lines().next().unwrap_or_default().to_owned(),
            other => other.to_string(),
        };
        Some(match text.char_indices().nth(MAX_VALUE) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text,
        })
    }
}

impl Definition {
    /// The arguments of a call for screens and logs: sensitive values masked, and text that
    /// is not JSON replaced by nothing.
    #[must_use]
    pub fn masked(&self, arguments: &str) -> Value {
        let mut value: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
        if let Value::Object(members) = &mut value {
            for name in &self.display.sensitive {
                if let Some(member) = members.get_mut(name) {
                    *member = Value::String("***".to_owned());
                }
            }
        }
        value
    }
}
