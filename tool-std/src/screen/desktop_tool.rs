//! The tool `desktop`: starts, shows and ends the desktop that the user watches.

use tool_sdk::{Context, Output, Resource, RiskClass, State, ToolError, tool};

use super::status_text::format_status;
use super::{DesktopHandle, DesktopSize};

/// Start, end or look at the desktop that the user can watch and use.
///
/// Commands that get the variables of its status show their windows there. Starting one that
/// runs changes nothing, not even its size. A screenshot is an image.
#[tool(
    execute,
    register = false,
    category = "shell",
    display(name = "Desktop", primary = action, show(action, width, height), summary = "Desktop: {action}"),
    approval(resources = approval_resources),
    timeout = "60s",
    example = r#"{"action": "start", "width": 1280, "height": 800}"#
)]
pub async fn desktop(
    /// What to do.
    #[arg(choices("start", "stop", "status", "screenshot"))]
    action: String,
    /// The width of a desktop that is started, in pixels.
    #[arg(default = 1280, range = 320..=3840)]
    width: u16,
    /// The height of a desktop that is started, in pixels.
    #[arg(default = 800, range = 240..=2160)]
    height: u16,
    desktop: State<DesktopHandle>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let backend = desktop.backend();
    let text = match &*action {
        "start" => {
            format_status("desktop", &backend.start(DesktopSize { width, height }, cx).await?)
        }
        "stop" if backend.stop(cx).await? => "The desktop was ended.".to_owned(),
        "stop" => NO_DESKTOP.to_owned(),
        "screenshot" => return backend.screenshot(cx).await?.ok_or_else(not_running),
        // The schema allows only `status` besides these.
        _ => match backend.status(cx).await? {
            Some(shown) => format_status("desktop", &shown),
            None => NO_DESKTOP.to_owned(),
        },
    };
    Ok(Output::text(text))
}

const NO_DESKTOP: &str = "No desktop runs.";

fn not_running() -> ToolError {
    ToolError::not_found("no desktop runs").hint("start it with the action `start`")
}

/// The resources for the permission rules: the action. Looking at the desktop is a read and needs
/// no approval.
fn approval_resources(args: &DesktopArgs, _: &Context) -> Vec<Resource> {
    let subject = Resource::new(&args.action);
    vec![match &*args.action {
        "status" | "screenshot" => subject.with_class(RiskClass::Read),
        _ => subject,
    }]
}
