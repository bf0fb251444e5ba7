//! A crate of tools that somebody else publishes: found when it is linked, and missed with
//! clear words when it is not.

use std::process::{Command, Output};

use crate::support::root;

/// Runs one of the fixture's programs.
fn run(bin: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "weather-app", "--bin", bin, "--"])
        .args(args)
        .current_dir(root())
        .output()
        .expect("cargo runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_linked_crate_brings_its_tools() {
    let output = run("linked", &["list", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let names: Vec<_> = list.as_array().expect("a list").iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["current_weather", "forecast", "known_cities"]);

    let called = run("linked", &["call", "forecast", "--city", "Oslo", "--days", "2"]);
    assert_eq!(text(&called.stdout), "Oslo: sun for 2 days\n");
}

#[test]
fn a_crate_that_is_not_linked_is_missed_with_a_hint() {
    let output = run("unlinked", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        "not found: `forecast`, `known_cities`\n  \
         is the crate linked? write `tool_sdk::link!(the_crate);`\n  \
         found: no tools at all\n"
    );
}
