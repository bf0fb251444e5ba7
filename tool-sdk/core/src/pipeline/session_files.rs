//! The files of a session's workspace, as far as the pipeline needs them.

use std::path::{Path, PathBuf};

use crate::context::Session;
use crate::permission::{Action, Ruleset};
use crate::tool::PathAlias;
#[cfg(feature = "workspace")]
use tool_sdk_workspace::Workspace;

/// Returns the folders that tools may write to.
#[cfg(feature = "workspace")]
pub(super) fn roots(session: &Session) -> Vec<PathBuf> {
    let workspace = session.services().get::<Workspace>();
    workspace.iter().flat_map(|workspace| workspace.roots().map(Path::to_owned)).collect()
}

#[cfg(not(feature = "workspace"))]
pub(super) fn roots(_: &Session) -> Vec<PathBuf> {
    Vec::new()
}

/// Returns the other paths of a file that `rules` which deny or ask may use: through links, and
/// relative to one of several roots.
pub(super) fn path_aliases(session: &Session, rules: &Ruleset) -> Vec<PathAlias> {
    if rules.rules().iter().all(|rule| rule.action == Action::Allow) {
        return Vec::new();
    }
    let roots = roots(session);
    let mut ways = rules.symlink_aliases(&roots);
    // With one root, every path is shown relative to it already.
    if roots.len() > 1 {
        ways.extend(
            roots.into_iter().map(|place| PathAlias { target: place, alias: PathBuf::new() }),
        );
    }
    ways
}

/// Whether a path is outside of the session's workspace.
#[cfg(feature = "workspace")]
pub(super) fn is_outside(session: &Session, path: &Path) -> bool {
    let has = |workspace: &Workspace| {
        path.to_str()
            .and_then(|path| workspace.try_resolve(path).ok())
            .is_some_and(|it| it.is_some())
    };
    session.services().get::<Workspace>().is_some_and(|workspace| !has(&workspace))
}

#[cfg(not(feature = "workspace"))]
pub(super) fn is_outside(_: &Session, _: &Path) -> bool {
    false
}

/// Whether the workspace refuses to read the file at `path`.
#[cfg(feature = "workspace")]
pub(super) fn is_refused(session: &Session, path: &Path) -> bool {
    let refuses =
        |workspace: &Workspace| path.to_str().is_none_or(|it| workspace.resolve(it).is_err());
    session.services().get::<Workspace>().is_some_and(|workspace| refuses(&workspace))
}

#[cfg(not(feature = "workspace"))]
pub(super) fn is_refused(_: &Session, _: &Path) -> bool {
    false
}
