//! MCP tools, as `tools/list` returns them.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::risk::RiskClass;
use crate::schema::{Schema, walk};
use crate::tool::{Definition, Icon, TaskSupport};

/// The result of `tools/list`.
#[derive(Serialize)]
pub(super) struct ListToolsResult<'a> {
    tools: Vec<ListedTool<'a>>,
}

impl<'a> ListToolsResult<'a> {
    pub(super) fn from_definitions(definitions: impl Iterator<Item = &'a Definition>) -> Self {
        Self { tools: definitions.map(ListedTool::from_definition).collect() }
    }
}

/// A tool that borrows from its definition.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Cow<'a, RawValue>>,
    annotations: ToolAnnotations<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    icons: &'a [Icon],
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<ToolExecution>,
}

impl<'a> ListedTool<'a> {
    pub(super) fn from_definition(definition: &'a Definition) -> Self {
        Self {
            name: definition.name.as_str(),
            title: definition.title.as_deref().or(definition.display.name.as_deref()),
            description: &definition.description,
            input_schema: definition.parameters.as_raw(),
            output_schema: definition.output.as_ref().map(output_schema),
            annotations: ToolAnnotations::from_definition(definition),
            icons: &definition.display.icons,
            execution: ToolExecution::from_definition(definition),
        }
    }
}

/// How the tool may be run; only the protocol of 2025-11-25 has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolExecution {
    task_support: TaskSupport,
}

impl ToolExecution {
    fn from_definition(definition: &Definition) -> Option<Self> {
        let task_support = definition.task_support;
        (task_support != TaskSupport::Forbidden).then_some(Self { task_support })
    }
}

/// The tool's risk as MCP hints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolAnnotations<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    read_only_hint: bool,
    destructive_hint: bool,
    idempotent_hint: bool,
    open_world_hint: bool,
}

impl<'a> ToolAnnotations<'a> {
    /// A read-only tool is not destructive and is idempotent. Other tools are destructive if they
    /// say so or if they execute; the latter includes unclassified tools.
    fn from_definition(definition: &'a Definition) -> Self {
        let risk = definition.risk;
        let read = risk.is_read_only();
        Self {
            title: definition.title.as_deref(),
            read_only_hint: read,
            destructive_hint: !read && (risk.destructive || risk.class == RiskClass::Execute),
            idempotent_hint: read || risk.idempotent,
            open_world_hint: risk.open_world,
        }
    }
}

/// Returns the output schema. A schema that is not an object is wrapped as `{"result": ..}`,
/// because older clients refuse the whole list otherwise.
fn output_schema(output: &Schema) -> Cow<'_, RawValue> {
    if !is_wrapped(output) {
        return Cow::Borrowed(output.as_raw());
    }
    let mut result = output.as_map().clone();
    let defs = result.shift_remove("$defs");
    // References to the root must point to the wrapped schema.
    rebase_references(&mut result);
    let mut root = Map::new();
    root.insert("type".to_owned(), "object".into());
    root.insert("properties".to_owned(), json!({ "result": result }));
    root.insert("required".to_owned(), json!(["result"]));
    root.insert("additionalProperties".to_owned(), false.into());
    if let Some(Value::Object(mut defs)) = defs {
        for schema in defs.values_mut() {
            if let Value::Object(schema) = schema {
                rebase_references(schema);
            }
        }
        root.insert("$defs".to_owned(), Value::Object(defs));
    }
    Cow::Owned(to_raw_value(&root).expect("an object in memory can be written"))
}

/// Returns true if a structured result with this schema is sent as `{"result": ..}`.
pub(super) fn is_wrapped(output: &Schema) -> bool {
    output.as_map().get("type").is_none_or(|ty| ty != "object")
}

fn rebase_references(schema: &mut Map<String, Value>) {
    if let Some(Value::String(reference)) = schema.get_mut("$ref")
        && !reference.starts_with("#/$defs/")
        && let Some(rest) = reference.strip_prefix('#')
    {
        *reference = format!("#/properties/result{rest}");
    }
    walk::for_each_subschema_mut(schema, &mut |_, inner| {
        if let Value::Object(inner) = inner {
            rebase_references(inner);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::ToolName;
    use crate::risk::Risk;

    fn with(risk: Risk) -> Value {
        let name = ToolName::from_static("t");
        let tool = Definition::new(name, "T.", Schema::default()).risk(risk);
        json!(ToolAnnotations::from_definition(&tool))
    }

    #[test]
    fn hints_follow_from_the_risk() {
        let hints = |read: bool, destructive: bool, idempotent: bool, open: bool| {
            json!({
                "readOnlyHint": read, "destructiveHint": destructive,
                "idempotentHint": idempotent, "openWorldHint": open,
            })
        };
        assert_eq!(with(Risk::new(RiskClass::Read).open_world()), hints(true, false, true, true));
        assert_eq!(with(Risk::new(RiskClass::Write)), hints(false, false, false, false));
        assert_eq!(
            with(Risk::new(RiskClass::Write).destructive().idempotent()),
            hints(false, true, true, false)
        );
        assert_eq!(with(Risk::default()), hints(false, true, false, false));
    }

    #[test]
    fn a_list_as_a_result_is_wrapped() {
        let output: Schema = serde_json::from_value(json!({
            "type": "array",
            "items": { "$ref": "#/$defs/Tree" },
            "$defs": { "Tree": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } },
        }))
        .unwrap();
        assert_eq!(
            json!(output_schema(&output)),
            json!({
                "type": "object",
                "properties": {
                    "result": { "type": "array", "items": { "$ref": "#/$defs/Tree" } },
                },
                "required": ["result"],
                "additionalProperties": false,
                "$defs": { "Tree": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } },
            })
        );
        assert_eq!(output_schema(&Schema::default()).get(), Schema::default().as_str());
    }
}
