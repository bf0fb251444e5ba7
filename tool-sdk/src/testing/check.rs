//! What every tool should be, checked over all that are linked.

use serde_json::Value;

use crate::call::RawArgs;
use crate::registry::Registry;
use crate::surface::provider::{self, Dialect};
use crate::tool::{Definition, Tool};

/// Checks every tool of `registry`: described, documented, with examples that its own
/// contract accepts, and acceptable to every provider.
///
/// # Panics
///
/// Panics with every finding, each with the tool, the place and the fix.
#[track_caller]
pub fn check_all(registry: &Registry) {
    Checks::default().run(registry);
}

/// Which checks are made; all of them by default.
///
/// # Examples
///
/// ```
/// use tool_sdk::Registry;
/// use tool_sdk::provider::Dialect;
/// use tool_sdk::testing::Checks;
///
/// let registry = Registry::builder().build()?;
/// Checks::default().without(Dialect::OpenAiStrict).run(&registry);
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Checks {
    dialects: Vec<Dialect>,
}

impl Default for Checks {
    fn default() -> Self {
        Self { dialects: Dialect::ALL.to_vec() }
    }
}

impl Checks {
    /// Leaves out what one dialect asks for.
    #[must_use]
    pub fn without(mut self, dialect: Dialect) -> Self {
        self.dialects.retain(|other| *other != dialect);
        self
    }

    /// Everything that is wrong, a line each.
    #[must_use]
    pub fn findings(&self, registry: &Registry) -> Vec<String> {
        let mut findings = Vec::new();
        for tool in registry {
            let definition = tool.definition();
            let mut found = Vec::new();
            documented(definition, &mut found);
            displayed(definition, &mut found);
            examples(&**tool, &mut found);
            for &dialect in &self.dialects {
                let lints = provider::lint(definition, dialect);
                found.extend(lints.into_iter().map(|finding| format!("{dialect}: {finding}")));
            }
            let name = &definition.name;
            findings.extend(
                found.into_iter().map(|it| format!("`{name}` ({}): {it}", definition.origin())),
            );
        }
        findings
    }

    /// Makes the checks.
    ///
    /// # Panics
    ///
    /// Panics with every finding.
    #[track_caller]
    pub fn run(&self, registry: &Registry) {
        let findings = self.findings(registry);
        assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    }
}

fn documented(definition: &Definition, found: &mut Vec<String>) {
    if definition.description.trim().is_empty() {
        found.push("has no description; say when to use it".to_owned());
    }
    for (name, schema) in definition.parameters.properties() {
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        if text.trim().is_empty() {
            found.push(format!("the parameter `{name}` has no description; add a `///` comment"));
        }
    }
}

fn displayed(definition: &Definition, found: &mut Vec<String>) {
    let display = &definition.display;
    for name in display.primary.iter().chain(&display.show) {
        if definition.parameters.property(name).is_none() {
            found.push(format!("`display` names `{name}`, which is no parameter"));
        }
    }
}

fn examples(tool: &dyn Tool, found: &mut Vec<String>) {
    for example in &tool.definition().examples {
        if let Err(invalid) = tool.prepare(&RawArgs::new(example.as_ref())) {
            found.push(format!("the example {example} is not accepted: {invalid}"));
        }
    }
}
