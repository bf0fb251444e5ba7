//! The tool `edit_file`: replaces quoted text in a file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tool_sdk::{
    Context, FileTransaction, Output, Resource, RiskClass, State, ToolError, Workspace,
    WorkspacePath, tool,
};

use super::edit_target::{
    EditTarget, RequestedFile, check_file_path, commit_in_turn, diff_display, format_counts,
    hidden_mismatch_error, preview_deadline, preview_or_error,
};
use crate::cancel;
use crate::diff::DiffDetail;
use crate::edit::{EditError, EditFault, EditedText, QuotedEdit, replace_quoted};
use crate::suggest::with_suggestions;

/// One replacement of several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
#[non_exhaustive]
pub struct TextEdit {
    /// The text to replace.
    pub old_string: String,
    /// The text to put there.
    pub new_string: String,
    /// Whether to replace every place; without it there must be only one.
    #[serde(default)]
    pub replace_all: bool,
}

/// Replace text in a file.
///
/// The text to replace must be in the file exactly as quoted, with its indentation, and
/// only once unless `replace_all` is set. Give either `old_string` and `new_string`, or
/// `edits` for several replacements, which are made in their order, all or none. Line ends
/// and the byte order mark stay as they are. A file may have 64 MiB
/// and two million lines.
#[tool(
    write,
    category = "filesystem",
    permission = "edit",
    approval(resources = approval_resources),
    display(
        name = "Edit",
        primary = path,
        show(path),
        summary = "Editing {path}",
        preview = approval_preview,
    ),
    aliases("edit"),
    parallel = by(path),
    example = r#"{"path": "src/main.rs", "old_string": "fn main() {}", "new_string": "fn main() { run() }", "replace_all": true}"#
)]
pub async fn edit_file(
    /// Path of the file, relative to the workspace or absolute inside it.
    #[arg(alias("file_path"))]
    path: WorkspacePath,
    /// The text to replace.
    old_string: Option<String>,
    /// The text to put there.
    new_string: Option<String>,
    /// Whether to replace every place; without it there must be only one.
    #[arg(default = false)]
    replace_all: bool,
    /// Several replacements instead of one.
    edits: Option<Vec<TextEdit>>,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    check_file_path(path.as_str())?;
    let place = path.locate(&workspace)?;
    let locks = workspace.lock_files([&place]).await;
    let sight = cx.visible_files("read");
    cx.run_blocking(move |stop| {
        let _locks = locks;
        cancel::check_cancelled(stop)?;
        let file = RequestedFile::new(&path, place, &workspace, &sight);
        let edits = collect_edits(&old_string, &new_string, replace_all, &edits)?;
        commit_in_turn(stop, || {
            let edited = file.read_to_edit(
                |target| apply_edits(target, &edits, &|| stop.is_stopped()),
                |edited| &edited.text,
            );
            let (target, edited) =
                edited.map_err(|error| with_suggestions(error, &file.place, &sight, stop))?;
            Ok(plan_edited(target, edited))
        })
    })
    .await
}

fn approval_resources(args: &EditFileArgs, cx: &Context) -> Vec<Resource> {
    match args.collect_edits() {
        Ok(_) => args.path.write_resources(cx),
        // An invalid call touches nothing; it fails with the reason.
        Err(_) => vec![Resource::new(args.path.as_str()).with_class(RiskClass::Read)],
    }
}

fn approval_preview(args: &EditFileArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let diff = || {
        let target = RequestedFile::resolve(&args.path, cx)?.read_for_preview()?;
        let edited = apply_edits(&target, &args.collect_edits()?, &preview_deadline(cx))?;
        Ok(target.diff(Some(&edited.text), DiffDetail::Full).to_json())
    };
    preview_or_error(diff(), [&args.path], cx)
}

impl EditFileArgs {
    fn collect_edits(&self) -> Result<Vec<QuotedEdit<'_>>, ToolError> {
        check_file_path(self.path.as_str())?;
        collect_edits(&self.old_string, &self.new_string, self.replace_all, &self.edits)
    }
}

/// Returns the edits of a call, which are given in one of two forms.
fn collect_edits<'a>(
    old: &'a Option<String>,
    new: &'a Option<String>,
    replace_all: bool,
    edits: &'a Option<Vec<TextEdit>>,
) -> Result<Vec<QuotedEdit<'a>>, ToolError> {
    match (old, new, edits.as_deref()) {
        (Some(old), Some(new), None | Some([])) => Ok(vec![QuotedEdit { old, new, replace_all }]),
        (None, None, Some(edits @ [_, ..])) => Ok(edits
            .iter()
            .map(|edit| QuotedEdit {
                old: &edit.old_string,
                new: &edit.new_string,
                replace_all: edit.replace_all || replace_all,
            })
            .collect()),
        (Some(_), None, None) | (None, Some(_), None) => Err(ToolError::invalid_args(
            "`old_string` and `new_string` belong together, and one of them is missing",
        )),
        _ => Err(ToolError::invalid_args(
            "send either `old_string` and `new_string`, or `edits` with at least one edit",
        )),
    }
}

fn apply_edits(
    target: &EditTarget,
    edits: &[QuotedEdit<'_>],
    stopped: &dyn Fn() -> bool,
) -> Result<EditedText, ToolError> {
    let text = target.text()?;
    let edited = replace_quoted(text, edits, stopped).map_err(|error| edit_error(target, error))?;
    // An unreadable file only reveals success through an actual change.
    if !target.is_visible() && edited.text == text {
        return Err(hidden_mismatch_error());
    }
    Ok(edited)
}

fn edit_error(target: &EditTarget, error: EditError) -> ToolError {
    let path = target.display_path();
    match &error.fault {
        EditFault::EmptyQuote | EditFault::Identical => {
            ToolError::invalid_args(format_args!("`{path}`: {error}"))
        }
        EditFault::Cancelled if target.is_visible() => {
            ToolError::aborted(format_args!("`{path}`: {error}"))
        }
        fault @ EditFault::Cancelled => ToolError::aborted(format_args!("`{path}`: {fault}")),
        // The details of the error depend on the content of the file.
        _ if !target.is_visible() => return hidden_mismatch_error(),
        EditFault::TooExpensive
        | EditFault::TooLong
        | EditFault::NotFound(_)
        | EditFault::Ambiguous { .. }
        | EditFault::Overlapping(_) => ToolError::failed(format_args!("`{path}`: {error}")),
    }
    .source(error)
}

/// Returns the change, and the output for when it was made.
fn plan_edited(target: EditTarget, edited: EditedText) -> (FileTransaction, Output) {
    let (path, spelling) = (target.display_path(), target.spelling());
    let diff = target.diff(Some(&edited.text), DiffDetail::Full);
    let note = edited.match_note().map(|note| format!("\nNote: {note}.")).unwrap_or_default();
    let changes = target.add_change(FileTransaction::new(), Some(edited.text));
    let Some((added, removed)) = diff.line_counts() else {
        let output = Output::text(format!("Edited `{path}`."))
            .metadata("path", spelling)
            .display(diff_display("edit", &diff));
        return (changes, output);
    };
    let places = match edited.replaced {
        1 => "1 place".to_owned(),
        places => format!("{places} places"),
    };
    let output =
        Output::text(format!("Edited `{path}` in {places}{}.{note}", format_counts(&diff)))
            .metadata("path", spelling)
            .metadata("match_strategy", edited.strategy.as_str())
            .metadata("replaced", edited.replaced)
            .metadata("added", added)
            .metadata("removed", removed)
            .display(diff_display("edit", &diff));
    (changes, output)
}
