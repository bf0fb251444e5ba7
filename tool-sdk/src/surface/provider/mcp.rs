//! Tools as the Model Context Protocol lists them.

use serde_json::{Map, Value, json};

use crate::effect::RiskClass;
use crate::schema::{Schema, walk};
use crate::tool::Definition;

pub(super) fn tool(definition: &Definition) -> Value {
    let mut tool = Map::new();
    tool.insert("name".to_owned(), definition.name.as_str().into());
    if let Some(title) = &definition.title {
        tool.insert("title".to_owned(), title.as_ref().into());
    }
    tool.insert("description".to_owned(), definition.description.as_ref().into());
    tool.insert("inputSchema".to_owned(), definition.parameters.to_value());
    if let Some(output) = &definition.output {
        tool.insert("outputSchema".to_owned(), output_schema(output));
    }
    tool.insert("annotations".to_owned(), annotations(definition));
    Value::Object(tool)
}

/// What the risk says, as hints.
///
/// A tool that only looks destroys nothing and may be repeated. Of the others, those
/// destroy that say so, and all that execute: what an unclassified tool does is not known.
fn annotations(definition: &Definition) -> Value {
    let risk = definition.risk;
    let read = risk.is_read_only();
    let mut hints = Map::new();
    if let Some(title) = &definition.title {
        hints.insert("title".to_owned(), title.as_ref().into());
    }
    let destructive = !read && (risk.destructive || risk.class == RiskClass::Execute);
    hints.insert("readOnlyHint".to_owned(), read.into());
    hints.insert("destructiveHint".to_owned(), destructive.into());
    hints.insert("idempotentHint".to_owned(), (read || risk.idempotent).into());
    hints.insert("openWorldHint".to_owned(), risk.open_world.into());
    Value::Object(hints)
}

/// The schema of the structured result. One that is not an object is wrapped as
/// `{"result": ..}`, because older clients refuse the whole list otherwise.
pub(super) fn output_schema(output: &Schema) -> Value {
    if !is_wrapped(output) {
        return output.to_value();
    }
    let mut result = output.as_map().clone();
    let defs = result.shift_remove("$defs");
    // What led to the root leads to the wrapped schema now.
    redirect(&mut result);
    let mut root = Map::new();
    root.insert("type".to_owned(), "object".into());
    root.insert("properties".to_owned(), json!({ "result": result }));
    root.insert("required".to_owned(), json!(["result"]));
    root.insert("additionalProperties".to_owned(), false.into());
    if let Some(Value::Object(mut defs)) = defs {
        for schema in defs.values_mut() {
            if let Value::Object(schema) = schema {
                redirect(schema);
            }
        }
        root.insert("$defs".to_owned(), Value::Object(defs));
    }
    Value::Object(root)
}

/// Whether a structured result with this schema is sent as `{"result": ..}`.
pub(super) fn is_wrapped(output: &Schema) -> bool {
    output.as_map().get("type").is_none_or(|ty| ty != "object")
}

fn redirect(schema: &mut Map<String, Value>) {
    if let Some(Value::String(reference)) = schema.get_mut("$ref")
        && !reference.starts_with("#/$defs/")
        && let Some(rest) = reference.strip_prefix('#')
    {
        *reference = format!("#/properties/result{rest}");
    }
    walk::each_mut(schema, &mut |_, inner| {
        if let Value::Object(inner) = inner {
            redirect(inner);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Risk;
    use crate::name::ToolName;

    fn with(risk: Risk) -> Value {
        let name = ToolName::from_static("t");
        annotations(&Definition::new(name, "T.", Schema::default()).risk(risk))
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
            output_schema(&output),
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
        assert_eq!(output_schema(&Schema::default()), Schema::default().to_value());
    }
}
