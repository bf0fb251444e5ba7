//! What ends with a pipeline or a plugin: connections, processes and other work that outlives a call.
//!
//! **Invariant:** a callback runs at most once, and none keeps a session alive.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};

use super::{CloseCallback, Session, SessionHandle};

/// How long each callback may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The callbacks of one pipeline, or of one plugin.
#[derive(Default)]
pub(crate) struct CloseCallbacks(Mutex<Vec<RegisteredCallback>>);

struct RegisteredCallback {
    name: Cow<'static, str>,
    /// The session to which it belongs; `None` for the whole pipeline or plugin.
    session: Option<SessionHandle>,
    run: CloseCallback,
}

impl CloseCallbacks {
    /// Adds a callback for the pipeline or the plugin.
    pub(crate) fn add(&self, name: Cow<'static, str>, run: CloseCallback) {
        self.lock().push(RegisteredCallback { name, session: None, run });
    }

    /// Adds a callback for a session, unless the session has one of this name. Callbacks of ended
    /// sessions are dropped.
    pub(crate) fn add_for_session(
        &self,
        session: &Session,
        name: Cow<'static, str>,
        run: CloseCallback,
    ) {
        let mut all = self.lock();
        all.retain(|callback| callback.session.as_ref().is_none_or(SessionHandle::is_alive));
        let is_known = all.iter().any(|callback| {
            callback.name == name
                && callback.session.as_ref().is_some_and(|handle| handle.is_of(session))
        });
        if !is_known {
            all.push(RegisteredCallback { name, session: Some(session.handle()), run });
        }
    }

    /// Runs all callbacks at once; returns the names of those that panicked or did not end in
    /// time.
    pub(crate) fn run(&self) -> impl Future<Output = Vec<String>> + Send + use<> {
        let callbacks = std::mem::take(&mut *self.lock());
        let running: Vec<BoxFuture<'static, Option<String>>> =
            callbacks.into_iter().map(|callback| callback.run().boxed()).collect();
        async move { join_all(running).await.into_iter().flatten().collect() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RegisteredCallback>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RegisteredCallback {
    /// Runs the callback; returns its name if it failed.
    async fn run(self) -> Option<String> {
        let run = AssertUnwindSafe(async move { (self.run)().await }).catch_unwind();
        match tokio::time::timeout(CLOSE_TIMEOUT, run).await {
            Ok(Ok(())) => None,
            Ok(Err(_)) | Err(_) => Some(self.name.into_owned()),
        }
    }
}
