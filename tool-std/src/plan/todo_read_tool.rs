//! The tool `todo_read`: shows the todo list of the session.

use serde_json::json;
use tool_sdk::{Context, Output, PlanStoreHandle, TodoItem, TodoStatus, ToolError, tool};

use super::todo_list::{TodoStatusArg, count_open, format_list};

/// Show the todo list: the id, status, priority and content of each entry.
#[tool(
    read,
    category = "collaboration",
    aliases("todoread"),
    approval(required = |_, _| false),
    display(name = "Todos", show(status), summary = "Reading the todo list"),
    example = "{}"
)]
pub async fn todo_read(
    /// Show only entries with this status.
    status: Option<TodoStatusArg>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let plan = cx.session().extension::<PlanStoreHandle>().load(cx.session()).await?;
    let wanted = status.map(TodoStatus::from);
    let is_wanted = |todo: &&TodoItem| wanted.is_none_or(|status| status == todo.status);
    let shown: Vec<&TodoItem> = plan.todos.iter().filter(is_wanted).collect();
    let text = match shown.is_empty() {
        true if plan.todos.is_empty() => "(The todo list is empty.)".to_owned(),
        true => "(No entry has this status.)".to_owned(),
        false => format_list(shown.iter().copied()),
    };
    let title = count_open(&plan.todos);
    Ok(Output::text(text).title(title).display(json!({ "todos": shown })))
}
