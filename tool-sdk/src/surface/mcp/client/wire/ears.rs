//! What a server says without being asked: how far calls are, and that its tools changed.
//!
//! **Invariant:** a server asks nothing of us. Whatever it would like to know or to have done
//! is refused by the library, because nothing of it was offered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RoleClient};
use tokio::sync::{Notify, mpsc};

use super::super::remote::Report;

/// How many messages about one call may wait to be told.
const MOST_WAITING: usize = 64;

/// Who hears what a server says.
#[derive(Debug, Default)]
pub(super) struct Ears {
    changed: Notify,
    calls: Arc<Calls>,
}

type Calls = Mutex<HashMap<ProgressToken, mpsc::Sender<Step>>>;

/// How far a call is.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) done: u64,
    pub(super) total: Option<u64>,
    pub(super) message: String,
}

impl Step {
    pub(super) fn tell(self, report: Report<'_>) {
        report(self.done, self.total, self.message);
    }
}

/// The steps of one call, for as long as somebody wants to know.
pub(super) struct Steps {
    token: ProgressToken,
    calls: Arc<Calls>,
    steps: mpsc::Receiver<Step>,
}

impl Steps {
    pub(super) async fn next(&mut self) -> Option<Step> {
        self.steps.recv().await
    }

    /// A step that came already.
    pub(super) fn waiting(&mut self) -> Option<Step> {
        self.steps.try_recv().ok()
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl Ears {
    /// Waits until the tools are others.
    pub(super) async fn change(&self) {
        self.changed.notified().await;
    }

    pub(super) fn heard_of_change(&self) {
        self.changed.notify_one();
    }

    /// Tells whoever wants to know how far a call is.
    pub(super) fn heard_of_progress(&self, said: ProgressNotificationParam) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = calls.get(&said.progress_token) {
            let (done, total) = (whole(said.progress), said.total.map(whole));
            let step = Step { done, total, message: said.message.unwrap_or_default() };
            // Whoever says more than can be told has shown already that it is there.
            let _ = call.try_send(step);
        }
    }

    /// Listens for how far the call with this token is.
    pub(super) fn listen_for(&self, token: &ProgressToken) -> Steps {
        let (tell, steps) = mpsc::channel(MOST_WAITING);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert(token.clone(), tell);
        Steps { token: token.clone(), calls: Arc::clone(&self.calls), steps }
    }
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.heard_of_change();
    }
}

/// Steps are whole here; what is less than nothing is nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
