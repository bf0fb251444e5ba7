//! The folders that a client at two streams says it works in (roots), for hosts that let their tools
//! read them.
//!
//! A legacy client is asked when it begins and when it says that its roots changed. A call waits for the
//! answer, for a short time. A modern client has no roots outside of calls and no notification of changes,
//! so it is asked by the result of a call, and again by the first call after a minute.
//!
//! **Invariant:** without a host's callback no client is asked, and no folder is used.

// Roots are deprecated in the protocol, but current clients still have them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Url;
use rmcp::model::{
    InputRequest, InputRequests, InputResponses, ListRootsRequest, ListRootsResult, ServerRequest,
};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;
use tool_sdk_core::{InquiryKind, Session};

use super::connection::Connection;
use super::input::InputCapabilities;

/// How many folders of a client are used.
const MAX_ROOTS: usize = 32;
/// How long a client may take to list its roots.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a call waits for a list that was requested before it.
const CALL_WAIT: Duration = Duration::from_secs(2);

/// How long the roots of a modern client are used before it is asked again.
const MAX_AGE: Duration = Duration::from_secs(60);
/// The key of the request for roots among the input requests.
const ROOTS_KEY: &str = "client_roots";

/// Changes a session so that its tools can read these folders.
pub(super) type RootsCallback = Arc<dyn Fn(Session, &[PathBuf]) -> Session + Send + Sync>;

/// The roots of one client.
pub(super) struct ClientRoots {
    folders: Mutex<Vec<PathBuf>>,
    /// How many lists are requested and not received.
    pending: watch::Sender<usize>,
    /// When a modern client was last asked with an answer.
    answered_at: Mutex<Option<Instant>>,
}

impl Default for ClientRoots {
    fn default() -> Self {
        Self {
            folders: Mutex::default(),
            pending: watch::Sender::new(0),
            answered_at: Mutex::default(),
        }
    }
}

impl ClientRoots {
    fn replace(&self, listed: &ListRootsResult) {
        let uris = listed.roots.iter().take(MAX_ROOTS);
        let folders = uris.filter_map(|root| to_folder(&root.uri)).collect();
        *self.folders.lock().unwrap_or_else(PoisonError::into_inner) = folders;
    }

    /// Takes the answer of a modern client, which counts also when it is not a list: the client is not
    /// asked in a loop.
    fn accept_answer(&self, answer: Value) {
        match ListRootsResult::deserialize(answer) {
            Ok(listed) => self.replace(&listed),
            Err(_) => tracing::warn!("the client did not list its roots"),
        }
        *self.answered_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns whether a modern client has to be asked.
    fn is_outdated(&self) -> bool {
        let answered = *self.answered_at.lock().unwrap_or_else(PoisonError::into_inner);
        answered.is_none_or(|at| at.elapsed() > MAX_AGE)
    }
}

impl Connection {
    /// Requests the roots of the client, if the host uses them and the client has any.
    pub(super) fn request_roots(self: &Arc<Self>) {
        let input = self.legacy_client().map(|client| client.input);
        let has_roots = input.is_some_and(|input| input.supports(InquiryKind::Roots));
        if self.server.roots_callback.is_none() || !has_roots || !self.is_at_streams() {
            return;
        }
        self.roots.pending.send_modify(|pending| *pending += 1);
        let (connection, closed) = (Arc::clone(self), self.closed.clone());
        tokio::spawn(closed.run_until_cancelled_owned(async move {
            let request = ServerRequest::ListRootsRequest(ListRootsRequest::default());
            let answer = connection.outgoing.send_request(&connection.sink, request);
            let listed = match timeout(LIST_TIMEOUT, answer).await {
                Ok(Ok(Ok(answer))) => ListRootsResult::deserialize(&answer).ok(),
                _ => None,
            };
            match listed {
                Some(listed) => connection.roots.replace(&listed),
                None => tracing::warn!("the client did not list its roots"),
            }
            connection.roots.pending.send_modify(|pending| *pending -= 1);
        }));
    }

    /// Returns the request for the roots of a modern client if the call needs them and the client did not
    /// send them with the call.
    pub(super) fn missing_roots(
        &self,
        input: InputCapabilities,
        answers: &mut InputResponses,
    ) -> Option<InputRequests> {
        if let Some(answer) = answers.remove(ROOTS_KEY) {
            self.roots.accept_answer(answer);
        }
        let is_wanted = self.server.roots_callback.is_some()
            && input.supports(InquiryKind::Roots)
            && self.is_at_streams()
            && self.roots.is_outdated();
        let request = || InputRequest::ListRoots(ListRootsRequest::default());
        is_wanted.then(|| [(ROOTS_KEY.to_owned(), request())].into())
    }

    /// Waits until the roots that were requested are received, or for a short time.
    pub(super) async fn wait_for_roots(&self) {
        let mut pending = self.roots.pending.subscribe();
        let _ = timeout(CALL_WAIT, pending.wait_for(|pending| *pending == 0)).await;
    }

    /// Returns the session with the client's roots.
    pub(super) fn apply_roots(&self, session: Session) -> Session {
        let Some(apply) = &self.server.roots_callback else { return session };
        let folders = self.roots.folders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match folders.is_empty() {
            true => session,
            false => apply(session, &folders),
        }
    }
}

/// Returns the folder of a root; `None` if it is not on this computer.
fn to_folder(uri: &str) -> Option<PathBuf> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?;
    url.to_file_path().ok()
}
