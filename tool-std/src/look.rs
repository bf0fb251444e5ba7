//! How tools begin that only look: on another thread, at the place that was judged, and with
//! what they may tell of files that nobody named.
//!
//! **Invariant:** nothing is looked at for a call that is over.

use std::io;
use std::path::Path;

use tool_sdk::{
    Context, Located, Sight, State, Stop, ToolError, Visibility, Workspace, WorkspacePath,
};

use crate::near::with_similar;
use crate::stop;

/// A look at a place.
pub(crate) struct Look<'l> {
    pub(crate) place: Located,
    pub(crate) workspace: &'l Workspace,
    pub(crate) stop: &'l Stop,
    path: &'l WorkspacePath,
    /// The place as it was sent, where links lead from there to the other.
    sent: Option<Located>,
    sight: Sight,
}

/// Whether the rules about reading let be told what a file says that a call names: as it was
/// sent, and where it leads.
pub(crate) fn is_told(
    path: &WorkspacePath,
    place: &Located,
    workspace: &Workspace,
    sight: &Sight,
) -> bool {
    let shows = |asked: &str, absolute: &Path| sight.of_named(asked, absolute) == Visibility::Shown;
    let shows_as_sent = || match workspace.resolve(path.as_str()) {
        Ok(sent) => shows(&sent.spelling(), &sent.absolute()),
        Err(_) => shows(path.as_str(), path.as_str().as_ref()),
    };
    sight.is_everything() || (shows(&place.spelling(), &place.absolute()) && shows_as_sent())
}

/// Does what takes a look at the place of `path`, and waits for it.
pub(crate) async fn at<T: Send + 'static>(
    path: WorkspacePath,
    workspace: State<Workspace>,
    cx: &Context,
    work: impl FnOnce(Look<'_>) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let sight = cx.sight("read");
    cx.blocking(move |stop| {
        stop::check(stop)?;
        let place = path.locate(&workspace)?;
        let sent = workspace.resolve(path.as_str()).ok();
        let sent = sent.filter(|sent| sent.absolute() != place.absolute());
        work(Look { place, workspace: &workspace, stop, path: &path, sent, sight })
    })
    .await
}

impl Look<'_> {
    /// Whether there is nothing that may not be told.
    pub(crate) fn is_everything(&self) -> bool {
        self.sight.is_everything()
    }

    /// What may be told of a file that nobody named, and that is at or below the place: by the
    /// name that leads there without links, and by the one that would be sent for it.
    pub(crate) fn visibility(&self, there: &Located) -> Visibility {
        if self.is_everything() {
            return Visibility::Shown;
        }
        let of = |there: &Located| self.sight.of_file(&there.spelling(), &there.absolute());
        let as_sent = self.sent.as_ref().and_then(|sent| {
            let absolute = there.absolute();
            let below = absolute.strip_prefix(self.place.absolute()).ok()?;
            // Joining an empty path would add a separator.
            Some(if below.as_os_str().is_empty() { of(sent) } else { of(&sent.join(below)) })
        });
        as_sent.map_or(of(there), |as_sent| as_sent.max(of(there)))
    }

    /// Whether what the place itself says may be told.
    #[cfg_attr(not(feature = "search"), expect(dead_code, reason = "others read what was judged"))]
    pub(crate) fn is_told(&self) -> bool {
        is_told(self.path, &self.place, self.workspace, &self.sight)
    }

    /// That what is at the place could not be read.
    #[cfg_attr(not(feature = "fs"), expect(dead_code, reason = "searches go past it"))]
    pub(crate) fn unread(&self, error: io::Error) -> ToolError {
        let path = self.place.display();
        ToolError::failed(format_args!("cannot read `{path}`: {error}")).source(error)
    }

    /// The error with the names that may have been meant, when nothing is at the place.
    pub(crate) fn with_similar(&self, error: ToolError) -> ToolError {
        with_similar(error, &self.place, &self.sight, self.stop)
    }
}
