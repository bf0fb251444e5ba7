//! Tools that exist under a condition.

use serde_json::json;
use tool_sdk::{Registry, tool, tools, toolset};

use crate::pass::call;

/// Exists.
#[tool(read)]
#[cfg(test)]
fn conditional_after() -> &'static str {
    "after"
}

/// Exists.
#[cfg(test)]
#[tool(read)]
fn conditional_before() -> &'static str {
    "before"
}

/// Exists.
#[tool(read)]
#[cfg_attr(test, cfg(test))]
fn conditional_attribute() -> &'static str {
    "attribute"
}

/// Does not exist.
#[tool(read)]
#[cfg(not(test))]
fn conditional_absent_after(
    /// Of a type that is nowhere.
    value: Nowhere,
) -> Nowhere {
    value
}

/// Does not exist.
#[cfg(not(test))]
#[tool(read)]
fn conditional_absent_before(
    /// Of a type that is nowhere.
    value: Nowhere,
) -> Nowhere {
    value
}

/// Does not exist, and not under this name either.
#[tool(read, name = "conditional_after")]
#[cfg_attr(test, cfg(not(test)))]
fn conditional_absent_attribute() {}

struct Conditions;

#[toolset]
impl Conditions {
    /// Exists.
    #[tool(read)]
    #[cfg(test)]
    fn present(&self) -> &'static str {
        "present"
    }

    /// Does not exist.
    #[tool(read)]
    #[cfg(not(test))]
    fn absent(
        &self,
        /// Of a type that is nowhere.
        value: Nowhere,
    ) -> Nowhere {
        value
    }
}

#[cfg(not(test))]
#[toolset]
impl Nowhere {
    /// Does not exist.
    #[tool(read)]
    fn absent(&self) {}
}

#[toolset]
#[cfg(not(test))]
impl Nowhere {
    /// Does not exist.
    #[tool(read)]
    fn absent(
        &self,
        /// Of a type that is nowhere.
        value: Nowhere,
    ) {
    }
}

#[test]
fn a_tool_exists_where_its_function_does() {
    assert_eq!(call(tools![conditional_after], json!({})), "after");
    assert_eq!(call(tools![conditional_before], json!({})), "before");
    assert_eq!(call(tools![conditional_attribute], json!({})), "attribute");
    assert_eq!(call(Conditions, json!({})), "present");
    let registry = Registry::linked().expect("no two tools share a name");
    assert_eq!(registry.by_name_pattern("conditional_*").count(), 3);
}
