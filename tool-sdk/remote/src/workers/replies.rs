//! The inbox to which workers report on running calls.
//!
//! One subscription serves all calls of a host, as the client of NATS does for requests with one answer:
//! a subscription for each call would send two more messages to the server.
//!
//! **Invariant:** a message reaches the call whose token ends its subject, and no other one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::permit::random_id;

/// How many messages of a call may wait; a call notices by their numbers that further ones are missing.
const MAX_WAITING: usize = 1 << 16;

/// The senders to running calls, by the tokens of their subjects.
type ReplyRoutes = Arc<Mutex<HashMap<String, mpsc::Sender<Message>>>>;

/// The inbox of a host.
pub(super) struct ReplyInbox {
    prefix: String,
    routes: ReplyRoutes,
    _router: AbortOnDropHandle<()>,
}

impl ReplyInbox {
    /// Subscribes to the inbox.
    pub(super) async fn open(client: &Client) -> Result<Self, String> {
        let prefix = client.new_inbox();
        let messages = client.subscribe(format!("{prefix}.*")).await;
        let messages = messages.map_err(|error| error.to_string())?;
        let routes = ReplyRoutes::default();
        let router = tokio::spawn(route_messages(messages, Arc::clone(&routes)));
        Ok(Self { prefix, routes, _router: AbortOnDropHandle::new(router) })
    }

    /// Returns the replies to a subject of their own.
    pub(super) fn receive_replies(&self) -> CallReplies {
        let token = random_id();
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        lock(&self.routes).insert(token.clone(), sender);
        let subject = format!("{}.{token}", self.prefix);
        CallReplies { subject, messages, token, routes: Arc::clone(&self.routes) }
    }
}

/// The replies to one call, until this is dropped.
pub(super) struct CallReplies {
    pub(super) subject: String,
    pub(super) messages: mpsc::Receiver<Message>,
    token: String,
    routes: ReplyRoutes,
}

impl Drop for CallReplies {
    fn drop(&mut self) {
        lock(&self.routes).remove(&self.token);
    }
}

/// Passes messages on to their calls until the connection ends.
async fn route_messages(mut messages: Subscriber, routes: ReplyRoutes) {
    while let Some(message) = messages.next().await {
        let token = message.subject.rsplit('.').next().unwrap_or_default();
        let call = lock(&routes).get(token).cloned();
        // The call of a late message has ended.
        if let Some(call) = call {
            let _ = call.try_send(message);
        }
    }
    // Calls that still wait see the end.
    lock(&routes).clear();
}

fn lock(
    routes: &Mutex<HashMap<String, mpsc::Sender<Message>>>,
) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Message>>> {
    routes.lock().unwrap_or_else(PoisonError::into_inner)
}
