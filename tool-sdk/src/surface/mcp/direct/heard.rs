//! Tells a peer what its tools say while they run, on the spot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Value, json};

use super::answer;
use super::out::Out;
use crate::context::{Listener, Signal};
use crate::name::ToolName;

/// The least important log message that a peer wants, in the order of the protocol.
pub(in super::super) struct Level(AtomicU8);

impl Level {
    const DEBUG: u8 = 0;
    const INFO: u8 = 1;
    const WARNING: u8 = 3;

    pub(in super::super) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    pub(in super::super) fn set(&self, level: u8) {
        self.0.store(level, Ordering::Relaxed);
    }
}

impl Default for Level {
    fn default() -> Self {
        Self(AtomicU8::new(Self::INFO))
    }
}

/// Writes log messages of running tools. Those who want progress have their calls go
/// another way.
pub(super) struct Heard {
    pub(super) out: Arc<Out>,
    pub(super) level: Arc<Level>,
}

impl Listener for Heard {
    fn hear(&self, tool: &ToolName, signal: &Signal) {
        match signal {
            Signal::Emitted { kind, data } if self.level.get() <= Level::INFO => {
                self.log("info", tool, &json!({ "kind": kind, "data": data }));
            }
            Signal::Output { text } if self.level.get() == Level::DEBUG => {
                self.log("debug", tool, &json!(text));
            }
            _ => {}
        }
    }

    fn warn(&self, tool: &ToolName, message: &str) {
        if self.level.get() <= Level::WARNING {
            self.log("warning", tool, &json!(message));
        }
    }
}

impl Heard {
    fn log(&self, level: &str, tool: &ToolName, data: &Value) {
        let said = json!({ "level": level, "logger": tool.as_str(), "data": data });
        self.out.say(|queue| answer::notification(queue, "notifications/message", &said));
    }
}
