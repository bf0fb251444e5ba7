//! What confines commands: the same command can do more with less of it.

use crate::context::Session;
use crate::process::sandbox::SandboxPolicy;

/// What a call depends on.
pub(super) fn of(session: &Session) -> Vec<(&'static str, String)> {
    vec![("sandbox", format!("{:?}", SandboxPolicy::of_session(session)))]
}
