//! Lints tool definitions: reports what a provider would refuse or a dialect cannot express, where
//! it is, and how to fix it.
//!
//! The rules check the encoded schema, so lint and encoding cannot disagree.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::rewrite::RewriteLoss;
use super::{Dialect, anthropic, common_subset, gemini, openai};
use crate::schema::{FORMATS, find_faults, walk};
use crate::tool::Definition;

/// The maximum number of tools in a request to OpenAI.
const MAX_TOOLS: usize = 128;

/// The maximum description length of OpenAI, in characters.
const MAX_DESCRIPTION: usize = 1024;

/// A problem with a tool: something that a dialect cannot express or a provider would refuse.
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
/// let greet = Definition::new(ToolName::new("greet")?, "Greets a person.", schema);
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
pub struct LintFinding {
    /// The tool's name.
    pub tool: String,
    /// The place in the schema as a JSON pointer; empty for the tool as a whole.
    pub path: String,
    /// The problem.
    pub problem: String,
    /// How to fix it.
    pub fix: String,
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool `{}`: ", self.tool)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}; {}", self.problem, self.fix)
    }
}

/// Returns what `dialect` cannot express of a tool and what its provider would refuse.
#[must_use]
pub fn lint(definition: &Definition, dialect: Dialect) -> Vec<LintFinding> {
    let mut report = LintReport { findings: Vec::new() };
    if definition.description.trim().is_empty() {
        report.add_problem(
            "",
            "there is no description",
            "say what the tool does and when to use it",
        );
    }
    let parameters = definition.parameters.as_map();
    let mut broken = find_faults(parameters);
    broken.extend(definition.output.iter().flat_map(|output| find_faults(output.as_map())));
    for fault in &broken {
        report.add_problem(fault.path(), fault.problem(), "correct the schema");
    }
    if parameters.get("type").is_none_or(|ty| ty != "object") {
        report.add_problem(
            "",
            "the parameters are not an object",
            "take a struct, or name each parameter",
        );
    }
    // The encoded schema can only be checked if the schema itself is valid.
    if report.findings.is_empty() {
        check_dialect(definition, dialect, &mut report);
    }
    let tool = definition.name.as_str();
    report.findings.into_iter().map(|loss| to_finding(tool, loss)).collect()
}

/// Returns the findings of all tools, and those of the set as a whole.
#[must_use]
pub fn lint_all<'a>(
    definitions: impl IntoIterator<Item = &'a Definition>,
    dialect: Dialect,
) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    let limited = matches!(
        dialect,
        Dialect::OpenAi | Dialect::OpenAiStrict | Dialect::OpenRouter | Dialect::Portable
    );
    for (at, definition) in definitions.into_iter().enumerate() {
        let name = definition.name.as_str();
        if at == MAX_TOOLS && limited {
            findings.push(to_finding(
                name,
                RewriteLoss::new(
                    "",
                    format_args!("it comes after {MAX_TOOLS} others, which is the most"),
                    "offer fewer tools, by scope or category",
                ),
            ));
        }
        if !names.insert(name) {
            findings.push(to_finding(
                name,
                RewriteLoss::new("", "another tool has the same name", "rename one of them"),
            ));
        }
        findings.extend(lint(definition, dialect));
    }
    findings
}

fn to_finding(tool: &str, loss: RewriteLoss) -> LintFinding {
    LintFinding { tool: tool.to_owned(), path: loss.path, problem: loss.problem, fix: loss.fix }
}

struct LintReport {
    findings: Vec<RewriteLoss>,
}

impl LintReport {
    fn add_problem(&mut self, path: &str, problem: impl fmt::Display, fix: impl fmt::Display) {
        let loss = RewriteLoss::new(path, problem, fix);
        if !self.findings.contains(&loss) {
            self.findings.push(loss);
        }
    }

    fn take_losses(
        &mut self,
        (schema, losses): (Map<String, Value>, Vec<RewriteLoss>),
    ) -> Map<String, Value> {
        for loss in losses {
            if !self.findings.contains(&loss) {
                self.findings.push(loss);
            }
        }
        schema
    }
}

