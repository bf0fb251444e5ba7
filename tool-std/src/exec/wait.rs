//! Waiting for a command: until it ends, until a text comes that is waited for, or until the
//! time is up.

use std::time::Duration;

use tokio::time::timeout;
use tool_sdk::process::{Look, Process};
use tool_sdk::{CancellationToken, Context};

use super::report::showing;

/// Waits for `process` at most for `within`, and no longer than until `text` is in what it
/// wrote since the last look; gives that, and whether the text came, where there is one.
pub(super) async fn wait(
    process: &Process,
    within: Duration,
    text: Option<&str>,
    cx: &Context,
) -> (Look, Option<bool>) {
    let Some(text) = text else {
        return (process.look(within, showing(cx, None)).await, None);
    };
    let came = CancellationToken::new();
    let mut awaited = Awaited::new(text);
    let hears = {
        let came = came.clone();
        move |part: &str| {
            if !came.is_cancelled() && awaited.comes_with(part) {
                came.cancel();
            }
        }
    };
    // Either way the state is looked at below.
    let ended = process.ended(showing(cx, Some(Box::new(hears))));
    let _ = timeout(within, came.run_until_cancelled(ended)).await;
    let look = process.look(Duration::ZERO, |_| {}).await;
    (look, Some(came.is_cancelled()))
}

/// A text that is looked for in output that comes in parts.
struct Awaited {
    text: String,
    /// The end of what has come, in which it may have begun.
    end: String,
}

impl Awaited {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), end: String::new() }
    }

    /// Whether it is there with the next `part`.
    fn comes_with(&mut self, part: &str) -> bool {
        self.end.push_str(part);
        if self.end.contains(&self.text) {
            return true;
        }
        let kept = self.end.len().saturating_sub(self.text.len());
        self.end.drain(..self.end.floor_char_boundary(kept));
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
            let mut awaited = Awaited::new(text);
            let found = parts.iter().position(|part| awaited.comes_with(part));
            assert_eq!(found, at, "{text:?} in {parts:?}");
            assert!(found.is_some() || awaited.end.len() <= text.len() + 3);
        }
    }
}
