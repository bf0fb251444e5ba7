//! Prefetches resources that a tool result links to, while the user reads the result.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tool_sdk_core::{
    AttachmentData, Definition, Hook, HookContext, OnError, Output, ToolError, ToolSource,
};

use super::ResourceCache;
use crate::client::RemoteFuture;

/// The maximum number of prefetched resources per result.
const MAX_PREFETCHED: usize = 16;

/// Reads a resource, by server name and URI; without a name it is one of the program itself.
type ReadResource =
    Arc<dyn Fn(Option<String>, String) -> RemoteFuture<'static, Value> + Send + Sync>;

/// Prefetches the resources that results link to, in the background: those of other servers' tools, and
/// those of the program's own tools, with the page of their `display(ui = ..)`.
///
/// It is an after-hook that changes nothing and never waits.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::sync::Arc;
/// use std::time::Duration;
/// use serde_json::json;
/// use tool_sdk::mcp::{ResourcePrefetcher, ResourceCache, ServerManager};
/// use tool_sdk::{Pipeline, HookPriority, Registry};
///
/// let servers = ServerManager::for_pipeline(&Pipeline::new(Registry::default()));
/// let cache = ResourceCache::new(NonZeroUsize::MIN, Duration::from_secs(300));
/// let previews = ResourcePrefetcher::new(Arc::new(cache), move |server, uri| {
///     let servers = servers.clone();
///     async move {
///         match server {
///             Some(server) => servers.read_resource(&server, &uri).await,
///             // A resource of this program.
///             None => Ok(json!({ "contents": [{ "uri": uri, "text": "a page" }] })),
///         }
///     }
/// });
/// let pipeline = Pipeline::new(Registry::default()).hook("*", HookPriority::DEFAULT, previews);
/// ```
#[derive(Clone)]
pub struct ResourcePrefetcher {
    cache: Arc<ResourceCache>,
    read: ReadResource,
}

impl fmt::Debug for ResourcePrefetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Previews").field(&self.cache).finish()
    }
}

impl ResourcePrefetcher {
    /// Returns a prefetcher that fills `cache` by calling `read` with server name and URI. There is no
    /// server name for a resource of the program itself.
    pub fn new<F>(
        cache: Arc<ResourceCache>,
        read: impl Fn(Option<String>, String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Value, crate::client::RemoteError>> + Send + 'static,
    {
        Self { cache, read: Arc::new(move |server, uri| Box::pin(read(server, uri))) }
    }

    /// Starts fetching the resources that the result links to, and returns their number.
    pub fn prefetch_linked(&self, tool: &Definition, output: &Output) -> usize {
        let server = match &tool.source {
            ToolSource::Mcp { server } => Some(server.clone()),
            ToolSource::Native => None,
            _ => return 0,
        };
        let own_page = tool.display.ui.clone().filter(|_| server.is_none());
        let uris = linked_resources(output, own_page);
        let count = uris.len();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return 0 };
        if count > 0 {
            let (cache, read) = (Arc::clone(&self.cache), Arc::clone(&self.read));
            runtime.spawn(async move {
                cache.prefetch(server.as_deref(), &uris, |server, uri| read(server, uri)).await;
            });
        }
        count
    }
}

/// Returns the resources that the result links to and does not contain. Web addresses are no MCP
/// resources.
fn linked_resources(output: &Output, own_page: Option<String>) -> Vec<String> {
    let linked = output.attachments().iter().filter_map(|attachment| match &attachment.data {
        AttachmentData::Uri(uri) => Some(uri.clone()),
        AttachmentData::Bytes(_) => None,
    });
    let shown = output.metadata_map().and_then(|facts| {
        facts.get("_meta")?.pointer("/ui/resourceUri")?.as_str().map(str::to_owned)
    });
    let is_resource = |uri: &String| !uri.starts_with("http://") && !uri.starts_with("https://");
    let uris: BTreeSet<String> = linked.chain(shown).chain(own_page).filter(is_resource).collect();
    uris.into_iter().take(MAX_PREFETCHED).collect()
}

impl Hook for ResourcePrefetcher {
    async fn after(
        &self,
        call: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        if let Ok(output) = result {
            self.prefetch_linked(call.definition(), output);
        }
        Ok(())
    }

    fn on_error(&self) -> OnError {
        OnError::Ignore
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::time::Duration;

    use serde_json::json;
    use tokio::sync::Notify;
    use tool_sdk_core::{Attachment, Schema, ToolName};

    use super::*;

    // F125, F191: linked resources of foreign and of own tools are fetched beside the result.
    #[tokio::test]
    async fn linked_resources_are_fetched_in_the_background() {
        let cache = ResourceCache::new(NonZeroUsize::new(4).unwrap(), Duration::from_secs(60));
        let (cache, go) = (Arc::new(cache), Arc::new(Notify::new()));
        let gate = Arc::clone(&go);
        let previews = ResourcePrefetcher::new(Arc::clone(&cache), move |server, uri| {
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                gate.notify_one();
                Ok(json!(format!("{} {uri}", server.unwrap_or_default())))
            }
        });
        let name = ToolName::from_static("mcp__s__t");
        let mut tool = Definition::new(name, "T.", Schema::default());
        let output = Output::text("see")
            .attach(Attachment::uri("text/html", "ui://page"))
            .attach(Attachment::uri("text/html", "https://example.com/"))
            .attach(Attachment::bytes("image/png", vec![1]))
            .metadata("_meta", json!({ "ui": { "resourceUri": "ui://more" } }));
        tool.source = ToolSource::Remote { namespace: "shop".to_owned() };
        assert_eq!(previews.prefetch_linked(&tool, &output), 0);

        tool.source = ToolSource::Mcp { server: "s".to_owned() };
        assert_eq!(previews.prefetch_linked(&tool, &output), 2);
        assert_eq!(cache.stats().size, 0, "nobody waited");
        go.notify_one();
        while cache.stats().size < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*cache.get("s", "ui://page").unwrap(), "s ui://page");

        tool.source = ToolSource::Native;
        Arc::make_mut(&mut tool.display).ui = Some("ui://board".to_owned());
        assert_eq!(previews.prefetch_linked(&tool, &Output::text("")), 1);
        while cache.stats().size < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*cache.get(None, "ui://board").unwrap(), " ui://board");
    }
}
