//! Reads the events of the pipeline once, and sorts them into logs: of each session, of each user,
//! and of all.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tool_sdk_core::{Subscription, ToolEvent};

use super::event_log::EventLog;
use super::metrics::CallMetrics;

/// How many calls without a named session are remembered, so that their events reach their user.
const MAX_UNNAMED_SESSIONS: usize = 4096;

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
    sessions: HashMap<String, SessionRoute>,
    users: HashMap<Option<String>, Arc<EventLog>>,
    /// The unnamed sessions among `sessions`, the oldest first.
    unnamed: VecDeque<String>,
    is_closed: bool,
}

#[derive(Debug)]
struct SessionRoute {
    user: Option<String>,
    /// The log of a named session.
    log: Option<Arc<EventLog>>,
}

impl EventHub {
    pub(super) fn new(run: String) -> Self {
        Self { run, all: Arc::default(), routes: Mutex::default() }
    }

    /// A poisoned lock still guards whole routes: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, LogRoutes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs the events of a session from now on.
    pub(super) fn add_session(&self, id: &str, user: Option<&str>) {
        let route = SessionRoute { user: user.map(str::to_owned), log: Some(Arc::default()) };
        self.lock().sessions.insert(id.to_owned(), route);
    }

    /// Sends the events of a session that no client can name to its user.
    pub(super) fn add_unnamed_session(&self, id: &str, user: Option<&str>) {
        let mut routes = self.lock();
        if routes.unnamed.len() == MAX_UNNAMED_SESSIONS
            && let Some(oldest) = routes.unnamed.pop_front()
        {
            routes.sessions.remove(&oldest);
        }
        routes.unnamed.push_back(id.to_owned());
        let route = SessionRoute { user: user.map(str::to_owned), log: None };
        routes.sessions.insert(id.to_owned(), route);
    }

    /// Ends the log of a session.
    pub(super) fn remove_session(&self, id: &str) {
        if let Some(SessionRoute { log: Some(log), .. }) = self.lock().sessions.remove(id) {
            log.close();
        }
    }

    /// Returns the log of a named session.
    pub(super) fn session_log(&self, id: &str) -> Option<Arc<EventLog>> {
        self.lock().sessions.get(id)?.log.clone()
    }

    /// Returns the log of the sessions of a user.
    pub(super) fn user_log(&self, user: Option<&str>) -> Arc<EventLog> {
        let mut routes = self.lock();
        let is_closed = routes.is_closed;
        let log = Arc::clone(routes.users.entry(user.map(str::to_owned)).or_default());
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
            self.log_event(Arc::new(event));
        }
        self.close();
    }

    fn log_event(&self, event: Arc<ToolEvent>) {
        let mut routes = self.lock();
        if let Some(route) = routes.sessions.get(&*event.session) {
            let (user, log) = (route.user.clone(), route.log.clone());
            if let Some(log) = log {
                log.push(Arc::clone(&event));
            }
            routes.users.entry(user).or_default().push(Arc::clone(&event));
        }
        drop(routes);
        self.all.push(event);
    }

    fn close(&self) {
        let mut routes = self.lock();
        routes.is_closed = true;
        self.all.close();
        routes.users.values().for_each(|log| log.close());
        routes.sessions.values().filter_map(|it| it.log.as_ref()).for_each(|log| log.close());
    }
}
