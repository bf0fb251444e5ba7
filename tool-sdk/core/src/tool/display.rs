//! How calls are shown to people, without code for particular tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The display metadata of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolDisplay {
    /// A short name, such as `Read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The category, such as `filesystem` or `planning`. In events and approval requests, that of
    /// the tool's definition, unless the host sets another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The most important argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// The arguments to show, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<String>,
    /// The pattern of the one-line summary, such as `Reading {path}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The page that shows the result of a call, such as `ui://shelf/board`, for clients that
    /// support pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<String>,
    /// Arguments whose values are never shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// Icons of the tool, for clients that show them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
}

/// An icon of a tool or a server.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ToolDisplay, Icon};
///
/// let mut display = ToolDisplay::default();
/// display.icons.push(Icon::new("https://example.com/look.svg").mime("image/svg+xml").size("any"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// The address, as `https:` or `data:`.
    pub src: String,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The available sizes, such as `48x48`, or `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
}

impl Icon {
    /// Creates an icon without a media type and sizes.
    #[must_use]
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime(mut self, mime: impl Into<String>) -> Self {
        self.mime_type = Some(mime.into());
        self
    }

    /// Adds a size.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }
}

/// The maximum number of characters of one argument's value.
const MAX_VALUE_CHARS: usize = 80;

impl ToolDisplay {
    /// Returns a call as one line for people, such as `Read(src/a.rs)`.
    ///
    /// Without display metadata, shows the tool's name and compact arguments.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use tool_sdk::ToolDisplay;
    ///
    /// let mut display = ToolDisplay::default();
    /// assert_eq!(display.headline("look", &json!({"at": "a.rs", "n": 2})), "look(at: a.rs, n: 2)");
    ///
    /// display.name = Some("Look".to_owned());
    /// display.primary = Some("at".to_owned());
    /// assert_eq!(display.headline("look", &json!({"at": "a.rs", "n": 2})), "Look(a.rs)");
    /// ```
    #[must_use]
    pub fn headline(&self, tool: &str, arguments: &Value) -> String {
        let name = self.name.as_deref().unwrap_or(tool);
        let shown: Vec<String> = match (&self.primary, self.show.as_slice()) {
            (None, []) => self.compact_arguments(arguments),
            (Some(primary), []) => self.argument_value(arguments, primary).into_iter().collect(),
            (_, show) => {
                show.iter().filter_map(|key| self.argument_value(arguments, key)).collect()
            }
        };
        format!("{name}({})", shown.join(", "))
    }

    fn compact_arguments(&self, arguments: &Value) -> Vec<String> {
        let keys = arguments.as_object().into_iter().flat_map(Map::keys);
        keys.filter_map(|key| Some(format!("{key}: {}", self.argument_value(arguments, key)?)))
            .collect()
    }

    /// Returns the first line of one argument's value.
    fn argument_value(&self, arguments: &Value, key: &str) -> Option<String> {
        let value = arguments.get(key)?;
        if self.sensitive.iter().any(|name| name == key) {
            return Some(MASK.to_owned());
        }
        let text = match value {
            Value::String(text) => text.lines().next().unwrap_or_default().to_owned(),
            other => other.to_string(),
        };
        Some(match text.char_indices().nth(MAX_VALUE_CHARS) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text,
        })
    }

    /// Returns these metadata with the fields of `other` that are set in place of its own.
    /// Sensitive arguments of both are never shown.
    pub(crate) fn with_override(&self, other: &Self) -> Self {
        let list = |own: &[String], other: &[String]| match other {
            [] => own.to_vec(),
            other => other.to_vec(),
        };
        let mut sensitive = self.sensitive.clone();
        sensitive.extend(other.sensitive.iter().cloned());
        Self {
            name: other.name.clone().or_else(|| self.name.clone()),
            category: other.category.clone().or_else(|| self.category.clone()),
            primary: other.primary.clone().or_else(|| self.primary.clone()),
            show: list(&self.show, &other.show),
            summary: other.summary.clone().or_else(|| self.summary.clone()),
            ui: other.ui.clone().or_else(|| self.ui.clone()),
            sensitive,
            icons: match other.icons.as_slice() {
                [] => self.icons.clone(),
                icons => icons.to_vec(),
            },
        }
    }

    /// Returns the summary of a call by the pattern in `summary`. An argument that is absent leaves
    /// nothing.
    #[doc(hidden)]
    pub fn summarize(&self, arguments: &Value) -> Option<String> {
        let mut rest = self.summary.as_deref()?;
        let mut text = String::new();
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            rest = after;
            if let Some(after) = rest.strip_prefix(brace) {
                text.push_str(brace);
                rest = after;
            } else if let Some((name, after)) = rest.split_once('}') {
                let name = name.split(':').next().unwrap_or_default();
                text.extend(self.argument_value(arguments, name));
                rest = after;
            }
        }
        text.push_str(rest);
        Some(text)
    }

    /// Masks the sensitive values among `arguments` in a text of the tool.
    pub(crate) fn mask_text(&self, mut text: String, arguments: &str) -> String {
        if self.sensitive.is_empty() {
            return text;
        }
        let arguments: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
        let mut values = Vec::new();
        self.sensitive
            .iter()
            .for_each(|name| collect_texts(&arguments[name.as_str()], &mut values));
        // A value that contains another one is masked as a whole.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in values.iter().filter(|value| !value.is_empty()) {
            text = text.replace(value.as_str(), MASK);
        }
        text
    }

    /// Returns the arguments of a call for screens and logs: sensitive values are masked, and
    /// text that is not JSON becomes `null`.
    #[must_use]
    pub fn mask_arguments(&self, arguments: &str) -> Value {
        let mut value: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
        if let Value::Object(members) = &mut value {
            for name in &self.sensitive {
                if let Some(member) = members.get_mut(name) {
                    *member = Value::String(MASK.to_owned());
                }
            }
        }
        value
    }
}

