//! Approval prompts at the terminal, one at a time.
//!
//! **Invariant:** only the exact letter or word approves. Everything else is a denial: another
//! word, the end of the input, a terminal error.

mod form;
mod prompt_style;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{ApprovalRequest, ApprovalResponse, Approver};

pub(super) use self::form::TerminalForms;
use super::style::TextStyle;

/// An interactive terminal that can prompt the user.
///
/// # Examples
///
/// ```
/// use std::io;
/// use tool_sdk::cli::Console;
///
/// /// Approves everything.
/// struct Agreeable;
///
/// impl Console for Agreeable {
///     fn prompt(&self, _: &str, _: &dyn Fn() -> bool) -> io::Result<Option<String>> {
///         Ok(Some("y".to_owned()))
///     }
/// }
/// ```
pub trait Console: Send + Sync + 'static {
    /// Shows `text`, discards typed-ahead input, and waits for a line.
    ///
    /// Returns `None` at the end of the input, and as soon as `wanted` returns false.
    ///
    /// # Errors
    ///
    /// Fails when the terminal cannot be read or written.
    fn prompt(&self, text: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<String>>;

    /// Like [`prompt`](Self::prompt), for a secret: what the user types is not shown.
    ///
    /// # Errors
    ///
    /// Fails where input [cannot be hidden](Self::can_hide_input), as by default.
    fn prompt_hidden(&self, text: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<String>> {
        let _ = (text, wanted);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns whether [`prompt_hidden`](Self::prompt_hidden) works. Default: `false`.
    fn can_hide_input(&self) -> bool {
        false
    }

    /// Returns the width of the terminal in columns, to which questions are wrapped. Default: 80.
    fn columns(&self) -> u16 {
        80
    }
}

/// The lock on the terminal: a prompt holds it until it is answered, so that progress output and
/// other prompts do not overwrite it.
#[derive(Clone, Debug, Default)]
pub(super) struct TerminalLock(Arc<Mutex<()>>);

impl TerminalLock {
    /// Waits for the lock, in the order of the requests.
    async fn acquire(&self) -> OwnedMutexGuard<()> {
        /// The previous answer may settle the next prompt too, which is then cancelled.
        const MOMENT: Duration = Duration::from_millis(50);
        if let Some(free) = self.try_acquire() {
            return free;
        }
        let lock = Arc::clone(&self.0).lock_owned().await;
        tokio::time::sleep(MOMENT).await;
        lock
    }

    /// Takes the lock if it is free.
    pub(super) fn try_acquire(&self) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.0).try_lock_owned().ok()
    }
}

/// An approver that prompts at the terminal.
pub(super) struct TerminalApprover {
    console: Arc<dyn Console>,
    lock: TerminalLock,
    style: TextStyle,
}

impl TerminalApprover {
    pub(super) fn new(console: Arc<dyn Console>, lock: TerminalLock, style: TextStyle) -> Self {
        Self { console, lock, style }
    }
}

impl Approver for TerminalApprover {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        let (console, lock, style) = (Arc::clone(&self.console), self.lock.clone(), self.style);
        Box::pin(async move {
            let lock = lock.acquire().await;
            // Cancelled when this future is dropped because the request ended otherwise.
            let settled = CancellationToken::new();
            let _asking = settled.clone().drop_guard();
            let answer = tokio::task::spawn_blocking(move || {
                // Held until the last line is read, so that prompts do not mix.
                let _lock = lock;
                ApprovalDialog {
                    console: &*console,
                    ask: &ask,
                    style,
                    is_wanted: &|| !settled.is_cancelled(),
                }
                .run_dialog()
            });
            Some(answer.await.unwrap_or(ApprovalResponse::Reject))
        })
    }
}

/// The help at a prompt: answers for one call.
const ONCE_HELP: &str = "\
y  run this call, once
c  run it with other arguments, as JSON in one line; one that you leave as shown keeps its value
";
/// The help at a prompt: answers for further calls.
const FAR_HELP: &str = "\
s  run it, and all calls that the patterns above match, until the program ends
a  the same from now on; `approvals list` shows what is stored, `approvals revoke` removes it
e  the same with patterns of your own
";
/// The help at a prompt: answers that deny.
const REST_HELP: &str = "\
f  do not run it, and tell the model what to do instead
n  do not run it; every other answer means this, too
";

