//! Waits for a command: until it exits, until an awaited text appears in its output, or until a
//! timeout.

use std::time::Duration;

use tokio::time::timeout;
use tool_sdk::process::{BackgroundProcess, ProcessOutput};
use tool_sdk::{CancellationToken, Context};

use super::output::stream_output;

/// Waits until `process` exits, until `text` appears in its output, or until `within` has passed.
/// Returns the output since the last poll, and whether the text was found, if there is one.
pub(super) async fn wait_for_output(
    process: &BackgroundProcess,
    within: Duration,
    text: Option<&str>,
    cx: &Context,
) -> (ProcessOutput, Option<bool>) {
    let Some(text) = text else {
        return (process.read_output(within, stream_output(cx, None)).await, None);
    };
    let found = CancellationToken::new();
    let mut awaited = TextMatcher::new(text);
    let callback = {
        let found = found.clone();
        move |part: &str| {
            if !found.is_cancelled() && awaited.is_found_with(part) {
                found.cancel();
            }
        }
    };
    // The state is polled below in any case.
    let ended = process.wait_for_exit(stream_output(cx, Some(Box::new(callback))));
    let _ = timeout(within, found.run_until_cancelled(ended)).await;
    let snapshot = process.read_output(Duration::ZERO, |_| {}).await;
    (snapshot, Some(found.is_cancelled()))
}

/// Searches for a text in output that arrives in chunks.
struct TextMatcher {
    text: String,
    /// The end of the previous output, in which a match may have begun.
    tail: String,
}

impl TextMatcher {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), tail: String::new() }
    }

    /// Whether the text is found with the next chunk.
    fn is_found_with(&mut self, part: &str) -> bool {
        self.tail.push_str(part);
        if self.tail.contains(&self.text) {
            return true;
        }
        let kept = self.tail.len().saturating_sub(self.text.len());
        self.tail.drain(..self.tail.floor_char_boundary(kept));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // F138
    #[test]
    fn a_text_that_comes_in_parts_is_found() {
        for (text, parts, at) in [
            ("$ ", &["bash", "$ "][..], Some(1)),
            ("$ ", &["bash$", " "], Some(1)),
            ("fertig: ä", &["ferti", "g", ": ä"], Some(2)),
            ("aab", &["aa", "a", "b"], Some(2)),
            ("ab", &["a", "", "xb"], None),
            ("no", &["n\n", "o"], None),
        ] {
            let mut awaited = TextMatcher::new(text);
            let found = parts.iter().position(|part| awaited.is_found_with(part));
            assert_eq!(found, at, "{text:?} in {parts:?}");
            assert!(found.is_some() || awaited.tail.len() <= text.len() + 3);
        }
    }
}
