//! A path parameter, which provides the resources of a call.
//!
//! A path is resolved once, when the call is authorized. The tool gets the location that rules
//! and people saw, even if links have changed since. The module `resources` derives the resources
//! for the rules.
//!
//! **Invariant:** nothing here opens a file.

mod resources;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tool_sdk_workspace::{ResolvedPath, Snapshot, Workspace};

use super::SummaryValue;
use super::path_collector::PathCollector;
use super::summary_value::ViaPlace;
use crate::context::Session;
use crate::error::ToolError;

/// A path that a model sends.
///
/// In the schema it is a string. It provides resources for the rules: the path as it was sent and
/// its target behind links, each authorized separately. A tool that names no resources has those
/// of all paths in its arguments, read by a tool that only reads and written by any other.
///
/// In addition, paths outside the workspace need the permission `external_directory`, and changes
/// of files that are executed or read as configuration later (git hooks, start-up files, settings
/// of agents) need `protected_path`. So allowing a tool's own permission allows neither.
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
///         Ok(FileTransaction::new().write(place, before, "").commit(|| stop.is_stopped())?)
///     })
///     .await?;
///     Ok(format!("{path} is empty"))
/// }
/// ```
#[derive(Clone)]
pub struct WorkspacePath(Arc<SentPath>);

/// A path that was sent, with the result of resolving it; clones share both.
#[derive(Default)]
struct SentPath {
    text: String,
    /// The resolved locations; `None` if the path could not be resolved at authorization.
    resolved: OnceLock<Option<ResolvedPlaces>>,
    /// The contents of the file at the time of the preview.
    preview_snapshot: OnceLock<Snapshot>,
}

/// The locations of a path.
struct ResolvedPlaces {
    /// The location as it was sent; `None` outside the workspace.
    requested: Option<ResolvedPath>,
    /// The location without links.
    target: ResolvedPath,
}

impl WorkspacePath {
    /// Returns the path as it was sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the location without links: the authorized one or, if the call was not authorized,
    /// the one inside the workspace.
    ///
    /// # Errors
    ///
    /// Fails like [`Workspace::resolve`] and [`ResolvedPath::canonicalize`], and with `conflict`
    /// when the path could not be resolved at authorization.
    pub fn locate(&self, workspace: &Workspace) -> Result<ResolvedPath, ToolError> {
        let now = || workspace.resolve(&self.0.text)?.canonicalize();
        match self.0.resolved.get() {
            None => Ok(now()?),
            Some(Some(places)) => Ok(places.target.clone()),
            Some(None) => {
                now()?;
                Err(ToolError::conflict(format_args!(
                    "`{self}` was just made, after it was decided about; try again"
                )))
            }
        }
    }

    /// Returns whether the path itself is a symbolic link. Changing its target does not change
    /// the link.
    #[must_use]
    pub fn is_link(&self, workspace: &Workspace) -> bool {
        match workspace.try_resolve(&self.0.text) {
            Ok(Some(place)) => place.is_symlink(),
            Ok(None) => workspace.is_link_outside(&self.0.text),
            Err(_) => false,
        }
    }

    /// Stores the contents of the file at the time of the preview; returns the first stored
    /// snapshot.
    ///
    /// A tool that replaces a whole file reads it in its preview, and uses that snapshot when it
    /// runs, so that exactly the contents that were shown are replaced.
    pub fn keep_preview_snapshot(&self, now: Snapshot) -> &Snapshot {
        self.0.preview_snapshot.get_or_init(|| now)
    }

    /// Returns the contents of the file at the time of the preview; `None` without a preview.
    #[must_use]
    pub fn preview_snapshot(&self) -> Option<&Snapshot> {
        self.0.preview_snapshot.get()
    }

    /// Returns a text that is equal for calls on the same file: the authorized location, or the
    /// path as it was sent if it was not authorized or could not be resolved.
    fn target_text(&self) -> String {
        match self.0.resolved.get() {
            Some(Some(places)) => places.target.absolute_path().to_string_lossy().into_owned(),
            _ => self.0.text.clone(),
        }
    }

    /// Returns the path as it was sent, and as an absolute path with its links; `None` if it
    /// cannot be resolved in the session's workspace.
    pub(super) fn sent_and_absolute(&self, session: &Session) -> Option<(String, String)> {
        let workspace = session.services().get::<Workspace>()?;
        let place = match workspace.try_resolve(&self.0.text).ok()? {
            Some(inside) => inside,
            None => workspace.resolve_outside(&self.0.text).ok()?,
        };
        let absolute = place.absolute_path().to_string_lossy().into_owned();
        Some((self.0.text.clone(), absolute))
    }
}

impl<T: Into<String>> From<T> for WorkspacePath {
    fn from(text: T) -> Self {
        let path = Self(Arc::new(SentPath { text: text.into(), ..SentPath::default() }));
        PathCollector::record(&path);
        path
    }
}

impl Default for WorkspacePath {
    fn default() -> Self {
        Self::from(String::new())
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
        String::deserialize(deserializer).map(Self::from)
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