/// The dialog about one approval request.
struct ApprovalDialog<'a> {
    console: &'a dyn Console,
    ask: &'a ApprovalRequest,
    style: TextStyle,
    is_wanted: &'a dyn Fn() -> bool,
}

impl ApprovalDialog<'_> {
    fn run_dialog(&self) -> ApprovalResponse {
        let reply = self.read_reply().unwrap_or(ApprovalResponse::Reject);
        self.ask.set_responder("terminal");
        reply
    }

    /// Reads the answer; `None` is a denial.
    fn read_reply(&self) -> Option<ApprovalResponse> {
        let reaches_far = self.ask.offers_always();
        let offered = if reaches_far {
            "[y] once  [c] change arguments  [s] session  [a] always  [e] edit patterns  [n] no  \
             [f] no, with feedback  [?] help"
        } else {
            "[y] once  [c] change arguments  [n] no  [f] no, with feedback  [?] help"
        };
        let columns = self.console.columns();
        let prompt = prompt_style::style_prompt(&self.ask.prompt().text, columns, self.style);
        let offered = self.style.bold(offered);
        let mut line = self.read_line(&format!("{prompt}{offered}\n> "))?;
        while line == "?" {
            let help = if reaches_far { [ONCE_HELP, FAR_HELP].concat() } else { ONCE_HELP.into() };
            line = self.read_line(&format!("{help}{REST_HELP}{offered}\n> "))?;
        }
        let patterns = || self.ask.suggestions.clone();
        match line.as_str() {
            "y" | "yes" | "once" => Some(ApprovalResponse::Once),
            "c" | "change" => self.edit_arguments(),
            "s" | "session" if reaches_far => {
                Some(ApprovalResponse::Session { patterns: patterns() })
            }
            "a" | "always" if reaches_far => {
                Some(ApprovalResponse::Always { patterns: patterns() })
            }
            "e" | "edit" if reaches_far => self.edit_patterns(),
            "f" | "feedback" => {
                let feedback = self.read_line("what to do instead\n> ")?;
                (!feedback.is_empty()).then_some(ApprovalResponse::RejectWith { feedback })
            }
            _ => None,
        }
    }

    /// Reads other arguments, until the tool accepts them.
    fn edit_arguments(&self) -> Option<ApprovalResponse> {
        let mut text = "all arguments, as JSON in one line\n> ".to_owned();
        loop {
            let line = self.read_line(&text)?;
            if line.is_empty() {
                return None;
            }
            let checked = match serde_json::from_str(&line) {
                Ok(arguments) => match self.ask.check_edited_arguments(&arguments) {
                    Ok(()) => return Some(ApprovalResponse::Edited { arguments }),
                    Err(faults) => faults.to_string(),
                },
                Err(error) => format!("this is not JSON: {error}"),
            };
            text = format!("{checked}\n> ");
        }
    }

    /// Reads patterns of the user, and the scope of the grant.
    fn edit_patterns(&self) -> Option<ApprovalResponse> {
        const MOST: usize = 32;
        let mut patterns = Vec::new();
        let mut words = "patterns to allow from now on, one a line, then an empty line\n> ";
        while patterns.len() < MOST {
            let pattern = self.read_line(words)?;
            if pattern.is_empty() {
                break;
            }
            patterns.push(pattern);
            words = "> ";
        }
        if patterns.is_empty() {
            return None;
        }
        match self.read_line("[s] for this session  [a] always  [n] no\n> ")?.as_str() {
            "s" | "session" => Some(ApprovalResponse::Session { patterns }),
            "a" | "always" => Some(ApprovalResponse::Always { patterns }),
            _ => None,
        }
    }

    fn read_line(&self, text: &str) -> Option<String> {
        let line = self.console.prompt(text, self.is_wanted).ok()??;
        Some(line.trim().to_owned())
    }
}

#[cfg(test)]
mod tests;
