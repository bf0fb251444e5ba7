//! Quality checks of all tools of a registry.

use serde_json::{Map, Value};

use super::examples::ExampleRunner;
use crate::call::RawArgs;
use crate::context::Session;
use crate::provider::{self, Dialect};
use crate::registry::Registry;
use crate::schema::{find_contradictions, walk};
use crate::tool::args::{find_self_violations, unsupported};
use crate::tool::{Definition, Tool};

/// Checks every tool of `registry`: descriptions, documented parameters, examples that decode and
/// run, and schemas that every provider accepts.
///
/// Only harmless examples run: those of tools that only read and have no network access, in an
/// empty folder. A "not found" error there is accepted; a panic, invalid arguments and a timeout
/// are findings. [`ToolChecks::examples_in`] provides the session for the examples,
/// [`ToolChecks::run_writing_tools`] runs the other tools as well.
///
/// # Panics
///
/// Panics with all findings, each with the tool, the place and the fix.
#[track_caller]
pub fn check_all(registry: &Registry) {
    ToolChecks::default().run(registry);
}

/// The checks to run; all of them by default.
///
/// # Examples
///
/// ```
/// use tool_sdk::Registry;
/// use tool_sdk::provider::Dialect;
/// use tool_sdk::testing::ToolChecks;
///
/// let registry = Registry::builder().build()?;
/// ToolChecks::default().without_dialect(Dialect::OpenAiStrict).run(&registry);
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ToolChecks {
    dialects: Vec<Dialect>,
    examples: ExampleRunner,
}

impl Default for ToolChecks {
    fn default() -> Self {
        Self { dialects: Dialect::ALL.to_vec(), examples: ExampleRunner::default() }
    }
}

impl ToolChecks {
    /// Skips the rules of one dialect.
    #[must_use]
    pub fn without_dialect(mut self, dialect: Dialect) -> Self {
        self.dialects.retain(|other| *other != dialect);
        self
    }

    /// Runs the examples in `session`, which provides what tools need, such as a `Workspace` over a
    /// folder of the test. Every example must succeed there.
    #[must_use]
    pub fn examples_in(mut self, session: Session) -> Self {
        self.examples.session = Some(session);
        self
    }

    /// Runs the examples of all tools, including those that write, execute, or access the network.
    /// Use this only where they cannot do harm.
    #[must_use]
    pub fn run_writing_tools(mut self) -> Self {
        self.examples.writing = true;
        self
    }

    /// Returns all findings, one line each.
    #[must_use]
    pub fn findings(&self, registry: &Registry) -> Vec<String> {
        let mut findings = Vec::new();
        let ran = self.examples.run_examples(registry);
        for tool in registry {
            let definition = tool.definition();
            let mut found = Vec::new();
            check_documentation(definition, &mut found);
            check_schema(definition, &mut found);
            check_display(definition, &mut found);
            check_examples(&**tool, &mut found);
            // A tool that is hidden from models is sent to no provider.
            for &dialect in self.dialects.iter().filter(|_| !definition.flags.hidden) {
                let lints = provider::lint(definition, dialect);
                found.extend(lints.into_iter().map(|lint| {
                    let place = if lint.path.is_empty() { "" } else { ": " };
                    format!("{dialect}: {}{place}{}; {}", lint.path, lint.problem, lint.fix)
                }));
            }
            let name = &definition.name;
            let own = ran.iter().filter(|(tool, _)| tool == name.as_str());
            found.extend(own.map(|(_, failure)| failure.clone()));
            findings.extend(
                found
                    .into_iter()
                    .map(|it| format!("`{name}` ({}): {it}", definition.describe_location())),
            );
        }
        findings
    }

    /// Runs the checks.
    ///
    /// # Panics
    ///
    /// Panics with all findings.
    #[track_caller]
    pub fn run(&self, registry: &Registry) {
        let findings = self.findings(registry);
        let is_of_a_dialect = |finding: &String| {
            self.dialects.iter().any(|dialect| finding.contains(&format!("): {dialect}: ")))
        };
        let hint = if findings.iter().any(is_of_a_dialect) {
            "\n`ToolChecks::without_dialect(..)` leaves a format out"
        } else {
            ""
        };
        assert!(
            findings.is_empty(),
            "the tools have findings ({}):\n{}{hint}",
            findings.len(),
            findings.join("\n")
        );
    }
}

