//! Stands in for the store in a program without the feature `store`.

#[cfg(feature = "agent")]
use std::sync::Arc;

#[cfg(feature = "agent")]
use tool_sdk_core::internal::DynConversationStore;
use tool_sdk_core::{Pipeline, Redactor, Session};

use super::exit::{CommandError, Result};
use super::settings::Settings;

pub(super) fn attach_stores(session: Session, _: &Settings) -> Session {
    session
}

/// Conversations end with the program.
#[cfg(feature = "agent")]
pub(super) fn open_conversations(_: &Settings) -> Option<Arc<dyn DynConversationStore>> {
    None
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

/// Plan mode ends with the program.
pub(super) fn plan_mode_note(_: &Settings) -> Option<String> {
    None
}
