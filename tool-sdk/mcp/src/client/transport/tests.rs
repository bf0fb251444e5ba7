//! Tests of the handshake with servers of unknown versions.

use std::future::{pending, ready};
use std::io;

use rmcp::model::{DiscoverRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};

use super::*;

/// A connection without tools.
struct Met;

impl RemoteConnection for Met {
    fn list_tools(&self) -> RemoteFuture<'_, Vec<RemoteTool>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn call_tool<'a>(&'a self, _: RemoteCall<'a>) -> RemoteFuture<'a, RemoteResult> {
        Box::pin(async { Ok(RemoteResult::text("")) })
    }
}

/// Connects to a server that answers only in the given lifecycle modes.
async fn met(answers: fn(&ClientLifecycleMode) -> bool) -> Result<(), RemoteError> {
    let meet = |mode| async move {
        match mode {
            mode if answers(&mode) => Ok(Arc::new(Met) as Arc<dyn RemoteConnection>),
            ClientLifecycleMode::Auto { .. } => pending().await,
            _ => Err(RemoteError::protocol("no").into()),
        }
    };
    connect_with_fallback(meet, Duration::from_secs(10)).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn hanging_server_gets_the_older_handshake_and_then_no_timeout() {
    let begun = Instant::now();
    met(|mode| matches!(mode, ClientLifecycleMode::Initialize)).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    met(|mode| matches!(mode, ClientLifecycleMode::Discover { .. })).await.unwrap();
    assert_eq!(met(|_| false).await.unwrap_err().message, "no");
}

/// A server that reads everything and never answers.
struct Silent;

impl Transport<RoleClient> for Silent {
    type Error = io::Error;

    fn send(
        &mut self,
        _: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        pending().await
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// A program that starts slowly is connected in the end.
#[test]
fn last_attempt_has_no_discover_timeout() {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    assert_eq!(
        stdio::discover_timeout(&ClientLifecycleMode::Discover { preferred_versions }),
        None
    );
    assert!(stdio::discover_timeout(&lifecycle_mode()).is_some());
}

// Over HTTP a slow server gets more than two seconds.
#[tokio::test(start_paused = true)]
async fn discover_timeout_answers_in_place_of_the_server() {
    for patience in [Some(Duration::from_secs(2)), None] {
        let rest = (
            ProtocolViolation::default(),
            Arc::<NotificationHandler>::default(),
            CancellationToken::new(),
        );
        let mut guarded = RequestIdGuard::new(Silent, patience, rest.0, rest.1, rest.2).unwrap();
        let met = ClientRequest::DiscoverRequest(DiscoverRequest::default());
        guarded.send(JsonRpcMessage::request(met, RequestId::Number(0))).await.unwrap();
        let heard = timeout(Duration::from_secs(60), guarded.receive()).await;
        assert_eq!(heard.is_ok(), patience.is_some(), "{heard:?}");
    }
}
