//! What a provider would refuse, or could not be told: which tool, where, what to change.
//!
//! The rules look at what is really sent, so a rule and a rewrite cannot disagree.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::rewrite::Loss;
use super::{Dialect, anthropic, gemini, openai, portable};
use crate::schema::{FORMATS, faults, walk};
use crate::tool::Definition;

/// The most tools that OpenAI takes in one request.
const MAX_TOOLS: usize = 128;

/// The longest description that OpenAI takes, in characters.
const MAX_DESCRIPTION: usize = 1024;

/// Something about a tool that a dialect cannot say, or that a provider would refuse.
///
/// # Examples
///
/// ```
/// use tool_sdk::provider::{self, Dialect};
/// use tool_sdk::{Definition, Schema, ToolName};
///
/// let schema = Schema::from_json(
///     r#"{"type": "object", "properties": { "first name": { "type": "string" } }}"#,
/// )?;
/// let greet = Definition::new(ToolName::new("greet")?, "Greets somebody.", schema);
///
/// let findings = provider::lint(&greet, Dialect::Anthropic);
/// assert_eq!(
///     findings[0].to_string(),
///     "tool `greet`: /properties/first name: the name `first name` is refused; \
///      use 1 to 64 of A-Z a-z 0-9 _ . -"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The tool's name.
    pub tool: String,
    /// Where in the schema, as a JSON pointer; empty for the tool as a whole.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool `{}`: ", self.tool)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}; {}", self.problem, self.fix)
    }
}

/// What `dialect` cannot say of a tool, and what its provider would refuse.
#[must_use]
pub fn lint(definition: &Definition, dialect: Dialect) -> Vec<Finding> {
    let mut report = Report { findings: Vec::new() };
    if definition.description.trim().is_empty() {
        report.add("", "there is no description", "say what the tool does and when to use it");
    }
    let parameters = definition.parameters.as_map();
    let mut broken = faults(parameters);
    broken.extend(definition.output.iter().flat_map(|output| faults(output.as_map())));
    for fault in &broken {
        report.add(fault.path(), fault.problem(), "correct the schema");
    }
    if parameters.get("type").is_none_or(|ty| ty != "object") {
        report.add("", "the parameters are not an object", "take a struct, or name each parameter");
    }
    // What is sent can only be judged when the schema itself is sound.
    if report.findings.is_empty() {
        dialect_rules(definition, dialect, &mut report);
    }
    let tool = definition.name.as_str();
    report.findings.into_iter().map(|loss| finding(tool, loss)).collect()
}

/// The findings of all tools, and those of the set as a whole.
#[must_use]
pub fn lint_all<'a>(
    definitions: impl IntoIterator<Item = &'a Definition>,
    dialect: Dialect,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    let limited = matches!(
        dialect,
        Dialect::OpenAi | Dialect::OpenAiStrict | Dialect::OpenRouter | Dialect::Portable
    );
    for (at, definition) in definitions.into_iter().enumerate() {
        let name = definition.name.as_str();
        if at == MAX_TOOLS && limited {
            findings.push(finding(
                name,
                Loss::new(
                    "",
                    format_args!("it comes after {MAX_TOOLS} others, which is the most"),
                    "offer fewer tools, by scope or category",
                ),
            ));
        }
        if !names.insert(name) {
            findings.push(finding(
                name,
                Loss::new("", "another tool has the same name", "rename one of them"),
            ));
        }
        findings.extend(lint(definition, dialect));
    }
    findings
}

fn finding(tool: &str, loss: Loss) -> Finding {
    Finding { tool: tool.to_owned(), path: loss.path, problem: loss.problem, fix: loss.fix }
}

struct Report {
    findings: Vec<Loss>,
}

impl Report {
    fn add(&mut self, path: &str, problem: impl fmt::Display, fix: impl fmt::Display) {
        let loss = Loss::new(path, problem, fix);
        if !self.findings.contains(&loss) {
            self.findings.push(loss);
        }
    }

    fn sent(&mut self, (schema, losses): (Map<String, Value>, Vec<Loss>)) -> Map<String, Value> {
        for loss in losses {
            if !self.findings.contains(&loss) {
                self.findings.push(loss);
            }
        }
        schema
    }
}

