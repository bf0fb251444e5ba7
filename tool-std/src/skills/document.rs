//! The file `SKILL.md`: its frontmatter, read leniently, and the text for a new one.
//!
//! What other programs accept is read with a warning; what this program writes follows the
//! specification of Agent Skills.

use serde_json::{Map, Value};
use tool_sdk::{Frontmatter, ToolError};

use crate::packages::entry_name::{is_hidden_char, is_specified_name};

/// The name of the file.
pub(super) const FILE_NAME: &str = "SKILL.md";

/// The longest name in characters.
const MAX_NAME_CHARS: usize = 64;

/// The longest description in characters, by the specification; longer ones are read and cut.
pub(super) const MAX_DESCRIPTION_CHARS: usize = 1024;

/// The most triggers of a skill that count.
const MAX_TRIGGERS: usize = 64;

/// A parsed `SKILL.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SkillDocument {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) license: Option<String>,
    pub(super) compatibility: Option<String>,
    /// What the author says that the skill needs. It is shown and grants nothing.
    pub(super) allowed_tools: Vec<String>,
    /// Words and phrases by which the skill is found.
    pub(super) triggers: Vec<String>,
    /// The Markdown text below the frontmatter.
    pub(super) body: String,
    /// What breaks the specification.
    pub(super) warnings: Vec<String>,
}

impl SkillDocument {
    /// Parses the text of the file. A document without a name has `default_name`, the name of its
    /// folder.
    pub(super) fn parse(text: &str, default_name: &str) -> Result<Self, String> {
        let parsed = Frontmatter::<Map<String, Value>>::parse(text)
            .map_err(|error| error.to_string())?
            .ok_or("there is no frontmatter; the file must begin with a line `---`")?;
        let fields = &parsed.fields;
        let mut warnings = Vec::new();
        if parsed.is_repaired {
            warnings.push("the frontmatter is no YAML and was repaired".to_owned());
        }
        let name = read_line(fields.get("name")).unwrap_or_else(|| default_name.to_owned());
        check_name(&name)?;
        if !is_specified_name(&name) {
            warnings.push(format!("`{name}` has other characters than a-z, 0-9 and single `-`"));
        } else if name != default_name {
            warnings.push(format!("the name `{name}` is not that of its folder"));
        }
        let description = read_description(fields.get("description"), &mut warnings)
            .ok_or("the field `description` is missing or empty")?;
        let mut triggers = read_list(fields.get("triggers"), ',');
        if let Some(Value::Object(metadata)) = fields.get("metadata") {
            triggers.extend(read_list(metadata.get("triggers"), ','));
        }
        triggers.truncate(MAX_TRIGGERS);
        Ok(Self {
            name,
            description,
            license: read_line(fields.get("license")),
            compatibility: read_line(fields.get("compatibility")),
            allowed_tools: read_list(fields.get("allowed-tools"), ' '),
            triggers,
            body: parsed.body,
            warnings,
        })
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(format!("the name is longer than {MAX_NAME_CHARS} characters"));
    }
    if name.chars().any(|c| is_hidden_char(c) || "/\\*?<>`\"".contains(c)) {
        return Err(format!("the name `{}` contains forbidden characters", name.escape_debug()));
    }
    Ok(())
}

/// Reads the description as one line that shows as it is, within the limit.
fn read_description(value: Option<&Value>, warnings: &mut Vec<String>) -> Option<String> {
    let mut text = read_line(value)?;
    if text.chars().any(is_hidden_char) {
        warnings.push("the description has characters that do not show".to_owned());
        text.retain(|c| !is_hidden_char(c));
        text = read_line(Some(&text.into()))?;
    }
    if text.chars().count() > MAX_DESCRIPTION_CHARS {
        warnings.push(format!("the description is longer than {MAX_DESCRIPTION_CHARS}"));
        text = text.chars().take(MAX_DESCRIPTION_CHARS).collect();
        text.truncate(text.trim_end().len());
    }
    Some(text)
}

