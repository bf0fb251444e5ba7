//! `apply_patch`: changes of several files, together or not at all.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::{self, Write as _};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tool_sdk::{
    Changes, Context, Located, Output, RiskClass, State, Subject, ToolError, Workspace,
    WorkspacePath, tool,
};

use super::target::{Target, preview};
use crate::diff::{Change, Detail, Diff, FileDiff};
use crate::edit::nearest;
use crate::patch::{ApplyError, Effort, Hunk, Pass, Patch, parse, update};
use crate::stop;

/// A patch of more files than this does not wait until the disk has each of them.
const DURABLE: usize = 16;

/// How much of all diffs together is shown before a call runs, in bytes.
const MAX_PREVIEW: usize = 256 * 1024;

/// The text of a patch, with the paths that it names.
#[derive(Clone, Debug)]
pub struct PatchText {
    text: String,
    /// In the order of the patch; none when it cannot be read.
    paths: Vec<WorkspacePath>,
}

/// Change several files with one patch: all of them, or none.
///
/// The patch has this form. A section begins with `*** Add File: path` (every line starts
/// with `+`), `*** Delete File: path`, or `*** Update File: path`, perhaps with
/// `*** Move to: path` on the next line. An update holds hunks. A hunk begins with `@@`, or
/// with `@@ ` and a line above the place such as the head of a function; then come lines
/// that start with a blank (stays), `-` (goes) or `+` (comes). Quote three lines around a
/// change, exactly as they are in the file, and hunks from top to bottom.
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
    input.patch()?;
    let places = input.locate(&workspace)?;
    let locks = workspace.lock(&places).await;
    cx.blocking(move |stop| {
        let _locks = locks;
        stop::check(stop)?;
        let plan = Plan::new(&input.patch()?, places)?;
        plan.changes.apply(|| stop.is_stopped())?;
        Ok(report(&plan.done))
    })
    .await
}

fn subjects(args: &ApplyPatchArgs, cx: &Context) -> Vec<Subject> {
    if args.input.patch().is_err() {
        // It will say what is wrong, and touch nothing.
        return vec![Subject::new("*").class(RiskClass::Read)];
    }
    args.input.paths.iter().flat_map(|path| path.written(cx)).collect()
}

fn shown_before(args: &ApplyPatchArgs, cx: &Context) -> Option<Value> {
    let diffs = || {
        let places = args.input.locate(&*cx.state::<Workspace>()?)?;
        Ok(together(&Plan::new(&args.input.patch()?, places)?.done))
    };
    preview(diffs())
}

impl PatchText {
    fn patch(&self) -> Result<Patch<'_>, ToolError> {
        let patch = parse(&self.text)
            .map_err(|error| ToolError::invalid_args(error.to_string()).source(error))?;
        patch.verify().map_err(|error| ToolError::invalid_args(error.to_string()).source(error))?;
        if let Some(environment) = patch.environment {
            let message = format_args!("there is no environment `{environment}` here");
            return Err(ToolError::invalid_args(message).hint("leave its line out of the patch"));
        }
        Ok(patch)
    }

    /// The places of the paths; two names of one file are refused.
    fn locate(&self, workspace: &Workspace) -> Result<Vec<Located>, ToolError> {
        let mut seen = HashSet::new();
        let locate = |path: &WorkspacePath| {
            let place = path.locate(workspace)?;
            if seen.insert(place.absolute()) {
                return Ok(place);
            }
            Err(ToolError::invalid_args(format_args!(
                "`{path}` is another name of a file that the patch changes already"
            ))
            .hint("put all changes of one file into one section"))
        };
        self.paths.iter().map(locate).collect()
    }
}

/// A patch that was found to fit.
struct Plan {
    changes: Changes,
    done: Vec<Done>,
}

/// What becomes of one file.
struct Done {
    /// As the patch has it.
    path: String,
    operation: Operation,
    diff: FileDiff,
    pass: Pass,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Add,
    Update,
    Move,
    Delete,
}

