//! The tool `mutation_record`: takes a mutation to its next phase.

use serde_json::json;
use tool_sdk::{
    Context, Ledger, MutationPhase, MutationTransaction, Output, ToolError, TypedOutput, tool,
};

use super::format_transaction;

/// Record how far a mutation is.
///
/// `dry_run` was tried without an effect, `applied` was made, `verified` has the effect that was
/// wanted, `failed` has not. `dry_run` is optional and may repeat; `verified` and `failed` follow
/// `applied`, and `failed` may follow every phase before the end. A mutation that fails after it was
/// applied is rolled back, where the host can.
#[tool(
    read,
    category = "ledger",
    parallel = exclusive,
    approval(required = |_, _| false),
    display(name = "Mutation", primary = phase, show(transaction_id, phase), summary = "Mutation: {phase}")
)]
pub async fn mutation_record(
    /// The id from `mutation_begin`.
    #[arg(length = 1..=64)]
    transaction_id: String,
    /// The phase that was reached.
    #[arg(choices("dry_run", "applied", "verified", "failed"))]
    phase: String,
    /// What happened.
    #[arg(length = ..=4000)]
    details: Option<String>,
    cx: &Context,
) -> Result<TypedOutput<MutationTransaction>, ToolError> {
    let ledger = cx.session().extension::<Ledger>();
    let phase: MutationPhase = phase.parse()?;
    let record = move || ledger.record(&transaction_id, phase, details.into());
    let transaction = cx.run_blocking(move |_| record()).await?;
    cx.emit("mutation.recorded", json!(transaction));
    Ok(TypedOutput::new(Output::text(format_transaction(&transaction)), transaction))
}
