//! Sends log messages of running tools to the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Value, json};
use tool_sdk_core::{Signal, ToolName, internal::SessionListener};

use super::line_writer::LineWriter;
use super::response_writer;

/// The least important log message that a peer wants, in the order of the protocol.
pub(crate) struct LogThreshold(AtomicU8);

impl LogThreshold {
    const DEBUG: u8 = 0;
    const INFO: u8 = 1;
    const WARNING: u8 = 3;

    pub(crate) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, level: u8) {
        self.0.store(level, Ordering::Relaxed);
    }
}

impl Default for LogThreshold {
    fn default() -> Self {
        Self(AtomicU8::new(Self::INFO))
    }
}

/// Writes log messages of running tools. Those who want progress have their calls go
/// another way.
pub(super) struct LogForwarder {
    pub(super) out: Arc<LineWriter>,
    pub(super) level: Arc<LogThreshold>,
}

impl SessionListener for LogForwarder {
    fn on_signal(&self, tool: &ToolName, signal: &Signal) {
        match signal {
            Signal::Emitted { kind, data } if self.level.get() <= LogThreshold::INFO => {
                self.write_log("info", tool, &json!({ "kind": kind, "data": data }));
            }
            Signal::Output { text } if self.level.get() == LogThreshold::DEBUG => {
                self.write_log("debug", tool, &json!(text));
            }
            _ => {}
        }
    }

    fn on_warning(&self, tool: &ToolName, message: &str) {
        if self.level.get() <= LogThreshold::WARNING {
            self.write_log("warning", tool, &json!(message));
        }
    }
}

impl LogForwarder {
    fn write_log(&self, level: &str, tool: &ToolName, data: &Value) {
        let said = json!({ "level": level, "logger": tool.as_str(), "data": data });
        self.out.enqueue(|queue| {
            response_writer::write_notification(queue, "notifications/message", &said)
        });
    }
}
