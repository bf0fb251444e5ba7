//! `apply_patch`: changes of several files, together or not at all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write as _};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tool_sdk::{
    Context, Located, Output, RiskClass, State, Subject, ToolError, Workspace, WorkspacePath, tool,
};

use super::plan::{Done, MAX_PREVIEW, Operation, Plan};
use super::target::{is_of_a_file, preview};
use crate::diff::{Diff, FileDiff};
use crate::patch::{Hunk, Pass, Patch, parse};
use crate::stop;

/// The text of a patch, with the paths that it names.
#[derive(Clone, Debug)]
pub struct PatchText {
    text: String,
    /// In the order of the patch; none when it is refused.
    paths: Vec<WorkspacePath>,
}

/// Change several files with one patch: all of them, or none.
///
/// The patch has this form. A section begins with `*** Add File: path` (every line starts
/// with `+`), `*** Delete File: path`, or `*** Update File: path`, perhaps with
/// `*** Move to: path` on the next line. An update holds hunks. A hunk begins with `@@`, or
/// with `@@ ` and a line above the place such as the head of a function; then come lines
/// that start with a blank (stays), `-` (goes) or `+` (comes). Quote three lines around a
/// change, exactly as they are in the file, and hunks from top to bottom. A file may have
/// 64 MiB.
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
    approval(subjects = subjects),
    display(name = "Patch", summary = "Applying a patch", preview = shown_before),
    aliases("applypatch"),
    example = r#"{"input": "*** Begin Patch\n*** Add File: a.txt\n+One line.\n*** End Patch"}"#
)]
pub async fn apply_patch(
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    input: PatchText,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let places = input.locate(&workspace)?;
    let locks = workspace.lock(&places).await;
    cx.blocking(move |stop| {
        let _locks = locks;
        stop::check(stop)?;
        let plan = Plan::new(&sound(&input.text)?, places)?;
        plan.changes.apply(|| stop.is_stopped())?;
        Ok(report(&plan.done))
    })
    .await
}

/// The patch, unless something is wrong that no file has to be read for.
fn sound(text: &str) -> Result<Patch<'_>, ToolError> {
    let patch =
        parse(text).map_err(|error| ToolError::invalid_args(error.to_string()).source(error))?;
    patch.verify().map_err(|error| ToolError::invalid_args(error.to_string()).source(error))?;
    if let Some(environment) = patch.environment {
        let message = format_args!("there is no environment `{environment}` here");
        return Err(ToolError::invalid_args(message).hint("leave its line out of the patch"));
    }
    patch.hunks.iter().flat_map(Hunk::paths).try_for_each(is_of_a_file)?;
    Ok(patch)
}

fn subjects(args: &ApplyPatchArgs, cx: &Context) -> Vec<Subject> {
    if args.input.paths.is_empty() {
        // It will say what is wrong, and touch nothing.
        return vec![Subject::new("*").class(RiskClass::Read)];
    }
    args.input.paths.iter().flat_map(|path| path.written(cx)).collect()
}

fn shown_before(args: &ApplyPatchArgs, cx: &Context) -> Option<Value> {
    let diffs = || {
        let places = args.input.locate(&*cx.state::<Workspace>()?)?;
        Ok(together(&Plan::new(&sound(&args.input.text)?, places)?.done))
    };
    preview(diffs())
}

impl PatchText {
    /// The places of the paths; two names of one file, and files in files, are refused.
    fn locate(&self, workspace: &Workspace) -> Result<Vec<Located>, ToolError> {
        let mut seen = HashMap::new();
        let locate = |path| {
            let place = WorkspacePath::locate(path, workspace)?;
            if seen.insert(place.absolute(), path).is_none() {
                return Ok(place);
            }
            Err(ToolError::invalid_args(format_args!(
                "`{path}` is another name of a file that the patch changes already"
            ))
            .hint("put all changes of one file into one section"))
        };
        let places: Vec<Located> = self.paths.iter().map(locate).collect::<Result<_, _>>()?;
        for (path, place) in self.paths.iter().zip(&places) {
            if let Some(file) = place.absolute().ancestors().skip(1).find_map(|it| seen.get(it)) {
                return Err(ToolError::invalid_args(format_args!(
                    "`{path}` cannot be below `{file}`, which is a file of the same patch"
                ))
                .hint("use another path for one of them, or two patches"));
            }
        }
        Ok(places)
    }
}

fn report(done: &[Done]) -> Output {
    let mut text = "Success. Updated the following files:".to_owned();
    let mut listed: Vec<(char, &str)> =
        done.iter().map(|done| (done.operation.letter(), &*done.path)).collect();
    listed.sort_by_key(|(letter, _)| "AMD".find(*letter));
    for (letter, path) in listed {
        let _ = write!(text, "\n{letter} {path}");
    }
    let pass = done.iter().map(|done| done.pass).max().unwrap_or_default();
    if pass != Pass::Exact {
        text.push_str("\nNote: some quoted lines differed from the file in blanks or ");
        text.push_str("typographic characters; verify the result.");
    }
    let mut shown = together(done);
    shown["type"] = "diff".into();
    Output::text(text)
        .metadata("files", done.iter().map(|done| &*done.path).collect::<Vec<_>>())
        .metadata("match_strategy", pass.as_str())
        .metadata("added", shown["added"].clone())
        .metadata("removed", shown["removed"].clone())
        .display(shown)
}

/// All diffs as one, and the files one by one.
fn together(done: &[Done]) -> Value {
    let mut unified = String::new();
    let mut left_out = 0;
    for done in done {
        let Diff { unified: diff, added, removed } = &done.diff.diff;
        let is_made = !diff.is_empty() || added + removed == 0;
        match is_made && unified.len() + diff.len() <= MAX_PREVIEW {
            true => unified.push_str(diff),
            false => left_out += 1,
        }
    }
    if left_out > 0 {
        let _ = writeln!(unified, "[the diffs of {left_out} more files]");
    }
    let file = |done: &Done| {
        let FileDiff { path, diff } = &done.diff;
        let mut file = json!({
            "type": "diff",
            "operation": done.operation.as_str(),
            "path": path,
            "added": diff.added,
            "removed": diff.removed,
        });
        if done.operation == Operation::Move {
            file["to"] = done.path.as_str().into();
        }
        file
    };
    let sum = |of: fn(&Done) -> usize| done.iter().map(of).sum::<usize>();
    json!({
        "unified": unified,
        "files": done.iter().map(file).collect::<Vec<_>>(),
        "added": sum(|done| done.diff.diff.added),
        "removed": sum(|done| done.diff.diff.removed),
    })
}

impl<T: Into<String>> From<T> for PatchText {
    fn from(text: T) -> Self {
        let text = text.into();
        let hunks = sound(&text).map(|patch| patch.hunks).unwrap_or_default();
        let paths = hunks.iter().flat_map(Hunk::paths).map(WorkspacePath::from).collect();
        Self { text, paths }
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
