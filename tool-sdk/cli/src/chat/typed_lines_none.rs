//! Stubs for systems whose terminal cannot be read while the model works; Ctrl-C interrupts there.

use tokio::sync::mpsc;

use crate::terminal::TerminalLock;

/// What was typed.
#[derive(Debug)]
#[expect(dead_code, reason = "nothing is read here")]
pub(super) enum TypedInput {
    Line(String),
    Escape,
}

/// Reads nothing.
pub(super) struct TypedLines {
    pub(super) input: mpsc::UnboundedReceiver<TypedInput>,
}

impl TypedLines {
    pub(super) fn start(_: TerminalLock) -> Option<Self> {
        None
    }
}
