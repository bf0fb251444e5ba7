//! The families of tools that run commands, of which a model gets one.

use tool_sdk::VariantGroup;

/// The group `shell`: `unified_exec` keeps commands between calls and is there unless another
/// one is chosen, `shell` takes a list of arguments, `shell_command` a command line.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Registry, Toolset};
///
/// # tool_sdk::link!(tool_std);
/// let toolset = Toolset::new(Registry::linked()?).with_variants(tool_std::exec::variants());
/// assert!(toolset.get("exec_command").is_some() && toolset.get("shell").is_none());
///
/// let toolset = toolset.choose_variant("shell", "shell_command")?;
/// assert!(toolset.get("exec_command").is_none() && toolset.get("shell_command").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn variants() -> VariantGroup {
    VariantGroup::new("shell")
        .variant("unified_exec", ["exec_command", "write_stdin", "list_sessions", "kill_session"])
        .variant("shell", ["shell"])
        .variant("shell_command", ["shell_command"])
}
