//! The settings of `chat`: options, then variables, then the table `[chat]`.
//!
//! ```toml
//! [chat]
//! model = "anthropic/claude-sonnet-4-5"
//! api_key_command = ["pass", "show", "anthropic"]
//! context_tokens = 200000
//! price = { input = 3.0, cached_input = 0.3, output = 15.0 }
//! ```

use std::fmt::Display;
use std::str::FromStr;

use clap::ArgMatches;
use serde::Deserialize;
use tool_sdk_agent::{ModelPrice, ReasoningEffort};

use super::{CONTEXT_TOKENS, MAX_COST, MAX_TURNS, MODEL_URL, REASONING};
use crate::Io;
use crate::exit::{CommandError, Result};
use crate::settings::TomlValue;

/// The table `[chat]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ChatConfig {
    /// `PROVIDER/NAME`, or a name with `model_url`.
    pub(super) model: Option<String>,
    pub(super) model_url: Option<String>,
    /// A command that prints the key.
    pub(super) api_key_command: Vec<String>,
    pub(super) max_turns: Option<u32>,
    /// US dollars for one conversation.
    pub(super) max_cost: Option<f64>,
    pub(super) context_tokens: Option<u64>,
    pub(super) reasoning: Option<String>,
    pub(super) price: Option<ModelPrice>,
}

/// Parses the table `[chat]`.
pub(crate) fn parse_chat_config(chat: TomlValue<'_, '_>) -> ChatConfig {
    chat.read_value().unwrap_or_default()
}

impl ChatConfig {
    /// Returns the settings with variables and options on top.
    pub(crate) fn resolve(&self, matches: &ArgMatches, io: &Io<'_>) -> Result<Self> {
        let mut config = self.clone();
        replace(&mut config.model_url, matches, MODEL_URL, "TOOL_SDK_CHAT_MODEL_URL", io)?;
        replace(&mut config.max_turns, matches, MAX_TURNS, "TOOL_SDK_CHAT_MAX_TURNS", io)?;
        replace(&mut config.max_cost, matches, MAX_COST, "TOOL_SDK_CHAT_MAX_COST", io)?;
        let tokens = "TOOL_SDK_CHAT_CONTEXT_TOKENS";
        replace(&mut config.context_tokens, matches, CONTEXT_TOKENS, tokens, io)?;
        replace(&mut config.reasoning, matches, REASONING, "TOOL_SDK_CHAT_REASONING", io)?;
        Ok(config)
    }

    /// Returns how much the model thinks.
    pub(super) fn reasoning_effort(&self) -> Result<Option<ReasoningEffort>> {
        match self.reasoning.as_deref() {
            None => Ok(None),
            Some("low") => Ok(Some(ReasoningEffort::Low)),
            Some("medium") => Ok(Some(ReasoningEffort::Medium)),
            Some("high") => Ok(Some(ReasoningEffort::High)),
            Some(other) => Err(CommandError::config(format_args!(
                "`reasoning` must be low, medium or high, not `{}`",
                other.escape_debug()
            ))),
        }
    }
}

/// Replaces a value by that of the option, or else of the variable.
fn replace<T>(
    value: &mut Option<T>,
    matches: &ArgMatches,
    option: &str,
    variable: &str,
    io: &Io<'_>,
) -> Result<()>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    if let Some(given) = matches.get_one::<T>(option) {
        *value = Some(given.clone());
    } else if let Some(text) = io.env_var(variable) {
        let text = text.to_string_lossy();
        let parsed = text
            .parse()
            .map_err(|error| CommandError::config(format_args!("{variable}: {error}")))?;
        *value = Some(parsed);
    }
    Ok(())
}
