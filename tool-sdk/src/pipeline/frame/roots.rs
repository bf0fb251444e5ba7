//! The folders that tools may touch: a relative path means another file in others.

use crate::context::Session;
use crate::workspace::Workspace;

/// What a call depends on.
pub(super) fn of(session: &Session) -> Vec<(&'static str, String)> {
    let Some(workspace) = session.lent().get::<Workspace>() else { return Vec::new() };
    workspace.roots().map(|root| ("root", root.to_string_lossy().into_owned())).collect()
}
