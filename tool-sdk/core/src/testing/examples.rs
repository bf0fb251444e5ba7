//! Runs the examples of tools.
//!
//! **Invariant:** nothing that writes, executes or accesses the network runs unless the author of
//! the check requested it.

use std::borrow::Cow;

use super::example_folder::ExampleFolder;
use super::harness::Harness;
use crate::call::RawArgs;
use crate::context::Session;
use crate::error::ErrorKind;
use crate::registry::Registry;
use crate::risk::RiskClass;
use crate::tool::Definition;

/// The session of the examples, and which of them run.
#[derive(Clone, Debug, Default)]
pub(super) struct ExampleRunner {
    /// The session that the author provides.
    pub(super) session: Option<Session>,
    /// Whether tools that write may run.
    pub(super) writing: bool,
}

impl ExampleRunner {
    /// Runs the permitted examples; returns the tool and the error of each failure.
    pub(super) fn run_examples(&self, registry: &Registry) -> Vec<(String, String)> {
        let chosen: Vec<(String, String)> = registry
            .into_iter()
            .filter(|tool| self.may_run(tool.definition()))
            .flat_map(|tool| {
                let name = tool.definition().name.to_string();
                let accepted =
                    |it: &&Cow<'static, str>| tool.prepare(&RawArgs::new(&***it)).is_ok();
                let examples = tool.definition().examples.iter().filter(accepted);
                examples.map(move |it| (name.clone(), it.clone().into_owned()))
            })
            .collect();
        if chosen.is_empty() {
            return Vec::new();
        }
        // The caller may be in a runtime, which cannot block on another one.
        let work = || self.run_chosen(registry, chosen);
        match std::thread::scope(|scope| scope.spawn(work).join()) {
            Ok(failures) => failures,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn may_run(&self, definition: &Definition) -> bool {
        let risk = definition.risk;
        let is_harmless = risk.class == RiskClass::Read && !risk.open_world;
        is_harmless && !definition.flags.requires_auth || self.writing
    }

    fn run_chosen(
        &self,
        registry: &Registry,
        chosen: Vec<(String, String)>,
    ) -> Vec<(String, String)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (runtime, place) = match (runtime, ExampleFolder::new()) {
            (Ok(runtime), Ok(place)) => (runtime, place),
            (Err(error), _) | (_, Err(error)) => {
                let told = |(name, _)| (name, format!("no example can be run: {error}"));
                return chosen.into_iter().map(told).collect();
            }
        };
        let session = self.session.clone().unwrap_or_else(|| place.lend_to(Session::new("test")));
        let harness = Harness::from_registry(registry.clone()).with_session(session);
        let mut failures = Vec::new();
        for (name, example) in chosen {
            let outcome = runtime.block_on(harness.call(&name, example.as_str()));
            match outcome.result {
                Err(error) if self.is_own_failure(error.kind()) => {
                    failures.push((name, format!("the example {example} fails: {error}")));
                }
                _ => {}
            }
        }
        failures
    }

    /// Whether a failure counts. In an empty folder most examples find nothing; they must succeed
    /// only in a session that the author provides.
    fn is_own_failure(&self, kind: ErrorKind) -> bool {
        let own = [ErrorKind::InvalidArgs, ErrorKind::Internal, ErrorKind::Timeout];
        self.session.is_some() || own.contains(&kind)
    }
}
