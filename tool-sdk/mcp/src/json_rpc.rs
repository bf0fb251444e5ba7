//! The text of JSON-RPC messages, before it is parsed: nesting depth and batches.
//!
//! A batch is several messages in one JSON array. Only MCP revision 2025-03-26 has them.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The maximum nesting depth of a message.
pub(super) const MAX_DEPTH: usize = 100;

/// The maximum number of messages in a batch.
pub(super) const MAX_BATCH_MESSAGES: usize = 100;

/// Returns the bytes of a JSON text outside of strings.
pub(super) fn outside_strings(text: &str) -> impl Iterator<Item = u8> {
    let (mut is_inside, mut is_escaped) = (false, false);
    text.bytes().filter(move |byte| {
        let was_inside = is_inside;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_inside => is_escaped = true,
            b'"' => is_inside = !is_inside,
            _ => {}
        }
        !was_inside && !is_inside
    })
}

/// Returns true if a JSON text is nested deeper than the limit.
pub(super) fn is_too_deep(text: &str) -> bool {
    // Most messages have fewer brackets than that.
    if text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count() <= MAX_DEPTH {
        return false;
    }
    let mut depth = 0_usize;
    outside_strings(text).any(|byte| {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > MAX_DEPTH
    })
}

/// Returns true if the text starts like a JSON array, so that it is meant as a batch.
pub(super) fn is_batch(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'[')
}

/// The messages of a batch, up to the maximum.
pub(super) struct BatchMessages<'a> {
    pub(super) messages: Vec<&'a RawValue>,
    pub(super) is_longer: bool,
}

impl<'de> Deserialize<'de> for BatchMessages<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BatchVisitor)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = BatchMessages<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<BatchMessages<'de>, A::Error> {
        let mut messages = Vec::new();
        while messages.len() < MAX_BATCH_MESSAGES
            && let Some(message) = list.next_element()?
        {
            messages.push(message);
        }
        let mut is_longer = false;
        while let Some(IgnoredAny) = list.next_element()? {
            is_longer = true;
        }
        Ok(BatchMessages { messages, is_longer })
    }
}