fn check_dialect(definition: &Definition, dialect: Dialect, report: &mut LintReport) {
    match dialect {
        Dialect::Mcp => {
            for schema in [Some(&definition.parameters), definition.output.as_ref()] {
                schema.into_iter().for_each(|schema| check_keywords(schema.as_map(), "", report));
            }
            check_headers(definition.parameters.as_map(), report);
        }
        Dialect::OpenAi | Dialect::OpenAiResponses | Dialect::OpenRouter => {
            check_description_length(definition, report);
            report.take_losses(openai::encode_parameters(definition));
        }
        Dialect::OpenAiStrict => {
            check_description_length(definition, report);
            let sent = report.take_losses(openai::encode_strict_parameters(definition));
            check_strict_limits(&sent, report);
        }
        Dialect::Anthropic => {
            let sent = report.take_losses(anthropic::input_schema(definition));
            check_property_names(&sent, "", &ANTHROPIC_NAMES, report);
        }
        Dialect::Gemini | Dialect::GeminiGenerate => {
            let sent = report.take_losses(gemini::encode_parameters(definition));
            check_property_names(&sent, "", &GEMINI_NAMES, report);
            check_recursion(&sent, report);
        }
        Dialect::Portable => {
            check_description_length(definition, report);
            let sent = report.take_losses(common_subset::encode_parameters(definition));
            check_property_names(&sent, "", &GEMINI_NAMES, report);
        }
        Dialect::ToolsJson => {}
    }
}

fn check_description_length(definition: &Definition, report: &mut LintReport) {
    let length = definition.description.chars().count();
    if length > MAX_DESCRIPTION {
        report.add_problem(
            "",
            format_args!("the description has {length} characters, more than {MAX_DESCRIPTION}"),
            "shorten it, or move what is about one parameter to that parameter",
        );
    }
}

/// A rule for property names.
struct NameRule {
    accepts: fn(&str) -> bool,
    fix: &'static str,
}

const ANTHROPIC_NAMES: NameRule = NameRule {
    accepts: |name| {
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        (1..=64).contains(&name.len()) && name.chars().all(part)
    },
    fix: "use 1 to 64 of A-Z a-z 0-9 _ . -",
};

const GEMINI_NAMES: NameRule = NameRule {
    accepts: |name| {
        let first = |c: char| c.is_ascii_alphabetic() || c == '_';
        name.len() <= 64
            && name.starts_with(first)
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    },
    fix: "use 1 to 64 of A-Z a-z 0-9 _, starting with a letter or _",
};

fn check_property_names(
    schema: &Map<String, Value>,
    path: &str,
    rule: &NameRule,
    report: &mut LintReport,
) {
    for (name, _) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if !(rule.accepts)(name) {
            report.add_problem(
                &format!("{path}/properties/{}", walk::escape_pointer_step(name)),
                format_args!("the name `{name}` is refused"),
                rule.fix,
            );
        }
    }
    walk::for_each_subschema(schema, &mut |_, step, inner| {
        if let Value::Object(inner) = inner {
            check_property_names(inner, &format!("{path}{step}"), rule, report);
        }
    });
}