fn dialect_rules(definition: &Definition, dialect: Dialect, report: &mut Report) {
    match dialect {
        Dialect::Mcp => {
            for schema in [Some(&definition.parameters), definition.output.as_ref()] {
                schema.into_iter().for_each(|schema| standard(schema.as_map(), "", report));
            }
            headers(definition.parameters.as_map(), report);
        }
        Dialect::OpenAi | Dialect::OpenRouter => {
            short(definition, report);
            report.sent(openai::parameters(definition));
        }
        Dialect::OpenAiStrict => {
            short(definition, report);
            let sent = report.sent(openai::strict_parameters(definition));
            strict(&sent, report);
        }
        Dialect::Anthropic => {
            let sent = report.sent(anthropic::input_schema(definition));
            names(&sent, "", &ANTHROPIC, report);
        }
        Dialect::Gemini => {
            let sent = report.sent(gemini::parameters(definition));
            names(&sent, "", &GEMINI, report);
            recursion(&sent, report);
        }
        Dialect::Portable => {
            short(definition, report);
            let sent = report.sent(portable::parameters(definition));
            names(&sent, "", &GEMINI, report);
        }
        Dialect::ToolsJson => {}
    }
}

fn short(definition: &Definition, report: &mut Report) {
    let length = definition.description.chars().count();
    if length > MAX_DESCRIPTION {
        report.add(
            "",
            format_args!("the description has {length} characters, more than {MAX_DESCRIPTION}"),
            "shorten it, or move what is about one parameter to that parameter",
        );
    }
}

/// How properties may be called.
struct Names {
    fits: fn(&str) -> bool,
    fix: &'static str,
}

const ANTHROPIC: Names = Names {
    fits: |name| {
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        (1..=64).contains(&name.len()) && name.chars().all(part)
    },
    fix: "use 1 to 64 of A-Z a-z 0-9 _ . -",
};

const GEMINI: Names = Names {
    fits: |name| {
        let first = |c: char| c.is_ascii_alphabetic() || c == '_';
        name.len() <= 64
            && name.starts_with(first)
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    },
    fix: "use 1 to 64 of A-Z a-z 0-9 _, starting with a letter or _",
};

fn names(schema: &Map<String, Value>, path: &str, rule: &Names, report: &mut Report) {
    for (name, _) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if !(rule.fits)(name) {
            report.add(
                &format!("{path}/properties/{}", walk::escape(name)),
                format_args!("the name `{name}` is refused"),
                rule.fix,
            );
        }
    }
    walk::each(schema, &mut |_, step, inner| {
        if let Value::Object(inner) = inner {
            names(inner, &format!("{path}{step}"), rule, report);
        }
    });
}

/// Words that are not in JSON Schema make some clients refuse the tool.
fn standard(schema: &Map<String, Value>, path: &str, report: &mut Report) {
    for (keyword, value) in schema {
        if !is_keyword(keyword) {
            report.add(
                path,
                format_args!("`{keyword}` is not a keyword of JSON Schema 2020-12"),
                "leave it out, or begin it with `x-`",
            );
        }
        if keyword == "format" && !value.as_str().is_some_and(|name| FORMATS.contains(&name)) {
            report.add(
                path,
                format_args!("{value} is not a format of JSON Schema 2020-12"),
                "leave it out, and say it in the description",
            );
        }
    }
    walk::each(schema, &mut |_, step, inner| {
        if let Value::Object(inner) = inner {
            standard(inner, &format!("{path}{step}"), report);
        }
    });
}

fn is_keyword(keyword: &str) -> bool {
    const OTHERS: [&str; 38] = [
        "$anchor",
        "$comment",
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$ref",
        "$schema",
        "$vocabulary",
        "const",
        "contentEncoding",
        "contentMediaType",
        "default",
        "dependentRequired",
        "deprecated",
        "description",
        "enum",
        "examples",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "readOnly",
        "required",
        "title",
        "type",
        "uniqueItems",
        "writeOnly",
    ];
    keyword.starts_with("x-")
        || OTHERS.contains(&keyword)
        || keyword != "definitions" && walk::holds(keyword).is_some()
}

