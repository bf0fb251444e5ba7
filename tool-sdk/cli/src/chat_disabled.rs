//! Stubs for `chat` in a program without the feature `agent`.

use clap::{ArgMatches, Command};

use super::exit::{CommandError, Result};
use super::settings::{Settings, TomlValue};
use super::{App, Io, args};

const NO_AGENT: &str = "this program is built without an agent";

/// The settings of `chat`, which always are empty.
#[derive(Debug, Default)]
pub(super) struct ChatConfig;

pub(super) fn parse_chat_config(chat: TomlValue<'_, '_>) -> ChatConfig {
    chat.report_error(NO_AGENT);
    ChatConfig
}

pub(super) fn build_command() -> Option<Command> {
    Some(args::disabled_command("chat"))
}

pub(super) fn run(_: &App, _: &str, _: &Settings, _: &ArgMatches, _: &mut Io<'_>) -> Result {
    Err(CommandError::usage(NO_AGENT).hint(args::AGENT_FEATURE))
}

/// Fails if the settings want agents to be served.
#[cfg(feature = "mcp")]
pub(super) fn add_agents(
    _: &App,
    settings: &Settings,
    _: &tool_sdk_core::Pipeline,
    session: tool_sdk_core::Session,
    _: &Io<'_>,
) -> Result<tool_sdk_core::Session> {
    match settings.serves_agents {
        true => Err(CommandError::usage(NO_AGENT).hint(args::AGENT_FEATURE)),
        false => Ok(session),
    }
}
