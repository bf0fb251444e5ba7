//! The tool `todo_write`: changes the todo list of the session.
//!
//! **Invariant:** an entry keeps its id for as long as it is in the list, and no id is used twice in
//! a session.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tool_sdk::{
    Context, InvalidArgs, Output, PlanStoreHandle, SessionPlan, TodoItem, ToolError, tool,
};

use super::todo_list::{TodoPriorityArg, TodoStatusArg, count_open, format_list};

/// How many entries a list may have.
const MAX_TODOS: usize = 200;

/// An entry to write.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
#[non_exhaustive]
pub struct TodoEdit {
    /// The id of an entry in the list, as `todo_read` shows it. Leave it out for a new entry.
    #[schemars(length(min = 1, max = 64))]
    pub id: Option<String>,
    /// What is to be done; needed for a new entry.
    #[schemars(length(min = 1, max = 1000))]
    pub content: Option<String>,
    /// How far it is; `pending` for a new entry.
    pub status: Option<TodoStatusArg>,
    /// How urgent it is.
    pub priority: Option<TodoPriorityArg>,
}

/// Write the todo list of this session, which the user sees.
///
/// `replace` makes `todos` the whole list; entries with an id, or with the content of an entry in
/// the list, keep their id. `add` appends new entries. `update` changes the fields that are sent, of
/// the entries with these ids. Ids stay the same; the position of an entry is not its id. The result
/// is the whole list.
#[tool(
    read,
    category = "collaboration",
    aliases("todowrite"),
    parallel = exclusive,
    approval(required = |_, _| false),
    validate = check_edits,
    display(name = "Todos", show(action, todos), summary = "Writing the todo list"),
    example = r#"{"todos": [{"content": "Read the tests", "status": "in_progress"}, {"content": "Fix the parser", "priority": "high"}]}"#,
    example = r#"{"action": "add", "todos": [{"content": "Write a changelog entry"}]}"#
)]
pub async fn todo_write(
    /// What to do with the entries.
    #[arg(default = "replace", choices("replace", "add", "update"))]
    action: String,
    /// The entries.
    #[arg(length = ..=200)]
    todos: Vec<TodoEdit>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let plans = cx.session().extension::<PlanStoreHandle>();
    let change = plans
        .update(cx.session(), |plan| {
            let list = edit_list(&action, &todos, plan)?;
            if list.len() > MAX_TODOS {
                return Err(ToolError::invalid_args(format_args!(
                    "the list would have {} entries, but may have {MAX_TODOS}",
                    list.len()
                ))
                .hint("replace the list without the entries that are done"));
            }
            plan.todos = list;
            Ok(())
        })
        .await?;
    let (before, after) = (change.before.todos, change.after.todos);
    let data = json!({ "before": before, "after": after });
    cx.emit("todos.updated", data.clone());
    let text = match after.is_empty() {
        true => "(The todo list is empty.)".to_owned(),
        false => format_list(&after),
    };
    Ok(Output::text(text).title(count_open(&after)).display(data))
}

/// Checks each entry by itself, and that no id is sent twice.
fn check_edits(args: &TodoWriteArgs) -> Result<(), InvalidArgs> {
    let fault = |message: String| Err(InvalidArgs::for_argument("todos", message));
    for (at, edit) in args.todos.iter().enumerate() {
        match (&*args.action, &edit.id) {
            (_, Some(id)) if is_position(id) => {
                return fault(format!(
                    "[{at}] has the id `{id}`, which is a position; send the id of the entry, \
                     such as `t1-1`, or none for a new entry"
                ));
            }
            ("update", None) => return fault(format!("[{at}] needs an `id` to be updated")),
            ("add", Some(id)) => {
                return fault(format!(
                    "[{at}] has the id `{id}`; a new entry gets its id from the tool"
                ));
            }
            _ => {}
        }
        if edit.id.is_none() && edit.content.is_none() {
            return fault(format!("[{at}] is a new entry and needs `content`"));
        }
        if edit.id.is_some() && args.todos[..at].iter().any(|other| other.id == edit.id) {
            return fault(format!("[{at}] has the same `id` as an entry before it"));
        }
    }
    Ok(())
}

