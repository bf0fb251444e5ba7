//! The tool `terminal`: starts, shows and ends the terminal that the user watches.

use tool_sdk::{Context, Output, Resource, RiskClass, State, ToolError, tool};

use super::TerminalHandle;
use super::status_text::format_status;

/// Start, end or look at the terminal that the user can watch and type into.
///
/// Starting one that runs changes nothing. A screenshot is the text that the terminal shows.
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
    #[arg(choices("start", "stop", "status", "screenshot"))]
    action: String,
    terminal: State<TerminalHandle>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let backend = terminal.backend();
    let text = match &*action {
        "start" => format_status("terminal", &backend.start(cx).await?),
        "stop" if backend.stop(cx).await? => "The terminal was ended.".to_owned(),
        "stop" => NO_TERMINAL.to_owned(),
        "screenshot" => return backend.screenshot(cx).await?.ok_or_else(not_running),
        // The schema allows only `status` besides these.
        _ => match backend.status(cx).await? {
            Some(shown) => format_status("terminal", &shown),
            None => NO_TERMINAL.to_owned(),
        },
    };
    Ok(Output::text(text))
}

const NO_TERMINAL: &str = "No terminal runs.";

fn not_running() -> ToolError {
    ToolError::not_found("no terminal runs").hint("start it with the action `start`")
}

/// The resources for the permission rules: the action. Looking at the terminal is a read and needs
/// no approval.
fn approval_resources(args: &TerminalArgs, _: &Context) -> Vec<Resource> {
    let subject = Resource::new(&args.action);
    vec![match &*args.action {
        "status" | "screenshot" => subject.with_class(RiskClass::Read),
        _ => subject,
    }]
}
