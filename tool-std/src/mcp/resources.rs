//! The tools for what servers offer beside tools: `mcp_resource_list`, `mcp_resource_read` and
//! `mcp_prompt_get`.
//!
//! Listing asks the servers only what they have. Reading sends a URI or arguments that the model
//! chose, so it needs approval like a call of a foreign tool, under the permission `mcp` and the
//! pattern `SERVER/URI` or `SERVER/PROMPT`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tool_sdk::mcp::{
    RemoteError, RemotePrompt, RemotePromptArgument, RemoteResource, RemoteResult, ServerManager,
};
use tool_sdk::{Output, Resource, State, ToolError, TypedOutput, tool};

use super::count_noun;

/// The permission of foreign tools.
const PERMISSION: &str = "mcp";

/// What servers offer beside their tools, in their own words.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ServerOffers {
    /// The servers that answered.
    pub servers: Vec<ServerOffer>,
}

/// What one server offers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ServerOffer {
    /// The server.
    pub server: String,
    /// Resources, each with `uri` and `name`; a URI with braces is a template.
    pub resources: Vec<Map<String, Value>>,
    /// Prompts, each with `name` and `arguments`.
    pub prompts: Vec<Map<String, Value>>,
}

/// List what the servers offer beside their tools: resources, which can be read, and prompts.
///
/// A URI with `{name}` in it is a template: put a value in place of the braces to read it.
#[tool(
    read,
    open_world,
    category = "mcp",
    display(name = "Resources", primary = server, summary = "Listing resources and prompts")
)]
pub async fn mcp_resource_list(
    /// The server; all of them when it is left out.
    server: Option<String>,
    servers: State<ServerManager>,
) -> Result<TypedOutput<ServerOffers>, ToolError> {
    let names = match server {
        Some(name) => vec![name],
        None => {
            let enabled = servers.statuses().into_iter().filter(|status| status.enabled);
            enabled.map(|status| status.name).collect()
        }
    };
    if names.is_empty() {
        let none = Output::text("(There are no servers.)");
        return Ok(TypedOutput::new(none, ServerOffers::default()));
    }
    let mut text = String::new();
    let mut found = ServerOffers::default();
    for name in &names {
        match list_offer(&servers, name).await {
            Ok((resources, prompts)) => {
                describe_offer(&mut text, name, &resources, &prompts);
                let (resources, prompts) = (to_objects(&resources), to_objects(&prompts));
                found.servers.push(ServerOffer { server: name.clone(), resources, prompts });
            }
            // One server that does not answer does not hide the others.
            Err(error) if names.len() > 1 => {
                let _ = writeln!(text, "{name} does not answer: {error}");
            }
            Err(error) => return Err(error.into()),
        }
    }
    let output = RemoteResult::text(text.trim_end()).into_output();
    Ok(TypedOutput::new(output.display(json!(found.servers)), found))
}

/// Returns the items in the protocol's form.
fn to_objects(items: &[impl Serialize]) -> Vec<Map<String, Value>> {
    let objects = items.iter().filter_map(|item| match serde_json::to_value(item) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    });
    objects.collect()
}

/// Returns the resources and the prompts of a server.
async fn list_offer(
    servers: &ServerManager,
    name: &str,
) -> Result<(Vec<RemoteResource>, Vec<RemotePrompt>), RemoteError> {
    Ok((servers.list_resources(name).await?, servers.list_prompts(name).await?))
}

/// Appends what a server offers, in its own words.
fn describe_offer(
    text: &mut String,
    server: &str,
    resources: &[RemoteResource],
    prompts: &[RemotePrompt],
) {
    let _ = writeln!(
        text,
        "{server}, in its own words: {}, {}",
        count_noun(resources.len(), "resource"),
        count_noun(prompts.len(), "prompt")
    );
    let named = |title: &Option<String>, name: &str| title.as_deref().unwrap_or(name).to_owned();
    let words = |text: &Option<String>| text.as_ref().map(|text| format!(": {text}"));
    for resource in resources {
        let mime = resource.mime_type.as_ref().map(|mime| format!(" ({mime})"));
        let _ = writeln!(
            text,
            "- {} {}{}{}",
            resource.uri,
            named(&resource.title, &resource.name),
            mime.unwrap_or_default(),
            words(&resource.description).unwrap_or_default()
        );
    }
    for prompt in prompts {
        let argument = |argument: &RemotePromptArgument| {
            format!("{}{}", argument.name, if argument.required { "" } else { "?" })
        };
        let arguments: Vec<String> = prompt.arguments.iter().map(argument).collect();
        let _ = writeln!(
            text,
            "- prompt {}({}){}",
            prompt.name,
            arguments.join(", "),
            words(&prompt.description).unwrap_or_default()
        );
    }
}

