//! Patterns that select tools.
//!
//! A pattern is a name or an alias, in any case, in which `*` matches any text and `?` one
//! character. `category:NAME` and `permission:NAME` select all tools that share one; tool names
//! cannot contain a colon.

use crate::name::matches_glob;
use crate::tool::Definition;

/// Whether `pattern` selects the tool.
pub(super) fn selects_tool(pattern: &str, definition: &Definition) -> bool {
    pattern_fits(pattern, definition, definition.names())
}

/// Whether one of `patterns` selects the tool.
pub(super) fn any_selects_tool(patterns: &[String], definition: &Definition) -> bool {
    patterns.iter().any(|pattern| selects_tool(pattern, definition))
}

/// Whether one of `patterns` removes the tool, by any of its names.
pub fn any_forbids_tool(patterns: &[String], definition: &Definition) -> bool {
    let names = definition.forbidden_names();
    patterns.iter().any(|pattern| pattern_fits(pattern, definition, names.clone()))
}

fn pattern_fits<'d>(
    pattern: &str,
    definition: &Definition,
    mut names: impl Iterator<Item = &'d str>,
) -> bool {
    let pattern = pattern.trim().to_ascii_lowercase();
    let fits = |pattern: &str, text: &str| matches_glob(pattern, &text.to_ascii_lowercase());
    match pattern.split_once(':') {
        Some(("category", wanted)) => {
            definition.category.as_deref().is_some_and(|category| fits(wanted, category))
        }
        Some(("permission", wanted)) => fits(wanted, definition.permission()),
        Some(_) => false,
        None => names.any(|name| fits(&pattern, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::ToolName;
    use crate::schema::Schema;

    #[test]
    fn patterns_select_names_categories_and_permissions() {
        let name = ToolName::from_static("turn_page");
        let mut definition = Definition::new(name, "Turns.", Schema::default());
        definition.aliases = vec![ToolName::from_static("Flip")];
        definition.category = Some("Books".into());
        definition.permission = Some("handle".into());
        for pattern in [
            "turn_page",
            "TURN_*",
            "flip",
            " turn_page ",
            "*",
            "category:books",
            "category:b*",
            "permission:handle",
        ] {
            assert!(selects_tool(pattern, &definition), "{pattern}");
        }
        for pattern in ["", "turn", "handle", "books", "category:", "scope:turn_page", "flip:x"] {
            assert!(!selects_tool(pattern, &definition), "{pattern}");
        }
    }
}
