//! The standard tools for agents.
//!
//! | tool | feature | what it does |
//! |---|---|---|
//! | [`read_file`](fn@fs::read_file) | `fs` | shows a text file page by page, an image or a PDF as it is |
//! | [`list_dir`](fn@fs::list_dir) | `fs` | lists a folder and what is below it |
//! | [`write_file`](fn@fs::write_file) | `fs` | makes a file or writes it anew |
//! | [`edit_file`](fn@fs::edit_file) | `fs` | replaces quoted text in a file |
//! | [`apply_patch`](fn@fs::apply_patch) | `fs` | changes several files together, or none |
//! | [`glob_files`](fn@search::glob_files) | `search` | finds files by their names |
//! | [`grep_files`](fn@search::grep_files) | `search` | searches files with a regular expression |
//! | [`search_code`](fn@code::search_code) | `code` | finds code by symbols, text or structure |
//! | [`find_definition`](fn@code::find_definition), [`find_references`](fn@code::find_references) | `code` | find where a symbol is defined and used, by name |
//! | [`list_symbols`](fn@code::list_symbols) | `code` | the outline of a source file |
//! | [`get_repo_map`](fn@code::get_repo_map) | `code` | the most referenced definitions of a repository |
//! | [`exec_command`](fn@exec::exec_command) | `exec` | runs a command, which may run on after the call |
//! | [`write_stdin`](fn@exec::write_stdin) | `exec` | types into such a command, or waits for its output |
//! | [`list_sessions`](fn@exec::list_sessions), [`kill_session`](fn@exec::kill_session) | `exec` | lists and ends such commands |
//! | [`shell`](fn@exec::shell), [`shell_command`](fn@exec::shell_command) | `exec` | run a command to its end |
//! | [`tool_search`](fn@tools::tool_search) | `tools` | searches the tools that the session can see |
//! | [`memory_search`](fn@memory::memory_search), [`memory_get`](fn@memory::memory_get) | `memory` | find and show notes of earlier sessions |
//! | [`memory_create`](fn@memory::memory_create), [`memory_update`](fn@memory::memory_update), [`memory_delete`](fn@memory::memory_delete) | `memory` | keep, change and delete notes |
//! | [`register_mcp_server`](fn@mcp::register_mcp_server) | `mcp` | uses the tools of another server |
//! | [`debug_mcp_server`](fn@mcp::debug_mcp_server) | `mcp` | shows how those servers are |
//! | [`update_plan`](fn@plan::update_plan) | `plan` | shows the steps of the work, and how far each is |
//! | [`todo_write`](fn@plan::todo_write), [`todo_read`](fn@plan::todo_read) | `plan` | keep a todo list |
//! | [`plan_enter`](fn@plan::plan_enter), [`plan_update`](fn@plan::plan_update), [`plan_exit`](fn@plan::plan_exit) | `plan` | plan mode: only reading, until the user approves the plan |
//! | [`ask_clarification`](fn@questions::ask_clarification), [`request_decision`](fn@questions::request_decision) | `questions` | ask the user |
//! | [`check_env_vars`](fn@secrets::check_env_vars), [`get_env_var`](fn@secrets::get_env_var), [`request_env_var`](fn@secrets::request_env_var) | `secrets` | check, show and ask for the variables of other tools |
//! | [`skill`](fn@skills::skill), [`skill_list`](fn@skills::skill_list) | `skills` | load and list instructions for kinds of tasks |
//! | [`skill_create`](fn@skills::skill_create), [`skill_update`](fn@skills::skill_update), [`skill_install`](fn@skills::skill_install), [`skill_remove`](fn@skills::skill_remove) | `skills` | write, change, install and remove such instructions |
//! | [`plugin_manager`](fn@plugins::plugin_manager) | `plugins` | lists, installs, enables and removes plugins |
//! | [`notify_self`](fn@reactions::notify_self), [`inject_context`](fn@reactions::inject_context), [`modify_prompt`](fn@reactions::modify_prompt) | `reactions` | actions of rules: a message, context or a section of the prompt for the agent |
//! | [`log`](fn@reactions::log), [`set_state`](fn@reactions::set_state), [`emit_event`](fn@reactions::emit_event) | `reactions` | actions of rules: a line in the log, a value that rules remember, an event |
//! | [`reaction_list`](fn@reactions::reaction_list), [`reaction_check`](fn@reactions::reaction_check) | `reactions` | list and check the rules |
//! | [`mutation_begin`](fn@ledger::mutation_begin), [`mutation_record`](fn@ledger::mutation_record), [`mutation_status`](fn@ledger::mutation_status) | `ledger` | record changes outside of the workspace, and block those that repeat |
//! | [`web_fetch`](fn@web::web_fetch), [`web_search`](fn@web::web_search) | `web` | read pages of the web, and find them |
//! | [`github_list_issues`](fn@github::github_list_issues), [`github_read_issue`](fn@github::github_read_issue), [`github_list_pull_requests`](fn@github::github_list_pull_requests), [`github_read_pull_request`](fn@github::github_read_pull_request) | `github` | list and read issues and pull requests on GitHub |
//! | [`github_read_file`](fn@github::github_read_file), [`github_search`](fn@github::github_search) | `github` | read files, and search code and issues |
//! | [`github_create_issue`](fn@github::github_create_issue), [`github_comment`](fn@github::github_comment) | `github` | write issues and comments |
//! | [`deep_research`](fn@research::deep_research) | `research` | researches a question with several agents |
//! | [`terminal`](fn@screen::terminal), [`desktop`](fn@screen::desktop) | `screen` | start, show and end a terminal or a desktop that the user watches |
//!
//! [`shell`](mod@shell) has no tool; it understands what a command line will do. Of the
//! families of tools that run commands a model gets one: see [`variants`](exec::variants).
//!
//! Each tool is a function that a program may also call itself. The host provides the folders that
//! tools may access as a [`Workspace`](tool_sdk::Workspace). A path outside of them is touched only
//! if the user or a permission rule allowed that path.
//!
//! Select features to link only some of the tools, without the command line:
//!
//! ```toml
//! tool-std = { version = "0.1", default-features = false, features = ["fs"] }
//! ```
//!
//! The binary `tool-std` has all tools but those of `code`, whose grammars make it 10 MB larger:
//! `cargo install tool-std --features code`.

