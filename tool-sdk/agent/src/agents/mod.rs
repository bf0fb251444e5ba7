//! Agents as files: who an agent is, what it is told, and what it may do.
//!
//! ```text
//! definition   one agent: name, prompt, model, tools, rules, limits
//! file         the formats of files
//! built_in     the agents that need no file
//! catalog      all agents of a project, the user and the program
//! ```
//!
//! **Invariant:** an agent of a project may never do more than the user, the program and the agent of
//! the same name that it replaces.

mod built_in;
mod catalog;
mod definition;
mod file;

pub use self::catalog::{AgentCatalog, AgentFolders};
pub use self::definition::{AgentDefinition, AgentOrigin, AgentUsage};
pub use self::file::InvalidAgentFile;