impl Plan {
    /// Reads every file and makes its new text, in memory.
    fn new(patch: &Patch<'_>, places: Vec<Located>) -> Result<Self, ToolError> {
        let mut places = places.into_iter();
        let mut place = || places.next().ok_or_else(|| ToolError::internal("a path has no place"));
        let effort = Effort::default();
        let durable = patch.hunks.len() <= DURABLE;
        let mut plan = Self { changes: Changes::new().durable(durable), done: Vec::new() };
        let mut shown = 0;
        for hunk in &patch.hunks {
            let from = place()?;
            let to = hunk.moves_to().map(|_| place()).transpose()?;
            let fitted = Fitted::new(hunk, from, to, &effort)?;
            // Nobody sees more than a part of very many.
            let detail = if shown < MAX_PREVIEW { Detail::Shown } else { Detail::Counted };
            let done = fitted.done(detail);
            shown += done.diff.diff.unified.len();
            plan.changes = fitted.add_to(plan.changes);
            plan.done.push(done);
        }
        Ok(plan)
    }
}

/// A section of a patch, and the file that it was found to fit.
struct Fitted<'p> {
    path: &'p str,
    operation: Operation,
    from: Target,
    /// What stands where the file is moved to.
    to: Option<Target>,
    /// What the file is to say; `None` when there is to be no file.
    text: Option<String>,
    /// Where that differs, when the patch says so.
    changes: Option<Vec<Change>>,
    pass: Pass,
}

impl<'p> Fitted<'p> {
    fn new(
        hunk: &Hunk<'p>,
        from: Located,
        to: Option<Located>,
        effort: &Effort,
    ) -> Result<Self, ToolError> {
        let from = Target::read(from)?;
        let to = to.map(Target::read).transpose()?;
        let whole = |path, operation, from, text| Self {
            path,
            operation,
            from,
            to: None,
            text,
            changes: None,
            pass: Pass::Exact,
        };
        match hunk {
            Hunk::Add { path, content } => {
                Ok(whole(path, Operation::Add, from, Some(content.clone())))
            }
            _ if !from.exists() => Err(unfit(missing(&from))),
            Hunk::Delete { path } => Ok(whole(path, Operation::Delete, from, None)),
            Hunk::Update { path, move_to, chunks } => {
                let new = update(from.text()?, chunks, path, effort);
                let new = new.map_err(|error| misfit(&from, error))?;
                let (path, operation) = match move_to {
                    None => (path, Operation::Update),
                    Some(to) => (to, Operation::Move),
                };
                let (text, changes) = (Some(new.text), Some(new.changes));
                Ok(Self { path, operation, from, to, text, changes, pass: new.pass })
            }
        }
    }

    fn done(&self, detail: Detail) -> Done {
        let diff = match &self.changes {
            Some(changes) => self.from.diff_along(self.text.as_deref(), changes, detail),
            None => self.from.diff(self.text.as_deref(), detail),
        };
        Done { path: self.path.to_owned(), operation: self.operation, diff, pass: self.pass }
    }

    fn add_to(self, changes: Changes) -> Changes {
        match (self.to, self.text) {
            (Some(to), Some(text)) => self.from.change_place(changes, to, text),
            (_, text) => self.from.change(changes, text),
        }
    }
}

fn missing(target: &Target) -> String {
    format!("there is no `{}`", target.path())
}

fn unfit(why: impl fmt::Display) -> ToolError {
    ToolError::failed(format_args!("apply_patch verification failed: {why}"))
}

/// The failure of a hunk that has no place, with the place that is most like it.
fn misfit(target: &Target, error: ApplyError) -> ToolError {
    let quoted = match &error {
        ApplyError::Context { context, .. } => context,
        ApplyError::Lines { lines, .. } => lines,
        ApplyError::Effort { .. } => return unfit(&error).source(error),
    };
    let near = target.text().ok().and_then(|text| nearest(text, quoted));
    let told = unfit(&error);
    match near {
        Some(near) => told.hint(near),
        None => told.hint("read the file again; nothing was changed"),
    }
    .source(error)
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

impl Operation {
    fn letter(self) -> char {
        match self {
            Self::Add => 'A',
            Self::Update | Self::Move => 'M',
            Self::Delete => 'D',
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Add => "create",
            Self::Update => "edit",
            Self::Move => "move",
            Self::Delete => "delete",
        }
    }
}

impl<T: Into<String>> From<T> for PatchText {
    fn from(text: T) -> Self {
        let text = text.into();
        let hunks = parse(&text).map(|patch| patch.hunks).unwrap_or_default();
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
