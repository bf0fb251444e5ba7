//! The schema of every standard tool in every dialect, as snapshots: a change of a type is a
//! difference to read.

use tool_sdk::provider::{self, Dialect};
use tool_sdk::{Registry, tools};

/// Every linked tool, and those that are there only for hosts that add them.
fn everything() -> Registry {
    let registry = Registry::builder().add_linked().add(tools![
        tool_std::research::deep_research,
        tool_std::screen::desktop,
        tool_std::screen::terminal,
    ]);
    registry.build().expect("no two tools share a name")
}

#[test]
fn every_standard_tool_looks_the_same_in_every_dialect() {
    for definition in everything().definitions() {
        if definition.place.is_none_or(|place| place.package != "tool-std") {
            continue;
        }
        for dialect in Dialect::ALL {
            let name = format!("{}.{}", definition.name, dialect.as_str());
            insta::with_settings!({ snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
                insta::assert_json_snapshot!(name, provider::encode_tool(definition, dialect));
            });
        }
    }
}

// F11: byte-stable.
#[test]
fn rendering_twice_gives_the_same_bytes() {
    let registry = everything();
    for dialect in Dialect::ALL {
        let text = || provider::encode_tools(registry.definitions(), dialect).to_string();
        assert_eq!(text(), text());
    }
}

#[test]
fn every_standard_tool_is_well_made() {
    let registry = everything();
    let standard = registry
        .iter()
        .filter(|tool| tool.definition().place.is_some_and(|place| place.package == "tool-std"));
    let standard: Vec<_> = standard.cloned().collect();
    assert!(standard.len() >= 3);
    let registry = Registry::builder().add(standard).build().expect("a part has no conflicts");
    tool_sdk::testing::check_all(&registry);
}
