//! What a call depends on in a program that was built without it: nothing.

use crate::context::Session;

/// What a call depends on.
pub(super) fn of(_: &Session) -> Vec<(&'static str, String)> {
    Vec::new()
}
