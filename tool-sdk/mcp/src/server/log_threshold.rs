//! The lowest level of log messages that a legacy client wants.

// Log messages are deprecated in the protocol, but current clients still read them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

use std::sync::atomic::{AtomicU8, Ordering};

use rmcp::model::LoggingLevel;

/// The lowest log level that is sent.
pub(super) struct LogThreshold(AtomicU8);

impl LogThreshold {
    pub(super) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, level: LoggingLevel) {
        self.0.store(log_severity(level), Ordering::Relaxed);
    }
}

impl Default for LogThreshold {
    fn default() -> Self {
        Self(AtomicU8::new(log_severity(LoggingLevel::Info)))
    }
}

/// Returns the position of a level in the protocol's order, the lowest being 0.
pub(super) const fn log_severity(level: LoggingLevel) -> u8 {
    level as u8
}
