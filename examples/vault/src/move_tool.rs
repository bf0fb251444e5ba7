//! The tool `vault_move`: moves a note, and keeps every link.
//!
//! **Invariant:** a move that cannot be planned when the rules judge it is refused, and the call
//! changes no note that the rules did not judge.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tool_sdk::{
    Context, FileTransaction, Output, Resource, State, ToolError, VisibilityFilter, Workspace,
    WorkspacePath, tool,
};

use crate::judged_moves::JudgedMoves;
use crate::move_plan::{RewrittenNote, plan_move};
use crate::notes::{MAX_NOTE, VaultNotes, check_note_path, check_note_size, locate_note};

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
    let (from, to) = (source.rule_path(), target.rule_path());
    let judged = cx.session().extension::<JudgedMoves>().take(cx.call_id(), &from, &to);
    cx.run_blocking(move |stop| {
        let plan = planned_move(&workspace, &visible, &from, &to, || stop.is_stopped())?;
        check_judged(&plan.rewritten, &judged)?;
        let mut transaction = FileTransaction::new();
        for note in &plan.rewritten {
            check_note_size(&note.text)?;
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

/// Fails when a plan changes a note that no rule judged.
fn check_judged(rewritten: &[RewrittenNote], judged: &BTreeSet<String>) -> Result<(), ToolError> {
    match rewritten.iter().find(|note| !judged.contains(&note.path)) {
        Some(other) => {
            let message = format_args!("`{}` has just got a link that would change", other.path);
            Err(ToolError::conflict(message).hint("call again"))
        }
        None => Ok(()),
    }
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

/// Plans a move before it is approved; returns both paths and the plan.
fn plan_for(
    args: &VaultMoveArgs,
    cx: &Context,
) -> Result<(String, String, PlannedMove), ToolError> {
    check_note_path("to", args.to.as_str())?;
    let workspace = cx.state::<Workspace>()?;
    let from = locate_note("from", &args.from, &workspace)?.rule_path();
    let to = locate_note("to", &args.to, &workspace)?.rule_path();
    let visible = cx.visible_files("read");
    let plan = planned_move(&workspace, &visible, &from, &to, || cx.is_cancelled())?;
    Ok((from, to, plan))
}

/// Every note that changes is a resource, so that a rule about any of them holds.
fn moved_resources(args: &VaultMoveArgs, cx: &Context) -> Vec<Resource> {
    let mut resources = args.from.remove_resources(cx);
    resources.extend(args.to.write_resources(cx));
    match plan_for(args, cx) {
        Ok((from, to, plan)) => {
            for note in plan.rewritten.iter().skip(1) {
                resources.extend(WorkspacePath::from(note.path.as_str()).write_resources(cx));
            }
            let paths = plan.rewritten.into_iter().map(|note| note.path).collect();
            cx.session().extension::<JudgedMoves>().add(cx.call_id(), &from, &to, paths);
        }
        Err(error) => resources.push(Resource::new(args.from.as_str()).with_refusal(&error)),
    }
    resources
}

fn preview_move(args: &VaultMoveArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let (_, _, plan) = plan_for(args, cx)?;
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

#[cfg(test)]
mod tests {
    use tool_sdk::ErrorKind;

    use super::*;

    #[test]
    fn a_plan_with_a_note_that_was_not_judged_is_a_conflict() {
        let note = |path: &str| RewrittenNote { path: path.into(), text: String::new(), links: 1 };
        let judged = BTreeSet::from(["Tea.md".to_owned(), "log.md".to_owned()]);
        assert!(check_judged(&[note("Tea.md"), note("log.md")], &judged).is_ok());
        let error = check_judged(&[note("Tea.md"), note("late.md")], &judged).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("`late.md`"), "{error}");
    }
}
