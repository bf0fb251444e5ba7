//! Tools with which a model plans its work: `update_plan`, `todo_write`, `todo_read`, `plan_enter`,
//! `plan_update` and `plan_exit`.
//!
//! The plan, the todo list and the draft of plan mode belong to the session and are kept in its
//! [`PlanStoreHandle`](tool_sdk::PlanStoreHandle). These tools change nothing outside of it, so the
//! user is not asked about them, and they may be called in plan mode. Only leaving plan mode asks.

mod mode;
mod steps;
mod todo_list;
mod todo_read_tool;
mod todo_write_tool;

pub use self::mode::{plan_enter, plan_exit, plan_update};
pub use self::steps::{PlannedStep, StepStatus, update_plan};
pub use self::todo_list::{TodoPriorityArg, TodoStatusArg};
pub use self::todo_read_tool::todo_read;
pub use self::todo_write_tool::{TodoEdit, todo_write};
