//! A path as a parameter, which says what a call touches.
//!
//! A path is resolved once, when the call is judged. The place that rules and people saw is
//! the place that the tool gets, whatever becomes of the links that led there. What is said
//! of it to the rules stands in `subjects`.
//!
//! **Invariant:** nothing here opens a file.

mod path_collector;
mod resources;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
#[cfg(feature = "hooks")]
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) use self::path_collector::collect_decoded_paths;
use super::SummaryValue;
use super::summary_value::ViaPlace;
use crate::error::ToolError;
use crate::workspace::{ResolvedPath, Snapshot, Workspace};

/// A path that a model sends.
///
/// As a parameter it is a text like any other. What makes it more are its subjects for the
/// rules: the path as it was sent and the place to which links lead, each judged by itself. A
/// tool that names no subjects has those of all paths that came in its arguments, read by a
/// tool that only reads and written by any other.
///
/// On top of that, what is outside of the workspace is asked about as `external_directory`,
/// and a change of what is executed or obeyed later (hooks of git, start-up files, settings
/// of agents) as `protected_path`, so that allowing a tool's own permission allows neither.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Context, FileTransaction, State, ToolError, Workspace, WorkspacePath, tool};
///
/// /// Empty a file.
/// #[tool(write, permission = "edit")]
/// async fn clear(
///     /// The file.
///     path: WorkspacePath,
///     workspace: State<Workspace>,
///     cx: &Context,
/// ) -> Result<String, ToolError> {
///     let place = path.locate(&workspace)?;
///     let locks = workspace.lock_files([&place]).await;
///     cx.run_blocking(move |stop| {
///         let _locks = locks;
///         let before = place.snapshot(1024 * 1024)?;
///         stop.hold()?;
///         FileTransaction::new().write(place, before, "").commit(|| stop.is_stopped())
///     })
///     .await?;
///     Ok(format!("{path} is empty"))
/// }
/// ```
#[derive(Clone, Default)]
pub struct WorkspacePath(Arc<SentPath>);

/// A path that was sent, and what became of it; clones share that.
#[derive(Default)]
struct SentPath {
    text: String,
    /// Where it led when the call was judged; `None` when that was nowhere.
    resolved: OnceLock<Option<ResolvedPlaces>>,
    /// What the file said when somebody was shown what becomes of it.
    preview_snapshot: OnceLock<Snapshot>,
}

/// Where a path leads.
struct ResolvedPlaces {
    /// As it was sent; `None` when that is outside of the workspace.
    requested: Option<ResolvedPath>,
    /// Without links.
    target: ResolvedPath,
}

impl WorkspacePath {
    /// The path as it was sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The place without links: the one that was judged, or, where nobody judged it, the
    /// one inside the workspace.
    ///
    /// # Errors
    ///
    /// Fails like [`Workspace::resolve`] and [`ResolvedPath::canonicalize`], and with `conflict` when the
    /// path meant nothing while the call was judged.
    pub fn locate(&self, workspace: &Workspace) -> Result<ResolvedPath, ToolError> {
        let now = || workspace.resolve(&self.0.text)?.canonicalize();
        match self.0.resolved.get() {
            None => now(),
            Some(Some(places)) => Ok(places.target.clone()),
            Some(None) => {
                now()?;
                Err(ToolError::conflict(format_args!(
                    "`{self}` was just made, after it was decided about; try again"
                )))
            }
        }
    }

    /// Whether the path itself is a symbolic link, wherever it leads: what is done to the file
    /// that it leads to is not done to the link.
    #[must_use]
    pub fn is_link(&self, workspace: &Workspace) -> bool {
        match workspace.try_resolve(&self.0.text) {
            Ok(Some(place)) => place.is_symlink(),
            Ok(None) => workspace.is_link_outside(&self.0.text),
            Err(_) => false,
        }
    }

    /// Keeps what the file says while somebody is shown what becomes of it, and gives what
    /// was kept first.
    ///
    /// A tool that replaces a file as a whole reads it in its preview, and based on what it
    /// finds there when it runs: what is replaced is what was shown.
    pub fn keep_preview_snapshot(&self, now: Snapshot) -> &Snapshot {
        self.0.preview_snapshot.get_or_init(|| now)
    }

    /// What the file said when somebody was shown what becomes of it; `None` when nobody
    /// was.
    #[must_use]
    pub fn preview_snapshot(&self) -> Option<&Snapshot> {
        self.0.preview_snapshot.get()
    }

    /// What calls on the same file have in common: the place that was judged, or the path as it
    /// was sent, where nobody judged it or it leads nowhere.
    fn target_text(&self) -> String {
        match self.0.resolved.get() {
            Some(Some(places)) => places.target.absolute_path().to_string_lossy().into_owned(),
            _ => self.0.text.clone(),
        }
    }

    /// The path from the top of the file system, with its links; `None` when it leads nowhere.
    #[cfg(feature = "hooks")]
    pub(super) fn to_absolute(&self, workspace: &Workspace) -> Option<PathBuf> {
        let place = match workspace.try_resolve(&self.0.text).ok()? {
            Some(inside) => inside,
            None => workspace.resolve_outside(&self.0.text).ok()?,
        };
        Some(place.absolute_path())
    }
}

impl<T: Into<String>> From<T> for WorkspacePath {
    fn from(text: T) -> Self {
        Self(Arc::new(SentPath { text: text.into(), ..SentPath::default() }))
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(f)
    }
}

impl ViaPlace for &&&&SummaryValue<'_, WorkspacePath> {
    fn render(&self) -> String {
        self.0.target_text()
    }
}

impl ViaPlace for &&&&SummaryValue<'_, Option<WorkspacePath>> {
    fn render(&self) -> String {
        self.0.as_ref().map(WorkspacePath::target_text).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for WorkspacePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = String::deserialize(deserializer).map(Self::from)?;
        path_collector::record_path(&path);
        Ok(path)
    }
}

impl Serialize for WorkspacePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.text)
    }
}

impl JsonSchema for WorkspacePath {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WorkspacePath".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
