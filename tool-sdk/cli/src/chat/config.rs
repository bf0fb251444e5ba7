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
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tool_sdk_agent::{AgentDefinition, ModelPrice, ReasoningEffort};

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
    #[serde(deserialize_with = "read_price")]
    pub(super) price: Option<ModelPrice>,
    /// The model to which URL, key command and price belong, once the settings are resolved.
    #[serde(skip)]
    pub(super) owner: Option<String>,
    /// Whether an option or a variable names the URL.
    #[serde(skip)]
    pub(super) is_url_given: bool,
    /// Whether an option or a variable limits the cost.
    #[serde(skip)]
    pub(super) is_max_cost_given: bool,
}

/// Reads the table `price`. An error names it, because the error of a table within a table does not.
fn read_price<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<ModelPrice>, D::Error> {
    let price = ModelPrice::deserialize(from);
    price.map(Some).map_err(|error| D::Error::custom(format_args!("`price`: {error}")))
}

/// Parses the table `[chat]`.
pub(crate) fn parse_chat_config(chat: TomlValue<'_, '_>) -> ChatConfig {
    chat.read_value().unwrap_or_default()
}

impl ChatConfig {
    /// Returns the settings with those of an agent where these say nothing.
    pub(super) fn with_agent(mut self, agent: &AgentDefinition) -> Self {
        self.max_turns = self.max_turns.or(agent.max_turns);
        let effort = agent.reasoning_effort.map(|effort| effort.as_str().to_owned());
        self.reasoning = self.reasoning.or(effort);
        self
    }

    /// Returns the settings with variables and, for commands that have them, options on top.
    pub(crate) fn resolve(&self, matches: Option<&ArgMatches>, io: &Io<'_>) -> Result<Self> {
        let mut config = Self { model_url: None, ..self.clone() };
        replace(&mut config.model_url, matches, MODEL_URL, "TOOL_SDK_CHAT_MODEL_URL", io)?;
        config.is_url_given = config.model_url.is_some();
        config.model_url = config.model_url.or_else(|| self.model_url.clone());
        replace(&mut config.max_turns, matches, MAX_TURNS, "TOOL_SDK_CHAT_MAX_TURNS", io)?;
        let mut max_cost = None;
        replace(&mut max_cost, matches, MAX_COST, "TOOL_SDK_CHAT_MAX_COST", io)?;
        config.is_max_cost_given = max_cost.is_some();
        config.max_cost = max_cost.or(self.max_cost);
        let tokens = "TOOL_SDK_CHAT_CONTEXT_TOKENS";
        replace(&mut config.context_tokens, matches, CONTEXT_TOKENS, tokens, io)?;
        replace(&mut config.reasoning, matches, REASONING, "TOOL_SDK_CHAT_REASONING", io)?;
        Ok(config)
    }

    /// Sets the model to which URL, key command and price belong: the configured one, or `chosen`, which
    /// options name. Of the settings for the configured model, another one gets nothing.
    pub(super) fn settle_owner(&mut self, chosen: Option<&str>) {
        let configured = self.model.as_deref();
        if let (Some(chosen), Some(configured)) = (chosen, configured) {
            if provider_of(chosen) != provider_of(configured) {
                self.api_key_command.clear();
                self.model_url = self.model_url.take().filter(|_| self.is_url_given);
            }
            if chosen != configured {
                self.price = None;
            }
        }
        self.owner = chosen.or(configured).map(str::to_owned);
    }

    /// Returns the settings for a model: without URL, key command and price of another one.
    pub(super) fn for_provider_of(&self, model: &str) -> Self {
        let Some(owner) = &self.owner else { return self.clone() };
        let price = self.price.filter(|_| model == owner);
        if provider_of(model) == provider_of(owner) {
            return Self { price, ..self.clone() };
        }
        Self { price, model_url: None, api_key_command: Vec::new(), ..self.clone() }
    }

    /// Fails if an option or a variable limits the cost and the price of `model` is unknown: the limit
    /// would not hold.
    pub(super) fn check_cost_limit(&self, model: &str) -> Result<()> {
        if !self.is_max_cost_given || self.price.is_some() {
            return Ok(());
        }
        let model = model.escape_debug();
        Err(CommandError::usage(format_args!(
            "the cost is limited, but the price of the model `{model}` is unknown"
        ))
        .hint(format_args!(
            "write `model = \"{model}\"` and `price = {{ input = …, output = … }}`, in US dollars per \
             million tokens, in the table [chat] of the configuration"
        )))
    }

    /// Returns how much the model thinks.
    pub(super) fn reasoning_effort(&self) -> Result<Option<ReasoningEffort>> {
        let parsed = self.reasoning.as_deref().map(str::parse).transpose();
        parsed.map_err(|error| CommandError::config(format_args!("`reasoning`: {error}")))
    }
}

/// Returns the provider that a model names; empty for a name alone.
fn provider_of(model: &str) -> &str {
    model.split_once('/').map_or("", |(provider, _)| provider)
}

/// Replaces a value by that of the option, or else of the variable.
fn replace<T>(
    value: &mut Option<T>,
    matches: Option<&ArgMatches>,
    option: &str,
    variable: &str,
    io: &Io<'_>,
) -> Result<()>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    if let Some(given) = matches.and_then(|matches| matches.get_one::<T>(option)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the settings for `model` have the URL and the key, and the price.
    fn what_it_gets(config: &ChatConfig, model: &str) -> (bool, bool, bool) {
        let own = config.for_provider_of(model);
        (own.model_url.is_some(), !own.api_key_command.is_empty(), own.price.is_some())
    }

    #[test]
    fn the_key_and_the_url_of_one_provider_reach_no_other() {
        let configured = ChatConfig {
            model: Some("anthropic/a".to_owned()),
            model_url: Some("https://proxy.example".to_owned()),
            api_key_command: vec!["pass".to_owned()],
            price: Some(ModelPrice::default()),
            ..ChatConfig::default()
        };
        let mut config = configured.clone();
        config.settle_owner(None);
        assert_eq!(what_it_gets(&config, "anthropic/a"), (true, true, true));
        assert_eq!(what_it_gets(&config, "anthropic/b"), (true, true, false));
        assert_eq!(what_it_gets(&config, "openai/a"), (false, false, false));
        assert_eq!(what_it_gets(&config, "local"), (false, false, false));

        let mut config = configured.clone();
        config.settle_owner(Some("openai/x"));
        assert_eq!(what_it_gets(&config, "openai/x"), (false, false, false));
        let mut config = ChatConfig { is_url_given: true, ..configured.clone() };
        config.settle_owner(Some("openai/x"));
        assert_eq!(what_it_gets(&config, "openai/x"), (true, false, false));
        assert_eq!(what_it_gets(&config, "anthropic/a"), (false, false, false));

        // Without a configured model they belong to the one that is chosen.
        let mut config = ChatConfig { model: None, ..configured };
        config.settle_owner(Some("openai/x"));
        assert_eq!(what_it_gets(&config, "openai/x"), (true, true, true));
        assert_eq!(what_it_gets(&config, "anthropic/a"), (false, false, false));
    }
}
