//! A desktop that the programs `Xvfb` and `x11vnc` run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tool_sdk::process::{BackgroundCommand, BackgroundProcess};
use tool_sdk::{Attachment, Context, Output, ToolError};

use super::framebuffer::encode_png;
use super::screen_process::{RunningScreen, ScreenProcesses, SessionScreen, wait_until_ready};
use super::{BackendFuture, DesktopBackend, DesktopSize, ScreenLocation};

const XVFB: &str = "Xvfb";
const X11VNC: &str = "x11vnc";

/// The characters of a password, without those that look alike.
const PASSWORD_CHARACTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789A";

/// A desktop without a monitor: `Xvfb` is the display server, `x11vnc` shows it, for the tool
/// [`desktop`](fn@super::desktop).
///
/// The user watches and uses it with any VNC viewer on this machine; the server listens on loopback
/// only and asks for a password that lies in a file which only this user can read. Commands reach the
/// display with the variables `DISPLAY` and `XAUTHORITY` of the status. A screenshot is a PNG image.
/// Each session has a desktop of its own, which ends with the session.
///
/// # Examples
///
/// ```
/// use tool_sdk::Session;
/// use tool_std::screen::{DesktopHandle, XvfbDesktop};
///
/// let session = Session::new("s1").with_service(DesktopHandle::from_backend(XvfbDesktop));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct XvfbDesktop;

struct RunningDesktop {
    processes: ScreenProcesses,
    display_server: Arc<BackgroundProcess>,
    vnc_server: Arc<BackgroundProcess>,
    location: ScreenLocation,
}

impl RunningDesktop {
    async fn start(size: DesktopSize, cx: &Context) -> Result<Self, ToolError> {
        let processes = ScreenProcesses::in_private_folder()?;
        let authority = write_authority(&processes)?;
        let display_server = start_display_server(&processes, &authority, size, cx)?;
        let display = wait_until_ready(&display_server, XVFB, find_display_number).await?;
        let display = format!(":{display}");
        let password = write_password(&processes)?;
        let vnc_server = start_vnc_server(&processes, &display, &authority, &password, cx)?;
        let port = wait_until_ready(&vnc_server, X11VNC, find_port).await?;
        let location = ScreenLocation::new()
            .address(format!("vnc://127.0.0.1:{port} (password in {})", password.display()))
            .variable("DISPLAY", display)
            .variable("XAUTHORITY", authority.display().to_string());
        Ok(Self { processes, display_server, vnc_server, location })
    }

    /// Reads the screen from the file in which the display server keeps it.
    fn take_screenshot(&self) -> Result<Output, ToolError> {
        let unreadable = |error| ToolError::unavailable("the desktop cannot be read").source(error);
        let dump = self.processes.read_file("screen/Xvfb_screen0");
        let png = dump.and_then(|dump| encode_png(&dump)).map_err(unreadable)?;
        Ok(Output::text("The desktop is attached.").attach(Attachment::bytes("image/png", png)))
    }
}

fn start_display_server(
    processes: &ScreenProcesses,
    authority: &Path,
    size: DesktopSize,
    cx: &Context,
) -> Result<Arc<BackgroundProcess>, ToolError> {
    let folder = processes.create_folder("screen").map_err(unwritable)?;
    let screen = format!("{}x{}x24", size.width, size.height);
    // It chooses a free display and prints its number.
    let words = ["-displayfd", "1", "-screen", "0", &screen, "-nolisten", "tcp", "-noreset"];
    let mut arguments: Vec<OsString> = words.iter().map(Into::into).collect();
    arguments.extend(["-auth".into(), authority.into(), "-fbdir".into(), folder.into()]);
    processes.start_program(BackgroundCommand::new(XVFB, arguments), XVFB, "xvfb", cx)
}

