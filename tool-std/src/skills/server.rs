//! Skills for clients of the Model Context Protocol: each is a prompt, and a resource.
//!
//! **Invariant:** a skill that the rules deny is neither listed nor read.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tool_sdk::mcp::{PromptDefinition, PromptProvider, ResourceDefinition, ResourceProvider};
use tool_sdk::{Attachment, ConversationMessage, Output, Session, ToolError};

use super::document::FILE_NAME;

/// The scheme of the URIs of skills: `skill://NAME/FILE`.
const SCHEME: &str = "skill://";

/// The result of a call.
type CallFuture = Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send>>;

/// Calls a tool by its name, with arguments.
type SkillToolCaller = dyn Fn(Session, &'static str, Value) -> CallFuture + Send + Sync;

/// Serves the skills of a session as prompts and as resources.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::Server;
/// use tool_sdk::{Call, Pipeline, Registry, Session};
/// use tool_std::skills::SkillProvider;
///
/// # tool_sdk::link!(tool_std);
/// let (pipeline, session) = (Pipeline::new(Registry::linked()?), Session::new("s1"));
/// let calls = pipeline.clone();
/// let skills = SkillProvider::new(session.clone(), move |session, tool, arguments| {
///     let pipeline = calls.clone();
///     async move { pipeline.call(&session, Call::new(tool, arguments)).await.result }
/// });
/// let server = Server::new(pipeline, session).with_prompts(skills.clone()).with_resources(skills);
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[derive(Clone)]
pub struct SkillProvider {
    session: Session,
    caller: Arc<SkillToolCaller>,
}

impl fmt::Debug for SkillProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillProvider").field("session", &self.session).finish_non_exhaustive()
    }
}

impl SkillProvider {
    /// Serves the skills that `session` has. `call` calls the tools `skill` and `skill_list`, so that
    /// the rules decide.
    #[must_use]
    pub fn new<F>(
        session: Session,
        call: impl Fn(Session, &'static str, Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Output, ToolError>> + Send + 'static,
    {
        let caller = move |session, tool, arguments| -> CallFuture {
            Box::pin(call(session, tool, arguments))
        };
        Self { session, caller: Arc::new(caller) }
    }

    /// Calls a tool. The user of the client asks for it, so it is a conversation of its own: a second
    /// time is no repetition by a model.
    async fn call(
        &self,
        session: &Session,
        tool: &'static str,
        arguments: Value,
    ) -> Result<Output, ToolError> {
        let session = session.clone().with_id(format!("{}/skills", session.id()));
        (self.caller)(session, tool, arguments).await
    }

    /// Returns the names and descriptions of the skills that no rule denies.
    async fn visible_skills(&self) -> Vec<(String, String)> {
        let Ok(output) = self.call(&self.session, "skill_list", json!({})).await else {
            return Vec::new();
        };
        let skills = output.display_data().and_then(|display| display["skills"].as_array());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let skill = |skill: &Value| (text(&skill["name"]), text(&skill["description"]));
        skills.into_iter().flatten().map(skill).collect()
    }
}

impl PromptProvider for SkillProvider {
    async fn list(&self) -> Vec<PromptDefinition> {
        let skills = self.visible_skills().await;
        let prompt = |(name, description)| {
            PromptDefinition::new(name, description)
                .with_optional_argument("task", "What to do with it.")
        };
        skills.into_iter().map(prompt).collect()
    }

    async fn get(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        session: &Session,
    ) -> Result<Vec<ConversationMessage>, ToolError> {
        let loaded = self.call(session, "skill", json!({ "name": name })).await?;
        let mut text = loaded.into_text();
        if let Some(task) = arguments.get("task").and_then(Value::as_str) {
            text = format!("{text}\n{task}");
        }
        Ok(vec![ConversationMessage::text("user", text)])
    }
}

impl ResourceProvider for SkillProvider {
    async fn list(&self) -> Vec<ResourceDefinition> {
        let skills = self.visible_skills().await;
        let resource = |(name, description): (String, String)| {
            ResourceDefinition::new(format!("{SCHEME}{name}/{FILE_NAME}"), name)
                .with_description(description)
                .with_mime_type("text/markdown")
        };
        skills.into_iter().map(resource).collect()
    }

    async fn list_templates(&self) -> Vec<ResourceDefinition> {
        vec![
            ResourceDefinition::new(format!("{SCHEME}{{name}}/{{+file}}"), "file of a skill")
                .with_description("A text file of a skill, relative to its folder."),
        ]
    }

    async fn read(&self, uri: &str) -> Result<Option<Attachment>, ToolError> {
        let Some((name, file)) = uri.strip_prefix(SCHEME).and_then(|it| it.split_once('/')) else {
            return Ok(None);
        };
        let arguments = match file {
            FILE_NAME => json!({ "name": name }),
            file => json!({ "name": name, "file": file }),
        };
        let loaded = self.call(&self.session, "skill", arguments).await?;
        let is_markdown = file.to_ascii_lowercase().ends_with(".md");
        let mime = if is_markdown { "text/markdown" } else { "text/plain" };
        Ok(Some(Attachment::bytes(mime, loaded.into_text().into_bytes())))
    }
}
