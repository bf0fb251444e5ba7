//! What confines commands: the same command can do more with less of it.

use crate::context::Session;
use crate::process::sandbox::Policy;

/// What a call depends on.
pub(super) fn of(session: &Session) -> Vec<(&'static str, String)> {
    vec![("sandbox", format!("{:?}", Policy::of(session)))]
}