/// Read a resource of a server.
#[tool(
    read,
    open_world,
    category = "mcp",
    permission = "mcp",
    display(name = "Resource", primary = uri, show(server, uri), summary = "Reading {uri} of {server}"),
    approval(resources = |args, _| foreign_resource(&args.server, &args.uri)),
    example = r#"{"server": "notes", "uri": "notes://today"}"#
)]
pub async fn mcp_resource_read(
    /// The server.
    server: String,
    /// The URI, as `mcp_resource_list` shows it.
    uri: String,
    servers: State<ServerManager>,
) -> Result<Output, ToolError> {
    let read = servers.read_resource(&server, &uri).await?;
    let contents = read["contents"].as_array().cloned().unwrap_or_default();
    let block = |contents: Value| json!({ "type": "resource", "resource": contents });
    let blocks: Vec<Value> = contents.into_iter().map(block).collect();
    if blocks.is_empty() {
        return Ok(Output::text(format!("(The resource `{uri}` is empty.)")));
    }
    Ok(RemoteResult::from_content(blocks).into_output())
}

/// An argument of a prompt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptArgumentValue {
    /// The name of the argument.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The messages of a prompt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PromptContent {
    /// What the prompt is for, in the server's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages in their order.
    #[serde(default)]
    pub messages: Vec<PromptMessage>,
}

/// A message of a prompt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PromptMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// The content block, in the protocol's form.
    pub content: Map<String, Value>,
}

/// Get a prompt of a server: messages that tell how to do something with it.
#[tool(
    read,
    open_world,
    category = "mcp",
    permission = "mcp",
    display(name = "Prompt", primary = name, show(server, name, arguments), summary = "Getting the prompt {name} of {server}"),
    approval(resources = |args, _| foreign_resource(&args.server, &args.name)),
    example = r#"{"server": "notes", "name": "summarize", "arguments": [{"name": "day", "value": "monday"}]}"#
)]
pub async fn mcp_prompt_get(
    /// The server.
    server: String,
    /// The prompt, as `mcp_resource_list` shows it.
    name: String,
    /// The arguments of the prompt.
    #[arg(default = vec![])]
    arguments: Vec<PromptArgumentValue>,
    servers: State<ServerManager>,
) -> Result<TypedOutput<PromptContent>, ToolError> {
    let arguments = arguments.into_iter().map(|it| (it.name, it.value.into())).collect();
    let prompt = servers.get_prompt(&server, &name, arguments).await?;
    let prompt = PromptContent::deserialize(prompt).map_err(|error| {
        ToolError::failed(format_args!("the server's response is not a prompt: {error}"))
    })?;
    let mut blocks = Vec::new();
    for PromptMessage { role, content } in &prompt.messages {
        blocks.push(json!({ "type": "text", "text": format!("{role}:") }));
        blocks.push(json!(content));
    }
    Ok(TypedOutput::new(RemoteResult::from_content(blocks).into_output(), prompt))
}

