//! The tool `mutation_begin`: begins a mutation, unless it was made too often.

use serde_json::json;
use tool_sdk::{Context, Ledger, MutationTransaction, Output, ToolError, TypedOutput, tool};

use super::format_transaction;

/// Begin a mutation: a change outside of the workspace, such as a deployment or a sent message.
///
/// Call it before the change, and `mutation_record` after each step of it. A mutation that was made
/// several times within an hour is blocked: find out then why it had no effect. The result has the
/// id of the transaction.
#[tool(
    read,
    category = "ledger",
    parallel = exclusive,
    approval(required = |_, _| false),
    display(name = "Mutation", primary = action, show(action), summary = "Beginning: {action}"),
    example = r#"{"action": "deploy api to production", "details": "version 1.4.2"}"#
)]
pub async fn mutation_begin(
    /// What is changed and how. Use the same words for the same mutation.
    #[arg(length = 1..=500)]
    action: String,
    /// What else is to be known about it.
    #[arg(length = ..=4000)]
    details: Option<String>,
    cx: &Context,
) -> Result<TypedOutput<MutationTransaction>, ToolError> {
    let ledger = cx.session().extension::<Ledger>();
    let session = cx.session().id().to_owned();
    let begin = move || ledger.begin(&session, action.trim(), details.into());
    let transaction = cx.run_blocking(move |_| begin()).await?;
    cx.emit("mutation.recorded", json!(transaction));
    Ok(TypedOutput::new(Output::text(format_transaction(&transaction)), transaction))
}
