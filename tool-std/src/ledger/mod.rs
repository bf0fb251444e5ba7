//! Tools that keep a ledger of mutations: `mutation_begin`, `mutation_record` and `mutation_status`.
//!
//! A mutation is a change outside of the workspace that is not undone by itself, such as a
//! deployment. The [`Ledger`](tool_sdk::Ledger) is an extension of the session: the host attaches
//! one with a file, and a session without one keeps its mutations in memory.

mod begin_tool;
mod record_tool;
mod status_tool;

use std::fmt::Write as _;

use tool_sdk::MutationTransaction;

pub use self::begin_tool::mutation_begin;
pub use self::record_tool::mutation_record;
pub use self::status_tool::{MutationReport, mutation_status};

/// Formats a transaction for the model: a heading, then one line per phase.
fn format_transaction(transaction: &MutationTransaction) -> String {
    let MutationTransaction { id, fingerprint, timeline, .. } = transaction;
    let mut text = format!("{id} {}: {fingerprint}", transaction.phase());
    for entry in timeline {
        let _ = write!(text, "\n  {}", entry.phase);
        if let Some(details) = entry.details.as_str() {
            let _ = write!(text, ": {details}");
        }
    }
    text
}