fn start_vnc_server(
    processes: &ScreenProcesses,
    display: &str,
    authority: &Path,
    password: &Path,
    cx: &Context,
) -> Result<Arc<BackgroundProcess>, ToolError> {
    // Without the user's settings, for any number of viewers, one after the other or together.
    let words = ["-norc", "-localhost", "-forever", "-shared", "-quiet", "-display", display];
    let mut arguments: Vec<OsString> = words.iter().map(Into::into).collect();
    arguments.extend(["-auth".into(), authority.into(), "-passwdfile".into(), password.into()]);
    processes.start_program(BackgroundCommand::new(X11VNC, arguments), X11VNC, X11VNC, cx)
}

/// Finds the line with which `Xvfb` says which display it is.
fn find_display_number(output: &str) -> Option<u32> {
    output.split_inclusive('\n').find_map(|line| line.strip_suffix('\n')?.trim().parse().ok())
}

/// Finds the line with which `x11vnc` says where it listens.
fn find_port(output: &str) -> Option<u16> {
    output
        .split_inclusive('\n')
        .find_map(|line| line.strip_suffix('\n')?.trim().strip_prefix("PORT=")?.parse().ok())
}

/// Writes the key of the display, as `Xauthority` files have it (`Xauth.h` of X.Org): for every
/// machine and every display, since the server chooses its number itself.
fn write_authority(processes: &ScreenProcesses) -> Result<PathBuf, ToolError> {
    const EVERY_MACHINE: [u8; 2] = [0xff, 0xff];
    const NAME: &[u8] = b"MIT-MAGIC-COOKIE-1";
    let mut entry = EVERY_MACHINE.to_vec();
    for field in [&[][..], &[], NAME, &random_bytes::<16>()?] {
        entry.extend(u16::try_from(field.len()).unwrap_or(0).to_be_bytes());
        entry.extend(field);
    }
    processes.write_file("authority", &entry).map_err(unwritable)
}

/// Writes the password of the VNC server: eight characters, which is all that the protocol reads.
fn write_password(processes: &ScreenProcesses) -> Result<PathBuf, ToolError> {
    let characters = random_bytes::<8>()?
        .map(|byte| PASSWORD_CHARACTERS[usize::from(byte) % PASSWORD_CHARACTERS.len()]);
    processes.write_file("password", &characters).map_err(unwritable)
}

fn random_bytes<const N: usize>() -> Result<[u8; N], ToolError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        ToolError::unavailable("the system has no random numbers").source(error)
    })?;
    Ok(bytes)
}

fn unwritable(error: std::io::Error) -> ToolError {
    ToolError::unavailable("a file of the desktop cannot be written").source(error)
}

impl RunningScreen for RunningDesktop {
    fn processes(&self) -> &ScreenProcesses {
        &self.processes
    }

    fn location(&self) -> ScreenLocation {
        self.location.clone()
    }

    async fn is_running(&self) -> Result<bool, ToolError> {
        Ok(self.display_server.exit().is_none() && self.vnc_server.exit().is_none())
    }
}

/// The desktop of the session.
fn session_desktop(cx: &Context) -> SessionScreen<RunningDesktop> {
    cx.session().extension()
}

impl DesktopBackend for XvfbDesktop {
    fn start<'a>(
        &'a self,
        size: DesktopSize,
        cx: &'a Context,
    ) -> BackendFuture<'a, ScreenLocation> {
        Box::pin(async move {
            session_desktop(cx).locate_or_start(RunningDesktop::start(size, cx), cx).await
        })
    }

    fn stop<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, bool> {
        Box::pin(async { session_desktop(cx).stop().await })
    }

    fn status<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, Option<ScreenLocation>> {
        Box::pin(async { session_desktop(cx).locate().await })
    }

    fn screenshot<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, Option<Output>> {
        Box::pin(async {
            let kept = session_desktop(cx);
            let kept = kept.lock_running().await?;
            kept.as_ref().map(RunningDesktop::take_screenshot).transpose()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_when_it_is_whole() {
        assert_eq!(find_display_number("_XSERVTransmkdir: a warning\n17\n"), Some(17));
        assert_eq!(find_display_number("1"), None);
        assert_eq!(find_port("a warning\nPORT=5900\n"), Some(5900));
        assert_eq!(find_port("PORT=59"), None);
    }
}
