//! How servers are met that do not say what they are.

use std::future::{pending, ready};
use std::io;

use rmcp::model::{DiscoverRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};

use super::*;

/// A connection of which nothing is wanted.
struct Met;

impl Remote for Met {
    fn tools(&self) -> RemoteWork<'_, Vec<RemoteTool>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn call<'a>(&'a self, _: RemoteCall<'a>) -> RemoteWork<'a, RemoteResult> {
        Box::pin(async { Ok(RemoteResult::text("")) })
    }
}

/// What became of a server that answers only when it is met so.
async fn met(answers: fn(&ClientLifecycleMode) -> bool) -> Result<(), RemoteError> {
    let meet = |mode| async move {
        match mode {
            mode if answers(&mode) => Ok(Arc::new(Met) as Arc<dyn Remote>),
            ClientLifecycleMode::Auto { .. } => pending().await,
            _ => Err(RemoteError::protocol("no").into()),
        }
    };
    either(meet, Duration::from_secs(10)).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_met_as_an_older_one_and_then_with_patience() {
    let begun = Instant::now();
    met(|mode| matches!(mode, ClientLifecycleMode::Initialize)).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    met(|mode| matches!(mode, ClientLifecycleMode::Discover { .. })).await.unwrap();
    assert_eq!(met(|_| false).await.unwrap_err().message, "no");
}

/// A server that takes everything and says nothing.
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

// A program that starts slowly and is of today is met in the end.
#[test]
fn nobody_who_refused_to_be_an_older_server_is_taken_for_one_again() {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    assert_eq!(stdio::patience(&ClientLifecycleMode::Discover { preferred_versions }), None);
    assert!(stdio::patience(&today()).is_some());
}

// Over HTTP a server that is only slow is not taken for an older one after two seconds.
#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_taken_for_an_older_one_only_where_there_is_an_end_of_patience() {
    for patience in [Some(Duration::from_secs(2)), None] {
        let rest = (Overflow::default(), Arc::<Ears>::default(), CancellationToken::new());
        let mut guarded = Guarded::new(Silent, patience, rest.0, rest.1, rest.2).unwrap();
        let met = ClientRequest::DiscoverRequest(DiscoverRequest::default());
        guarded.send(JsonRpcMessage::request(met, RequestId::Number(0))).await.unwrap();
        let heard = timeout(Duration::from_secs(60), guarded.receive()).await;
        assert_eq!(heard.is_ok(), patience.is_some(), "{heard:?}");
    }
}