/// Reports keywords and formats that are not in JSON Schema, because some clients refuse such
/// tools.
fn check_keywords(schema: &Map<String, Value>, path: &str, report: &mut LintReport) {
    for (keyword, value) in schema {
        if !is_keyword(keyword) {
            report.add_problem(
                path,
                format_args!("`{keyword}` is not a keyword of JSON Schema 2020-12"),
                "leave it out, or begin it with `x-`",
            );
        }
        if keyword == "format" && !value.as_str().is_some_and(|name| FORMATS.contains(&name)) {
            report.add_problem(
                path,
                format_args!("{value} is not a format of JSON Schema 2020-12"),
                "leave it out, and say it in the description",
            );
        }
    }
    walk::for_each_subschema(schema, &mut |_, step, inner| {
        if let Value::Object(inner) = inner {
            check_keywords(inner, &format!("{path}{step}"), report);
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
        || keyword != "definitions" && walk::subschema_kind(keyword).is_some()
}

/// Checks the `x-mcp-header` keywords of the properties.
fn check_headers(root: &Map<String, Value>, report: &mut LintReport) {
    let mut seen = BTreeSet::new();
    let properties = root.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let Some(header) = schema.get("x-mcp-header") else { continue };
        let path = format!("/properties/{}", walk::escape_pointer_step(name));
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+.^_`|~-".contains(c);
        match header.as_str().filter(|header| !header.is_empty() && header.chars().all(token)) {
            None => report.add_problem(
                &path,
                format_args!("`x-mcp-header` {header} cannot name a header"),
                "use letters, digits and -",
            ),
            Some(header) if !seen.insert(header.to_ascii_lowercase()) => report.add_problem(
                &path,
                format_args!("the header `{header}` is named twice"),
                "give each parameter a header of its own",
            ),
            Some(_) => {}
        }
        let plain = ["string", "integer", "boolean"];
        if !schema.get("type").and_then(Value::as_str).is_some_and(|ty| plain.contains(&ty)) {
            report.add_problem(
                &path,
                "a header cannot carry a value of this type",
                "take `x-mcp-header` away, or make it a string, an integer or a boolean",
            );
        }
    }
}

/// Reports recursive references.
fn check_recursion(root: &Map<String, Value>, report: &mut LintReport) {
    fn follow(
        schema: &Map<String, Value>,
        root: &Map<String, Value>,
        path: &str,
        open: &mut Vec<String>,
        done: &mut BTreeSet<String>,
        report: &mut LintReport,
    ) {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            if open.contains(reference) {
                report.add_problem(
                    path,
                    "the schema leads back to itself, which is followed only a few steps",
                    "take a flat list whose items name their parent",
                );
            } else if done.insert(reference.clone())
                && let Some(target) = walk::resolve_ref(root, reference)
            {
                open.push(reference.clone());
                follow(&target, root, reference.trim_start_matches('#'), open, done, report);
                open.pop();
            }
        }
        walk::for_each_subschema(schema, &mut |keyword, step, inner| {
            if keyword != "$defs"
                && let Value::Object(inner) = inner
            {
                follow(inner, root, &format!("{path}{step}"), open, done, report);
            }
        });
    }
    follow(root, root, "", &mut vec!["#".to_owned()], &mut BTreeSet::new(), report);
}

/// Checks the size limits of OpenAI's strict mode.
fn check_strict_limits(root: &Map<String, Value>, report: &mut LintReport) {
    let mut sizes = SchemaSize::default();
    sizes.measure(root, "", 1, report);
    let limits = [
        (sizes.properties, 5000, "properties"),
        (sizes.characters, 120_000, "characters in names and values"),
        (sizes.values, 1000, "values of enums"),
    ];
    for (size, most, what) in limits {
        if size > most {
            report.add_problem(
                "",
                format_args!("the schema has {size} {what}, more than {most}"),
                "split the tool, or take text and check it in the tool",
            );
        }
    }
}

#[derive(Default)]
struct SchemaSize {
    properties: usize,
    characters: usize,
    values: usize,
}

impl SchemaSize {
    fn measure(
        &mut self,
        schema: &Map<String, Value>,
        path: &str,
        depth: usize,
        report: &mut LintReport,
    ) {
        if let Some(Value::Object(properties)) = schema.get("properties") {
            if depth > 10 {
                let fix = "make it flatter, or take a part of it as text";
                return report.add_problem(path, "objects are nested deeper than 10 levels", fix);
            }
            self.properties += properties.len();
            self.characters += properties.keys().map(|name| name.chars().count()).sum::<usize>();
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let characters = values.iter().map(char_count).sum::<usize>();
            self.values += values.len();
            self.characters += characters;
            if values.len() > 250 && characters > 15_000 {
                let fix = "take text and check it in the tool";
                report.add_problem(
                    path,
                    "an enum has more than 250 values and 15000 characters",
                    fix,
                );
            }
        }
        self.characters += schema.get("const").map_or(0, char_count);
        if let Some(Value::Object(defs)) = schema.get("$defs") {
            self.characters += defs.keys().map(|name| name.chars().count()).sum::<usize>();
        }
        walk::for_each_subschema(schema, &mut |keyword, step, inner| {
            let depth = match keyword {
                "properties" => depth + 1,
                "$defs" => 1,
                _ => depth,
            };
            if let Value::Object(inner) = inner {
                self.measure(inner, &format!("{path}{step}"), depth, report);
            }
        });
    }
}

fn char_count(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        value => value.to_string().len(),
    }
}
