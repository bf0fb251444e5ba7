//! Docs before, after and between attributes, in comments, constants and files.

use tool_sdk::{tool, tools, toolset};

use crate::pass::definition;

const ABOUT: &str = "Kept in a constant.";

/// One.
#[must_use]
/// Two.
#[tool(read)]
/// Three.
#[inline]
/// Four.
fn docs_around() -> String {
    String::new()
}

/**
 * A block.
 *
 *   Indented.
 */
#[tool(read)]
fn docs_in_a_block(
    /** A parameter. */
    #[arg(default = 1)]
    /** In two parts. */
    value: u32,
) -> String {
    value.to_string()
}

#[doc = include_str!("documented.md")]
#[tool(read)]
fn docs_in_a_file(
    /// One,
    #[doc = concat!("two,", " three.")]
    value: u32,
) -> String {
    value.to_string()
}

/// For readers of the code.
#[tool(read, description = ABOUT)]
fn docs_in_a_constant() {}

#[tool(read, description = concat!("Kept", " in parts."))]
fn docs_in_parts() {}

#[cfg_attr(test, doc = "On a condition.")]
#[tool(read)]
fn docs_on_a_condition() {}

struct Docs;

#[toolset]
impl Docs {
    /// One.
    #[tool(read, name = "docs_of_a_method")]
    #[expect(clippy::unused_self, reason = "a method has one")]
    /// Two.
    fn method(&self) {}
}

#[test]
fn every_comment_counts() {
    assert_eq!(definition(tools![docs_around]).description, "One.\nTwo.\nThree.\nFour.");
    assert_eq!(definition(Docs).description, "One.\nTwo.");
}

#[test]
fn a_block_is_text_without_its_margin() {
    let definition = definition(tools![docs_in_a_block]);
    assert_eq!(definition.description, "A block.\n\n  Indented.");
    let value = definition.parameters.property("value").expect("it is there");
    assert_eq!(value["description"], "A parameter.\nIn two parts.");
}

#[test]
fn a_computed_text_is_read_where_it_is() {
    let of_a_file = definition(tools![docs_in_a_file]);
    assert_eq!(of_a_file.description, "Kept in a file.\n\nIt has two paragraphs.");
    let value = of_a_file.parameters.property("value").expect("it is there");
    assert_eq!(value["description"], "One,\ntwo, three.");
    assert_eq!(definition(tools![docs_in_a_constant]).description, "Kept in a constant.");
    assert_eq!(definition(tools![docs_in_parts]).description, "Kept in parts.");
    assert_eq!(definition(tools![docs_on_a_condition]).description, "On a condition.");
}
