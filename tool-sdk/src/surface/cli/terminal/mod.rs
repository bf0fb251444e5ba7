//! Asking the person at the terminal, one question at a time.
//!
//! **Invariant:** only the exact letter or word for a yes is one. Everything else is a no:
//! another word, the end of the input, a terminal that fails.

mod form;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

pub(super) use self::form::FormsAtTerminal;
use crate::permission::{Approver, Ask, Reply};

/// A terminal with somebody in front of it.
///
/// # Examples
///
/// ```
/// use std::io;
/// use tool_sdk::cli::Console;
///
/// /// Somebody who says yes to everything.
/// struct Agreeable;
///
/// impl Console for Agreeable {
///     fn prompt(&self, _: &str, _: &dyn Fn() -> bool) -> io::Result<Option<String>> {
///         Ok(Some("y".to_owned()))
///     }
/// }
/// ```
pub trait Console: Send + Sync + 'static {
    /// Shows `text`, drops whatever was typed before it could be read, and waits for a
    /// line.
    ///
    /// There is no line at the end of the input, and once nobody `wants` one any more.
    ///
    /// # Errors
    ///
    /// Fails when the terminal does.
    fn prompt(&self, text: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<String>>;
}

/// Who may write on the screen: a question that waits for its answer must stay readable.
#[derive(Clone, Debug, Default)]
pub(super) struct Floor(Arc<Mutex<()>>);

impl Floor {
    /// The floor, behind everybody who came before.
    async fn turn(&self) -> OwnedMutexGuard<()> {
        /// The last answer may settle the next question too, which is then dropped.
        const MOMENT: Duration = Duration::from_millis(50);
        if let Some(free) = self.try_take() {
            return free;
        }
        let floor = Arc::clone(&self.0).lock_owned().await;
        tokio::time::sleep(MOMENT).await;
        floor
    }

    /// The floor, when it is free.
    pub(super) fn try_take(&self) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.0).try_lock_owned().ok()
    }
}

/// Asks at a terminal.
pub(super) struct AtTerminal {
    console: Arc<dyn Console>,
    floor: Floor,
}

impl AtTerminal {
    pub(super) fn new(console: Arc<dyn Console>, floor: Floor) -> Self {
        Self { console, floor }
    }
}

impl Approver for AtTerminal {
    fn ask(&self, ask: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        let (console, floor) = (Arc::clone(&self.console), self.floor.clone());
        Box::pin(async move {
            let floor = floor.turn().await;
            // Dropped with this future, when the ask is settled in another way.
            let settled = CancellationToken::new();
            let _asking = settled.clone().drop_guard();
            let answer = tokio::task::spawn_blocking(move || {
                // Held until the last line is read, so that no two questions mix.
                let _floor = floor;
                Conversation { console: &*console, ask: &ask, wanted: &|| !settled.is_cancelled() }
                    .answer()
            });
            Some(answer.await.unwrap_or(Reply::Reject))
        })
    }
}

/// One question, with what it takes to answer it.
struct Conversation<'a> {
    console: &'a dyn Console,
    ask: &'a Ask,
    wanted: &'a dyn Fn() -> bool,
}

impl Conversation<'_> {
    fn answer(&self) -> Reply {
        let reply = self.reply().unwrap_or(Reply::Reject);
        self.ask.answered_by("terminal");
        reply
    }

    /// The answer; none is a no.
    fn reply(&self) -> Option<Reply> {
        let reaches_far = self.ask.offers_always();
        let offered = if reaches_far {
            "[y] once  [s] session  [a] always  [e] edit patterns  [n] no  [f] no, with feedback"
        } else {
            "[y] once  [n] no  [f] no, with feedback"
        };
        let line = self.line(&format!("{}{offered}\n> ", self.ask.prompt().text))?;
        let patterns = || self.ask.suggestions.clone();
        match line.as_str() {
            "y" | "yes" | "once" => Some(Reply::Once),
            "s" | "session" if reaches_far => Some(Reply::Session { patterns: patterns() }),
            "a" | "always" if reaches_far => Some(Reply::Always { patterns: patterns() }),
            "e" | "edit" if reaches_far => self.edited(),
            "f" | "feedback" => {
                let feedback = self.line("what to do instead\n> ")?;
                (!feedback.is_empty()).then_some(Reply::RejectWith { feedback })
            }
            _ => None,
        }
    }

    /// An answer for patterns of the person's own.
    fn edited(&self) -> Option<Reply> {
        const MOST: usize = 32;
        let mut patterns = Vec::new();
        let mut words = "what to allow from now on, one pattern a line, then an empty line\n> ";
        while patterns.len() < MOST {
            let pattern = self.line(words)?;
            if pattern.is_empty() {
                break;
            }
            patterns.push(pattern);
            words = "> ";
        }
        if patterns.is_empty() {
            return None;
        }
        match self.line("[s] for this session  [a] always  [n] no\n> ")?.as_str() {
            "s" | "session" => Some(Reply::Session { patterns }),
            "a" | "always" => Some(Reply::Always { patterns }),
            _ => None,
        }
    }

    fn line(&self, text: &str) -> Option<String> {
        let line = self.console.prompt(text, self.wanted).ok()??;
        Some(line.trim().to_owned())
    }
}

#[cfg(test)]
mod tests;
