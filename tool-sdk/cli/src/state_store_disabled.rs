//! Stands in for the store in a program without the feature `store`.

use tool_sdk_core::{Pipeline, Redactor, Session};

use super::exit::{CommandError, Result};
use super::settings::Settings;

pub(super) fn attach_stores(session: Session, _: &Settings) -> Session {
    session
}

pub(super) fn record_sessions(
    pipeline: Pipeline,
    settings: &Settings,
    _: Redactor,
) -> Result<Pipeline> {
    if settings.record_sessions {
        return Err(CommandError::config("this program cannot record sessions")
            .hint("the feature `store` of `tool-sdk` adds it"));
    }
    Ok(pipeline)
}
