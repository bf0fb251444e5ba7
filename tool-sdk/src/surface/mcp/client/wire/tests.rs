//! How servers are met that do not say what they are.

use std::future::pending;

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