/// Whether an id is a number, as models send that count entries.
fn is_position(id: &str) -> bool {
    let digits = id.trim().trim_start_matches('#');
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the list after the edits.
fn edit_list(
    action: &str,
    edits: &[TodoEdit],
    plan: &SessionPlan,
) -> Result<Vec<TodoItem>, ToolError> {
    let stored = &plan.todos;
    if action == "update" {
        let mut list = stored.clone();
        for edit in edits {
            let id = edit.id.as_deref().unwrap_or_default();
            let todo = list.iter_mut().find(|todo| todo.id == id);
            edit.apply_to(todo.ok_or_else(|| unknown_id(id, stored))?);
        }
        return Ok(list);
    }
    let mut list = if action == "add" { stored.clone() } else { Vec::with_capacity(edits.len()) };
    for (at, edit) in edits.iter().enumerate() {
        let mut todo = match &edit.id {
            Some(id) => {
                let known = stored.iter().find(|todo| todo.id == *id);
                known.ok_or_else(|| unknown_id(id, stored))?.clone()
            }
            None => same_content(action, edit, edits, stored, &list).unwrap_or_else(|| TodoItem {
                // Versions only grow, so no id is used twice.
                id: format!("t{}-{}", plan.version + 1, at + 1),
                content: String::new(),
                status: Default::default(),
                priority: None,
            }),
        };
        edit.apply_to(&mut todo);
        list.push(todo);
    }
    Ok(list)
}

/// Returns the stored entry with the content of a replacement without an id, so that the entry keeps
/// its id.
fn same_content(
    action: &str,
    edit: &TodoEdit,
    edits: &[TodoEdit],
    stored: &[TodoItem],
    list: &[TodoItem],
) -> Option<TodoItem> {
    let is_free = |todo: &&TodoItem| {
        let id = Some(&todo.id);
        edits.iter().all(|other| other.id.as_ref() != id)
            && list.iter().all(|it| Some(&it.id) != id)
    };
    let has_content = |todo: &&TodoItem| edit.content.as_ref() == Some(&todo.content);
    (action == "replace")
        .then(|| stored.iter().find(|it| has_content(it) && is_free(it)).cloned())?
}

impl TodoEdit {
    /// Sets the fields that were sent.
    fn apply_to(&self, todo: &mut TodoItem) {
        if let Some(content) = &self.content {
            todo.content.clone_from(content);
        }
        if let Some(status) = self.status {
            todo.status = status.into();
        }
        if let Some(priority) = self.priority {
            todo.priority = Some(priority.into());
        }
    }
}

fn unknown_id(id: &str, stored: &[TodoItem]) -> ToolError {
    let error = ToolError::not_found(format_args!("no entry has the id `{id}`"));
    match stored {
        [] => error.hint("the list is empty; send new entries without an id"),
        stored => {
            let ids: Vec<&str> = stored.iter().map(|todo| todo.id.as_str()).collect();
            error.hint(format_args!("the ids are {}", ids.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tool_sdk::testing::Harness;
    use tool_sdk::{ErrorKind, EventKind, tools};

    use super::*;
    use crate::plan::todo_read;

    fn harness() -> Harness {
        Harness::new(tools![todo_write, todo_read])
    }

    async fn write(harness: &Harness, arguments: Value) -> String {
        harness.ok("todo_write", arguments).await.into_text()
    }

    // F150
    #[tokio::test]
    async fn entries_keep_their_ids() {
        let harness = harness();
        let list = json!({ "todos": [{ "content": "a" }, { "content": "b", "priority": "high" }] });
        assert_eq!(write(&harness, list).await, "[ ] t1-1: a\n[ ] t1-2 (high): b\n");
        let added = json!({ "action": "add", "todos": [{ "content": "c" }] });
        assert_eq!(write(&harness, added).await, "[ ] t1-1: a\n[ ] t1-2 (high): b\n[ ] t2-1: c\n");
        let updated =
            json!({ "action": "update", "todos": [{ "id": "t1-2", "status": "completed" }] });
        assert_eq!(
            write(&harness, updated).await,
            "[ ] t1-1: a\n[x] t1-2 (high): b\n[ ] t2-1: c\n"
        );
        // The order changes, an entry goes, one is known by its content, one is new.
        let replaced = json!({ "todos": [
            { "content": "c", "status": "in_progress" },
            { "id": "t1-1", "content": "a, again" },
            { "content": "d" },
        ] });
        assert_eq!(
            write(&harness, replaced).await,
            "[>] t2-1: c\n[ ] t1-1: a, again\n[ ] t4-3: d\n"
        );
        let read = harness.ok("todoread", json!({ "status": "in_progress" })).await;
        assert_eq!(read.as_text(), "[>] t2-1: c\n");
        assert_eq!(read.title_text(), Some("3 open todos"));
        assert_eq!(write(&harness, json!({ "todos": [] })).await, "(The todo list is empty.)");
        let read = harness.ok("todo_read", json!({})).await;
        assert_eq!(read.as_text(), "(The todo list is empty.)");
    }

    // F150
    #[tokio::test]
    async fn positions_and_unknown_ids_are_refused() {
        let harness = harness();
        write(&harness, json!({ "todos": [{ "content": "a" }] })).await;
        for (arguments, kind, expected) in [
            (
                json!({ "action": "update", "todos": [{ "id": "1" }] }),
                ErrorKind::InvalidArgs,
                "is a position",
            ),
            (
                json!({ "todos": [{ "id": " #2", "content": "x" }] }),
                ErrorKind::InvalidArgs,
                "is a position",
            ),
            (
                json!({ "action": "update", "todos": [{ "content": "x" }] }),
                ErrorKind::InvalidArgs,
                "needs an `id`",
            ),
            (
                json!({ "action": "add", "todos": [{ "id": "mine", "content": "x" }] }),
                ErrorKind::InvalidArgs,
                "gets its id from the tool",
            ),
            (
                json!({ "action": "add", "todos": [{ "status": "pending" }] }),
                ErrorKind::InvalidArgs,
                "needs `content`",
            ),
            (
                json!({ "todos": [{ "id": "t1-1" }, { "id": "t1-1" }] }),
                ErrorKind::InvalidArgs,
                "the same `id`",
            ),
            (
                json!({ "todos": [{ "id": "t9-9" }] }),
                ErrorKind::NotFound,
                "no entry has the id `t9-9`; the ids are t1-1",
            ),
        ] {
            let error = harness.error("todo_write", arguments.clone()).await;
            assert_eq!(error.kind(), kind, "{arguments}: {error}");
            let text = format!("{}; {}", error.message(), error.suggestion().unwrap_or_default());
            assert!(text.contains(expected), "{arguments}: {text}");
        }
        assert_eq!(harness.ok("todo_read", json!({})).await.as_text(), "[ ] t1-1: a\n");
    }

    // F150
    #[tokio::test]
    async fn the_event_has_the_list_before_and_after() {
        let harness = harness();
        write(&harness, json!({ "todos": [{ "content": "a" }] })).await;
        let mut events = harness.pipeline().subscribe();
        write(
            &harness,
            json!({ "action": "update", "todos": [{ "id": "t1-1", "status": "cancelled" }] }),
        )
        .await;
        let emitted = std::iter::from_fn(|| events.try_recv()).find_map(|event| match event.kind {
            EventKind::Emitted { kind, data } if kind == "todos.updated" => Some(data),
            _ => None,
        });
        let emitted = emitted.expect("the event");
        assert_eq!(emitted["before"][0]["status"], "pending");
        assert_eq!(emitted["after"][0]["status"], "cancelled");
    }
}
