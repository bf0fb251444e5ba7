//! The todo list as the tools show it.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::{TodoItem, TodoPriority, TodoStatus};

/// How far an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[non_exhaustive]
pub enum TodoStatusArg {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}

/// How urgent an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[non_exhaustive]
pub enum TodoPriorityArg {
    /// First.
    High,
    /// In between.
    Medium,
    /// Last.
    Low,
}

impl From<TodoStatusArg> for TodoStatus {
    fn from(status: TodoStatusArg) -> Self {
        match status {
            TodoStatusArg::Pending => Self::Pending,
            TodoStatusArg::InProgress => Self::InProgress,
            TodoStatusArg::Completed => Self::Completed,
            TodoStatusArg::Cancelled => Self::Cancelled,
        }
    }
}

impl From<TodoPriorityArg> for TodoPriority {
    fn from(priority: TodoPriorityArg) -> Self {
        match priority {
            TodoPriorityArg::High => Self::High,
            TodoPriorityArg::Medium => Self::Medium,
            TodoPriorityArg::Low => Self::Low,
        }
    }
}

/// Formats the list for the model, one entry a line: status, id, priority, content.
pub(super) fn format_list<'t>(todos: impl IntoIterator<Item = &'t TodoItem>) -> String {
    let mut text = String::new();
    for todo in todos {
        let mark = match todo.status {
            TodoStatus::Pending => "[ ]",
            TodoStatus::InProgress => "[>]",
            TodoStatus::Completed => "[x]",
            TodoStatus::Cancelled => "[-]",
        };
        let priority = match todo.priority {
            Some(TodoPriority::High) => " (high)",
            Some(TodoPriority::Medium) => " (medium)",
            Some(TodoPriority::Low) => " (low)",
            None => "",
        };
        let _ = writeln!(text, "{mark} {}{priority}: {}", todo.id, todo.content);
    }
    text
}

/// Returns how many entries are open, as a title.
pub(super) fn count_open(todos: &[TodoItem]) -> String {
    let is_open =
        |todo: &&TodoItem| matches!(todo.status, TodoStatus::Pending | TodoStatus::InProgress);
    match todos.iter().filter(is_open).count() {
        1 => "1 open todo".to_owned(),
        count => format!("{count} open todos"),
    }
}
