//! The tool `apply_patch`: changes several files in one transaction.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::iter;
use std::ops::Range;
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tool_sdk::{
    Context, Output, ResolvedPath, Resource, RiskClass, State, ToolError, VisibilityFilter,
    Workspace, WorkspacePath, tool,
};

use super::edit_target::{
    RequestedFile, check_file_path, commit_in_turn, is_link, preview_deadline, preview_or_error,
};
use super::patch_plan::{
    FileOperation, MAX_PREVIEW, PatchPlan, PatchedFile, PlanOptions, ResolvedSection,
    with_verification_error,
};
use crate::cancel;
use crate::diff::UnifiedDiff;
use crate::patch::{self, MatchPass, ParsedPatch, parse};
use crate::text::lines::subslice_range;

/// The environment id that a patch may use for this machine.
const LOCAL_ENVIRONMENT: &str = "local";

/// The text of a patch, and the paths that it names.
#[derive(Clone, Debug)]
pub struct PatchText {
    text: String,
    /// In the order of the patch; empty when the patch is invalid.
    parts: Vec<PatchTarget>,
}

/// The paths of one section of the patch.
#[derive(Clone, Debug)]
struct PatchTarget {
    /// The range of the section in the text.
    source: Range<usize>,
    from: WorkspacePath,
    /// The new path, when the file is moved.
    to: Option<WorkspacePath>,
    /// Whether the section removes the file from its current path.
    is_removed: bool,
}

/// Change several files with one patch: all of them, or none.
///
/// The patch has this form. A section begins with `*** Add File: path` (every line starts
/// with `+`), `*** Delete File: path`, or `*** Update File: path`, perhaps with
/// `*** Move to: path` on the next line. An update holds hunks. A hunk begins with `@@`, or
/// with `@@ ` and a line above the place such as the head of a function; then come lines
/// that start with a blank (stays), `-` (goes) or `+` (comes). Quote three lines around a
/// change, exactly as they are in the file, and hunks from top to bottom. A file may have
/// 64 MiB and two million lines.
///
/// ```text
/// *** Begin Patch
/// *** Update File: src/main.rs
/// @@ fn main() {
/// -    old();
/// +    new();
///  }
/// *** Add File: notes.txt
/// +One line.
/// *** End Patch
/// ```
#[tool(
    write,
    destructive,
    category = "filesystem",
    permission = "edit",
    approval(resources = approval_resources),
    display(name = "Patch", summary = "Applying a patch", preview = approval_preview),
    aliases("applypatch"),
    example = r#"{"input": "*** Begin Patch\n*** Add File: a.txt\n+One line.\n*** End Patch"}"#
)]
pub async fn apply_patch(
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    input: PatchText,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let places = input.resolve_paths(&workspace)?;
    let locks = workspace.lock_files(&places).await;
    let sight = cx.visible_files("read");
    cx.run_blocking(move |stop| {
        let _locks = locks;
        cancel::check_cancelled(stop)?;
        let stopped = || stop.is_stopped();
        let options = PlanOptions { is_preview: false, is_cancelled: &stopped };
        let files = commit_in_turn(stop, || {
            let plan = input.build_plan((places.clone(), &workspace, &sight), &options)?;
            Ok((plan.changes, plan.files))
        })?;
        Ok(format_report(&files))
    })
    .await
}

/// Parses the patch and checks everything that needs no file access.
fn parse_and_verify(text: &str) -> Result<ParsedPatch<'_>, ToolError> {
    if text.trim().is_empty() {
        // Models were trained on the name `patchText`; the message adds the name that is used here.
        return Err(ToolError::invalid_args("patchText is required: `input` is empty"));
    }
    let patch =
        parse(text).map_err(|error| ToolError::invalid_args(error.to_string()).source(error))?;
    patch.verify().map_err(|error| ToolError::invalid_args(error.to_string()).source(error))?;
    if let Some(environment) = patch.environment.filter(|name| *name != LOCAL_ENVIRONMENT) {
        let message = format_args!("there is no environment `{environment}` here");
        return Err(ToolError::invalid_args(message).hint("leave its line out of the patch"));
    }
    patch.sections.iter().flat_map(patch::PatchSection::paths).try_for_each(check_file_path)?;
    Ok(patch)
}

fn approval_resources(args: &ApplyPatchArgs, cx: &Context) -> Vec<Resource> {
    if args.input.parts.is_empty() {
        // An invalid patch touches nothing; the call fails with the reason.
        return vec![Resource::new("*").with_class(RiskClass::Read)];
    }
    args.input.parts.iter().flat_map(|part| part.approval_resources(cx)).collect()
}

