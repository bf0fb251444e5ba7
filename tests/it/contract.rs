//! Advertised is enforced: for every linked tool the schema accepts a value exactly when
//! decoding does.

use serde_json::Value;
use tool_sdk::{RawArgs, Registry, tools};

use crate::support::values::{Dice, good, nearly, respelt};

tool_sdk::link!(tool_std);

/// How many values are made per tool.
const VALUES: u64 = 3000;

/// Tools with `validate = F`, which also refuse values that their schema accepts.
const WITH_OWN_CHECKS: &[&str] = &[
    "check_env_vars",
    "request_decision",
    "request_env_var",
    "todo_write",
    "update_plan",
    "web_search",
];

// F2: a call that violates the schema never reaches the function, and no other is refused.
#[test]
fn every_linked_tool_accepts_what_its_schema_accepts() {
    // One is there only for hosts that add it.
    let registry = Registry::builder().add_linked().add(tools![
        tool_std::research::deep_research,
        tool_std::screen::desktop,
        tool_std::screen::terminal,
    ]);
    let registry = registry.build().expect("no two tools share a name");
    assert!(registry.len() > 7, "the standard tools and the samples are linked");
    for tool in &registry {
        let definition = tool.definition();
        let schema = definition.parameters.to_value();
        let validator = jsonschema::draft202012::new(&schema).expect("the schema is valid");
        let (mut accepted, mut refused) = (0, 0);
        for seed in 0..VALUES {
            let value = respelt(&sample(&schema, seed), &mut Dice::new(seed + 1));
            let parsed = serde_json::from_str(&value).expect("the value is JSON");
            let by_schema = validator.is_valid(&parsed);
            let by_tool = tool.prepare(&RawArgs::new(value.as_str()));
            if by_schema {
                accepted += 1
            } else {
                refused += 1
            }
            match by_tool {
                Ok(_) => {
                    assert!(by_schema, "`{}` takes {value}, its schema does not", definition.name)
                }
                Err(error) => {
                    let has_checks = WITH_OWN_CHECKS.contains(&definition.name.as_str());
                    assert!(
                        !by_schema || has_checks,
                        "`{}` refuses {value}: {error}",
                        definition.name
                    );
                }
            }
        }
        // A generator that only makes one kind of value would prove nothing.
        assert!(accepted > VALUES / 20, "`{}`: {accepted} accepted", definition.name);
        assert!(refused > VALUES / 20, "`{}`: {refused} refused", definition.name);
    }
}

/// A good value for every other seed, and one that was changed for the rest.
fn sample(schema: &Value, seed: u64) -> Value {
    let mut dice = Dice::new(seed + 1);
    let value = good(schema, schema, &mut dice, 0);
    if seed.is_multiple_of(2) { value } else { nearly(value, &mut dice) }
}
