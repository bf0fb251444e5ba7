//! Resources and prompts of the host, in the protocol's words.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CacheScope, CompleteRequestMethod, CompleteRequestParams, CompleteResult, CompletionInfo,
    ConstString, ErrorData, GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequiredResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ReadResourceRequestMethod, ReadResourceResult, Reference,
    ResourceContents,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Server;
use super::input::{Abilities, Peek, lacks};
use super::listing::FRESH_MS;
use super::offer::{Prompts, Resource, Resources, missing};
use super::page::{Page, Shows};
use crate::content::{Attachment, Data};
use crate::context::{Message, Session};
use crate::error::{ErrorKind, ToolError};

type Result<T> = std::result::Result<T, ErrorData>;

/// How many completions a peer is told.
const COMPLETIONS: usize = 100;

impl Server {
    pub(super) fn list_prompts(&self) -> Result<ListPromptsResult> {
        let prompts = self.host_prompts::<ListPromptsRequestMethod>()?.list();
        let listed = ListPromptsResult::with_all_items(words(json!(prompts))?);
        Ok(listed.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) fn list_resources(&self, shows: Shows) -> Result<ListResourcesResult> {
        let pages = self.pages(shows);
        let mut resources = match &self.resources {
            None if !pages.is_empty() => Vec::new(),
            _ => self.host_resources::<ListResourcesRequestMethod>()?.list(),
        };
        resources.retain(|resource| shows.sees(&resource.uri));
        resources.extend(pages.iter().map(|page| page.listed(shows)));
        let listed = ListResourcesResult::with_all_items(words(json!(resources))?);
        Ok(listed.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) fn list_templates(&self) -> Result<ListResourceTemplatesResult> {
        let resources = self.host_resources::<ListResourceTemplatesRequestMethod>()?;
        let templates: Vec<Value> = resources.templates().into_iter().map(template).collect();
        let listed = ListResourceTemplatesResult::with_all_items(words(json!(templates))?);
        Ok(listed.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) async fn read_resource(
        &self,
        uri: String,
        shows: Shows,
    ) -> Result<ReadResourceResult> {
        let found = match self.pages(shows).iter().find(|page| page.uri == uri) {
            Some(page) => Some(Attachment::bytes(shows.format(), page.html.clone().into_bytes())),
            None => self.host_resource(&uri, shows).await?,
        };
        let Some(found) = found else {
            let uri = json!({ "uri": uri });
            return Err(ErrorData::resource_not_found("there is no such resource", Some(uri)));
        };
        let read = ReadResourceResult::new(vec![contents(uri, &found)]);
        Ok(read.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    /// The messages of a prompt. A prompt only says something, so one that asks is simply
    /// made again when the answers are there.
    pub(super) async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        session: Session,
        modern: Option<Abilities>,
    ) -> Result<GetPromptResponse> {
        let prompts = self.host_prompts::<GetPromptRequestMethod>()?;
        let listed = prompts.list().into_iter().find(|prompt| prompt.name == params.name);
        let Some(prompt) = listed else {
            let words = format!("there is no prompt `{}`", params.name);
            return Err(ErrorData::invalid_params(words, None));
        };
        let given = params.arguments.unwrap_or_default();
        if let Some(name) = missing(&prompt, &given) {
            let words = format!("the prompt `{}` needs the argument `{name}`", prompt.name);
            return Err(ErrorData::invalid_params(words, None));
        }
        let answers = params.input_responses.unwrap_or_default();
        let peek = modern.map(|can| Arc::new(Peek::new(can, answers)));
        let session = match &peek {
            Some(peek) => session.with_inquiries(Arc::clone(peek) as _),
            None => session,
        };
        match (prompts.get(&prompt.name, &given, &session).await, peek) {
            (Ok(messages), _) => {
                let messages: Vec<Value> = messages.into_iter().map(message).collect();
                Ok(GetPromptResult::new(words(json!(messages))?).into())
            }
            (Err(error), Some(peek)) => match (peek.wanted()?, peek.lacking()) {
                (Some(wanted), _) => Ok(InputRequiredResult::new(Some(wanted), None).into()),
                (None, Some(kind)) => Err(lacks(kind)),
                (None, None) => Err(failed(error)),
            },
            (Err(error), None) => Err(failed(error)),
        }
    }

    pub(super) fn complete(&self, params: &CompleteRequestParams) -> Result<CompleteResult> {
        let (argument, begun) = (&params.argument.name, &params.argument.value);
        let mut values =
            match &params.r#ref {
                Reference::Prompt(prompt) => self
                    .host_prompts::<CompleteRequestMethod>()?
                    .complete(&prompt.name, argument, begun),
                Reference::Resource(resource) => self
                    .host_resources::<CompleteRequestMethod>()?
                    .complete(&resource.uri, argument, begun),
                _ => return Err(ErrorData::method_not_found::<CompleteRequestMethod>()),
            };
        values.truncate(COMPLETIONS);
        let found =
            CompletionInfo::new(values).map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(found))
    }

    async fn host_resource(&self, uri: &str, shows: Shows) -> Result<Option<Attachment>> {
        match &self.resources {
            Some(resources) if shows.sees(uri) => resources.read(uri).await.map_err(failed),
            None if self.pages(shows).is_empty() => {
                Err(ErrorData::method_not_found::<ReadResourceRequestMethod>())
            }
            _ => Ok(None),
        }
    }

    /// The pages that a client of this kind is told of.
    fn pages(&self, shows: Shows) -> &[Page] {
        if shows == Shows::Text { &[] } else { &self.pages }
    }

    /// Without any, not even the method is there.
    fn host_prompts<M: ConstString>(&self) -> Result<&Arc<dyn Prompts>> {
        self.prompts.as_ref().ok_or_else(ErrorData::method_not_found::<M>)
    }

    fn host_resources<M: ConstString>(&self) -> Result<&Arc<dyn Resources>> {
        self.resources.as_ref().ok_or_else(ErrorData::method_not_found::<M>)
    }
}

/// What the host said, as the protocol's library has it.
fn words<T: DeserializeOwned>(said: Value) -> Result<T> {
    T::deserialize(&said)
        .map_err(|error| ErrorData::internal_error(format!("the host said: {error}"), None))
}

fn template(resource: Resource) -> Value {
    let mut template = json!(resource);
    if let Some(uri) = template.as_object_mut().and_then(|it| it.remove("uri")) {
        template["uriTemplate"] = uri;
    }
    template
}

/// Texts are told as texts.
fn contents(uri: String, found: &Attachment) -> ResourceContents {
    let contents = match &found.data {
        Data::Uri(target) => ResourceContents::text(target, uri),
        Data::Bytes(bytes) => match str::from_utf8(bytes) {
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

fn message(message: Message) -> Value {
    let content = match message.content {
        Value::String(text) => json!({ "type": "text", "text": text }),
        block => block,
    };
    json!({ "role": message.role, "content": content })
}

fn failed(error: ToolError) -> ErrorData {
    match error.kind() {
        ErrorKind::InvalidArgs | ErrorKind::NotFound => {
            ErrorData::invalid_params(error.to_string(), None)
        }
        _ => ErrorData::internal_error(error.to_string(), None),
    }
}

/// The resources that one legacy peer wants to hear of.
#[derive(Default)]
pub(super) struct Watched(Mutex<Vec<String>>);

impl Watched {
    /// How many one peer may watch.
    pub(super) const ROOM: usize = 1024;

    pub(super) fn add(&self, uri: String) -> Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.contains(&uri) {
            return Ok(());
        }
        if all.len() == Self::ROOM {
            return Err(ErrorData::invalid_request("no more resources can be watched", None));
        }
        all.push(uri);
        Ok(())
    }

    pub(super) fn remove(&self, uri: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| known != uri);
    }

    pub(super) fn has(&self, uri: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|known| known == uri)
    }
}
