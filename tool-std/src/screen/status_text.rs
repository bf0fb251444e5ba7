//! The status of a running screen as the text that a model reads.

use std::fmt::Write as _;

use super::ScreenLocation;

/// Formats the status of a running `screen`, a terminal or a desktop.
pub(super) fn format_status(screen: &str, shown: &ScreenLocation) -> String {
    let mut text = format!("The {screen} runs.");
    // Writing to a string cannot fail.
    if let Some(address) = &shown.address {
        let _ = write!(text, "\naddress: {address}");
    }
    if let Some(session) = shown.session {
        let _ = write!(text, "\nsession ID: {session}");
    }
    for (name, value) in &shown.variables {
        let _ = write!(text, "\n{name}={value}");
    }
    text
}
