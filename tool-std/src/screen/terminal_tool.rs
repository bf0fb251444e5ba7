//! The tool `terminal`: starts, stops and queries the terminal that the user watches.

use tool_sdk::{Context, Output, Resource, RiskClass, State, ToolError, tool};

use super::{ScreenLocation, TerminalHandle};

/// Start, end or look at the terminal that the user can watch and type into.
///
/// Starting one that runs changes nothing.
#[tool(
    execute,
    register = false,
    category = "shell",
    display(name = "Terminal", primary = action, summary = "Terminal: {action}"),
    approval(resources = approval_resources),
    timeout = "60s",
    example = r#"{"action": "status"}"#
)]
pub async fn terminal(
    /// What to do.
    #[arg(choices("start", "stop", "status"))]
    action: String,
    terminal: State<TerminalHandle>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let backend = terminal.backend();
    let text = match &*action {
        "start" => format_status(&backend.start(cx).await?),
        "stop" => if backend.stop(cx).await? { TERMINAL_ENDED } else { NO_TERMINAL }.to_owned(),
        // The schema allows only `status` besides these.
        _ => match backend.status(cx).await? {
            Some(shown) => format_status(&shown),
            None => NO_TERMINAL.to_owned(),
        },
    };
    Ok(Output::text(text))
}

const TERMINAL_ENDED: &str = "The terminal was ended.";
const NO_TERMINAL: &str = "No terminal runs.";

/// Formats the status of a running terminal for the model.
fn format_status(shown: &ScreenLocation) -> String {
    let mut text = "The terminal runs.".to_owned();
    if let Some(address) = &shown.address {
        text.push_str("\naddress: ");
        text.push_str(address);
    }
    if let Some(session) = shown.session {
        text.push_str("\nsession ID: ");
        text.push_str(&session.to_string());
    }
    text
}

/// The resources for the permission rules: the action. Querying the status is a read and needs no
/// approval.
fn approval_resources(args: &TerminalArgs, _: &Context) -> Vec<Resource> {
    let subject = Resource::new(&args.action);
    vec![if args.action == "status" { subject.with_class(RiskClass::Read) } else { subject }]
}
