//! Tells a peer what its tools say while they run, on the spot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Value, json};

use super::answer;
use super::out::Out;
use crate::context::{Context, Listener, Signal};

/// The least important log message that a peer wants, in the order of the protocol.
pub(in super::super) struct Level(AtomicU8);

impl Level {
    pub(in super::super) const DEBUG: u8 = 0;
    pub(in super::super) const INFO: u8 = 1;

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
    fn hear(&self, cx: &Context, signal: &Signal) {
        if let Some(said) = message(self.level.get(), cx, signal) {
            self.out.say(|queue| answer::notification(queue, "notifications/message", &said));
        }
    }
}

/// What is said, as a log message for those who want it at this level.
fn message(wanted: u8, cx: &Context, signal: &Signal) -> Option<Value> {
    let (level, data) = match signal {
        Signal::Emitted { kind, data } if wanted <= Level::INFO => {
            ("info", json!({ "kind": kind, "data": data }))
        }
        Signal::Output { text } if wanted == Level::DEBUG => ("debug", json!(text)),
        _ => return None,
    };
    Some(json!({ "level": level, "logger": cx.tool().as_str(), "data": data }))
}
