//! Runs the work of read-only tools on a blocking thread, at the resolved path, with the visibility
//! filter of the read rules.
//!
//! **Invariant:** no work starts for a call that was cancelled.

use std::io;
use std::path::Path;

use tool_sdk::{
    Context, ResolvedPath, State, ToolError, Visibility, VisibilityFilter, WorkStop, Workspace,
    WorkspacePath,
};

use crate::cancel;
use crate::suggest::with_suggestions;

/// The context of one read-only tool call: the resolved path and what it may reveal.
pub(crate) struct ReadTask<'l> {
    pub(crate) place: ResolvedPath,
    pub(crate) workspace: &'l Workspace,
    pub(crate) stop: &'l WorkStop,
    path: &'l WorkspacePath,
    /// The path as the call requested it, when symbolic links lead from there to `place`.
    requested: Option<ResolvedPath>,
    sight: VisibilityFilter,
}

/// Whether the read rules allow the content of a file that the call names to be revealed. Both the
/// requested path and the resolved path are checked.
pub(crate) fn is_content_visible(
    path: &WorkspacePath,
    place: &ResolvedPath,
    workspace: &Workspace,
    sight: &VisibilityFilter,
) -> bool {
    let shows = |asked: &str, absolute: &Path| {
        sight.named_file_visibility(asked, absolute) == Visibility::Shown
    };
    let shows_as_sent = || match workspace.resolve(path.as_str()) {
        Ok(sent) => shows(&sent.rule_path(), &sent.absolute_path()),
        Err(_) => shows(path.as_str(), path.as_str().as_ref()),
    };
    sight.shows_everything()
        || (shows(&place.rule_path(), &place.absolute_path()) && shows_as_sent())
}

/// Resolves `path`, runs `work` on a blocking thread and waits for the result.
pub(crate) async fn run_blocking<T: Send + 'static>(
    path: WorkspacePath,
    workspace: State<Workspace>,
    cx: &Context,
    work: impl FnOnce(ReadTask<'_>) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let sight = cx.visible_files("read");
    cx.run_blocking(move |stop| {
        cancel::check_cancelled(stop)?;
        let place = path.locate(&workspace)?;
        let sent = workspace.resolve(path.as_str()).ok();
        let sent = sent.filter(|sent| sent.absolute_path() != place.absolute_path());
        work(ReadTask { place, workspace: &workspace, stop, path: &path, requested: sent, sight })
    })
    .await
}

impl ReadTask<'_> {
    /// Whether the visibility filter hides nothing.
    pub(crate) fn is_unfiltered(&self) -> bool {
        self.sight.shows_everything()
    }

    /// Returns whether a file at or below the resolved path may be mentioned, when the call does
    /// not name the file itself. Both the path without symbolic links and the path below the
    /// requested one are checked; the stricter result wins.
    pub(crate) fn visibility(&self, there: &ResolvedPath) -> Visibility {
        if self.is_unfiltered() {
            return Visibility::Shown;
        }
        let of = |there: &ResolvedPath| {
            self.sight.file_visibility(&there.rule_path(), &there.absolute_path())
        };
        let as_sent = self.requested.as_ref().and_then(|sent| {
            let absolute = there.absolute_path();
            let below = absolute.strip_prefix(self.place.absolute_path()).ok()?;
            // Joining an empty path would add a separator.
            Some(if below.as_os_str().is_empty() { of(sent) } else { of(&sent.join(below)) })
        });
        as_sent.map_or(of(there), |as_sent| as_sent.max(of(there)))
    }

    /// Whether the content of the resolved path itself may be revealed.
    #[cfg_attr(not(feature = "search"), expect(dead_code, reason = "only searches use it"))]
    pub(crate) fn is_content_visible(&self) -> bool {
        is_content_visible(self.path, &self.place, self.workspace, &self.sight)
    }

    /// Returns the error for a failed read of the resolved path.
    #[cfg_attr(not(feature = "fs"), expect(dead_code, reason = "only the file tools use it"))]
    pub(crate) fn read_error(&self, error: io::Error) -> ToolError {
        let path = self.place.display();
        ToolError::failed(format_args!("cannot read `{path}`: {error}")).source(error)
    }

    /// Adds similar names to the error, when nothing exists at the resolved path.
    pub(crate) fn with_suggestions(&self, error: impl Into<ToolError>) -> ToolError {
        with_suggestions(error.into(), &self.place, &self.sight, self.stop)
    }
}