/// Appends the scalar values in `value` as texts.
fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::String(text) => texts.push(text.clone()),
        Value::Bool(_) | Value::Number(_) => texts.push(value.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|item| collect_texts(item, texts)),
    }
}

/// The replacement for a sensitive value.
const MASK: &str = "***";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn display(name: &str, primary: &str, show: &[&str], sensitive: &[&str]) -> ToolDisplay {
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        ToolDisplay {
            name: Some(name.to_owned()),
            primary: Some(primary.to_owned()),
            show: own(show),
            sensitive: own(sensitive),
            ..ToolDisplay::default()
        }
    }

    #[track_caller]
    fn check(display: &ToolDisplay, arguments: &Value, expected: &str) {
        assert_eq!(display.headline("tool", arguments), expected);
    }

    // F167: a renderer needs no knowledge of the tool.
    #[test]
    fn the_metadata_alone_makes_a_headline() {
        let arguments = json!({"path": "src/a.rs", "limit": 5});
        check(&display("Read", "path", &[], &[]), &arguments, "Read(src/a.rs)");
        check(
            &display("Read", "path", &["path", "limit", "more"], &[]),
            &arguments,
            "Read(src/a.rs, 5)",
        );
    }

    // F169: the first line of a command; secrets are masked.
    #[test]
    fn long_and_secret_values_are_not_shown() {
        let arguments = json!({"cmd": "make\nmake install", "token": "s3cret"});
        check(&display("Run", "cmd", &["cmd", "token"], &["token"]), &arguments, "Run(make, ***)");
        let long = json!({"cmd": "ä".repeat(100)});
        check(&display("Run", "cmd", &[], &[]), &long, &format!("Run({}…)", "ä".repeat(80)));
        let masked = display("Run", "cmd", &[], &["token"]).mask_arguments(&arguments.to_string());
        assert_eq!(masked["token"], "***");
    }

    // F173: without metadata, the name and compact arguments.
    #[test]
    fn without_metadata_everything_is_compact() {
        check(&ToolDisplay::default(), &json!({"a": [1, 2], "b": "x"}), "tool(a: [1,2], b: x)");
        check(&ToolDisplay::default(), &Value::Null, "tool()");
    }
}
