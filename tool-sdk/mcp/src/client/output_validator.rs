//! Validates the results of a tool against the server's output schema.
//!
//! Clients rely on the schema, and this program passes it on to its own clients. A result that
//! violates it is a failure of the server, and is never returned as a success.

use jsonschema::ValidationError;
use serde_json::Value;

use super::validator::{SchemaValidator, ValidationOutcome};
use tool_sdk_core::Schema;

/// The error for a result that cannot be validated within the limits.
pub(super) const TOO_EXPENSIVE: &str =
    "validating its structured result against its output schema would take too long";

/// The validator of a tool's structured results.
pub(super) struct OutputValidator(SchemaValidator);

impl OutputValidator {
    /// Compiles a server's output schema.
    ///
    /// # Errors
    ///
    /// Returns why the schema cannot be used.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        SchemaValidator::compile(schema, Schema::result_from_value).map(Self)
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
        match self.0.validate(value, 1, describe_violation) {
            ValidationOutcome::Valid => None,
            ValidationOutcome::Invalid(faults) => {
                Some(faults.into_iter().next().unwrap_or_else(|| {
                    "its structured result violates its output schema".to_owned()
                }))
            }
            ValidationOutcome::TooExpensive => Some(TOO_EXPENSIVE.to_owned()),
        }
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

    // fault 10
    #[test]
    fn result_that_is_too_expensive_to_validate_is_rejected() {
        let twice = json!({ "$ref": "#/$defs/t", "$defs": { "t": { "allOf": [
            { "items": { "$ref": "#/$defs/t" } }, { "items": { "$ref": "#/$defs/t" } },
        ] } } });
        let deep = (0..30).fold(json!(1), |inner, _| json!([inner]));
        let expected =
            "validating its structured result against its output schema would take too long";
        check(&twice, Some(deep), Some(expected));
    }

    // fault 10: the meta-schemas are not visible here, but validating against them is work as well.
    #[test]
    fn references_to_meta_schemas_have_a_cost() {
        let standard = json!({ "$ref": "https://json-schema.org/draft/2020-12/schema" });
        let promised =
            |many: usize| json!({ "properties": { "v": { "anyOf": vec![&standard; many] } } });
        let properties = |many: u32| {
            (0..many).map(|at| (at.to_string(), json!({ "type": "integer" }))).collect::<Value>()
        };
        let told = |schema: &Value, many: u32| {
            let result = json!({ "v": { "properties": properties(many) } });
            OutputValidator::compile(schema).unwrap().find_violation(Some(&result))
        };
        assert_eq!(told(&promised(1), 20), None);
        assert!(told(&promised(500), 2_000).unwrap().contains("too long"));
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
