//! Validates the results of a tool against the server's output schema.
//!
//! Clients rely on the schema, and this program passes it on to its own clients. A result that
//! violates it is a failure of the server, and is never returned as a success.

use jsonschema::ValidationError;
use serde_json::Value;
use tool_sdk_core::Schema;

use super::validator::SchemaValidator;

/// The error for a result whose validation did not end in time.
pub(super) const TOO_LATE: &str =
    "validating its structured result against its output schema took too long";

/// The validator of a tool's structured results.
pub(super) struct OutputValidator(SchemaValidator);

impl OutputValidator {
    /// Compiles a server's output schema.
    ///
    /// # Errors
    ///
    /// Returns why results cannot be validated with the schema.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        let validator = SchemaValidator::compile(schema, Schema::result_from_value)?;
        match validator.broken_rule() {
            Some(rule) => Err(rule.to_owned()),
            None => Ok(Self(validator)),
        }
    }

    /// The schema that clients of this program see.
    pub(super) fn schema(&self) -> &Schema {
        self.0.schema()
    }

    /// Returns the parts of the schema that are not checked.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.0.warnings()
    }

    /// Whether validating is so cheap that it can run inline.
    pub(super) fn is_cheap(&self, result: &Value) -> bool {
        self.0.is_cheap(result)
    }

    /// Returns how a result violates the schema, if it does.
    pub(super) fn find_violation(&self, result: Option<&Value>) -> Option<String> {
        let Some(value) = result else {
            return Some(
                "it returned no structured result, although it has an output schema".to_owned(),
            );
        };
        let reasons = self.0.validate(value, 1, describe_violation).err()?;
        let unlisted = || "its structured result violates its output schema".to_owned();
        Some(reasons.into_iter().next().unwrap_or_else(unlisted))
    }
}

fn describe_violation(error: ValidationError<'_>) -> String {
    let place = match error.instance_path().as_str() {
        "" => "its structured result".to_owned(),
        path => format!("`{path}` of its structured result"),
    };
    let keyword = error.kind().keyword();
    let what = error.masked_with("the value");
    format!("{place} violates `{keyword}` of its output schema: {what}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, result: Option<Value>, expected: Option<&str>) {
        let promise = OutputValidator::compile(schema).unwrap();
        assert_eq!(promise.find_violation(result.as_ref()).as_deref(), expected);
    }

    #[test]
    fn reports_violations_of_the_output_schema() {
        let object = json!({
            "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"],
        });
        check(&object, Some(json!({ "a": 1, "b": 2 })), None);
        check(
            &object,
            None,
            Some("it returned no structured result, although it has an output schema"),
        );
        check(
            &object,
            Some(json!({ "a": "secret" })),
            Some(
                "`/a` of its structured result violates `type` of its output schema: the value \
                 is not of type \"integer\"",
            ),
        );
        check(&json!({ "type": "array", "items": { "type": "integer" } }), Some(json!([1])), None);
        check(&json!({ "type": ["integer", "null"] }), Some(Value::Null), None);
    }

    // fault 10: the output schema is left out, so clients do not rely on it.
    #[test]
    fn schemas_that_break_a_rule_are_not_used() {
        let twice = json!({ "$ref": "#/$defs/t", "$defs": { "t": { "allOf": [
            { "items": { "$ref": "#/$defs/t" } }, { "items": { "$ref": "#/$defs/t" } },
        ] } } });
        let why = OutputValidator::compile(&twice).err().unwrap();
        assert!(why.contains("in two ways"), "{why}");
    }

    // fault 10: the meta-schemas are not visible here, but validating against them is work as well.
    #[test]
    fn references_to_meta_schemas_have_a_cost() {
        let standard = json!({ "$ref": "https://json-schema.org/draft/2020-12/schema" });
        let promised =
            |many: usize| json!({ "properties": { "v": { "anyOf": vec![&standard; many] } } });
        let properties = (0..2_000).map(|at| (at.to_string(), json!({ "type": "integer" })));
        let result = json!({ "v": { "properties": properties.collect::<Value>() } });
        let validator = OutputValidator::compile(&promised(1)).unwrap();
        assert_eq!(validator.find_violation(Some(&result)), None);
        let why = OutputValidator::compile(&promised(500)).err().unwrap();
        assert!(why.contains("more than 2000 times"), "{why}");
    }

    #[test]
    fn rejects_unusable_schemas() {
        for bad in [
            json!(true),
            json!({ "type": "thing" }),
            json!({ "$ref": "https://example.com/x" }),
            json!({ "description": "x".repeat(256 << 10) }),
        ] {
            assert!(OutputValidator::compile(&bad).is_err(), "{:.80}", bad.to_string());
        }
    }
}
