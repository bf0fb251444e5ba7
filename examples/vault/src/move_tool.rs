//! The tool `vault_move`: moves a note, and keeps every link.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tool_sdk::{
    Context, FileTransaction, Output, Resource, State, ToolError, VisibilityFilter, Workspace,
    WorkspacePath, tool,
};

use crate::move_plan::{RewrittenNote, plan_move};
use crate::notes::{MAX_NOTE, VaultNotes, check_note_path, locate_note};

/// Move or rename a note. Links in other notes, and those of the note itself, are changed so that each
/// leads where it led before; either all files change, or none. Notes that the rules hide keep their
/// links.
#[tool(
    write,
    category = "vault",
    permission = "edit",
    approval(resources = moved_resources),
    display(
        name = "Move note",
        primary = from,
        show(from, to),
        summary = "Moving {from} to {to}",
        preview = preview_move
    )
)]
pub async fn vault_move(
    /// Path of the note, such as `tea.md`.
    from: WorkspacePath,
    /// The new path, such as `drinks/green tea.md`. Missing folders are made.
    to: WorkspacePath,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    check_note_path("to", to.as_str())?;
    let source = locate_note("from", &from, &workspace)?;
    let target = locate_note("to", &to, &workspace)?;
    let visible = cx.visible_files("read");
    cx.run_blocking(move |stop| {
        let (from, to) = (source.rule_path(), target.rule_path());
        let plan = planned_move(&workspace, &visible, &from, &to, || stop.is_stopped())?;
        let mut transaction = FileTransaction::new();
        for note in &plan.rewritten {
            let place = workspace.resolve(&note.path)?;
            let before = place.snapshot(MAX_NOTE)?;
            if before.content() != Some(plan.texts[&note.path].as_bytes()) {
                return Err(ToolError::conflict(format_args!("`{}` has just changed", note.path))
                    .hint("call again"));
            }
            transaction = if note.path == from {
                let replaced = target.snapshot(MAX_NOTE)?;
                if replaced.content().is_some() {
                    return Err(ToolError::conflict(format_args!("`{to}` exists already")));
                }
                transaction.rename((place, before), (target.clone(), replaced), note.text.clone())
            } else {
                transaction.write(place, before, note.text.clone())
            };
        }
        stop.hold()?;
        transaction.commit(|| stop.is_stopped())?;
        let changed: Vec<String> = plan
            .rewritten
            .iter()
            .filter(|note| note.links > 0)
            .map(|note| format!("  {} ({})", note.path, note.links))
            .collect();
        let mut text = format!("Moved `{from}` to `{to}`.");
        if !changed.is_empty() {
            text.push_str(&format!("\nChanged links in:\n{}", changed.join("\n")));
        }
        if plan.withheld > 0 {
            text.push_str(&format!(
                "\nThe rules left {} notes out; their links are as before.",
                plan.withheld
            ));
        }
        Ok(Output::text(text).metadata("changed_notes", changed.len()))
    })
    .await
}

/// What a move changes, with the texts from which that was found out.
struct PlannedMove {
    rewritten: Vec<RewrittenNote>,
    texts: BTreeMap<String, String>,
    withheld: usize,
}

fn planned_move(
    workspace: &Workspace,
    visible: &VisibilityFilter,
    from: &str,
    to: &str,
    is_stopped: impl Fn() -> bool,
) -> Result<PlannedMove, ToolError> {
    let vault = VaultNotes::read(workspace, visible, is_stopped)?;
    vault.get(from)?;
    if vault.notes.contains_key(to) {
        return Err(
            ToolError::conflict(format_args!("`{to}` exists already")).hint("choose another path")
        );
    }
    let withheld = vault.withheld;
    let texts: BTreeMap<String, String> =
        vault.notes.into_iter().map(|(path, note)| (path, note.text)).collect();
    let rewritten = plan_move(&texts, from, to).map_err(ToolError::failed)?;
    Ok(PlannedMove { rewritten, texts, withheld })
}

/// Plans a move before it is approved.
fn plan_for(args: &VaultMoveArgs, cx: &Context) -> Result<PlannedMove, ToolError> {
    check_note_path("to", args.to.as_str())?;
    let workspace = cx.state::<Workspace>()?;
    let from = locate_note("from", &args.from, &workspace)?.rule_path();
    let to = locate_note("to", &args.to, &workspace)?.rule_path();
    planned_move(&workspace, &cx.visible_files("read"), &from, &to, || cx.is_cancelled())
}

/// Every note that changes is a resource, so that a rule about any of them holds.
fn moved_resources(args: &VaultMoveArgs, cx: &Context) -> Vec<Resource> {
    let mut resources = args.from.remove_resources(cx);
    resources.extend(args.to.write_resources(cx));
    // A move that cannot be planned fails before it changes anything.
    for note in plan_for(args, cx).map(|plan| plan.rewritten).unwrap_or_default().iter().skip(1) {
        resources.extend(WorkspacePath::from(note.path.as_str()).write_resources(cx));
    }
    resources
}

fn preview_move(args: &VaultMoveArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let plan = plan_for(args, cx)?;
    let changed = plan.rewritten.iter().filter(|note| note.links > 0);
    let changed: Vec<Value> =
        changed.map(|note| json!({ "note": note.path, "links": note.links })).collect();
    Ok(Some(json!({
        "type": "note_move",
        "from": args.from.as_str(),
        "to": args.to.as_str(),
        "changed": changed,
    })))
}
