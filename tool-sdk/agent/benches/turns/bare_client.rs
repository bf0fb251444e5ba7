//! The floor: a client that sends the requests of the conversation and reads each event as JSON.

use std::error::Error;

use serde_json::{Value, json};

use crate::{QUESTION, SYSTEM};

pub(crate) struct BareClient {
    http: reqwest::Client,
    url: String,
}

impl BareClient {
    /// # Panics
    ///
    /// Where no HTTP client can be built.
    pub(crate) fn new(url: &str) -> Self {
        // The provider is told so that both lanes build the same client.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { http: reqwest::Client::new(), url: format!("{url}/chat/completions") }
    }

    pub(crate) async fn run_conversation(&self) -> Result<(), Box<dyn Error>> {
        let mut messages = vec![
            json!({ "role": "system", "content": SYSTEM }),
            json!({ "role": "user", "content": QUESTION }),
        ];
        let (_, arguments) = self.send(&messages).await?;
        let numbers: Value = serde_json::from_str(&arguments)?;
        let sum = numbers["a"].as_i64().zip(numbers["b"].as_i64()).map(|(a, b)| a + b);
        let call = json!({
            "id": "call-1", "type": "function", "function": { "name": "add", "arguments": arguments },
        });
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
        let content = sum.ok_or("the arguments are no numbers")?.to_string();
        messages.push(json!({ "role": "tool", "tool_call_id": "call-1", "content": content }));
        let (text, _) = self.send(&messages).await?;
        if text.is_empty() { Err("there is no answer".into()) } else { Ok(()) }
    }

    /// Sends a request and returns the text and the arguments of the answer.
    async fn send(&self, messages: &[Value]) -> Result<(String, String), Box<dyn Error>> {
        let number = json!({ "type": "integer" });
        let parameters = json!({
            "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"],
            "additionalProperties": false,
        });
        let function =
            json!({ "name": "add", "description": "Add two numbers.", "parameters": parameters });
        let body = json!({
            "model": "mock", "stream": true, "messages": messages,
            "tools": [{ "type": "function", "function": function }],
        });
        let request = self.http.post(&self.url).bearer_auth("a key");
        let mut response = request
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await?;
        let (mut pending, mut text, mut arguments) = (Vec::new(), String::new(), String::new());
        while let Some(chunk) = response.chunk().await? {
            pending.extend_from_slice(&chunk);
            while let Some(end) = pending.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = pending.drain(..end + 2).collect();
                let Some(data) = event.strip_prefix(b"data: ") else { continue };
                let Ok(event) = serde_json::from_slice::<Value>(data.trim_ascii_end()) else {
                    continue;
                };
                let delta = &event["choices"][0]["delta"];
                text.push_str(delta["content"].as_str().unwrap_or_default());
                let part = &delta["tool_calls"][0]["function"]["arguments"];
                arguments.push_str(part.as_str().unwrap_or_default());
            }
        }
        Ok((text, arguments))
    }
}