fn check_documentation(definition: &Definition, found: &mut Vec<String>) {
    if definition.description.trim().is_empty() {
        found.push("has no description; say when to use it".to_owned());
    }
    for (name, schema) in definition.parameters.properties() {
        if !is_described(schema) {
            found.push(format!("the parameter `{name}` has no description; add a `///` comment"));
        }
    }
    let root = definition.parameters.as_map();
    walk::for_each_subschema(root, &mut |_, step, inner| {
        if let Value::Object(inner) = inner {
            check_field_descriptions(inner, &step, 0, found);
        }
    });
}

fn is_described(schema: &Value) -> bool {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    !text.trim().is_empty()
}

/// Finds fields without a description in `schema` and its subschemas.
fn check_field_descriptions(
    schema: &Map<String, Value>,
    path: &str,
    depth: usize,
    found: &mut Vec<String>,
) {
    /// Generated schemas do not nest deeper.
    const MAX_DEPTH: usize = 32;
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        // A constant or an enum explains itself, and a reference has the description at its target.
        let says_all = ["const", "enum", "$ref"].iter().any(|it| field.get(*it).is_some());
        if !says_all && !is_described(field) {
            let place = describe_field_parent(path);
            let text =
                "has no description; add a `///` comment, or take a type of your own in its place";
            found.push(format!("the field `{name}` {place} {text}"));
        }
    }
    walk::for_each_subschema(schema, &mut |_, step, inner| {
        if let Value::Object(inner) = inner
            && depth < MAX_DEPTH
        {
            check_field_descriptions(inner, &format!("{path}{step}"), depth + 1, found);
        }
    });
}

/// Describes the schema at the pointer `path` as the parameter and fields that lead there.
fn describe_field_parent(path: &str) -> String {
    let (mut place, mut steps) = (String::new(), path.split('/').skip(1));
    while let Some(step) = steps.next() {
        match (step, place.is_empty()) {
            ("properties", true) => place.extend(steps.next()),
            ("properties", false) => place.extend([".", steps.next().unwrap_or_default()]),
            ("items", false) => place.push_str("[]"),
            _ => return format!("at {path}"),
        }
    }
    format!("of `{place}`")
}

/// Finds contradictions in the schema, unsupported keywords, and defaults that violate the schema.
fn check_schema(definition: &Definition, found: &mut Vec<String>) {
    let root = definition.parameters.as_map();
    let odd = find_contradictions(root).into_iter().map(|it| format!("its schema is wrong {it}"));
    found.extend(odd);
    found.extend(find_self_violations(root).into_iter().map(|what| format!("its schema's {what}")));
    found.extend(unsupported(root).map(|what| format!("its schema's {what}")));
}

fn check_display(definition: &Definition, found: &mut Vec<String>) {
    let display = &definition.display;
    let shown = display.show.iter().filter(|name| display.primary.as_ref() != Some(*name));
    for name in display.primary.iter().chain(shown) {
        if definition.parameters.property(name).is_none() {
            found.push(format!("`display` names `{name}`, which is not a parameter"));
        }
    }
}

