//! A hook before and after the call: it counts what each session spends on each tool, and ends the
//! model's turn when the budget is spent.
//!
//! A call that ran costs, also if it failed; a denied call does not. Calls that run at the same
//! time may together exceed the budget.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tool_sdk::{
    Call, Hook, HookContext, HookDecision, HookPriority, Output, Pipeline, Registry, Session,
    ToolError, tool,
};

/// Ask a library for a book.
#[tool(read)]
fn find_book(
    /// Its title.
    title: String,
) -> Result<String, ToolError> {
    match title.as_str() {
        "" => Err(ToolError::not_found("a book without a title is hard to find")),
        title => Ok(format!("`{title}` is on the third shelf")),
    }
}

/// The amount spent, by session and tool.
#[derive(Clone, Default)]
struct Spent(Arc<Mutex<BTreeMap<(String, String), u64>>>);

impl Spent {
    fn books(&self) -> MutexGuard<'_, BTreeMap<(String, String), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn by(&self, session: &str) -> u64 {
        self.books().iter().filter(|((who, _), _)| who == session).map(|(_, cost)| cost).sum()
    }
}

/// Allows every session this amount.
struct Costs {
    budget: u64,
    price_of: fn(&str) -> u64,
    spent: Spent,
}

impl Hook for Costs {
    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        let spent = self.spent.by(call.session().id());
        Ok(match spent < self.budget {
            true => HookDecision::none(),
            false => HookDecision::halt(format!("{spent} of {} are spent", self.budget)),
        })
    }

    async fn after(
        &self,
        call: &HookContext<'_>,
        _: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        let (session, tool) = (call.session().id(), call.definition().name.as_str());
        let key = (session.to_owned(), tool.to_owned());
        *self.spent.books().entry(key).or_default() += (self.price_of)(tool);
        Ok(())
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spent = Spent::default();
    let costs = Costs { budget: 4, price_of: |_| 2, spent: spent.clone() };
    let pipeline = Pipeline::new(Registry::linked()?).hook("*", HookPriority::DEFAULT, costs);
    let (reader, other) = (Session::new("reader"), Session::new("other"));
    for (session, title, halted) in [
        (&reader, "Emma", None),
        (&reader, "", None),
        (&reader, "Dune", Some("4 of 4 are spent")),
        (&other, "Dune", None),
    ] {
        let call = Call::new("find_book", format!(r#"{{"title": "{title}"}}"#));
        let outcome = pipeline.call(session, call).await;
        println!("{}", outcome.text());
        assert_eq!(outcome.halt_reason(), halted);
    }
    assert_eq!((spent.by("reader"), spent.by("other")), (4, 2));
    Ok(())
}

// F68
#[cfg(test)]
#[test]
fn a_session_ends_when_its_budget_does() {
    main().expect("what it shows holds");
}
