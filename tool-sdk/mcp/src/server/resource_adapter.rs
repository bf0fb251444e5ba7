//! Handlers for resource, prompt and completion requests.
//!
//! Converts between the host's providers (`resources`) and the types of the protocol.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CacheScope, CompleteRequestMethod, CompleteRequestParams, CompleteResult, CompletionInfo,
    ConstString, ErrorCode, ErrorData, GetPromptRequestMethod, GetPromptRequestParams,
    GetPromptResult, InputRequiredResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ReadResourceRequestMethod, ReadResourceRequestParams, ReadResourceResult,
    Reference, ResourceContents, ServerResult,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tool_sdk_core::{
    Attachment, AttachmentData, ConversationMessage, ErrorKind, Session, ToolError,
};

use super::Server;
use super::connection::Connection;
use super::dyn_provider::{DynPromptProvider, DynResourceProvider};
use super::input::{InputCapabilities, InputProbe, missing_capability_error};
use super::listing::{LIST_TTL_MS, ProtocolEra};
use super::message::MessageParams;
use super::request_context::RequestContext;
use super::resources::{ResourceDefinition, find_missing_argument};
use super::ui::{UiPage, UiSupport};

type Result<T> = std::result::Result<T, ErrorData>;

/// The maximum number of completions in a response.
const MAX_COMPLETIONS: usize = 100;