/// Reads a value as one line, without runs of white space; `None` if it is empty or no scalar.
fn read_line(value: Option<&Value>) -> Option<String> {
    let text = match value? {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Number(number) => number.to_string(),
        Value::Bool(word) => word.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// Reads a list, or a text whose items `separator` separates.
fn read_list(value: Option<&Value>, separator: char) -> Vec<String> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(|it| read_line(Some(it))).collect(),
        Some(Value::String(text)) => {
            let items = text.split([separator, '\n']).map(str::trim);
            items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Formats a new document, whose values are quoted as JSON, which is YAML.
pub(super) fn format_document(
    name: &str,
    description: &str,
    triggers: &[String],
    body: &str,
) -> String {
    let quote = |text: &str| Value::from(text).to_string();
    let mut head = format!("---\nname: {name}\ndescription: {}\n", quote(description));
    if !triggers.is_empty() {
        head.push_str(&format!("metadata:\n  triggers: {}\n", quote(&triggers.join(", "))));
    }
    format!("{head}---\n\n{}\n", body.trim())
}

/// Replaces the description, the body, or both, in the text of a document. Everything else stays as
/// it is.
pub(super) fn edit_document(
    text: &str,
    description: Option<&str>,
    body: Option<&str>,
) -> Result<String, ToolError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let (head, old_body) = split_document(&text)
        .ok_or_else(|| ToolError::failed("the skill has no frontmatter to change"))?;
    let head = match description {
        Some(description) => replace_field(head, "description", description),
        None => head.to_owned(),
    };
    Ok(match body {
        Some(body) => format!("---\n{head}---\n\n{}\n", body.trim()),
        None => format!("---\n{head}---\n{old_body}"),
    })
}

/// Splits a document into the lines between its fences and the text below them.
fn split_document(text: &str) -> Option<(&str, &str)> {
    let rest = text.split_once('\n').filter(|(first, _)| first.trim_end() == "---")?.1;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// Replaces a top-level field with all of its lines by a quoted value, or adds it.
fn replace_field(head: &str, field: &str, value: &str) -> String {
    let mut edited = String::new();
    let mut is_inside = false;
    let mut is_written = false;
    for line in head.split_inclusive('\n') {
        let starts_field = !line.starts_with([' ', '\t', '#', '\n', '-', ']', '}']);
        if starts_field {
            is_inside = line.split(':').next().is_some_and(|key| key.trim() == field);
            if is_inside && !is_written {
                edited.push_str(&format!("{field}: {}\n", Value::from(value)));
                is_written = true;
            }
        }
        if !is_inside {
            edited.push_str(line);
        }
    }
    if !is_written {
        edited.push_str(&format!("{field}: {}\n", Value::from(value)));
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    // The cases of Codex, as data; see the SOURCE.txt beside them.
    #[test]
    fn documents_of_other_programs_are_read() {
        let cases = include_str!("../../tests/fixtures/codex-skill-frontmatter/cases.json");
        let cases: Value = serde_json::from_str(cases).unwrap();
        for case in cases["cases"].as_array().unwrap() {
            let text = |key: &str| case[key].as_str().unwrap();
            let parsed = SkillDocument::parse(text("text"), text("default_name"));
            let name = text("name");
            match case.get("expected") {
                None => assert!(parsed.is_err(), "{name}: {parsed:?}"),
                Some(expected) => {
                    let parsed = parsed.unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert_eq!(expected["name"], parsed.name, "{name}");
                    assert_eq!(expected["description"], parsed.description, "{name}");
                }
            }
        }
    }

    #[test]
    fn fields_have_several_forms() {
        let text = "\u{feff}---\r\nname: PDF Forms\r\ndescription: >\r\n  Fill in\r\n  forms.\r\n\
                    allowed-tools: Bash(git:*) Read\r\ntriggers: [form, 'fill in']\r\n\
                    metadata:\r\n  triggers: acroform, xfa\r\nlicense: MIT\r\n---\r\n# Do\r\n";
        let document = SkillDocument::parse(text, "pdf").unwrap();
        assert_eq!(document.description, "Fill in forms.");
        assert_eq!(document.allowed_tools, ["Bash(git:*)", "Read"]);
        assert_eq!(document.triggers, ["form", "fill in", "acroform", "xfa"]);
        assert_eq!((document.license.as_deref(), &*document.body), (Some("MIT"), "# Do\n"));
        assert!(document.warnings[0].contains("other characters"), "{:?}", document.warnings);
    }

    #[test]
    fn a_name_cannot_hide_or_break_out() {
        for name in ["a\u{202e}b", "a/b", "../a", "a\"b", "<a>", "a*"] {
            let text = format!("---\nname: {}\ndescription: d\n---\n", Value::from(name));
            assert!(SkillDocument::parse(&text, "x").is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_description_is_cut_and_shows_as_it_is() {
        let read = |description: &str| {
            let text = format!("---\ndescription: {}\n---\n", Value::from(description));
            SkillDocument::parse(&text, "a")
        };
        let words = format!("{} b c", "a".repeat(MAX_DESCRIPTION_CHARS - 2));
        let document = read(&words).unwrap();
        assert_eq!(document.description.len(), MAX_DESCRIPTION_CHARS);
        assert_eq!(
            read(&format!("a{words}")).unwrap().description.len(),
            MAX_DESCRIPTION_CHARS - 1
        );
        let document = read("a \u{200b} b\u{202e}").unwrap();
        assert_eq!((&*document.description, document.warnings.len()), ("a b", 1));
        assert!(read("\u{200b} \u{202e}").is_err());
    }

    #[test]
    fn a_new_document_is_read_back() {
        let triggers = ["a: b".to_owned(), "c".to_owned()];
        let text = format_document("a-b", "Use when: \"x\"\n# y", &triggers, "\n# Title\n\ntext\n");
        let document = SkillDocument::parse(&text, "a-b").unwrap();
        assert_eq!(document.description, "Use when: \"x\" # y");
        assert_eq!(document.triggers, triggers);
        assert_eq!((&*document.body, document.warnings.len()), ("# Title\n\ntext\n", 0));
    }

    #[test]
    fn an_edit_keeps_the_other_fields() {
        let text =
            "---\nname: a\n# note\ndescription: >-\n  old\n  text\nlicense: MIT\n---\n\nBody\n";
        let edited = edit_document(text, Some("new: text"), None).unwrap();
        assert_eq!(
            edited,
            "---\nname: a\n# note\ndescription: \"new: text\"\nlicense: MIT\n---\n\nBody\n"
        );
        let edited = edit_document(text, None, Some("Other")).unwrap();
        assert!(edited.ends_with("license: MIT\n---\n\nOther\n"), "{edited}");
        assert!(edit_document("no", None, Some("x")).is_err());
    }
}