#![forbid(unsafe_code)]

#[cfg(feature = "code-tools")]
pub mod code;
#[cfg(feature = "fs")]
mod diff;
#[cfg(feature = "fs")]
mod edit;
#[cfg(feature = "exec")]
pub mod exec;
#[cfg(any(feature = "questions", feature = "secrets"))]
mod form_outcome;
#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "github")]
pub mod github;
#[cfg(feature = "ledger")]
pub mod ledger;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "skills")]
mod packages;
#[cfg(feature = "fs")]
mod patch;
#[cfg(feature = "plan")]
pub mod plan;
#[cfg(feature = "plugins")]
pub mod plugins;
#[cfg(feature = "questions")]
pub mod questions;
#[cfg(feature = "reactions")]
pub mod reactions;
#[cfg(feature = "research")]
pub mod research;
#[cfg(feature = "screen")]
pub mod screen;
#[cfg(feature = "search")]
pub mod search;
#[cfg(feature = "secrets")]
pub mod secrets;
#[cfg(feature = "shell")]
#[doc(inline)]
pub use tool_shell_analysis as shell;
#[cfg(feature = "skills")]
pub mod skills;
#[cfg(feature = "tools")]
pub mod tools;
#[cfg(feature = "web")]
pub mod web;

#[cfg(any(feature = "fs", feature = "search"))]
mod cancel;
mod profiles;
#[cfg(any(feature = "fs", feature = "search"))]
mod read_task;
#[cfg(any(feature = "fs", feature = "search"))]
mod suggest;
#[cfg(any(feature = "fs", feature = "search"))]
mod text;

pub use self::profiles::model_profiles;
