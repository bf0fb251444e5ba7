//! The body of a request, as each API takes it.

use serde_json::{Map, Value, json};
use tool_sdk_core::Definition;
use tool_sdk_core::provider::{ModelApi, encode_tool};

use super::{ModelRequest, ToolChoice};

/// The maximum number of tokens of a message where the API requires a number and the host gives
/// none.
const DEFAULT_MAX_TOKENS: u32 = 16_384;

/// Encodes a streamed request of `model`.
pub(super) fn encode_body(request: &ModelRequest<'_>, api: ModelApi, model: &str) -> Value {
    let mut body = match api {
        ModelApi::OpenAiChat => chat_body(request),
        ModelApi::OpenAiResponses => responses_body(request),
        ModelApi::Anthropic => anthropic_body(request),
        ModelApi::Gemini => interactions_body(request),
        ModelApi::GeminiGenerate => generate_body(request),
    };
    // The older API of Gemini has the model and the stream in its path.
    if api != ModelApi::GeminiGenerate {
        body["model"] = model.into();
        body["stream"] = true.into();
    }
    body
}

fn encode_tools(request: &ModelRequest<'_>, api: ModelApi) -> Vec<Value> {
    let encode = |definition: &Definition| encode_tool(definition, api.tool_dialect());
    let view = request.tools.as_deref();
    view.into_iter().flat_map(|view| view.definitions()).map(encode).collect()
}

fn chat_body(request: &ModelRequest<'_>) -> Value {
    let api = ModelApi::OpenAiChat;
    let mut messages = request.transcript.encode(api);
    if !request.system.is_empty() {
        messages.insert(0, json!({ "role": "system", "content": request.system }));
    }
    let mut body = json!({ "messages": messages, "stream_options": { "include_usage": true } });
    let tools = encode_tools(request, api);
    if !tools.is_empty() {
        body["tools"] = tools.into();
        set_choice(&mut body, request.tool_choice);
    }
    if let Some(tokens) = request.max_output_tokens {
        body["max_completion_tokens"] = tokens.into();
    }
    if let Some(effort) = request.reasoning_effort {
        body["reasoning_effort"] = effort.as_str().into();
    }
    body
}

/// `auto` is the default, which some compatible servers do not know as a word.
fn set_choice(body: &mut Value, choice: ToolChoice) {
    match choice {
        ToolChoice::Auto => {}
        ToolChoice::Required => body["tool_choice"] = "required".into(),
        ToolChoice::None => body["tool_choice"] = "none".into(),
    }
}

/// Nothing is stored at the provider, so reasoning comes encrypted and goes back.
fn responses_body(request: &ModelRequest<'_>) -> Value {
    let api = ModelApi::OpenAiResponses;
    let mut body = json!({
        "input": request.transcript.encode(api),
        "store": false,
        "include": ["reasoning.encrypted_content"],
    });
    if !request.system.is_empty() {
        body["instructions"] = request.system.into();
    }
    let tools = encode_tools(request, api);
    if !tools.is_empty() {
        body["tools"] = tools.into();
        set_choice(&mut body, request.tool_choice);
    }
    if let Some(tokens) = request.max_output_tokens {
        body["max_output_tokens"] = tokens.into();
    }
    if let Some(effort) = request.reasoning_effort {
        body["reasoning"] = json!({ "effort": effort.as_str(), "summary": "auto" });
    }
    if !request.cache_key.is_empty() {
        body["prompt_cache_key"] = request.cache_key.into();
    }
    body
}

/// Three places are marked for the cache: tools, system prompt, and the end of the conversation,
/// which the next request repeats.
fn anthropic_body(request: &ModelRequest<'_>) -> Value {
    let api = ModelApi::Anthropic;
    let cached = || json!({ "type": "ephemeral" });
    let mut messages = request.transcript.encode(api);
    if let Some(Value::Array(blocks)) = messages.last_mut().map(|last| &mut last["content"])
        && let Some(block) = blocks.last_mut()
    {
        block["cache_control"] = cached();
    }
    let tokens = request.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    let mut body = json!({ "max_tokens": tokens, "messages": messages });
    if !request.system.is_empty() {
        body["system"] =
            json!([{ "type": "text", "text": request.system, "cache_control": cached() }]);
    }
    let mut tools = encode_tools(request, api);
    if let Some(last) = tools.last_mut() {
        last["cache_control"] = cached();
        body["tools"] = tools.into();
        match request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => body["tool_choice"] = json!({ "type": "any" }),
            ToolChoice::None => body["tool_choice"] = json!({ "type": "none" }),
        }
    }
    if let Some(effort) = request.reasoning_effort {
        body["thinking"] = json!({ "type": "adaptive" });
        body["output_config"] = json!({ "effort": effort.as_str() });
    }
    body
}

/// Nothing is stored at the provider, so thoughts go back with their signatures.
fn interactions_body(request: &ModelRequest<'_>) -> Value {
    let api = ModelApi::Gemini;
    let mut body = json!({ "input": request.transcript.encode(api), "store": false });
    if !request.system.is_empty() {
        body["system_instruction"] = request.system.into();
    }
    let mut options = Map::new();
    let tools = encode_tools(request, api);
    if !tools.is_empty() {
        body["tools"] = tools.into();
        match request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => drop(options.insert("tool_choice".to_owned(), "any".into())),
            ToolChoice::None => drop(options.insert("tool_choice".to_owned(), "none".into())),
        }
    }
    if let Some(tokens) = request.max_output_tokens {
        options.insert("max_output_tokens".to_owned(), tokens.into());
    }
    if let Some(effort) = request.reasoning_effort {
        options.insert("thinking_level".to_owned(), effort.as_str().into());
    }
    if !options.is_empty() {
        body["generation_config"] = options.into();
    }
    body
}

fn generate_body(request: &ModelRequest<'_>) -> Value {
    let api = ModelApi::GeminiGenerate;
    let mut body = json!({ "contents": request.transcript.encode(api) });
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": request.system }] });
    }
    let tools = encode_tools(request, api);
    if !tools.is_empty() {
        body["tools"] = json!([{ "functionDeclarations": tools }]);
        let mode = match request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Required => Some("ANY"),
            ToolChoice::None => Some("NONE"),
        };
        if let Some(mode) = mode {
            body["toolConfig"] = json!({ "functionCallingConfig": { "mode": mode } });
        }
    }
    let mut options = Map::new();
    if let Some(tokens) = request.max_output_tokens {
        options.insert("maxOutputTokens".to_owned(), tokens.into());
    }
    if let Some(effort) = request.reasoning_effort {
        let level = json!({ "thinkingLevel": effort.as_str() });
        options.insert("thinkingConfig".to_owned(), level);
    }
    if !options.is_empty() {
        body["generationConfig"] = options.into();
    }
    body
}
