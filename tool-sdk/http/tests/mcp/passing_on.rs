//! Changes of a server's resources and prompts reach the clients of another server, which passes
//! them on.

use tokio::sync::broadcast;
use tool_sdk_core::ConversationMessage;
use tool_sdk_mcp::{
    ClientFeatures, ForeignPrompts, ForeignResources, PromptDefinition, PromptProvider,
    ResourceDefinition, ResourceProvider, ServerConfig, ServerManager, TransportConfig,
    connect_streams,
};

use super::*;

/// A server whose only resource and prompts change when the test says so.
#[derive(Clone)]
struct NewspaperProvider {
    updates: broadcast::Sender<String>,
    lists: broadcast::Sender<()>,
    /// What was started and stopped.
    watched: Arc<std::sync::Mutex<Vec<String>>>,
    changed: Arc<Notify>,
}

impl NewspaperProvider {
    fn new() -> Self {
        let (updates, lists) = (broadcast::channel(8).0, broadcast::channel(8).0);
        Self { updates, lists, watched: Arc::default(), changed: Arc::default() }
    }

    fn record(&self, what: String) {
        self.watched.lock().unwrap().push(what);
        self.changed.notify_one();
    }

    async fn wait_for(&self, what: &str) {
        while !self.watched.lock().unwrap().iter().any(|seen| seen == what) {
            self.changed.notified().await;
        }
    }
}

impl ResourceProvider for NewspaperProvider {
    async fn list(&self) -> Vec<ResourceDefinition> {
        vec![ResourceDefinition::new("news://today", "today")]
    }

    async fn read(&self, _: &str) -> Result<Option<Attachment>, ToolError> {
        Ok(Some(Attachment::bytes("text/plain", b"nothing new".to_vec())))
    }

    fn subscribe_updates(&self) -> Option<broadcast::Receiver<String>> {
        Some(self.updates.subscribe())
    }

    fn start_updates(&self, uri: &str) {
        self.record(format!("start {uri}"));
    }

    fn stop_updates(&self, uri: &str) {
        self.record(format!("stop {uri}"));
    }

    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        Some(self.lists.subscribe())
    }
}

impl PromptProvider for NewspaperProvider {
    async fn list(&self) -> Vec<PromptDefinition> {
        vec![PromptDefinition::new("summary", "Sum it up.")]
    }

    async fn get(
        &self,
        _: &str,
        _: &serde_json::Map<String, Value>,
        _: &Session,
    ) -> Result<Vec<ConversationMessage>, ToolError> {
        Ok(vec![ConversationMessage::text("user", "Sum it up.")])
    }

    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        Some(self.lists.subscribe())
    }
}

/// Returns a server that passes on what the newspaper's server has.
async fn passing_server(news: &NewspaperProvider) -> (Server, ServerManager) {
    let origin = server().with_resources(news.clone()).with_prompts(news.clone());
    let pipeline = Pipeline::new(Registry::default());
    let servers = ServerManager::for_pipeline(&pipeline);
    let transport = TransportConfig::custom(move || {
        let origin = origin.clone();
        async move {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let (read, write) = tokio::io::split(theirs);
            tokio::spawn(async move { origin.serve(read, write).await });
            let (read, write) = tokio::io::split(ours);
            connect_streams(read, write, ClientFeatures::none()).await
        }
    });
    servers.add(ServerConfig::new("news", transport).unwrap()).unwrap();
    servers.connect("news").await.unwrap();
    let passing = Server::new(pipeline, Session::default())
        .with_resources(ForeignResources::new(servers.clone()))
        .with_prompts(ForeignPrompts::new(servers.clone()));
    (passing, servers)
}

const PASSED: &str = "mcp://news/news://today";

#[tokio::test]
async fn a_legacy_client_hears_of_resources_of_another_server() {
    let news = NewspaperProvider::new();
    let (server, _servers) = passing_server(&news).await;
    let mut peer = Peer::legacy(&server, json!({})).await;
    let subscribed = peer.request("resources/subscribe", json!({ "uri": PASSED })).await;
    assert!(subscribed["error"].is_null(), "{subscribed}");
    news.wait_for("start news://today").await;
    news.updates.send("news://today".to_owned()).unwrap();
    let updated = peer.receive_method("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], PASSED);
    peer.request("resources/unsubscribe", json!({ "uri": PASSED })).await;
    news.wait_for("stop news://today").await;
}

#[tokio::test]
async fn a_legacy_client_hears_of_lists_of_another_server() {
    let news = NewspaperProvider::new();
    let (server, _servers) = passing_server(&news).await;
    let mut peer = Peer::legacy(&server, json!({})).await;
    peer.request("ping", json!({})).await;
    news.lists.send(()).unwrap();
    peer.receive_method("notifications/resources/list_changed").await;
    peer.receive_method("notifications/prompts/list_changed").await;
}

#[tokio::test]
async fn a_modern_client_hears_of_what_it_listens_to() {
    let news = NewspaperProvider::new();
    let (server, _servers) = passing_server(&news).await;
    let mut peer = Peer::modern(&server, json!({}));
    let wanted = json!({
        "resourcesListChanged": true, "promptsListChanged": true,
        "resourceSubscriptions": [PASSED],
    });
    let id = peer.send("subscriptions/listen", json!({ "notifications": wanted })).await;
    let accepted = peer.receive_method("notifications/subscriptions/acknowledged").await;
    assert_eq!(accepted["params"]["notifications"], wanted, "{accepted}");
    news.wait_for("start news://today").await;
    news.updates.send("news://today".to_owned()).unwrap();
    let updated = peer.receive_method("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], PASSED);
    news.lists.send(()).unwrap();
    peer.receive_method("notifications/resources/list_changed").await;
    peer.receive_method("notifications/prompts/list_changed").await;
    // The end of the subscription ends it at the other server, too.
    peer.notify("notifications/cancelled", json!({ "requestId": id })).await;
    news.wait_for("stop news://today").await;
}
