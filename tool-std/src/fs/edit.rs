//! The tool `edit_file`: replaces quoted text in a file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tool_sdk::{
    Changes, Context, Output, RiskClass, State, Stop, Subject, ToolError, Workspace, WorkspacePath,
    tool,
};

use super::target::{
    Named, Target, counts, display, is_of_a_file, patience, preview, unfit_untold,
};
use crate::diff::Detail;
use crate::edit::{Edit, EditError, Edited, Fault, replace};
use crate::near::with_similar;
use crate::stop;

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
    approval(subjects = subjects),
    display(
        name = "Edit",
        primary = path,
        show(path),
        summary = "Editing {path}",
        preview = shown_before,
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
    is_of_a_file(path.as_str())?;
    let place = path.locate(&workspace)?;
    let locks = workspace.lock([&place]).await;
    let sight = cx.sight("read");
    cx.blocking(move |stop| {
        let _locks = locks;
        stop::check(stop)?;
        let file = Named::new(&path, place, &workspace, &sight);
        let edits = wanted(&old_string, &new_string, replace_all, &edits)?;
        let edited = file.read_to_edit(
            None,
            |target| edit(target, &edits, &|| stop.is_stopped()),
            |edited| &edited.text,
        );
        let (target, edited) =
            edited.map_err(|error| with_similar(error, &file.place, &sight, stop))?;
        write(target, edited, stop)
    })
    .await
}

fn subjects(args: &EditFileArgs, cx: &Context) -> Vec<Subject> {
    match args.wanted() {
        Ok(_) => args.path.written(cx),
        // An invalid call touches nothing; it fails with the reason.
        Err(_) => vec![Subject::new(args.path.as_str()).class(RiskClass::Read)],
    }
}

fn shown_before(args: &EditFileArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let diff = || {
        let target = Named::by(&args.path, cx)?.show()?;
        let edited = edit(&target, &args.wanted()?, &patience(cx))?;
        Ok(target.diff(Some(&edited.text), Detail::Shown).to_json())
    };
    preview(diff(), [&args.path], cx)
}

impl EditFileArgs {
    fn wanted(&self) -> Result<Vec<Edit<'_>>, ToolError> {
        is_of_a_file(self.path.as_str())?;
        wanted(&self.old_string, &self.new_string, self.replace_all, &self.edits)
    }
}

/// Returns the edits of a call, which are given in one of two forms.
fn wanted<'a>(
    old: &'a Option<String>,
    new: &'a Option<String>,
    replace_all: bool,
    edits: &'a Option<Vec<TextEdit>>,
) -> Result<Vec<Edit<'a>>, ToolError> {
    match (old, new, edits.as_deref()) {
        (Some(old), Some(new), None | Some([])) => Ok(vec![Edit { old, new, replace_all }]),
        (None, None, Some(edits @ [_, ..])) => Ok(edits
            .iter()
            .map(|edit| Edit {
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

fn edit(
    target: &Target,
    edits: &[Edit<'_>],
    stopped: &dyn Fn() -> bool,
) -> Result<Edited, ToolError> {
    let text = target.text()?;
    let edited = replace(text, edits, stopped).map_err(|error| refused(target, error))?;
    // An unreadable file only reveals success through an actual change.
    if !target.is_told() && edited.text == text {
        return Err(unfit_untold());
    }
    Ok(edited)
}

fn refused(target: &Target, error: EditError) -> ToolError {
    let path = target.path();
    match &error.fault {
        Fault::Empty | Fault::Identical => {
            ToolError::invalid_args(format_args!("`{path}`: {error}"))
        }
        Fault::Stopped if target.is_told() => ToolError::aborted(format_args!("`{path}`: {error}")),
        fault @ Fault::Stopped => ToolError::aborted(format_args!("`{path}`: {fault}")),
        // The details of the error depend on the content of the file.
        _ if !target.is_told() => return unfit_untold(),
        Fault::Costly
        | Fault::TooLong
        | Fault::NotFound(_)
        | Fault::Ambiguous { .. }
        | Fault::Overlapping(_) => ToolError::failed(format_args!("`{path}`: {error}")),
    }
    .source(error)
}

fn write(target: Target, edited: Edited, stop: &Stop) -> Result<Output, ToolError> {
    let (path, spelling) = (target.path(), target.spelling());
    let diff = target.diff(Some(&edited.text), Detail::Shown);
    let note = edited.note().map(|note| format!("\nNote: {note}.")).unwrap_or_default();
    stop.hold()?;
    target.change(Changes::new(), Some(edited.text)).apply(|| stop.is_stopped())?;
    let Some((added, removed)) = diff.counts() else {
        return Ok(Output::text(format!("Edited `{path}`."))
            .metadata("path", spelling)
            .display(display("edit", &diff)));
    };
    let places = match edited.replaced {
        1 => "1 place".to_owned(),
        places => format!("{places} places"),
    };
    Ok(Output::text(format!("Edited `{path}` in {places}{}.{note}", counts(&diff)))
        .metadata("path", spelling)
        .metadata("match_strategy", edited.strategy.as_str())
        .metadata("replaced", edited.replaced)
        .metadata("added", added)
        .metadata("removed", removed)
        .display(display("edit", &diff)))
}
