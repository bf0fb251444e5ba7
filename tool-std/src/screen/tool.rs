//! The tool `terminal`: starts, stops and queries the terminal that the user watches.

use tool_sdk::{Context, Output, RiskClass, State, Subject, ToolError, tool};

use super::{Shown, Terminal};

/// Start, end or look at the terminal that the user can watch and type into.
///
/// Starting one that runs changes nothing.
#[tool(
    execute,
    register = false,
    category = "shell",
    display(name = "Terminal", primary = action, summary = "Terminal: {action}"),
    approval(subjects = subjects),
    timeout = "60s",
    example = r#"{"action": "status"}"#
)]
pub async fn terminal(
    /// What to do.
    #[arg(choices("start", "stop", "status"))]
    action: String,
    terminal: State<Terminal>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let backend = terminal.backend();
    let text = match &*action {
        "start" => running(&backend.start(cx).await?),
        "stop" => if backend.stop(cx).await? { ENDED } else { NONE }.to_owned(),
        // The schema allows only `status` besides these.
        _ => match backend.status(cx).await? {
            Some(shown) => running(&shown),
            None => NONE.to_owned(),
        },
    };
    Ok(Output::text(text))
}

const ENDED: &str = "The terminal was ended.";
const NONE: &str = "No terminal runs.";

/// Formats the status of a running terminal for the model.
fn running(shown: &Shown) -> String {
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
fn subjects(args: &TerminalArgs, _: &Context) -> Vec<Subject> {
    let subject = Subject::new(&args.action);
    vec![if args.action == "status" { subject.class(RiskClass::Read) } else { subject }]
}