/// What a property may say about the header that carries it.
fn headers(root: &Map<String, Value>, report: &mut Report) {
    let mut seen = BTreeSet::new();
    let properties = root.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let Some(header) = schema.get("x-mcp-header") else { continue };
        let path = format!("/properties/{}", walk::escape(name));
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+.^_`|~-".contains(c);
        match header.as_str().filter(|header| !header.is_empty() && header.chars().all(token)) {
            None => report.add(
                &path,
                format_args!("`x-mcp-header` {header} cannot name a header"),
                "use letters, digits and -",
            ),
            Some(header) if !seen.insert(header.to_ascii_lowercase()) => report.add(
                &path,
                format_args!("the header `{header}` is named twice"),
                "give each parameter a header of its own",
            ),
            Some(_) => {}
        }
        let plain = ["string", "integer", "boolean"];
        if !schema.get("type").and_then(Value::as_str).is_some_and(|ty| plain.contains(&ty)) {
            report.add(
                &path,
                "a header cannot carry a value of this type",
                "take `x-mcp-header` away, or make it a string, an integer or a boolean",
            );
        }
    }
}

/// Finds references that lead back to where they stand.
fn recursion(root: &Map<String, Value>, report: &mut Report) {
    fn follow(
        schema: &Map<String, Value>,
        root: &Map<String, Value>,
        path: &str,
        open: &mut Vec<String>,
        done: &mut BTreeSet<String>,
        report: &mut Report,
    ) {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            if open.contains(reference) {
                report.add(
                    path,
                    "the schema leads back to itself, which is followed only a few steps",
                    "take a flat list whose items name their parent",
                );
            } else if done.insert(reference.clone())
                && let Some(target) = walk::resolve(root, reference)
            {
                open.push(reference.clone());
                follow(&target, root, reference.trim_start_matches('#'), open, done, report);
                open.pop();
            }
        }
        walk::each(schema, &mut |keyword, step, inner| {
            if keyword != "$defs"
                && let Value::Object(inner) = inner
            {
                follow(inner, root, &format!("{path}{step}"), open, done, report);
            }
        });
    }
    follow(root, root, "", &mut vec!["#".to_owned()], &mut BTreeSet::new(), report);
}

/// The limits of strict mode, and a second look at its rules.
fn strict(root: &Map<String, Value>, report: &mut Report) {
    let mut sizes = Sizes::default();
    sizes.walk(root, "", 1, report);
    let limits = [
        (sizes.properties, 5000, "properties"),
        (sizes.characters, 120_000, "characters in names and values"),
        (sizes.values, 1000, "values of enums"),
    ];
    for (size, most, what) in limits {
        if size > most {
            report.add(
                "",
                format_args!("the schema has {size} {what}, more than {most}"),
                "split the tool, or take text and check it in the tool",
            );
        }
    }
}

#[derive(Default)]
struct Sizes {
    properties: usize,
    characters: usize,
    values: usize,
}

impl Sizes {
    fn walk(&mut self, schema: &Map<String, Value>, path: &str, depth: usize, report: &mut Report) {
        if let Some(Value::Object(properties)) = schema.get("properties") {
            if depth > 10 {
                let fix = "make it flatter, or take a part of it as text";
                return report.add(path, "objects are nested deeper than 10 levels", fix);
            }
            self.properties += properties.len();
            self.characters += properties.keys().map(|name| name.chars().count()).sum::<usize>();
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let characters = values.iter().map(characters).sum::<usize>();
            self.values += values.len();
            self.characters += characters;
            if values.len() > 250 && characters > 15_000 {
                let fix = "take text and check it in the tool";
                report.add(path, "an enum has more than 250 values and 15000 characters", fix);
            }
        }
        self.characters += schema.get("const").map_or(0, characters);
        if let Some(Value::Object(defs)) = schema.get("$defs") {
            self.characters += defs.keys().map(|name| name.chars().count()).sum::<usize>();
        }
        walk::each(schema, &mut |keyword, step, inner| {
            let depth = match keyword {
                "properties" => depth + 1,
                "$defs" => 1,
                _ => depth,
            };
            if let Value::Object(inner) = inner {
                self.walk(inner, &format!("{path}{step}"), depth, report);
            }
        });
    }
}

fn characters(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        value => value.to_string().len(),
    }
}
