//! The resources of a path, for the rules: the path as it was sent, its target behind links, and
//! the special permissions of either.
//!
//! **Invariant:** a path that cannot be resolved is no reason to ask; the call reports the error
//! itself, and touches nothing.

use std::path::{Component, Path, PathBuf};

use tool_sdk_workspace::{ResolvedPath, Workspace};

use super::{ResolvedPlaces, WorkspacePath};
use crate::context::Context;
use crate::error::ToolError;
use crate::risk::RiskClass;
use crate::tool::Resource;

impl WorkspacePath {
    /// Returns the resources of a call that reads the path.
    #[must_use]
    pub fn read_resources(&self, cx: &Context) -> Vec<Resource> {
        self.resources(cx, false)
    }

    /// Resolves the path for this call, unless it was resolved already, so that
    /// [`locate`](Self::locate) returns the same location from now on. For a tool that judges the
    /// path by resources of its own.
    #[doc(hidden)]
    pub fn pin_location(&self, cx: &Context) {
        self.0.resolved.get_or_init(|| self.resolve_places(cx).ok());
    }

    /// Returns the resources of a call that writes the path.
    #[must_use]
    pub fn write_resources(&self, cx: &Context) -> Vec<Resource> {
        self.resources(cx, true)
    }

    /// Returns the resources of a call that removes the target of the path. A link whose target
    /// cannot be reached, because it is outside the workspace or part of a cycle, is removed
    /// itself.
    #[must_use]
    pub fn remove_resources(&self, cx: &Context) -> Vec<Resource> {
        self.0
            .resolved
            .get_or_init(|| self.resolve_places(cx).ok().or_else(|| self.resolve_link_itself(cx)));
        self.write_resources(cx)
    }

    fn resources(&self, cx: &Context, writes: bool) -> Vec<Resource> {
        self.resolved_resources(cx, writes)
            // The call will fail without touching anything, so no approval is needed.
            .unwrap_or_else(|| vec![Resource::new(&self.0.text).with_class(RiskClass::Read)])
    }

    /// Returns the resources of a call whose tool does not declare what it does with the path. If
    /// the path cannot be resolved, the tool may do something else with it.
    pub(crate) fn default_resources(&self, cx: &Context, writes: bool) -> Vec<Resource> {
        self.resolved_resources(cx, writes).unwrap_or_else(|| vec![Resource::new(&self.0.text)])
    }

    /// Returns the resources of the resolved path; `None` if it cannot be resolved.
    fn resolved_resources(&self, cx: &Context, writes: bool) -> Option<Vec<Resource>> {
        let places = self.0.resolved.get_or_init(|| self.resolve_places(cx).ok());
        places.as_ref().map(|places| self.about(places, writes, cx))
    }

    fn resolve_places(&self, cx: &Context) -> Result<ResolvedPlaces, ToolError> {
        let workspace = cx.state::<Workspace>()?;
        let asked = workspace.try_resolve(&self.0.text)?;
        let real = match &asked {
            Some(asked) => asked.canonicalize()?,
            None => workspace.resolve_outside(&self.0.text)?,
        };
        Ok(ResolvedPlaces { requested: asked, target: real })
    }

    /// Returns the location of the link itself, not of its target.
    fn resolve_link_itself(&self, cx: &Context) -> Option<ResolvedPlaces> {
        let asked = cx.state::<Workspace>().ok()?.try_resolve(&self.0.text).ok()??;
        let real = asked.parent()?.canonicalize().ok()?.join(asked.file_name()?);
        real.is_symlink().then_some(ResolvedPlaces { requested: Some(asked), target: real })
    }

    fn about(
        &self,
        ResolvedPlaces { requested: asked, target: real }: &ResolvedPlaces,
        writes: bool,
        cx: &Context,
    ) -> Vec<Resource> {
        let path = |place: &ResolvedPath| {
            Resource::path(place.rule_path(), place.absolute_path()).with_sent_path(&self.0.text)
        };
        // Most paths have no links.
        let elsewhere = asked.as_ref().filter(|asked| !asked.is_same_path(real));
        let target = path(real);
        // The call fails, so the user need not approve it first.
        let target = match writes && real.is_read_only() {
            true => target.with_refusal(&ToolError::denied(format_args!(
                "`{}` is in a folder that may only be read",
                real.display()
            ))),
            false => target,
        };
        let sent = match asked {
            Some(_) => elsewhere.map(path),
            None => Some(Resource::new(normalize_text(&self.0.text)).with_sent_path(&self.0.text)),
        };
        let sent = sent.filter(|sent| sent.text() != target.text());
        let mut subjects: Vec<_> = sent.into_iter().chain([target]).collect();
        let mut also = Vec::new();
        if asked.is_none() {
            // Reading outside needs approval like writing, but has the class of reading.
            let class = if writes { RiskClass::Write } else { RiskClass::Read };
            // If a path through the outside leads back inside, only its spelling is outside.
            let only_the_way = !real.is_outside() && subjects.len() > 1;
            let outside_ones = &subjects[..subjects.len() - usize::from(only_the_way)];
            // All spellings are one location, and have one reason.
            let why =
                outside_ones.last().map(|it| describe_special(it.text(), &describe_outside(cx)));
            let under = |it: &Resource| {
                let subject = it
                    .clone()
                    .with_permission(Resource::OUTSIDE)
                    .with_class(class)
                    .asks_by_default();
                subject.with_reason(why.clone().unwrap_or_default())
            };
            also.extend(outside_ones.iter().map(under));
        }
        if writes {
            let places = elsewhere.into_iter().chain([real]).filter(|place| place.is_protected());
            let obeyed = "is a file that other programs execute or read as configuration later";
            let under = |place| {
                let subject = path(place).with_permission(Resource::PROTECTED).requires_approval();
                let why = describe_special(subject.text(), obeyed);
                subject.with_reason(why)
            };
            also.extend(places.map(under));
            also.dedup();
        }
        subjects.extend(also);
        subjects
    }
}

/// Returns a sentence with the path's name and what is special about it.
fn describe_special(path: &str, what: &str) -> String {
    const MAX: usize = 256;
    let name: String = path.chars().take(MAX).collect();
    format!("`{}` {what}", name.escape_debug())
}

/// Returns the predicate for a path outside the workspace, with the roots.
fn describe_outside(cx: &Context) -> String {
    const MOST: usize = 4;
    let roots: Vec<String> = match cx.state::<Workspace>() {
        Ok(workspace) => workspace.roots().take(MOST).map(|it| it.display().to_string()).collect(),
        Err(_) => Vec::new(),
    };
    format!("is outside the workspace, which is `{}`", roots.join("` and `"))
}

/// Returns the path without `.` and doubled separators, as rules write it.
fn normalize_text(path: &str) -> String {
    let parts = Path::new(path).components().filter(|part| *part != Component::CurDir);
    parts.collect::<PathBuf>().display().to_string()
}