impl Connection {
    pub(super) async fn get_prompt(
        &self,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> Result<ServerResult> {
        let (session, input) = match cx.era() {
            ProtocolEra::Legacy => (self.legacy_session(cx), None),
            ProtocolEra::Modern => (self.request_session(cx), Some(cx.client.input)),
        };
        self.server.get_prompt(params, session, input).await
    }

    pub(super) async fn read_resource(
        &self,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> Result<ServerResult> {
        let read = self.server.read_resource(params, cx.client.ui).await;
        read.map(ServerResult::ReadResourceResult).map_err(|mut error| {
            if cx.era() == ProtocolEra::Modern && error.code == ErrorCode::RESOURCE_NOT_FOUND {
                error.code = ErrorCode::INVALID_PARAMS;
            }
            error
        })
    }
}

impl Server {
    pub(super) async fn list_prompts(&self) -> Result<ListPromptsResult> {
        let prompts = self.prompt_provider::<ListPromptsRequestMethod>()?.list().await;
        let listed = ListPromptsResult::with_all_items(to_protocol(json!(prompts))?);
        Ok(listed.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) async fn list_resources(&self, ui: UiSupport) -> Result<ListResourcesResult> {
        let pages = self.visible_pages(ui);
        let mut resources = match &self.resources {
            None if !pages.is_empty() => Vec::new(),
            _ => self.resource_provider::<ListResourcesRequestMethod>()?.list().await,
        };
        resources.retain(|resource| ui.can_read(&resource.uri));
        resources.extend(pages.iter().map(|page| page.to_resource(ui)));
        let listed = ListResourcesResult::with_all_items(to_protocol(json!(resources))?);
        Ok(listed.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) async fn list_templates(&self) -> Result<ListResourceTemplatesResult> {
        let resources = self.resource_provider::<ListResourceTemplatesRequestMethod>()?;
        let templates: Vec<Value> =
            resources.list_templates().await.into_iter().map(template_json).collect();
        let listed = ListResourceTemplatesResult::with_all_items(to_protocol(json!(templates))?);
        Ok(listed.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn read_resource(
        &self,
        params: &MessageParams,
        ui: UiSupport,
    ) -> Result<ReadResourceResult> {
        if self.resources.is_none() && self.visible_pages(ui).is_empty() {
            return Err(ErrorData::method_not_found::<ReadResourceRequestMethod>());
        }
        let uri = params.decode::<ReadResourceRequestParams>("resources/read")?.uri;
        let found = match self.visible_pages(ui).iter().find(|page| page.uri == uri) {
            Some(page) => {
                Some(Attachment::bytes(ui.page_mime_type(), page.html.clone().into_bytes()))
            }
            None => self.read_host_resource(&uri, ui).await?,
        };
        let Some(found) = found else {
            let uri = json!({ "uri": uri });
            return Err(ErrorData::resource_not_found("there is no such resource", Some(uri)));
        };
        let read = ReadResourceResult::new(vec![resource_contents(uri, &found)]);
        Ok(read.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    /// Returns the messages of a prompt. A prompt has no side effects, so a prompt that asks
    /// questions is built again when the answers are there.
    async fn get_prompt(
        &self,
        params: &MessageParams,
        session: Session,
        modern: Option<InputCapabilities>,
    ) -> Result<ServerResult> {
        let prompts = self.prompt_provider::<GetPromptRequestMethod>()?;
        let params = params.decode::<GetPromptRequestParams>("prompts/get")?;
        let listed = prompts.list().await.into_iter().find(|prompt| prompt.name == params.name);
        let Some(prompt) = listed else {
            let words = format!("there is no prompt `{}`", params.name);
            return Err(ErrorData::invalid_params(words, None));
        };
        let given = params.arguments.unwrap_or_default();
        if let Some(name) = find_missing_argument(&prompt, &given) {
            let words = format!("the prompt `{}` needs the argument `{name}`", prompt.name);
            return Err(ErrorData::invalid_params(words, None));
        }
        let answers = params.input_responses.unwrap_or_default();
        let peek = modern.map(|can| Arc::new(InputProbe::new(can, answers)));
        let session = match &peek {
            Some(peek) => session.with_inquiry_handler(Arc::clone(peek) as _),
            None => session,
        };
        match (prompts.get(&prompt.name, &given, &session).await, peek) {
            (Ok(messages), _) => {
                let messages: Vec<Value> = messages.into_iter().map(prompt_message_json).collect();
                Ok(ServerResult::GetPromptResult(GetPromptResult::new(to_protocol(json!(
                    messages
                ))?)))
            }
            (Err(error), Some(peek)) => match (peek.required_input()?, peek.missing_capability()) {
                (Some(wanted), _) => {
                    let result = InputRequiredResult::new(Some(wanted), None);
                    Ok(ServerResult::InputRequiredResult(result))
                }
                (None, Some(kind)) => Err(missing_capability_error(kind)),
                (None, None) => Err(provider_error(error)),
            },
            (Err(error), None) => Err(provider_error(error)),
        }
    }

    pub(super) fn complete_argument(&self, params: &MessageParams) -> Result<CompleteResult> {
        if self.resources.is_none() && self.prompts.is_none() {
            return Err(ErrorData::method_not_found::<CompleteRequestMethod>());
        }
        let params = params.decode::<CompleteRequestParams>("completion/complete")?;
        let (argument, begun) = (&params.argument.name, &params.argument.value);
        let mut values = match &params.r#ref {
            Reference::Prompt(prompt) => self
                .prompt_provider::<CompleteRequestMethod>()?
                .complete_argument(&prompt.name, argument, begun),
            Reference::Resource(resource) => self
                .resource_provider::<CompleteRequestMethod>()?
                .complete_argument(&resource.uri, argument, begun),
            _ => return Err(ErrorData::method_not_found::<CompleteRequestMethod>()),
        };
        values.truncate(MAX_COMPLETIONS);
        let found =
            CompletionInfo::new(values).map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(found))
    }

    async fn read_host_resource(&self, uri: &str, ui: UiSupport) -> Result<Option<Attachment>> {
        match &self.resources {
            Some(resources) if ui.can_read(uri) => {
                resources.read(uri).await.map_err(provider_error)
            }
            _ => Ok(None),
        }
    }

    /// Returns the UI pages that the client may see.
    fn visible_pages(&self, ui: UiSupport) -> &[UiPage] {
        if ui == UiSupport::TextOnly { &[] } else { &self.pages }
    }

    /// Returns "method not found" if the host serves no prompts.
    fn prompt_provider<M: ConstString>(&self) -> Result<&Arc<dyn DynPromptProvider>> {
        self.prompts.as_ref().ok_or_else(ErrorData::method_not_found::<M>)
    }

    fn resource_provider<M: ConstString>(&self) -> Result<&Arc<dyn DynResourceProvider>> {
        self.resources.as_ref().ok_or_else(ErrorData::method_not_found::<M>)
    }
}

/// Converts a host value into a protocol type.
fn to_protocol<T: DeserializeOwned>(said: Value) -> Result<T> {
    T::deserialize(&said).map_err(|error| {
        ErrorData::internal_error(format!("the host returned invalid data: {error}"), None)
    })
}

fn template_json(resource: ResourceDefinition) -> Value {
    let mut template = json!(resource);
    if let Some(uri) = template.as_object_mut().and_then(|it| it.remove("uri")) {
        template["uriTemplate"] = uri;
    }
    template
}

/// Returns text as text and everything else as base64.
fn resource_contents(uri: String, found: &Attachment) -> ResourceContents {
    let contents = match &found.data {
        AttachmentData::Uri(target) => ResourceContents::text(target, uri),
        AttachmentData::Bytes(bytes) => match str::from_utf8(bytes) {
            Ok(text) if is_text(&found.mime) => ResourceContents::text(text, uri),
            _ => ResourceContents::blob(STANDARD.encode(bytes), uri),
        },
    };
    contents.with_mime_type(&found.mime)
}

fn is_text(mime: &str) -> bool {
    let bare = mime.split(';').next().unwrap_or_default().trim_end();
    bare.starts_with("text/") || bare.ends_with("/json") || bare.ends_with("+json")
}

fn prompt_message_json(message: ConversationMessage) -> Value {
    let content = match message.content {
        Value::String(text) => json!({ "type": "text", "text": text }),
        block => block,
    };
    json!({ "role": message.role, "content": content })
}

fn provider_error(error: ToolError) -> ErrorData {
    match error.kind() {
        ErrorKind::InvalidArgs | ErrorKind::NotFound => {
            ErrorData::invalid_params(error.to_string(), None)
        }
        _ => ErrorData::internal_error(error.to_string(), None),
    }
}

/// A resource that a client has subscribed to, for as long as this lives.
pub(super) struct WatchedResource {
    provider: Arc<dyn DynResourceProvider>,
    uri: String,
}

impl WatchedResource {
    pub(super) fn watch(provider: &Arc<dyn DynResourceProvider>, uri: String) -> Self {
        provider.start_updates(&uri);
        Self { provider: Arc::clone(provider), uri }
    }
}

impl Drop for WatchedResource {
    fn drop(&mut self) {
        self.provider.stop_updates(&self.uri);
    }
}

/// The resource subscriptions of one legacy client.
#[derive(Default)]
pub(super) struct ResourceSubscriptions(Mutex<Vec<WatchedResource>>);

impl ResourceSubscriptions {
    /// The maximum number of subscriptions of one client.
    pub(super) const MAX_SUBSCRIPTIONS: usize = 1024;

    pub(super) fn subscribe(
        &self,
        provider: &Arc<dyn DynResourceProvider>,
        uri: String,
    ) -> Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().any(|known| known.uri == uri) {
            return Ok(());
        }
        if all.len() == Self::MAX_SUBSCRIPTIONS {
            return Err(ErrorData::invalid_request(
                "too many resource subscriptions; unsubscribe from some first",
                None,
            ));
        }
        all.push(WatchedResource::watch(provider, uri));
        Ok(())
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| known.uri != uri);
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|known| known.uri == uri)
    }
}