/// Returns the resource of a request to a server: rules for its tools cover it.
fn foreign_resource(server: &str, name: &str) -> Vec<Resource> {
    let resource = Resource::new(format!("{server}/{name}")).with_permission(PERMISSION);
    vec![resource.asks_by_default()]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tool_sdk::mcp::{
        RemoteCall, RemoteConnection, RemoteFuture, RemoteTool, ServerConfig, TransportConfig,
    };
    use tool_sdk::{Action, Call, ErrorKind, Mode, Pipeline, Registry, Rule, Session, tools};

    use super::*;

    /// A server with a resource, a template and a prompt.
    struct NotesServer;

    impl RemoteConnection for NotesServer {
        fn list_tools(&self) -> RemoteFuture<'_, Vec<RemoteTool>> {
            Box::pin(async { Ok(Vec::new()) })
        }

        fn call_tool<'a>(&'a self, _: RemoteCall<'a>) -> RemoteFuture<'a, RemoteResult> {
            Box::pin(async { Ok(RemoteResult::text("")) })
        }

        fn list_resources(&self) -> RemoteFuture<'_, Vec<RemoteResource>> {
            let listed = json!([
                { "uri": "notes://today", "name": "today", "mimeType": "text/plain" },
                { "uriTemplate": "notes://{day}", "name": "day", "description": "a \u{202e}day" },
            ]);
            Box::pin(async { Ok(serde_json::from_value(listed).unwrap()) })
        }

        fn read_resource<'a>(&'a self, uri: &'a str) -> RemoteFuture<'a, Value> {
            let contents = json!({ "contents": [{ "uri": uri, "text": "water the plants" }] });
            Box::pin(async { Ok(contents) })
        }

        fn list_prompts(&self) -> RemoteFuture<'_, Vec<RemotePrompt>> {
            let listed =
                json!([{ "name": "plan", "arguments": [{ "name": "day", "required": true }] }]);
            Box::pin(async { Ok(serde_json::from_value(listed).unwrap()) })
        }

        fn get_prompt<'a>(
            &'a self,
            _: &'a str,
            arguments: Map<String, Value>,
        ) -> RemoteFuture<'a, Value> {
            let text = format!("Plan {}.", arguments["day"].as_str().unwrap());
            let content = json!({ "type": "text", "text": text });
            let prompt = json!({ "messages": [{ "role": "user", "content": content }] });
            Box::pin(async { Ok(prompt) })
        }
    }

    fn host(rules: &[&str]) -> (Pipeline, Session) {
        let tools = tools![mcp_resource_list, mcp_resource_read, mcp_prompt_get];
        let registry = Registry::builder().add(tools).build().unwrap();
        let rules = rules.iter().map(|text| Rule::parse(Action::Allow, text).unwrap());
        let pipeline = Pipeline::new(registry).mode(Mode::Auto).rules(rules);
        let servers = ServerManager::for_pipeline(&pipeline);
        let reach = TransportConfig::custom(|| async {
            let connection: Arc<dyn RemoteConnection> = Arc::new(NotesServer);
            Ok(connection)
        });
        servers.add(ServerConfig::new("notes", reach).unwrap()).unwrap();
        (pipeline, Session::new("t").with_service(servers))
    }

    // What a server offers beside tools is listed without a question, and read with one.
    #[tokio::test]
    async fn resources_and_prompts_are_listed_and_read() {
        let (pipeline, session) = host(&["mcp(notes/*)"]);
        let call = async |tool: &'static str, arguments: Value| {
            pipeline.call(&session, Call::new(tool, arguments.to_string())).await
        };
        let listed = call("mcp_resource_list", json!({})).await;
        assert_eq!(
            listed.text(),
            "notes, in its own words: 2 resources, 1 prompt\n\
             - notes://today today (text/plain)\n\
             - notes://{day} day: a \\u{202e}day\n\
             - prompt plan(day)"
        );
        let read = json!({ "server": "notes", "uri": "notes://today" });
        let read = call("mcp_resource_read", read).await;
        assert_eq!(read.text(), "notes://today:\nwater the plants");
        let prompt = json!({ "server": "notes", "name": "plan", "arguments": [{ "name": "day", "value": "monday" }] });
        let prompt = call("mcp_prompt_get", prompt).await;
        assert_eq!(prompt.text(), "user:\nPlan monday.");
        let unknown = call("mcp_resource_list", json!({ "server": "other" })).await;
        assert!(unknown.text().contains("unknown server `other`"), "{}", unknown.text());
    }

    #[tokio::test]
    async fn reading_a_resource_needs_approval() {
        for rules in [&[][..], &["mcp(other/*)"]] {
            let (pipeline, session) = host(rules);
            for (tool, arguments) in [
                ("mcp_resource_read", json!({ "server": "notes", "uri": "notes://today" })),
                ("mcp_prompt_get", json!({ "server": "notes", "name": "plan" })),
            ] {
                let outcome = pipeline.call(&session, Call::new(tool, arguments.to_string())).await;
                let error = outcome.result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Denied, "{tool}: {error}");
            }
        }
    }
}