fn check_examples(tool: &dyn Tool, found: &mut Vec<String>) {
    for example in &tool.definition().examples {
        if let Err(invalid) = tool.prepare(&RawArgs::new(example.as_ref())) {
            found.push(format!("the example {example} is not accepted: {invalid}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;
    use crate::context::{Context, FromContext as _, State};
    use crate::error::ToolError;
    use crate::name::ToolName;
    use crate::risk::{Risk, RiskClass};
    use crate::schema::Schema;
    use crate::tool::DynamicTool;

    /// Creates a tool of this risk class whose only example is run by `run`.
    fn registry(
        class: RiskClass,
        run: impl Fn(&Context) -> Result<&'static str, ToolError> + Send + Sync + 'static,
    ) -> Registry {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let schema = Schema::from_value(schema).unwrap();
        let mut definition =
            Definition::new(ToolName::from_static("ring"), "Rings.", schema).risk(Risk::new(class));
        definition.examples = vec!["{}".into()];
        let run = Arc::new(run);
        let tool = DynamicTool::new(definition, move |_: Value, cx: Context| {
            let run = Arc::clone(&run);
            async move { run(&cx) }
        });
        Registry::builder().add(tool).build().unwrap()
    }

    #[track_caller]
    fn check(checks: &ToolChecks, registry: &Registry, expected: &[&str]) {
        let findings = checks.findings(registry);
        assert_eq!(findings.len(), expected.len(), "{findings:?}");
        for (finding, words) in findings.iter().zip(expected) {
            assert!(finding.contains(words), "{finding}");
        }
    }

    #[test]
    fn reports_examples_that_fail() {
        let refusing = registry(RiskClass::Read, |_| Err(ToolError::invalid("a", "is odd")));
        check(&ToolChecks::default(), &refusing, &["the example {} fails: `a`: is odd"]);
        let panicking = registry(RiskClass::Read, |_| panic!("no bell"));
        check(&ToolChecks::default(), &panicking, &["the example {} fails"]);
    }

    #[test]
    fn ignores_not_found_errors_in_an_empty_folder() {
        let looking = || {
            registry(RiskClass::Read, |cx| {
                let bell = State::<&'static str>::from_context(cx)?;
                if bell.is_empty() { Err(ToolError::not_found("no bell")) } else { Ok(*bell) }
            })
        };
        check(&ToolChecks::default(), &looking(), &[]);
        let lent = |bell: &'static str| {
            ToolChecks::default().examples_in(Session::new("t").with_service(bell))
        };
        check(&lent("ding"), &looking(), &[]);
        check(&lent(""), &looking(), &["the example {} fails: no bell"]);
    }

    #[test]
    fn runs_writing_tools_only_on_request() {
        for class in [RiskClass::Write, RiskClass::Execute] {
            let rings = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&rings);
            let ringing = registry(class, move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok("ding")
            });
            check(&ToolChecks::default(), &ringing, &[]);
            assert_eq!(rings.load(Ordering::Relaxed), 0);
            check(&ToolChecks::default().run_writing_tools(), &ringing, &[]);
            assert_eq!(rings.load(Ordering::Relaxed), 1);
        }
    }

    #[test]
    fn reports_contradictions_and_missing_descriptions() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": { "type": "integer", "description": "A.", "minimum": 5, "maximum": 1 },
                "b": { "type": "string", "description": "B.", "maxLength": 1, "default": "long" },
                "c": { "type": "object", "description": "C.", "additionalProperties": false,
                       "properties": { "d": { "type": "string" }, "kind": { "const": "e" } } },
            },
            "additionalProperties": false,
        });
        let schema = Schema::from_value(schema).unwrap();
        let definition = Definition::new(ToolName::from_static("odd"), "Is odd.", schema);
        let tool = DynamicTool::new(definition, |_: Value, _: Context| async { "" });
        let registry = Registry::builder().add(tool).build().unwrap();
        let checks = ToolChecks { dialects: Vec::new(), ..ToolChecks::default() };
        check(
            &checks,
            &registry,
            &[
                "the field `d` of `c` has no description",
                "its schema is wrong at /properties/a: nothing has `minimum` 5 and `maximum` 1",
                "its schema's /properties/b is wrong: `default` has 4 characters",
            ],
        );
    }

    #[test]
    fn fields_are_named_by_the_way_to_them() {
        for (path, expected) in [
            ("/properties/a", "of `a`"),
            ("/properties/a/items/properties/b", "of `a[].b`"),
            ("/properties/a/anyOf/0", "at /properties/a/anyOf/0"),
            ("/$defs/Tree", "at /$defs/Tree"),
        ] {
            assert_eq!(describe_field_parent(path), expected);
        }
    }

    #[tokio::test]
    async fn checks_run_inside_a_runtime() {
        check(&ToolChecks::default(), &registry(RiskClass::Read, |_| Ok("ding")), &[]);
    }
}