fn approval_preview(args: &ApplyPatchArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let diffs = || {
        let workspace = cx.state::<Workspace>()?;
        let places = args.input.resolve_paths(&workspace)?;
        let options = PlanOptions { is_preview: true, is_cancelled: &preview_deadline(cx) };
        let there = (places, &*workspace, &cx.visible_files("read"));
        Ok(combined_diff(&args.input.build_plan(there, &options)?.files))
    };
    preview_or_error(diffs(), args.input.paths(), cx)
}

impl PatchTarget {
    fn approval_resources(&self, cx: &Context) -> Vec<Resource> {
        match &self.to {
            None if self.is_removed => self.from.remove_resources(cx),
            None => self.from.write_resources(cx),
            Some(to) => [self.from.write_resources(cx), to.write_resources(cx)].concat(),
        }
    }
}

impl PatchText {
    fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.parts.iter().flat_map(|part| iter::once(&part.from).chain(&part.to))
    }

    /// Plans the changes; `places` are the resolved paths, in the order of [`paths`](Self::paths).
    fn build_plan(
        &self,
        (places, workspace, sight): (Vec<ResolvedPath>, &Workspace, &VisibilityFilter),
        options: &PlanOptions<'_>,
    ) -> Result<PatchPlan, ToolError> {
        if self.parts.is_empty() {
            with_verification_error(parse_and_verify(&self.text))?;
        }
        let mut places = places.into_iter();
        let mut named = |path| match places.next() {
            Some(place) => Ok(RequestedFile::new(path, place, workspace, sight)),
            None => Err(ToolError::internal("unresolved path")),
        };
        let sections = self.parts.iter().map(|part| {
            let (from, to) = (named(&part.from)?, part.to.as_ref().map(&mut named).transpose()?);
            Ok(ResolvedSection { source: &self.text[part.source.clone()], from, to })
        });
        PatchPlan::new(&sections.collect::<Result<Vec<_>, ToolError>>()?, options)
    }

    /// Rejects a section that removes a file through a symbolic link, because the link would dangle
    /// afterwards.
    fn reject_links(&self, workspace: &Workspace) -> Result<(), ToolError> {
        // A dangling link is deleted itself.
        let leads =
            |path: &&WorkspacePath| path.is_link(workspace) && !is_dangling_link(path, workspace);
        let mut goes = self.parts.iter().filter(|part| part.is_removed).map(|part| &part.from);
        let Some(link) = goes.find(leads) else { return Ok(()) };
        let target = link.locate(workspace)?.display();
        Err(ToolError::failed(format_args!("`{link}` is a symbolic link to `{target}`"))
            .hint(format_args!("name `{target}` itself, or remove the link with a command")))
    }

    /// Resolves the paths. Fails when two paths name one file or one is below another.
    fn resolve_paths(&self, workspace: &Workspace) -> Result<Vec<ResolvedPath>, ToolError> {
        with_verification_error(self.resolve_distinct_paths(workspace))
    }

    fn resolve_distinct_paths(
        &self,
        workspace: &Workspace,
    ) -> Result<Vec<ResolvedPath>, ToolError> {
        let mut seen = HashMap::new();
        let locate = |path| {
            let place = WorkspacePath::locate(path, workspace)?;
            if seen.insert(place.absolute_path().into_os_string(), path).is_none() {
                return Ok(place);
            }
            Err(ToolError::invalid_args(format_args!(
                "`{path}` is another name of a file that the patch changes already"
            ))
            .hint("put all changes of one file into one section"))
        };
        let places: Vec<ResolvedPath> = self.paths().map(locate).collect::<Result<_, _>>()?;
        self.reject_links(workspace)?;
        let mut folders = HashSet::new();
        for (path, place) in self.paths().zip(&places) {
            for folder in place.absolute_path().ancestors().skip(1).map(Path::as_os_str) {
                // Sibling files share their parent folders.
                if folders.contains(folder) {
                    break;
                }
                if let Some(file) = seen.get(folder) {
                    return Err(ToolError::invalid_args(format_args!(
                        "`{path}` cannot be below `{file}`, which is a file of the same patch"
                    ))
                    .hint("use another path for one of them, or two patches"));
                }
                folders.insert(folder.to_owned());
            }
        }
        Ok(places)
    }
}

