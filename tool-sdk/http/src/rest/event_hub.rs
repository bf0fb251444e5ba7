//! Reads the events of the pipeline once, and sorts them into logs: of each session, of each user,
//! and of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tool_sdk_core::Subscription;

use super::event_log::{EventLog, LogLimits, LoggedEvent};
use super::metrics::CallMetrics;

/// How many users have a log. The events of others are in the log of all.
const MAX_USERS: usize = 1024;

/// The logs of events.
#[derive(Debug)]
pub(super) struct EventHub {
    /// Part of the ids of events, so that an id of an earlier run of the server is not mistaken for
    /// one of this run.
    run: String,
    all: Arc<EventLog>,
    routes: Mutex<LogRoutes>,
}

/// Where the events of each session go.
#[derive(Debug, Default)]
struct LogRoutes {
    /// The logs of the named sessions.
    sessions: HashMap<String, Arc<EventLog>>,
    users: HashMap<Option<String>, Arc<EventLog>>,
    is_closed: bool,
}

impl EventHub {
    pub(super) fn new(run: String) -> Self {
        let all = Arc::new(EventLog::new(LogLimits::SHARED));
        Self { run, all, routes: Mutex::default() }
    }

    /// A poisoned lock still guards whole routes: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, LogRoutes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs the events of a session from now on.
    pub(super) fn add_session(&self, id: &str) {
        let log = Arc::new(EventLog::new(LogLimits::SESSION));
        self.lock().sessions.insert(id.to_owned(), log);
    }

    /// Ends the log of a session.
    pub(super) fn remove_session(&self, id: &str) {
        if let Some(log) = self.lock().sessions.remove(id) {
            log.close();
        }
    }

    /// Returns the log of a named session.
    pub(super) fn session_log(&self, id: &str) -> Option<Arc<EventLog>> {
        self.lock().sessions.get(id).cloned()
    }

    /// Returns the log of the sessions of a user.
    pub(super) fn user_log(&self, user: Option<&str>) -> Arc<EventLog> {
        let mut routes = self.lock();
        let is_closed = routes.is_closed;
        let log = routes.users.entry(user.map(str::to_owned)).or_insert_with(new_user_log);
        let log = Arc::clone(log);
        if is_closed {
            log.close();
        }
        log
    }

    /// Returns the log of all sessions.
    pub(super) fn full_log(&self) -> &Arc<EventLog> {
        &self.all
    }

    /// Returns the id of the event with this number, for clients.
    pub(super) fn event_id(&self, seq: u64) -> String {
        format!("{}-{seq}", self.run)
    }

    /// Returns the number of the event with this id; `None` for an id of another run.
    pub(super) fn parse_event_id(&self, id: &str) -> Option<u64> {
        id.strip_prefix(&*self.run)?.strip_prefix('-')?.parse().ok()
    }

    /// Sorts events into the logs until the pipeline is closed.
    pub(super) async fn pump(&self, mut events: Subscription, metrics: &CallMetrics) {
        while let Some(event) = events.recv().await {
            metrics.count_event(&event);
            self.log_event(Arc::new(LoggedEvent::new(event)));
        }
        self.close();
    }

    fn log_event(&self, event: Arc<LoggedEvent>) {
        let mut routes = self.lock();
        if let Some(log) = routes.sessions.get(&*event.event.session) {
            log.push(Arc::clone(&event));
        }
        // Also of sessions at `/mcp` and of the host, whose approval requests the user answers.
        let user = &event.event.ids.user;
        if let Some(log) = routes.users.get(user) {
            log.push(Arc::clone(&event));
        } else if routes.users.len() < MAX_USERS {
            let log = routes.users.entry(user.clone()).or_insert_with(new_user_log);
            log.push(Arc::clone(&event));
        }
        drop(routes);
        self.all.push(event);
    }

    fn close(&self) {
        let mut routes = self.lock();
        routes.is_closed = true;
        self.all.close();
        routes.users.values().for_each(|log| log.close());
        routes.sessions.values().for_each(|log| log.close());
    }
}

fn new_user_log() -> Arc<EventLog> {
    Arc::new(EventLog::new(LogLimits::SHARED))
}
