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

/// Reads a resource, by server name and URI.
type ReadResource = Arc<dyn Fn(String, String) -> RemoteFuture<'static, Value> + Send + Sync>;

/// Prefetches the resources that results of other servers' tools link to, in the background.
///
/// It is an after-hook that changes nothing and never waits.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tool_sdk::mcp::{ResourcePrefetcher, ResourceCache, ServerManager};
/// use tool_sdk::{Pipeline, HookPriority, Registry};
///
/// let servers = ServerManager::for_pipeline(&Pipeline::new(Registry::default()));
/// let cache = ResourceCache::new(NonZeroUsize::MIN, Duration::from_secs(300));
/// let previews = ResourcePrefetcher::new(Arc::new(cache), move |server, uri| {
///     let servers = servers.clone();
///     async move { servers.read_resource(&server, &uri).await }
/// });
/// let pipeline = Pipeline::new(Registry::default()).hook("mcp__*", HookPriority::DEFAULT, previews);
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
    /// Returns a prefetcher that fills `cache` by calling `read` with server name and URI.
    pub fn new<F>(
        cache: Arc<ResourceCache>,
        read: impl Fn(String, String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Value, crate::client::RemoteError>> + Send + 'static,
    {
        Self { cache, read: Arc::new(move |server, uri| Box::pin(read(server, uri))) }
    }

    /// Starts fetching the resources that the result links to, and returns their number.
    pub fn prefetch_linked(&self, tool: &Definition, output: &Output) -> usize {
        let ToolSource::Mcp { server } = &tool.source else { return 0 };
        let uris = linked_resources(output);
        let count = uris.len();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return 0 };
        if count > 0 {
            let (cache, read, server) =
                (Arc::clone(&self.cache), Arc::clone(&self.read), server.clone());
            runtime.spawn(async move {
                cache.prefetch(&server, &uris, |server, uri| read(server, uri)).await;
            });
        }
        count
    }
}

/// Returns the resources that the result links to and does not contain. Web addresses are no MCP
/// resources.
fn linked_resources(output: &Output) -> Vec<String> {
    let linked = output.attachments().iter().filter_map(|attachment| match &attachment.data {
        AttachmentData::Uri(uri) => Some(uri.clone()),
        AttachmentData::Bytes(_) => None,
    });
    let shown = output.metadata_map().and_then(|facts| {
        facts.get("_meta")?.pointer("/ui/resourceUri")?.as_str().map(str::to_owned)
    });
    let is_resource = |uri: &String| !uri.starts_with("http://") && !uri.starts_with("https://");
    let uris: BTreeSet<String> = linked.chain(shown).filter(is_resource).collect();
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

    // F125
    #[tokio::test]
    async fn what_a_result_speaks_of_is_fetched_beside_it() {
        let cache = ResourceCache::new(NonZeroUsize::new(4).unwrap(), Duration::from_secs(60));
        let (cache, go) = (Arc::new(cache), Arc::new(Notify::new()));
        let gate = Arc::clone(&go);
        let previews = ResourcePrefetcher::new(Arc::clone(&cache), move |server, uri| {
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                gate.notify_one();
                Ok(json!(format!("{server} {uri}")))
            }
        });
        let name = ToolName::from_static("mcp__s__t");
        let mut tool = Definition::new(name, "T.", Schema::default());
        let output = Output::text("see")
            .attach(Attachment::uri("text/html", "ui://page"))
            .attach(Attachment::uri("text/html", "https://example.com/"))
            .attach(Attachment::bytes("image/png", vec![1]))
            .metadata("_meta", json!({ "ui": { "resourceUri": "ui://more" } }));
        assert_eq!(previews.prefetch_linked(&tool, &output), 0, "it is no foreign tool");

        tool.source = ToolSource::Mcp { server: "s".to_owned() };
        assert_eq!(previews.prefetch_linked(&tool, &output), 2);
        assert_eq!(cache.stats().size, 0, "nobody waited");
        go.notify_one();
        while cache.stats().size < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*cache.get("s", "ui://page").unwrap(), "s ui://page");
    }
}