/// Whether the path is a symbolic link without a target.
fn is_dangling_link(path: &WorkspacePath, workspace: &Workspace) -> bool {
    path.locate(workspace).is_ok_and(|place| is_link(&place))
}

fn format_report(done: &[PatchedFile]) -> Output {
    let mut text = "Success. Updated the following files:".to_owned();
    let mut listed: Vec<(char, &str)> =
        done.iter().map(|done| (done.operation.status_letter(), &*done.path)).collect();
    listed.sort_by_key(|(letter, _)| "AMD".find(*letter));
    for (letter, path) in listed {
        let _ = write!(text, "\n{letter} {path}");
    }
    // The match strategy is reported only for files that may be read.
    let told = done.iter().filter(|done| done.diff.line_counts().is_some());
    let pass = told.map(|done| done.pass).max();
    if pass > Some(MatchPass::Exact) {
        text.push_str("\nNote: some quoted lines differed from the file in blanks or ");
        text.push_str("typographic characters; verify the result.");
    }
    for done in done {
        if let Some(was) = done.encoding_note {
            let _ = write!(text, "\nNote: {} {was}.", done.path);
        }
    }
    let mut shown = combined_diff(done);
    shown["type"] = "diff".into();
    let mut output = Output::text(text)
        .metadata("files", done.iter().map(|done| &*done.path).collect::<Vec<_>>())
        .display(shown);
    if let Some(pass) = pass {
        output = output.metadata("match_strategy", pass.as_str());
    }
    match total_counts(done) {
        None => output,
        Some((added, removed)) => output.metadata("added", added).metadata("removed", removed),
    }
}

/// Sums the added and removed lines; `None` when the content of a file may not be revealed.
fn total_counts(done: &[PatchedFile]) -> Option<(usize, usize)> {
    done.iter().map(|done| done.diff.line_counts()).try_fold((0, 0), |(added, removed), more| {
        let more = more?;
        Some((added + more.0, removed + more.1))
    })
}

/// Combines all diffs into one, with the paths and counts of each file.
fn combined_diff(done: &[PatchedFile]) -> Value {
    let len: usize = done.iter().map(|done| done.diff.diff.unified.len()).sum();
    let mut unified = String::with_capacity(len.min(MAX_PREVIEW));
    let mut left_out = 0;
    for done in done {
        let UnifiedDiff { unified: diff, added, removed } = &done.diff.diff;
        let is_same = added + removed == 0 && done.operation == FileOperation::Update;
        let is_made = !diff.is_empty() || is_same;
        match is_made && unified.len() + diff.len() <= MAX_PREVIEW {
            true => unified.push_str(diff),
            false => left_out += 1,
        }
    }
    if left_out > 0 {
        let _ = writeln!(unified, "[the diffs of {left_out} more files]");
    }
    let file = |done: &PatchedFile| {
        let counts = done.diff.line_counts();
        let moved_to = (done.operation == FileOperation::Move).then_some(done.path.as_str());
        let told = [
            Some(("type", "diff".into())),
            Some(("operation", done.operation.as_str().into())),
            Some(("path", done.diff.path.as_str().into())),
            counts.map(|(added, _)| ("added", added.into())),
            counts.map(|(_, removed)| ("removed", removed.into())),
            moved_to.map(|to| ("to", to.into())),
        ];
        // Reserve all entries at once, because there may be many files.
        let mut file = Map::with_capacity(told.len());
        file.extend(told.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)));
        Value::Object(file)
    };
    // `json!` would copy the text, which may be long.
    let mut all = Value::from_iter([
        ("unified", Value::from(unified)),
        ("files", done.iter().map(file).collect()),
    ]);
    if let Some((added, removed)) = total_counts(done) {
        all["added"] = added.into();
        all["removed"] = removed.into();
    }
    all
}

impl<T: Into<String>> From<T> for PatchText {
    fn from(text: T) -> Self {
        let text = text.into();
        let part = |section: &patch::PatchSection<'_>| PatchTarget {
            source: subslice_range(&text, section.source),
            from: section.path.into(),
            to: section.move_to.map(WorkspacePath::from),
            is_removed: section.is_removed,
        };
        let parts = match parse_and_verify(&text) {
            Ok(patch) => patch.sections.iter().map(part).collect(),
            Err(_) => Vec::new(),
        };
        Self { text, parts }
    }
}

impl fmt::Display for PatchText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for PatchText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for PatchText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PatchText".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
