//! What files a session lends its tools, as far as the pipeline has to know.

use std::path::{Path, PathBuf};

use crate::context::Session;
use crate::permission::{Action, Ruleset};
use crate::tool::Way;
#[cfg(feature = "workspace")]
use crate::workspace::Workspace;

/// The folders that tools may write to.
#[cfg(feature = "workspace")]
pub(super) fn roots(session: &Session) -> Vec<PathBuf> {
    let workspace = session.lent().get::<Workspace>();
    workspace.iter().flat_map(|workspace| workspace.roots().map(Path::to_owned)).collect()
}

#[cfg(not(feature = "workspace"))]
pub(super) fn roots(_: &Session) -> Vec<PathBuf> {
    Vec::new()
}

/// The ways on which `rules` that forbid mean a file, beside where it is.
pub(super) fn ways(session: &Session, rules: &Ruleset) -> Vec<Way> {
    if rules.rules().iter().all(|rule| rule.action == Action::Allow) {
        return Vec::new();
    }
    let roots = roots(session);
    let mut ways = rules.ways(&roots);
    // Of one root, every path is told as a relative one.
    if roots.len() > 1 {
        ways.extend(roots.into_iter().map(|place| Way { place, name: PathBuf::new() }));
    }
    ways
}

/// Whether a path is outside of all that the session lends its tools.
#[cfg(feature = "workspace")]
pub(super) fn is_outside(session: &Session, path: &Path) -> bool {
    let has = |workspace: &Workspace| {
        path.to_str().and_then(|path| workspace.find(path).ok()).is_some_and(|it| it.is_some())
    };
    session.lent().get::<Workspace>().is_some_and(|workspace| !has(&workspace))
}

#[cfg(not(feature = "workspace"))]
pub(super) fn is_outside(_: &Session, _: &Path) -> bool {
    false
}

/// Whether tools that read through a workspace are refused what is at `path`.
#[cfg(feature = "workspace")]
pub(super) fn hide(session: &Session, path: &Path) -> bool {
    let refuses =
        |workspace: &Workspace| path.to_str().is_none_or(|it| workspace.resolve(it).is_err());
    session.lent().get::<Workspace>().is_some_and(|workspace| refuses(&workspace))
}

#[cfg(not(feature = "workspace"))]
pub(super) fn hide(_: &Session, _: &Path) -> bool {
    false
}
