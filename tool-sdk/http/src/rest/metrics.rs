//! Metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use tool_sdk_core::{EventKind, ToolEvent};

use super::caller::AdministrationCaller;
use super::service::RestService;

/// The upper bounds of the buckets of durations, in milliseconds.
const BUCKETS_MS: [u64; 10] = [5, 10, 50, 100, 500, 1000, 5000, 10_000, 60_000, 300_000];

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct CallMetrics {
    tools: Mutex<BTreeMap<String, ToolMetrics>>,
    lost_events: AtomicU64,
    subscribers: AtomicUsize,
}

/// The counts of one tool.
#[derive(Debug, Default)]
struct ToolMetrics {
    outcomes: BTreeMap<&'static str, u64>,
    /// How many calls took at most the bound of each bucket, and not that of the one before.
    buckets: [u64; BUCKETS_MS.len()],
    count: u64,
    sum_ms: u64,
}

impl CallMetrics {
    /// Counts an event: the end of a call, or lost events.
    pub(super) fn count_event(&self, event: &ToolEvent) {
        let (outcome, elapsed_ms) = match &event.kind {
            EventKind::Completed { elapsed_ms, .. } => ("ok", *elapsed_ms),
            EventKind::Failed(failure)
            | EventKind::Aborted(failure)
            | EventKind::TimedOut(failure) => (failure.error.as_str(), failure.elapsed_ms),
            EventKind::Lost { count } => {
                self.lost_events.fetch_add(*count, Ordering::Relaxed);
                return;
            }
            _ => return,
        };
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let tool = tools.entry(event.tool.name.to_string()).or_default();
        *tool.outcomes.entry(outcome).or_default() += 1;
        if let Some(at) = BUCKETS_MS.iter().position(|bound| elapsed_ms <= *bound) {
            tool.buckets[at] += 1;
        }
        tool.count += 1;
        tool.sum_ms = tool.sum_ms.saturating_add(elapsed_ms);
    }

    /// Counts a subscriber until the guard is dropped.
    pub(super) fn count_subscriber(self: &Arc<Self>) -> SubscriberGuard {
        self.subscribers.fetch_add(1, Ordering::Relaxed);
        SubscriberGuard(Arc::clone(self))
    }

    fn write_text(&self, open_approvals: usize, running_calls: usize) -> String {
        let mut text = String::new();
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        write_head(&mut text, "tool_calls_total", "counter", "Calls that ended.");
        for (name, tool) in &*tools {
            for (outcome, count) in &tool.outcomes {
                let labels = format!("tool=\"{name}\",outcome=\"{outcome}\"");
                write_line(&mut text, "tool_calls_total", &labels, *count);
            }
        }
        write_head(&mut text, "tool_call_duration_seconds", "histogram", "How long calls took.");
        for (name, tool) in &*tools {
            tool.write_histogram(name, &mut text);
        }
        let gauges = [
            ("tool_open_approvals", "Approval requests that wait.", open_approvals),
            ("tool_running_calls", "Calls over REST that run or wait.", running_calls),
            (
                "tool_event_subscribers",
                "Clients that follow events.",
                self.subscribers.load(Ordering::Relaxed),
            ),
        ];
        for (name, help, value) in gauges {
            write_head(&mut text, name, "gauge", help);
            write_line(&mut text, name, "", value);
        }
        let help = "Events that the server lost.";
        write_head(&mut text, "tool_lost_events_total", "counter", help);
        let lost = self.lost_events.load(Ordering::Relaxed);
        write_line(&mut text, "tool_lost_events_total", "", lost);
        text
    }
}

impl ToolMetrics {
    fn write_histogram(&self, name: &str, text: &mut String) {
        const METRIC: &str = "tool_call_duration_seconds";
        let mut total = 0;
        for (bound, count) in BUCKETS_MS.iter().zip(self.buckets) {
            total += count;
            let labels = format!("tool=\"{name}\",le=\"{}\"", seconds(*bound));
            write_line(text, &format!("{METRIC}_bucket"), &labels, total);
        }
        let labels = format!("tool=\"{name}\",le=\"+Inf\"");
        write_line(text, &format!("{METRIC}_bucket"), &labels, self.count);
        let labels = format!("tool=\"{name}\"");
        write_line(text, &format!("{METRIC}_sum"), &labels, seconds(self.sum_ms));
        write_line(text, &format!("{METRIC}_count"), &labels, self.count);
    }
}

/// Returns milliseconds as a decimal number of seconds.
fn seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn write_head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Labels need no escaping: names of tools and outcomes have none of the special characters.
fn write_line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = writeln!(text, "{name}{labels} {value}");
}

/// Counts a subscriber.
#[derive(Debug)]
pub(super) struct SubscriberGuard(Arc<CallMetrics>);

impl Drop for SubscriberGuard {
    fn drop(&mut self) {
        self.0.subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `GET /metrics`
pub(super) async fn get_metrics(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
) -> impl IntoResponse {
    let open = service.pipeline.pending_approvals().len();
    let text = service.metrics.write_text(open, service.running.len());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}
