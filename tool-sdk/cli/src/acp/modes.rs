//! Permission modes as session modes.
//!
//! **Invariant:** a client cannot select the mode `bypass` unless the program was started with it.

use agent_client_protocol::v1::schema::{SessionMode, SessionModeState};
use tool_sdk_core::{Mode, Pipeline, Session};

/// Returns the mode that holds for the session.
pub(super) fn current_mode(pipeline: &Pipeline, session: &Session) -> Mode {
    match session.plan_draft() {
        Some(_) => Mode::Plan,
        None => pipeline.toolset().view_for(session).mode(),
    }
}

/// Returns the modes that the client may select, and the current one.
pub(super) fn mode_state(current: Mode, offers_bypass: bool) -> SessionModeState {
    let offered = Mode::ALL.into_iter().filter(|mode| offers_bypass || *mode != Mode::Bypass);
    let modes = offered.map(|mode| {
        let (name, about) = describe_mode(mode);
        SessionMode::new(mode.as_str(), name).description(about.to_owned())
    });
    SessionModeState::new(current.as_str(), modes.collect())
}

/// Parses a mode that the client may select.
pub(super) fn parse_mode(id: &str, offers_bypass: bool) -> Result<Mode, String> {
    let mode: Mode = id.parse().map_err(|error| format!("{error}"))?;
    match mode {
        Mode::Bypass if !offers_bypass => Err(
            "the mode `bypass` is only offered when the program is started with `--mode bypass`"
                .to_owned(),
        ),
        mode => Ok(mode),
    }
}

fn describe_mode(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::Auto => ("Auto", "Reads without asking; everything else needs an approval"),
        Mode::Strict => ("Strict", "Everything needs an approval"),
        Mode::Plan => ("Plan", "Only reads: the model plans and changes nothing"),
        Mode::Explore => ("Explore", "Only reads: the model looks around"),
        Mode::Bypass => ("Bypass", "Nothing needs an approval, unless a rule says so"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bypass_is_only_offered_to_a_program_that_was_started_with_it() {
        let state = mode_state(Mode::Auto, false);
        assert!(state.available_modes.iter().all(|mode| &*mode.id.0 != "bypass"));
        assert_eq!(mode_state(Mode::Bypass, true).available_modes.len(), 5);
        assert!(parse_mode("bypass", false).is_err());
        assert_eq!(parse_mode("bypass", true), Ok(Mode::Bypass));
        assert!(parse_mode("careless", true).is_err());
    }
}
