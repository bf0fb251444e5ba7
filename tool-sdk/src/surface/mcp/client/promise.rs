//! What a tool gives back, against the server's own output schema.
//!
//! Who reads the schema relies on it, this program's own peers too. A result that breaks it is a
//! failure of the server, and is never handed on as a success.

use jsonschema::ValidationError;
use serde_json::Value;

use super::validator::{Judge, Verdict};
use crate::schema::Schema;

/// What is said of a result where it cannot be found out in time whether it keeps the promise.
pub(super) const TOO_LONG: &str =
    "it would take too long to hold its structured value against its own output schema";

/// What a server promises of the structured result of a tool.
pub(super) struct Promise(Judge);

impl Promise {
    /// Takes a server's schema.
    ///
    /// # Errors
    ///
    /// Says why no result could be judged by this schema.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        Judge::of(schema, Schema::result_from_value).map(Self)
    }

    /// What peers are told.
    pub(super) fn told(&self) -> &Schema {
        self.0.told()
    }

    /// What is odd about it.
    pub(super) fn oddities(&self) -> impl Iterator<Item = String> {
        self.0.oddities()
    }

    /// Whether that is found out in no time.
    pub(super) fn is_quick(&self, result: &Value) -> bool {
        self.0.is_quick(result)
    }

    /// How a result breaks the promise, if it does.
    pub(super) fn broken_by(&self, result: Option<&Value>) -> Option<String> {
        let Some(value) = result else {
            return Some("it promised a structured value and gave none".to_owned());
        };
        match self.0.judge(value, 1, fault) {
            Verdict::Fits => None,
            Verdict::Breaks(faults) => {
                Some(faults.into_iter().next().unwrap_or_else(|| {
                    "its structured value breaks its own output schema".to_owned()
                }))
            }
            Verdict::TooMuch => Some(TOO_LONG.to_owned()),
        }
    }
}

fn fault(error: ValidationError<'_>) -> String {
    let place = match error.instance_path().as_str() {
        "" => "its structured value".to_owned(),
        path => format!("`{path}` of its structured value"),
    };
    let keyword = error.kind().keyword();
    let what = error.masked_with("the value");
    format!("{place} breaks `{keyword}` of its own output schema: {what}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, result: Option<Value>, expected: Option<&str>) {
        let promise = Promise::of(schema).unwrap();
        assert_eq!(promise.broken_by(result.as_ref()).as_deref(), expected);
    }

    #[test]
    fn what_is_promised_is_looked_for() {
        let object = json!({
            "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"],
        });
        check(&object, Some(json!({ "a": 1, "b": 2 })), None);
        check(&object, None, Some("it promised a structured value and gave none"));
        check(
            &object,
            Some(json!({ "a": "secret" })),
            Some(
                "`/a` of its structured value breaks `type` of its own output schema: the value \
                 is not of type \"integer\"",
            ),
        );
        check(&json!({ "type": "array", "items": { "type": "integer" } }), Some(json!([1])), None);
        check(&json!({ "type": ["integer", "null"] }), Some(Value::Null), None);
    }

    // fault 10
    #[test]
    fn a_result_that_would_take_too_long_breaks_it() {
        let twice = json!({ "$ref": "#/$defs/t", "$defs": { "t": { "allOf": [
            { "items": { "$ref": "#/$defs/t" } }, { "items": { "$ref": "#/$defs/t" } },
        ] } } });
        let deep = (0..30).fold(json!(1), |inner, _| json!([inner]));
        let expected =
            "it would take too long to hold its structured value against its own output schema";
        check(&twice, Some(deep), Some(expected));
    }

    // fault 10: the standard's own schemas are not seen from here, and are work all the same.
    #[test]
    fn a_result_that_is_held_against_the_standard_costs_what_that_costs() {
        let standard = json!({ "$ref": "https://json-schema.org/draft/2020-12/schema" });
        let promised =
            |many: usize| json!({ "properties": { "v": { "anyOf": vec![&standard; many] } } });
        let properties = |many: u32| {
            (0..many).map(|at| (at.to_string(), json!({ "type": "integer" }))).collect::<Value>()
        };
        let told = |schema: &Value, many: u32| {
            let result = json!({ "v": { "properties": properties(many) } });
            Promise::of(schema).unwrap().broken_by(Some(&result))
        };
        assert_eq!(told(&promised(1), 20), None);
        assert!(told(&promised(500), 2_000).unwrap().contains("too long"));
    }

    #[test]
    fn a_schema_that_judges_nothing_is_told() {
        for bad in [
            json!(true),
            json!({ "type": "thing" }),
            json!({ "$ref": "https://example.com/x" }),
            json!({ "description": "x".repeat(256 << 10) }),
        ] {
            assert!(Promise::of(&bad).is_err(), "{:.80}", bad.to_string());
        }
    }
}
