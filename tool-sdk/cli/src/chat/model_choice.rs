//! Which model answers: provider, name, URL and key.

use tool_sdk_agent::{ApiKey, ProviderClient};
use tool_sdk_core::provider::ModelApi;

use super::config::ChatConfig;
use crate::Io;
use crate::exit::{CommandError, Result};

/// A provider that `PROVIDER/NAME` can name.
struct KnownProvider {
    prefix: &'static str,
    api: ModelApi,
    /// The URL, if it is not that of the API's inventor.
    url: Option<&'static str>,
    /// The variable that holds the key.
    key: Option<&'static str>,
}

const PROVIDERS: [KnownProvider; 7] = [
    provider("anthropic", ModelApi::Anthropic, None, Some("ANTHROPIC_API_KEY")),
    provider("gemini", ModelApi::Gemini, None, Some("GEMINI_API_KEY")),
    provider("gemini-generate", ModelApi::GeminiGenerate, None, Some("GEMINI_API_KEY")),
    provider("ollama", ModelApi::OpenAiChat, Some("http://localhost:11434/v1"), None),
    provider("openai", ModelApi::OpenAiResponses, None, Some("OPENAI_API_KEY")),
    provider("openai-chat", ModelApi::OpenAiChat, None, Some("OPENAI_API_KEY")),
    provider(
        "openrouter",
        ModelApi::OpenAiChat,
        Some("https://openrouter.ai/api/v1"),
        Some("OPENROUTER_API_KEY"),
    ),
];

const fn provider(
    prefix: &'static str,
    api: ModelApi,
    url: Option<&'static str>,
    key: Option<&'static str>,
) -> KnownProvider {
    KnownProvider { prefix, api, url, key }
}

/// The chosen model.
#[derive(Clone, Debug)]
pub(super) struct ModelChoice {
    /// The name as the provider knows it.
    pub(super) name: String,
    pub(super) client: ProviderClient,
    /// The variable that holds the key, if the key comes from one.
    key_variable: Option<&'static str>,
}

impl ModelChoice {
    /// Resolves `model`, which is `PROVIDER/NAME`, or a name with a URL in the settings. The URL and
    /// the key command of the settings belong to one provider, and no other one gets them.
    pub(super) fn resolve(model: &str, config: &ChatConfig) -> Result<Self> {
        let config = &config.for_provider_of(model);
        let known = model.split_once('/').and_then(|(prefix, name)| {
            let known = PROVIDERS.iter().find(|known| known.prefix == prefix)?;
            Some((known, name))
        });
        let (known, name) = match (known, &config.model_url) {
            (Some((known, name)), _) => (Some(known), name),
            (None, Some(_)) => (None, model),
            (None, None) => return Err(unknown_provider(model)),
        };
        let wrong = |error: tool_sdk_agent::InvalidEndpoint| CommandError::usage(error);
        let api = known.map_or(ModelApi::OpenAiChat, |known| known.api);
        let mut client = ProviderClient::new(api, name).map_err(wrong)?;
        let url = config.model_url.as_deref().or(known.and_then(|known| known.url));
        if let Some(url) = url {
            client = client.with_base_url(url).map_err(wrong)?;
        }
        if let Some(key) = choose_key(known, config) {
            client = client.with_key(key);
        }
        let is_command = !config.api_key_command.is_empty();
        let key_variable = known.and_then(|known| known.key).filter(|_| !is_command);
        Ok(Self { name: name.to_owned(), client, key_variable })
    }

    /// Fails when the variable with the key is not set.
    pub(super) fn check_key(&self, io: &Io<'_>) -> Result<()> {
        match self.key_variable.filter(|name| io.env_var(name).is_none()) {
            None => Ok(()),
            Some(name) => Err(CommandError::config(format_args!(
                "there is no API key for the model `{}`: the variable `{name}` is not set",
                self.name.escape_debug()
            ))
            .hint("set it for the program, or write `api_key_command` in the table [chat] of the configuration")),
        }
    }
}

/// The configured command goes before the variable. A server of the user's own, whose name has no
/// provider in front, gets no provider's key.
fn choose_key(known: Option<&KnownProvider>, config: &ChatConfig) -> Option<ApiKey> {
    match config.api_key_command.split_first() {
        Some((program, args)) => Some(ApiKey::command(program, args)),
        None => known.and_then(|known| known.key).map(ApiKey::variable),
    }
}

/// Returns the error for a chat without a model.
pub(super) fn missing_model() -> CommandError {
    CommandError::usage("no model is chosen").hint(
        "name one, as in `--model anthropic/claude-sonnet-4-5`, or as `model` in the table [chat] of \
         the configuration",
    )
}

fn unknown_provider(model: &str) -> CommandError {
    let known: Vec<&str> = PROVIDERS.iter().map(|known| known.prefix).collect();
    let model = model.escape_debug();
    CommandError::usage(format_args!("the model `{model}` names no provider")).hint(format_args!(
        "write PROVIDER/NAME with one of {}, or add `--model-url URL` for a server of your own",
        known.join(", ")
    ))
}

/// Returns the context of a model in tokens, as far as its family is known.
pub(super) fn context_tokens(name: &str) -> u64 {
    let has = |word: &str| name.contains(word);
    if has("gemini") {
        1_000_000
    } else if has("gpt-5") {
        400_000
    } else if has("claude") {
        200_000
    } else {
        128_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_its_provider_or_its_url() {
        let config = ChatConfig::default();
        for (model, name, shown) in [
            ("anthropic/claude-x", "claude-x", "api.anthropic.com"),
            ("openrouter/meta/llama", "meta/llama", "openrouter.ai/api/v1"),
            ("ollama/qwen3", "qwen3", "localhost:11434"),
        ] {
            let choice = ModelChoice::resolve(model, &config).unwrap();
            assert_eq!(choice.name, name);
            assert!(format!("{:?}", choice.client).contains(shown), "{:?}", choice.client);
        }
        let url = Some("http://127.0.0.1:8000/v1".to_owned());
        let own = ChatConfig { model_url: url, ..ChatConfig::default() };
        let choice = ModelChoice::resolve("meta/llama", &own).unwrap();
        assert_eq!(choice.name, "meta/llama");
        // No provider's key goes to a server that is not named as the provider's.
        assert!(format!("{:?}", choice.client).contains("key: None"), "{:?}", choice.client);
        assert!(ModelChoice::resolve("llama", &config).is_err());
    }
}
