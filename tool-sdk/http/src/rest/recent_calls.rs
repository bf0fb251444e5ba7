//! The last calls that no history has, so that administrators can read their results.
//!
//! A call without a named session belongs to its client alone. A person at the console sees it in
//! the timeline, and asks what the client got.
//!
//! **Invariant:** the size is bounded, and only calls that have ended are kept.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tool_sdk_core::CallRecord;

/// How many calls are kept; as many as a page of the console shows.
const MAX_CALLS: usize = 1000;
/// How many bytes of their results, as JSON.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The last calls that no history has.
#[derive(Debug, Default)]
pub(super) struct RecentCalls(Mutex<RecentCallQueue>);

#[derive(Debug, Default)]
struct RecentCallQueue {
    /// The oldest call first.
    calls: VecDeque<RecentCall>,
    bytes: usize,
}

#[derive(Debug)]
struct RecentCall {
    /// The call without its response.
    record: CallRecord,
    /// The response as JSON text, which takes less memory than the value.
    response: Option<String>,
}

impl RecentCall {
    fn bytes(&self) -> usize {
        self.response.as_ref().map_or(0, String::len)
    }
}

impl RecentCalls {
    /// A poisoned lock still guards a whole queue: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, RecentCallQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a call that has ended.
    pub(super) fn keep(&self, mut record: CallRecord) {
        let response = record.response.take().map(|it| it.to_string());
        let call = RecentCall { record, response };
        let mut queue = self.lock();
        queue.bytes += call.bytes();
        queue.calls.push_back(call);
        while queue.calls.len() > MAX_CALLS || queue.bytes > MAX_BYTES {
            let Some(oldest) = queue.calls.pop_front() else { break };
            queue.bytes -= oldest.bytes();
        }
    }

    /// Returns the call with this id.
    pub(super) fn find(&self, id: &str) -> Option<CallRecord> {
        let queue = self.lock();
        let call = queue.calls.iter().rev().find(|it| it.record.call == id)?;
        let response = call.response.as_deref().and_then(|it| serde_json::from_str(it).ok());
        Some(CallRecord { response, ..call.record.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::{Value, json};
    use tool_sdk_core::CallStatus;

    use super::*;

    fn record(id: usize, response: Value) -> CallRecord {
        CallRecord {
            call: format!("c{id}"),
            session: "once-1".to_owned(),
            user: None,
            tool: "t".to_owned(),
            arguments: json!({}),
            request: None,
            status: CallStatus::Completed,
            started_at: SystemTime::now(),
            elapsed_ms: Some(1),
            response: Some(response),
        }
    }

    #[test]
    fn keeps_the_last_calls_within_its_limits() {
        let recent = RecentCalls::default();
        (0..=MAX_CALLS).for_each(|id| recent.keep(record(id, json!({ "text": id }))));
        assert_eq!(recent.find("c0"), None);
        assert_eq!(recent.find("c1").unwrap().response, Some(json!({ "text": 1 })));
        let large = json!("x".repeat(MAX_BYTES / 4));
        (0..6).for_each(|id| recent.keep(record(2000 + id, large.clone())));
        assert_eq!((recent.find("c1000"), recent.find("c2002")), (None, None));
        assert_eq!(recent.find("c2005").unwrap().response, Some(large));
    }
}
